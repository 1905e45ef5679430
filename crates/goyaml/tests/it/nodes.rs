//! Documents written again with their comments and styles: `tests/data/nodes_go-yaml_v3.0.5.json` holds what
//! go.yaml.in/yaml v3.0.5 wrote, set up as kustomize's kyaml does (indentation 2, compact lists), or said.

use evenkeel_goyaml::{
    MAX_DEPTH, Node, NodeContent, NodeDocument, NodeWriter, Numbers, ScalarStyle, Value, from_json,
};

fn rows() -> Vec<Value> {
    let path = format!(
        "{}/tests/data/nodes_go-yaml_v3.0.5.json",
        env!("CARGO_MANIFEST_DIR")
    );
    match from_json(&std::fs::read(path).unwrap(), Numbers::Exact).unwrap() {
        Value::List(rows) => rows,
        other => panic!("{other:?}"),
    }
}

fn written(document: &NodeDocument) -> String {
    let mut writer = NodeWriter::default();
    writer.write(document);
    writer.finish()
}

#[test]
fn every_document_is_written_as_go_yaml_writes_it() {
    let rows = rows();
    assert!(rows.len() > 500);
    let mut failures = Vec::new();
    for row in &rows {
        let Value::Map(row) = row else {
            panic!("{row:?}");
        };
        let column = |name: &str| match row.get(name) {
            Some(Value::String(text)) => Some(text.as_str()),
            _ => None,
        };
        let text = column("text").unwrap();
        let (ours, theirs) = match NodeDocument::read(text.as_bytes()) {
            Ok(Some(document)) => (Some(written(&document)), column("written")),
            Ok(None) => (None, None),
            Err(error) => (Some(error.to_string()), column("error")),
        };
        if ours.as_deref() != theirs || ours.is_none() != row.contains_key("none") {
            failures.push(format!("{text:?}\n  ours   {ours:?}\n  go-yaml {row:?}"));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} rows:\n{}",
        failures.len(),
        rows.len(),
        failures.join("\n")
    );
}

#[test]
fn a_document_can_be_changed() {
    let text = b"# top\n\nkind: Pod # what\nmetadata: {name: x}\n# foot\n";
    let mut document = NodeDocument::read(text).unwrap().unwrap();
    let metadata = document.root.get_mut("metadata").unwrap();
    let NodeContent::Mapping { entries, .. } = &mut metadata.content else {
        panic!("{metadata:?}");
    };
    entries.push((
        Node::scalar("on", ScalarStyle::SingleQuoted),
        Node::scalar("a: b", ScalarStyle::Plain),
    ));
    assert_eq!(
        written(&document),
        "# top\n\nkind: Pod # what\nmetadata: {name: x, 'on': 'a: b'}\n# foot\n"
    );
}

#[test]
fn documents_follow_each_other() {
    let document = NodeDocument::read(b"a:\n- 1\n").unwrap().unwrap();
    let mut writer = NodeWriter::default();
    writer.write(&document);
    writer.write_wide(&document);
    writer.write_node(document.root.get("a").unwrap());
    assert_eq!(writer.finish(), "a:\n- 1\n---\na:\n  - 1\n---\n- 1\n");
}

#[test]
fn nesting_has_an_end() {
    let nested = |depth: usize| format!("{}{}\n", "[".repeat(depth), "]".repeat(depth));
    let good = nested(MAX_DEPTH);
    let document = NodeDocument::read(good.as_bytes()).unwrap().unwrap();
    assert_eq!(written(&document), good);
    let error = NodeDocument::read(nested(MAX_DEPTH + 2).as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "yaml: exceeded max depth");
}
