//! URLs as `net/url` takes them apart and puts them together.

use super::args::{MAP, STR, map, text};
use crate::Error;
use crate::exec::Executor;
use crate::fmt::quote;
use crate::function::Native;
use crate::value::{Map, Str, Value};

pub(super) static TABLE: &[Native] = &[
    Native::concrete("urlParse", &[STR], false, url_parse),
    Native::concrete("urlJoin", &[MAP], false, url_join),
    // Names are not looked up while a chart renders: Helm gives an empty text unless told otherwise.
    Native::concrete("getHostByName", &[STR], false, get_host_by_name),
];

type Result<T = Value> = std::result::Result<T, Error>;
type Parsed<T> = std::result::Result<T, String>;

/// The part of a URL that a text stands in; each allows other characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Host,
    Zone,
    User,
    Fragment,
}

fn must_escape(byte: u8, part: Part) -> bool {
    if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
        return false;
    }
    match part {
        Part::Host | Part::Zone => !b"!$&'()*+,;=:[]<>\"".contains(&byte),
        Part::Path => !b"$&+,/:;=@".contains(&byte),
        Part::User => !b"$&+,;=".contains(&byte),
        Part::Fragment => !b"$&+,/:;=?@!()*".contains(&byte),
    }
}

fn escape(source: &[u8], part: Part) -> Vec<u8> {
    let mut out = Vec::with_capacity(source.len());
    for byte in source {
        if must_escape(*byte, part) {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            out.push(*byte);
        }
    }
    out
}

fn unescape(source: &[u8], part: Part) -> Parsed<Vec<u8>> {
    let mut out = Vec::with_capacity(source.len());
    let mut at = 0;
    while let Some(byte) = source.get(at) {
        if *byte != b'%' {
            if matches!(part, Part::Host | Part::Zone) && byte.is_ascii() && must_escape(*byte, part) {
                return Err(format!(
                    "invalid character {} in host name",
                    quote::bytes(&[*byte])
                ));
            }
            out.push(*byte);
            at += 1;
            continue;
        }
        let digits = source
            .get(at + 1..at + 3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let shown = source.get(at..(at + 3).min(source.len())).unwrap_or_default();
        let invalid = || format!("invalid URL escape {}", quote::bytes(shown));
        let code = code.ok_or_else(invalid)?;
        // Hosts may encode only what is not ASCII; zones also what a host may not hold.
        if part == Part::Host && code < 0x80 && shown != b"%25" {
            return Err(invalid());
        }
        if part == Part::Zone && shown != b"%25" && code != b' ' && must_escape(code, Part::Host) {
            return Err(invalid());
        }
        out.push(code);
        at += 3;
    }
    Ok(out)
}

#[derive(Default)]
struct Url {
    scheme: Vec<u8>,
    opaque: Vec<u8>,
    /// User name and password.
    user: Option<(Vec<u8>, Option<Vec<u8>>)>,
    host: Vec<u8>,
    path: Vec<u8>,
    query: Vec<u8>,
    fragment: Vec<u8>,
}

fn split_once(source: &[u8], byte: u8) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(byte, source) {
        Some(at) => (
            source.get(..at).unwrap_or_default(),
            Some(source.get(at + 1..).unwrap_or_default()),
        ),
        None => (source, None),
    }
}

fn scheme(source: &[u8]) -> Parsed<(&[u8], &[u8])> {
    for (index, byte) in source.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => {
                return Ok((
                    source.get(..index).unwrap_or_default(),
                    source.get(index + 1..).unwrap_or_default(),
                ));
            }
            _ => break,
        }
    }
    Ok((&[], source))
}

fn valid_port(text: &[u8]) -> Parsed<()> {
    let valid = match text.split_first() {
        None => true,
        Some((b':', digits)) => digits.iter().all(u8::is_ascii_digit),
        Some(_) => false,
    };
    if valid {
        Ok(())
    } else {
        Err(format!("invalid port {} after host", quote::bytes(text)))
    }
}

