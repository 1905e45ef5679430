//! Any bytes are YAML or an error; what was read is written so that it is read as the same again.
#![no_main]

use evenkeel_goyaml::{
    Numbers, Value, from_yaml, from_yaml_documents, from_yaml_list, from_yaml_map, to_yaml_pretty,
    try_to_yaml,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let _ = from_yaml_map(text, Numbers::Float64);
    let _ = from_yaml_list(text, Numbers::Float64);
    let _ = from_yaml_documents(text, Numbers::Exact);
    let _ = from_yaml(text, Numbers::Exact);
    let Ok(value) = from_yaml(text, Numbers::Float64) else {
        return;
    };
    // Slips of go-yaml that its users rely on: it writes a key `<<` that it takes for a merge, and line ends of other kinds
    // that it reads as its own.
    let readable = |text: &str| text != "<<" && !text.contains(['\u{85}', '\u{2028}', '\u{2029}']);
    let is_readable = every_text(&value, &readable);
    if let Ok(written) = try_to_yaml(&value)
        && is_readable
    {
        let read = from_yaml(written.as_bytes(), Numbers::Float64);
        assert_eq!(read.as_ref(), Ok(&value), "{written}");
    }
    let pretty = to_yaml_pretty(&value);
    // go-yaml v3 writes some texts so that no go-yaml reads them.
    if let Ok(read) = from_yaml(pretty.as_bytes(), Numbers::Float64)
        && is_readable
    {
        assert_eq!(read, value, "{pretty}");
    }
});

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
