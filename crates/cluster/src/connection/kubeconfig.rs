//! What a kubeconfig may contain, and how it becomes the settings of a client.

use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{AuthInfo, Cluster as ClusterEntry, KubeConfigOptions, Kubeconfig};

use super::transport::Proxy;
use crate::Error;

/// Whose kubeconfig it is, and so what it may refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KubeconfigPolicy {
    /// Sent by somebody and stored: content only. Programs, plugins, files of this machine and switched-off certificate
    /// checks are refused.
    Registered,
    /// The user's own, read by `evenkeel local`: files are allowed, programs only when asked for.
    Own {
        /// Whether `exec` credential plugins may run.
        allow_exec: bool,
        /// The folder that relative file paths start from: the kubeconfig's own.
        base: PathBuf,
    },
}

/// Checks that `content` is a kubeconfig that `policy` allows, without contacting or running anything.
///
/// # Errors
/// [`Error::Kubeconfig`] with the path of the wrong field.
pub(super) async fn read(content: &str, policy: &KubeconfigPolicy) -> Result<Config, Error> {
    let mut kubeconfig = Kubeconfig::from_yaml(content).map_err(|_| {
        // The parser's text quotes the file, which holds credentials.
        refused(
            "(document)",
            "expected a kubeconfig in YAML: apiVersion v1, kind Config, clusters, users, contexts",
        )
    })?;
    let context_name = kubeconfig
        .current_context
        .clone()
        .filter(|name| !name.is_empty())
        .ok_or_else(|| refused("current-context", "expected the name of a context, found none"))?;
    let context = kubeconfig
        .contexts
        .iter()
        .find(|named| named.name == context_name)
        .and_then(|named| named.context.clone())
        .ok_or_else(|| refused("current-context", format!("there is no context {context_name:?}")))?;
    let (index, cluster) = kubeconfig
        .clusters
        .iter_mut()
        .enumerate()
        .find(|(_, named)| named.name == context.cluster)
        .and_then(|(index, named)| Some((index, named.cluster.as_mut()?)))
        .ok_or_else(|| {
            refused(
                "clusters",
                format!(
                    "there is no cluster {:?}, which the context names",
                    context.cluster
                ),
            )
        })?;
    check_cluster(cluster, &format!("clusters[{index}].cluster"), policy)?;
    let proxy = cluster.proxy_url.take().filter(|url| !url.is_empty());
    let proxy = proxy.map(|url| (format!("clusters[{index}].cluster.proxy-url"), url));
    if let Some(name) = context.user.as_ref().filter(|name| !name.is_empty()) {
        let (index, user) = kubeconfig
            .auth_infos
            .iter_mut()
            .enumerate()
            .find(|(_, named)| named.name == *name)
            .and_then(|(index, named)| Some((index, named.auth_info.as_mut()?)))
            .ok_or_else(|| {
                refused(
                    "users",
                    format!("there is no user {name:?}, which the context names"),
                )
            })?;
        check_user(user, &format!("users[{index}].user"), policy)?;
    }
    let proxy = proxy.map(|(field, url)| {
        let uri = url.parse::<http::Uri>();
        let uri = uri.map_err(|_| refused(&field, "expected an address like http://host:3128"))?;
        Proxy::read(&uri).map_err(|reason| refused(&field, reason))?;
        Ok::<_, Error>(uri)
    });
    let proxy = proxy.transpose()?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| refused("clusters", describe(&error)))?;
    // Taken from the environment when the file names none; this process' proxy is not the cluster's.
    config.proxy_url = proxy;
    config.default_retry = false;
    Ok(config)
}

fn check_cluster(cluster: &mut ClusterEntry, field: &str, policy: &KubeconfigPolicy) -> Result<(), Error> {
    let server = cluster.server.as_deref().unwrap_or_default();
    let uri: http::Uri = server.parse().map_err(|_| {
        refused(
            format!("{field}.server"),
            "expected an address like https://host:6443",
        )
    })?;
    let own = matches!(policy, KubeconfigPolicy::Own { .. });
    match uri.scheme_str() {
        Some("https") => {}
        // Credentials in clear text; kubectl allows it, for `kubectl proxy` and the like.
        Some("http") if own => {}
        _ => {
            return Err(refused(
                format!("{field}.server"),
                "expected an address that begins with https://",
            ));
        }
    }
    if uri.host().is_none_or(str::is_empty) {
        return Err(refused(
            format!("{field}.server"),
            "expected an address like https://host:6443",
        ));
    }
    if cluster.insecure_skip_tls_verify == Some(true) && !own {
        let reason =
            "not allowed: the server must prove who it is; put its CA into certificate-authority-data";
        return Err(refused(format!("{field}.insecure-skip-tls-verify"), reason));
    }
    check_file(
        &mut cluster.certificate_authority,
        format!("{field}.certificate-authority"),
        policy,
    )?;
    if let Some(data) = cluster
        .certificate_authority_data
        .as_deref()
        .filter(|data| !data.is_empty())
    {
        check_pem(data, &format!("{field}.certificate-authority-data"))?;
    }
    Ok(())
}