fn parse_host(scheme: &[u8], host: &[u8]) -> Parsed<Vec<u8>> {
    match memchr::memrchr(b'[', host) {
        Some(0) => {
            let close = memchr::memrchr(b']', host).ok_or("missing ']' in host")?;
            let port = host.get(close + 1..).unwrap_or_default();
            valid_port(port)?;
            let literal = host.get(1..close).unwrap_or_default();
            let mut name = match memchr::memmem::find(literal, b"%25") {
                Some(zone) => {
                    let (address, zone) = literal.split_at(zone);
                    let mut name = unescape(address, Part::Host)?;
                    name.append(&mut unescape(zone, Part::Zone)?);
                    name
                }
                None => unescape(literal, Part::Host)?,
            };
            let address = String::from_utf8_lossy(&name).into_owned();
            let address_only = address.split('%').next().unwrap_or_default();
            if address_only.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(if address_only.parse::<std::net::Ipv4Addr>().is_ok() {
                    "invalid IP-literal".to_owned()
                } else {
                    format!(
                        "invalid host: ParseAddr({}): unable to parse IP",
                        quote::text(&address)
                    )
                });
            }
            let mut out = vec![b'['];
            out.append(&mut name);
            out.push(b']');
            out.extend_from_slice(port);
            return Ok(out);
        }
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    if let Some(first) = memchr::memchr(b':', host) {
        let strict = scheme == b"http" || scheme == b"https";
        let colon = if strict {
            first
        } else {
            memchr::memrchr(b':', host).unwrap_or(first)
        };
        valid_port(host.get(colon..).unwrap_or_default())?;
    }
    unescape(host, Part::Host)
}

impl Url {
    fn parse(whole: &[u8]) -> Parsed<Self> {
        let (source, fragment) = split_once(whole, b'#');
        let blame = |text: &[u8], error: String| format!("parse {}: {error}", quote::bytes(text));
        let mut url = Self::parse_source(source).map_err(|error| blame(source, error))?;
        if let Some(fragment) = fragment {
            url.fragment = unescape(fragment, Part::Fragment).map_err(|error| blame(whole, error))?;
        }
        Ok(url)
    }

