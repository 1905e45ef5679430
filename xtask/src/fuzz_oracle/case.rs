//! What both engines are asked, and what they answer.

use std::fmt;

/// What is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Templates: every function, every kind of action.
    Expressions,
    /// YAML and JSON texts, as values file and through the functions that read them.
    Documents,
    /// `--set`, `--set-string`, `--set-json`, `--set-literal`.
    Set,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expressions => "expressions",
            Self::Documents => "documents",
            Self::Set => "set",
        })
    }
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// A template, included by another one, or run as a file of its own where only its error is looked at.
    Template { text: Vec<u8>, included: bool },
    /// A template with `fail` or `required`: Helm's linter takes them for granted, so it cannot be asked.
    Refusal { text: Vec<u8> },
    /// A text that is the chart's `values.yaml`.
    Values { text: Vec<u8> },
    /// A text that the functions read.
    Read { text: Vec<u8> },
    /// An argument of this flag. [`ROOT`] stands for the key that is the case's own.
    Set { flag: &'static str, text: String },
}

/// Stands in `--set` arguments for a key of which other cases do not know.
pub(crate) const ROOT: char = '\u{1}';

impl Case {
    /// What the user may want to read.
    pub(crate) fn text(&self) -> Vec<u8> {
        match self {
            Self::Template { text, .. }
            | Self::Refusal { text }
            | Self::Values { text }
            | Self::Read { text } => text.clone(),
            Self::Set { flag, text } => format!("{flag} {text}").replace(ROOT, "k").into_bytes(),
        }
    }

    /// Its kind in a word or two.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Template { included: true, .. } => "included template",
            Self::Template { .. } => "template file",
            Self::Refusal { .. } => "template that refuses",
            Self::Values { .. } => "values.yaml",
            Self::Read { .. } => "text read by functions",
            Self::Set { .. } => "argument",
        }
    }
}

/// What an engine says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Output(Vec<u8>),
    Error(String),
    /// It depends on more than the case: the time, randomness, an address in memory.
    Unstable,
}

impl Answer {
    /// Whether one of both cannot be compared, or both are the same as far as they are meant to be.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unstable, _) | (_, Self::Unstable) => true,
            (Self::Output(ours), Self::Output(theirs)) => compared(ours) == compared(theirs),
            // Go finds what lies in memory behind the end of a list that is part of a longer one; here it is an error.
            (Self::Error(ours), _) if ours.ends_with(BEHIND_THE_END) => true,
            (Self::Error(ours), Self::Error(theirs)) => {
                compared(as_read(ours).as_bytes()) == compared(as_read(theirs).as_bytes())
            }
            _ => false,
        }
    }

    /// Whether a bound was passed, of which Helm has none.
    pub(crate) fn is_limit(&self) -> bool {
        matches!(self, Self::Error(text) if text.starts_with(LIMIT))
    }

    /// The same word for answers that shrinking should not take for each other.
    pub(crate) fn class(&self) -> &'static str {
        match self {
            Self::Output(_) => "output",
            Self::Error(_) => "error",
            Self::Unstable => "unstable",
        }
    }
}

/// The error of a passed limit.
const LIMIT: &str = "render stopped: ";

/// The error of a `slice` that goes too far.
const BEHIND_THE_END: &str = "reflect.Value.Slice: slice index out of bounds";

/// Where wordings part on purpose: readers of TOML complain each in their own words, and of a faulty `--set-json`
/// Helm shows all of the argument, which may be a secret, but not what is wrong with it.
const OWN_WORDS: [&[u8]; 3] = [b"toml: ", b"toml%3A+", b"failed parsing --set-json data"];

/// An answer up to the first words that are not compared.
fn compared(text: &[u8]) -> &[u8] {
    let ends = OWN_WORDS.iter().filter_map(|words| {
        // `swapcase` and its like come in between.
        text.windows(words.len())
            .position(|window| window.eq_ignore_ascii_case(words))
            .map(|at| at + words.len())
    });
    ends.min().and_then(|end| text.get(..end)).unwrap_or(text)
}

/// An error with one mark for each run of bytes that are no text: Helm prints such bytes as they are, and how many marks
/// stand for them is up to who reads.
fn as_read(error: &str) -> String {
    let mut read = String::with_capacity(error.len());
    for c in error.chars() {
        if c != char::REPLACEMENT_CHARACTER || !read.ends_with(c) {
            read.push(c);
        }
    }
    read
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(bytes) => write!(f, "output {}", shown(bytes)),
            Self::Error(text) => write!(f, "error  {text}"),
            Self::Unstable => f.write_str("not the same each time"),
        }
    }
}

/// Bytes in quotes, with what cannot be printed escaped.
pub(crate) fn shown(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii().to_string().replace("\\'", "'"))
}

const CHART_FILE: &str = "apiVersion: v2\nname: x\nversion: 0.1.0\n";

