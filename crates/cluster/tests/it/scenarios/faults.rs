//! One request of a pass goes wrong, whichever it is and however: what the passes after it reach is what a pass without
//! the fault reaches.

use std::collections::BTreeMap;

use evenkeel_cluster::{Error, Limits, ManifestObject};
use serde_json::{Value, json};

use super::moves::{introduce, moving, paths, two, uids};
use crate::component::Component;
use crate::documents::{config_map, deployment, doc, secret, service_account};
use crate::env::Env;
use crate::every_call::{Action, Trial, every_call};

fn binding(role: &str) -> ManifestObject {
    let group = "rbac.authorization.k8s.io";
    doc(
        "templates/binding.yaml",
        json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {"name": "b"},
               "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
               "subjects": [{"kind": "ServiceAccount", "name": "sa", "namespace": "default"}]}),
    )
}

fn before() -> Vec<ManifestObject> {
    vec![
        service_account("sa"),
        config_map("settings", "k", "1"),
        secret("login", "k", "1"),
        binding("view"),
        deployment("web", 0),
    ]
}

/// One of them is changed, one made again, one is new.
fn upgraded() -> Vec<ManifestObject> {
    vec![
        service_account("sa"),
        config_map("settings", "k", "2"),
        secret("login", "k", "1"),
        binding("edit"),
        deployment("web", 0),
        config_map("new", "k", "1"),
    ]
}

/// Everything in the component's namespace that is not Kubernetes' own, without what differs from run to run; and what is
/// remembered of it.
async fn state_of(env: &Env, component: &Component<'_>) -> Value {
    let mut found = BTreeMap::new();
    for collection in [
        "configmaps",
        "secrets",
        "serviceaccounts",
        "rolebindings",
        "deployments",
    ] {
        let listed = env
            .get(&component.collection(collection))
            .await
            .unwrap_or_default();
        for mut item in listed["items"].as_array().cloned().unwrap_or_default() {
            let name = item["metadata"]["name"].as_str().unwrap().to_owned();
            if ["kube-root-ca.crt", "default"].contains(&name.as_str()) {
                continue;
            }
            item["metadata"] = json!({"labels": item["metadata"]["labels"]});
            item.as_object_mut().unwrap().remove("status");
            found.insert(format!("{collection}/{name}"), item);
        }
    }
    let record = component.target.record_of(false).await.unwrap();
    let remembered = record.map(|record| {
        let objects: Vec<String> = record
            .objects
            .iter()
            .map(|entry| format!("{} {}", entry.object(), entry.content.is_some()))
            .collect();
        json!({"unfinished": record.unfinished, "objects": objects, "revision": record.revision})
    });
    found.insert("record".to_owned(), remembered.unwrap_or_default());
    let text = serde_json::to_string(&found).unwrap();
    let text = text
        .replace(component.target.applyset_id(), "SET")
        .replace(&component.namespace, "NAMESPACE");
    serde_json::from_str(&text).unwrap()
}

/// Passes until the component has `documents`; then another one has nothing to do.
async fn reach(env: &Env, trial: &Trial, component: &Component<'_>, documents: &[ManifestObject]) -> Value {
    trial
        .passes(async |_| component.run(documents).await.map(drop))
        .await;
    let state = state_of(env, component).await;
    let again = component.run(documents).await.unwrap();
    assert!(again.changes.is_empty(), "{}: {:?}", trial.what, again.done());
    state
}

/// Passes until the component is gone.
async fn remove(env: &Env, trial: &Trial, component: &Component<'_>) -> Value {
    trial.passes(async |_| component.delete().await.map(drop)).await;
    assert!(
        env.get(&component.namespace_path()).await.is_none(),
        "{}",
        trial.what
    );
    state_of(env, component).await
}

pub(crate) async fn an_install_survives_a_fault_at_any_call(env: &Env) {
    every_call(env, Action::named("install"), async |env, trial| {
        reach(env, trial, &Component::new(env), &before()).await
    })
    .await;
}

/// An upgrade of what was installed without a fault.
async fn upgrade(env: &Env, trial: &Trial, documents: &[ManifestObject]) -> Value {
    let component = Component::new(env);
    component.run(&before()).await.unwrap();
    reach(env, trial, &component, documents).await
}

