//! Reading beyond the tables: numbers kept exact, streams of documents, errors and their parts, UTF-16.

use evenkeel_goyaml::{
    JsonStyle, Numbers, Value, from_json, from_json_list, from_json_map, from_yaml, from_yaml_documents,
    from_yaml_list, from_yaml_map, replace_invalid_utf8, to_json, try_to_json, try_to_yaml,
};

fn exact(text: &str) -> Value {
    match from_yaml_map(text.as_bytes(), Numbers::Exact)
        .unwrap()
        .remove("a")
    {
        Some(value) => value,
        None => panic!("no key a in {text}"),
    }
}

#[test]
fn exact_numbers_are_what_kubernetes_reads() {
    assert_eq!(exact("a: 80"), Value::Int(80));
    assert_eq!(exact("a: 0777"), Value::Int(511));
    assert_eq!(exact("a: 1.0"), Value::Int(1), "as JSON it is `1`");
    assert_eq!(exact("a: 1e3"), Value::Int(1000));
    assert_eq!(exact("a: -0.0"), Value::Int(0));
    assert_eq!(exact("a: 1.5"), Value::Float(1.5));
    assert_eq!(exact("a: 9007199254740993"), Value::Int(9_007_199_254_740_993));
    assert_eq!(exact("a: 18446744073709551615"), Value::Uint(u64::MAX));
    assert_eq!(
        exact("a: 18446744073709551616"),
        Value::Float(18_446_744_073_709_551_616.0)
    );
    let json = from_json(b"[1, 1.0, 1e3, 18446744073709551615, 1e30]", Numbers::Exact).unwrap();
    let expected = [
        Value::Int(1),
        Value::Float(1.0),
        Value::Float(1000.0),
        Value::Uint(u64::MAX),
        Value::Float(1e30),
    ];
    assert_eq!(json, Value::List(expected.to_vec()));
}

