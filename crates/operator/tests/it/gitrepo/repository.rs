//! What becomes of a new object (§3.4, E14's first property).

use evenkeel_operator::resources::ConditionStatus;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use serde_json::json;

use super::world::HOST_KEYS;
use super::{KEY, World};
use crate::git::{Site, at_every_host, file};

at_every_host!(
    an_object_becomes_a_repository_with_all_that_it_asks_for_and_the_second_pass_writes_nothing,
    the_controller_writes_only_its_own_fields,
    an_unmanaged_repository_is_left_alone,
    what_is_wrong_with_the_way_to_the_host_is_told_by_condition_and_event,
    a_pass_that_may_only_observe_plans_and_writes_nothing_outside,
);

async fn an_object_becomes_a_repository_with_all_that_it_asks_for_and_the_second_pass_writes_nothing(
    site: &Site,
) {
    let world = World::new(site).await;
    world
        .write(
            "t-one",
            json!({
                "displayName": "One Corp.", "tenantRef": { "name": "t-one" },
                "deployKeys": { "k1": { "type": "ssh-ed25519", "key": KEY, "writeAccess": true } },
                "generatedDeployKeys": { "g1": { "writeAccess": true } },
                "templateFiles": { "common.yml": "", "manifests/a/b.yml": "x: 1\n" },
                "ciVariables": [{ "name": "CLUSTERS", "value": "c-one" },
                    { "name": "SECRET", "valueFrom": { "secretKeyRef": { "name": "git", "key": "token" } },
                      "gitlabOptions": { "masked": true } }],
            }),
        )
        .await;
    let passed = world.converge("t-one").await;
    let object = world.get("t-one").await;
    assert_eq!(object.finalizers(), ["cluster.lieutenant.syn.tools"]);
    assert_eq!(object.labels()["syn.tools/tenant"], "t-one");
    let status = object.status.clone().unwrap();
    assert_eq!(status.phase.as_deref(), Some("created"), "{}", passed.timeline);
    assert_eq!(status.kind.as_deref(), Some(site.host().kind()));
    assert_eq!(status.url, Some(world.url("t-one")));
    assert_eq!(status.host_keys.as_deref(), Some(HOST_KEYS));
    assert_eq!(status.observed_generation, object.metadata.generation);
    for kind in [
        "Ready",
        "RepoReady",
        "DeployKeysSynced",
        "FilesSynced",
        "CiSynced",
    ] {
        world
            .assert_condition("t-one", kind, ConditionStatus::True, "")
            .await;
    }
    assert!(world.condition("t-one", "TokenFresh").await.is_none());

    let project = world.project("t-one").await.unwrap();
    assert_eq!(project.description, "One Corp.");
    let keys = world.host().deploy_keys(&project).await.unwrap();
    let mut titles: Vec<&str> = keys.iter().map(|key| key.title.as_str()).collect();
    titles.sort_unstable();
    assert_eq!(titles, ["generated-g1", "k1"]);
    assert!(keys.iter().all(|key| key.may_write));
    let files = world.host().files(&project).await.unwrap();
    assert!(files.contains_key(&file("common.yml")) && files.contains_key(&file("manifests/a/b.yml")));
    let variables = world.host().variables(&project).await.unwrap();
    assert_eq!(variables["CLUSTERS"].value.as_ref().unwrap().expose(), "c-one");
    assert!(variables["SECRET"].is_masked);
    world.assert_settled("t-one").await;
}

/// L25 to L27: by managedFields.
async fn the_controller_writes_only_its_own_fields(site: &Site) {
    let world = World::new(site).await;
    world
        .write(
            "own",
            json!({ "tenantRef": { "name": "t-one" }, "displayName": "Own" }),
        )
        .await;
    world.converge("own").await;
    let object = world.get("own").await;
    for entry in object.metadata.managed_fields.unwrap() {
        let fields = serde_json::to_value(&entry.fields_v1).unwrap();
        match entry.manager.as_deref() {
            Some("evenkeel-gitrepo") => {
                assert!(fields.get("f:spec").is_none(), "{fields}");
                if let Some(metadata) = fields.get("f:metadata") {
                    for name in metadata.as_object().unwrap().keys() {
                        assert!(
                            ["f:annotations", "f:labels", "f:finalizers"].contains(&name.as_str()),
                            "{fields}"
                        );
                    }
                }
            }
            manager => assert_eq!(manager, Some("test")),
        }
    }
}

/// A5: whatever else the object says.
async fn an_unmanaged_repository_is_left_alone(site: &Site) {
    let world = World::new(site).await;
    let files = json!({ "a.yml": "a" });
    world
        .write(
            "free",
            json!({ "repoType": "unmanaged", "templateFiles": files, "tenantRef": { "name": "t-one" } }),
        )
        .await;
    world.converge("free").await;
    assert_eq!(world.git.requests(), 0);
    assert!(world.project("free").await.is_none());
    let object = world.get("free").await;
    assert_eq!(object.labels()["syn.tools/tenant"], "t-one");
    world
        .assert_condition("free", "Ready", ConditionStatus::True, "")
        .await;
    world.assert_settled("free").await;
    world.delete("free").await;
    world.converge("free").await;
    assert!(world.is_gone("free").await);
    assert_eq!(world.git.requests(), 0);
}

