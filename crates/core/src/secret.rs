//! Values that must not be seen.

use std::fmt;

use serde::{Deserialize, Deserializer};
use zeroize::Zeroize;

/// A value that cannot be printed: kubeconfigs, secret values, tokens (DESIGN §4.10).
///
/// It has no `Display` and no `Serialize`, its `Debug` says only that it is there, and its memory is wiped when it
/// is dropped. Whoever needs the content says so with [`Sensitive::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct Sensitive<T: Zeroize>(T);

impl<T: Zeroize> Sensitive<T> {
    /// Hides `value`.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The content. Every call is a place to review.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> Drop for Sensitive<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> From<T> for Sensitive<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T: Zeroize> fmt::Debug for Sensitive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl<'de, T: Zeroize + Deserialize<'de>> Deserialize<'de> for Sensitive<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cannot_be_printed() {
        let secret = Sensitive::new("hunter2".to_owned());
        assert_eq!(format!("{secret:?}"), "[redacted]");
        assert_eq!(secret.expose(), "hunter2");
    }
}
