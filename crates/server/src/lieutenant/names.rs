//! Ids of tenants and clusters, which are names of objects.

use super::failure::Failure;

/// The longest id.
const LENGTH_MAX: usize = 63;
/// How many ids are generated until one is free.
pub(super) const GENERATE_TRIES: usize = 10;
/// Generated ids end in a number below this.
const NUMBERS: u32 = 10_000;

const ADJECTIVES: [&str; 32] = [
    "amber", "brave", "bright", "calm", "clear", "cool", "crisp", "dawn", "deep", "early", "fair", "fresh",
    "gentle", "golden", "green", "keen", "light", "lively", "lunar", "mild", "misty", "noble", "polar",
    "proud", "quiet", "rapid", "silver", "solar", "still", "swift", "warm", "young",
];
const NOUNS: [&str; 32] = [
    "anchor", "bay", "beacon", "breeze", "brook", "canal", "cliff", "cloud", "coast", "compass", "coral",
    "creek", "delta", "dune", "fjord", "harbor", "island", "keel", "lagoon", "lake", "mast", "meadow",
    "ocean", "pier", "reef", "river", "sail", "shore", "star", "stream", "tide", "wave",
];

/// How ids of a kind begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix(pub(super) &'static str);

impl Prefix {
    /// A new id: `<prefix><adjective>-<noun>-<number>`.
    pub(super) fn generate(self) -> String {
        let pick = |words: &[&'static str; 32]| words[rand::random::<u8>() as usize % words.len()];
        let number = rand::random::<u32>() % NUMBERS;
        format!("{}{}-{}-{number}", self.0, pick(&ADJECTIVES), pick(&NOUNS))
    }

    /// The id of a new object that a caller wants to be called `id`: with the prefix, which may be left out.
    pub(super) fn complete(self, id: &str) -> Result<String, Failure> {
        let id = match id.strip_prefix(self.0) {
            Some(_) => id.to_owned(),
            None => format!("{}{id}", self.0),
        };
        self.check(&id)?;
        Ok(id)
    }

    /// Whether a new object may be called `id`.
    pub(super) fn check(self, id: &str) -> Result<(), Failure> {
        if id.starts_with(self.0) && id.len() > self.0.len() && is_name(id) {
            return Ok(());
        }
        Err(Failure::Invalid(format!(
            "the id '{id}' cannot be used: expected '{}' and small letters, digits, '-' and '.', {LENGTH_MAX} in total",
            self.0
        )))
    }
}

/// Whether an object can be called `text`. Anything else could reach another path of the API server.
pub(super) fn is_name(text: &str) -> bool {
    let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    text.len() <= LENGTH_MAX
        && bytes.first().is_some_and(is_end)
        && bytes.last().is_some_and(is_end)
        && bytes.iter().all(|byte| is_end(byte) || b"-.".contains(byte))
        && !text.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: Prefix = Prefix("t-");

    #[test]
    fn generated_ids_can_be_used() {
        for _ in 0..1000 {
            let id = PREFIX.generate();
            assert!(PREFIX.check(&id).is_ok(), "{id}");
            assert_eq!(id.split('-').count(), 4, "{id}");
        }
    }

    #[test]
    fn ids_get_their_prefix_and_are_names() {
        assert_eq!(PREFIX.complete("plain").unwrap(), "t-plain");
        assert_eq!(PREFIX.complete("t-plain").unwrap(), "t-plain");
        for odd in ["A", "a/b", "../a", "a b", "a-", "t-", &"a".repeat(62)] {
            assert!(PREFIX.complete(odd).is_err(), "{odd}");
        }
        assert!(PREFIX.check("plain").is_err());
    }
}
