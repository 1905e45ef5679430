//! Charts that show faults which people reported, against what Helm 4.3.1 printed for them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use evenkeel_chart::{
    Capabilities, Chart, KubeVersion, PrintOptions, Release, ValueSources, ValuesFile, render,
};

use crate::isolation::options;

#[test]
fn reported_faults_are_not_ours() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases");
    let runs: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(cases.join("runs.json")).unwrap()).unwrap();
    let mut failed = Vec::new();
    for run in runs.as_array().unwrap() {
        let expected = fs::read(cases.join(run["expected"].as_str().unwrap())).unwrap();
        let outcome = outcome(
            &cases.join(run["chart"].as_str().unwrap()),
            run["args"].as_array().unwrap(),
        );
        let same = match (&outcome, expected.strip_prefix(b"rc=0\n")) {
            (Ok(text), Some(expected)) => text == expected,
            // Cause and place, word for word.
            (Err(told), None) => *told == stripped(&String::from_utf8_lossy(&expected)),
            _ => false,
        };
        if !same {
            let outcome = outcome.map(|text| String::from_utf8_lossy(&text).into_owned());
            failed.push(format!(
                "{run}\n{outcome:?}\n{:?}",
                String::from_utf8_lossy(&expected)
            ));
        }
    }
    assert!(
        failed.is_empty(),
        "{} differ:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

/// What Helm said, without what the command line puts around it.
fn stripped(printed: &str) -> String {
    let text = printed.strip_prefix("rc=1\nSTDERR:\nError: ").unwrap_or(printed);
    let text = text.trim_end();
    let hint = "\n\nUse --debug flag to render out invalid YAML";
    text.strip_suffix(hint).unwrap_or(text).to_owned()
}

/// The cases of reported faults that are about rendering; every one is run, and everything that Helm printed for one is
/// compared with.
#[test]
fn no_case_is_left_out() {
    const ALL: [&str; 26] = [
        "REN-02", "REN-04", "REN-06", "REN-08", "REN-10", "REN-12", "REN-14", "REN-16", "REN-18", "REN-20",
        "REN-22", "VAL-01", "VAL-03", "VAL-05", "VAL-07", "VAL-09", "VAL-11", "VAL-13", "VAL-15", "YAML-01",
        "YAML-03", "YAML-05", "YAML-07", "YAML-09", "YAML-11", "YAML-13",
    ];
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases");
    let names = |directory: &Path| {
        let entries = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let names = entries.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
        names.collect::<BTreeSet<_>>()
    };
    let mut charts = names(&cases);
    for other in ["expected", "runs.json"] {
        assert!(charts.remove(other), "{other}");
    }
    assert_eq!(charts, ALL.map(str::to_owned).into());
    let runs: Vec<serde_json::Value> =
        serde_json::from_str(&fs::read_to_string(cases.join("runs.json")).unwrap()).unwrap();
    let column = |name: &str| -> Vec<String> {
        let texts = runs.iter().map(|run| run[name].as_str().unwrap());
        texts
            .map(|text| text.trim_start_matches("expected/").to_owned())
            .collect()
    };
    assert_eq!(column("chart").into_iter().collect::<BTreeSet<_>>(), charts);
    let expected = column("expected");
    assert_eq!(
        expected.len(),
        expected.iter().collect::<BTreeSet<_>>().len(),
        "used twice"
    );
    assert_eq!(
        expected.into_iter().collect::<BTreeSet<_>>(),
        names(&cases.join("expected"))
    );
}

fn outcome(directory: &Path, args: &[serde_json::Value]) -> Result<Vec<u8>, String> {
    let args: Vec<&str> = args.iter().map(|arg| arg.as_str().unwrap()).collect();
    let mut files = Vec::new();
    collect(directory, "", &mut files);
    let chart = Chart::from_files(files).map_err(|e| e.to_string())?;
    let (mut sources, mut capabilities) = (ValueSources::default(), Capabilities::default());
    for pair in args.get(2..).unwrap().chunks(2) {
        match pair {
            ["-f", file] => sources.files.push(ValuesFile {
                name: (*file).to_owned(),
                text: fs::read(directory.join(file)).unwrap(),
            }),
            ["--set", argument] => sources.typed.push((*argument).to_owned()),
            ["--kube-version", version] => {
                capabilities.kube_version = KubeVersion::parse(version).map_err(|e| e.to_string())?;
            }
            other => panic!("{other:?}"),
        }
    }
    let values = sources.merge(|_| Err(String::new())).map_err(|e| e.to_string())?;
    let rendered = render(
        &chart,
        &values,
        &Release::install(args[0], "default"),
        &capabilities,
        options(),
    )
    .map_err(|e| e.to_string())?;
    Ok(rendered.print(&PrintOptions::default()))
}

fn collect(directory: &Path, prefix: &str, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            collect(&path, &format!("{name}/"), files);
        } else {
            files.push((name, fs::read(&path).unwrap()));
        }
    }
}
