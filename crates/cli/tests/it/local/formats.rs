//! Components of plain manifests and of kustomizations.

use std::process::Command;

use serde_json::Value;

use super::fixture::{Env, real, simulated};
use super::{PoisonError, REAL};
use crate::ran::Ran;

fn kustomize() -> String {
    let program = evenkeel_testkit::realparts::kustomize().unwrap();
    program.to_str().unwrap().to_owned()
}

#[test]
fn live_on_a_simulated_cluster() {
    live(&simulated());
}

#[test]
fn live_on_a_real_cluster() {
    let _one = REAL.lock().unwrap_or_else(PoisonError::into_inner);
    live(&real());
}

/// Plan, install, run again, change, delete: the examples.
fn live(env: &Env) {
    env.example("probe");
    env.example("kustomized");
    let target = &env.target;
    let program = kustomize();
    let components = [
        "--namespace",
        "formats",
        "--component",
        "probe=./probe",
        "--component",
        "worker=./kustomized/overlays/prod",
        "--kustomize",
        &program,
    ];
    let with = |more: &[&str]| env.local(&[&components, more].concat());
    let get = |kind: &str, name: &str| {
        let api_version = if kind == "Deployment" { "apps/v1" } else { "v1" };
        target.get(api_version, kind, "formats", name)
    };
    let settings = |deployment: &Value| -> String {
        let pointer = "/spec/template/spec/containers/0/envFrom/0/configMapRef/name";
        deployment.pointer(pointer).unwrap().as_str().unwrap().to_owned()
    };

    let mark = target.mark();
    let planned = with(&["--plan"]).exits(0);
    for object in [
        "Deployment.apps/probe",
        "ConfigMap/probe-targets",
        "Deployment.apps/prod-worker",
    ] {
        assert!(
            planned.stdout.contains(&format!("create  {object}")),
            "{object}: {}",
            planned.stdout
        );
    }
    assert_eq!(target.writes(&mark), [""; 0]);

    let installed = with(&[]).exits(0);
    assert_eq!(installed.row("probe")[..3], ["probe", "ready", "1"]);
    assert_eq!(installed.row("worker")[..3], ["worker", "ready", "1"]);
    let worker = get("Deployment", "prod-worker").unwrap();
    assert_eq!(worker.pointer("/status/readyReplicas"), Some(&Value::from(2)));
    let first = settings(&worker);
    assert_eq!(
        get("ConfigMap", &first).unwrap().pointer("/data/QUEUE"),
        Some(&Value::from("orders"))
    );
    assert!(get("Service", "probe").is_some());

    let mark = target.mark();
    with(&[]).exits(0);
    assert_eq!(target.writes(&mark), [""; 0]);

    env.write("kustomized/overlays/prod/settings.env", "QUEUE=returns\n");
    std::fs::remove_file(env.path("probe/targets.json")).unwrap();
    let changed = with(&[]).exits(0);
    assert_eq!(changed.row("worker")[..3], ["worker", "ready", "2"]);
    let second = settings(&get("Deployment", "prod-worker").unwrap());
    assert_ne!(first, second);
    assert!(get("ConfigMap", &second).is_some() && get("ConfigMap", &first).is_none());
    assert!(get("ConfigMap", "probe-targets").is_none());

    with(&["--delete"]).exits(0);
    assert!(get("Deployment", "prod-worker").is_none() && get("Deployment", "probe").is_none());
}

#[test]
fn archives_with_and_without_a_folder_around_everything_are_sources() {
    let env = simulated();
    env.example("probe");
    env.example("kustomized");
    let pack = |archive: &str, from: &str, what: &str| {
        let mut tar = Command::new("tar");
        tar.current_dir(env.path("."));
        assert!(
            tar.args(["-czf", archive, "-C", from, what])
                .status()
                .unwrap()
                .success()
        );
    };
    pack("bare.tgz", "probe", ".");
    pack("wrapped.tgz", ".", "probe");
    pack("kustomized.tgz", "kustomized", "base");
    let program = kustomize();
    for (component, file) in [
        ("bare", "bare.tgz"),
        ("wrapped", "wrapped.tgz"),
        ("kustomized", "kustomized.tgz"),
    ] {
        let source = format!("{component}=./{file}");
        let arguments = [
            "--namespace",
            component,
            "--component",
            &source,
            "--kustomize",
            &program,
        ];
        let ran = env.local(&arguments).exits(0);
        assert_eq!(ran.row(component)[..2], [component, "ready"]);
    }
}

fn refused(env: &Env, arguments: &[&str], code: i32, expected: &str) -> Ran {
    let ran = env.local(arguments).exits(code);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains(expected), "{expected:?} is not in {said}");
    ran
}

#[test]
fn what_cannot_be_built_says_what_to_do() {
    let env = simulated();
    env.example("probe");
    env.example("kustomized");
    env.write("empty/README.md", "nothing here\n");
    let worker = ["--component", "worker=./kustomized/base"];

    let mut command = env.command();
    command.args(["local", "--kubeconfig", "kubeconfig"]).args(worker);
    command.env("PATH", env.path("nowhere"));
    let ran = Ran::of(command.output().unwrap()).exits(1);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(
        said.contains("name kustomize with --kustomize or EVENKEEL_KUSTOMIZE"),
        "{said}"
    );

    let missing = ["--kustomize", "/nowhere/kustomize"];
    refused(
        &env,
        &[&worker[..], &missing].concat(),
        2,
        "/nowhere/kustomize is not a file",
    );
    let values = ["--component", "probe=./probe", "--set", "probe.replicas=2"];
    refused(&env, &values, 1, "is made from manifests, which takes no values");
    let empty = ["--component", "empty=./empty"];
    refused(
        &env,
        &empty,
        1,
        "it is neither a chart (Chart.yaml), nor a kustomization",
    );
}

#[test]
fn a_program_in_path_is_found() {
    let env = simulated();
    env.example("kustomized");
    std::fs::create_dir(env.path("bin")).unwrap();
    std::os::unix::fs::symlink(kustomize(), env.path("bin/kustomize")).unwrap();
    let mut command = env.command();
    command.args([
        "local",
        "--kubeconfig",
        "kubeconfig",
        "--component",
        "worker=./kustomized/overlays/test",
    ]);
    command.env("PATH", env.path("bin"));
    let ran = Ran::of(command.output().unwrap()).exits(0);
    assert_eq!(ran.row("worker")[..2], ["worker", "ready"]);
}
