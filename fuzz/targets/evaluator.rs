//! Whatever a template does, it ends, within its bounds, twice with the same result.
#![no_main]

use std::sync::LazyLock;

use evenkeel_fuzz::{Program, bounds, outcome};
use evenkeel_goyaml::{Numbers, Value, from_yaml};
use libfuzzer_sys::fuzz_target;

static VALUES: LazyLock<Value> = LazyLock::new(|| {
    from_yaml(
        b"{l: [1, a, 2.5, null, {k: v}], m: {k: v, n: {o: [x]}}, s: text, n: 5}",
        Numbers::Float64,
    )
    .unwrap_or(Value::Null)
});

fuzz_target!(|program: Program| {
    let first = outcome(program.0.as_bytes(), &VALUES);
    if let Ok(text) = &first {
        assert!(text.len() <= bounds().output_bytes);
    }
    // The pools of functions that use time or randomness are fed with constants.
    assert_eq!(first, outcome(program.0.as_bytes(), &VALUES), "{}", program.0);
});
