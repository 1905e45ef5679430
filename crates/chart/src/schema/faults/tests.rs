//! The expected texts are Helm's, but for those that the doc of the module excepts.

use serde_json::json;

use crate::schema::Schema;

#[track_caller]
fn told(schema: serde_json::Value, value: serde_json::Value, expected: &[&str]) {
    let schema = json!({"properties": {"a": schema}});
    let mut found = Schema::new(schema.to_string().into_bytes()).faults(&json!({"a": value}), None);
    found.sort();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected, "{schema}");
}

#[test]
fn numbers_are_written_as_in_english_text() {
    for (number, expected) in [
        (json!(70_000), "70,000"),
        (json!(123_456.789), "123,456.789"),
        (json!(1_234_567), "1.234567×10⁰⁶"),
        (json!(999_999), "999,999"),
        (json!(1e21), "1×10²¹"),
        (json!(12_345_678_901_i64), "1.2345678901×10¹⁰"),
    ] {
        told(
            json!({"maximum": 1}),
            number,
            &[&format!("- at '/a': maximum: got {expected}, want 1")],
        );
    }
    told(
        json!({"minimum": 1}),
        json!(0.0001),
        &["- at '/a': minimum: got 0.0001, want 1"],
    );
    told(
        json!({"minimum": 1}),
        json!(1e-5),
        &["- at '/a': minimum: got 1×10⁻⁰⁵, want 1"],
    );
    told(
        json!({"minimum": 1}),
        json!(-1234.5),
        &["- at '/a': minimum: got -1,234.5, want 1"],
    );
    told(
        json!({"multipleOf": 2}),
        json!(3),
        &["- at '/a': multipleOf: got 3, want 2"],
    );
    told(
        json!({"maxLength": 1000}),
        json!("x".repeat(1234)),
        &["- at '/a': maxLength: got 1,234, want 1,000"],
    );
}

#[test]
fn choices_are_listed_if_they_are_scalars() {
    told(
        json!({"enum": [1, 2, "y", null, true]}),
        json!("z"),
        &["- at '/a': value must be one of 1, 2, 'y', <nil>, true"],
    );
    told(
        json!({"enum": ["it's"]}),
        json!(1),
        &[r"- at '/a': value must be 'it\'s'"],
    );
    told(
        json!({"enum": [{"b": 1}]}),
        json!(1),
        &["- at '/a': 'enum' failed"],
    );
    told(
        json!({"const": null}),
        json!(1),
        &["- at '/a': value must be <nil>"],
    );
    told(
        json!({"const": {"a": 1}}),
        json!(1),
        &["- at '/a': 'const' failed"],
    );
}

