//! Any `--set…` arguments change values or are refused. The first byte says which flag; each line is an argument.
#![no_main]

use evenkeel_chart::{ValueSources, ValuesFile};
use libfuzzer_sys::fuzz_target;

const VALUES: &str = "a: {b: [1, {c: d}], e: null}\nl: [x, [y]]\ns: text\n";

fuzz_target!(|input: (u8, &str)| {
    let (flag, text) = input;
    let arguments: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut sources = ValueSources {
        files: vec![ValuesFile {
            name: "values.yaml".to_owned(),
            text: VALUES.into(),
        }],
        ..ValueSources::default()
    };
    match flag % 5 {
        0 => sources.typed = arguments,
        1 => sources.text = arguments,
        2 => sources.json = arguments,
        3 => sources.file = arguments,
        _ => sources.literal = arguments,
    }
    let _ = sources.merge(|name| match name {
        "absent" => Err("no such file".to_owned()),
        name => Ok(name.as_bytes().to_vec()),
    });
});
