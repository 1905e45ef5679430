//! A server on loopback that gives the files of a folder to whoever asks, as a plain web server does.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};

/// A server. It lives until the process ends.
pub(crate) struct Serving {
    address: SocketAddr,
}

impl Serving {
    pub(crate) fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let folder = folder.to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let folder = folder.clone();
                std::thread::spawn(move || answer(stream, &folder));
            }
        });
        Self { address }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }
}

/// Answers one request; what breaks off is asked again by whoever needs it.
fn answer(mut stream: TcpStream, folder: &Path) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let first = lines.next()?.ok()?;
    let mut credentials = String::new();
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("authorization")
        {
            value.trim().clone_into(&mut credentials);
        }
    }
    let path = first.split_whitespace().nth(1)?.trim_start_matches('/');
    let file: PathBuf = folder.join(path.split('?').next().unwrap_or_default());
    // Base64 of `me:open`.
    let is_welcome = !path.starts_with("private/") || credentials == "Basic bWU6b3Blbg==";
    let (status, body) = match fs::read(file) {
        _ if !is_welcome => ("401 Unauthorized", Vec::new()),
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", b"nothing here".to_vec()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&body).ok()
}
