//! Any bytes are a template or an error with a place; what is printed back of it parses again.
#![no_main]

use evenkeel_gotemplate::{FuncMap, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    if let Err(error) = parse("p", text, FuncMap::has_native) {
        assert!(error.to_string().starts_with("template: p:"), "{error}");
    }
});
