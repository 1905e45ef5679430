//! Credentials that Gardener issues for a shoot: subresource `adminkubeconfig` of `core.gardener.cloud` (Gardener,
//! `docs/usage/shoot/shoot_access.md`).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evenkeel_core::Sensitive;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use crate::connection::{Subject, Verb};
use crate::{Cluster, Error, Unguarded};

/// A kubeconfig that is good for a while.
#[derive(Clone, Debug)]
pub struct ShootKubeconfig {
    /// The kubeconfig.
    pub content: Sensitive<String>,
    /// When the server will no longer accept its credentials.
    pub expires: Timestamp,
}

/// `AdminKubeconfigRequest` as it comes back.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    kubeconfig: Option<Sensitive<String>>,
    expiration_timestamp: Option<Timestamp>,
}

impl Cluster {
    /// Asks this garden cluster for an administrator's kubeconfig of a shoot. The server may give a shorter time than
    /// `lifetime`.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such shoot; [`Error::Decode`] for an answer without a kubeconfig; whatever the
    /// request fails with.
    pub async fn shoot_kubeconfig(
        &self,
        namespace: &str,
        shoot: &str,
        lifetime: Duration,
    ) -> Result<ShootKubeconfig, Error> {
        let doing = format!("request admin credentials of shoot {namespace}/{shoot}");
        let subject = Subject {
            doing: doing.clone(),
            secret: true,
        };
        let path = format!(
            "/apis/core.gardener.cloud/v1beta1/namespaces/{namespace}/shoots/{shoot}/adminkubeconfig"
        );
        let body = json!({
            "apiVersion": "authentication.gardener.cloud/v1alpha1",
            "kind": "AdminKubeconfigRequest",
            "spec": {"expirationSeconds": lifetime.as_secs()},
        });
        let body = body.to_string().into_bytes();
        let sent = self
            .write(
                Verb::Create,
                &path,
                "application/json",
                body,
                &subject,
                &Unguarded,
            )
            .await?;
        let wrong = |reason: &str| Error::Decode {
            doing: doing.clone(),
            reason: reason.to_owned(),
        };
        // The parser's message may quote the kubeconfig.
        let answer: Answer =
            serde_json::from_slice(&sent.body).map_err(|_| wrong("it is no AdminKubeconfigRequest"))?;
        let encoded = answer
            .status
            .kubeconfig
            .ok_or_else(|| wrong("it has no status.kubeconfig"))?;
        let content = STANDARD
            .decode(encoded.expose())
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .ok_or_else(|| wrong("status.kubeconfig is no base64 of text"))?;
        let expires = answer
            .status
            .expiration_timestamp
            .ok_or_else(|| wrong("it has no status.expirationTimestamp"))?;
        Ok(ShootKubeconfig {
            content: Sensitive::new(content),
            expires,
        })
    }
}
