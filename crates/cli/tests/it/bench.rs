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
    figures_and_table(arguments).0
}

/// The figures in the last line, and the table before, which names them all.
fn figures_and_table(arguments: &[&str]) -> (Map<String, Value>, String) {
    let output = bench(arguments);
    let (text, said) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{said}");
    let (table, last) = text.trim_end().rsplit_once('\n').unwrap();
    let figures = flat(serde_json::from_str(last).unwrap());
    for name in figures.keys() {
        assert!(
            table.lines().any(|line| line.starts_with(&format!("{name} "))),
            "{name}: {table}"
        );
    }
    (figures, table.to_owned())
}

/// The figures of objects within, by the names that the table has for them.
fn flat(figures: Map<String, Value>) -> Map<String, Value> {
    let within = |(group, value)| match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (format!("{group}.{name}"), value))
            .collect(),
        value => vec![(group, value)],
    };
    figures.into_iter().flat_map(within).collect()
}

#[test]
fn rendering_is_measured_beside_helm() {
    let (figures, table) = figures_and_table(&["render", "--pairs", "3", "--renders", "100", "--json"]);
    let value = |name: &str| figures[name].as_f64().unwrap();
    assert!(value("charts") >= 10.0, "{figures:?}");
    // What the figures say is what the table says of the charts: the middle of each column.
    for (name, column, rounding) in [
        ("helm_template_ms", "HELM MS", 0.051),
        ("template_ms", "OURS MS", 0.051),
        ("template_speedup", "SPEEDUP", 0.051),
        ("helm_template_mib", "HELM MIB", 0.051),
        ("template_mib", "OURS MIB", 0.051),
        ("template_memory_ratio", "RATIO", 0.001_1),
    ] {
        let middle = middle_of_charts(&table, column);
        assert!(
            (value(name) - middle).abs() <= rounding,
            "{name} is not {middle}: {table}"
        );
    }
    // Helm is a program of tens of megabytes in whatever way it is measured.
    assert!(
        value("helm_template_mib") > 20.0 && value("template_mib") > 1.0,
        "{figures:?}"
    );
    // What starts the programs is smaller than they are, or its memory would be taken for theirs.
    assert!(!table.contains("upper bound"), "{table}");
    assert!(
        value("typical_render_ms") > 0.0 && value("typical_render_ms") < value("template_ms"),
        "{figures:?}"
    );
    for name in ["parse_mb_per_s", "median_render_ms", "renders_per_s"] {
        assert!(value(name) > 0.0, "{name}: {figures:?}");
    }
    assert!(value("rss_growth_mb") < 50.0, "{figures:?}");
}

/// The middle of a column of the table of charts, which stands before that of the figures. No cell of it has a space but
/// those of the header, where two stand between columns.
fn middle_of_charts(table: &str, column: &str) -> f64 {
    let mut lines = table.lines().skip_while(|line| !line.starts_with("CHART "));
    let header = lines.next().unwrap().split("  ").map(str::trim);
    let place = header
        .filter(|name| !name.is_empty())
        .position(|name| name == column)
        .unwrap();
    let mut cells: Vec<f64> = lines
        .map_while(|line| line.split_whitespace().nth(place)?.parse().ok())
        .collect();
    cells.sort_by(f64::total_cmp);
    cells[cells.len() / 2]
}

#[test]
fn a_supervisor_tells_what_a_program_took() {
    let supervise = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
        command.arg("bench-supervise").args(arguments).output().unwrap()
    };
    let output = supervise(&["sh", "-c", "echo out"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<u64> = text
        .split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect();
    assert!(output.status.success() && output.stderr.is_empty(), "{text}");
    assert!(
        numbers.len() == 3 && numbers.iter().all(|number| *number > 0),
        "{text}"
    );

    for (arguments, fault) in [
        (&["sh", "-c", "exit 3"][..], "sh failed with exit status: 3"),
        (&["/nowhere/program"][..], "/nowhere/program cannot be started"),
    ] {
        let output = supervise(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.starts_with(fault) && output.stdout.is_empty(), "{said}");
        assert_eq!(output.status.code(), Some(1), "{said}");
    }
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

#[test]
fn the_queue_is_measured_on_both_databases() {
    let output = bench(&["queue", "--clusters", "3", "--json"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout);
    let (table, last) = text.trim_end().rsplit_once('\n').unwrap();
    let figures: Value = serde_json::from_str(last).unwrap();
    for database in ["postgres", "sqlite"] {
        for figure in [
            "claims_per_s",
            "operations_per_s",
            "claim_p99_ms",
            "report_p99_ms",
        ] {
            let value = figures[database][figure].as_f64().unwrap();
            assert!(value > 0.0, "{database}.{figure}: {figures}");
            assert!(table.contains(&format!("{database}.{figure} ")), "{table}");
        }
    }
}

#[test]
fn applying_is_measured_beside_three_others() {
    let arguments = [
        "apply",
        "--rounds",
        "1",
        "--objects",
        "1",
        "--edits",
        "2",
        "--json",
    ];
    let figures = figures(&arguments);
    let value = |name: &str| figures[name].as_f64().unwrap();
    for act in ["install", "noop"] {
        let ours = value(&format!("{act}_ms"));
        assert!(ours > 0.0, "{figures:?}");
        for peer in ["helm", "kubectl", "flux"] {
            let ratio = ours / value(&format!("{act}_{peer}_ms"));
            let told = value(&format!("{act}_vs_{peer}"));
            assert!((told - ratio).abs() < 0.001, "{act} {peer}: {figures:?}");
        }
    }
    let (half, most) = (value("drift_heal_ms"), value("drift_heal_p99_ms"));
    assert!(0.0 < half && half <= most, "{figures:?}");
    // Memory is no matter of the machine's mood.
    let bytes = value("bytes_per_object");
    assert!(0.0 < bytes && bytes <= 64.0, "{figures:?}");
}

#[test]
fn the_scheduler_is_measured_on_a_fleet_of_its_own() {
    let figures = figures(&[
        "scheduler",
        "--clusters",
        "300",
        "--few",
        "100",
        "--changes",
        "8",
        "--json",
    ]);
    let value = |name: &str| figures[name].as_f64().unwrap();
    for name in [
        "cost_ratio_100k_to_1k",
        "idle.change_to_claim_p99_ms",
        "busy.change_to_claim_p99_ms",
        "install_ready_s",
    ] {
        assert!(value(name) > 0.0, "{name}: {figures:?}");
    }
    // Rows are counted and do not depend on the machine.
    assert!(value("rows_per_changed_pass") <= 10.0, "{figures:?}");
    assert!(value("rows_per_further_component") <= 3.0, "{figures:?}");
    assert!(value("rows_per_noop_pass") <= 1.0, "{figures:?}");
    assert!(
        value("install_ready_s") >= 1.5,
        "three stages of about half a second: {figures:?}"
    );
}
