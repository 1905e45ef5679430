//! Requests to a server of ours on the loopback interface.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;

use crate::Error;

/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// How a request says whose it is.
pub(crate) enum Credentials<'a> {
    None,
    Password {
        name: &'a str,
        password: &'a str,
    },
    /// A header with its value.
    Header(&'static str, String),
}

/// What a request carries.
pub(crate) enum Body<'a> {
    None,
    Json(&'a Value),
    Bytes(&'a [u8]),
}

/// Why there is no answer.
pub(crate) enum Failure {
    Io(Error),
    Http(reqwest::Error),
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        Self::Http(error)
    }
}

/// One request, on a thread with a runtime of its own: the caller may be on one. Gives back status and body.
pub(crate) fn request(
    port: u16,
    method: Method,
    path: &str,
    credentials: &Credentials<'_>,
    body: Body<'_>,
) -> Result<(u16, String), Failure> {
    // Already installed is as good. The client wants one, though it speaks no TLS here.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let exchange = async {
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(REQUEST_TIMEOUT)
            .build()?;
        let mut request = client.request(method, format!("http://127.0.0.1:{port}{path}"));
        request = match credentials {
            Credentials::None => request,
            Credentials::Password { name, password } => request.basic_auth(name, Some(password)),
            Credentials::Header(name, value) => request.header(*name, value),
        };
        request = match body {
            Body::None => request,
            Body::Json(value) => request.json(value),
            Body::Bytes(bytes) => request.body(bytes.to_vec()),
        };
        let answer = request.send().await?;
        Ok((answer.status().as_u16(), answer.text().await?))
    };
    std::thread::scope(|scope| {
        // The runtime ends on that thread too: on the caller's it must not, if the caller is on one.
        let thread = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| Failure::Io(Error::io("start a runtime")(error)))?;
            runtime.block_on(exchange)
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
