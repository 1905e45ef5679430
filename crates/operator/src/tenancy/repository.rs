//! The GitRepo of a tenant or a cluster (§3.5).

use std::collections::BTreeMap;

use evenkeel_steps::{Change, Decision, Failure, Outcome};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

use super::TenancySettings;
use super::spec::tree;
use crate::frame::fields::{covers, lay, missing, surplus};
use crate::frame::{Access, Identity, Mark};
use crate::gitrepo::{FILES_SYNCED, RECORD};
use crate::resources::{
    CreationPolicy, DeletionPolicy, GitRepo, GitRepoSpec, GitRepoTemplate, ObjectName, RepoType,
};

/// What the parent says beside its template.
pub(super) struct Parent<'a> {
    pub(super) identity: &'a Identity,
    pub(super) owner: OwnerReference,
    pub(super) tenant: &'a str,
    pub(super) display_name: Option<&'a str>,
    pub(super) deletion_policy: Option<DeletionPolicy>,
    pub(super) creation_policy: Option<CreationPolicy>,
}

/// Adds to what is filled into the parent's specification: what the template `given` leaves to the parent and the settings, and
/// the address of the repository. Answers the template that counts, and the keys of the repository's host.
///
/// # Errors
/// None that a specification causes.
pub(super) fn fill_in(
    fill: &mut Map<String, Value>,
    given: GitRepoTemplate,
    parent: &Parent<'_>,
    settings: &TenancySettings,
    present: Option<&GitRepo>,
) -> Result<(GitRepoTemplate, Option<String>), Failure> {
    let effective = effective(given.clone(), parent, settings);
    let more = missing(&tree(&given)?, &tree(&effective)?);
    if !more.is_empty() {
        let more = Map::from_iter([("gitRepoTemplate".to_owned(), json!(more))]);
        let mut laid = json!(fill);
        lay(&mut laid, &more);
        *fill = laid.as_object_mut().map(std::mem::take).unwrap_or_default();
    }
    let published = published(present).filter(|_| effective.repo_type != Some(RepoType::Unmanaged));
    let keys = published.and_then(|(url, keys)| {
        fill.insert("gitRepoURL".to_owned(), json!(url));
        keys
    });
    Ok((effective, keys))
}

/// The template with all that the parent and the settings say where it is silent.
fn effective(
    mut template: GitRepoTemplate,
    parent: &Parent<'_>,
    settings: &TenancySettings,
) -> GitRepoTemplate {
    let named = |name: &Option<String>| name.as_ref().is_some_and(|name| !name.is_empty());
    if !named(&template.display_name) {
        template.display_name = parent.display_name.map(str::to_owned);
    }
    template.deletion_policy = template
        .deletion_policy
        .or(parent.deletion_policy)
        .or(Some(settings.deletion_policy));
    template.creation_policy = template
        .creation_policy
        .or(parent.creation_policy)
        .or(Some(settings.creation_policy));
    template.repo_type = template.repo_type.or(Some(RepoType::Auto));
    template
}

/// Makes the GitRepo be as the template says. One of another owner is left alone, and told (B23).
pub(super) fn keep(
    access: &Access,
    present: Option<&GitRepo>,
    parent: &Parent<'_>,
    template: GitRepoTemplate,
    annotations: &BTreeMap<String, String>,
) -> Result<Decision<'static, ()>, Failure> {
    let Identity { namespace, name, uid } = parent.identity.clone();
    if parent.tenant.is_empty() {
        return Err(Failure::invalid(
            "spec.tenantRef.name is missing: name the tenant",
        ));
    }
    let spec = tree(&GitRepoSpec {
        template,
        tenant_ref: Some(ObjectName {
            name: parent.tenant.to_owned(),
        }),
    })?;
    let metadata = json!({
        "name": name, "namespace": namespace, "annotations": annotations, "ownerReferences": [parent.owner],
    });
    let wanted = json!({ "metadata": metadata, "spec": spec });
    let mut gone = None;
    if let Some(present) = present {
        let owners = present.owner_references();
        if owners
            .iter()
            .any(|owner| owner.controller == Some(true) && owner.uid != uid)
        {
            return Err(Failure::invalid(format!(
                "the GitRepo {name} belongs to another object: it is left as it is"
            )));
        }
        let shown = tree(present)?;
        gone = surplus(&shown["spec"], &spec);
        if gone.is_none() && covers(&shown, &wanted) {
            return Ok(Decision::End(Outcome::done()));
        }
    }
    let verb = if present.is_some() { "update" } else { "create" };
    let plan = vec![Change::new(verb, format!("GitRepo {name}"))];
    let access = access.clone();
    let mut fields = wanted;
    fields["apiVersion"] = json!("syn.tools/v1alpha1");
    fields["kind"] = json!("GitRepo");
    Ok(Decision::act(plan, async move {
        let applied: GitRepo = access.apply(&namespace, &name, &fields).await?;
        // What the predecessor wrote stays when we leave it out: it goes by name.
        if gone.is_some()
            && let Some(left) = surplus(&tree(&applied.spec)?, &spec)
        {
            access
                .merge::<GitRepo>(&namespace, &name, &json!({ "spec": left }))
                .await?;
        }
        Ok(Outcome::changed("GitRepo written"))
    }))
}

/// What the GitRepo says of its repository: address and keys of its host. None while it says nothing, so that the last that was
/// right stays (A32).
fn published(present: Option<&GitRepo>) -> Option<(String, Option<String>)> {
    let status = present?.status.as_ref()?;
    let url = status.url.clone().filter(|url| !url.is_empty())?;
    Some((url, status.host_keys.clone()))
}

/// The problem of a GitRepo, for its parent's status.
pub(super) fn problem(present: Option<&GitRepo>) -> Option<String> {
    let conditions = &present?.status.as_ref()?.conditions;
    let ready = conditions.iter().find(|condition| condition.kind == "Ready")?;
    (ready.status == crate::resources::ConditionStatus::False).then(|| ready.message.clone())
}

/// A digest of what is read here of a GitRepo: a change of anything else, such as what is noted on it, is no news to its parent.
pub(super) fn read(repository: &GitRepo) -> Mark {
    let status = repository.status.as_ref();
    let conditions = status.map_or(&[][..], |status| &status.conditions);
    let conditions: Vec<_> = conditions
        .iter()
        .filter(|condition| ["Ready", FILES_SYNCED].contains(&condition.kind.as_str()))
        .map(|condition| {
            (
                &condition.kind,
                format!("{:?}", condition.status),
                &condition.message,
            )
        })
        .collect();
    let owners = repository.owner_references().iter();
    let owners: Vec<_> = owners.map(|owner| (&owner.uid, owner.controller)).collect();
    let annotations = repository.annotations().iter();
    let annotations: Vec<_> = annotations.filter(|(name, _)| *name != RECORD).collect();
    Mark::of((
        (&repository.metadata.uid, repository.metadata.generation),
        (owners, annotations),
        status.map(|status| (&status.url, &status.host_keys, status.observed_generation)),
        conditions,
    ))
}

/// The template of a specification; none where it says nothing at all.
pub(super) fn given(template: Option<&GitRepoTemplate>) -> Option<GitRepoTemplate> {
    let is_silent = |template: &GitRepoTemplate| {
        serde_json::to_value(template).is_ok_and(|value: Value| crate::frame::fields::is_blank(&value))
    };
    template.filter(|template| !is_silent(template)).cloned()
}
