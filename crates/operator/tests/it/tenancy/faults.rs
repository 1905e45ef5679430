//! After a fault at any call of the Kubernetes API, the Git host or Vault, and after any two, the next passes repair and then write
//! nothing, and a deletion ends (E14). On a simulated API server, so that each fault gets a land of its own; a sample on the real one.
//!
//! Every write fails, by a lost answer and by one more kind in turn, and every read that differs from those before. With
//! `EVENKEEL_FAULTS=all` every kind comes at every call.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use evenkeel_operator::TenancySettings;
use evenkeel_operator::git::RepoPath;
use evenkeel_operator::resources::{Cluster, Condition, ConditionStatus, GitRepo, Tenant, definitions};
use evenkeel_simulator::{Options, Simulator};
use evenkeel_testkit::{CallFault, FaultProxy, eventually};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt as _;
use kube::api::Api;
use serde_json::{Value, json};

use super::Land;
use super::land::Kubernetes;
use crate::gitrepo::KEY;

/// The kinds, in the order in which they take turns.
const FAULTS: [CallFault; 6] = [
    CallFault::CutAfter,
    CallFault::InternalError,
    CallFault::TooManyRequests,
    CallFault::CutBefore,
    CallFault::Conflict,
    CallFault::Hang,
];

/// How many rounds a fault may take to come.
const ROUNDS_MAX: usize = 4;

/// How many pairs of faults are tried, and how soon the second comes at the latest.
const PAIRS: usize = 24;
const NEAR: usize = 40;

/// How many lands suffer at once.
const AT_ONCE: usize = 4;

/// How long a call may take that is never answered.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The same when everything is tried, which nobody waits for: on a machine that has other work, calls that are answered take long too.
const PATIENT_TIMEOUT: Duration = Duration::from_secs(10);

/// Who fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum System {
    Kubernetes,
    Git,
    Vault,
}

/// One fault: the call of that number, from when it is armed.
#[derive(Clone, Copy, Debug)]
struct Fault {
    system: System,
    at: usize,
    kind: CallFault,
}

/// A simulated API server for many lands.
struct Country {
    simulator: Simulator,
    cluster: evenkeel_simulator::Cluster,
}

impl Country {
    async fn new() -> Self {
        let simulator = Simulator::start(Options::default()).await.unwrap();
        let cluster = simulator.add_cluster("country").unwrap();
        for definition in definitions() {
            let mut object = serde_json::to_value(definition.object()).unwrap();
            object["apiVersion"] = json!("apiextensions.k8s.io/v1");
            object["kind"] = json!("CustomResourceDefinition");
            cluster.create("test", object).unwrap();
        }
        eventually("the kinds are served", async || {
            let kinds = ["Tenant", "Cluster", "GitRepo", "TenantTemplate"];
            let unserved = kinds
                .into_iter()
                .find(|kind| cluster.list("syn.tools/v1alpha1", kind, "").is_err());
            unserved.map_or(Ok(()), Err)
        })
        .await;
        Self { simulator, cluster }
    }

    async fn land(&self) -> Land {
        Land::at(Kubernetes::Simulated(self.cluster.clone()), settings()).await
    }
}

/// Whether every kind of fault comes at every call.
fn tries_all() -> bool {
    std::env::var("EVENKEEL_FAULTS").is_ok_and(|text| text == "all")
}

fn settings() -> TenancySettings {
    TenancySettings {
        call_timeout: if tries_all() { PATIENT_TIMEOUT } else { TIMEOUT },
        ..TenancySettings::default()
    }
}

impl System {
    fn proxy(self, land: &Land) -> &FaultProxy {
        match self {
            Self::Kubernetes => &land.kubernetes,
            Self::Git => &land.git,
            Self::Vault => &land.vault_proxy,
        }
    }
}

/// A tenant and a cluster with all that they can have.
async fn populate(land: &Land) {
    let template = |name: &str, more: Value| {
        let mut template = json!({
            "path": land.group, "repoName": name, "apiSecretRef": { "name": "git" },
            "deployKeys": { "k1": { "type": "ssh-ed25519", "key": KEY } },
        });
        for (field, value) in more.as_object().unwrap() {
            template[field] = value.clone();
        }
        template
    };
    let more = json!({
        "deletionPolicy": "Delete", "compilePipeline": { "enabled": true, "pipelineFiles": { "ci.yml": "jobs" } },
        "gitRepoTemplate": template("t-one", json!({ "generatedDeployKeys": { "g1": {} } })),
        "clusterTemplate": {
            "deletionPolicy": "Delete",
            "gitRepoTemplate": template("{{ .Name }}", json!({ "accessToken": { "secretRef": "{{ .Name }}-access" } })),
        },
    });
    land.tenant("t-one", more).await;
    land.cluster(
        "c-one",
        json!({ "enableCompilePipeline": true, "deletionPolicy": "Delete" }),
    )
    .await;
}

