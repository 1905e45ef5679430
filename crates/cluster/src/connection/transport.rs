//! From the settings of a kubeconfig to connections: TLS, proxies, pooling.

use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderValue, Uri};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt as _};
use rustls::ClientConfig;
use tokio::time::timeout;
use tower::{BoxError, Service, ServiceBuilder};

use super::{Limits, client, tls};
use crate::Error;

/// HTTP/2 connections are pinged this often, so that a dead one is noticed.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// How long an answer to such a ping may take.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// How much of one answer may be under way on HTTP/2.
const STREAM_WINDOW: u32 = 1024 * 1024;
/// How much of all answers may be: as much as every watch of a cluster, were none of them read, and a few answers beside, so
/// that nothing unread ever holds up an answer.
const CONNECTION_WINDOW: u32 = (crate::WATCHES_PER_CLUSTER_MAX as u32 + 32) * STREAM_WINDOW;

/// All that connections to one cluster are made from. Kept, so that new ones resume TLS sessions of closed ones.
#[derive(Clone)]
pub(super) struct Transport {
    config: Config,
    tls: ClientConfig,
    proxy: Option<Proxy>,
}

/// A proxy that stands between us and the cluster.
#[derive(Clone)]
pub(super) enum Proxy {
    /// HTTP CONNECT.
    Http(Uri, Option<HeaderValue>),
    /// SOCKS 5; names are resolved by the proxy.
    Socks(Uri, Option<(String, String)>),
}

/// Bounds TCP and TLS together; the TCP connector's own bound leaves out the handshake.
#[derive(Clone)]
struct ConnectWithin<C> {
    connector: C,
    within: Duration,
}

impl<C> Service<Uri> for ConnectWithin<C>
where
    C: Service<Uri>,
    C::Error: Into<BoxError>,
    C::Future: Send + 'static,
    C::Response: 'static,
{
    type Response = C::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<C::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connecting, within) = (self.connector.call(uri), self.within);
        Box::pin(async move {
            match timeout(within, connecting).await {
                Ok(connected) => connected.map_err(Into::into),
                Err(_) => Err(format!("no connection within {within:?}").into()),
            }
        })
    }
}

impl Transport {
    pub(super) fn new(config: Config) -> Result<Self, Error> {
        let tls = tls::client_config(&config)?;
        let proxy = config.proxy_url.as_ref().map(Proxy::read).transpose();
        let proxy = proxy.map_err(|reason| Error::Kubeconfig {
            field: "proxy-url".to_owned(),
            reason: reason.to_owned(),
        })?;
        Ok(Self { config, tls, proxy })
    }

    /// The server's address.
    pub(super) fn server(&self) -> String {
        self.config
            .cluster_url
            .to_string()
            .trim_end_matches('/')
            .to_owned()
    }

