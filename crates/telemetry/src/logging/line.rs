//! How a line looks.

use std::fmt::Write as _;

use jiff::Timestamp;
use tracing::Level;

use super::fields::{Fields, Value};
use super::{ID_FIELDS, Style};

/// The names that a JSON line has of its own. A field of that name gets [`RENAMED`] in front.
const OWN_NAMES: [&str; 4] = ["timestamp", "level", "target", "message"];
const RENAMED: &str = "field_";

/// One event with everything around it.
pub(super) struct Line {
    pub(super) time: Timestamp,
    pub(super) level: Level,
    pub(super) target: String,
    pub(super) message: String,
    pub(super) fields: Fields,
}

impl Line {
    pub(super) fn to_bytes(&self, style: Style) -> Vec<u8> {
        let mut text = String::with_capacity(256);
        match style {
            Style::Json => self.json(&mut text),
            Style::Text { colour } => self.text(&mut text, colour),
        }
        text.push('\n');
        text.into_bytes()
    }

    /// The ids first, in their order, then all else as it came.
    fn ordered(&self) -> impl Iterator<Item = &(&'static str, Value)> {
        let fields = &self.fields.0;
        let ids = ID_FIELDS
            .iter()
            .filter_map(|id| fields.iter().find(|(name, _)| name == id));
        ids.chain(fields.iter().filter(|(name, _)| !ID_FIELDS.contains(name)))
    }

    fn json(&self, out: &mut String) {
        // Writing into a String cannot fail.
        let _ = write!(
            out,
            "{{\"timestamp\":\"{:.6}\",\"level\":\"{}\",\"target\":",
            self.time, self.level
        );
        json_text(out, &self.target);
        out.push_str(",\"message\":");
        json_text(out, &self.message);
        for (name, value) in self.ordered() {
            out.push(',');
            if OWN_NAMES.contains(name) {
                json_text(out, &format!("{RENAMED}{name}"));
            } else {
                json_text(out, name);
            }
            out.push(':');
            match value {
                Value::Text(text) => json_text(out, text),
                Value::Float(number) if !number.is_finite() => json_text(out, &number.to_string()),
                other => other.plain(out),
            }
        }
        out.push('}');
    }

    fn text(&self, out: &mut String, colour: bool) {
        let _ = write!(out, "{:.6} ", self.time);
        let (on, off) = if colour {
            (colour_of(self.level), "\x1b[0m")
        } else {
            ("", "")
        };
        let _ = write!(out, "{on}{:>5}{off} ", self.level.as_str());
        let (dim, off) = if colour { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
        let _ = write!(out, "{dim}{}:{off} ", self.target);
        escape_controls(out, &self.message);
        for (name, value) in self.ordered() {
            let _ = write!(out, " {dim}{name}={off}");
            match value {
                Value::Text(text) if needs_quotes(text) => {
                    let _ = write!(out, "{text:?}");
                }
                Value::Text(text) => out.push_str(text),
                other => other.plain(out),
            }
        }
    }
}

impl Value {
    fn plain(&self, out: &mut String) {
        let _ = match self {
            Self::Text(text) => write!(out, "{text}"),
            Self::Signed(number) => write!(out, "{number}"),
            Self::Unsigned(number) => write!(out, "{number}"),
            Self::Float(number) => write!(out, "{number}"),
            Self::Bool(yes) => write!(out, "{yes}"),
        };
    }
}

fn json_text(out: &mut String, text: &str) {
    match serde_json::to_string(text) {
        Ok(quoted) => out.push_str(&quoted),
        Err(_) => out.push_str("\"\""),
    }
}

fn needs_quotes(text: &str) -> bool {
    text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"' || c == '=')
}

/// One event is one line, and a message cannot speak to the terminal.
fn escape_controls(out: &mut String, text: &str) {
    for c in text.chars() {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
}

fn colour_of(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\x1b[31m",
        Level::WARN => "\x1b[33m",
        Level::INFO => "\x1b[32m",
        Level::DEBUG => "\x1b[34m",
        Level::TRACE => "\x1b[35m",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(fields: Vec<(&'static str, Value)>, message: &str) -> Line {
        Line {
            time: Timestamp::constant(1_800_000_000, 0),
            level: Level::WARN,
            target: "app".to_owned(),
            message: message.to_owned(),
            fields: Fields(fields),
        }
    }

    fn print(line: &Line, style: Style) -> String {
        String::from_utf8(line.to_bytes(style)).unwrap()
    }

    #[test]
    fn text_stays_one_line_and_quotes_what_is_ambiguous() {
        let text = |value: &str| Value::Text(value.to_owned());
        let line = line(
            vec![
                ("a", text("plain")),
                ("b", text("two words")),
                ("c", text("")),
                ("d", text("line\nbreak \x1b[31m")),
                ("e", text("k=v")),
                ("component", text("web")),
                ("n", Value::Float(f64::NAN)),
            ],
            "first\nsecond \x1b]0;evil\x07",
        );
        assert_eq!(
            print(&line, Style::Text { colour: false }),
            "2027-01-15T08:00:00.000000Z  WARN app: first\\nsecond \\u{1b}]0;evil\\u{7} component=web a=plain \
             b=\"two words\" c=\"\" d=\"line\\nbreak \\u{1b}[31m\" e=\"k=v\" n=NaN\n"
        );
    }

    #[test]
    fn json_is_valid_whatever_the_fields_are_called() {
        let line = line(
            vec![
                ("level", Value::Signed(-3)),
                ("message", Value::Text("m".to_owned())),
                ("ratio", Value::Float(f64::INFINITY)),
                ("count", Value::Unsigned(u64::MAX)),
                ("ok", Value::Bool(true)),
            ],
            "say \"hi\"\n",
        );
        assert_eq!(
            print(&line, Style::Json),
            "{\"timestamp\":\"2027-01-15T08:00:00.000000Z\",\"level\":\"WARN\",\"target\":\"app\",\
             \"message\":\"say \\\"hi\\\"\\n\",\"field_level\":-3,\"field_message\":\"m\",\"ratio\":\"inf\",\
             \"count\":18446744073709551615,\"ok\":true}\n"
        );
    }

    #[test]
    fn colours_touch_only_the_frame() {
        let line = line(vec![("a", Value::Bool(true))], "hello");
        assert_eq!(
            print(&line, Style::Text { colour: true }),
            "2027-01-15T08:00:00.000000Z \x1b[33m WARN\x1b[0m \x1b[2mapp:\x1b[0m hello \x1b[2ma=\x1b[0mtrue\n"
        );
    }
}
