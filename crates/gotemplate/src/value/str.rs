//! Byte strings with cheap clones.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

/// Strings up to this many bytes are kept inside the handle; nearly all names, keys and scalars of charts are.
const INLINE: usize = 22;

/// A Go string: immutable bytes, usually but not always UTF-8 (`trunc` cuts runes, `b64dec` makes binary data).
///
/// Cloning never copies the text: short strings live in the handle, longer ones are shared. Literals of a parsed
/// template are shared with the tree itself, which other threads may use at the same time.
#[derive(Clone)]
pub struct Str(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, buf: [u8; INLINE] },
    Local(Rc<[u8]>),
    Shared(Arc<[u8]>),
}

impl Str {
    /// The empty string.
    pub const EMPTY: Self = Self(Repr::Inline {
        len: 0,
        buf: [0; INLINE],
    });

    /// Copies the bytes.
    pub fn new(bytes: &[u8]) -> Self {
        match Self::inline(bytes) {
            Some(short) => short,
            None => Self(Repr::Local(Rc::from(bytes))),
        }
    }

    /// Shares a text that outlives the render, such as a literal of a parsed template.
    pub fn shared(text: &Arc<[u8]>) -> Self {
        match Self::inline(text) {
            Some(short) => short,
            None => Self(Repr::Shared(Arc::clone(text))),
        }
    }

    fn inline(bytes: &[u8]) -> Option<Self> {
        let mut buf = [0; INLINE];
        buf.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self(Repr::Inline {
            len: bytes.len() as u8,
            buf,
        }))
    }

    /// The bytes of the string.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, buf } => buf.get(..usize::from(*len)).unwrap_or(buf),
            Repr::Local(text) => text,
            Repr::Shared(text) => text,
        }
    }

    /// Length in bytes, as Go's `len`.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Inline { len, .. } => usize::from(*len),
            Repr::Local(text) => text.len(),
            Repr::Shared(text) => text.len(),
        }
    }

    /// Whether the string has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text if it is valid UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self.as_bytes()).ok()
    }

    /// The text with each invalid byte replaced by U+FFFD, as Go's conversion from string to runes does.
    pub fn to_text(&self) -> String {
        lossy(self.as_bytes())
    }
}

/// Decodes as Go does: every byte that starts no valid sequence becomes one U+FFFD.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        for _ in chunk.invalid() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
    out
}

impl Default for Str {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl PartialEq for Str {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Str {}

impl PartialOrd for Str {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Str {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for Str {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl Borrow<[u8]> for Str {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl AsRef<[u8]> for Str {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes())
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self::from(text.into_bytes())
    }
}

impl From<&[u8]> for Str {
    fn from(bytes: &[u8]) -> Self {
        Self::new(bytes)
    }
}

impl From<Vec<u8>> for Str {
    fn from(bytes: Vec<u8>) -> Self {
        match Self::inline(&bytes) {
            Some(short) => short,
            None => Self(Repr::Local(Rc::from(bytes))),
        }
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_text())
    }
}
