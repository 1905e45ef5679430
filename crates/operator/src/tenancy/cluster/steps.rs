//! The steps of a cluster.

use std::collections::BTreeMap;

use evenkeel_steps::{Change, Decision, Error, Failure, Outcome, Permission, Pipeline, Slot, Step, step};
use k8s_openapi::api::rbac::v1::Role;
use serde_json::{Map, json};

use super::{ClusterState, MANAGER, bootstrap, tenant_of, vault};
use crate::frame::fields::{lay, missing};
use crate::frame::{
    CLAIM, EveryKind, FINALIZER, PIPELINES_FINALIZER, TENANT_LABEL, Upkeep, owner_of, permission,
};
use crate::resources::{Cluster, ClusterSpec, GitRepo, Tenant};
use crate::tenancy::access_rights::rule;
use crate::tenancy::repository::{self, Parent};
use crate::tenancy::spec::{Fill, apply, patch, tree};
use crate::tenancy::steps::{release, repository_ready, role_binding, service_account, token_secret};
use crate::tenancy::template::render;
use crate::tenancy::{RBAC_READY, REPO_READY, TEMPLATE_RENDERED, VALIDATED};

/// The finalizers of a cluster.
pub(super) const FINALIZERS: &[&str] = &[FINALIZER, PIPELINES_FINALIZER];

/// The tenant.
const TENANT: Slot<Tenant> = Slot::new("tenant");

/// The specification with all that its tenant fills in.
const SPEC: Slot<ClusterSpec> = Slot::new("spec");

/// The steps towards a cluster.
pub(super) fn pipeline() -> Result<Pipeline<ClusterState>, Error> {
    Pipeline::builder("cluster")
        .bundle(&EveryKind)
        .step(resolve_tenant())
        .step(fields())
        .step(service_account())
        .step(token_secret())
        .step(role())
        .step(role_binding(Upkeep::Kept))
        .step(bootstrap::step())
        .step(vault::step())
        .step(git_repo())
        .step(repository_ready())
        .build()
}

/// The steps away from it. None needs the tenant, which may be gone (B3).
pub(super) fn teardown() -> Result<Pipeline<ClusterState>, Error> {
    Pipeline::builder("cluster.teardown")
        .step(vault::removal())
        .step(release("vault-removal", FINALIZERS))
        .build()
}

fn resolve_tenant() -> impl Step<ClusterState> {
    step::<ClusterState>("tenant")
        .condition(VALIDATED)
        .provides(TENANT)
        .after(CLAIM)
        .run(|cx, ()| async move {
            let state = cx.state();
            if let Some(tenant) = &state.tenant {
                return Ok(Outcome::Done(tenant.clone()));
            }
            let name = tenant_of(&state.object);
            if name.is_empty() {
                return Err(Failure::invalid(
                    "spec.tenantRef.name is missing: name the tenant",
                ));
            }
            Err(Failure::invalid(format!(
                "there is no Tenant {name}, which spec.tenantRef names"
            )))
        })
}

