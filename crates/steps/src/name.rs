//! The names of steps and pipelines.

use std::fmt;
use std::sync::Arc;

use crate::Error;

/// The name of a step or of a pipeline: 1 to 63 characters of `a-z`, `0-9`, `-`, `_` and `.`, beginning and
/// ending with a letter or digit. That makes it a valid metric label and readable in a log without quotes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Name {
    /// The longest name, in bytes.
    pub const MAX_LEN: usize = 63;

    /// Checks `text` and makes it a name.
    ///
    /// # Errors
    /// [`Error::Name`] says which rule the text breaks.
    pub fn new(text: &str) -> Result<Self, Error> {
        let refuse = |rule: &'static str| {
            Err(Error::Name {
                given: text.to_owned(),
                rule,
            })
        };
        if text.is_empty() {
            return refuse("it is empty");
        }
        if text.len() > Self::MAX_LEN {
            return refuse("it is longer than 63 characters");
        }
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if !text.chars().all(|c| plain(c) || matches!(c, '-' | '_' | '.')) {
            return refuse("only a-z, 0-9, '-', '_' and '.' are allowed");
        }
        if !text.starts_with(plain) || !text.ends_with(plain) {
            return refuse("it must begin and end with a letter or digit");
        }
        Ok(Self(Arc::from(text)))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_which_rule_a_name_breaks() {
        for good in ["a", "obtain-source", "files.generated", "x_1", &"a".repeat(63)] {
            assert_eq!(Name::new(good).unwrap(), *good);
        }
        for (bad, rule) in [
            ("", "empty"),
            ("Render", "only a-z"),
            ("a b", "only a-z"),
            ("-a", "begin and end"),
            ("a.", "begin and end"),
            (&"a".repeat(64), "longer than 63"),
        ] {
            let error = Name::new(bad).unwrap_err().to_string();
            assert!(error.contains(rule), "{bad:?}: {error}");
        }
    }
}
