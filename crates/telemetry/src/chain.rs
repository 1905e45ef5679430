//! Errors with all their causes on one line.

use std::error::Error;
use std::fmt;

/// Displays an error followed by its causes: `cannot apply web: server said no: 403 Forbidden`. A cause that the
/// text before it ends with already is not repeated.
pub struct Chain<'a>(&'a (dyn Error + 'a));

/// See [`Chain`].
pub fn chain<'a>(error: &'a (dyn Error + 'a)) -> Chain<'a> {
    Chain(error)
}

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = self.0.to_string();
        f.write_str(&last)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !last.ends_with(&text) {
                write!(f, ": {text}")?;
                last = text;
            }
            source = cause.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Layer(&'static str, #[source] Option<Box<Layer>>);

    #[test]
    fn shows_every_cause_once() {
        let refused = Layer("connection refused", None);
        let repeating = Layer(
            "cannot reach 10.0.0.1: connection refused",
            Some(Box::new(refused)),
        );
        let top = Layer("cannot apply web", Some(Box::new(repeating)));
        assert_eq!(
            chain(&top).to_string(),
            "cannot apply web: cannot reach 10.0.0.1: connection refused"
        );
    }
}