    /// A client without open connections.
    pub(super) fn client(&self, limits: &Limits) -> Result<kube::Client, Error> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(limits.connect_timeout));
        match &self.proxy {
            None => self.over(http, limits),
            Some(Proxy::Http(uri, authorization)) => {
                let tunnel = Tunnel::new(uri.clone(), http);
                let tunnel = match authorization {
                    Some(authorization) => tunnel.with_auth(authorization.clone()),
                    None => tunnel,
                };
                self.over(tunnel, limits)
            }
            Some(Proxy::Socks(uri, user)) => {
                let socks = SocksV5::new(uri.clone(), http).local_dns(false);
                let socks = match user {
                    Some((name, password)) => socks.with_auth(name.clone(), password.clone()),
                    None => socks,
                };
                self.over(socks, limits)
            }
        }
    }

    /// HTTP/1.1 or HTTP/2 as the server prefers, no retries, idle connections reaped.
    fn over<C>(&self, connector: C, limits: &Limits) -> Result<kube::Client, Error>
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Error: Into<BoxError>,
        C::Future: Send + 'static,
        C::Response:
            legacy::connect::Connection + hyper::rt::Read + hyper::rt::Write + Send + Unpin + 'static,
    {
        let config = &self.config;
        let mut https = HttpsConnectorBuilder::new()
            .with_tls_config(self.tls.clone())
            .https_or_http();
        if let Some(name) = &config.tls_server_name {
            let name = name.clone().try_into().map_err(|_| Error::Kubeconfig {
                field: "tls-server-name".to_owned(),
                reason: "expected a DNS name or IP address".to_owned(),
            })?;
            https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
        }
        let connector = ConnectWithin {
            connector: https.enable_all_versions().wrap_connector(connector),
            within: limits.connect_timeout,
        };
        let pool: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(limits.idle_timeout)
            .pool_max_idle_per_host(limits.idle_connections)
            .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .http2_keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            // Only those that never left, because the connection they were to use had been closed meanwhile.
            .retry_canceled_requests(true)
            .build(connector);
        let unusable = |error: kube::Error| match error {
            kube::Error::Auth(_) => client::credentials_failed(),
            _ => Error::Kubeconfig {
                field: "(user)".to_owned(),
                reason: "token, password or impersonation holds characters that no header can carry"
                    .to_owned(),
            },
        };
        let service = ServiceBuilder::new()
            .layer(config.base_uri_layer())
            .option_layer(config.auth_layer().map_err(unusable)?)
            .layer(config.extra_headers_layer().map_err(unusable)?)
            .map_err(BoxError::from)
            .service(pool);
        Ok(kube::Client::new(service, config.default_namespace.clone()))
    }
}

impl Proxy {
    /// Reads a proxy's address, which may hold a name and password.
    pub(super) fn read(uri: &Uri) -> Result<Self, &'static str> {
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let (user, host) = authority
            .rsplit_once('@')
            .map_or((None, authority), |(user, host)| (Some(user), host));
        let plain = |scheme: &str| {
            Uri::builder()
                .scheme(scheme)
                .authority(host)
                .path_and_query("/")
                .build()
                .map_err(|_| "expected an address like http://host:3128")
        };
        match uri.scheme_str() {
            Some("http") => {
                use base64::Engine as _;
                let authorization = user.map(|user| {
                    let encoded = base64::engine::general_purpose::STANDARD.encode(decoded(user));
                    let mut value = HeaderValue::try_from(format!("Basic {encoded}"))
                        .map_err(|_| "its name or password cannot be sent")?;
                    value.set_sensitive(true);
                    Ok::<_, &str>(value)
                });
                Ok(Self::Http(plain("http")?, authorization.transpose()?))
            }
            Some("socks5" | "socks5h") => {
                let user = user.map(|user| {
                    let (name, password) = user.split_once(':').unwrap_or((user, ""));
                    (decoded(name), decoded(password))
                });
                Ok(Self::Socks(plain("socks5")?, user))
            }
            // The way to the proxy would need authorities of its own, for which a kubeconfig has no field; the way through
            // it is TLS to the cluster in any case.
            Some("https") => Err(
                "https:// proxies are not supported, because a kubeconfig cannot say whom to trust for them: \
                 use http:// or socks5://, what passes through is encrypted to the cluster all the same",
            ),
            _ => Err("expected an address that begins with http:// or socks5://"),
        }
    }
}

/// Undoes percent-encoding, which URLs need for some characters of a password.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = tail
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_read_and_others_refused() {
        let read = |text: &str| Proxy::read(&text.parse().expect("uri"));
        assert!(matches!(
            read("http://proxy.example:3128"),
            Ok(Proxy::Http(_, None))
        ));
        let Ok(Proxy::Http(uri, Some(authorization))) = read("http://me:p%40ss@proxy.example:3128") else {
            panic!("not read");
        };
        assert_eq!(
            uri.authority().map(|authority| authority.as_str()),
            Some("proxy.example:3128")
        );
        assert!(authorization.is_sensitive() && authorization == "Basic bWU6cEBzcw==");
        assert!(matches!(
            read("socks5://me:x@[::1]:1080"),
            Ok(Proxy::Socks(_, Some(_)))
        ));
        let refused = read("https://proxy.example").err();
        assert!(refused.is_some_and(|reason| reason.contains("use http://")) && read("ftp://x").is_err());
        assert_eq!(decoded("a%2"), "a%2");
    }
}
