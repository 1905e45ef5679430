//! Deploy keys (A35, B17).

use evenkeel_operator::git::{GitHost as _, PublicKey};
use evenkeel_steps::FailureClass;
use evenkeel_testkit::gitea;
use reqwest::Method;
use serde_json::json;

use super::{host, new_project};

/// A valid key, a different one for each number.
fn key(number: usize) -> PublicKey {
    // The 32 bytes of an Ed25519 key are the last of its 51; the number is put where only whole characters change.
    let mut text = "AAAAC3NzaC1lZDI1NTE5AAAAIJ22mHNYfSPnLAj8YiKa0RmxafD9r5nEUquizay7xh3s".to_owned();
    text.replace_range(40..48, &format!("{number:08}"));
    PublicKey::new("ssh-ed25519", &text).unwrap()
}

#[tokio::test]
async fn keys_are_added_listed_and_deleted() {
    let host = host();
    let project = new_project(&host).await;
    assert_eq!(host.deploy_keys(&project).await.unwrap(), []);
    host.add_deploy_key(&project, "steward", &key(1), false)
        .await
        .unwrap();
    host.add_deploy_key(&project, "ci", &key(2), true).await.unwrap();
    let mut keys = host.deploy_keys(&project).await.unwrap();
    keys.sort_by(|a, b| a.title.cmp(&b.title));
    let seen: Vec<_> = keys
        .iter()
        .map(|present| (present.title.as_str(), present.key.clone(), present.may_write))
        .collect();
    assert_eq!(seen, [("ci", key(2), true), ("steward", key(1), false)]);
    host.delete_deploy_key(&project, keys[0].id).await.unwrap();
    host.delete_deploy_key(&project, keys[0].id).await.unwrap();
    let left = host.deploy_keys(&project).await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].title, "steward");
    // Another right is another key: it is deleted and added.
    host.delete_deploy_key(&project, left[0].id).await.unwrap();
    host.add_deploy_key(&project, "steward", &key(1), true)
        .await
        .unwrap();
    assert!(host.deploy_keys(&project).await.unwrap()[0].may_write);
}

/// B17: the second page is read too.
#[tokio::test]
async fn more_keys_than_a_page_are_all_listed() {
    let host = host();
    let project = new_project(&host).await;
    for number in 0..60 {
        let body = json!({ "title": format!("k{number}"), "key": key(1000 + number).to_string(), "read_only": true });
        gitea()
            .call(Method::POST, &format!("repos/{}/keys", project.path), body)
            .unwrap();
    }
    let keys = host.deploy_keys(&project).await.unwrap();
    assert_eq!(keys.len(), 60);
}

#[tokio::test]
async fn what_is_no_key_is_refused() {
    for (kind, text) in [
        ("", "AAAA"),
        ("ssh-ed25519", ""),
        ("ssh ed25519", "AAAA"),
        ("ssh-ed25519", "AA AA"),
    ] {
        assert!(PublicKey::new(kind, text).is_err(), "{kind:?} {text:?}");
    }
    assert!(PublicKey::parse("ssh-ed25519").is_err());
    // A comment is not part of a key, nor is the end of a line.
    let line = format!("{} somebody@example.org\n", key(1));
    assert_eq!(PublicKey::parse(&line).unwrap(), key(1));
    let host = host();
    let project = new_project(&host).await;
    let broken = PublicKey::new("ssh-ed25519", "bm8ga2V5").unwrap();
    let error = host
        .add_deploy_key(&project, "k", &broken, false)
        .await
        .unwrap_err();
    assert_eq!(error.class(), FailureClass::Invalid, "{error}");
    assert!(error.to_string().contains("deploy key k"), "{error}");
}
