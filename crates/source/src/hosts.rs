//! Which hosts may be spoken to. Whoever may change a configuration names addresses that this process then calls; it
//! must not become a way into networks that only this process can reach.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::Error;
use crate::address::shown;

/// Which hosts may be spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostPolicy {
    /// All: a person works with what the person named.
    Anywhere,
    /// Hosts on public addresses, by `https`; and those listed here or in the credentials, wherever they are.
    #[default]
    Public,
    /// As [`HostPolicy::Public`], and these as well.
    PublicAnd(Vec<HostPattern>),
}

/// `HOST`, `HOST:PORT`, or `*.DOMAIN` for all hosts below a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    name: String,
    port: Option<u16>,
}

/// How far a request may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reach {
    /// To whatever address the host's name stands for.
    Any,
    /// To public addresses only.
    Public,
}

impl HostPolicy {
    /// How far a request to `url` may reach; `is_known` when the credentials have an entry for it.
    pub(crate) fn reach(&self, url: &Url, is_known: bool) -> Result<Reach, Error> {
        if *self == Self::Anywhere || is_known || self.lists(url) {
            return Ok(Reach::Any);
        }
        let refused = |reason: &str| Error::HostRefused {
            url: shown(url),
            reason: reason.to_owned(),
        };
        if url.scheme() == "http" {
            return Err(refused("it is not https"));
        }
        let host = url.host_str().unwrap_or_default();
        let literal = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>();
        match literal {
            Ok(address) if !is_public(address) => Err(refused("it is not a public address")),
            _ => Ok(Reach::Public),
        }
    }

    fn lists(&self, url: &Url) -> bool {
        match self {
            Self::PublicAnd(listed) => listed.iter().any(|pattern| pattern.matches(url)),
            Self::Anywhere | Self::Public => false,
        }
    }
}

impl HostPattern {
    fn matches(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
        let name_fits = match self.name.strip_prefix('*') {
            Some(domain) => host.strip_suffix(domain).is_some_and(|below| !below.is_empty()),
            None => host == self.name,
        };
        name_fits
            && self
                .port
                .is_none_or(|port| url.port_or_known_default() == Some(port))
    }
}

impl FromStr for HostPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not valid: expected HOST, HOST:PORT or *.DOMAIN");
        let (name, port) = match text.rsplit_once(':') {
            // The colons of an address without port.
            Some((_, rest)) if rest.ends_with(']') => (text, None),
            Some((name, port)) => (name, Some(port.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let rest = name.strip_prefix("*.").unwrap_or(name);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte);
        if rest.is_empty() || !rest.bytes().all(plain) {
            return Err(wrong());
        }
        Ok(Self {
            name: name.to_ascii_lowercase(),
            port,
        })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Whether an address belongs to the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Not in the registry of special addresses (RFC 6890 and its successors).
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || a == 0
        // Carrier-grade NAT.
        || (a == 100 && (b & 0xc0) == 64)
        || (a == 192 && b == 0 && c == 0)
        // Benchmarks.
        || (a == 198 && (b & 0xfe) == 18)
        || a >= 240;
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(address) = address.to_ipv4_mapped() {
        return is_public_v4(address);
    }
    let parts = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // NAT64 and 6to4 lead to an IPv4 address.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        // Teredo, documentation.
        [0x2001, 0, ..] | [0x2001, 0xdb8, ..] => false,
        // What is assigned as global unicast is all below 2000::/3.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// Resolves names to public addresses only; the connection goes to what was checked, so a name that changes its
/// address in between gains nothing.
#[derive(Clone, Debug)]
pub(crate) struct PublicResolver {
    /// Proxies that the environment names; they are reached wherever they are.
    pub(crate) proxies: Vec<String>,
}

/// A name that stands for no public address.
#[derive(Debug, thiserror::Error)]
#[error("its name stands for no public address")]
pub(crate) struct NotPublic;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let is_proxy = self
            .proxies
            .iter()
            .any(|proxy| proxy.eq_ignore_ascii_case(name.as_str()));
        Box::pin(async move {
            // The port is replaced by the connection's own.
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let public: Vec<_> = found
                .into_iter()
                .filter(|found| is_proxy || is_public(found.ip()))
                .collect();
            if public.is_empty() {
                return Err(NotPublic.into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// The hosts of the proxies that the environment names, by the variables that the HTTP client reads.
pub(crate) fn proxies(variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
    const VARIABLES: [&str; 6] = [
        "https_proxy",
        "HTTPS_PROXY",
        "http_proxy",
        "HTTP_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ];
    VARIABLES
        .iter()
        .filter_map(|name| variable(name))
        .filter_map(|text| {
            let text = if text.contains("://") {
                text
            } else {
                format!("http://{text}")
            };
            Url::parse(&text).ok()?.host_str().map(str::to_owned)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(policy: &HostPolicy, url: &str) -> Result<Reach, String> {
        policy
            .reach(&url.parse().unwrap(), false)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn special_addresses_are_not_public() {
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "192.0.0.8",
            "240.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fec0::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::",
            "2001:db8::1",
            "2001:0:1::1",
            "::7f00:1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "1.1.1.1",
            "100.128.0.1",
            "172.32.0.1",
            "2606:4700::1111",
            "64:ff9b::101:101",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn by_default_only_public_hosts_by_https() {
        let policy = HostPolicy::Public;
        assert_eq!(reach(&policy, "https://charts.example.com/"), Ok(Reach::Public));
        for url in [
            "http://charts.example.com/",
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://[fd00::1]:8443/",
            "https://0x7f000001/",
            "https://169.254.169.254/latest",
        ] {
            assert!(reach(&policy, url).is_err(), "{url}");
        }
    }

    #[test]
    fn listed_hosts_may_be_anywhere() {
        let listed = [
            "internal.example",
            "*.svc.example:8443",
            "127.0.0.1:5000",
            "[::1]",
        ];
        let patterns = listed.iter().map(|text| text.parse().unwrap()).collect();
        let policy = HostPolicy::PublicAnd(patterns);
        for url in [
            "http://internal.example/",
            "https://INTERNAL.example:444/",
            "https://a.svc.example:8443/",
            "http://127.0.0.1:5000/",
            "http://[::1]:1/",
        ] {
            assert_eq!(reach(&policy, url), Ok(Reach::Any), "{url}");
        }
        for url in [
            "http://a.svc.example/",
            "http://svc.example:8443/",
            "http://127.0.0.1:5001/",
        ] {
            assert!(reach(&policy, url).is_err(), "{url}");
        }
        for text in ["", "a b", "https://a", "a:x", "*", "*."] {
            assert!(text.parse::<HostPattern>().is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn names_of_loopback_do_not_resolve() {
        let resolver = PublicResolver { proxies: Vec::new() };
        let error = resolver
            .resolve("localhost".parse().unwrap())
            .await
            .err()
            .unwrap();
        assert!(error.is::<NotPublic>(), "{error}");
        let resolver = PublicResolver {
            proxies: proxies(|name| (name == "HTTPS_PROXY").then(|| "http://localhost:3128".to_owned())),
        };
        assert!(resolver.resolve("localhost".parse().unwrap()).await.is_ok());
    }
}
