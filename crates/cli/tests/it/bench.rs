//! `evenkeel bench`: that it measures what it says; how fast is no matter of tests.

use std::process::{Command, Output};

use serde_json::{Map, Value};

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.arg("bench").args(arguments).env_remove("EVENKEEL_LOG");
    command.output().unwrap()
}

/// The figures in the last line, after a table that names them all.
fn figures(arguments: &[&str]) -> Map<String, Value> {
    let output = bench(arguments);
    let (text, said) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{said}");
    let (table, last) = text.trim_end().rsplit_once('\n').unwrap();
    let figures: Map<String, Value> = serde_json::from_str(last).unwrap();
    for name in figures.keys() {
        assert!(
            table.lines().any(|line| line.starts_with(&format!("{name} "))),
            "{name}: {table}"
        );
    }
    figures
}

#[test]
fn rendering_is_measured_beside_helm() {
    let figures = figures(&["render", "--pairs", "11", "--json"]);
    let value = |name: &str| figures[name].as_f64().unwrap();
    let speedup = value("helm_template_ms") / value("template_ms");
    assert!(
        (value("template_speedup") - speedup).abs() < 0.1 * speedup,
        "{figures:?}"
    );
    let ratio = value("template_mib") / value("helm_template_mib");
    assert!(
        (value("template_memory_ratio") - ratio).abs() < 0.01,
        "{figures:?}"
    );
    // Helm is a program of tens of megabytes in whatever way it is measured.
    assert!(
        value("helm_template_mib") > 20.0 && value("template_mib") > 1.0,
        "{figures:?}"
    );
    assert!(
        value("render_ms") > 0.0 && value("render_ms") < value("template_ms"),
        "{figures:?}"
    );
}

#[test]
fn an_unchanged_component_costs_a_list_for_each_kind_on_a_simulated_cluster() {
    an_unchanged_component_costs_a_list_for_each_kind(&["pass", "--simulated", "--json"]);
}

#[test]
fn an_unchanged_component_costs_a_list_for_each_kind_on_a_real_cluster() {
    an_unchanged_component_costs_a_list_for_each_kind(&["pass", "--json"]);
}

fn an_unchanged_component_costs_a_list_for_each_kind(arguments: &[&str]) {
    let figures = figures(arguments);
    assert_eq!(
        (&figures["noop_requests"], &figures["noop_writes"]),
        (&11.into(), &0.into()),
        "{figures:?}"
    );
    assert!(
        figures["install_requests"].as_u64().unwrap() >= 100,
        "{figures:?}"
    );
}

#[test]
fn without_json_there_is_the_table_alone() {
    let output = bench(&["pass", "--simulated"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("FIGURE ") && !text.contains('{'), "{text}");
}

#[test]
fn what_is_missing_is_told_with_the_command_that_brings_it() {
    let nothing = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command
        .args(["bench", "render"])
        .env("EVENKEEL_CACHE", nothing.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cargo xtask setup"), "{said}");
}