/// Name of the included template.
pub(crate) const INCLUDED: &str = "templates/_e.tpl";

/// Name of the template that always fails, since only so the linter tells of it.
pub(crate) const PRINTER: &str = "templates/a.txt";

/// Output of the text functions for a text in the file `d`, all in one.
const READERS: &str = r#"{{- $d := .Files.Get "d" -}}
{{- $m := fromYaml $d -}}
{{- range $x := list $m (fromYamlArray $d) (fromJson $d) (fromJsonArray $d) -}}
{{- toJson $x }}
{{ end -}}
{{- if not (hasKey $m "Error") }}{{ toYaml $m }}
{{ toYamlPretty $m }}
{{ toToml $m }}
{{ $m }}
{{ toPrettyJson $m }}{{ toRawJson $m }}
{{- end }}
{{ toJson (fromToml $d) }}
"#;

/// Files of the chart for a case. The last one is the template that carries the answer.
pub(crate) fn chart(case: &Case) -> Vec<(&'static str, Vec<u8>)> {
    let mut files = vec![("Chart.yaml", CHART_FILE.into())];
    match case {
        Case::Template { text, included: true } => {
            files.push(("values.yaml", super::expressions::VALUES.into()));
            files.push((INCLUDED, text.clone()));
            files.push((PRINTER, CARRIER.into()));
        }
        Case::Template { text, .. } | Case::Refusal { text } => {
            files.push(("values.yaml", super::expressions::VALUES.into()));
            files.push((PRINTER, [text.as_slice(), b"{{ include \"!\" . }}"].concat()));
        }
        Case::Values { text } => {
            files.push(("values.yaml", text.clone()));
            files.push((INCLUDED, b"{{ toJson .Values }}".to_vec()));
            files.push((PRINTER, CARRIER.into()));
        }
        Case::Read { text } => {
            files.push(("d", text.clone()));
            files.push((INCLUDED, READERS.into()));
            files.push((PRINTER, CARRIER.into()));
        }
        Case::Set { .. } => {
            files.push((INCLUDED, super::set::printer(1).into_bytes()));
            files.push((PRINTER, CARRIER.into()));
        }
    }
    files
}

/// The template that carries the output of the included one in an error: of many charts in one run, Helm tells the
/// errors apart, and outputs it does not show.
const CARRIER: &str = "{{ include (include \"x/templates/_e.tpl\" . | b64enc) . }}";

/// What surrounds an output that [`CARRIER`] carries.
const CARRIED: (&str, &str) = (
    "x/templates/a.txt:1:3\n  executing \"x/templates/a.txt\" at <include (include \"x/templates/_e.tpl\" . | b64enc) .>:\n    \
     error calling include:\ntemplate: no template \"",
    "\" associated with template \"gotpl\"",
);

/// The answer that an error of a chart with [`CARRIER`] means.
pub(crate) fn carried(error: &str) -> Answer {
    use base64::Engine as _;

    let inner = error.trim_end().strip_prefix(CARRIED.0);
    let inner = inner.and_then(|rest| rest.strip_suffix(CARRIED.1));
    let decoded = inner.and_then(|text| base64::engine::general_purpose::STANDARD.decode(text).ok());
    match decoded {
        Some(output) if has_address(&output) => Answer::Unstable,
        Some(output) => Answer::Output(output),
        None if has_address(error.as_bytes()) => Answer::Unstable,
        None => Answer::Error(error.trim_end().to_owned()),
    }
}

/// Go prints the addresses of objects inside lists and maps. Its are at random; ours is always 0x30c000000000.
fn has_address(text: &[u8]) -> bool {
    let prefixed = |start: &[u8]| text.windows(start.len()).any(|window| window == start);
    prefixed(b"0x30c") || prefixed(b"0X30C") || prefixed(b"c0000") || prefixed(b"C0000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_come_out_of_errors() {
        let error = format!("{}aGk={}\n", CARRIED.0, CARRIED.1);
        assert_eq!(carried(&error), Answer::Output(b"hi".to_vec()));
        assert_eq!(carried("nil pointer\n"), Answer::Error("nil pointer".to_owned()));
        assert_eq!(carried("at 0x30c000000000"), Answer::Unstable);
    }

    #[test]
    fn bytes_that_are_no_text_are_not_counted() {
        let error = |text: &str| Answer::Error(text.to_owned());
        assert!(error("at \u{fffd}\u{fffd}x").agrees(&error("at \u{fffd}x")));
        assert!(!error("at \u{fffd}x").agrees(&error("at x")));
    }

    #[test]
    fn what_differs_each_time_agrees_with_all() {
        let output = Answer::Output(b"1".to_vec());
        assert!(output.agrees(&output.clone()) && output.agrees(&Answer::Unstable));
        assert!(
            !output.agrees(&Answer::Output(b"2".to_vec())) && !output.agrees(&Answer::Error("1".to_owned()))
        );
    }
}
