//! Access tokens (B15, A31): renewed before they end, the older one revoked when all had time to take the new one.

use evenkeel_operator::git::PresentToken;
use evenkeel_operator::resources::ConditionStatus;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use serde_json::json;

use super::World;
use crate::git::Site;

const DAY: SignedDuration = SignedDuration::from_hours(24);

async fn active(world: &World<'_>) -> Vec<PresentToken> {
    let project = world.project("t-one").await.unwrap();
    let tokens = world.host().access_tokens(&project).await.unwrap();
    tokens.into_iter().filter(|token| token.is_active).collect()
}

#[tokio::test]
async fn a_token_is_kept_renewed_at_its_moment_and_the_older_one_revoked() {
    let site = Site::gitlab().await;
    let world = World::new(&site).await;
    world
        .write("t-one", json!({ "accessToken": { "secretRef": "t-one-token" } }))
        .await;
    let passed = world.converge("t-one").await;
    let secret = world.secrets().get("t-one-token").await.unwrap();
    let annotations = secret.annotations();
    let uid = annotations["lieutenant.syn.tools/accessTokenUID"].clone();
    let expires: Timestamp = annotations["lieutenant.syn.tools/accessTokenExpiresAt"]
        .parse()
        .unwrap();
    assert_eq!(active(&world).await.len(), 1);
    assert_eq!(active(&world).await[0].id.to_string(), uid);
    assert!(!secret.data.unwrap()["token"].0.is_empty());
    world
        .assert_condition("t-one", "TokenFresh", ConditionStatus::True, "")
        .await;
    world.assert_settled("t-one").await;
    // The periodic pass is nearer than the renewal: at that one it is found again.
    assert!(passed.due.unwrap().at < expires);

    world.clock.advance(DAY * 21);
    world.converge("t-one").await;
    let renewed = world.secrets().get("t-one-token").await.unwrap();
    assert_ne!(renewed.annotations()["lieutenant.syn.tools/accessTokenUID"], uid);
    assert_eq!(
        active(&world).await.len(),
        2,
        "whoever has the older one is not cut off"
    );
    world.converge("t-one").await;
    world.assert_settled("t-one").await;
    world.clock.advance(DAY + SignedDuration::from_mins(1));
    world.converge("t-one").await;
    assert_eq!(active(&world).await.len(), 1);
    world.converge("t-one").await;
    world.assert_settled("t-one").await;

    // Nobody wants it any more.
    world.write("t-one", json!({})).await;
    world.converge("t-one").await;
    assert!(active(&world).await.is_empty());
    assert!(world.secrets().get_opt("t-one-token").await.unwrap().is_none());
    world.assert_settled("t-one").await;
}

/// The moment is exact, whatever the interval.
#[tokio::test]
async fn the_renewal_is_due_at_its_moment() {
    let site = Site::gitlab().await;
    let settings = evenkeel_operator::GitRepoSettings {
        interval: std::time::Duration::from_secs(365 * 24 * 3600),
        ..Default::default()
    };
    let world = World::with(&site, settings).await;
    world
        .write("t-one", json!({ "accessToken": { "secretRef": "t-one-token" } }))
        .await;
    world.converge("t-one").await;
    let passed = world.converge("t-one").await;
    let secret = world.secrets().get("t-one-token").await.unwrap();
    let expires: Timestamp = secret.annotations()["lieutenant.syn.tools/accessTokenExpiresAt"]
        .parse()
        .unwrap();
    let due = passed.due.unwrap();
    assert_eq!(due.at, expires - DAY * 10, "{due:?}");
}

/// A31: one that was made and never stored is of no use to anybody.
#[tokio::test]
async fn a_token_that_never_reached_its_secret_is_replaced_and_revoked() {
    let site = Site::gitlab().await;
    let world = World::new(&site).await;
    world
        .write("t-one", json!({ "accessToken": { "secretRef": "t-one-token" } }))
        .await;
    world.converge("t-one").await;
    world
        .secrets()
        .delete("t-one-token", &Default::default())
        .await
        .unwrap();
    world.converge("t-one").await;
    assert_eq!(active(&world).await.len(), 2);
    world.converge("t-one").await;
    world.clock.advance(DAY + SignedDuration::from_mins(1));
    world.converge("t-one").await;
    let left = active(&world).await;
    let secret = world.secrets().get("t-one-token").await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(
        left[0].id.to_string(),
        secret.annotations()["lieutenant.syn.tools/accessTokenUID"]
    );
    // Into the archive no token goes along.
    world.delete("t-one").await;
    world.converge("t-one").await;
    assert!(world.is_gone("t-one").await);
    let project = world.project("t-one").await.unwrap();
    assert!(project.is_archived);
    assert!(active(&world).await.is_empty());
}

/// A Secret of somebody else is not written over.
#[tokio::test]
async fn a_secret_that_is_there_is_not_taken() {
    let site = Site::gitlab().await;
    let world = World::new(&site).await;
    world.secret("theirs", &json!({ "token": "theirs" })).await;
    world
        .write("t-one", json!({ "accessToken": { "secretRef": "theirs" } }))
        .await;
    world.pass("t-one").await;
    world
        .assert_condition(
            "t-one",
            "TokenFresh",
            ConditionStatus::False,
            "is not of this object",
        )
        .await;
    assert_eq!(
        world.secrets().get("theirs").await.unwrap().data.unwrap()["token"].0,
        b"theirs"
    );
    assert!(active(&world).await.is_empty());
}

#[tokio::test]
async fn a_host_without_such_tokens_is_told() {
    let world = World::new(&Site::Gitea).await;
    world
        .write("t-one", json!({ "accessToken": { "secretRef": "t-one-token" } }))
        .await;
    world.pass("t-one").await;
    world
        .assert_condition("t-one", "TokenFresh", ConditionStatus::False, "use a deploy key")
        .await;
    world
        .assert_condition("t-one", "RepoReady", ConditionStatus::True, "")
        .await;
}
