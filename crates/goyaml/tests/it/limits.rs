//! Texts and values made to hurt: each is an error, in little time and on a small stack.

use evenkeel_goyaml::{
    JsonStyle, MAX_DEPTH, Map, Numbers, Value, from_json, from_yaml, to_json, to_yaml, to_yaml_pretty,
    try_to_yaml,
};

fn yaml_error(text: &str) -> String {
    from_yaml(text.as_bytes(), Numbers::Float64)
        .unwrap_err()
        .to_string()
}

#[test]
fn billion_laughs() {
    let mut text = String::from("a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (previous, name) in ('a'..='h').zip('b'..='i') {
        let aliases = vec![format!("*{previous}"); 9].join(", ");
        text.push_str(&format!("{name}: &{name} [{aliases}]\n"));
    }
    assert_eq!(
        yaml_error(&text),
        "error converting YAML to JSON: yaml: document contains excessive aliasing"
    );
}

#[test]
fn aliases_that_hold_themselves() {
    assert_eq!(
        yaml_error("a: &x {b: *x}\n"),
        "error converting YAML to JSON: yaml: anchor 'x' value contains itself"
    );
    assert_eq!(
        yaml_error("a: &x\n  <<: *x\n"),
        "error converting YAML to JSON: yaml: anchor 'x' value contains itself"
    );
}

#[test]
fn nesting_has_an_end() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for good in [1, 100, MAX_DEPTH] {
        let value = from_yaml(nested(good).as_bytes(), Numbers::Exact).unwrap();
        assert_eq!(from_json(nested(good).as_bytes(), Numbers::Exact).unwrap(), value);
        assert_eq!(to_json(&value, JsonStyle::Compact), nested(good));
        assert_eq!(to_yaml(&value).matches('-').count(), good - 1);
        assert_eq!(to_yaml_pretty(&value).matches('-').count(), good - 1);
    }
    let too_deep = "error unmarshaling JSON: while decoding JSON: exceeded max depth";
    for bad in [MAX_DEPTH + 1, 10_000] {
        assert_eq!(yaml_error(&nested(bad)), too_deep);
        assert_eq!(
            from_json(nested(bad).as_bytes(), Numbers::Exact)
                .unwrap_err()
                .to_string(),
            "exceeded max depth"
        );
    }
    assert_eq!(
        yaml_error(&nested(10_001)),
        "error converting YAML to JSON: yaml: exceeded max depth of 10000"
    );
    let blocks = format!("{}x", "- ".repeat(10_001));
    assert_eq!(
        yaml_error(&blocks),
        "error converting YAML to JSON: yaml: exceeded max depth of 10000"
    );
    let maps: String = (0..5_000)
        .map(|depth| format!("{}a:\n", " ".repeat(depth)))
        .collect();
    assert_eq!(yaml_error(&maps), too_deep);
}

#[test]
fn values_nested_too_deep_are_not_written() {
    let mut value = Value::Null;
    for _ in 0..=MAX_DEPTH {
        value = Value::Map(Map::from([("a".to_owned(), value)]));
    }
    assert_eq!(to_yaml(&value), "");
    assert_eq!(to_yaml_pretty(&value), "");
    assert_eq!(
        try_to_yaml(&value).unwrap_err().to_string(),
        "yaml: exceeded max depth"
    );
}

#[test]
fn long_texts_take_linear_time() {
    // Each of these once took quadratic time in some reader of YAML.
    for text in [
        "[".repeat(9_999),
        "{a: ".repeat(9_999),
        "? ".repeat(9_999),
        "a: [".to_owned() + &"[],".repeat(100_000) + "]",
        "a: {".to_owned() + &"k: v, ".repeat(100_000) + "}",
        "\"".to_owned() + &"\\x41".repeat(200_000) + "\"",
        "x ".repeat(300_000),
        "a: |\n".to_owned() + &"  line\n".repeat(100_000),
        "&a ".repeat(100_000),
        "!a ".repeat(100_000),
        "---\n".repeat(100_000),
        "a: b\n".repeat(100_000),
    ] {
        let _ = from_yaml(text.as_bytes(), Numbers::Float64);
    }
}
