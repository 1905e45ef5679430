//! Hooks around deletions, and what hooks left.

use std::collections::BTreeSet;

use evenkeel_cluster::{HookRun, Limits, Occasion};
use evenkeel_core::{HookEvent, PlanAction, Sensitive};
use serde_json::json;

use super::{farewell, hook, hooks, pass, writes};
use crate::component::Component;
use crate::documents::{config_map, doc, job};
use crate::env::{Env, WAIT};

/// A deletion runs its hooks around it, from what was kept, and takes along what hooks left; Helm leaves that.
pub(crate) async fn a_deletion_has_hooks_and_takes_along_what_they_left(env: &Env) {
    let (behind, proxy) = env.behind(Limits::default()).await;
    let component = Component::new(&behind);
    let mut precious = config_map("precious", "k", "1");
    precious.object["metadata"]["annotations"] = json!({"helm.sh/resource-policy": "keep"});
    let claim = doc(
        "templates/claim.yaml",
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    );
    let installed = hooks(
        &component,
        vec![
            hook(job("seed"), &[HookEvent::PostInstall], 0, &[]),
            hook(config_map("left", "k", "1"), &[HookEvent::PreInstall], 0, &[]),
            hook(precious, &[HookEvent::PreInstall], 0, &[]),
            hook(claim, &[HookEvent::PreInstall], 0, &[]),
        ],
    );
    let documents = [config_map("plain", "k", "1")];
    pass(&component, &documents, &installed, Occasion::Install)
        .await
        .succeeded();
    let of_deletion = farewell(&component);
    // Kept once, replaced by others, and the same again costs nothing.
    let kept = |text: &str| Sensitive::new(text.as_bytes().to_vec());
    for (text, changed) in [
        (Some("one"), true),
        (Some("two"), true),
        (Some("two"), false),
        (None, true),
        (Some("two"), true),
    ] {
        let mut session = component.session(&documents).await.unwrap();
        assert_eq!(
            session.keep_delete_hooks(text.map(kept).as_ref()).await.unwrap(),
            changed,
            "{text:?}"
        );
        session.record(&component.inputs(&documents)).await.unwrap();
        let record = component.target.record().await.unwrap().unwrap();
        let found = component.target.delete_hooks(&record).await.unwrap();
        assert_eq!(
            found.map(|found| found.expose().clone()),
            text.map(|text| text.as_bytes().to_vec())
        );
    }

    let before = writes(&proxy, &component).len();
    let run = HookRun {
        hooks: &of_deletion,
        occasion: Occasion::Delete,
        within: WAIT,
        adopt: false,
    };
    let options = evenkeel_cluster::DeleteOptions {
        timeout: WAIT,
        ..Default::default()
    };
    let plan = component.target.plan_deletion(&options).await.unwrap();
    let removed = crate::component::planned(&plan, PlanAction::Delete);
    assert!(
        removed.contains(&"Job/seed".to_owned()) && removed.contains(&"ConfigMap/left".to_owned()),
        "{removed:?}"
    );
    let kept: Vec<&str> = plan
        .skipped
        .iter()
        .map(|skipped| skipped.object.name.as_str())
        .collect();
    assert!(kept.contains(&"precious") && kept.contains(&"data"), "{kept:?}");
    let (attempt, observer) = (component.attempt(), component.observer());
    let (target, mut changes) = (&component.target, Vec::new());
    target
        .run_delete_hooks(run, HookEvent::PreDelete, &attempt, &observer, &mut changes)
        .await
        .unwrap();
    let halfway = target
        .delete_objects(&attempt, &options, &observer)
        .await
        .unwrap();
    assert!(!halfway.complete);
    target
        .run_delete_hooks(run, HookEvent::PostDelete, &attempt, &observer, &mut changes)
        .await
        .unwrap();
    // The same once more, as after a crash: nothing runs twice.
    target
        .run_delete_hooks(run, HookEvent::PreDelete, &attempt, &observer, &mut changes)
        .await
        .unwrap();
    target
        .run_delete_hooks(run, HookEvent::PostDelete, &attempt, &observer, &mut changes)
        .await
        .unwrap();
    let deletion = target.delete_rest(&attempt, &options, &observer).await.unwrap();
    assert!(deletion.complete);
    let done = writes(&proxy, &component);
    let (around, rest) = done[before..].split_at(4);
    assert_eq!(
        around,
        [
            "PATCH jobs/goodbye",
            "DELETE jobs/goodbye",
            "DELETE configmaps/plain",
            "PATCH jobs/swept"
        ]
    );
    let rest: BTreeSet<&str> = rest.iter().map(String::as_str).collect();
    assert_eq!(
        rest,
        BTreeSet::from(["DELETE jobs/seed", "DELETE jobs/swept", "DELETE configmaps/left"])
    );
    env.must(&component.path("configmaps", "precious")).await;
    env.must(&component.path("persistentvolumeclaims", "data")).await;
    assert!(env.get(&component.parent_path()).await.is_none());
    let secrets = env
        .must("/api/v1/namespaces/evenkeel-system/secrets?labelSelector=evenkeel.dev/render-of")
        .await;
    let ours = secrets["items"].as_array().unwrap().iter();
    let ours = ours.filter(|secret| {
        secret["metadata"]["labels"]["evenkeel.dev/render-of"] == component.target.parent_name()
    });
    assert_eq!(ours.count(), 0, "nothing is kept of it");
}

/// What hooks left is let go with the rest.
pub(crate) async fn orphans_of_hooks_stay_without_our_label(env: &Env) {
    let component = Component::new(env);
    let all = hooks(
        &component,
        vec![hook(
            config_map("left", "k", "1"),
            &[HookEvent::PreInstall],
            0,
            &[],
        )],
    );
    pass(
        &component,
        &[config_map("plain", "k", "1")],
        &all,
        Occasion::Install,
    )
    .await
    .succeeded();
    component
        .target
        .orphan(&component.attempt(), &component.observer())
        .await
        .unwrap();
    let left = env.must(&component.path("configmaps", "left")).await;
    assert!(
        left["metadata"]["labels"].get("evenkeel.dev/hook-of").is_none(),
        "{left}"
    );
}
