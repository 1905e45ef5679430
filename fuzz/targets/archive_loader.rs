//! Any bytes are a chart archive or an error; no path in a chart leads out of it, and a bomb does not go off.
#![no_main]

use std::io::Write as _;

use arbitrary::Unstructured;
use evenkeel_chart::Chart;
use evenkeel_fuzz::{chart_archive, render};
use evenkeel_goyaml::Value;
use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;

/// How deep archives are made inside archives.
const NESTING: usize = 3;

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = bytes.split_first() else {
        return;
    };
    let archive = match kind % 3 {
        0 => rest.to_vec(),
        1 => packed(rest),
        _ => match chart_archive(&mut Unstructured::new(rest), NESTING) {
            Ok(archive) => archive,
            Err(_) => return,
        },
    };
    if let Ok(chart) = Chart::from_archive(&archive) {
        assert!(!chart.metadata().name.is_empty());
        let _ = render(&chart, &Value::Null);
    }
});

fn packed(tar: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let written = encoder.write_all(tar);
    written.and_then(|()| encoder.finish()).unwrap_or_default()
}
