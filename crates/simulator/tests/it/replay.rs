//! Scenarios recorded from a real kube-apiserver (`transcripts/record.py`), played again: every answer must be equal,
//! but for what differs from run to run anyway.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_core::ManualClock;
use evenkeel_simulator::Options;
use regex::Regex;
use serde_json::{Map, Value};

use super::support::{Http, eventually, start_with};

const RECORDED: &str = include_str!("transcripts/recorded.json");

/// Answers that differ on purpose, by scenario and step, with the reason.
const KNOWN: &[(&str, usize, &str)] = &[
    (
        "pod spec variety",
        0,
        "no warnings about the meaning of a pod's fields",
    ),
    (
        "job",
        1,
        "a real server writes a job once more on the second apply, with nothing changed",
    ),
    ("job", 2, "the resource version of the write before"),
    (
        "volume claim",
        1,
        "a real server writes a claim once more on the second apply, with nothing changed",
    ),
    ("pods", 2, "no diff of the specs in the text"),
    (
        "errors",
        21,
        "the text holds the whole object in Go's field order, with its resource version",
    ),
    (
        "unknown fields",
        3,
        "the text holds the whole object in Go's field order, with its resource version",
    ),
];

struct Normaliser {
    uuid: Regex,
    time: Regex,
    address: Regex,
    record: Regex,
}

impl Normaliser {
    fn new() -> Self {
        let regex = |text: &str| Regex::new(text).unwrap();
        Self {
            uuid: regex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
            time: regex(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"),
            address: regex(r"10\.96\.\d+\.\d+"),
            record: regex(r"ResourceVersion in record \(\d+\)"),
        }
    }

    fn text(&self, text: &str) -> String {
        let fixed = [
            "11111111-1111-1111-1111-111111111111",
            "22222222-2222-2222-2222-222222222222",
        ];
        let text = self.uuid.replace_all(text, |found: &regex::Captures<'_>| {
            let uid = found[0].to_owned();
            if fixed.contains(&uid.as_str()) {
                uid
            } else {
                "UID".to_owned()
            }
        });
        let text = self.time.replace_all(&text, "TIME");
        let text = self.address.replace_all(&text, "IP");
        self.record
            .replace_all(&text, "ResourceVersion in record (RV)")
            .into_owned()
    }

    fn value(&self, value: Value, key: &str, versions: &mut BTreeMap<String, String>) -> Value {
        match value {
            Value::Object(object) => {
                let mut out: Map<String, Value> = Map::new();
                for (name, value) in object {
                    let value = self.value(value, &name, versions);
                    out.insert(name, value);
                }
                if let Some(hash) = out.get_mut("storageVersionHash") {
                    *hash = "HASH".into();
                }
                Value::Object(out)
            }
            Value::Array(items) => items
                .into_iter()
                .map(|item| self.value(item, key, versions))
                .collect(),
            Value::String(text) if key == "resourceVersion" && text != "1" => {
                let next = format!("v{}", versions.len() + 1);
                versions.entry(text).or_insert(next).clone().into()
            }
            Value::Number(number) if key == "nodePort" && number.as_i64() != Some(0) => "PORT".into(),
            Value::String(text) => self.text(&text).into(),
            other => other,
        }
    }
}

/// A real server lists several causes in no particular order.
fn sort_causes(mut answer: Value) -> Value {
    let message = answer
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if let Some(causes) = answer
        .pointer_mut("/details/causes")
        .and_then(Value::as_array_mut)
        && causes.len() > 1
    {
        causes.sort_by_key(Value::to_string);
        let start = message.split(['[', '\n']).next().unwrap_or_default().to_owned();
        answer["message"] = start.into();
    }
    answer
}

/// Where two values differ, for people.
fn differences(path: &str, expected: &Value, got: &Value, out: &mut Vec<String>) {
    match (expected, got) {
        (Value::Object(a), Value::Object(b)) => {
            for (name, value) in a {
                match b.get(name) {
                    Some(other) => differences(&format!("{path}.{name}"), value, other, out),
                    None => out.push(format!("{path}.{name}: missing, expected {value}")),
                }
            }
            for (name, value) in b.iter().filter(|(name, _)| !a.contains_key(*name)) {
                out.push(format!("{path}.{name}: not expected, got {value}"));
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (position, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}[{position}]"), a, b, out);
            }
        }
        (a, b) if a == b => {}
        (a, b) => out.push(format!("{path}: expected {a}, got {b}")),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_simulator_answers_as_a_real_server() {
    // The recording server needed less than a second for most scenarios: here no time passes at all.
    let clock = Arc::new(ManualClock::new(
        jiff::Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(500_000),
    ));
    let options = Options {
        controllers: false,
        clock,
        ..Options::default()
    };
    let (simulator, cluster) = start_with(options).await;
    let http = Http::new(&simulator, &cluster);
    let normaliser = Normaliser::new();
    let scenarios: Vec<Value> = serde_json::from_str(RECORDED).unwrap();
    let (mut failures, mut steps) = (Vec::new(), 0);
    let only = std::env::var("REPLAY_ONLY").unwrap_or_default();
    for (number, scenario) in scenarios.iter().enumerate() {
        let name = scenario["name"].as_str().unwrap();
        if !only.is_empty() && !name.contains(&only) {
            continue;
        }
        let namespace = format!("t0n{number}");
        let body =
            serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        assert_eq!(http.post("/api/v1/namespaces", &body).await.code, 201);
        let mut versions = BTreeMap::new();
        for (position, step) in scenario["steps"].as_array().unwrap().iter().enumerate() {
            if let Some(path) = step.get("wait").and_then(Value::as_str) {
                let path = path.replace("NS", &namespace);
                eventually("the definition", || async {
                    let text = http.get(&path).await.text;
                    text.contains("\"Established\"").then_some(())
                })
                .await;
                continue;
            }
            steps += 1;
            let text = |field: &str| step.get(field).and_then(Value::as_str).unwrap_or_default();
            let path = text("path").replace("NS", &namespace);
            let body = step
                .get("body")
                .map(|body| body.to_string().replace("NS", &namespace));
            let headers = [("content-type", text("type")), ("user-agent", text("agent"))];
            let answer = http.send(text("method"), &path, &headers, body).await.unwrap();
            let mut wrong = Vec::new();
            if Some(u64::from(answer.code)) != step["code"].as_u64() {
                wrong.push(format!("expected code {}, got {}", step["code"], answer.code));
            }
            let warnings: Vec<&str> = answer
                .headers
                .get_all("warning")
                .iter()
                .map(|value| value.to_str().unwrap())
                .collect();
            let expected: Vec<&str> = step
                .get("warnings")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            if warnings != expected {
                wrong.push(format!("expected warnings {expected:?}, got {warnings:?}"));
            }
            match step.get("answer") {
                Some(expected) => {
                    let expected = &sort_causes(expected.clone());
                    let got =
                        serde_json::from_str(&answer.text.replace(&namespace, "NS")).unwrap_or(Value::Null);
                    let got = sort_causes(normaliser.value(got, "", &mut versions));
                    differences("", expected, &got, &mut wrong);
                }
                None if answer.text != text("text") => wrong.push(format!("got {}", answer.text)),
                None => {}
            }
            let known = KNOWN
                .iter()
                .any(|(scenario, step, _)| *scenario == name && *step == position);
            if known == wrong.is_empty() {
                wrong.insert(
                    0,
                    format!("{name} [{position}] {} {}", text("method"), text("path")),
                );
                failures.push(wrong.join("\n    "));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {steps} answers differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
    simulator.stop().await;
}
