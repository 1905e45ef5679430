//! Objects that a controller makes for the one it looks after.

use evenkeel_steps::{Change, Decision, Failure, Outcome};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::access::{Access, Readable};
use super::fields::covers;

/// How a child that is there is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upkeep {
    /// It is made once; people may change it.
    Once,
    /// It is kept as it was made.
    Kept,
}

/// Makes a child be there, with these fields and its owner. One of another owner is left alone, and told.
pub(crate) fn child<K: Readable + Send + Sync + 'static>(
    access: &Access,
    present: Option<&K>,
    owner_uid: &str,
    wanted: Value,
    upkeep: Upkeep,
) -> Result<Decision<'static, ()>, Failure> {
    let kind = K::kind(&()).into_owned();
    let name = wanted["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let namespace = wanted["metadata"]["namespace"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    if let Some(present) = present {
        let owners = present.owner_references();
        if owners
            .iter()
            .any(|owner| owner.controller == Some(true) && owner.uid != owner_uid)
        {
            return Err(Failure::invalid(format!(
                "the {kind} {name} belongs to another object: it is left as it is"
            )));
        }
        let shown = serde_json::to_value(present)
            .map_err(|error| Failure::bug(format!("the {kind} {name} cannot be read: {error}")))?;
        if upkeep == Upkeep::Once || covers(&shown, &without_kind(&wanted)) {
            return Ok(Decision::End(Outcome::done()));
        }
    }
    let verb = if present.is_some() { "update" } else { "create" };
    let plan = vec![Change::new(verb, format!("{kind} {name}"))];
    let mut fields = wanted;
    fields["apiVersion"] = json!(K::api_version(&()));
    fields["kind"] = json!(kind);
    let access = access.clone();
    Ok(Decision::act(plan, async move {
        access.apply::<K>(&namespace, &name, &fields).await?;
        Ok(Outcome::changed(format!("{kind} written")))
    }))
}

/// What is compared: kinds read without version and kind.
fn without_kind(wanted: &Value) -> Value {
    let mut wanted = wanted.clone();
    if let Some(fields) = wanted.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    wanted
}