#[test]
fn documents_know_their_lines() {
    let text = b"# comment\na: 1\n---\n\n---\n# c\nb: 2\n...\n%YAML 1.1\n---\n- x\n";
    let documents = from_yaml_documents(text, Numbers::Exact).unwrap();
    let seen: Vec<(usize, String)> = documents
        .iter()
        .map(|d| (d.line, to_json(&d.value, JsonStyle::Compact)))
        .collect();
    let expected = [(2, r#"{"a":1}"#), (3, "null"), (5, r#"{"b":2}"#), (9, r#"["x"]"#)];
    assert_eq!(seen, expected.map(|(line, json)| (line, json.to_owned())));
    assert_eq!(from_yaml_documents(b"", Numbers::Exact).unwrap(), []);
    let error = from_yaml_documents(b"a: 1\n---\na: 'x\n", Numbers::Exact).unwrap_err();
    assert_eq!(error.line(), Some(4));
}

#[test]
fn errors_have_parts() {
    let error = from_yaml(b"a: 1\nb:\n\t- x\n", Numbers::Float64).unwrap_err();
    assert_eq!(
        error.to_string(),
        "error converting YAML to JSON: yaml: line 3: found character that cannot start any token"
    );
    assert_eq!(error.line(), Some(3));
    assert_eq!(error.message(), "found character that cannot start any token");
    let error = from_yaml(b"a: 'x\n", Numbers::Float64).unwrap_err();
    assert_eq!(
        (error.line(), error.message()),
        (Some(2), "found unexpected end of stream")
    );
}

#[test]
fn targets_refuse_other_kinds() {
    let message =
        |target: &str, found: &str| format!("json: cannot unmarshal {found} into Go value of type {target}");
    let map = "map[string]interface {}";
    let list = "[]interface {}";
    assert_eq!(
        from_json_map(b"[]", Numbers::Float64).unwrap_err().to_string(),
        message(map, "array")
    );
    assert_eq!(
        from_json_map(b"1e999", Numbers::Float64).unwrap_err().to_string(),
        message(map, "number")
    );
    assert_eq!(from_json_map(b"null", Numbers::Float64).unwrap(), None);
    assert_eq!(
        from_json_list(b"{}", Numbers::Float64).unwrap_err().to_string(),
        message(list, "object")
    );
    assert_eq!(from_json_list(b"null", Numbers::Float64).unwrap(), None);
    let prefix = "error unmarshaling JSON: while decoding JSON: ";
    let error = from_yaml_list(b"a: 1", Numbers::Float64).unwrap_err();
    assert_eq!(error.to_string(), format!("{prefix}{}", message(list, "object")));
    assert!(from_yaml_list(b"", Numbers::Float64).unwrap().is_empty());
    assert!(from_yaml_map(b"# nothing", Numbers::Float64).unwrap().is_empty());
}

#[test]
fn a_number_out_of_range_keeps_the_rest() {
    let error = from_json(br#"{"a":[1,1e999],"b":2}"#, Numbers::Float64).unwrap_err();
    assert_eq!(
        error.to_string(),
        "json: cannot unmarshal number 1e999 into .a.1 of type float64"
    );
    let rest = error.partial().map(|value| to_json(value, JsonStyle::Compact));
    assert_eq!(rest.as_deref(), Some(r#"{"a":[1,0],"b":2}"#));
}

#[test]
fn utf16_after_a_byte_order_mark() {
    let text = "a: é😀\nb: [1]\n";
    let little: Vec<u8> = [0xfeff]
        .into_iter()
        .chain(text.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    let big: Vec<u8> = [0xfeff]
        .into_iter()
        .chain(text.encode_utf16())
        .flat_map(u16::to_be_bytes)
        .collect();
    let expected = from_yaml(text.as_bytes(), Numbers::Exact).unwrap();
    assert_eq!(from_yaml(&little, Numbers::Exact).unwrap(), expected);
    assert_eq!(from_yaml(&big, Numbers::Exact).unwrap(), expected);
    let odd = little.get(..little.len() - 1).unwrap();
    let error = from_yaml(odd, Numbers::Exact).unwrap_err();
    assert_eq!(error.message(), "incomplete UTF-16 character");
}

#[test]
fn what_is_not_finite_is_refused_by_name() {
    let value = Value::List(vec![Value::Float(1.0), Value::Float(f64::NEG_INFINITY)]);
    let json = try_to_json(&value, JsonStyle::Compact).unwrap_err();
    assert_eq!(json.to_string(), "json: unsupported value: -Inf");
    let yaml = try_to_yaml(&value).unwrap_err();
    assert_eq!(
        yaml.to_string(),
        "error marshaling into JSON: json: unsupported value: -Inf"
    );
    let serde = serde_json::Value::try_from(value).unwrap_err();
    assert_eq!(serde.to_string(), "json: unsupported value: -Inf");
    let yaml = try_to_yaml(&Value::String("a\u{7f}".to_owned())).unwrap_err();
    assert_eq!(yaml.to_string(), "yaml: control characters are not allowed");
}

#[test]
fn each_invalid_byte_is_one_replacement() {
    assert_eq!(
        replace_invalid_utf8(b"a\xe2\x82b\xff"),
        "a\u{fffd}\u{fffd}b\u{fffd}"
    );
    assert_eq!(replace_invalid_utf8("é".as_bytes()), "é");
}

/// What a later key replaces is never converted, so that it has no form in JSON does not matter.
#[test]
fn a_replaced_value_may_be_unconvertible() {
    let read = |text: &str| from_yaml(text.as_bytes(), Numbers::Float64);
    let expected = read("c: 1").unwrap();
    assert_eq!(read("c: {~: 1}\nc: 1"), Ok(expected.clone()));
    assert_eq!(read("<<: {c: {~: 1}}\nc: 1"), Ok(expected));
    let problem = |text: &str| read(text).unwrap_err().to_string();
    assert!(problem("c: 1\nc: {~: 1}").contains("unsupported map key of type: %!s(<nil>)"));
    assert!(problem("a: {~: 1}\nc: 1\nc: 2").contains("unsupported map key of type: %!s(<nil>)"));
    // The YAML itself must be sound even there.
    assert!(problem("c: {[x]: 1}\nc: 1").contains("invalid map key: []interface {}{\"x\"}"));
}

/// Keys of a map that is a key are printed in the order of Go's `fmt`.
#[test]
fn keys_of_a_key_are_in_order() {
    let text = "? {true: 1, 2: 2, a: 3, 1.5: 4, ~: 5, 18446744073709551615: 6, -1: 7, b: 8, 0.5: 9, false: 0, 10: 1, 9: 1}\n: 1\n";
    assert_eq!(
        from_yaml(text.as_bytes(), Numbers::Float64)
            .unwrap_err()
            .message(),
        "invalid map key: map[interface {}]interface {}{interface {}(nil):5, \"a\":3, \"b\":8, 0xffffffffffffffff:6, -1:7, \
         2:2, 9:1, 10:1, 0.5:9, 1.5:4, false:0, true:1}"
    );
}
