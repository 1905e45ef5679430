//! A server on loopback that answers as a test says and remembers what it was asked.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

type Handler = dyn Fn(&Asked) -> Answer + Send + Sync;

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// What is answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// After how many bytes of the body the connection breaks.
    pub(crate) cut: Option<usize>,
    /// Whether it stays open and silent then, until the other side goes away.
    pub(crate) hangs: bool,
}

impl Answer {
    pub(crate) fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            body: body.into(),
            ..Self::default()
        }
    }

    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn redirect(to: impl Into<String>) -> Self {
        Self::status(302).header("location", to)
    }

    pub(crate) fn cut(self, after: usize) -> Self {
        Self {
            cut: Some(after),
            ..self
        }
    }
}

/// A server. It lives until the process ends.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    scheme: &'static str,
    asked: Arc<Mutex<Vec<Asked>>>,
    handler: Arc<Mutex<Arc<Handler>>>,
}

impl Host {
    pub(crate) fn start(handler: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_with(None, handler)
    }

    pub(crate) fn start_with(
        tls: Option<Arc<ServerConfig>>,
        handler: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = Self {
            address: listener.local_addr().unwrap(),
            scheme: if tls.is_some() { "https" } else { "http" },
            asked: Arc::default(),
            handler: Arc::new(Mutex::new(Arc::new(handler))),
        };
        let server = host.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (server, tls) = (server.clone(), tls.clone());
                std::thread::spawn(move || match tls {
                    Some(config) => {
                        let connection = ServerConnection::new(config).unwrap();
                        server.serve(StreamOwned::new(connection, stream));
                    }
                    None => server.serve(stream),
                });
            }
        });
        host
    }

    /// Answers differently from now on.
    pub(crate) fn now(&self, handler: impl Fn(&Asked) -> Answer + Send + Sync + 'static) {
        *self.handler.lock().unwrap() = Arc::new(handler);
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// The same server by another name, which makes it another host.
    pub(crate) fn other_url(&self, path: &str) -> String {
        format!("{}://localhost:{}{path}", self.scheme, self.address.port())
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How often something whose path contains `part` was asked for.
    pub(crate) fn count(&self, part: &str) -> usize {
        self.asked()
            .iter()
            .filter(|asked| asked.path.contains(part))
            .count()
    }

    pub(crate) fn forget(&self) {
        self.asked.lock().unwrap().clear();
    }

    fn serve(&self, mut stream: impl Read + Write) {
        let Some(asked) = read(&mut stream) else { return };
        self.asked.lock().unwrap().push(asked.clone());
        let handler = Arc::clone(&self.handler.lock().unwrap());
        let answer = handler(&asked);
        // A client that went away is what some tests are about.
        let _ = write(&mut stream, &asked, &answer);
    }
}

fn read(stream: &mut impl Read) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length: usize = headers
        .get("content-length")
        .map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked {
        method,
        path,
        headers,
        body: String::from_utf8(body).ok()?,
    })
}

fn write(stream: &mut impl ReadWrite, asked: &Asked, answer: &Answer) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} X\r\nconnection: close\r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", answer.body.len()));
    stream.write_all(head.as_bytes())?;
    if asked.method != "HEAD" {
        let end = answer.cut.unwrap_or(answer.body.len()).min(answer.body.len());
        stream.write_all(&answer.body[..end])?;
    }
    stream.flush()?;
    if answer.hangs {
        // Ends when the other side does.
        let _ = stream.read(&mut [0; 1]);
    }
    Ok(())
}

trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}

/// An address where nobody listens.
pub(crate) fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// Whether somebody listens at an address.
#[allow(dead_code)]
pub(crate) fn listens(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_ok()
}
