//! The steps of a tenant.

use evenkeel_steps::{Change, Decision, Error, Failure, Outcome, Permission, Pipeline, Slot, Step, step};
use k8s_openapi::api::rbac::v1::Role;
use serde_json::{Map, json};

use super::content::{files, variables};
use super::{MANAGER, TEMPLATE, TenantState};
use crate::frame::fields::{lay, missing};
use crate::frame::{CLAIM, EveryKind, FINALIZER, Upkeep, owner_of, permission};
use crate::resources::{GitRepo, Tenant, TenantSpec};
use crate::tenancy::access_rights::rule;
use crate::tenancy::repository::{self, Parent};
use crate::tenancy::spec::{Fill, apply, patch, tree};
use crate::tenancy::steps::{
    BACKSTOP, release, repository_ready, role_binding, service_account, token_secret,
};
use crate::tenancy::{RBAC_READY, REPO_READY, TEMPLATE_RENDERED};

/// Annotation that names the template which filled in the gaps.
const TEMPLATE_ANNOTATION: &str = "lieutenant.syn.tools/tenant-template";

/// The finalizers of a tenant.
pub(super) const FINALIZERS: &[&str] = &[FINALIZER];

/// The specification with all that is filled in.
const SPEC: Slot<TenantSpec> = Slot::new("spec");

/// The steps towards a tenant.
pub(super) fn pipeline() -> Result<Pipeline<TenantState>, Error> {
    Pipeline::builder("tenant")
        .bundle(&EveryKind)
        .step(fields())
        .step(service_account())
        .step(token_secret())
        .step(role())
        // Made once: an administrator may add subjects.
        .step(role_binding(Upkeep::Once))
        .step(git_repo())
        .step(repository_ready())
        .build()
}

/// The steps away from it.
pub(super) fn teardown() -> Result<Pipeline<TenantState>, Error> {
    Pipeline::builder("tenant.teardown")
        .step(clusters())
        .step(release("clusters", FINALIZERS))
        .build()
}

/// Fills in what the tenant leaves out: from the template, from the settings, from its repository.
fn fields() -> impl Step<TenantState> {
    step::<TenantState>("fields")
        .condition(TEMPLATE_RENDERED)
        .provides(SPEC)
        .after(CLAIM)
        .may([permission::patch::<Tenant>()])
        .decide(|cx, ()| async move {
            let state = cx.shared_state();
            let settings = &state.shared.settings;
            let own = tree(&state.object.spec)?;
            let mut fill = Map::new();
            let mut annotations = Map::new();
            if let Some(template) = &state.template {
                fill = missing(&own, &tree(&template.spec.tenant)?);
                annotations.insert(TEMPLATE_ANNOTATION.to_owned(), json!(TEMPLATE));
            }
            let mut whole = own;
            lay(&mut whole, &fill);
            if let Some(url) = &settings.global_git_repo_url {
                let url = missing(&whole, &json!({ "globalGitRepoURL": url }));
                lay(&mut whole, &url);
                fill.extend(url);
            }
            let mut spec: TenantSpec = serde_json::from_value(whole)
                .map_err(|error| Failure::invalid(format!("the template gives no tenant: {error}")))?;
            if let Some(given) = repository::given(spec.git_repo_template.as_ref()) {
                let (present, parent) = (state.repository.as_ref(), parent(&state, &spec)?);
                let (effective, _) = repository::fill_in(&mut fill, given, &parent, settings, present)?;
                spec.git_repo_template = Some(effective);
            }
            let wanted = Fill {
                spec: fill,
                labels: Map::new(),
                annotations,
            };
            let Some(patch) = patch(&state.object, MANAGER, &wanted)? else {
                return Ok(Decision::End(Outcome::Done(spec)));
            };
            let plan = vec![Change::new("fill in", "fields of the specification")];
            Ok(Decision::act(plan, async move {
                apply::<Tenant>(&state.shared.access, &patch).await?;
                Ok(Outcome::changed_with(spec, "fields filled in"))
            }))
        })
}

fn parent<'a>(state: &'a TenantState, spec: &'a TenantSpec) -> Result<Parent<'a>, Failure> {
    Ok(Parent {
        identity: &state.identity,
        owner: owner_of(&state.object).ok_or_else(|| Failure::bug("an object without a uid"))?,
        tenant: &state.identity.name,
        display_name: spec.display_name.as_deref(),
        deletion_policy: spec.deletion_policy,
        creation_policy: spec.creation_policy,
    })
}

fn role() -> impl Step<TenantState> {
    step::<TenantState>("role")
        .condition(RBAC_READY)
        .after(CLAIM)
        .may(permission::keep::<Role>())
        .may([permission::own::<Tenant>()])
        .may(handed_out())
        .decide(|cx, ()| async move {
            let state = cx.state();
            let own = [state.identity.name.clone()];
            let clusters: Vec<String> = state
                .clusters
                .iter()
                .map(|cluster| cluster.name.clone())
                .collect();
            let rules: Vec<_> = [
                rule(&["tenants"], &own, &["get"]),
                rule(&["clusters"], &clusters, &["get"]),
                rule(&["clusters/status"], &clusters, &["get", "update", "patch"]),
            ]
            .into_iter()
            .flatten()
            .collect();
            state.rights.keep_role(&state.shared.access, &rules)
        })
}

/// What the Role of a tenant lets its account do.
fn handed_out() -> [Permission; 5] {
    [
        permission::hand_out("get", "tenants.syn.tools"),
        permission::hand_out("get", "clusters.syn.tools"),
        permission::hand_out("get", "clusters.syn.tools/status"),
        permission::hand_out("update", "clusters.syn.tools/status"),
        permission::hand_out("patch", "clusters.syn.tools/status"),
    ]
}

fn git_repo() -> impl Step<TenantState> {
    step::<TenantState>("git-repo")
        .condition(REPO_READY)
        .needs(SPEC)
        .may(permission::keep::<GitRepo>())
        .may([permission::own::<Tenant>()])
        .decide(|cx, spec| async move {
            let state = cx.state();
            let Some(mut template) = repository::given(spec.git_repo_template.as_ref()) else {
                return Ok(Decision::End(Outcome::done()));
            };
            let content = files(state, &spec);
            template.template_files = content.files;
            template.ci_variables = variables(state, &spec);
            let parent = parent(state, &spec)?;
            let present = state.repository.as_ref();
            repository::keep(
                &state.shared.access,
                present,
                &parent,
                template,
                &content.annotations,
            )
        })
}

/// A tenant does not go before its clusters (B2, B3): they would be stranded.
fn clusters() -> impl Step<TenantState> {
    step::<TenantState>("clusters").run(|cx, ()| async move {
        let names: Vec<String> = cx
            .state()
            .clusters
            .iter()
            .map(|cluster| cluster.name.clone())
            .collect();
        if names.is_empty() {
            return Ok(Outcome::done());
        }
        let reason = format!("it has clusters: delete {} first", names.join(", "));
        Ok(Outcome::wait(BACKSTOP, reason))
    })
}
