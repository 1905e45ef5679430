//! Deploy keys (A35, B17).

use evenkeel_operator::git::PublicKey;
use evenkeel_steps::FailureClass;

use super::{Site, at_every_host};

at_every_host!(
    keys_are_added_listed_and_deleted,
    more_keys_than_a_page_are_all_listed,
    what_is_no_key_is_refused,
);

/// A valid key, a different one for each number.
fn key(number: usize) -> PublicKey {
    // The 32 bytes of an Ed25519 key are the last of its 51; the number is put where only whole characters change.
    let mut text = "AAAAC3NzaC1lZDI1NTE5AAAAIJ22mHNYfSPnLAj8YiKa0RmxafD9r5nEUquizay7xh3s".to_owned();
    text.replace_range(40..48, &format!("{number:08}"));
    PublicKey::new("ssh-ed25519", &text).unwrap()
}

async fn keys_are_added_listed_and_deleted(site: &Site) {
    let host = site.host();
    let project = site.new_project().await;
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
async fn more_keys_than_a_page_are_all_listed(site: &Site) {
    let host = site.host();
    let project = site.new_project().await;
    let count = site.more_than_a_page();
    for number in 0..count {
        host.add_deploy_key(&project, &format!("k{number}"), &key(1000 + number), false)
            .await
            .unwrap();
    }
    let keys = host.deploy_keys(&project).await.unwrap();
    assert_eq!(keys.len(), count);
}

async fn what_is_no_key_is_refused(site: &Site) {
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
    let host = site.host();
    let project = site.new_project().await;
    let broken = PublicKey::new("ssh-ed25519", "bm8ga2V5").unwrap();
    let error = host
        .add_deploy_key(&project, "k", &broken, false)
        .await
        .unwrap_err();
    assert_eq!(error.class(), FailureClass::Invalid, "{error}");
    assert!(error.to_string().contains("deploy key k"), "{error}");
}
