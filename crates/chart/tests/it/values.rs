//! How values come together: what Helm 4.3.1 printed for each set-up in `data/values.json`.

use evenkeel_chart::{Capabilities, Chart, PrintOptions, Release, ValueSources, ValuesFile, render};

use crate::isolation::options;

#[test]
fn values_come_together_as_in_helm() {
    let cases: serde_json::Value = serde_json::from_str(include_str!("../data/values.json")).unwrap();
    let mut failed = Vec::new();
    for case in cases.as_array().unwrap() {
        let outcome = run(case);
        let expected = if case["exit"] == 0 {
            Ok(case["stdout"].as_str().unwrap().to_owned())
        } else {
            Err(())
        };
        if outcome.clone().map_err(|_| ()) != expected {
            failed.push(format!(
                "{}\n  expected {expected:?}\n  got      {outcome:?}",
                case["name"]
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

fn run(case: &serde_json::Value) -> Result<String, String> {
    let files = case["files"].as_object().unwrap();
    let chart = Chart::from_files(
        files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str().unwrap())),
    )
    .map_err(|e| e.to_string())?;
    let mut sources = ValueSources::default();
    if let Some(text) = case["values"].as_str() {
        sources.files.push(ValuesFile {
            name: "u.yaml".into(),
            text: text.into(),
        });
    }
    let set = case["set"].as_array().unwrap();
    sources.typed = set
        .iter()
        .skip(1)
        .step_by(2)
        .map(|argument| argument.as_str().unwrap().to_owned())
        .collect();
    let values = sources
        .merge(|_| Err("no files here".into()))
        .map_err(|e| e.to_string())?;
    let rendered = render(
        &chart,
        &values,
        &Release::install("r", "default"),
        &Capabilities::default(),
        options(),
    )
    .map_err(|e| e.to_string())?;
    Ok(String::from_utf8(rendered.print(&PrintOptions::default())).unwrap())
}
