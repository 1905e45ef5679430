//! What was seen at a host is not looked at again while nothing changes that it depends on (E10).

use evenkeel_operator::GitRepoSettings;
use evenkeel_steps::Conclusion;
use evenkeel_testkit::CallFault;
use jiff::SignedDuration;
use serde_json::json;

use super::{KEY, World};
use crate::git::{Site, at_every_host, file};

/// Longer than anything counts that was seen.
const INTERVAL: SignedDuration = SignedDuration::from_hours(3);

at_every_host!(
    what_was_seen_counts_until_something_changes_or_the_interval_is_over,
    what_a_pass_changed_or_could_not_see_is_looked_at_by_the_next,
);

/// A repository with something of everything, and what the next pass asks its host for.
async fn world(site: &Site) -> World<'_> {
    let world = World::exactly(site, GitRepoSettings::default()).await;
    world.secret("values", &json!({ "a": "one" })).await;
    world.write("seen", spec("A")).await;
    world.converge("seen").await;
    assert!(!asks(&world).await.is_empty(), "what was made is looked at once");
    world
}

fn spec(content: &str) -> serde_json::Value {
    json!({
        "displayName": "Seen", "templateFiles": { "a": content },
        "deployKeys": { "k1": { "type": "ssh-ed25519", "key": KEY } },
        "ciVariables": [{ "name": "A", "valueFrom": { "secretKeyRef": { "name": "values", "key": "a" } } }],
    })
}

/// The calls of the host by one pass.
async fn asks(world: &World<'_>) -> Vec<String> {
    let before = world.git.passed().len();
    world.pass("seen").await;
    world.git.passed()[before..].to_vec()
}

async fn what_was_seen_counts_until_something_changes_or_the_interval_is_over(site: &Site) {
    let world = world(site).await;
    let nothing: [String; 0] = [];
    assert_eq!(asks(&world).await, nothing);
    world.assert_settled("seen").await;

    // Somebody takes the key away at the host.
    let project = world.project("seen").await.unwrap();
    let keys = async || world.host().deploy_keys(&project).await.unwrap();
    let key = keys().await[0].id;
    world.host().delete_deploy_key(&project, key).await.unwrap();
    assert_eq!(asks(&world).await, nothing);
    world.clock.advance(INTERVAL);
    world.converge("seen").await;
    assert_eq!(keys().await.len(), 1);
    world.converge("seen").await;
    assert_eq!(asks(&world).await, nothing);

    // A value that a variable has from a Secret, and the Secret of the host.
    world.secret("values", &json!({ "a": "two" })).await;
    assert!(!asks(&world).await.is_empty());
    if site.host().kind() == "gitlab" {
        let variables = world.host().variables(&project).await.unwrap();
        assert_eq!(variables["A"].value.as_ref().unwrap().expose(), "two");
    }
    world.converge("seen").await;
    assert_eq!(asks(&world).await, nothing);
    let mut secret = world.host_secret();
    secret["hostKeys"] = json!("git.example.org ssh-ed25519 OTHER");
    world.secret("git", &secret).await;
    let asked = asks(&world).await;
    assert!(
        asked.len() >= 4 && asked.iter().all(|call| call.starts_with("GET ")),
        "{asked:?}"
    );
    assert_eq!(asks(&world).await, nothing);
}

async fn what_a_pass_changed_or_could_not_see_is_looked_at_by_the_next(site: &Site) {
    let world = world(site).await;
    assert!(asks(&world).await.is_empty());
    world
        .write("seen", json!({ "templateFiles": { "a": "A", "b": "B" } }))
        .await;
    let passed = world.converge("seen").await;
    assert_eq!(passed.conclusion, Some(Conclusion::Changed));
    let project = world.project("seen").await.unwrap();
    assert!(
        world
            .host()
            .files(&project)
            .await
            .unwrap()
            .contains_key(&file("b"))
    );
    assert!(world.status("seen").await.looks.is_empty());
    assert!(!asks(&world).await.is_empty());
    assert!(asks(&world).await.is_empty());
    assert!(!world.status("seen").await.looks.is_empty());

    world
        .write("seen", json!({ "templateFiles": { "a": "A", "c": "C" } }))
        .await;
    world.git.fail_all(Some(CallFault::InternalError));
    assert_eq!(world.pass("seen").await.conclusion, Some(Conclusion::Failed));
    assert!(world.status("seen").await.looks.is_empty());
    world.git.fail_all(None);
    world.clock.advance(SignedDuration::from_mins(10));
    world.converge("seen").await;
    assert!(
        world
            .host()
            .files(&project)
            .await
            .unwrap()
            .contains_key(&file("c"))
    );
    assert!(!asks(&world).await.is_empty());
    assert!(asks(&world).await.is_empty());
}
