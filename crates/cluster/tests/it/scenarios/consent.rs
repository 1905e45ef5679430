//! What is not deleted before somebody has agreed to it: an empty render, more than the share that may go, and what its
//! annotation protects.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use evenkeel_cluster::{Attempt, DeleteOptions, Error, ErrorClass, ManifestObject, PROTECT, Stop};
use evenkeel_core::{ConsentKind, ConsentNeeded, Fence, LossLimit, PlanAction};
use serde_json::json;

use crate::component::{Component, planned};
use crate::documents::{config_map, deployment, doc, service, service_account};
use crate::env::Env;

fn maps(count: usize, value: &str) -> Vec<ManifestObject> {
    (0..count)
        .map(|index| config_map(&format!("c{index}"), "k", value))
        .collect()
}

fn needed(error: Error) -> ConsentNeeded {
    assert_eq!(error.class(), ErrorClass::Consent, "{error}");
    match error {
        Error::NeedsConsent(needed) => *needed,
        other => panic!("{other}"),
    }
}

pub(crate) async fn an_empty_render_deletes_nothing(env: &Env) {
    let mut component = Component::new(env);
    let documents = [deployment("web", 1), service("web"), config_map("a", "k", "1")];
    component.run(&documents).await.unwrap();
    let before = env.cluster.requests();
    let asked = needed(component.run(&[]).await.unwrap_err());
    assert_eq!((asked.kind, asked.of), (ConsentKind::EmptyRender, 3));
    assert_eq!(env.cluster.requests().since(&before).writes(), 0);
    for (collection, name) in [("deployments", "web"), ("services", "web"), ("configmaps", "a")] {
        let live = env.must(&component.path(collection, name)).await;
        assert!(live["metadata"].get("deletionTimestamp").is_none(), "{live}");
        assert!(
            asked
                .deletions
                .iter()
                .any(|doomed| live["metadata"]["uid"] == doomed.uid.as_str())
        );
    }
    // The plan can be looked at all the same, and the same plan has the same name.
    let plan = component.plan(&[]).await.unwrap();
    assert_eq!(planned(plan.summary(), PlanAction::Delete).len(), 3);
    assert_eq!(plan.consent_needed(), Some(&asked));
    assert_eq!(plan.consent_needed().unwrap().digest(), asked.digest());
    // Somebody made one of them anew: that is another plan.
    let path = component.path("configmaps", "a");
    env.remove(&path).await;
    env.until_gone(&path).await;
    component.run(&documents).await.unwrap();
    let other = needed(component.run(&[]).await.unwrap_err());
    assert_ne!(other.digest(), asked.digest());

    component.agreed = true;
    let pass = component.run(&[]).await.unwrap();
    assert_eq!(pass.changes.len(), 3, "{:?}", pass.done());
    env.until_gone(&component.path("deployments", "web")).await;
    component.agreed = false;
    assert!(
        component.run(&[]).await.unwrap().changes.is_empty(),
        "where nothing is left nobody is asked"
    );
}

pub(crate) async fn many_deletions_need_consent(env: &Env) {
    let mut component = Component::new(env);
    component.run(&maps(12, "1")).await.unwrap();
    // Up to four may go, whatever their share.
    let pass = component.run(&maps(8, "1")).await.unwrap();
    assert_eq!(pass.changes.len(), 4, "{:?}", pass.done());
    let before = env.cluster.requests();
    // Nothing at all is done of a plan that waits: what lost so much may be wrong in the rest, too.
    let asked = needed(component.run(&maps(3, "2")).await.unwrap_err());
    assert_eq!(
        (asked.kind, asked.deletions.len(), asked.of),
        (ConsentKind::Deletions, 5, 8)
    );
    assert!(
        asked
            .to_string()
            .starts_with("5 of 8 objects would be deleted: ConfigMap/c3 in")
    );
    assert_eq!(env.cluster.requests().since(&before).writes(), 0);
    let live = env.must(&component.path("configmaps", "c0")).await;
    assert_eq!(live["data"]["k"], "1");

    // What somebody else is deleting already is nobody's to decide.
    let held = component.path("configmaps", "c7");
    env.change(&held, &json!({"metadata": {"finalizers": ["ex.io/hold"]}}))
        .await;
    env.remove(&held).await;
    let plan = component.plan(&maps(3, "2")).await.unwrap();
    assert_eq!(plan.consent_needed(), None);
    env.change(&held, &json!({"metadata": {"finalizers": null}}))
        .await;
    env.until_gone(&held).await;

    // The share is a setting.
    component.run(&maps(8, "1")).await.unwrap();
    component.options.deletions = LossLimit {
        percent: 70,
        least: 2,
    };
    let pass = component.run(&maps(3, "2")).await.unwrap();
    assert_eq!(pass.planned(PlanAction::Delete).len(), 5);
    component.options.deletions = LossLimit { percent: 0, least: 0 };
    needed(component.run(&maps(2, "2")).await.unwrap_err());
}

