//! How much a cluster is asked, on which way, and with whose credentials.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use evenkeel_cluster::{Error, ErrorClass, Limits};
use rcgen::{CertificateParams, KeyPair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{base64, cluster, kubeconfig, tls_server};

/// A server behind which `upstream` answers each connection; counts them.
pub(super) async fn serve<F, T>(handle: F) -> (std::net::SocketAddr, Arc<AtomicUsize>)
where
    F: Fn(TcpStream, usize) -> T + Send + Sync + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    #[allow(clippy::disallowed_methods, reason = "ends with the test's runtime")]
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            #[allow(clippy::disallowed_methods, reason = "ends with the test's runtime")]
            tokio::spawn(handle(stream, number));
        }
    });
    (address, count)
}

pub(super) async fn head_of(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

pub(super) async fn answer(stream: &mut TcpStream, status: &str, headers: &str, body: &str) {
    let text = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(text.as_bytes()).await;
}

pub(super) const KUBE_SYSTEM: &str = r#"{"metadata": {"name": "kube-system", "uid": "the-uid"}}"#;

/// K5: nobody waits for a cluster that cannot be reached; it is asked once per interval, and everything goes on once it
/// answers again.
#[tokio::test]
async fn an_unreachable_cluster_is_asked_once_per_interval() {
    let up = Arc::new(AtomicBool::new(false));
    let is_up = Arc::clone(&up);
    let (address, connections) = serve(move |mut stream, _| {
        let is_up = is_up.load(Ordering::SeqCst);
        async move {
            while is_up && !head_of(&mut stream).await.is_empty() {
                answer(&mut stream, "200 OK", "", KUBE_SYSTEM).await;
            }
        }
    })
    .await;
    let kubeconfig = kubeconfig(&format!("http://{address}"), "", "");
    let down = cluster(&kubeconfig, Limits::default()).await;
    let mut not_tried = 0;
    for _ in 0..50 {
        let error = down.uid().await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Unreachable, "{error}");
        if let Error::NotTried { retry_in, .. } = &error {
            assert!(*retry_in <= Duration::from_secs(1), "{error}");
            assert!(error.to_string().contains("asked again in"), "{error}");
            not_tried += 1;
        }
    }
    assert!(not_tried >= 46, "{not_tried}");
    assert!(connections.load(Ordering::SeqCst) <= 4, "{connections:?}");
    up.store(true, Ordering::SeqCst);
    let uid = evenkeel_testkit::eventually("the cluster to be asked again", async || down.uid().await).await;
    assert_eq!(uid.as_str(), "the-uid");
}

#[tokio::test]
async fn a_busy_server_is_left_alone_for_as_long_as_it_asks() {
    let (address, _) = serve(|mut stream, number| async move {
        let mut first = number == 0;
        while !head_of(&mut stream).await.is_empty() {
            if first {
                answer(&mut stream, "429 Too Many Requests", "retry-after: 1\r\n", "").await;
                first = false;
            } else {
                answer(&mut stream, "200 OK", "", KUBE_SYSTEM).await;
            }
        }
    })
    .await;
    let busy = cluster(
        &kubeconfig(&format!("http://{address}"), "", ""),
        Limits::default(),
    )
    .await;
    let started = std::time::Instant::now();
    assert_eq!(
        busy.uid().await.unwrap_err().class(),
        ErrorClass::RateLimited(Duration::from_secs(1))
    );
    busy.uid().await.unwrap();
    assert!(
        started.elapsed() >= Duration::from_secs(1),
        "{:?}",
        started.elapsed()
    );
}

/// A proxy that speaks HTTP CONNECT, or SOCKS 5 with name and password.
async fn proxy(upstream: std::net::SocketAddr, socks: bool) -> (std::net::SocketAddr, Arc<AtomicUsize>) {
    serve(move |mut stream, _| async move {
        if socks {
            let mut greeting = [0; 2];
            stream.read_exact(&mut greeting).await.unwrap();
            let mut methods = vec![0; usize::from(greeting[1])];
            stream.read_exact(&mut methods).await.unwrap();
            assert!(methods.contains(&2));
            stream.write_all(&[5, 2]).await.unwrap();
            let mut login = [0; 12];
            stream.read_exact(&mut login).await.unwrap();
            assert_eq!(&login, b"\x01\x02me\x07p@sswrd");
            stream.write_all(&[1, 0]).await.unwrap();
            let mut request = [0; 4];
            stream.read_exact(&mut request).await.unwrap();
            let mut rest = vec![
                0;
                if request[3] == 1 {
                    6
                } else {
                    usize::from(stream.read_u8().await.unwrap()) + 2
                }
            ];
            stream.read_exact(&mut rest).await.unwrap();
            stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
        } else {
            let head = head_of(&mut stream).await;
            assert!(head.starts_with("CONNECT cluster.invalid:6443"), "{head}");
            assert!(
                head.to_lowercase()
                    .contains("proxy-authorization: basic bwu6cebzc3dyza=="),
                "{head}"
            );
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        }
        let mut server = TcpStream::connect(upstream).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
    })
    .await
}

