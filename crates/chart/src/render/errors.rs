//! Helm's texts for what goes wrong in templates.

use evenkeel_gotemplate::{Cause, Error as TemplateError, ParseError};

use crate::Error;

/// `parse error at (file:line): reason`
pub(crate) fn parse_error(file: &str, error: &ParseError) -> Error {
    let text = error.to_string();
    let tokens: Vec<&str> = text.split(": ").collect();
    let message = match (tokens.get(1), tokens.last()) {
        (Some(location), Some(reason)) => format!("parse error at ({location}): {reason}"),
        _ => format!("parse error in ({file}): {text}"),
    };
    Error::TemplateParse {
        message,
        file: file.to_owned(),
    }
}

/// The chart author's own refusal in one line; else each level of the chain on lines of its own, as far as Helm can
/// take the texts apart.
pub(crate) fn execution_error(file: &str, error: &TemplateError) -> Error {
    let message = match error.cause() {
        Cause::Limit(limit) => {
            let place = error.location().unwrap_or(file);
            return Error::Limit(format!("{limit} (at {place})"));
        }
        Cause::Failure(text) => {
            format!(
                "execution error at ({}): {text}",
                error.location().unwrap_or(file)
            )
        }
        _ => reformat(&error.texts()).unwrap_or_else(|| error.to_string()),
    };
    Error::TemplateExecution {
        message,
        file: file.to_owned(),
    }
}

#[derive(PartialEq)]
struct Level<'t> {
    location: &'t str,
    executed: String,
    message: &'t str,
}

fn reformat(texts: &[String]) -> Option<String> {
    let mut levels: Vec<Level<'_>> = Vec::new();
    for text in texts {
        let level = take_apart(text)?;
        if levels.last() != Some(&level) {
            levels.push(level);
        }
    }
    let mut out = String::new();
    for level in levels {
        if !level.location.is_empty() {
            out.push_str(level.location);
            out.push_str("\n  ");
        }
        if !level.executed.is_empty() {
            out.push_str(&level.executed);
            out.push_str("\n    ");
        }
        if !level.message.is_empty() {
            out.push_str(level.message);
            out.push('\n');
        }
    }
    Some(out.trim().to_owned())
}

fn take_apart(text: &str) -> Option<Level<'_>> {
    let rest = text.strip_prefix("template: ")?;
    if rest.starts_with("no template ") {
        return Some(Level {
            location: "",
            executed: String::new(),
            message: text,
        });
    }
    let before_next = |message: &'_ str| message.find(" template:").unwrap_or(message.len());
    if let Some((location, after)) = rest.split_once(": executing ")
        && let Some(after) = after.strip_prefix('"')
        && let Some((function, after)) = after.split_once('"')
        && let Some((node, message)) = after
            .strip_prefix(" at <")
            .and_then(|after| after.split_once(">: "))
    {
        let executed = format!("executing \"{function}\" at <{node}>:");
        let message = message.get(..before_next(message)).unwrap_or(message);
        return Some(Level {
            location,
            executed,
            message,
        });
    }
    let (location, message) = rest.rsplit_once(": ")?;
    let message = message.get(..before_next(message)).unwrap_or(message);
    Some(Level {
        location,
        executed: String::new(),
        message,
    })
}
