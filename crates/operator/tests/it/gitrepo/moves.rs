//! A repository whose place changes: in the specification, or at the host (B19).

use evenkeel_operator::resources::ConditionStatus;
use evenkeel_steps::Conclusion;
use evenkeel_testkit::CallFault;
use serde_json::json;

use super::World;
use crate::git::{Site, at_every_host};

at_every_host!(
    a_repository_follows_the_specification_with_all_that_is_in_it,
    after_any_fault_of_a_move_there_is_one_repository_and_it_is_where_it_is_to_be,
    a_place_that_is_taken_is_told_and_neither_is_touched,
    one_of_the_predecessor_is_moved_too,
    what_somebody_moved_at_the_host_is_told_and_left_there,
);

/// How many passes may be needed after one fault.
const PASSES_MAX: usize = 6;

async fn a_repository_follows_the_specification_with_all_that_is_in_it(site: &Site) {
    let world = World::new(site).await;
    let spec =
        |path: &str, name: &str| json!({ "path": path, "repoName": name, "templateFiles": { "a.yml": "a" } });
    world.write("moves", spec(&world.group, "moves")).await;
    world.converge("moves").await;
    let project = world.project("moves").await.unwrap();
    let (here, there) = (world.group.clone(), site.new_group().await);
    for (group, name) in [(&here, "renamed"), (&there, "renamed"), (&here, "back")] {
        world.write("moves", spec(group, name)).await;
        let passed = world.converge("moves").await;
        assert!(passed.timeline.contains("move repository"), "{}", passed.timeline);
        let url = world.status("moves").await.url.unwrap();
        assert!(url.ends_with(&format!("/{group}/{name}.git")), "{url}");
        let moved = world.host().get(project.id).await.unwrap().unwrap();
        assert_eq!((moved.path.group(), moved.path.name()), (group.as_str(), name));
        assert_eq!(world.host().files(&moved).await.unwrap().len(), 1);
        world.assert_settled("moves").await;
    }
    // An archived one is brought back, and a deleted object takes its repository along from wherever it is.
    let moved = world.host().get(project.id).await.unwrap().unwrap();
    world.host().set_archived(&moved, true).await.unwrap();
    let mut last = spec(&there, "last");
    last["deletionPolicy"] = json!("Delete");
    world.write("moves", last).await;
    world.converge("moves").await;
    assert!(!world.host().get(project.id).await.unwrap().unwrap().is_archived);
    let mut away = spec(&here, "never");
    away["deletionPolicy"] = json!("Delete");
    world.write("moves", away).await;
    world.delete("moves").await;
    world.pass("moves").await;
    assert!(world.is_gone("moves").await);
    assert_eq!(world.host().get(project.id).await.unwrap(), None);
}

async fn after_any_fault_of_a_move_there_is_one_repository_and_it_is_where_it_is_to_be(site: &Site) {
    let world = World::new(site).await;
    let there = site.new_group().await;
    for (which, proxy) in [("git", &world.git), ("api", &world.kubernetes)] {
        for fault in [
            CallFault::InternalError,
            CallFault::CutBefore,
            CallFault::CutAfter,
        ] {
            for at in 0.. {
                let when = format!("{which}: {fault:?} at {at}");
                let name = format!("m-{which}-{fault:?}-{at}").to_lowercase();
                world.write(&name, json!({})).await;
                world.converge(&name).await;
                let id = world.project(&name).await.unwrap().id;
                let to = format!("{name}-moved");
                world.write(&name, json!({ "path": there, "repoName": to })).await;
                proxy.fail(at, fault);
                let _ = world.repos.pass(&world.namespace, &name).await;
                let was_met = proxy.heal();
                let mut timeline = String::new();
                for pass in 0.. {
                    assert!(pass < PASSES_MAX, "{when}: {timeline}");
                    let passed = world.pass(&name).await;
                    timeline = passed.timeline;
                    if passed.conclusion == Some(Conclusion::Unchanged) {
                        break;
                    }
                }
                let moved = world.host().get(id).await.unwrap().unwrap();
                assert_eq!(
                    (moved.path.group(), moved.path.name()),
                    (there.as_str(), to.as_str()),
                    "{when}"
                );
                assert!(world.project(&name).await.is_none(), "{when}");
                if !was_met {
                    break;
                }
            }
        }
    }
}

async fn a_place_that_is_taken_is_told_and_neither_is_touched(site: &Site) {
    let world = World::new(site).await;
    let foreign = world.host().create(&world.path("taken"), "Theirs").await.unwrap();
    world.write("ours", json!({})).await;
    world.converge("ours").await;
    let ours = world.project("ours").await.unwrap();
    for policy in ["Create", "Adopt"] {
        world
            .write(
                "ours",
                json!({ "repoName": "taken", "creationPolicy": policy, "displayName": "Ours" }),
            )
            .await;
        world.pass("ours").await;
        world
            .assert_condition(
                "ours",
                "RepoReady",
                ConditionStatus::False,
                "there is another one",
            )
            .await;
        assert_eq!(world.project("taken").await.as_ref(), Some(&foreign));
        assert_eq!(world.project("ours").await.as_ref(), Some(&ours));
        assert_eq!(world.status("ours").await.url, Some(world.url("ours")));
    }
    // A group that is not there, and then the wish is taken back.
    world.write("ours", json!({ "path": "no-such-group" })).await;
    world.pass("ours").await;
    world
        .assert_condition(
            "ours",
            "RepoReady",
            ConditionStatus::False,
            "create no-such-group",
        )
        .await;
    world.write("ours", json!({})).await;
    world.converge("ours").await;
    assert_eq!(world.project("ours").await.unwrap().id, ours.id);
    world.assert_settled("ours").await;
}

/// Nothing is noted of it; the address in its status proves it.
async fn one_of_the_predecessor_is_moved_too(site: &Site) {
    let world = World::new(site).await;
    let project = world.host().create(&world.path("old"), "").await.unwrap();
    world.write("old", json!({ "repoName": "new" })).await;
    let status = json!({ "url": world.url("old"), "phase": "created", "type": "gitlab" });
    world.write_as_predecessor("old", status).await;
    world.converge("old").await;
    assert_eq!(world.project("new").await.unwrap().id, project.id);
    assert_eq!(world.status("old").await.url, Some(world.url("new")));
    world.assert_settled("old").await;
}

async fn what_somebody_moved_at_the_host_is_told_and_left_there(site: &Site) {
    let world = World::new(site).await;
    world.write("first", json!({})).await;
    world.converge("first").await;
    let project = world.project("first").await.unwrap();
    site.rename(&project, "second").await;
    world.pass("first").await;
    world
        .assert_condition("first", "RepoReady", ConditionStatus::False, "second")
        .await;
    assert!(world.project("first").await.is_none());
    // The specification follows.
    world.write("first", json!({ "repoName": "second" })).await;
    world.converge("first").await;
    assert_eq!(world.project("second").await.unwrap().id, project.id);
    world.assert_settled("first").await;
}
