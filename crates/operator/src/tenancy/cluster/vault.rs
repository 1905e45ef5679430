//! What Vault keeps of a cluster: the token by which its agent calls (§3.3, §3.8).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use evenkeel_core::Sensitive;
use evenkeel_steps::{Change, Decision, Failure, Outcome, Predicate, Step};
use jiff::Timestamp;
use kube::ResourceExt;
use serde::Deserialize;

use super::{ClusterState, tenant_of};
use crate::frame::policy::{ARCHIVE, ERASE};
use crate::frame::{Input, is_orphaned, permission, version};
use crate::resources::DeletionPolicy;
use crate::tenancy::VAULT_READY;
use crate::vault::asked::{may_keep, may_remove};
use crate::vault::{SecretPath, Written};

/// Name of the secret below the path of tenant and cluster, and the key in it.
const STEWARD: &str = "steward";
const TOKEN: &str = "token";

/// How soon Kubernetes has put a token into its Secret.
const TOKEN_PAUSE: Duration = Duration::from_secs(2);

/// A token is replaced when less than this part of its life is left: one over so much.
const RENEWAL_PART: i64 = 3;

/// Name of what is remembered.
const LOOK: &str = "vault";

const RENEWAL: &str = "the token in Vault is replaced";

/// What a token says of itself. Its signature is not checked: it is only asked when we replace it.
#[derive(Debug, Deserialize)]
struct Claims {
    #[serde(rename = "iat")]
    issued_at: i64,
    #[serde(rename = "exp")]
    ends_at: i64,
    #[serde(rename = "kubernetes.io")]
    kubernetes: InKubernetes,
}

#[derive(Debug, Deserialize)]
struct InKubernetes {
    serviceaccount: Account,
}

#[derive(Debug, Deserialize)]
struct Account {
    uid: String,
}

