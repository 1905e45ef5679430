//! What would be done is told, and nothing is done (E12).

use std::sync::Arc;

use evenkeel_operator::resources::{Cluster, GitRepo, Tenant};
use evenkeel_operator::vault::Engine;
use evenkeel_operator::{
    GitRepoSettings, ObjectPlan, OperatorSettings, PlannedKind, Planner, Scope, Selection, TenancySettings,
};
use evenkeel_telemetry::Tasks;
use evenkeel_testkit::FaultProxy;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::rbac::v1::Role;
use kube::api::{Patch, PatchParams};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::tenancy::Land;
use crate::vault::{root, settings as vault_settings};

/// A planner that reaches everything through the proxies of a land.
async fn planner(land: &Land) -> Planner {
    planner_by(land, &land.kubernetes).await
}

/// The same, with another way to the API server.
async fn planner_by(land: &Land, kubernetes: &FaultProxy) -> Planner {
    // The Git host too.
    let fields = json!({ "stringData": { "endpoint": land.git.url() } });
    let secrets = land.api::<Secret>();
    secrets
        .patch("git", &PatchParams::default(), &Patch::Merge(&fields))
        .await
        .unwrap();
    let mut vault = vault_settings(&land.mount, Engine::V2, root());
    vault.address = land.vault_proxy.url().parse().unwrap();
    let settings = OperatorSettings {
        scope: Scope::Namespace(land.namespace.clone()),
        tenancy: TenancySettings {
            token_secrets: true,
            api_url: "https://api.example.org".to_owned(),
            ..TenancySettings::default()
        },
        repositories: GitRepoSettings::default(),
        observe_only: false,
        vault: Some(vault),
        leader: None,
        metrics: None,
        health: None,
    };
    let mut config = Config::new(kubernetes.url().parse().unwrap());
    config.default_retry = false;
    let client = Client::try_from(config).unwrap();
    Planner::new(&settings, client, Arc::clone(&land.clock) as _, Tasks::new()).unwrap()
}

/// The calls that reached each system, past reading.
fn writes(land: &Land) -> Vec<String> {
    let proxies = [&land.kubernetes, &land.git, &land.vault_proxy];
    let calls = proxies.into_iter().flat_map(|proxy| proxy.passed());
    calls
        .filter(|call| !call.starts_with("GET ") && !call.starts_with("LIST "))
        .collect()
}

fn calls(land: &Land) -> [usize; 3] {
    [&land.kubernetes, &land.git, &land.vault_proxy].map(|proxy| proxy.passed().len())
}

fn of<'a>(plans: &'a [ObjectPlan], kind: &str, name: &str) -> &'a ObjectPlan {
    plans
        .iter()
        .find(|plan| plan.kind == kind && plan.name == name)
        .unwrap()
}

