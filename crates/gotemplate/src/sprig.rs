//! The functions of Sprig and Helm that need nothing but their arguments, the time and randomness.
//!
//! Each subject has its file and its table; a function is added by one line in the table of its subject.

mod regex;

pub(crate) use regex::RegexCache;

use crate::function::Native;

/// Tables of all subjects.
pub(crate) static TABLES: &[&[Native]] = &[];

/// Standard base64, as JSON writes byte slices.
pub(crate) fn base64_text(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