/// What is left of a plan that was agreed to and broken off is part of it.
pub(crate) async fn an_agreed_plan_can_be_gone_on_with(env: &Env) {
    let component = Component::new(env);
    component.run(&maps(9, "1")).await.unwrap();
    let mut plan = component.plan(&maps(1, "1")).await.unwrap();
    let asked = plan.consent_needed().unwrap().clone();
    plan.agree();
    let writes = Arc::new(AtomicUsize::new(0));
    let guard = move |_: Duration| match writes.fetch_add(1, Ordering::Relaxed) {
        // One for the fence, two deletions.
        0..=2 => Ok(()),
        _ => Err(Stop::Cancelled),
    };
    let attempt = Attempt {
        fence: Fence(50),
        guard: Arc::new(guard),
    };
    let mut session = plan.begin(attempt, component.observer());
    let error = session.prune().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Stopped, "{error}");
    let plan = component.plan(&maps(1, "1")).await.unwrap();
    let left = plan.consent_needed().unwrap();
    assert_eq!(left.deletions.len(), 6);
    assert!(left.is_within(&asked.deletions) && left.digest() != asked.digest());
}

/// The protection annotation holds against pruning, deleting the component and making an object again.
pub(crate) async fn protected_objects_stay(env: &Env) {
    let component = Component::new(env);
    let group = "rbac.authorization.k8s.io";
    let binding = |role: &str| {
        doc(
            "templates/binding.yaml",
            json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {"name": "b"},
                   "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
                   "subjects": [{"kind": "ServiceAccount", "name": "sa"}]}),
        )
    };
    let documents = [
        service_account("sa"),
        binding("view"),
        config_map("kept", "k", "1"),
        config_map("a", "k", "1"),
    ];
    component.run(&documents).await.unwrap();
    // By hand, as somebody on call does.
    for path in [
        component.path("configmaps", "kept"),
        component.path("rolebindings", "b"),
    ] {
        env.change(&path, &json!({"metadata": {"annotations": {PROTECT: "true"}}}))
            .await;
    }
    let mut changed = documents.clone();
    changed[1] = binding("edit");
    let error = component.run(&changed).await.unwrap_err();
    assert!(
        matches!(&error, Error::ImmutableFields(refused) if refused.len() == 1),
        "{error}"
    );
    assert!(error.to_string().contains(PROTECT), "{error}");
    let fewer = [documents[0].clone(), documents[1].clone(), documents[3].clone()];
    let pass = component.run(&fewer).await.unwrap();
    assert!(pass.changes.is_empty(), "{:?}", pass.done());
    assert!(pass.plan.skipped[0].reason.contains(PROTECT), "{:?}", pass.plan);
    let deletion = component.delete().await.unwrap();
    assert!(deletion.complete);
    let kept: Vec<String> = deletion
        .kept
        .iter()
        .map(|kept| format!("{}/{}: {}", kept.object.kind, kept.object.name, kept.reason))
        .collect();
    for name in ["ConfigMap/kept", "RoleBinding/b"] {
        let stays = format!("{name}: {PROTECT}");
        assert!(kept.contains(&stays), "{stays} is not among {kept:?}");
    }
    assert!(env.get(&component.path("configmaps", "a")).await.is_none());
    env.must(&component.path("configmaps", "kept")).await;
    env.must(&component.namespace_path()).await;
    // A namespace can be protected, too.
    let namespaced = Component::named(env, "namespaced");
    namespaced.run(&[config_map("a", "k", "1")]).await.unwrap();
    env.change(
        &namespaced.namespace_path(),
        &json!({"metadata": {"annotations": {PROTECT: "true"}}}),
    )
    .await;
    let plan = namespaced
        .target
        .plan_deletion(&DeleteOptions::default())
        .await
        .unwrap();
    assert_eq!(plan.count(PlanAction::Delete), 2, "{plan:?}");
    let deletion = namespaced.delete().await.unwrap();
    assert!(deletion.complete && deletion.kept[0].reason == PROTECT);
    env.must(&namespaced.namespace_path()).await;
}
