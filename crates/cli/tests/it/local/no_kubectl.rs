//! K5: a client of our own, and no kubectl. Whatever a component is made from, neither kubectl nor helm is run, found in
//! `PATH` or not; `cargo xtask lint spawn` sees to it that no code could.

use super::fixture::{Env, WEB, simulated};
use crate::ran::Ran;

/// The command with programs in `PATH` that tell when they are run.
fn watched(env: &Env, arguments: &[&str]) -> Ran {
    for program in ["kubectl", "helm", "git", "oc"] {
        let tell = format!("echo {program} \"$@\" >> {}", env.path("told").display());
        env.script(&format!("bin/{program}"), &tell);
    }
    let mut command = env.command();
    command
        .args(["local", "--kubeconfig", "kubeconfig", "--namespace", "apps"])
        .args(arguments);
    command.env("PATH", env.path("bin"));
    Ran::of(command.output().unwrap())
}

#[test]
fn nothing_runs_kubectl_or_helm() {
    let env = simulated();
    env.chart("web", WEB);
    env.example("probe");
    env.example("kustomized");
    let program = evenkeel_testkit::realparts::kustomize().unwrap();
    let arguments = [
        "--component",
        "web=./web",
        "--component",
        "probe=./probe",
        "--component",
        "worker=./kustomized/overlays/prod",
        "--kustomize",
        program.to_str().unwrap(),
    ];
    watched(&env, &[&arguments[..], &["--plan"]].concat()).exits(0);
    let ran = watched(&env, &arguments).exits(0);
    for component in ["web", "probe", "worker"] {
        assert_eq!(ran.row(component)[..2], [component, "ready"]);
    }
    watched(&env, &[&arguments[..], &["--delete"]].concat()).exits(0);
    let told = std::fs::read_to_string(env.path("told")).unwrap_or_default();
    assert_eq!(told, "", "programs were run");
}

#[test]
fn a_kustomization_cannot_reach_helm_or_git_either() {
    let env = simulated();
    env.write(
        "charts/kustomization.yaml",
        "helmCharts: [{name: web, releaseName: web}]\nhelmGlobals: {chartHome: .}\n",
    );
    env.write(
        "charts/web/Chart.yaml",
        "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    );
    env.write(
        "far/kustomization.yaml",
        "resources: ['github.com/owner/repository//base']\n",
    );
    let program = evenkeel_testkit::realparts::kustomize().unwrap();
    for (component, expected) in [
        ("charts", "must specify --enable-helm"),
        ("far", "it refers to the network"),
    ] {
        let source = format!("{component}=./{component}");
        let arguments = ["--component", &source, "--kustomize", program.to_str().unwrap()];
        let ran = watched(&env, &arguments).exits(1);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let told = std::fs::read_to_string(env.path("told")).unwrap_or_default();
    assert_eq!(told, "", "programs were run");
}