/// All that is there, without what is different in each land.
async fn sight(land: &Land) -> String {
    let mut seen = String::new();
    let ready = |conditions: &[Condition]| {
        let ready = conditions.iter().find(|condition| condition.kind == "Ready");
        ready.is_some_and(|ready| ready.status == ConditionStatus::True)
    };
    let tenant: Tenant = land.get("t-one").await;
    let cluster: Cluster = land.get("c-one").await;
    for (name, is_ready) in [
        ("tenant", ready(&tenant.status.unwrap_or_default().conditions)),
        ("cluster", ready(&cluster.status.unwrap_or_default().conditions)),
    ] {
        writeln!(seen, "{name} is ready: {is_ready}").unwrap();
    }
    for repo in land.api::<GitRepo>().list(&Default::default()).await.unwrap() {
        let name = repo.name_any();
        let status = repo.status.unwrap_or_default();
        writeln!(
            seen,
            "repo {name}: {:?}, ready: {}",
            status.phase,
            ready(&status.conditions)
        )
        .unwrap();
        let project = land.project(&name).await.unwrap();
        let host = land.host();
        let files = host.files(&project).await.unwrap();
        let mut keys: Vec<_> = host
            .deploy_keys(&project)
            .await
            .unwrap()
            .into_iter()
            .map(|key| key.title)
            .collect();
        keys.sort();
        let variables = host.variables(&project).await.unwrap();
        let tokens = host.access_tokens(&project).await.unwrap();
        // One that was made and could not be kept is revoked a day later.
        let has_token = tokens.iter().any(|token| token.is_active);
        let (files, variables) = (
            files.into_iter().collect::<Vec<_>>(),
            variables.into_keys().collect::<Vec<_>>(),
        );
        writeln!(
            seen,
            "  {:?} {files:?} {keys:?} {variables:?}, token: {has_token}",
            project.description
        )
        .unwrap();
    }
    writeln!(seen, "vault: {}", land.secret("t-one", "c-one").await.is_some()).unwrap();
    for names in [
        names(land.api::<ServiceAccount>()).await,
        names(land.api::<Secret>()).await,
        names(land.api::<Role>()).await,
        names(land.api::<RoleBinding>()).await,
    ] {
        writeln!(seen, "{names:?}").unwrap();
    }
    seen
}

async fn names<K>(api: Api<K>) -> Vec<String>
where
    K: kube::Resource<DynamicType = ()> + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let list = api.list(&Default::default()).await.unwrap();
    let names = list.items.iter().map(kube::ResourceExt::name_any);
    let mut names: Vec<String> = names
        .filter(|name| !name.starts_with("evenkeel-operator"))
        .collect();
    names.sort();
    names
}

/// Lets each fault come in turn while rounds go on, and then all be well.
async fn suffer(land: &Land, faults: &[Fault]) {
    for fault in faults {
        let proxy = fault.system.proxy(land);
        proxy.fail(fault.at, fault.kind);
        for _ in 0..ROUNDS_MAX {
            land.stumble().await;
            if proxy.heal() {
                break;
            }
            proxy.fail(fault.at, fault.kind);
        }
        proxy.heal();
    }
}

/// Requests at host and store that write, so far.
fn writes(land: &Land) -> usize {
    let passed = land.git.passed().into_iter().chain(land.vault_proxy.passed());
    passed.filter(|call| !call.starts_with("GET ")).count()
}

async fn converges(land: &Land, faults: &[Fault], expected: &str) {
    populate(land).await;
    suffer(land, faults).await;
    land.rest();
    land.settle().await;
    let before = writes(land);
    let (written, timelines) = land.round().await;
    assert!(
        written.is_empty() && writes(land) == before,
        "{faults:?}: {written:?} {timelines}"
    );
    assert_eq!(sight(land).await, expected, "{faults:?}");
}

/// Answers how many calls of each system there were before the deletion.
async fn goes(land: &Land, faults: &[Fault]) -> [(System, usize); 3] {
    populate(land).await;
    land.settle().await;
    let from = passed(land);
    land.delete::<Tenant>("t-one").await;
    land.delete::<Cluster>("c-one").await;
    suffer(land, faults).await;
    eventually("all goes", async || {
        land.stumble().await;
        let mut left = names(land.api::<Tenant>()).await;
        left.extend(names(land.api::<Cluster>()).await);
        left.extend(names(land.api::<GitRepo>()).await);
        if left.is_empty() {
            Ok(())
        } else {
            Err((faults.to_vec(), left))
        }
    })
    .await;
    for name in ["t-one", "c-one"] {
        let path = RepoPath::new(&land.group, name).unwrap();
        assert!(
            land.host().find(&path).await.unwrap().is_none(),
            "{faults:?}: {name}"
        );
    }
    assert!(land.secret("t-one", "c-one").await.is_none(), "{faults:?}");
    from
}

