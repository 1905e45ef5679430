//! `evenkeel local`, run as a user runs it: on simulated clusters, and the main ways on a real one.

mod conflicts;
mod consent;
mod errors;
pub(crate) mod fixture;
mod formats;
mod hooks;
mod interrupt;
mod no_kubectl;
mod plan;
mod signed;

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use fixture::{Env, PLAIN, WEB, real, simulated};

/// One at a time on the real cluster: who deletes the last component takes the common namespace along.
static REAL: Mutex<()> = Mutex::new(());

#[test]
fn lives_on_a_simulated_cluster() {
    lives(&simulated());
}

#[test]
fn lives_on_a_real_cluster() {
    let _one = REAL.lock().unwrap_or_else(PoisonError::into_inner);
    lives(&real());
}

/// Plan, install, run again, change, prune, delete.
fn lives(env: &Env) {
    env.chart("web", WEB);
    env.chart("extra", PLAIN);
    env.write("v.yaml", "greeting: good morning\n");
    let target = &env.target;
    let components = [
        "--namespace",
        "apps",
        "--namespace",
        "extra=more",
        "--component",
        "web=./web",
        "--component",
        "extra=./extra",
        "--depends-on",
        "web=extra",
        "--values",
        "web=v.yaml",
    ];
    let with = |more: &[&str]| env.local(&[&components, more].concat());
    let exists = |kind: &str, namespace: &str, name: &str| target.get("v1", kind, namespace, name).is_some();

    let mark = target.mark();
    let planned = with(&["--plan"]).exits(0);
    assert!(
        planned.stdout.contains("web in namespace apps: 4 create"),
        "{}",
        planned.stdout
    );
    for object in [
        "Namespace/apps",
        "Deployment.apps/web",
        "Service/web",
        "ConfigMap/web in namespace apps",
    ] {
        assert!(
            planned.stdout.contains(&format!("create  {object}")),
            "{object}: {}",
            planned.stdout
        );
    }
    assert_eq!(target.writes(&mark), [""; 0]);
    assert!(!exists("Namespace", "", "apps") && !exists("Namespace", "", "evenkeel-system"));

    let installed = with(&["--set", "web.replicas=2"]).exits(0);
    assert_eq!(
        installed.row("web")[..7],
        ["web", "ready", "1", "4", "0", "0", "0"]
    );
    assert_eq!(
        installed.row("extra")[..7],
        ["extra", "ready", "1", "2", "0", "0", "0"]
    );
    let deployment = target.get("apps/v1", "Deployment", "apps", "web").unwrap();
    assert_eq!(deployment.pointer("/status/readyReplicas"), Some(&Value::from(2)));
    let greeting = target.get("v1", "ConfigMap", "apps", "web").unwrap();
    assert_eq!(
        greeting.pointer("/data/greeting"),
        Some(&Value::from("good morning"))
    );
    assert!(exists("ConfigMap", "more", "extra"));

    let mark = target.mark();
    let again = with(&["--set", "web.replicas=2"]).exits(0);
    assert_eq!(again.row("web")[..7], ["web", "ready", "1", "0", "0", "3", "0"]);
    assert_eq!(target.writes(&mark), [""; 0]);
    let planned = with(&["--set", "web.replicas=2", "--plan"]).exits(0);
    assert!(
        planned.stdout.contains("web in namespace apps: 3 none"),
        "{}",
        planned.stdout
    );
    assert_eq!(target.writes(&mark), [""; 0]);

    let changed = with(&["--set", "web.replicas=1"]).exits(0);
    assert_eq!(changed.row("web")[..7], ["web", "ready", "2", "0", "1", "2", "0"]);
    assert_eq!(
        changed.row("extra")[..7],
        ["extra", "ready", "1", "0", "0", "1", "0"]
    );
    let deployment = target.get("apps/v1", "Deployment", "apps", "web").unwrap();
    assert_eq!(deployment.pointer("/spec/replicas"), Some(&Value::from(1)));

    std::fs::remove_file(env.path("web/templates/service.yaml")).unwrap();
    let pruned = with(&["--set", "web.replicas=1"]).exits(0);
    assert_eq!(pruned.row("web")[..7], ["web", "ready", "3", "0", "0", "2", "1"]);
    assert!(!exists("Service", "apps", "web"));

    let mark = target.mark();
    let planned = with(&["--delete", "--plan"]).exits(0);
    assert!(
        planned.stdout.contains("delete  Deployment.apps/web"),
        "{}",
        planned.stdout
    );
    assert_eq!(target.writes(&mark), [""; 0]);

    let deleted = env.local(&[
        "--component",
        "web",
        "--component",
        "extra",
        "--depends-on",
        "web=extra",
        "--delete",
    ]);
    let deleted = deleted.exits(0);
    assert_eq!(deleted.row("web")[1], "deleted");
    // What waits for others goes before them.
    let lines: Vec<_> = deleted
        .stdout
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(lines, ["COMPONENT", "web", "extra"]);
    assert!(target.get("apps/v1", "Deployment", "apps", "web").is_none());
    for namespace in ["apps", "more", "evenkeel-system"] {
        assert!(
            !exists("Namespace", "", namespace),
            "namespace {namespace} is still there"
        );
    }
    with(&["--delete"]).exits(0);
}