#[tokio::test]
async fn clusters_behind_a_proxy_are_reached() {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["cluster.invalid".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let upstream = tls_server(&certificate, &key).await;
    for socks in [false, true] {
        let (address, through) = proxy(upstream, socks).await;
        let scheme = if socks { "socks5" } else { "http" };
        let settings = format!(
            "certificate-authority-data: {}, proxy-url: '{scheme}://me:p%40sswrd@{address}'",
            base64(certificate.pem().as_bytes())
        );
        // The name is known to the proxy alone.
        let found = cluster(
            &kubeconfig("https://cluster.invalid:6443", &settings, ""),
            Limits::default(),
        )
        .await;
        assert_eq!(found.uid().await.unwrap().as_str(), "the-uid", "{scheme}");
        assert_eq!(through.load(Ordering::SeqCst), 1);
        assert!(!format!("{found:?}").contains("sswrd"));
    }
}

/// Whoever leaves a request gives back what it held, and the connection with it.
#[tokio::test]
async fn a_request_that_is_left_holds_nothing() {
    let (address, connections) = serve(|mut stream, number| async move {
        while !head_of(&mut stream).await.is_empty() {
            if number < 3 {
                std::future::pending::<()>().await;
            }
            answer(&mut stream, "200 OK", "", KUBE_SYSTEM).await;
        }
    })
    .await;
    let limits = Limits {
        in_flight: 1,
        ..Limits::default()
    };
    let client = cluster(&kubeconfig(&format!("http://{address}"), "", ""), limits).await;
    for _ in 0..3 {
        let left = tokio::time::timeout(Duration::from_millis(50), client.uid()).await;
        assert!(left.is_err());
    }
    assert_eq!(client.uid().await.unwrap().as_str(), "the-uid");
    assert_eq!(connections.load(Ordering::SeqCst), 4);
}

/// What an HTTP/2 server sends first, and then a GOAWAY that says that it has looked at no request.
const GOODBYE: [u8; 26] = [
    0, 0, 0, 4, 0, 0, 0, 0, 0, // SETTINGS, none
    0, 0, 8, 7, 0, 0, 0, 0, 0, // GOAWAY
    0, 0, 0, 0, 0, 0, 0, 0, // last stream 0, NO_ERROR
];

/// A server of HTTP/2 that says goodbye on its first connections before it looks at a request.
async fn goodbyes(count: usize) -> (std::net::SocketAddr, String, Arc<AtomicUsize>) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let _ = super::rustls_provider();
    let mut config = tokio_rustls::rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            key.serialize_der().try_into().unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let (address, connections) = serve(move |stream, number| {
        let acceptor = acceptor.clone();
        async move {
            let mut stream = acceptor.accept(stream).await.unwrap();
            if number < count {
                stream.write_all(&GOODBYE).await.unwrap();
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest).await;
                return;
            }
            let service = hyper::service::service_fn(|_| async {
                let body = http_body_util::Full::new(bytes::Bytes::from_static(KUBE_SYSTEM.as_bytes()));
                Ok::<_, std::convert::Infallible>(http::Response::new(body))
            });
            let connection =
                hyper_util::server::conn::auto::Builder::new(hyper_util::rt::TokioExecutor::new());
            let stream = hyper_util::rt::TokioIo::new(stream);
            let _ = connection.serve_connection(stream, service).await;
        }
    })
    .await;
    (address, base64(certificate.pem().as_bytes()), connections)
}

/// A server that says goodbye on a new connection, as load balancers and `--goaway-chance` do, is asked once more on another
/// one: a healthy cluster is never called unreachable for that.
#[tokio::test]
async fn a_goodbye_at_the_start_of_a_connection_is_no_outage() {
    for (count, reached) in [(1, true), (2, false)] {
        let (address, ca, connections) = goodbyes(count).await;
        let settings = format!("certificate-authority-data: {ca}");
        let kubeconfig = kubeconfig(&format!("https://{address}"), &settings, "");
        let client = cluster(&kubeconfig, Limits::default()).await;
        let uid = client.uid().await.map(|uid| uid.to_string());
        assert_eq!(uid.is_ok(), reached, "{uid:?}");
        assert_eq!(
            connections.load(Ordering::SeqCst),
            2,
            "once more, and not for ever"
        );
        if let Err(error) = uid {
            assert_eq!(error.class(), ErrorClass::Unreachable, "{error}");
        }
    }
}
