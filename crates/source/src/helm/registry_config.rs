//! The files that `helm registry login` and `docker login` write.

use std::collections::HashMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evenkeel_core::Sensitive;
use serde::Deserialize;

use crate::Error;
use crate::credentials::Secret;

/// The name under which Docker Hub's credentials are kept, without scheme and path.
const DOCKER_HUB: &str = "index.docker.io";
/// What every program that keeps credentials is called, before its own name.
const HELPER: &str = "docker-credential-";

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[serde(default)]
    auths: HashMap<String, Auth>,
    #[serde(default)]
    creds_store: String,
    #[serde(default)]
    cred_helpers: HashMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Auth {
    auth: Option<Sensitive<String>>,
    username: Option<String>,
    password: Option<Sensitive<String>>,
    identitytoken: Option<Sensitive<String>>,
    registrytoken: Option<Sensitive<String>>,
}

/// Who we are at a registry, by the first of some files that knows it.
///
/// # Errors
/// [`Error::Credentials`] for a file that cannot be read.
pub(super) fn secret<'p>(
    host: &str,
    files: impl IntoIterator<Item = &'p Path>,
) -> Result<Option<Secret>, Error> {
    for file in files {
        let wrong = |problem: String| Error::Credentials {
            file: file.to_owned(),
            problem,
        };
        let text = match std::fs::read(file) {
            Ok(text) => Sensitive::new(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(wrong(error.to_string())),
        };
        if text.expose().iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let config: Config = serde_json::from_slice(text.expose()).map_err(|error| {
            // The error's own words may quote a value.
            let (line, column) = (error.line(), error.column());
            wrong(format!(
                "line {line}, column {column}: it is no registry configuration in JSON"
            ))
        })?;
        if let Some(secret) = config.secret(host, file).map_err(wrong)? {
            return Ok(Some(secret));
        }
    }
    Ok(None)
}

impl Config {
    fn secret(&self, host: &str, file: &Path) -> Result<Option<Secret>, String> {
        let names = |key: &&String| same_host(key, host);
        let helper = |name: &str| Secret::Helper {
            program: format!("{HELPER}{name}"),
            file: file.to_owned(),
        };
        if let Some(name) = self
            .cred_helpers
            .keys()
            .find(names)
            .and_then(|key| self.cred_helpers.get(key))
        {
            return Ok(Some(helper(name)));
        }
        let Some(auth) = self.auths.keys().find(names).and_then(|key| self.auths.get(key)) else {
            return Ok(None);
        };
        match auth.secret(host)? {
            // What the store keeps is noted by an empty entry.
            None if !self.creds_store.is_empty() => Ok(Some(helper(&self.creds_store))),
            secret => Ok(secret),
        }
    }
}

impl Auth {
    fn secret(&self, host: &str) -> Result<Option<Secret>, String> {
        let filled = |text: &Option<Sensitive<String>>| text.clone().filter(|text| !text.expose().is_empty());
        if let Some(token) = filled(&self.identitytoken) {
            return Ok(Some(Secret::IdentityToken(token)));
        }
        if let Some(token) = filled(&self.registrytoken) {
            return Ok(Some(Secret::RegistryToken(token)));
        }
        if let Some(auth) = filled(&self.auth) {
            let wrong = || format!("the entry of {host} is not valid: `auth` is no base64 of NAME:PASSWORD");
            let both = STANDARD.decode(auth.expose().trim()).map_err(|_| wrong())?;
            let both = Sensitive::new(String::from_utf8(both).map_err(|_| wrong())?);
            let (username, password) = both.expose().split_once(':').ok_or_else(wrong)?;
            return Ok(Some(Secret::Basic {
                username: username.to_owned(),
                password: Sensitive::new(password.trim_end_matches('\0').to_owned()),
            }));
        }
        Ok(match (&self.username, filled(&self.password)) {
            (Some(username), Some(password)) if !username.is_empty() => Some(Secret::Basic {
                username: username.clone(),
                password,
            }),
            _ => None,
        })
    }
}

/// Whether an entry's key, which may be an address, is about a host.
fn same_host(key: &str, host: &str) -> bool {
    let bare = key
        .strip_prefix("https://")
        .or_else(|| key.strip_prefix("http://"));
    let own = bare.unwrap_or(key).split('/').next().unwrap_or_default();
    let hub = |host: &str| match host {
        "docker.io" | "registry-1.docker.io" => DOCKER_HUB.to_owned(),
        other => other.to_ascii_lowercase(),
    };
    hub(own) == hub(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, host: &str) -> Result<Option<Secret>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        std::fs::write(&path, text).unwrap();
        secret(host, [Path::new("/does/not/exist"), &path]).map_err(|error| error.to_string())
    }

    fn basic(username: &str, password: &str) -> Secret {
        Secret::Basic {
            username: username.to_owned(),
            password: Sensitive::new(password.to_owned()),
        }
    }

    #[test]
    fn entries_are_read() {
        let auth = STANDARD.encode("me:pass:word");
        let text = format!(
            r#"{{"auths": {{"localhost:5000": {{"auth": "{auth}"}}, "https://index.docker.io/v1/": {{"identitytoken": "t"}},
            "b.example": {{"username": "u", "password": "p"}}, "c.example": {{}}}}, "HttpHeaders": {{}}}}"#
        );
        assert_eq!(found(&text, "localhost:5000"), Ok(Some(basic("me", "pass:word"))));
        assert_eq!(found(&text, "b.example"), Ok(Some(basic("u", "p"))));
        assert!(matches!(
            found(&text, "docker.io"),
            Ok(Some(Secret::IdentityToken(_)))
        ));
        for host in ["localhost", "c.example", "x.example"] {
            assert_eq!(found(&text, host), Ok(None), "{host}");
        }
    }

    #[test]
    fn programs_are_named_and_only_where_they_keep_something() {
        let text =
            r#"{"credsStore": "pass", "credHelpers": {"a.example": "ecr"}, "auths": {"b.example": {}}}"#;
        for (host, program) in [
            ("a.example", Some("docker-credential-ecr")),
            ("b.example", Some("docker-credential-pass")),
            ("c.example", None),
        ] {
            match found(text, host).unwrap() {
                Some(Secret::Helper { program: own, .. }) => assert_eq!(Some(own.as_str()), program),
                other => assert_eq!((other, program), (None, None)),
            }
        }
    }

    #[test]
    fn a_broken_file_is_not_quoted() {
        for text in [
            r#"{"auths": {"a": {"auth": "hunter2"#,
            r#"{"auths": {"a": {"auth": ["hunter2"]}}}"#,
            r#"{"auths": {"a": {"auth": "aHVudGVyMg=="}}}"#,
        ] {
            let error = found(text, "a").unwrap_err();
            assert!(
                !error.contains("hunter2") && error.contains("config.json"),
                "{error}"
            );
        }
        assert_eq!(found(" ", "a"), Ok(None));
    }
}