#[test]
fn a_password_is_made_once_on_a_simulated_cluster() {
    a_password_is_made_once(&simulated());
}

#[test]
fn a_password_is_made_once_on_a_real_cluster() {
    let _one = REAL.lock().unwrap_or_else(PoisonError::into_inner);
    let env = real();
    a_password_is_made_once(&env);
    env.local(&["--component", "db", "--delete"]).exits(0);
}

fn a_password_is_made_once(env: &Env) {
    let chart = format!("db={}/../../examples/database", env!("CARGO_MANIFEST_DIR"));
    let run = |more: &[&str]| {
        env.local(&[&["-n", "data", "--component", &chart], more].concat())
            .exits(0)
    };
    let password = || {
        let secret = env
            .target
            .get("v1", "Secret", "data", "db-database")
            .expect("the chart makes a Secret");
        secret
            .pointer("/data/password")
            .and_then(Value::as_str)
            .unwrap()
            .to_owned()
    };
    run(&[]);
    let first = password();
    assert!(first.len() > 20);
    let mark = env.target.mark();
    run(&[]);
    assert_eq!(
        (password(), env.target.writes(&mark)),
        (first.clone(), Vec::new())
    );

    // Drift of something else is healed, and the password stays.
    match &env.target {
        fixture::Target::Simulated(cluster) => {
            cluster.delete("v1", "Service", "data", "db-database").unwrap()
        }
        fixture::Target::Real(cluster) => {
            let arguments = ["-n", "data", "delete", "service", "db-database"];
            assert!(
                cluster
                    .kubectl()
                    .args(arguments)
                    .output()
                    .unwrap()
                    .status
                    .success()
            );
        }
    }
    let healed = run(&[]);
    assert_eq!(healed.row("db")[2..4], ["1", "1"]);
    assert_eq!(password(), first);
}

#[test]
fn without_waiting_it_returns_at_once() {
    let env = simulated();
    env.chart("web", WEB);
    let run = [
        "-n",
        "apps",
        "--component",
        "web=web",
        "--set",
        "web.behaviour=stuck",
    ];
    let applied = env.local(&[&run[..], &["--wait=false"]].concat()).exits(0);
    assert_eq!(applied.row("web")[1], "applied");
    let deployment = env.target.get("apps/v1", "Deployment", "apps", "web").unwrap();
    assert_eq!(
        deployment
            .pointer("/status/readyReplicas")
            .and_then(Value::as_u64)
            .unwrap_or_default(),
        0
    );

    // Who waits is told what is not ready.
    let late = env.local(&[&run[..], &["--timeout", "1s"]].concat()).exits(1);
    late.says(&[
        "error: component web: ",
        "Deployment.apps/web",
        "1 of 1 components failed",
    ]);
}

#[test]
fn a_program_reads_the_result() {
    let env = simulated();
    env.chart("web", WEB);
    let ran = env
        .local(&["-n", "apps", "--component", "web=web", "-o", "json"])
        .exits(0);
    assert_eq!(ran.stderr, "");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let web = report.pointer("/components/0").unwrap();
    assert_eq!(
        (&web["name"], &web["state"], &web["revision"]),
        (&"web".into(), &"ready".into(), &1.into())
    );
    assert_eq!(web.pointer("/objects/created"), Some(&Value::from(4)));
    assert_eq!(
        web.pointer("/changes/0/object/kind"),
        Some(&Value::from("Namespace"))
    );
    let planned = env
        .local(&["-n", "apps", "--component", "web=web", "-o", "yaml", "--plan"])
        .exits(0);
    assert!(planned.stdout.contains("state: planned") && planned.stdout.contains("action: none"));
}

