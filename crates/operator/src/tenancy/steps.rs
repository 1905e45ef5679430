//! The steps that tenants and clusters have alike.

use std::time::Duration;

use evenkeel_steps::{Change, Decision, Outcome, Predicate, Step, step};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::ResourceExt as _;

use super::access_rights::Rights;
use super::{RBAC_READY, REPO_READY, TenancySettings, repository};
use crate::frame::{CLAIM, Claimable, RELEASE, Upkeep, permission, release as let_go};
use crate::resources::GitRepo;

/// How long to wait for what comes by an event, should the event be lost.
pub(super) const BACKSTOP: Duration = Duration::from_secs(300);

/// A tenant or a cluster as one pass sees it.
pub(super) trait Member: Claimable {
    /// What is the same for all.
    fn settings(&self) -> &TenancySettings;

    /// Its service account and what that may do.
    fn rights(&self) -> &Rights;

    /// Its repository, once there is one.
    fn repository(&self) -> Option<&GitRepo>;
}

pub(super) fn service_account<S: Member>() -> impl Step<S> {
    step::<S>("service-account")
        .condition(RBAC_READY)
        .after(CLAIM)
        .may(permission::keep::<ServiceAccount>())
        .may([permission::own::<S::Object>()])
        .decide(|cx, ()| async move { cx.state().rights().keep_account(cx.state().access()) })
}

pub(super) fn token_secret<S: Member>() -> impl Step<S> {
    let wanted = Predicate::new("token secrets", |state: &S| state.settings().token_secrets);
    step::<S>("token-secret")
        .condition(RBAC_READY)
        .after("service-account")
        .when(wanted)
        .may(permission::keep::<Secret>())
        .may([permission::own::<S::Object>()])
        .decide(|cx, ()| async move { cx.state().rights().keep_secret(cx.state().access()) })
}

pub(super) fn role_binding<S: Member>(upkeep: Upkeep) -> impl Step<S> {
    step::<S>("role-binding")
        .condition(RBAC_READY)
        .after("role")
        .after("service-account")
        .may(permission::keep::<RoleBinding>())
        .may([permission::own::<S::Object>()])
        .decide(move |cx, ()| async move { cx.state().rights().keep_binding(cx.state().access(), upkeep) })
}

/// What its repository says.
pub(super) fn repository_ready<S: Member>() -> impl Step<S> {
    step::<S>("repository")
        .condition(REPO_READY)
        .after("git-repo")
        .run(|cx, ()| async move {
            Ok(match repository::problem(cx.state().repository()) {
                Some(problem) => Outcome::wait(BACKSTOP, problem),
                None => Outcome::done(),
            })
        })
}

/// Lets go of the object, once the step `last` has ended.
pub(super) fn release<S: Member>(last: &'static str, finalizers: &'static [&'static str]) -> impl Step<S> {
    let needed = [permission::patch::<S::Object>()];
    step::<S>(RELEASE)
        .after(last)
        .may(needed)
        .decide(move |cx, ()| async move {
            let state = cx.shared_state();
            let has = |name: &&&str| state.object().finalizers().iter().any(|has| has == **name);
            let plan: Vec<Change> = finalizers
                .iter()
                .filter(has)
                .map(|name| Change::new("remove", format!("the finalizer {name}")))
                .collect();
            if plan.is_empty() {
                return Ok(Decision::End(Outcome::done()));
            }
            Ok(Decision::act(plan, async move {
                let_go(state.access(), state.object(), finalizers).await?;
                Ok(Outcome::changed("released"))
            }))
        })
}
