//! Whose a repository is: the decision table of §3.11, and how ownership is proved (B19).

use evenkeel_operator::resources::ConditionStatus;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::World;
use crate::git::{Site, at_every_host};

at_every_host!(
    a_foreign_repository_is_left_alone_unless_it_is_to_be_adopted,
    a_description_that_nobody_asks_for_stays,
    the_predecessors_proof_of_ownership_counts,
    ownership_survives_the_loss_of_the_status_and_a_host_that_moves,
    a_repository_that_was_deleted_by_hand_is_made_again,
    an_archived_repository_is_brought_back,
    a_group_that_is_missing_is_told_and_no_address_is_shown,
);

async fn a_foreign_repository_is_left_alone_unless_it_is_to_be_adopted(site: &Site) {
    let world = World::new(site).await;
    let foreign = world.host().create(&world.path("taken"), "Theirs").await.unwrap();
    world
        .write(
            "taken",
            json!({ "displayName": "Ours", "templateFiles": { "a.yml": "a" } }),
        )
        .await;
    world.pass("taken").await;
    world
        .assert_condition(
            "taken",
            "RepoReady",
            ConditionStatus::False,
            "is not managed by this object",
        )
        .await;
    let status = world.status("taken").await;
    assert_eq!((status.phase.as_deref(), status.url), (Some("failed"), None));
    assert_eq!(world.project("taken").await.unwrap(), foreign);

    world
        .write(
            "taken",
            json!({ "displayName": "Ours", "creationPolicy": "Adopt" }),
        )
        .await;
    world.converge("taken").await;
    let adopted = world.project("taken").await.unwrap();
    assert_eq!((adopted.id, adopted.description.as_str()), (foreign.id, "Ours"));
    assert_eq!(world.status("taken").await.url, Some(world.url("taken")));
    // Once it is ours it stays so.
    world
        .write(
            "taken",
            json!({ "displayName": "Ours", "creationPolicy": "Create" }),
        )
        .await;
    world.converge("taken").await;
    world.assert_settled("taken").await;
}

/// B17: an object without a display name has nothing to say.
async fn a_description_that_nobody_asks_for_stays(site: &Site) {
    let world = World::new(site).await;
    world.host().create(&world.path("taken"), "Theirs").await.unwrap();
    world.write("taken", json!({ "creationPolicy": "Adopt" })).await;
    world.converge("taken").await;
    assert_eq!(world.project("taken").await.unwrap().description, "Theirs");
    world.assert_settled("taken").await;
    // What was noted in one of our own making goes.
    world.write("made", json!({})).await;
    world.converge("made").await;
    assert_eq!(world.project("made").await.unwrap().description, "");
    world.assert_settled("made").await;
}

/// §8.11: objects of the predecessor have the address alone.
async fn the_predecessors_proof_of_ownership_counts(site: &Site) {
    let world = World::new(site).await;
    let project = world.host().create(&world.path("old"), "").await.unwrap();
    world.write("old", json!({})).await;
    let status = json!({ "url": world.url("old"), "phase": "created", "type": "gitlab" });
    world.write_as_predecessor("old", status).await;
    world.converge("old").await;
    assert_eq!(world.project("old").await.unwrap().id, project.id);
    world.assert_settled("old").await;
    // An address of another place proves nothing: it is made at the new one.
    world.write("new", json!({})).await;
    let status = json!({ "url": "ssh://git@elsewhere/a/b.git" });
    world.write_as_predecessor("new", status).await;
    world.converge("new").await;
    assert_eq!(world.status("new").await.url, Some(world.url("new")));
    world.assert_settled("new").await;
}

async fn ownership_survives_the_loss_of_the_status_and_a_host_that_moves(site: &Site) {
    let world = World::new(site).await;
    world.write("kept", json!({})).await;
    world.converge("kept").await;
    let project = world.project("kept").await.unwrap();
    let nothing = json!({ "status": null });
    world
        .objects()
        .patch_status("kept", &PatchParams::default(), &Patch::Merge(&nothing))
        .await
        .unwrap();
    world.converge("kept").await;
    assert_eq!(world.project("kept").await.unwrap().id, project.id);
    // Another address of the same host.
    let mut secret = world.host_secret();
    secret["endpoint"] = json!(site.url());
    secret["sshEndpoint"] = json!("ssh://git@ssh.example.org:2222");
    world.secret("git", &secret).await;
    world.converge("kept").await;
    let url = format!("ssh://git@ssh.example.org/{}/kept.git", world.group);
    assert_eq!(world.status("kept").await.url, Some(url));
    world.assert_settled("kept").await;
}

async fn a_repository_that_was_deleted_by_hand_is_made_again(site: &Site) {
    let world = World::new(site).await;
    world
        .write("gone", json!({ "templateFiles": { "a.yml": "a" } }))
        .await;
    world.converge("gone").await;
    let first = world.project("gone").await.unwrap();
    world.host().delete(&first).await.unwrap();
    world.converge("gone").await;
    let second = world.project("gone").await.unwrap();
    assert_ne!(second.id, first.id);
    assert_eq!(world.host().files(&second).await.unwrap().len(), 1);
    world.assert_settled("gone").await;
}

/// A9.
async fn an_archived_repository_is_brought_back(site: &Site) {
    let world = World::new(site).await;
    world.write("shelf", json!({})).await;
    world.converge("shelf").await;
    let project = world.project("shelf").await.unwrap();
    world.host().set_archived(&project, true).await.unwrap();
    world.write("shelf", json!({ "displayName": "Back" })).await;
    world.converge("shelf").await;
    let project = world.project("shelf").await.unwrap();
    assert_eq!(
        (project.is_archived, project.description.as_str()),
        (false, "Back")
    );
    world.assert_settled("shelf").await;
}

async fn a_group_that_is_missing_is_told_and_no_address_is_shown(site: &Site) {
    let world = World::new(site).await;
    world.write("nowhere", json!({ "path": "no-such-group" })).await;
    world.pass("nowhere").await;
    world
        .assert_condition("nowhere", "RepoReady", ConditionStatus::False, "no-such-group")
        .await;
    let status = world.status("nowhere").await;
    assert_eq!((status.phase.as_deref(), status.url), (Some("failed"), None));
    // Its name was wrong, and nothing was begun that would be in the way.
    world.write("nowhere", json!({})).await;
    world.converge("nowhere").await;
}
