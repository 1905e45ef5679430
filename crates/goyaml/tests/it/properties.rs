//! What holds for every value and every text.

use evenkeel_goyaml::{
    JsonStyle, Numbers, Value, from_json, from_yaml, from_yaml_documents, natural_order, to_json, to_yaml,
    to_yaml_pretty, try_to_json,
};
use proptest::prelude::*;

/// Characters that YAML or its readers treat specially, and some that they do not.
fn character() -> impl Strategy<Value = char> {
    prop_oneof![
        4 => proptest::char::range(' ', '~'),
        2 => proptest::sample::select(
            "\n\n\t\r :#-?,[]{}&*!|>'\"%@`\\=~<yno0123456789.eE+_é☺日\u{a0}\u{2028}\u{2029}\u{feff}😀\u{1b}\u{0}".chars().collect::<Vec<_>>()
        ),
        1 => any::<char>().prop_filter("no reader of YAML takes these", |c| {
            !matches!(c, '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
        }),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => proptest::collection::vec(character(), 0..24).prop_map(|c| c.into_iter().collect()),
        1 => proptest::collection::vec(character(), 60..200).prop_map(|c| c.into_iter().collect()),
        1 => "[-+]?[0-9][0-9_.:eExXobT-]{0,12}",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        (i64::MAX as u64 + 1..=u64::MAX).prop_map(Value::Uint),
        // Whole floats come back as integers; see the test below.
        any::<f64>()
            .prop_filter("finite, not whole", |f| f.is_finite() && f.fract() != 0.0)
            .prop_map(Value::Float),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::List),
            proptest::collection::btree_map(text(), inner, 0..6).prop_map(Value::Map),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn yaml_round_trip(value in value()) {
        // go-yaml writes the key `<<` as it is and then takes it for a merge.
        prop_assume!(every_text(&value, &|text: &str| text != "<<"));
        let text = to_yaml(&value);
        prop_assert_eq!(from_yaml(text.as_bytes(), Numbers::Exact).unwrap(), value, "{}", text);
    }

    #[test]
    fn pretty_yaml_round_trip(value in value()) {
        // go-yaml v3 writes a block that begins with a tab without saying how far it is indented, and no go-yaml reads that.
        let readable = |text: &str| text != "<<" && !(text.starts_with('\t') && text.contains('\n'));
        prop_assume!(every_text(&value, &readable));
        let text = to_yaml_pretty(&value);
        prop_assert_eq!(from_yaml(text.as_bytes(), Numbers::Exact).unwrap(), value, "{}", text);
    }

    #[test]
    fn json_round_trip(value in value()) {
        for style in [JsonStyle::Compact, JsonStyle::Pretty, JsonStyle::Raw] {
            let text = to_json(&value, style);
            prop_assert_eq!(&from_json(text.as_bytes(), Numbers::Exact).unwrap(), &value, "{}", text);
        }
    }

    /// Any JSON without surrogate escapes and `\/` is YAML, and both readers agree on it.
    #[test]
    fn json_is_yaml(value in value()) {
        let text = to_json(&value, JsonStyle::Compact);
        // Longer keys may not be simple keys any more.
        let simple = |key: &str| to_json(&Value::String(key.to_owned()), JsonStyle::Compact).chars().count() <= 1024;
        prop_assume!(every_text(&value, &simple));
        prop_assert_eq!(from_yaml(text.as_bytes(), Numbers::Exact).unwrap(), value);
    }

    #[test]
    fn float_round_trip(f in any::<f64>().prop_filter("finite", |f| f.is_finite())) {
        let text = to_yaml(&Value::Float(f));
        let back = from_yaml(text.as_bytes(), Numbers::Float64).unwrap();
        prop_assert_eq!(back, Value::Float(f));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        read_in_every_way(&bytes);
    }

    #[test]
    fn any_soup_of_indicators_is_read_or_refused(
        tokens in proptest::collection::vec(proptest::sample::select(SOUP.to_vec()), 0..40)
    ) {
        read_in_every_way(tokens.concat().as_bytes());
    }

    #[test]
    fn keys_are_ordered_antisymmetrically(a in text(), b in text()) {
        prop_assert_eq!(natural_order(&a, &b), natural_order(&b, &a).reverse());
        prop_assert_eq!(natural_order(&a, &b).is_eq(), a == b);
    }

    #[test]
    fn through_serde_json_and_back(value in value()) {
        let there = serde_json::Value::try_from(value.clone()).unwrap();
        prop_assert_eq!(Value::from(there), value);
    }
}

const SOUP: [&str; 40] = [
    " ", "  ", "\n", "\n  ", "- ", ": ", ":", "? ", "?", "[", "]", "{", "}", ",", "#", "&a ", "*a ",
    "!!str ", "!!int ", "!x ", "|", ">", "|2\n", "\"", "'", "\\", "\\x", "%", "---", "...", "\n---\n", "\t",
    "\r\n", "a", "1", "<<: ", "\u{85}", "\u{2028}", "\u{feff}", "é",
];

fn every_text(value: &Value, holds: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => holds(text),
        Value::List(items) => items.iter().all(|item| every_text(item, holds)),
        Value::Map(map) => map
            .iter()
            .all(|(key, item)| holds(key) && every_text(item, holds)),
        _ => true,
    }
}

/// Nothing may panic; what was read can be written, unless it is not finite.
fn read_in_every_way(bytes: &[u8]) {
    for numbers in [Numbers::Exact, Numbers::Float64] {
        for value in [from_yaml(bytes, numbers), from_json(bytes, numbers)]
            .into_iter()
            .flatten()
        {
            try_to_json(&value, JsonStyle::Compact).unwrap();
            to_yaml(&value);
            to_yaml_pretty(&value);
        }
        let _ = from_yaml_documents(bytes, numbers);
    }
}