/// How many calls of each system were let through.
fn passed(land: &Land) -> [(System, usize); 3] {
    [System::Kubernetes, System::Git, System::Vault].map(|system| (system, system.proxy(land).passed().len()))
}

/// What there is after a run without faults, and the calls of each system that it took.
async fn unharmed(country: &Country) -> (String, Vec<(System, Vec<String>)>) {
    let land = country.land().await;
    populate(&land).await;
    let earlier = passed(&land);
    land.settle().await;
    let calls = earlier.map(|(system, from)| (system, system.proxy(&land).passed().split_off(from)));
    (sight(&land).await, calls.to_vec())
}

/// The faults to be tried at these calls.
fn single(calls: &[(System, Vec<String>)]) -> Vec<Fault> {
    let every = tries_all();
    let mut faults = Vec::new();
    for (system, calls) in calls {
        // What is never answered is bounded by a setting at Kubernetes alone; a host knows no conflicts of this kind.
        let kinds = if *system == System::Kubernetes {
            &FAULTS[..]
        } else {
            &FAULTS[..4]
        };
        let mut read = BTreeSet::new();
        for (at, call) in calls.iter().enumerate() {
            let is_write = !call.starts_with("GET ");
            let is_new = is_write || read.insert(call);
            let turn = kinds[faults.len() % kinds.len()];
            let kinds = kinds.iter().filter(|kind| {
                every || is_new && (**kind == turn || is_write && **kind == CallFault::CutAfter)
            });
            faults.extend(kinds.map(|kind| Fault {
                system: *system,
                at,
                kind: *kind,
            }));
        }
    }
    faults
}

/// Pairs of faults, evenly spread over all that there are.
fn pairs(calls: &[(System, Vec<String>)], count: usize) -> Vec<[Fault; 2]> {
    let all = single(calls);
    let step = (all.len() * all.len() / count).max(1);
    let pair = |number: usize| {
        let number = number * step;
        let mut second = all[number % all.len()];
        // From when the first has come: soon.
        second.at %= NEAR;
        [all[(number / all.len()) % all.len()], second]
    };
    (0..count).map(pair).collect()
}

/// Lets several lands suffer at once.
async fn each<T, Fut: Future<Output = ()>>(items: Vec<T>, suffering: impl Fn(T) -> Fut) {
    stream::iter(items)
        .map(suffering)
        .buffer_unordered(AT_ONCE)
        .collect::<()>()
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_fault_at_any_call_all_becomes_as_it_should_be() {
    let country = Country::new().await;
    let (expected, calls) = unharmed(&country).await;
    assert!(calls.iter().all(|(_, calls)| !calls.is_empty()), "{calls:?}");
    assert!(
        expected.contains("c-one.yml") && expected.matches("is ready: true").count() == 2,
        "{expected}"
    );
    each(single(&calls), async |fault| {
        converges(&country.land().await, &[fault], &expected).await;
    })
    .await;
    country.simulator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_any_two_faults_all_becomes_as_it_should_be() {
    let country = Country::new().await;
    let (expected, calls) = unharmed(&country).await;
    each(pairs(&calls, PAIRS), async |pair| {
        converges(&country.land().await, &pair, &expected).await;
    })
    .await;
    country.simulator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_ends_after_a_fault_at_any_call() {
    let country = Country::new().await;
    let land = country.land().await;
    let from = goes(&land, &[]).await;
    let calls: Vec<_> = from
        .map(|(system, from)| (system, system.proxy(&land).passed().split_off(from)))
        .to_vec();
    each(single(&calls), async |fault| {
        goes(&country.land().await, &[fault]).await;
    })
    .await;
    country.simulator.stop().await;
}

/// On the real API server, a sample.
#[tokio::test(flavor = "multi_thread")]
async fn after_two_faults_at_real_servers_all_becomes_as_it_should_be() {
    let calm = Land::with(settings()).await;
    populate(&calm).await;
    calm.settle().await;
    let expected = sight(&calm).await;
    for (first, second) in [(3, 17), (12, 30), (21, 2), (33, 9)] {
        let fault = |at: usize, system| Fault {
            system,
            at,
            kind: FAULTS[at % 4],
        };
        let faults = [
            fault(first, System::Kubernetes),
            fault(second, System::Kubernetes),
        ];
        converges(&Land::with(settings()).await, &faults, &expected).await;
    }
}