fn check_user(user: &mut AuthInfo, field: &str, policy: &KubeconfigPolicy) -> Result<(), Error> {
    if user.exec.is_some() {
        match policy {
            KubeconfigPolicy::Own { allow_exec: true, .. } => {}
            KubeconfigPolicy::Own {
                allow_exec: false, ..
            } => {
                let reason = "runs a program to get credentials; allow it with --allow-exec";
                return Err(refused(format!("{field}.exec"), reason));
            }
            KubeconfigPolicy::Registered => {
                let reason = "not allowed: a registered kubeconfig cannot run programs; use a token or a client certificate";
                return Err(refused(format!("{field}.exec"), reason));
            }
        }
    }
    if user.auth_provider.is_some() {
        let reason = "not allowed: auth-provider plugins were removed from Kubernetes; use a token or a client certificate";
        return Err(refused(format!("{field}.auth-provider"), reason));
    }
    check_file(
        &mut user.client_certificate,
        format!("{field}.client-certificate"),
        policy,
    )?;
    check_file(&mut user.client_key, format!("{field}.client-key"), policy)?;
    check_file(&mut user.token_file, format!("{field}.tokenFile"), policy)?;
    if let Some(data) = user
        .client_certificate_data
        .as_deref()
        .filter(|data| !data.is_empty())
    {
        check_pem(data, &format!("{field}.client-certificate-data"))?;
    }
    Ok(())
}

/// Refuses a file path, or makes it absolute, as `policy` says.
fn check_file(path: &mut Option<String>, field: String, policy: &KubeconfigPolicy) -> Result<(), Error> {
    let Some(given) = path.as_mut().filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let KubeconfigPolicy::Own { base, .. } = policy else {
        let data = match field.rsplit('.').next() {
            Some("tokenFile") => "token".to_owned(),
            name => format!("{}-data", name.unwrap_or_default()),
        };
        let reason =
            format!("not allowed: a registered kubeconfig cannot name files of this machine; use {data}");
        return Err(refused(field, reason));
    };
    let absolute = base.join(&*given);
    std::fs::metadata(&absolute).map_err(|error| {
        refused(
            field,
            format!("{} cannot be read: {error}", Path::display(&absolute)),
        )
    })?;
    *given = absolute.to_string_lossy().into_owned();
    Ok(())
}

/// Refuses what is no base64 of at least one PEM certificate, so that it shows at registration and not later.
fn check_pem(data: &str, field: &str) -> Result<(), Error> {
    use base64::Engine as _;
    let expected = "expected base64 of one or more PEM certificates";
    let compact: String = data.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(compact)
        .map_err(|_| refused(field, format!("{expected}; it is no base64")))?;
    if bytes
        .windows(CERTIFICATE_BEGIN.len())
        .any(|window| window == CERTIFICATE_BEGIN)
    {
        Ok(())
    } else {
        Err(refused(field, format!("{expected}; it holds none")))
    }
}

const CERTIFICATE_BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// The kind of fault only: the library's own text may quote content.
fn describe(error: &kube::config::KubeconfigError) -> String {
    use kube::config::KubeconfigError as E;
    match error {
        E::ParseCertificates(_) => "certificate-authority-data cannot be read as PEM".to_owned(),
        E::LoadCertificateAuthority(_) => "the certificate authority cannot be loaded".to_owned(),
        E::LoadClientCertificate(_) => "the client certificate cannot be loaded".to_owned(),
        E::LoadClientKey(_) => "the client key cannot be loaded".to_owned(),
        E::ParseClusterUrl(_) | E::MissingClusterUrl => "server is no address".to_owned(),
        _ => "it cannot be used".to_owned(),
    }
}

fn refused(field: impl Into<String>, reason: impl Into<String>) -> Error {
    Error::Kubeconfig {
        field: field.into(),
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests;
