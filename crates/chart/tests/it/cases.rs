//! Charts that show faults which people reported, against what Helm 4.3.1 printed for them.

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
            (Err(_), None) => true,
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
