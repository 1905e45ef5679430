//! Deploy keys (B17, B18, A35).

use evenkeel_operator::git::PublicKey;
use evenkeel_operator::resources::ConditionStatus;
use serde_json::json;

use super::{KEY, OTHER_KEY, World};
use crate::git::{Site, at_every_host};

at_every_host!(
    keys_follow_the_specification_and_those_added_by_hand_stay,
    a_key_that_is_none_keeps_no_other_away,
    generated_pairs_are_made_kept_replaced_and_taken_away,
);

async fn titles(world: &World<'_>, name: &str) -> Vec<(String, bool)> {
    let project = world.project(name).await.unwrap();
    let keys = world.host().deploy_keys(&project).await.unwrap();
    let mut titles: Vec<_> = keys.into_iter().map(|key| (key.title, key.may_write)).collect();
    titles.sort();
    titles
}

fn of(titles: &[(&str, bool)]) -> Vec<(String, bool)> {
    titles
        .iter()
        .map(|(title, may_write)| ((*title).to_owned(), *may_write))
        .collect()
}

async fn keys_follow_the_specification_and_those_added_by_hand_stay(site: &Site) {
    let world = World::new(site).await;
    world
        .write(
            "keys",
            json!({ "deployKeys": { "k1": { "type": "ssh-ed25519", "key": KEY } } }),
        )
        .await;
    world.converge("keys").await;
    assert_eq!(titles(&world, "keys").await, of(&[("k1", false)]));
    let project = world.project("keys").await.unwrap();
    let by_hand = PublicKey::new("ssh-ed25519", OTHER_KEY).unwrap();
    world
        .host()
        .add_deploy_key(&project, "by hand", &by_hand, true)
        .await
        .unwrap();
    // The right changes.
    let may_write =
        json!({ "deployKeys": { "k1": { "type": "ssh-ed25519", "key": KEY, "writeAccess": true } } });
    world.write("keys", may_write).await;
    world.converge("keys").await;
    assert_eq!(
        titles(&world, "keys").await,
        of(&[("by hand", true), ("k1", true)])
    );
    // Another title for the same key, as the recorded step 4 has it.
    world
        .write(
            "keys",
            json!({ "deployKeys": { "k2": { "type": "ssh-ed25519", "key": KEY } } }),
        )
        .await;
    world.converge("keys").await;
    assert_eq!(
        titles(&world, "keys").await,
        of(&[("by hand", true), ("k2", false)])
    );
    world.assert_settled("keys").await;
    // One that somebody took away comes back.
    let keys = world.host().deploy_keys(&project).await.unwrap();
    let ours = keys.iter().find(|key| key.title == "k2").unwrap();
    world.host().delete_deploy_key(&project, ours.id).await.unwrap();
    world.converge("keys").await;
    world.write("keys", json!({})).await;
    world.converge("keys").await;
    assert_eq!(titles(&world, "keys").await, of(&[("by hand", true)]));
    world.assert_settled("keys").await;
}

async fn a_key_that_is_none_keeps_no_other_away(site: &Site) {
    let world = World::new(site).await;
    let keys = json!({
        "bad": { "type": "ssh-ed25519" }, "worse": { "type": "ssh-ed25519", "key": "AAAA" },
        "good": { "type": "ssh-ed25519", "key": KEY },
    });
    world
        .write(
            "keys",
            json!({ "deployKeys": keys, "templateFiles": { "a.yml": "a" } }),
        )
        .await;
    world.pass("keys").await;
    assert_eq!(titles(&world, "keys").await, of(&[("good", false)]));
    world
        .assert_condition(
            "keys",
            "DeployKeysSynced",
            ConditionStatus::False,
            "the deploy key bad",
        )
        .await;
    world
        .assert_condition("keys", "DeployKeysSynced", ConditionStatus::False, "worse")
        .await;
    world
        .assert_condition("keys", "FilesSynced", ConditionStatus::True, "")
        .await;
    assert_eq!(world.status("keys").await.phase.as_deref(), Some("failed"));
    assert_eq!(world.status("keys").await.url, Some(world.url("keys")));
}

async fn generated_pairs_are_made_kept_replaced_and_taken_away(site: &Site) {
    let world = World::new(site).await;
    let spec = |kind: &str, may_write: bool| json!({ "generatedDeployKeys": { "g1": { "type": kind, "writeAccess": may_write } } });
    world.write("pairs", spec("ssh-ed25519", false)).await;
    world.converge("pairs").await;
    let secret = world.secrets().get("pairs-deploy-key-g1").await.unwrap();
    let data = secret.data.clone().unwrap();
    let text = |key: &str| String::from_utf8(data[key].0.clone()).unwrap();
    assert!(text("privateKey").starts_with("-----BEGIN OPENSSH PRIVATE KEY-----\n"));
    let status = world.status("pairs").await.generated_deploy_keys["generated-g1"].clone();
    assert_eq!(text("publicKey"), format!("ssh-ed25519 {}", status.key.unwrap()));
    assert_eq!(status.secret_ref.unwrap().name, "pairs-deploy-key-g1");
    let owner = &secret.metadata.owner_references.unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.controller), ("GitRepo", Some(true)));
    assert_eq!(titles(&world, "pairs").await, of(&[("generated-g1", false)]));
    // The right changes, and the pair stays.
    world.write("pairs", spec("ssh-ed25519", true)).await;
    world.converge("pairs").await;
    assert_eq!(titles(&world, "pairs").await, of(&[("generated-g1", true)]));
    assert_eq!(
        world
            .secrets()
            .get("pairs-deploy-key-g1")
            .await
            .unwrap()
            .data
            .unwrap(),
        data
    );
    // Whoever deletes the Secret gets another pair.
    world
        .secrets()
        .delete("pairs-deploy-key-g1", &Default::default())
        .await
        .unwrap();
    world.converge("pairs").await;
    assert_ne!(
        world
            .secrets()
            .get("pairs-deploy-key-g1")
            .await
            .unwrap()
            .data
            .unwrap(),
        data
    );
    world.assert_settled("pairs").await;
    // Another type, another pair.
    world.write("pairs", spec("ssh-rsa", true)).await;
    world.converge("pairs").await;
    let secret = world.secrets().get("pairs-deploy-key-g1").await.unwrap();
    assert!(secret.data.unwrap()["publicKey"].0.starts_with(b"ssh-rsa "));
    let project = world.project("pairs").await.unwrap();
    let keys = world.host().deploy_keys(&project).await.unwrap();
    assert!(keys[0].key.to_string().starts_with("ssh-rsa "), "{keys:?}");
    // One whose Secret is gone already blocks nothing (B18).
    world
        .secrets()
        .delete("pairs-deploy-key-g1", &Default::default())
        .await
        .unwrap();
    world.write("pairs", json!({})).await;
    world.converge("pairs").await;
    assert!(titles(&world, "pairs").await.is_empty());
    assert!(world.status("pairs").await.generated_deploy_keys.is_empty());
    world.assert_settled("pairs").await;
}
