//! Evenkeel's answers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use evenkeel_chart::{
    Capabilities, Chart, Instant, RandomSource, Release, RenderOptions, Rendered, ValueSources, ValuesFile,
    render,
};
use evenkeel_goyaml::Value;

use super::case::{Answer, Case, PRINTER, carried, chart};
use super::set;

/// Bytes that functions may make. Helm has no bound, and must not be asked about what needs one.
const WORK: usize = 64 << 20;

/// Randomness that nobody looks at: what used it is not compared.
struct Zeros;

impl RandomSource for Zeros {
    fn fill(&mut self, buffer: &mut [u8]) {
        buffer.fill(0);
    }
}

/// The release that Helm's linter renders for.
fn release() -> Release {
    Release {
        name: "test-release".to_owned(),
        namespace: "default".to_owned(),
        revision: 0,
        is_install: false,
        is_upgrade: false,
        service: "Helm".to_owned(),
    }
}

/// Answers a case; a panic is an answer too, and never the right one.
pub(crate) fn answer(case: &Case) -> Answer {
    catch_unwind(AssertUnwindSafe(|| try_answer(case))).unwrap_or_else(|_| Answer::Error("PANIC".to_owned()))
}

fn try_answer(case: &Case) -> Answer {
    let values = match case {
        Case::Set { flag, text } => match set_values(flag, text) {
            Ok(values) => values,
            Err(error) => return Answer::Error(error),
        },
        _ => Value::Null,
    };
    let included = !matches!(
        case,
        Case::Template { included: false, .. } | Case::Refusal { .. }
    );
    if included {
        // An error does not say what the render depends on, so it is rendered once more, without one.
        let mut files = chart(case);
        files.pop();
        let printer = "a: {{ include \"x/templates/_e.tpl\" . | b64enc | quote }}\n";
        files.push((PRINTER, printer.into()));
        if run(case, files, &values).is_ok_and(|rendered| !rendered.taints.is_clean()) {
            return Answer::Unstable;
        }
    }
    let answer_at = |now| match run_at(case, chart(case), &values, now) {
        Ok(_) => Answer::Error("the error that carries the output did not come".to_owned()),
        Err(error) => carried(&error),
    };
    let answer = answer_at(Instant::default());
    // Errors do not say that they depend on the time; at another time they show it.
    let later = Instant {
        seconds: 1_234_567_890,
        nanos: 123_456_789,
    };
    if matches!(answer, Answer::Error(_)) && answer != answer_at(later) {
        return Answer::Unstable;
    }
    answer
}

fn run(case: &Case, files: Vec<(&str, Vec<u8>)>, values: &Value) -> Result<Rendered, String> {
    run_at(case, files, values, Instant::default())
}

fn run_at(
    case: &Case,
    files: Vec<(&str, Vec<u8>)>,
    values: &Value,
    now: Instant,
) -> Result<Rendered, String> {
    let chart = Chart::from_files(files).map_err(|error| error.to_string())?;
    let mut options = RenderOptions::new(now, Box::new(Zeros));
    options.limits.work_bytes = WORK;
    let release = match case {
        Case::Refusal { .. } => Release::install("test-release", "default"),
        _ => release(),
    };
    render(&chart, values, &release, &Capabilities::default(), options).map_err(|error| error.to_string())
}

fn set_values(flag: &str, text: &str) -> Result<Value, String> {
    let arguments = vec![set::rooted(text, 0)];
    let mut sources = ValueSources {
        files: vec![ValuesFile {
            name: "base.yaml".to_owned(),
            text: set::base(1).into_bytes(),
        }],
        ..ValueSources::default()
    };
    match flag {
        "--set-string" => sources.text = arguments,
        "--set-json" => sources.json = arguments,
        "--set-literal" => sources.literal = arguments,
        _ => sources.typed = arguments,
    }
    sources
        .merge(|name| Err(format!("{name}: there are no files")))
        .map_err(|error| error.to_string())
}
