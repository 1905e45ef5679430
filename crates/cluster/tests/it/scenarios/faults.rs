//! One request of a pass goes wrong, whichever it is and however: what the passes after it reach is what a pass without
//! the fault reaches.

use std::collections::BTreeMap;
use std::time::Duration;

use evenkeel_cluster::{Cluster, ErrorClass, KubeconfigPolicy, Limits, ManifestObject};
use evenkeel_core::Sensitive;
use evenkeel_testkit::{CallFault, FaultProxy};
use futures::stream::{self, StreamExt as _};
use serde_json::{Value, json};

use crate::component::Component;
use crate::documents::{config_map, deployment, doc, secret, service_account};
use crate::env::{Env, options};

/// Passes until a component is as it should be; one goes wrong, the next may meet what it left.
const PASSES: usize = 6;
/// Runs at one time.
const AT_ONCE: usize = 12;

/// From so many requests on, not every kind of fault meets every one.
const MANY: usize = 25;

/// What a run does.
#[derive(Clone, Copy, Debug)]
enum Action {
    Install,
    Upgrade,
    Prune,
    Delete,
}

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

impl Action {
    /// What the component should have when the action is done; none when it should be gone.
    fn documents(self) -> Option<Vec<ManifestObject>> {
        match self {
            Self::Install => Some(before()),
            // One is changed, one made again, one is new.
            Self::Upgrade => Some(vec![
                service_account("sa"),
                config_map("settings", "k", "2"),
                secret("login", "k", "1"),
                binding("edit"),
                deployment("web", 0),
                config_map("new", "k", "1"),
            ]),
            Self::Prune => Some(before().into_iter().skip(2).collect()),
            Self::Delete => None,
        }
    }
}

/// The cluster of `env` behind a proxy of its own.
async fn behind(env: &Env, name: String, limits: Limits) -> (Env, FaultProxy) {
    let proxy = FaultProxy::start(env.others.clone()).await;
    let mut options = options();
    options.limits = limits;
    options.policy = KubeconfigPolicy::Own {
        allow_exec: false,
        base: std::env::temp_dir(),
    };
    let cluster = Cluster::connect(&Sensitive::new(proxy.kubeconfig()), options)
        .await
        .unwrap();
    (env.with(cluster, name), proxy)
}

/// Everything in the component's namespace that is not Kubernetes' own, without what differs from run to run; and what is
/// remembered of it.
async fn state_of(env: &Env, component: &Component<'_>) -> BTreeMap<String, Value> {
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

/// One run: what it came to, how many requests the action took, and whether the fault was met.
async fn run(
    env: &Env,
    action: Action,
    fault: Option<(usize, CallFault)>,
    limits: Limits,
) -> (BTreeMap<String, Value>, usize, bool) {
    let suffix = fault.map_or_else(
        || "none".to_owned(),
        |(at, fault)| format!("{at}-{fault:?}").to_lowercase(),
    );
    let name = format!("{}-{suffix}", format!("{action:?}").to_lowercase());
    let name = format!(
        "{}-{name}",
        env.name
            .chars()
            .take(14)
            .collect::<String>()
            .trim_end_matches('-')
    );
    let (behind, proxy) = behind(env, name, limits).await;
    let component = Component::new(&behind);
    if !matches!(action, Action::Install) {
        component.run(&before()).await.unwrap();
    }
    let sent = proxy.requests();
    if let Some((at, fault)) = fault {
        proxy.fail(at, fault);
    }
    let mut failures = Vec::new();
    let documents = action.documents();
    let mut requests = 0;
    for pass in 0.. {
        let outcome = match &documents {
            Some(documents) => component.run(documents).await.map(drop),
            None => component.delete().await.map(drop),
        };
        if pass == 0 {
            requests = proxy.requests() - sent;
        }
        match outcome {
            Ok(()) => break,
            Err(error) => {
                let passes_by_itself = matches!(
                    error.class(),
                    ErrorClass::Transient
                        | ErrorClass::Unreachable
                        | ErrorClass::RateLimited(_)
                        | ErrorClass::Conflict
                        | ErrorClass::NotReady
                );
                assert!(passes_by_itself, "{action:?} {fault:?}: {error}");
                failures.push(error.to_string());
            }
        }
        assert!(pass < PASSES, "{action:?} {fault:?}: {failures:?}");
    }
    let met = proxy.heal();
    let state = state_of(&behind, &component).await;
    match &documents {
        Some(documents) => {
            let again = component.run(documents).await.unwrap();
            assert!(
                again.changes.is_empty(),
                "{action:?} {fault:?}: {:?}, after {failures:?}",
                again.done()
            );
        }
        None => assert!(
            behind.get(&component.namespace_path()).await.is_none(),
            "{action:?} {fault:?}"
        ),
    }
    (state, requests, met)
}

async fn every_call(env: &Env, action: Action) {
    every_call_within(env, action, Limits::default(), 1).await;
}

/// `thin` leaves out all but one in so many of the calls.
async fn every_call_within(env: &Env, action: Action, limits: Limits, thin: usize) {
    let limits = Limits {
        // One after the other, so that the k-th request is the same in every run.
        in_flight: 1,
        apply_concurrency: 1,
        read_timeout: Duration::from_secs(5),
        write_timeout: Duration::from_secs(5),
        ..limits
    };
    let (expected, requests, _) = run(env, action, None, limits).await;
    assert!(requests >= 8, "{requests}");
    // A real server takes its time, so a part of the calls must do there, and of very many (a deletion looks at every kind
    // there is) everywhere; each kind of fault meets different ones, so that together they meet all.
    let every = match (env.is_real(), requests > MANY) {
        (false, false) => 1,
        (false, true) => 3,
        (true, false) => 6,
        (true, true) => 15,
    } * thin;
    let mut faults = Vec::new();
    for (index, fault) in CallFault::ALL.into_iter().enumerate() {
        faults.extend(
            (0..requests)
                .filter(|at| (at + index) % every == 0)
                .map(|at| (at, fault)),
        );
    }
    let outcomes: Vec<_> = stream::iter(faults.clone())
        .map(|fault| run(env, action, Some(fault), limits))
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut met = 0;
    for (fault, (state, _, was_met)) in faults.iter().zip(outcomes) {
        met += usize::from(was_met);
        assert_eq!(state, expected, "{action:?} {fault:?}");
    }
    // How often a controller is waited for differs from run to run, and with it the number of requests.
    assert!(
        met * 10 >= faults.len() * 9,
        "{met} of {} faults were met",
        faults.len()
    );
    eprintln!("{action:?}: {requests} requests, {met} faults met");
}

pub(crate) async fn an_install_survives_a_fault_at_any_call(env: &Env) {
    every_call(env, Action::Install).await;
}

pub(crate) async fn an_upgrade_survives_a_fault_at_any_call(env: &Env) {
    every_call(env, Action::Upgrade).await;
}

pub(crate) async fn a_prune_survives_a_fault_at_any_call(env: &Env) {
    every_call(env, Action::Prune).await;
}

pub(crate) async fn a_deletion_survives_a_fault_at_any_call(env: &Env) {
    every_call(env, Action::Delete).await;
}

/// The same with a record that is kept in parts.
pub(crate) async fn a_record_in_parts_survives_a_fault_at_any_call(env: &Env) {
    let limits = Limits {
        record_max: 450,
        ..Limits::default()
    };
    // Most calls are those of every upgrade.
    every_call_within(env, Action::Upgrade, limits, 4).await;
}
