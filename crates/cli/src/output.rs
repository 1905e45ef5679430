//! What goes to standard output: tables for people, JSON and YAML for programs. Everything else goes to standard error.

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use comfy_table::{Table, presets};
use evenkeel_goyaml as goyaml;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OutputFormat {
    /// A table for people.
    #[default]
    Table,
    /// JSON for programs, the same fields as the REST API.
    Json,
    /// The same as YAML.
    Yaml,
}

/// Prints `value` in the chosen format; `table` is called only when it is wanted.
pub(crate) fn print<T: Serialize>(
    format: OutputFormat,
    value: &T,
    table: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    let text = match format {
        OutputFormat::Table => table(),
        OutputFormat::Json => {
            serde_json::to_string_pretty(value).context("the answer cannot be written as JSON")?
        }
        OutputFormat::Yaml => {
            let json = serde_json::to_value(value).context("the answer cannot be written as YAML")?;
            goyaml::to_yaml(&goyaml::Value::from(json))
        }
    };
    line(text.trim_end_matches('\n'))
}

/// Prints one line of data. A reader that went away, like `head`, is no error.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("standard output cannot be written"),
    }
}

/// Prints one line for people beside the data. It cannot fail: there would be nowhere to say so.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether a person reads what this process says beside its data.
pub(crate) fn is_interactive() -> bool {
    io::stderr().is_terminal() && io::stdin().is_terminal()
}

/// Whether standard error is a terminal that can move its cursor.
pub(crate) fn has_terminal() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// A table without lines, as kubectl prints it.
pub(crate) fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    for row in rows {
        table.add_row(row);
    }
    let lines: Vec<_> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    // comfy-table pads every cell on both sides; the margin says nothing.
    lines
        .iter()
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n")
}

/// A missing value in a table.
pub(crate) fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// How long ago `then` was, in one or two units: `5s`, `3m`, `2h10m`, `4d`.
pub(crate) fn age(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(then).max(SignedDuration::ZERO).as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h{}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1_000);
        for (seconds, text) in [
            (-5, "0s"),
            (5, "5s"),
            (119, "119s"),
            (180, "3m"),
            (7_800, "2h10m"),
            (345_600, "4d"),
        ] {
            assert_eq!(age(now - SignedDuration::from_secs(seconds), now), text);
        }
    }

    #[test]
    fn tables_have_no_margin_and_no_trailing_space() {
        let text = table(["NAME", "STATE"], [["c1".to_owned(), "ready".to_owned()]]);
        assert_eq!(
            text.lines().map(str::len).collect::<Vec<_>>(),
            [11, 11],
            "{text:?}"
        );
        assert!(text.starts_with("NAME") && text.ends_with("ready"));
    }
}
