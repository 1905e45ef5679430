//! The token by which a cluster's agent gets its first credentials (§3.3).

use std::time::Duration;

use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use evenkeel_steps::{Change, Decision, Failure, Outcome, Step};
use jiff::{Timestamp, Unit};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use super::{ClusterState, TOKEN_READY};
use crate::frame::{CLAIM, owned_by, owner_of, permission};
use crate::resources::{BootstrapToken, Cluster};

/// How long a token is good if the cluster does not say it.
const DEFAULT_LIFE: Duration = Duration::from_secs(24 * 3600);

/// Bytes of randomness in a token.
const TOKEN_BYTES: usize = 16;

/// Makes a token where there is none, and says of one that has ended that it is good no more. Never the other way round: who uses
/// a token marks it, and no pass that began before takes that back.
pub(super) fn step() -> impl Step<ClusterState> {
    evenkeel_steps::step::<ClusterState>("bootstrap-token")
        .condition(TOKEN_READY)
        .after(CLAIM)
        .may([permission::patch_status::<Cluster>()])
        .may(permission::keep::<Secret>())
        .may([permission::get::<Secret>(), permission::own::<Cluster>()])
        .decide(|cx, ()| async move {
            let state = cx.shared_state();
            let status = state.object.status.clone().unwrap_or_default();
            let mut fields = json!({});
            // Lieutenant's API replaces the field, which has to exist for that (B28).
            if status.compile_meta.is_none() {
                fields["compileMeta"] = json!({ "global": {}, "tenant": {} });
            }
            let mut plan = Vec::new();
            match status.bootstrap_token {
                None => {
                    let until = until(cx.now(), state.object.spec.token_life_time.as_deref())?;
                    cx.due(until, "the bootstrap token ends");
                    fields["bootstrapToken"] = token(until)?;
                    plan.push(Change::new("create", "the bootstrap token"));
                }
                // One that was made before Secrets were wanted.
                Some(BootstrapToken {
                    token: Some(shown),
                    token_valid: Some(true),
                    ..
                }) if state.shared.settings.bootstrap_secrets && !shown.expose().is_empty() => {
                    fields["bootstrapToken"] = json!({ "token": shown });
                    plan.push(Change::new("move", "the bootstrap token into a Secret"));
                }
                Some(token) if token.token_valid == Some(true) => match token.valid_until {
                    Some(until) if until > cx.now() => cx.due(until, "the bootstrap token ends"),
                    _ => {
                        fields["bootstrapToken"] = json!({ "tokenValid": false });
                        plan.push(Change::new("end", "the bootstrap token"));
                    }
                },
                Some(_) => {}
            }
            if fields.as_object().is_none_or(serde_json::Map::is_empty) {
                return Ok(Decision::End(Outcome::done()));
            }
            if plan.is_empty() {
                plan.push(Change::new("add", "the empty result of a compilation"));
            }
            Ok(Decision::act(plan, async move {
                let access = &state.shared.access;
                let identity = &state.identity;
                let mut fields = fields;
                if state.shared.settings.bootstrap_secrets {
                    hide(&state, &mut fields).await?;
                }
                let body = json!({ "metadata": { "uid": identity.uid }, "status": fields });
                access
                    .merge_status::<Cluster>(&identity.namespace, &identity.name, &body)
                    .await?;
                Ok(Outcome::changed("bootstrap token written"))
            }))
        })
}

/// Puts a token that the status is to get into a Secret, and its hash in its place (B24): who may see a cluster need not be one who
/// may install its agent. The Secret comes first, so that no hash is of a token that nobody knows.
async fn hide(state: &ClusterState, fields: &mut Value) -> Result<(), Failure> {
    let Some(token) = fields["bootstrapToken"]["token"].as_str().map(str::to_owned) else {
        return Ok(());
    };
    let access = &state.shared.access;
    let (namespace, name) = (
        &state.identity.namespace,
        BootstrapToken::secret_name(&state.identity.name),
    );
    let present: Option<Secret> = access.find(namespace, &name).await?;
    if present.is_some_and(|secret| !owned_by(&secret, &state.identity.uid)) {
        return Err(Failure::invalid(format!(
            "the Secret {name} belongs to another object: it is left as it is"
        )));
    }
    let owner = owner_of(&state.object).ok_or_else(|| Failure::bug("an object without a uid"))?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": name, "namespace": namespace, "ownerReferences": [owner] },
        "data": { BootstrapToken::KEY: STANDARD.encode(&token) },
    });
    access.apply::<Secret>(namespace, &name, &secret).await?;
    fields["bootstrapToken"]["tokenHash"] = json!(BootstrapToken::hash(&token));
    fields["bootstrapToken"]["token"] = Value::Null;
    Ok(())
}

fn token(until: Timestamp) -> Result<Value, Failure> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Failure::bug("no randomness can be had"))?;
    Ok(json!({ "token": URL_SAFE.encode(bytes), "validUntil": until, "tokenValid": true }))
}

fn until(now: Timestamp, life: Option<&str>) -> Result<Timestamp, Failure> {
    let life = match life.filter(|life| !life.is_empty()) {
        Some(text) => go_duration(text).ok_or_else(|| {
            Failure::invalid(format!(
                "spec.tokenLifeTime {text:?} is no duration: write it like 1h30m"
            ))
        })?,
        None => DEFAULT_LIFE,
    };
    let until = now.checked_add(life).unwrap_or(Timestamp::MAX);
    Ok(until.round(Unit::Second).unwrap_or(until))
}

/// A duration as Go writes it: `1h30m`, `1.5h`, `300ms`. A negative one is none for a life.
fn go_duration(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    let mut seconds = 0.0_f64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let number: f64 = number.parse().ok()?;
        let unit = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        seconds += number
            * match unit {
                "ns" => 1e-9,
                "us" | "µs" | "μs" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
        rest = after;
    }
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, seconds) in [
            ("4h", 14_400),
            ("1h30m", 5_400),
            ("1.5h", 5_400),
            ("0", 0),
            ("90s", 90),
        ] {
            assert_eq!(go_duration(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "4", "4 h", "h", "-4h", "1d", "1h-1m", "..s"] {
            assert_eq!(go_duration(text), None, "{text}");
        }
    }
}