/// Fills in what the cluster leaves out: from the tenant's cluster template, from the settings, from its repository.
fn fields() -> impl Step<ClusterState> {
    step::<ClusterState>("fields")
        .condition(TEMPLATE_RENDERED)
        .needs(TENANT)
        .provides(SPEC)
        .may([permission::patch::<Cluster>()])
        .decide(|cx, tenant| async move {
            let state = cx.shared_state();
            let own = tree(&state.object.spec)?;
            let mut template = tree(&tenant.spec.cluster_template)?;
            if let Some(template) = template.as_object_mut() {
                template.remove("tenantRef");
            }
            // What the cluster says itself is not even rendered (B21).
            let (mut fill, problems) = render(&missing(&own, &template), &state.object, &tenant);
            let mut whole = own;
            lay(&mut whole, &fill);
            let mut spec = read(&whole)?;
            if let Some(given) = repository::given(spec.git_repo_template.as_ref()) {
                let (present, settings) = (state.repository.as_ref(), &state.shared.settings);
                let parent = parent(&state, &spec)?;
                let (effective, keys) = repository::fill_in(&mut fill, given, &parent, settings, present)?;
                spec.git_repo_template = Some(effective);
                if let Some(keys) = keys {
                    fill.insert("gitHostKeys".to_owned(), json!(keys));
                }
            }
            let labels = Map::from_iter([(TENANT_LABEL.to_owned(), json!(tenant_of(&state.object)))]);
            let wanted = Fill {
                spec: fill,
                labels,
                annotations: Map::new(),
            };
            let patch = patch(&state.object, MANAGER, &wanted)?;
            let told = move || {
                if problems.is_empty() {
                    return Ok(());
                }
                Err(Failure::invalid(format!(
                    "templates of the tenant cannot be rendered: {}",
                    problems.join("; ")
                )))
            };
            let Some(patch) = patch else {
                told()?;
                return Ok(Decision::End(Outcome::Done(spec)));
            };
            let plan = vec![Change::new("fill in", "fields of the specification")];
            Ok(Decision::act(plan, async move {
                apply::<Cluster>(&state.shared.access, &patch).await?;
                told()?;
                Ok(Outcome::changed_with(spec, "fields filled in"))
            }))
        })
}

fn read(spec: &serde_json::Value) -> Result<ClusterSpec, Failure> {
    serde_json::from_value(spec.clone())
        .map_err(|error| Failure::invalid(format!("the tenant's cluster template gives no cluster: {error}")))
}

fn parent<'a>(state: &'a ClusterState, spec: &'a ClusterSpec) -> Result<Parent<'a>, Failure> {
    Ok(Parent {
        identity: &state.identity,
        owner: owner_of(&state.object).ok_or_else(|| Failure::bug("an object without a uid"))?,
        tenant: tenant_of(&state.object),
        display_name: spec.display_name.as_deref(),
        deletion_policy: spec.deletion_policy,
        creation_policy: spec.creation_policy,
    })
}

fn role() -> impl Step<ClusterState> {
    step::<ClusterState>("role")
        .condition(RBAC_READY)
        .after(CLAIM)
        .may(permission::keep::<Role>())
        .may([permission::own::<Cluster>()])
        .may(handed_out())
        .decide(|cx, ()| async move {
            let state = cx.state();
            let names = [state.identity.name.clone()];
            let rules: Vec<_> = rule(
                &["clusters", "clusters/status"],
                &names,
                &["get", "update", "patch"],
            )
            .into_iter()
            .collect();
            state.rights.keep_role(&state.shared.access, &rules)
        })
}

/// What the Role of a cluster lets its agent do.
fn handed_out() -> [Permission; 6] {
    [
        permission::hand_out("get", "clusters.syn.tools"),
        permission::hand_out("update", "clusters.syn.tools"),
        permission::hand_out("patch", "clusters.syn.tools"),
        permission::hand_out("get", "clusters.syn.tools/status"),
        permission::hand_out("update", "clusters.syn.tools/status"),
        permission::hand_out("patch", "clusters.syn.tools/status"),
    ]
}

fn git_repo() -> impl Step<ClusterState> {
    step::<ClusterState>("git-repo")
        .condition(REPO_READY)
        .needs(SPEC)
        .may(permission::keep::<GitRepo>())
        .may([permission::own::<Cluster>()])
        .decide(|cx, spec| async move {
            let state = cx.state();
            // An address without a template: somebody else looks after the repository (B20).
            let Some(template) = repository::given(spec.git_repo_template.as_ref()) else {
                return Ok(Decision::End(Outcome::done()));
            };
            let parent = parent(state, &spec)?;
            let present = state.repository.as_ref();
            repository::keep(&state.shared.access, present, &parent, template, &BTreeMap::new())
        })
}