/// B34: nothing is told in logs alone.
async fn what_is_wrong_with_the_way_to_the_host_is_told_by_condition_and_event(site: &Site) {
    let world = World::new(site).await;
    world
        .write("lost", json!({ "apiSecretRef": { "name": "missing" } }))
        .await;
    world.pass("lost").await;
    let says = "there is no Secret";
    world
        .assert_condition("lost", "RepoReady", ConditionStatus::False, says)
        .await;
    world
        .assert_condition("lost", "Ready", ConditionStatus::False, says)
        .await;
    assert_eq!(world.status("lost").await.phase.as_deref(), Some("failed"));
    let events: Api<Event> = Api::namespaced(world.client.clone(), &world.namespace);
    let told = events.list(&ListParams::default()).await.unwrap().items;
    assert!(
        told.iter()
            .any(|event| event.reason.as_deref() == Some("ReadyInvalid")
                && event.note.as_deref().is_some_and(|note| note.contains(says))),
        "{told:#?}"
    );
    let count = told.len();
    world.pass("lost").await;
    assert_eq!(
        events.list(&ListParams::default()).await.unwrap().items.len(),
        count
    );

    // B24: a Secret of another namespace is for those whom its owner lets in.
    let other = World::new(site).await;
    crate::rights::admit(&world.namespace, &other.namespace).await;
    let elsewhere = json!({ "apiSecretRef": { "name": "git", "namespace": other.namespace } });
    world.write("lost", elsewhere).await;
    world.pass("lost").await;
    world
        .assert_condition(
            "lost",
            "RepoReady",
            ConditionStatus::False,
            "is not for this namespace",
        )
        .await;
    assert!(world.project("lost").await.is_none());
    let secrets = other.secrets();
    let allowed =
        json!({ "metadata": { "annotations": { "evenkeel.dev/allowed-namespaces": world.namespace } } });
    secrets
        .patch("git", &Default::default(), &kube::api::Patch::Merge(&allowed))
        .await
        .unwrap();
    world.converge("lost").await;
    assert!(world.project("lost").await.is_some());
    // What was wrong is not told any more.
    world
        .assert_condition("lost", "Ready", ConditionStatus::True, "")
        .await;
}

/// E12: what would be done is told.
async fn a_pass_that_may_only_observe_plans_and_writes_nothing_outside(site: &Site) {
    let world = World::new(site).await;
    world
        .write("seen", json!({ "templateFiles": { "a.yml": "a" } }))
        .await;
    world
        .annotate("seen", "evenkeel.dev/observe-only", json!("true"))
        .await;
    let passed = world.pass("seen").await;
    assert!(
        passed.timeline.contains("create repository"),
        "{}",
        passed.timeline
    );
    assert!(world.project("seen").await.is_none());
    assert!(world.get("seen").await.finalizers().is_empty());
    let plan = world.status("seen").await.plan.unwrap();
    assert!(plan.digest.starts_with("sha256:"), "{plan:?}");
    let creation = format!("project: create repository {}/seen", world.group);
    assert!(plan.changes.contains(&creation) && plan.count == 2, "{plan:?}");
    // It is told once.
    let before = world.kubernetes.requests();
    let _ = world.pass("seen").await;
    let calls = world.kubernetes.passed().split_off(before);
    assert!(calls.iter().all(|call| call.starts_with("GET ")), "{calls:?}");

    // What somebody approves is done, if it is still what would be done, and nothing beyond it.
    let approve = async |digest: &str| {
        world
            .annotate("seen", "evenkeel.dev/approved-plan", json!(digest))
            .await;
        world.pass("seen").await
    };
    let _ = approve("sha256:0000").await;
    assert!(world.project("seen").await.is_none());
    let passed = approve(&plan.digest).await;
    let project = world.project("seen").await.expect("it was approved");
    assert!(
        world.host().files(&project).await.unwrap().is_empty(),
        "{}",
        passed.timeline
    );
    assert!(
        passed
            .timeline
            .contains("files  skipped: not permitted to create file a.yml"),
        "{}",
        passed.timeline
    );
    let _ = world.pass("seen").await;
    let next = world.status("seen").await.plan.unwrap();
    assert_eq!(
        next.changes.last().map(String::as_str),
        Some("files: create file a.yml"),
        "{next:?}"
    );
    assert_ne!(next.digest, plan.digest);
    assert!(world.host().files(&project).await.unwrap().is_empty());
    world
        .annotate("seen", "evenkeel.dev/observe-only", json!(null))
        .await;
    world.converge("seen").await;
    let project = world.project("seen").await.unwrap();
    assert!(!world.host().files(&project).await.unwrap().is_empty());
    assert_eq!(world.status("seen").await.plan, None);
}
