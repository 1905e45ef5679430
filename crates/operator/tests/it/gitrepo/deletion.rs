//! What becomes of a repository whose object is deleted (§3.4h, §3.11, B1, E9).

use evenkeel_core::Clock as _;
use evenkeel_operator::GitRepoSettings;
use evenkeel_operator::resources::ConditionStatus;
use evenkeel_testkit::CallFault;
use jiff::SignedDuration;
use kube::ResourceExt as _;
use serde_json::json;

use super::World;
use crate::git::{Site, at_every_host};

/// A hiccup is not told before it has gone on that long.
const PASSES_UNTIL_TOLD: usize = 3;

at_every_host!(
    each_policy_is_carried_out_and_the_object_goes,
    a_protected_object_keeps_everything_and_says_so,
    a_foreign_repository_stays_when_the_object_goes,
    a_repository_that_is_gone_already_holds_nothing_up,
    an_object_that_never_had_anything_goes_without_the_host,
    a_host_that_is_lost_holds_the_object_until_somebody_lets_it_go,
);

async fn each_policy_is_carried_out_and_the_object_goes(site: &Site) {
    let world = World::new(site).await;
    for (name, policy) in [
        ("d", Some("Delete")),
        ("a", Some("Archive")),
        ("r", Some("Retain")),
        ("n", None),
    ] {
        let spec = policy.map_or_else(|| json!({}), |policy| json!({ "deletionPolicy": policy }));
        world.write(name, spec).await;
        world.converge(name).await;
        world.delete(name).await;
        world.converge(name).await;
        assert!(world.is_gone(name).await, "{name}");
    }
    assert!(world.project("d").await.is_none());
    assert!(world.project("a").await.unwrap().is_archived);
    assert!(!world.project("r").await.unwrap().is_archived);
    // B33: an object without a policy has the operator's.
    assert!(world.project("n").await.unwrap().is_archived);
}

/// B1, B4: before anything else, and nothing is made again on the way.
async fn a_protected_object_keeps_everything_and_says_so(site: &Site) {
    let settings = GitRepoSettings {
        protect: true,
        ..GitRepoSettings::default()
    };
    let world = World::with(site, settings).await;
    world.write("safe", json!({ "deletionPolicy": "Delete" })).await;
    world.converge("safe").await;
    assert_eq!(
        world.get("safe").await.annotations()["syn.tools/protected-delete"],
        "true"
    );
    world.delete("safe").await;
    let before = world.git.requests();
    world.pass("safe").await;
    assert_eq!(world.git.requests(), before);
    world
        .assert_condition(
            "safe",
            "DeletionBlocked",
            ConditionStatus::True,
            "it is protected",
        )
        .await;
    // What cannot be read protects as well.
    world
        .annotate("safe", "syn.tools/protected-delete", json!("perhaps"))
        .await;
    world.pass("safe").await;
    assert!(world.project("safe").await.is_some());
    world
        .annotate("safe", "syn.tools/protected-delete", json!("false"))
        .await;
    world.converge("safe").await;
    assert!(world.is_gone("safe").await);
    assert!(world.project("safe").await.is_none());
}

async fn a_foreign_repository_stays_when_the_object_goes(site: &Site) {
    let world = World::new(site).await;
    for (name, policy) in [("theirs", "Create"), ("taken", "Adopt")] {
        world.host().create(&world.path(name), "Theirs").await.unwrap();
        world
            .write(
                name,
                json!({ "deletionPolicy": "Delete", "creationPolicy": policy }),
            )
            .await;
    }
    world.pass("theirs").await;
    world.delete("theirs").await;
    world.converge("theirs").await;
    assert!(world.is_gone("theirs").await);
    assert!(world.project("theirs").await.is_some());
    // The table: what would be adopted is removed.
    let finalizers = json!({ "metadata": { "finalizers": ["cluster.lieutenant.syn.tools"] } });
    let patch = kube::api::Patch::Merge(&finalizers);
    world
        .objects()
        .patch("taken", &Default::default(), &patch)
        .await
        .unwrap();
    world.delete("taken").await;
    world.converge("taken").await;
    assert!(world.is_gone("taken").await);
    assert!(world.project("taken").await.is_none());
}

