//! Values that lie at an address (`-f https://…`). Helm asks for them as nobody: neither names and passwords nor
//! certificates of its flags, which are for charts, are used; who the address itself names is.

use std::sync::Arc;

use bytes::Bytes;
use evenkeel_core::Clock;
use evenkeel_telemetry::Tasks;
use reqwest::{StatusCode, Url};

use super::Helm;
use crate::address::shown;
use crate::credentials::Credentials;
use crate::hosts::HostPolicy;
use crate::http::Request;
use crate::{Error, Remote, RemoteOptions};

/// The largest file of values, in bytes.
const VALUES_SIZE_MAX: u64 = 64 * 1024 * 1024;

impl Helm {
    /// Whether values by this name lie at an address, rather than in a file of this machine.
    ///
    /// # Errors
    /// [`Error::Helm`] in Helm's words for an address that is none, or that no values can lie at.
    pub fn are_values_elsewhere(name: &str) -> Result<bool, Error> {
        let scheme = evenkeel_gotemplate::url_scheme(name).map_err(Error::Helm)?;
        match scheme.as_str() {
            "http" | "https" => Ok(true),
            "oci" => Err(Error::Helm(format!(
                "{name:?} cannot hold values: registries hold charts"
            ))),
            _ => Ok(false),
        }
    }

    /// Obtains values, or a schema that they have to fit, from an address.
    ///
    /// # Errors
    /// [`Error::Helm`] in Helm's words when the host answers anything but 200; everything that asking a host fails with.
    pub async fn fetch_text(address: &str, clock: Arc<dyn Clock>, tasks: Tasks) -> Result<Bytes, Error> {
        let url = Url::parse(address).map_err(|error| Error::Helm(format!("parse {address:?}: {error}")))?;
        let options = RemoteOptions {
            hosts: HostPolicy::Anywhere,
            ..RemoteOptions::default()
        };
        let remote = Remote::new(options, clock, tasks)?;
        let credentials = Credentials::default();
        let request = Request::get(url, &credentials, VALUES_SIZE_MAX);
        let response = remote.inner().http.send(&request).await?;
        if response.status == StatusCode::OK {
            return Ok(response.body);
        }
        Err(Error::Helm(format!(
            "failed to fetch {} : {}",
            shown(&request.url),
            response.status
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_paths() {
        let elsewhere = Helm::are_values_elsewhere;
        for path in [
            "values.yaml",
            "./a:b",
            "/etc/x",
            "s3://bucket/v.yaml",
            "a/b:c",
            "ftp://h/v",
        ] {
            assert!(!elsewhere(path).unwrap(), "{path}");
        }
        assert!(elsewhere("HTTPS://h/v.yaml").unwrap());
        assert_eq!(
            elsewhere("a%zz").unwrap_err().to_string(),
            "parse \"a%zz\": invalid URL escape \"%zz\""
        );
        assert!(elsewhere("1:2").is_err() && elsewhere("oci://h/a").is_err());
    }
}