#[test]
fn components_that_wait_for_none_run_beside_each_other() {
    let env = simulated();
    env.chart("web", WEB);
    let mut arguments = vec!["-n", "apps", "--timeout", "30s"];
    for component in ["a=web", "b=web", "c=web", "d=web", "e=web", "f=web"] {
        arguments.extend(["--component", component]);
    }
    let ran = env.local(&arguments).exits(0);
    for component in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(ran.row(component)[1], "ready");
    }
}

#[test]
fn an_archive_is_a_chart_too() {
    let env = simulated();
    env.chart("plain", PLAIN);
    let packed = std::process::Command::new("tar")
        .args(["-czf", "plain-1.0.0.tgz", "plain"])
        .current_dir(env.path(""))
        .status();
    assert!(packed.unwrap().success());
    let ran = env
        .local(&["-n", "apps", "--component", "plain=plain-1.0.0.tgz"])
        .exits(0);
    assert_eq!(ran.row("plain")[..4], ["plain", "ready", "1", "2"]);
}

#[test]
fn what_another_fleet_installed_is_taken_only_when_told() {
    let env = simulated();
    env.chart("plain", PLAIN);
    let run = ["-n", "apps", "--component", "plain=plain"];
    let as_fleet = |more: &[&str]| env.local(&[&run[..], &["--fleet-name", "prod"], more].concat());
    as_fleet(&[]).exits(0);
    let mark = env.target.mark();
    let refused = env.local(&run).exits(1);
    refused.says(&["component plain", "belongs to fleet \"prod\", cluster \"local\""]);
    env.local(&[&run[..], &["--delete"]].concat())
        .exits(1)
        .says(&["belongs to fleet \"prod\""]);
    assert_eq!(env.target.writes(&mark), [""; 0]);

    env.local(&[&run[..], &["--adopt"]].concat()).exits(0);
    env.local(&run).exits(0);
    as_fleet(&[]).exits(1).says(&["belongs to fleet \"local\""]);
}

#[test]
fn the_kubeconfig_is_found_as_kubectl_finds_it() {
    let env = simulated();
    env.chart("plain", PLAIN);
    let config = env.target.simulated().kubeconfig().to_owned();
    let run = |kubeconfig: Option<&str>, more: &[&str]| {
        let mut command = env.command();
        command
            .args(["local", "--component", "plain=plain", "--plan"])
            .args(more);
        if let Some(kubeconfig) = kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        crate::ran::Ran::of(command.output().unwrap())
    };
    run(None, &[])
        .exits(1)
        .says(&[".kube/config cannot be read", "--kubeconfig"]);
    env.write(".kube/config", &config);
    run(None, &[]).exits(0);
    run(Some(""), &[]).exits(0);
    run(Some("missing:kubeconfig"), &[]).exits(0);
    run(Some("missing"), &[])
        .exits(1)
        .says(&["kubeconfig missing cannot be read"]);
    run(Some("missing"), &["--kubeconfig=~/.kube/config"]).exits(0);
    run(None, &["--context", "other"])
        .exits(1)
        .says(&["it has no context \"other\": there are local-"]);

    // A certificate in a file beside the kubeconfig.
    let authority = config
        .lines()
        .find_map(|line| line.trim().strip_prefix("certificate-authority-data: "))
        .unwrap();
    let mut decode = std::process::Command::new("base64");
    env.write("ca.b64", authority);
    let pem = decode.arg("-d").arg(env.path("ca.b64")).output().unwrap();
    env.write("other/ca.crt", &String::from_utf8(pem.stdout).unwrap());
    let with_file = config.replace(
        &format!("certificate-authority-data: {authority}"),
        "certificate-authority: ca.crt",
    );
    env.write("other/config", &with_file);
    run(Some("other/config"), &[]).exits(0);

    // A program only when allowed.
    let token = env.target.simulated().token().to_owned();
    let with_exec = config.replace(
        &format!("token: {token}"),
        "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: ./login}",
    );
    assert_ne!(with_exec, config);
    env.write("other/exec", &with_exec);
    let credential = format!(
        "#!/bin/sh\necho '{{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \
         \"status\": {{\"token\": \"{token}\"}}}}'\n"
    );
    env.write("other/login", &credential);
    let mut allow = std::process::Command::new("chmod");
    assert!(
        allow
            .arg("+x")
            .arg(env.path("other/login"))
            .status()
            .unwrap()
            .success()
    );
    run(Some("other/exec"), &[])
        .exits(1)
        .says(&["users[0].user.exec", "--allow-exec"]);
    run(Some("other/exec"), &["--allow-exec"]).exits(0);
}
