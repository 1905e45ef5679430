//! `evenkeel plan`, and readiness rules of one's own.

use serde_json::Value;

use super::fixture::{Env, WEB, real, simulated};
use super::{PoisonError, REAL};
use crate::ran::Ran;

#[test]
fn fields_are_shown_on_a_simulated_cluster() {
    fields_are_shown(&simulated());
}

#[test]
fn fields_are_shown_on_a_real_cluster() {
    let _one = REAL.lock().unwrap_or_else(PoisonError::into_inner);
    fields_are_shown(&real());
}

/// A plan shows the fields that change, in words and as JSON, and changes nothing.
fn fields_are_shown(env: &Env) {
    env.chart("web", WEB);
    let components = ["--namespace", "planned", "--component", "web=./web"];
    env.local(&components).exits(0);
    let plan = |more: &[&str]| {
        let mut command = env.command();
        command
            .args(["plan", "--kubeconfig", "kubeconfig"])
            .args([&components, more].concat());
        Ran::of(command.output().unwrap())
    };
    let mark = env.target.mark();
    let unchanged = plan(&[]).exits(0);
    assert!(
        unchanged.stdout.contains("web in namespace planned: 3 none"),
        "{}",
        unchanged.stdout
    );
    assert!(!unchanged.stdout.contains("->"), "{}", unchanged.stdout);
    let changes = ["--set", "web.replicas=0", "--set", "web.greeting=good night"];
    let told = plan(&changes).exits(0).stdout;
    for line in [
        "update  Deployment.apps/web",
        "  ~ spec.replicas: 1 -> 0",
        "  ~ data.greeting: \"hello\" -> \"good night\"",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    let json = plan(&[&changes[..], &["-o", "json"]].concat()).exits(0).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    let diffs = json["components"][0]["diffs"].as_array().unwrap();
    let fields = diffs.iter().flat_map(|diff| diff["fields"].as_array().unwrap());
    let replicas = fields
        .filter(|field| field["path"] == "spec.replicas")
        .collect::<Vec<_>>();
    assert_eq!(
        (&replicas[0]["before"], &replicas[0]["after"]),
        (&Value::from(1), &Value::from(0))
    );
    let writes: Vec<String> = env.target.writes(&mark);
    let dry = |write: &String| write.contains("dryRun=All") || write.contains("dry");
    assert!(
        writes.iter().all(dry)
            || env.target.get("apps/v1", "Deployment", "planned", "web").unwrap()["spec"]["replicas"] == 1,
        "{writes:?}"
    );
    let live = env.target.get("v1", "ConfigMap", "planned", "web").unwrap();
    assert_eq!(live["data"]["greeting"], "hello");
    env.local(&["--delete", "--component", "web"]).exits(0);
}

/// A component of one command may say when its objects are ready, as one of a document may.
#[test]
fn readiness_rules_of_a_file_decide() {
    let env = simulated();
    env.chart("web", WEB);
    let rules = |ready: &str| {
        format!(
            "- apiVersion: v1\n  kind: ConfigMap\n  name: web\n  ready: {ready}\n  message: \"'says ' + data.greeting\"\n"
        )
    };
    env.write("rules.yaml", &rules("data.greeting == 'good morning'"));
    let components = [
        "--namespace",
        "apps",
        "--component",
        "web=./web",
        "--readiness",
        "web=rules.yaml",
    ];
    let with = |more: &[&str]| env.local(&[&components, more].concat());
    let refused = with(&["--timeout", "2s"]).exits(1);
    assert!(refused.stderr.contains("says hello"), "{}", refused.stderr);
    with(&["--set", "web.greeting=good morning"]).exits(0);
    env.write("rules.yaml", &rules("dat.greeting == 'x'"));
    let wrong = with(&[]).exits(1);
    assert!(
        wrong
            .stderr
            .contains("rules.yaml: readiness[0].ready: line 1, column 1: unknown name dat"),
        "{}",
        wrong.stderr
    );
}