    /// A URL without its fragment.
    fn parse_source(source: &[u8]) -> Parsed<Self> {
        let mut url = Self::default();
        if source.iter().any(|byte| *byte < b' ' || *byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if source == b"*" {
            url.path = b"*".to_vec();
        } else {
            url.parse_rest(source)?;
        }
        Ok(url)
    }

    fn parse_rest(&mut self, source: &[u8]) -> Parsed<()> {
        let (scheme, rest) = scheme(source)?;
        self.scheme = scheme.to_ascii_lowercase();
        let (rest, query) = split_once(rest, b'?');
        self.query = query.unwrap_or_default().to_vec();
        if !rest.starts_with(b"/") {
            if !self.scheme.is_empty() {
                self.opaque = rest.to_vec();
                return Ok(());
            }
            let (segment, _) = split_once(rest, b'/');
            if segment.contains(&b':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let mut path = rest;
        let has_authority = rest.starts_with(b"//") && (!self.scheme.is_empty() || !rest.starts_with(b"///"));
        if has_authority {
            let authority = rest.get(2..).unwrap_or_default();
            let end = memchr::memchr(b'/', authority).unwrap_or(authority.len());
            let (authority, after) = authority.split_at(end);
            self.parse_authority(authority)?;
            path = after;
        }
        self.path = unescape(path, Part::Path)?;
        Ok(())
    }

    fn parse_authority(&mut self, authority: &[u8]) -> Parsed<()> {
        let Some(at) = memchr::memrchr(b'@', authority) else {
            self.host = parse_host(&self.scheme, authority)?;
            return Ok(());
        };
        self.host = parse_host(&self.scheme, authority.get(at + 1..).unwrap_or_default())?;
        let user = authority.get(..at).unwrap_or_default();
        let valid = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(byte);
        if !user.iter().all(valid) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        let (name, password) = split_once(user, b':');
        let password = password
            .map(|password| unescape(password, Part::User))
            .transpose()?;
        self.user = Some((unescape(name, Part::User)?, password));
        Ok(())
    }

    /// The host without port and brackets.
    fn hostname(&self) -> &[u8] {
        let host = &self.host;
        let mut name = host.as_slice();
        if let Some(colon) = memchr::memrchr(b':', host)
            && valid_port(host.get(colon..).unwrap_or_default()).is_ok()
        {
            name = host.get(..colon).unwrap_or_default();
        }
        name.strip_prefix(b"[")
            .and_then(|name| name.strip_suffix(b"]"))
            .unwrap_or(name)
    }

    fn user_text(&self) -> Vec<u8> {
        let Some((name, password)) = &self.user else {
            return Vec::new();
        };
        let mut out = escape(name, Part::User);
        if let Some(password) = password {
            out.push(b':');
            out.append(&mut escape(password, Part::User));
        }
        out
    }

    fn to_text(&self) -> Vec<u8> {
        let mut out = self.scheme.clone();
        if !out.is_empty() {
            out.push(b':');
        }
        if self.opaque.is_empty() {
            let has_authority = !self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some();
            if has_authority {
                if !self.host.is_empty() || !self.path.is_empty() || self.user.is_some() {
                    out.extend_from_slice(b"//");
                }
                if self.user.is_some() {
                    out.append(&mut self.user_text());
                    out.push(b'@');
                }
                out.append(&mut escape(&self.host, Part::Host));
            }
            let mut path = if self.path == b"*" {
                b"*".to_vec()
            } else {
                escape(&self.path, Part::Path)
            };
            if !path.is_empty() && !path.starts_with(b"/") && !self.host.is_empty() {
                out.push(b'/');
            }
            if out.is_empty() && split_once(&path, b'/').0.contains(&b':') {
                out.extend_from_slice(b"./");
            }
            out.append(&mut path);
        } else {
            out.extend_from_slice(&self.opaque);
        }
        if !self.query.is_empty() {
            out.push(b'?');
            out.extend_from_slice(&self.query);
        }
        if !self.fragment.is_empty() {
            out.push(b'#');
            out.append(&mut escape(&self.fragment, Part::Fragment));
        }
        out
    }
}

fn parsed(source: &[u8]) -> Parsed<Url> {
    Url::parse(source)
}

/// The scheme of a text that Go's `url.Parse` reads, in lower case; empty for one without.
///
/// # Errors
/// Why it is no URL, in Go's words.
pub fn url_scheme(text: &str) -> std::result::Result<String, String> {
    let url = parsed(text.as_bytes())?;
    Ok(String::from_utf8_lossy(&url.scheme).into_owned())
}

fn url_parse(_: &mut Executor, args: &[Value]) -> Result {
    let url =
        parsed(text(args, 0)).map_err(|error| Error::message(format!("unable to parse url: {error}")))?;
    let entries = [
        ("scheme", url.scheme.clone()),
        ("host", url.host.clone()),
        ("hostname", url.hostname().to_vec()),
        ("path", url.path.clone()),
        ("query", url.query.clone()),
        ("opaque", url.opaque.clone()),
        ("fragment", url.fragment.clone()),
        ("userinfo", url.user_text()),
    ];
    Ok(Value::Map(
        entries
            .into_iter()
            .map(|(key, value)| (Str::from(key), Value::from(value)))
            .collect::<Map>(),
    ))
}

fn url_join(_: &mut Executor, args: &[Value]) -> Result {
    let source = map(args, 0);
    let part = |key: &str| -> Result<Vec<u8>> {
        match source.get(key) {
            None => Ok(Vec::new()),
            Some(Value::Str(text)) => Ok(text.as_bytes().to_vec()),
            Some(other) => {
                let kind = other.kind().name();
                Err(Error::message(format!(
                    "unable to parse {key} key, must be of type string, but {kind} found"
                )))
            }
        }
    };
    let mut url = Url {
        scheme: part("scheme")?,
        host: part("host")?,
        path: part("path")?,
        query: part("query")?,
        opaque: part("opaque")?,
        fragment: part("fragment")?,
        user: None,
    };
    let user = part("userinfo")?;
    if !user.is_empty() {
        let whole = [b"proto://".as_slice(), &user, b"@host"].concat();
        let parsed = parsed(&whole)
            .map_err(|error| Error::message(format!("unable to parse userinfo in dict: {error}")))?;
        url.user = parsed.user;
    }
    Ok(Value::from(url.to_text()))
}

fn get_host_by_name(_: &mut Executor, _: &[Value]) -> Result {
    Ok(Value::from(""))
}
