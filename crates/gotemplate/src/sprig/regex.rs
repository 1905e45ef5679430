//! Regular expressions by RE2's rules.

/// Compiled expressions of one render.
#[derive(Debug, Default)]
pub(crate) struct RegexCache {}