impl Claims {
    fn of(token: &str) -> Option<Self> {
        let payload = token.split('.').nth(1)?;
        let bytes = URL_SAFE_NO_PAD.decode(payload).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn is_of(&self, account: Option<&str>) -> bool {
        account == Some(self.kubernetes.serviceaccount.uid.as_str())
    }

    /// When it is to be replaced.
    fn renewal(&self) -> Timestamp {
        let life = self.ends_at.saturating_sub(self.issued_at).max(0);
        Timestamp::from_second(self.ends_at.saturating_sub(life / RENEWAL_PART)).unwrap_or_default()
    }
}

fn with_vault() -> Predicate<ClusterState> {
    Predicate::new("vault", |state: &ClusterState| state.shared.vault.is_some())
}

/// Whether what Vault keeps is to stay behind.
fn orphaned() -> Predicate<ClusterState> {
    Predicate::new("orphaned", |state: &ClusterState| is_orphaned(&state.object))
}

fn path(state: &ClusterState, below: Option<&str>) -> Result<SecretPath, Failure> {
    let tenant = tenant_of(&state.object);
    let segments = [tenant, state.identity.name.as_str()];
    Ok(SecretPath::new(segments.into_iter().chain(below))?)
}

/// Keeps a token of the cluster's service account in Vault: the one that Kubernetes has put into its Secret, or else one that is asked
/// for and replaced before it ends (A24).
pub(super) fn step() -> impl Step<ClusterState> {
    evenkeel_steps::step::<ClusterState>("vault")
        .condition(VAULT_READY)
        .after("tenant")
        .after("service-account")
        .after("token-secret")
        .when(with_vault())
        .may(may_keep())
        .may([permission::issue_tokens()])
        .decide(|cx, ()| async move {
            let state = cx.shared_state();
            let Some(store) = state.shared.vault.clone() else {
                return Ok(Decision::End(Outcome::done()));
            };
            let secret = state.rights.token();
            if secret.is_none() && state.shared.settings.token_secrets {
                let reason = format!("the service account {} has no token yet", state.identity.name);
                return Ok(Decision::End(Outcome::wait(TOKEN_PAUSE, reason)));
            }
            let path = path(&state, Some(STEWARD))?;
            let input = {
                let kept = state.rights.secret.as_ref().filter(|_| secret.is_some());
                let account = state.rights.account.as_ref().and_then(ResourceExt::uid);
                Input::of(&(path.to_string(), kept.map(version), account))
            };
            if let Some(renewal) = state.looks.found::<Option<Timestamp>>(LOOK, &input, cx.now())
                && renewal.is_none_or(|renewal| renewal > cx.now())
            {
                if let Some(renewal) = renewal {
                    cx.due(renewal, RENEWAL);
                }
                return Ok(Decision::End(Outcome::done()));
            }
            let present = store.read(&path).await?;
            let present = present.data.as_ref().and_then(|data| data.get(TOKEN));
            let account = state.rights.account.as_ref().and_then(ResourceExt::uid);
            let mut renewal = None;
            let is_good = match &secret {
                Some(token) => present == Some(token.as_str()),
                // Of an account that was made anew it is worth nothing.
                None => match present.and_then(Claims::of) {
                    Some(claims) if claims.is_of(account.as_deref()) && claims.renewal() > cx.now() => {
                        cx.due(claims.renewal(), RENEWAL);
                        renewal = Some(claims.renewal());
                        true
                    }
                    _ => false,
                },
            };
            if is_good {
                state.looks.saw(LOOK, input, cx.now(), &renewal);
                return Ok(Decision::End(Outcome::done()));
            }
            let mut plan = vec![Change::new("set", format!("secret {path}"))];
            if secret.is_none() {
                plan.insert(
                    0,
                    Change::new("issue", format!("a token of {}", state.identity.name)),
                );
            }
            Ok(Decision::act(plan, async move {
                let token = match secret {
                    Some(token) => Sensitive::new(token),
                    None => issue(&state).await?,
                };
                if let Some(claims) = Claims::of(token.expose()) {
                    cx.due(claims.renewal(), RENEWAL);
                }
                match store.set(&path, TOKEN, &token).await? {
                    Written::Unchanged => Ok(Outcome::done()),
                    Written::Changed => Ok(Outcome::changed("secret written")),
                }
            }))
        })
}

async fn issue(state: &ClusterState) -> Result<Sensitive<String>, Failure> {
    let (identity, life) = (&state.identity, state.shared.settings.token_life);
    let access = &state.shared.access;
    access
        .issue_token(&identity.namespace, &identity.name, life)
        .await
}

/// Takes away all that is kept in Vault, as the policy of this cluster says (B8, B9, B10).
pub(super) fn removal() -> impl Step<ClusterState> {
    let has_tenant = Predicate::new("tenant named", |state: &ClusterState| {
        !tenant_of(&state.object).is_empty()
    });
    evenkeel_steps::step::<ClusterState>("vault-removal")
        .when(with_vault() & has_tenant & !orphaned())
        .may(may_remove())
        .decide(|cx, ()| async move {
            let state = cx.shared_state();
            let policy = state.deletion_policy();
            let Some(store) = state
                .shared
                .vault
                .clone()
                .filter(|_| policy != DeletionPolicy::Retain)
            else {
                return Ok(Decision::End(Outcome::done()));
            };
            let path = path(&state, None)?;
            let present = store.below(&path).await?;
            if present.is_empty() {
                return Ok(Decision::End(Outcome::done()));
            }
            let verb = match policy {
                DeletionPolicy::Delete => ERASE,
                DeletionPolicy::Archive | DeletionPolicy::Retain => ARCHIVE,
            };
            let plan = present
                .iter()
                .map(|path| Change::new(verb, format!("secret {path}")))
                .collect();
            Ok(Decision::act(plan, async move {
                let removal = store.remove(&path, policy).await?;
                Ok(Outcome::changed(format!("{} secrets removed", removal.removed)))
            }))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_whose_it_is_and_when_it_is_to_be_replaced() {
        let token = |payload: &str| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(payload));
        let good =
            r#"{"iat":1000,"exp":4000,"kubernetes.io":{"serviceaccount":{"name":"c-one","uid":"u-1"}}}"#;
        let claims = Claims::of(&token(good)).unwrap();
        assert_eq!(claims.renewal().as_second(), 3000);
        assert!(claims.is_of(Some("u-1")) && !claims.is_of(Some("u-2")) && !claims.is_of(None));
        // One without an end, as Secrets hold them, is none of those that we ask for; nor is what is no token.
        let endless = r#"{"kubernetes.io":{"serviceaccount":{"name":"c-one","uid":"u-1"}}}"#;
        for other in [
            token(endless),
            token("no JSON"),
            "a.%.c".to_owned(),
            "opaque".to_owned(),
            String::new(),
        ] {
            assert!(Claims::of(&other).is_none(), "{other}");
        }
    }
}