#[test]
fn all_of_stands_above_its_faults() {
    told(
        json!({"allOf": [{"properties": {"x": {"allOf": [{"type": "string"}, {"minimum": 9}]}}}]}),
        json!({"x": 1}),
        &[
            "- at '/a': 'allOf' failed",
            "  - at '/a/x': 'allOf' failed",
            "    - at '/a/x': got number, want string",
            "    - at '/a/x': minimum: got 1, want 9",
        ],
    );
    told(
        json!({"anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]}),
        json!(1),
        &[
            "- at '/a': 'anyOf' failed",
            "  - at '/a': 'allOf' failed",
            "    - at '/a': got number, want string",
            "  - at '/a': got number, want null",
        ],
    );
    // A property of that name is none.
    told(
        json!({"properties": {"allOf": {"type": "string"}}}),
        json!({"allOf": 1}),
        &["- at '/a/allOf': got number, want string"],
    );
}

#[test]
fn properties_that_miss_or_are_too_many_are_named_together() {
    told(
        json!({"required": ["b", "c"]}),
        json!({}),
        &["- at '/a': missing properties 'b', 'c'"],
    );
    told(
        json!({"anyOf": [{"required": ["x", "y"]}, {"type": "null"}]}),
        json!({}),
        &[
            "- at '/a': 'anyOf' failed",
            "  - at '/a': missing properties 'x', 'y'",
            "  - at '/a': got object, want null",
        ],
    );
    told(
        json!({"additionalProperties": false}),
        json!({"x": 1, "y": 2}),
        &["- at '/a': additional properties 'x', 'y' not allowed"],
    );
    told(
        json!({"dependentRequired": {"x": ["y"]}}),
        json!({"x": 1}),
        &["- at '/a': properties 'y' required, if others exist"],
    );
    told(
        json!({"propertyNames": {"pattern": "^a"}}),
        json!({"x": 1}),
        &[
            "- at '/a': invalid propertyName 'x'",
            "  - at '': value does not match pattern '^a'",
        ],
    );
}

#[test]
fn the_rest_of_the_keywords() {
    told(
        json!({"type": ["integer", "object", "null", "array"]}),
        json!("x"),
        &["- at '/a': got string, want null or integer or array or object"],
    );
    told(
        json!({"oneOf": [{"type": "number"}, {"type": "integer"}, {"minimum": 0}]}),
        json!(1),
        &["- at '/a': 'oneOf' failed, subschemas 0, 1 matched"],
    );
    told(
        json!({"uniqueItems": true}),
        json!([1, 2, 1]),
        &["- at '/a': items at 0 and 2 are equal"],
    );
    told(
        json!({"contains": {"type": "string"}}),
        json!([1]),
        &["- at '/a': no items match contains schema"],
    );
    told(
        json!({"pattern": r"^\d+$"}),
        json!("x"),
        &[r"- at '/a': value does not match pattern '^\\d+$'"],
    );
    // Remarks, not rules.
    told(
        json!({"contentEncoding": "base64", "contentMediaType": "application/json"}),
        json!("?"),
        &[],
    );
}

#[test]
fn schemas_that_cannot_be_used_are_refused() {
    let refused = |schema: serde_json::Value| {
        let schema = json!({"properties": {"a": schema}});
        Schema::new(schema.to_string().into_bytes())
            .faults(&json!({}), None)
            .join("\n")
    };
    let start = "\"file:///values.schema.json#\" is not valid against metaschema: \
                 jsonschema validation failed with 'https://json-schema.org/draft/2020-12/schema#'\n";
    for schema in [json!({"type": "str"}), json!({"minLength": "x"})] {
        let text = refused(schema);
        assert!(text.starts_with(start), "{text}");
    }
    // Go's regular expressions do not look ahead.
    assert!(!refused(json!({"pattern": "^(?=x)"})).is_empty());
    assert_eq!(
        refused(json!({"$ref": "#/nope"})),
        "json-pointer in \"file:///values.schema.json#/nope\" not found"
    );
    assert!(
        refused(json!({"$ref": "https://example.test/x.json"}))
            .starts_with("failing loading \"https://example.test/x.json\": ")
    );
}

#[test]
fn several_faults_of_a_schema_within_stand_together() {
    let schema = json!({"type": "object", "required": ["b"], "properties": {"c": {"type": "string"}}});
    let value = json!({"c": 1});
    let faults = [
        "- at '/a': missing property 'b'",
        "- at '/a/c': got number, want string",
    ];
    let indented = |depth: usize| faults.map(|fault| format!("{}{fault}", "  ".repeat(depth)));
    // Alone, they stand side by side.
    told(schema.clone(), value.clone(), &faults);
    told(json!({"if": true, "then": schema}), value.clone(), &faults);
    let [one, other] = indented(1);
    told(
        json!({"if": true, "then": schema, "minProperties": 9}),
        value.clone(),
        &[
            "- at '/a': minProperties: got 1, want 9",
            "- at '/a': validation failed",
            &one,
            &other,
        ],
    );
    let [one, other] = indented(2);
    told(
        json!({"allOf": [schema]}),
        value.clone(),
        &[
            "- at '/a': 'allOf' failed",
            "  - at '/a': validation failed",
            &one,
            &other,
        ],
    );
    told(
        json!({"anyOf": [schema, {"type": "null"}]}),
        value.clone(),
        &[
            "- at '/a': 'anyOf' failed",
            "  - at '/a': validation failed",
            &one,
            &other,
            "  - at '/a': got object, want null",
        ],
    );
    told(
        json!({"items": schema}),
        json!([value, value]),
        &[
            "- at '/a/0': validation failed",
            "  - at '/a/0': missing property 'b'",
            "  - at '/a/0/c': got number, want string",
            "- at '/a/1': validation failed",
            "  - at '/a/1': missing property 'b'",
            "  - at '/a/1/c': got number, want string",
        ],
    );
    let referring = json!({"$ref": "#/$defs/t", "$defs": {"t": schema}});
    let mut found = Schema::new(referring.to_string().into_bytes()).faults(&value, None);
    found.sort();
    assert_eq!(
        found,
        [
            "  - at '': missing property 'b'",
            "  - at '/c': got number, want string",
            "- at '': validation failed"
        ]
    );
    // The faults of one group, deeper in the value, are told where the reference stands.
    let referring = json!({"properties": {"m": {"$ref": "#/$defs/m"}},
                           "$defs": {"m": {"properties": {"list": {"items": {"type": "string"}}}}}});
    assert_eq!(
        Schema::new(referring.to_string().into_bytes()).faults(&json!({"m": {"list": [1, 2]}}), None),
        [
            "- at '/m': validation failed",
            "  - at '/m/list/0': got number, want string",
            "  - at '/m/list/1': got number, want string",
        ]
    );
}

#[test]
fn references_in_a_circle_are_faults_of_the_value() {
    let faults = |schema: serde_json::Value, values: serde_json::Value| {
        Schema::new(schema.to_string().into_bytes()).faults(&values, None)
    };
    let root = "resolve to \"file:///values.schema.json#\" causing reference cycle";
    assert_eq!(
        faults(json!({"$ref": "#"}), json!({"a": 1})),
        [format!("- at '': both /$ref and  {root}")]
    );
    assert_eq!(
        faults(json!({"allOf": [{"$ref": "#"}]}), json!({})),
        [
            "- at '': 'allOf' failed".to_owned(),
            format!("  - at '': both /allOf/0/$ref and  {root}")
        ]
    );
    let named = json!({"$id": "https://e.x/a", "$ref": "#"});
    assert_eq!(faults(named, json!({})).len(), 1);
    // What also holds another way holds.
    assert!(faults(json!({"anyOf": [{"$ref": "#"}, true]}), json!({})).is_empty());
    assert!(faults(json!({"not": {"$ref": "#"}}), json!({})).is_empty());
    let tree = json!({"properties": {"a": {"$ref": "#"}}, "type": "object"});
    assert!(faults(tree.clone(), json!({"a": {"a": {}}})).is_empty());
    assert_eq!(
        faults(tree, json!({"a": {"a": 1}})),
        ["- at '/a/a': got number, want object"]
    );
}

#[test]
fn schemas_elsewhere_are_read_only_by_who_was_given_for_it() {
    let schema = |reference: &str| {
        Schema::new(
            json!({"properties": {"a": {"$ref": reference}}})
                .to_string()
                .into_bytes(),
        )
    };
    let values = json!({"a": 1});
    let reader: crate::SchemaReader = std::sync::Arc::new(|address: &str| match address {
        "https://e.x/text.json" => Ok(br#"{"type": "string"}"#.to_vec()),
        _ => Err("nothing there".to_owned()),
    });
    for (reference, expected) in [
        ("https://e.x/text.json", "- at '/a': got number, want string"),
        (
            "https://e.x/none",
            "failing loading \"https://e.x/none\": nothing there",
        ),
        (
            "file:///etc/passwd",
            "failing loading \"file:///etc/passwd\": a schema may refer to itself only",
        ),
    ] {
        assert_eq!(
            schema(reference).faults(&values, Some(&reader)),
            [expected],
            "{reference}"
        );
    }
    let alone = schema("https://e.x/text.json").faults(&values, None);
    assert!(
        alone
            .iter()
            .all(|line| line.contains("a schema may refer to itself only"))
    );
    assert!(schema("urn:example:none").faults(&values, None).is_empty());
}
