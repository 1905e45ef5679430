//! Renders with bounds that a fuzzer can afford.

use evenkeel_chart::{
    Capabilities, Chart, Error, Instant, Limits, RandomSource, Release, RenderOptions, Rendered,
};
use evenkeel_goyaml::Value;

/// Randomness that is always the same: a finding must come again.
struct Zeros;

impl RandomSource for Zeros {
    fn fill(&mut self, buffer: &mut [u8]) {
        buffer.fill(0);
    }
}

/// Tight enough that no input takes long, wide enough that none of the code is out of reach.
pub fn bounds() -> Limits {
    Limits {
        call_depth: 200,
        output_bytes: 1 << 20,
        work_bytes: 4 << 20,
        iterations: 10_000,
        value_depth: 200,
    }
}

/// Renders a chart with [`bounds`].
///
/// # Errors
/// Whatever is wrong with the chart.
pub fn render(chart: &Chart, values: &Value) -> Result<Rendered, Error> {
    let mut options = RenderOptions::new(Instant::default(), Box::new(Zeros));
    options.limits = bounds();
    render_with(chart, values, options)
}

fn render_with(chart: &Chart, values: &Value, options: RenderOptions) -> Result<Rendered, Error> {
    let release = Release::install("r", "ns");
    evenkeel_chart::render(chart, values, &release, &Capabilities::default(), options)
}

/// What a template in a chart of its own gives, or the text of its error.
///
/// # Errors
/// As [`render`].
pub fn outcome(template: &[u8], values: &Value) -> Result<String, String> {
    let files: [(&str, &[u8]); 3] = [
        ("Chart.yaml", b"apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        (
            "templates/_h.tpl",
            b"{{ define \"h\" }}{{ . }}{{ end }}{{ define \"r\" }}{{ include \"r\" . }}{{ end }}",
        ),
        ("templates/a.txt", template),
    ];
    let chart = Chart::from_files(files).map_err(|error| error.to_string())?;
    let rendered = render(&chart, values).map_err(|error| error.to_string())?;
    Ok(rendered
        .manifests
        .into_iter()
        .map(|manifest| manifest.text)
        .collect())
}