async fn a_repository_that_is_gone_already_holds_nothing_up(site: &Site) {
    let world = World::new(site).await;
    world.write("lost", json!({ "deletionPolicy": "Delete" })).await;
    world.converge("lost").await;
    let project = world.project("lost").await.unwrap();
    world.host().delete(&project).await.unwrap();
    world.delete("lost").await;
    world.converge("lost").await;
    assert!(world.is_gone("lost").await);
}

async fn an_object_that_never_had_anything_goes_without_the_host(site: &Site) {
    let world = World::new(site).await;
    world
        .write(
            "vain",
            json!({ "apiSecretRef": { "name": "missing" }, "deletionPolicy": "Delete" }),
        )
        .await;
    world.pass("vain").await;
    world.delete("vain").await;
    world.converge("vain").await;
    assert!(world.is_gone("vain").await);
}

async fn a_host_that_is_lost_holds_the_object_until_somebody_lets_it_go(site: &Site) {
    let world = World::new(site).await;
    world.write("held", json!({ "deletionPolicy": "Delete" })).await;
    world.converge("held").await;
    world.secrets().delete("git", &Default::default()).await.unwrap();
    world.delete("held").await;
    let passed = world.pass("held").await;
    assert!(
        passed.timeline.contains("there is no Secret"),
        "{}",
        passed.timeline
    );
    world
        .assert_condition(
            "held",
            "DeletionBlocked",
            ConditionStatus::True,
            "there is no Secret",
        )
        .await;
    assert!(!world.is_gone("held").await);
    world.annotate("held", "evenkeel.dev/orphan", json!("true")).await;
    world.converge("held").await;
    assert!(world.is_gone("held").await);
    assert!(world.project("held").await.is_some());
}

/// OPR-01: what the host keeps for some days is gone for the object. Its name is not free yet, which is told and not asked for
/// all the time.
#[tokio::test]
async fn a_repository_that_the_host_deletes_later_is_gone_and_its_name_is_waited_for() {
    let site = Site::gitlab().await;
    let Some(double) = site.double_or("deletions that are delayed") else {
        return;
    };
    double.delay_deletions(true);
    let world = World::new(&site).await;
    world.write("later", json!({ "deletionPolicy": "Delete" })).await;
    world.converge("later").await;
    world.delete("later").await;
    let before = world.git.requests();
    world.converge("later").await;
    assert!(world.is_gone("later").await);
    let calls = world.git.passed();
    let deletions = calls[before..].iter().filter(|call| call.starts_with("DELETE "));
    assert_eq!(deletions.count(), 1, "{calls:#?}");

    world.write("later", json!({})).await;
    for _ in 0..PASSES_UNTIL_TOLD {
        let passed = world.pass("later").await;
        let due = passed.due.unwrap();
        let pause = due.at.duration_since(world.clock.now());
        assert!(pause >= SignedDuration::from_secs(1), "{due:?}");
    }
    world
        .assert_condition(
            "later",
            "RepoReady",
            ConditionStatus::False,
            "waits for its deletion",
        )
        .await;
}

/// B36: whenever the API server fails, what has no finalizer yet has nothing outside.
#[tokio::test]
async fn without_its_finalizer_an_object_has_nothing_outside() {
    let site = Site::gitlab().await;
    let world = World::new(&site).await;
    world.write("first", json!({})).await;
    let before = world.kubernetes.requests();
    world.converge("first").await;
    let calls = world.kubernetes.requests() - before;
    let mut unclaimed = 0;
    for at in 0..calls {
        let name = format!("r-{at}");
        world.write(&name, json!({})).await;
        world.kubernetes.fail(at, CallFault::InternalError);
        let _ = world.repos.pass(&world.namespace, &name).await;
        world.kubernetes.heal();
        if world.get(&name).await.finalizers().is_empty() {
            unclaimed += 1;
            assert!(world.project(&name).await.is_none(), "after a fault at {at}");
        }
    }
    assert!(unclaimed > 0 && unclaimed < calls, "{unclaimed} of {calls}");
}
