//! The definitions of the custom resources: the files are what the types say, and nothing of the predecessor's is lost
//! (spec of issue 7, compatibility).
//!
//! `data/upstream` lists names, printer columns and every field of Lieutenant's definitions at 89518a6, one a line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use evenkeel_operator::resources::{Definition, definitions};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

fn folder(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn the_files_are_what_the_types_say() {
    let folder = folder("../../deploy/crds");
    let mut expected = BTreeSet::new();
    for definition in definitions() {
        let file = folder.join(definition.file_name());
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            text == definition.to_string(),
            "{} is not current: run `cargo xtask generate`",
            file.display()
        );
        expected.insert(definition.file_name());
    }
    let found: BTreeSet<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, expected, "files in {}", folder.display());
}

#[test]
fn every_field_of_the_predecessor_is_there_and_of_the_same_type() {
    for definition in definitions() {
        let plural = &definition.object().spec.names.plural;
        let upstream = folder(&format!("tests/data/upstream/{plural}.txt"));
        let upstream = std::fs::read_to_string(upstream).unwrap();
        let ours = describe(&definition);
        assert!(upstream.lines().count() > 30, "{plural}");
        for line in upstream.lines() {
            // A field has the path as its key; what else there is has itself.
            let key = if line.starts_with('.') {
                line.split(' ').next().unwrap()
            } else {
                line
            };
            let ours = ours.get(key);
            assert_eq!(ours.map(String::as_str), Some(line), "{plural}");
        }
    }
}

#[test]
fn what_is_ours_lies_in_the_status() {
    for definition in definitions() {
        let plural = &definition.object().spec.names.plural;
        let upstream = folder(&format!("tests/data/upstream/{plural}.txt"));
        let upstream = std::fs::read_to_string(upstream).unwrap();
        let known: BTreeSet<&str> = upstream
            .lines()
            .map(|line| line.split(' ').next().unwrap())
            .collect();
        let added: BTreeSet<String> = describe(&definition)
            .into_keys()
            .filter(|path| path.starts_with('.') && !known.contains(path.as_str()))
            // A condition is one thing, and so are a look and a plan.
            .filter(|path| {
                let parts = [".status.conditions[", ".status.looks{", ".status.plan."];
                !parts.iter().any(|part| path.starts_with(part))
            })
            .collect();
        // Only kinds with something at another system look there; nobody looks after templates, so nothing is planned for them.
        let looks = ["clusters", "gitrepos"].contains(&plural.as_str());
        let looks = looks.then_some(".status.looks");
        let hash = (plural == "clusters").then_some(".status.bootstrapToken.tokenHash");
        let plan = (plural != "tenanttemplates").then_some(".status.plan");
        let expected: BTreeSet<&str> = [".status.conditions", ".status.observedGeneration"]
            .into_iter()
            .chain(looks)
            .chain(hash)
            .chain(plan)
            .collect();
        let added: BTreeSet<&str> = added
            .iter()
            .map(String::as_str)
            .filter(|path| *path != ".status")
            .collect();
        assert_eq!(added, expected, "{plural}");
    }
}

/// Names, columns and fields, one a line, by their key.
fn describe(definition: &Definition) -> BTreeMap<String, String> {
    let spec = &definition.object().spec;
    let names = &spec.names;
    let mut lines = BTreeMap::new();
    let mut add = |line: String| lines.insert(line.clone(), line);
    add(format!(
        "names {} {} {} {}",
        names.kind,
        names.plural,
        names.singular.clone().unwrap(),
        spec.scope
    ));
    let version = &spec.versions[0];
    for column in version.additional_printer_columns.iter().flatten() {
        add(format!(
            "column {}|{}|{}",
            column.name, column.type_, column.json_path
        ));
    }
    let schema = version.schema.as_ref().unwrap().open_api_v3_schema.as_ref();
    walk("", schema.unwrap(), &mut lines);
    lines
}

fn walk(path: &str, schema: &JSONSchemaProps, lines: &mut BTreeMap<String, String>) {
    let mut line = vec![
        if path.is_empty() { "." } else { path }.to_owned(),
        schema.type_.clone().unwrap_or_else(|| "-".to_owned()),
    ];
    line.extend(schema.format.iter().map(|format| format!("format={format}")));
    line.extend(schema.enum_.iter().map(|values| {
        let values: Vec<&str> = values.iter().map(|value| value.0.as_str().unwrap()).collect();
        format!("enum={}", values.join(","))
    }));
    // That an absent spec is an empty one changes nothing for who wrote one.
    if path != ".spec" {
        line.extend(schema.default.iter().map(|value| format!("default={}", value.0)));
    }
    line.extend(
        schema
            .x_kubernetes_map_type
            .iter()
            .map(|kind| format!("map-type={kind}")),
    );
    line.extend(
        schema
            .x_kubernetes_list_type
            .iter()
            .map(|kind| format!("list-type={kind}")),
    );
    line.extend(
        schema
            .required
            .iter()
            .flatten()
            .map(|name| format!("required={name}")),
    );
    lines.insert(line[0].clone(), line.join(" "));
    for (name, property) in schema.properties.iter().flatten() {
        walk(&format!("{path}.{name}"), property, lines);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        walk(&format!("{path}[]"), items, lines);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        walk(&format!("{path}{{}}"), values, lines);
    }
}
