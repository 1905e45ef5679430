//! The pipelines themselves: what every kind has (L24), and their shape.

use std::sync::Arc;

use evenkeel_core::ManualClock;
use evenkeel_operator::{Clusters, GitRepoSettings, GitRepos, TenancySettings, Tenants};
use evenkeel_telemetry::Tasks;
use jiff::Timestamp;
use kube::{Client, Config};

fn pipelines() -> [[String; 2]; 3] {
    evenkeel_testkit::install_crypto_provider();
    let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
    let clock = || Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
    [
        Tenants::new(client.clone(), TenancySettings::default(), clock())
            .unwrap()
            .describe(),
        Clusters::new(client.clone(), TenancySettings::default(), None, clock())
            .unwrap()
            .describe(),
        GitRepos::new(client, GitRepoSettings::default(), clock(), Tasks::new())
            .unwrap()
            .describe(),
    ]
}

/// L24: it is registered once, and no kind can be without it. What touches anything comes after.
#[tokio::test]
async fn every_kind_claims_its_object_before_anything_else_and_lets_go_of_it_last() {
    for [towards, away] in pipelines() {
        let first = towards.lines().find(|line| line.starts_with("  1. "));
        assert_eq!(first, Some("  1. claim"), "{towards}");
        let last = away.lines().rfind(|line| line.get(3..5) == Some(". "));
        assert!(last.is_some_and(|line| line.ends_with(". release")), "{away}");
        let unordered = towards
            .split("\n")
            .filter(|line| line.get(3..5) == Some(". "))
            .count();
        let ordered = towards
            .lines()
            .filter(|line| line.trim_start().starts_with("after "))
            .count();
        assert_eq!(
            unordered,
            ordered + 1,
            "all but the claim come after something: {towards}"
        );
    }
}
