//! What is deleted only when the user agrees, and objects that move between the components of one command.

use serde_json::Value;

use super::fixture::{Env, real, simulated};
use super::{PoisonError, REAL};

/// ConfigMaps of the names that its values list.
const MAPS: &[(&str, &str)] = &[
    ("values.yaml", "names: [a, b, c, d, e, f, g]\n"),
    (
        "templates/maps.yaml",
        "{{- range .Values.names }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ . }}}\ndata: {a: \"1\"}\n{{- end }}\n",
    ),
];

#[test]
fn agrees_on_a_simulated_cluster() {
    agrees(&simulated());
}

#[test]
fn agrees_on_a_real_cluster() {
    let _one = REAL.lock().unwrap_or_else(PoisonError::into_inner);
    agrees(&real());
}

fn agrees(env: &Env) {
    env.chart("maps", MAPS);
    let components = ["--namespace", "maps", "--component", "maps=./maps"];
    let with = |more: &[&str]| env.local(&[&components, more].concat());
    let exists = |name: &str| env.target.get("v1", "ConfigMap", "maps", name).is_some();
    with(&[]).exits(0);
    let few = ["--set", "maps.names={a}"];
    let mark = env.target.mark();
    let refused = with(&few).exits(1);
    let refused = refused.says(&[
        "6 of 7 objects would be deleted",
        "ConfigMap/b in namespace maps",
        "ConfigMap/g in namespace maps",
        "nothing was done",
    ]);
    assert_eq!(env.target.writes(&mark), [""; 0]);
    let planned = with(&[&few[..], &["--plan"]].concat()).exits(0);
    planned.prints(&["delete", "ConfigMap/g in namespace maps"]);
    // To another plan nobody has agreed.
    let other = format!("--consent=sha256:{}", "0".repeat(64));
    with(&[&few[..], &[&other]].concat()).exits(1);
    assert!(exists("g"));
    let digest = refused
        .stderr
        .split_once("--consent=")
        .map(|(_, rest)| rest.split([',', ' ']).next().unwrap().to_owned())
        .unwrap();
    let named = format!("--consent={digest}");
    with(&[&few[..], &[&named]].concat()).exits(0);
    assert!(exists("a") && !exists("b") && !exists("g"));
    // The last one, too, is not deleted by an empty render.
    let none = ["--set", "maps.names=null"];
    with(&none).exits(1).says(&["nothing is rendered"]);
    assert!(exists("a"));
    with(&[&none[..], &["--consent"]].concat()).exits(0);
    assert!(!exists("a"));
    env.local(&["--component", "maps", "--delete"]).exits(0);
}

#[test]
fn objects_move_between_components() {
    let env = simulated();
    env.chart("maps", MAPS);
    let both = |one: &str, other: &str| {
        let (one, other) = (format!("one.names={one}"), format!("other.names={other}"));
        env.local(&[
            "--namespace",
            "maps",
            "--component",
            "one=./maps",
            "--component",
            "other=./maps",
            "--set",
            &one,
            "--set",
            &other,
        ])
    };
    let uid = |name: &str| -> Option<Value> {
        let map = env.target.get("v1", "ConfigMap", "maps", name)?;
        Some(map["metadata"]["uid"].clone())
    };
    both("{a,b}", "{c}").exits(0);
    let before = uid("b");
    both("{a}", "{c,b}").exits(0);
    assert!(before.is_some() && uid("b") == before);
    both("{a,c}", "{c,b}")
        .exits(1)
        .says(&["ConfigMap/c in namespace maps by one and other"]);
    // Alone, nothing is known of the other.
    let alone = [
        "--namespace",
        "maps",
        "--component",
        "one=./maps",
        "--set",
        "one.names={a,b}",
    ];
    env.local(&alone)
        .exits(1)
        .says(&["ConfigMap/b", "component other of this cluster"]);
    assert!(uid("b") == before);
}

#[test]
fn a_deletion_need_not_be_waited_for() {
    let env = simulated();
    env.chart("maps", MAPS);
    env.local(&["--namespace", "maps", "--component", "maps=./maps"])
        .exits(0);
    let told = env
        .local(&["--component", "maps", "--delete", "--wait=false"])
        .exits(0);
    assert_eq!(told.row("maps")[1], "deleting");
    let done = env.local(&["--component", "maps", "--delete"]).exits(0);
    assert_eq!(done.row("maps")[1], "deleted");
    assert!(env.target.get("v1", "Namespace", "", "maps").is_none());
}
