//! What steps declare that they ask for is what the shipped role allows: no less, and no more (E2, A10).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use evenkeel_core::ManualClock;
use evenkeel_goyaml::{Numbers, from_yaml_documents};
use evenkeel_operator::{Clusters, GitRepoSettings, GitRepos, LeaderSettings, TenancySettings, Tenants};
use evenkeel_steps::Permission;
use evenkeel_telemetry::Tasks;
use jiff::Timestamp;
use kube::{Client, Config};
use serde_json::Value;

/// Everything that is asked for, with those who ask.
fn declared() -> Vec<(String, Permission)> {
    evenkeel_testkit::install_crypto_provider();
    let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
    let clock = || Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
    let settings = TenancySettings::default();
    let mut declared = Tenants::new(client.clone(), settings.clone(), clock())
        .unwrap()
        .permissions();
    declared.extend(
        Clusters::new(client.clone(), settings, None, clock())
            .unwrap()
            .permissions(),
    );
    let repositories = GitRepos::new(client, GitRepoSettings::default(), clock(), Tasks::new());
    declared.extend(repositories.unwrap().permissions());
    let of_leader = LeaderSettings::permissions().into_iter();
    declared.extend(of_leader.map(|permission| ("leader".to_owned(), permission)));
    declared
}

/// What `deploy/operator/role.yaml` allows, as `verb target`.
fn allowed() -> BTreeSet<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/operator/role.yaml");
    let text = std::fs::read(file).unwrap();
    let mut documents = from_yaml_documents(&text, Numbers::Exact).unwrap().into_iter();
    let role = Value::try_from(documents.next().unwrap().value).unwrap();
    assert!(documents.next().is_none());
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().unwrap().iter();
        items.map(|item| item.as_str().unwrap().to_owned()).collect()
    };
    let mut allowed = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    let target = match (group.as_str(), resource.split_once('/')) {
                        ("", _) => resource.clone(),
                        (group, None) => format!("{resource}.{group}"),
                        (group, Some((kind, part))) => format!("{kind}.{group}/{part}"),
                    };
                    assert!(!target.contains('*') && verb != "*", "{rule}");
                    assert!(
                        allowed.insert(format!("{verb} {target}")),
                        "allowed twice: {verb} {target}"
                    );
                }
            }
        }
    }
    allowed
}

#[tokio::test]
async fn the_role_allows_what_is_declared_and_nothing_else() {
    let mut askers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (who, permission) in declared() {
        if permission.system == "kubernetes" {
            let key = format!("{} {}", permission.verb, permission.target);
            askers.entry(key).or_default().push(who);
        }
    }
    let allowed = allowed();
    let missing: Vec<_> = askers.iter().filter(|(key, _)| !allowed.contains(*key)).collect();
    assert!(missing.is_empty(), "the role lacks what these need: {missing:#?}");
    let idle: Vec<_> = allowed.iter().filter(|key| !askers.contains_key(*key)).collect();
    assert!(idle.is_empty(), "the role allows what nobody declares: {idle:#?}");
}

/// A step that touches a Git host or Vault says how; none declares what would be done elsewhere.
#[tokio::test]
async fn every_permission_is_one_of_a_known_system() {
    let systems: BTreeSet<&str> = declared()
        .iter()
        .map(|(_, permission)| permission.system)
        .collect();
    assert_eq!(systems, BTreeSet::from(["git", "kubernetes", "vault"]));
}
