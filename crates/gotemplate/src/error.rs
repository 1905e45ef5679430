//! Errors of parsing and executing templates, with Go's texts.

use std::fmt;

use crate::env::Limit;
use crate::fmt::quote;

/// Why a template could not be parsed or executed.
///
/// An execution error is a chain: the cause, then one [`Frame`] for each template action it passed through on its
/// way out. [`fmt::Display`] prints the chain as Go's text/template does; [`Error::texts`] gives the text at each
/// level, outermost first, which is what Helm's reformatting works on.
#[derive(Clone, Debug)]
pub struct Error(Box<Chain>);

#[derive(Clone, Debug)]
struct Chain {
    cause: Cause,
    /// Innermost first.
    frames: Vec<Frame>,
}

/// What went wrong at the innermost place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Anything a template action or a function complains about.
    Message(String),
    /// `fail` or `required` stopped the render with the chart author's text.
    Failure(String),
    /// A template text (of `tpl`) does not parse.
    Parse(ParseError),
    /// No template of this name.
    NoTemplate {
        /// The name asked for.
        name: String,
        /// Name of the set's root, `gotpl` in Helm.
        root: String,
    },
    /// A bound of [`crate::Limits`] was passed.
    Limit(Limit),
}

/// One level of an execution error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A template action.
    Action {
        /// Name of the template being executed.
        template: String,
        /// `file:line:column`, the column counted in bytes from 0.
        location: String,
        /// The failing part of the action, printed back by Go's rules.
        node: String,
        /// The function whose call failed, if the failure came out of a call.
        function: Option<String>,
    },
    /// A text that a function put before the error it passes on.
    Context(String),
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Action {
                template,
                location,
                node,
                function,
            } => {
                write!(
                    f,
                    "template: {location}: executing {} at <{node}>: ",
                    quote::text(template)
                )?;
                match function {
                    Some(function) => write!(f, "error calling {function}: "),
                    None => Ok(()),
                }
            }
            Self::Context(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(text) | Self::Failure(text) => f.write_str(text),
            Self::Parse(error) => error.fmt(f),
            Self::NoTemplate { name, root } => write!(
                f,
                "template: no template {} associated with template {}",
                quote::text(name),
                quote::text(root)
            ),
            Self::Limit(limit) => limit.fmt(f),
        }
    }
}

impl Error {
    /// An error with this cause and no frames yet.
    pub fn new(cause: Cause) -> Self {
        Self(Box::new(Chain {
            cause,
            frames: Vec::new(),
        }))
    }

    /// What a function says when it fails; the executor adds where.
    pub fn message(text: impl Into<String>) -> Self {
        Self::new(Cause::Message(text.into()))
    }

    /// The chart author's own refusal (`fail`, `required`).
    pub fn failure(text: impl Into<String>) -> Self {
        Self::new(Cause::Failure(text.into()))
    }

    /// A bound was passed.
    pub fn limit(limit: Limit) -> Self {
        Self::new(Cause::Limit(limit))
    }

    /// Puts a text before the error, as Go's `fmt.Errorf("text: %w", err)`.
    #[must_use]
    pub fn context(mut self, text: impl Into<String>) -> Self {
        self.0.frames.push(Frame::Context(text.into()));
        self
    }

    /// Adds the action the error passed through.
    #[must_use]
    pub(crate) fn at(mut self, frame: Frame) -> Self {
        self.0.frames.push(frame);
        self
    }

    /// The innermost reason.
    pub fn cause(&self) -> &Cause {
        &self.0.cause
    }

    /// The levels, outermost first.
    pub fn frames(&self) -> impl DoubleEndedIterator<Item = &Frame> {
        self.0.frames.iter().rev()
    }

    /// The outermost place: `file:line:column`.
    pub fn location(&self) -> Option<&str> {
        self.frames().find_map(|frame| match frame {
            Frame::Action { location, .. } => Some(location.as_str()),
            Frame::Context(_) => None,
        })
    }

    /// The text of the error at each level, outermost first: what Go's `errors.Unwrap` would walk through. The
    /// last one is the text of the cause, left out when the innermost level is an action that failed by itself.
    pub fn texts(&self) -> Vec<String> {
        let mut texts = Vec::with_capacity(self.0.frames.len() + 1);
        let mut text = self.0.cause.to_string();
        let mut plain_cause = true;
        if let Some(Frame::Action { function: None, .. }) = self.0.frames.first() {
            plain_cause = false;
        }
        if plain_cause {
            texts.push(text.clone());
        }
        for frame in &self.0.frames {
            text.insert_str(0, &frame.to_string());
            texts.push(text.clone());
        }
        texts.reverse();
        texts
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for frame in self.frames() {
            frame.fmt(f)?;
        }
        self.0.cause.fmt(f)
    }
}

impl std::error::Error for Error {}

impl From<ParseError> for Error {
    fn from(error: ParseError) -> Self {
        Self::new(Cause::Parse(error))
    }
}

/// Why a template text does not parse; printed as Go does: `template: name:line: message`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("template: {name}:{line}: {message}")]
pub struct ParseError {
    /// Name of the text.
    pub name: String,
    /// Line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}
