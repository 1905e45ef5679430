//! Any bytes are JSON or an error; what was read is written so that it is read as the same again.
#![no_main]

use evenkeel_goyaml::{JsonStyle, Numbers, from_json, from_json_list, from_json_map, to_json, try_to_json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let _ = from_json_map(text, Numbers::Float64);
    let _ = from_json_list(text, Numbers::Float64);
    for numbers in [Numbers::Exact, Numbers::Float64] {
        let Ok(value) = from_json(text, numbers) else {
            continue;
        };
        for style in [JsonStyle::Compact, JsonStyle::Pretty, JsonStyle::Raw] {
            let written = to_json(&value, style);
            assert_eq!(try_to_json(&value, style).as_ref(), Ok(&written));
            let read = from_json(written.as_bytes(), Numbers::Float64);
            let expected = from_json(text, Numbers::Float64);
            assert_eq!(read, expected, "{written}");
        }
    }
});
