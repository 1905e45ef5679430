use evenkeel_goyaml::{JsonStyle, Value, to_json};

use super::{ValueSources, ValuesFile, documents, load_values};

fn json(text: &str) -> Result<String, String> {
    load_values(text.as_bytes()).map(|map| to_json(&Value::Map(map), JsonStyle::Raw))
}

#[test]
fn all_documents_count() {
    assert_eq!(
        json("a: {x: 1, z: 2}\n---\na: {x: 3}\nb: 2").as_deref(),
        Ok(r#"{"a":{"x":3,"z":2},"b":2}"#)
    );
    assert_eq!(json("# header only\n---\nb: 2\n").as_deref(), Ok(r#"{"b":2}"#));
    assert_eq!(
        json("a: 1\n--- # next\n---\nb: 2\n").as_deref(),
        Ok(r#"{"a":1,"b":2}"#)
    );
    assert_eq!(json("").as_deref(), Ok("{}"));
    assert_eq!(json("a: {b: 1}\n---\na: null\n").as_deref(), Ok(r#"{"a":null}"#));
}

#[test]
fn separators_are_checked() {
    let problem = json("a: 1\n---b: 2\n").unwrap_err();
    assert_eq!(
        problem,
        "error reading yaml document: invalid Yaml document separator: b: 2"
    );
    assert_eq!(
        documents(b"a: 1\r\n---\r\nb: 2"),
        (vec![b"a: 1\n".to_vec(), b"b: 2\n".to_vec()], None)
    );
    // Documents are read one by one, so what is wrong with the first is told first.
    let problem = json("a: *none\n---\nb: 1\n--- x\n").unwrap_err();
    assert!(
        problem.ends_with("yaml: unknown anchor 'none' referenced"),
        "{problem}"
    );
}

#[test]
fn values_must_be_a_mapping() {
    let problem = json("- a\n").unwrap_err();
    assert_eq!(
        problem,
        "cannot unmarshal yaml document: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array \
         into Go value of type map[string]interface {}"
    );
}

#[test]
fn precedence_is_fixed() {
    let mut sources = ValueSources {
        files: vec![
            ValuesFile {
                name: "a.yaml".into(),
                text: b"a: file\nb: {x: 1, z: 1}\n".to_vec(),
            },
            ValuesFile {
                name: "b.yaml".into(),
                text: b"b: {z: 2}\n".to_vec(),
            },
        ],
        json: vec!["a=9".into(), r#"{"j": {"k": 1}}"#.into()],
        typed: vec!["a=set".into()],
        text: vec!["a=str".into()],
        ..ValueSources::default()
    };
    let merged = |sources: &ValueSources| {
        to_json(
            &sources
                .merge(|name| Ok(format!("<{name}>").into_bytes()))
                .unwrap(),
            JsonStyle::Raw,
        )
    };
    assert_eq!(merged(&sources), r#"{"a":"str","b":{"x":1,"z":2},"j":{"k":1}}"#);
    sources.file = vec!["a=f.txt".into()];
    assert_eq!(
        merged(&sources),
        r#"{"a":"<f.txt>","b":{"x":1,"z":2},"j":{"k":1}}"#
    );
    sources.literal = vec!["a=l,m".into()];
    assert_eq!(merged(&sources), r#"{"a":"l,m","b":{"x":1,"z":2},"j":{"k":1}}"#);
}

#[test]
fn faults_name_their_source_and_no_value() {
    let sources = ValueSources {
        files: vec![ValuesFile {
            name: "bad.yaml".into(),
            text: b"a: [secret\n".to_vec(),
        }],
        ..ValueSources::default()
    };
    let problem = sources.merge(|_| Err(String::new())).unwrap_err().to_string();
    assert!(problem.starts_with("failed to parse bad.yaml: "), "{problem}");
    assert!(!format!("{sources:?}").contains("secret"));
}
