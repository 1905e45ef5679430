//! What others have set: taken, left, or a refusal that ends the run, as `--on-conflict` says.

use std::sync::PoisonError;

use serde_json::json;

use super::REAL;
use super::fixture::{Env, WEB, real, simulated};

#[test]
fn a_policy_decides_on_a_simulated_cluster() {
    a_policy_decides(&simulated());
}

#[test]
fn a_policy_decides_on_a_real_cluster() {
    let _one = REAL.lock().unwrap_or_else(PoisonError::into_inner);
    a_policy_decides(&real());
}

/// A conflict that the policy refuses ends the run with object, field and the other manager named, after one look; one that
/// is left or taken does not.
fn a_policy_decides(env: &Env) {
    env.chart("web", WEB);
    let components = ["--namespace", "contested", "--component", "web=./web"];
    let with = |greeting: &str, policy: &str| {
        let greeting = format!("web.greeting={greeting}");
        let more = ["--set", &greeting, "--on-conflict", policy, "--timeout", "10m"];
        env.local(&[&components[..], &more].concat())
    };
    let greeting = || {
        let map = env.target.get("v1", "ConfigMap", "contested", "web");
        map.and_then(|map| map["data"]["greeting"].as_str().map(str::to_owned))
    };
    env.local(&components).exits(0);
    let theirs = json!({"data": {"greeting": "theirs"}});
    env.target
        .edit("ConfigMap", "contested", "web", "somebody", &theirs);

    let refused = with("refused", "error").exits(1).says(&[
        "error: component web: ",
        "ConfigMap/web in namespace contested",
        ".data.greeting is owned by somebody",
        "--on-conflict",
    ]);
    assert!(
        !refused.stderr.contains("tried again"),
        "it is no use to try it again: {}",
        refused.stderr
    );
    assert_eq!(greeting().as_deref(), Some("theirs"));

    with("left", "leave").exits(0);
    assert_eq!(greeting().as_deref(), Some("theirs"), "it is left to them");
    // Nothing but the policy differs from the run before.
    with("left", "force").exits(0);
    assert_eq!(greeting().as_deref(), Some("left"), "it is taken");

    env.local(&[&components[..], &["--on-conflict", "ask"]].concat())
        .exits(2)
        .says(&["force", "leave", "error"]);
    env.local(&[&components[..], &["--delete"]].concat()).exits(0);
}