/// `step: ending`, and the changes.
fn told(plan: &ObjectPlan) -> Vec<String> {
    let steps = plan.steps.iter().map(|step| {
        let changes: Vec<String> = step.changes.iter().map(ToString::to_string).collect();
        format!(
            "{} {} [{}]",
            step.step,
            step.skip.as_deref().unwrap_or(&step.ending),
            changes.join(", ")
        )
    });
    steps.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_tells_every_step_and_writes_nothing_anywhere() {
    let land = Land::new().await;
    let planner = planner(&land).await;
    land.tenant("t-one", json!({})).await;
    land.cluster("c-one", json!({})).await;

    let plans = planner.plan(&Selection::All).await.unwrap();
    assert!(calls(&land).iter().take(1).all(|calls| *calls > 0));
    assert_eq!(writes(&land), Vec::<String>::new());
    assert_eq!(
        plans.len(),
        2,
        "nothing is there but what was written: {plans:#?}"
    );
    let cluster = of(&plans, "Cluster", "c-one");
    assert_eq!(
        told(cluster),
        [
            "claim planned [add the finalizer cluster.lieutenant.syn.tools, \
             add the finalizer cluster.lieutenant.syn.tools/pipelines, add the owner Tenant t-one]",
            "bootstrap-token planned [create the bootstrap token]",
            "role planned [create Role c-one]",
            "service-account planned [create ServiceAccount c-one]",
            "role-binding planned [create RoleBinding c-one]",
            "tenant done []",
            "fields planned [fill in fields of the specification]",
            "git-repo empty_slot []",
            "repository done []",
            "token-secret planned [create Secret c-one]",
            "vault waiting []",
        ],
        "{cluster}"
    );
    assert!(cluster.has_changes());
    assert_eq!(cluster.pipeline, "cluster");
    assert_eq!(cluster.conclusion, "waiting");

    // Nobody has done anything, so the same is planned; and it is named the same.
    let again = planner.plan(&Selection::All).await.unwrap();
    assert_eq!(plans, again);

    land.settle().await;
    let before = (writes(&land).len(), calls(&land));
    let plans = planner.plan(&Selection::All).await.unwrap();
    assert_eq!(plans.len(), 4, "with the repositories of both");
    for plan in &plans {
        assert!(!plan.has_changes() && plan.conclusion == "unchanged", "{plan}");
    }
    assert_eq!(writes(&land).len(), before.0);
    // Host and Vault were asked all the same.
    assert!(
        calls(&land)
            .iter()
            .zip(before.1)
            .all(|(now, before)| *now > before)
    );

    // One object, of which something changed.
    let one = |kind, name: &str| Selection::One {
        kind,
        namespace: land.namespace.clone(),
        name: name.to_owned(),
    };
    let repository = planner.plan(&one(PlannedKind::GitRepo, "t-one")).await.unwrap();
    assert_eq!(repository[0].kind, "GitRepo");
    land.delete::<Role>("c-one").await;
    let changed = &planner.plan(&one(PlannedKind::Cluster, "c-one")).await.unwrap()[0];
    assert!(
        changed.has_changes() && told(changed).contains(&"role planned [create Role c-one]".to_owned()),
        "{changed}"
    );
    let missing = planner
        .plan(&one(PlannedKind::Tenant, "t-two"))
        .await
        .unwrap_err();
    assert!(
        missing.to_string().contains("Tenant") && missing.to_string().contains("t-two"),
        "{missing}"
    );
    assert_eq!(writes(&land).len(), before.0);

    // No secret is in any of it.
    let text = format!(
        "{} {}",
        serde_json::to_string(&plans).unwrap(),
        serde_json::to_string(changed).unwrap()
    );
    assert!(!text.contains(land.site.token()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_would_apply_is_planned_for_and_stored_nowhere() {
    let land = Land::new().await;
    // By somebody who may apply clusters, which the operator may not.
    let kubernetes = FaultProxy::start(land.client.clone()).await;
    let planner = planner_by(&land, &kubernetes).await;
    land.tenant("t-one", json!({})).await;
    land.settle().await;
    let before = writes(&land).len();
    let object = |spec: Value| {
        json!({
            "apiVersion": "syn.tools/v1alpha1", "kind": "Cluster", "metadata": { "name": "c-new" }, "spec": spec,
        })
    };
    let wanted = object(json!({ "displayName": "New", "tenantRef": { "name": "t-one" } }));
    let plan = planner.plan_applied(&wanted).await.unwrap().unwrap();
    assert!(
        told(&plan).contains(&"role planned [create Role c-new]".to_owned()),
        "{plan}"
    );
    assert!(land.api::<Cluster>().get_opt("c-new").await.unwrap().is_none());
    // One call that writes was made: the one that is only tried.
    assert_eq!(writes(&land).len(), before);
    let mut tried = kubernetes.passed();
    tried.retain(|call| !call.starts_with("GET "));
    assert!(
        matches!(&tried[..], [call] if call.starts_with("PATCH ") && call.contains("/clusters/c-new")),
        "{tried:?}"
    );
    // What the API server would refuse is said, and what is not looked after is left out.
    let bad = object(json!({ "tenantRef": { "name": 7 } }));
    let refused = planner.plan_applied(&bad).await.unwrap_err();
    assert!(refused.to_string().contains("tenantRef"), "{refused}");
    let other = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "x" } });
    assert_eq!(planner.plan_applied(&other).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_planned_as_protection_and_policies_let_it() {
    let land = Land::new().await;
    let planner = planner(&land).await;
    land.tenant("t-one", json!({})).await;
    land.cluster("c-one", json!({ "deletionPolicy": "Delete" })).await;
    land.settle().await;
    let before = writes(&land).len();
    land.annotate::<Cluster>("c-one", "syn.tools/protected-delete", "true")
        .await;
    land.delete::<Cluster>("c-one").await;
    land.delete::<Tenant>("t-one").await;
    land.annotate::<GitRepo>("t-one", "evenkeel.dev/observe-only", "true")
        .await;
    let plans = planner.plan(&Selection::All).await.unwrap();
    let cluster = of(&plans, "Cluster", "c-one");
    assert_eq!(
        (cluster.pipeline.as_str(), cluster.conclusion.as_str()),
        ("cluster.teardown", "stopped")
    );
    assert!(
        cluster
            .held_back
            .iter()
            .any(|why| why.contains("it is protected")),
        "{cluster}"
    );
    assert!(!cluster.has_changes());
    let tenant = of(&plans, "Tenant", "t-one");
    assert_eq!(
        told(tenant),
        ["clusters waiting []", "release blocked []"],
        "{tenant}"
    );

    land.annotate::<Cluster>("c-one", "syn.tools/protected-delete", "false")
        .await;
    let plans = planner.plan(&Selection::All).await.unwrap();
    let cluster = of(&plans, "Cluster", "c-one");
    let changes: Vec<String> = told(cluster);
    assert!(
        changes[0].starts_with("vault-removal planned [erase secret t-one/c-one"),
        "{cluster}"
    );
    assert!(
        changes[1].starts_with("release planned [remove the finalizer"),
        "{cluster}"
    );
    assert_eq!(writes(&land).len(), before);
    assert!(land.secret("t-one", "c-one").await.is_some());
}