pub(crate) async fn an_upgrade_survives_a_fault_at_any_call(env: &Env) {
    every_call(env, Action::named("upgrade"), async |env, trial| {
        upgrade(env, trial, &upgraded()).await
    })
    .await;
}

pub(crate) async fn a_prune_survives_a_fault_at_any_call(env: &Env) {
    every_call(env, Action::named("prune"), async |env, trial| {
        upgrade(env, trial, &before()[2..]).await
    })
    .await;
}

pub(crate) async fn a_deletion_survives_a_fault_at_any_call(env: &Env) {
    every_call(env, Action::named("delete"), async |env, trial| {
        let component = Component::new(env);
        component.run(&before()).await.unwrap();
        remove(env, trial, &component).await
    })
    .await;
}

/// The same with a record that is kept in parts.
pub(crate) async fn a_record_in_parts_survives_a_fault_at_any_call(env: &Env) {
    let action = Action {
        limits: Limits {
            record_max: 450,
            ..Limits::default()
        },
        // Most calls are those of every upgrade.
        thin: 4,
        ..Action::named("parts")
    };
    every_call(env, action, async |env, trial| {
        upgrade(env, trial, &upgraded()).await
    })
    .await;
}

/// Objects change hands, as the same objects, and nothing of them is deleted on the way: each component is tried again until
/// it has what it renders, as two operations of one run are.
pub(crate) async fn a_move_survives_a_fault_at_any_call(env: &Env) {
    let action = Action {
        // Both components do what every pass does.
        thin: 2,
        ..Action::named("move")
    };
    every_call(env, action, async |env, trial| {
        let (mut a, mut b) = two(env, "m");
        let (own, others) = ([config_map("c1", "k", "1")], [config_map("c3", "k", "1")]);
        let all = [own.as_slice(), &moving()].concat();
        introduce(&mut [(&mut a, Some(&all)), (&mut b, Some(&others))]);
        a.run(&all).await.unwrap();
        b.run(&others).await.unwrap();
        let paths = paths(&a);
        let before = uids(env, &paths).await;
        let taken = [others.as_slice(), &moving()].concat();
        introduce(&mut [(&mut a, Some(&own)), (&mut b, Some(&taken))]);
        let mut left = false;
        trial
            .passes(async |_| {
                if !left {
                    a.run(&own).await?;
                    left = true;
                }
                b.run(&taken).await.map(drop)
            })
            .await;
        assert_eq!(uids(env, &paths).await, before, "{}", trial.what);
        let states = json!([state_of(env, &a).await, state_of(env, &b).await]);
        for (component, documents) in [(&a, own.as_slice()), (&b, &taken)] {
            let again = component.run(documents).await.unwrap();
            assert!(again.changes.is_empty(), "{}: {:?}", trial.what, again.done());
        }
        // The sets have names of their own, which the states tell apart.
        let text = states.to_string();
        let text = text
            .replace(a.target.applyset_id(), "A")
            .replace(b.target.applyset_id(), "B");
        serde_json::from_str(&text).unwrap()
    })
    .await;
}

/// Somebody has removed the parent, and with it all that is remembered: it is found again by the label.
async fn orphaned(env: &Env) -> Result<Component<'_>, Error> {
    let component = Component::new(env);
    component.run(&before()).await?;
    env.remove(&component.parent_path()).await;
    Ok(component)
}

pub(crate) async fn a_component_without_its_parent_survives_a_fault_at_any_call(env: &Env) {
    every_call(env, Action::named("found"), async |env, trial| {
        let component = orphaned(env).await.unwrap();
        reach(env, trial, &component, &upgraded()).await
    })
    .await;
}

pub(crate) async fn a_deletion_without_the_parent_survives_a_fault_at_any_call(env: &Env) {
    let action = Action {
        // It looks at every kind that there is.
        thin: 2,
        ..Action::named("lost")
    };
    every_call(env, action, async |env, trial| {
        let component = orphaned(env).await.unwrap();
        trial.passes(async |_| component.delete().await.map(drop)).await;
        state_of(env, &component).await
    })
    .await;
}
