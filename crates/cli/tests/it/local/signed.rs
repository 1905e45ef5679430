//! `local --verify`: nothing unsigned reaches a cluster.

use std::fs;
use std::path::PathBuf;

use super::fixture::{Env, PLAIN, simulated};
use crate::template::repository;

const CHART: &str = "signed-1.0.0.tgz";

fn data(path: &str) -> PathBuf {
    repository()
        .join("crates/source/tests/data/provenance")
        .join(path)
}

fn keys(name: &str) -> String {
    data(&format!("keys/{name}.asc")).display().to_string()
}

/// A signed chart beside the program.
fn with_chart() -> Env {
    let env = simulated();
    fs::copy(data(CHART), env.path(CHART)).unwrap();
    fs::copy(
        data("signatures/ed25519.prov"),
        env.path(&format!("{CHART}.prov")),
    )
    .unwrap();
    env
}

#[test]
fn a_chart_that_somebody_in_the_keyring_signed_is_applied() {
    let env = with_chart();
    let web = format!("web={CHART}");
    env.local(&["--component", &web, "--verify", "--keyring", &keys("ed25519")])
        .exits(0);
    assert!(env.target.get("v1", "ConfigMap", "default", "web").is_some());
    // What is deleted needs no chart, and so no signature.
    env.local(&["--component", "web", "--delete"]).exits(0);
}

#[test]
fn one_chart_that_is_refused_stops_all_before_anything_is_asked() {
    let env = with_chart();
    env.chart("plain", PLAIN);
    let web = format!("web={CHART}");
    env.local(&["--component", &web, "--verify", "--keyring", &keys("rsa")])
        .exits(1)
        .says(&[
            "component web",
            CHART,
            "keys/rsa.asc",
            "signature made by unknown entity",
        ]);
    let both = ["--component", &web, "--component", "plain=plain", "--verify"];
    env.local(&[&both[..], &["--keyring", &keys("ed25519")]].concat())
        .exits(1)
        .says(&["component plain", "unpacked charts cannot be verified"]);
    fs::remove_file(env.path(&format!("{CHART}.prov"))).unwrap();
    env.local(&["--component", &web, "--verify", "--keyring", &keys("ed25519")])
        .exits(1)
        .says(&["component web", "could not load provenance file"]);
    env.local(&["--component", &web, "--keyring", &keys("ed25519")])
        .exits(2)
        .says(&["--verify"]);
    assert_eq!(env.target.simulated().counters().requests(), 0);
}
