//! `index.yaml` of a Helm repository: read leniently, kept small.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use evenkeel_core::Digest;
use evenkeel_gotemplate::{compare_versions, is_version};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::version::Wanted;

/// The largest index, in bytes. The largest public ones have some 20 MB.
pub(crate) const INDEX_SIZE_MAX: u64 = 64 * 1024 * 1024;
/// The most nodes of an index; what 64 MiB of the shortest entries have.
const NODES_MAX: usize = 20_000_000;
/// How many skipped entries are told one by one.
const WARNINGS_MAX: usize = 20;
/// How many versions an error names.
const HINTED: usize = 5;

/// The charts of a repository; what an entry says beyond where its archive lies is not kept.
#[derive(Debug, Default)]
pub(crate) struct Index {
    charts: HashMap<Box<str>, Vec<IndexEntry>>,
    /// What was passed over.
    pub(crate) warnings: Vec<String>,
}

/// One version of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub(crate) version: Box<str>,
    /// Where the archive lies; relative ones are relative to the repository.
    pub(crate) urls: Vec<Box<str>>,
    /// The archive's digest, where the index has one of SHA-256.
    pub(crate) digest: Option<Digest>,
}

impl Index {
    /// Reads an index, YAML or JSON. Single entries that make no sense are passed over with a warning, as in Helm.
    /// Blocks for as long as that takes.
    ///
    /// # Errors
    /// What is wrong with the file as a whole, with the line.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, String> {
        if text.iter().all(u8::is_ascii_whitespace) {
            return Err("empty index.yaml file".to_owned());
        }
        let is_json = text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        let json = is_json
            .then(|| serde_json::from_slice::<Written>(text).ok())
            .flatten();
        let written = match json {
            Some(written) => written,
            None => {
                let options = serde_saphyr::options! {
                    with_snippet: false,
                    duplicate_keys: serde_saphyr::DuplicateKeyPolicy::FirstWins,
                    budget: serde_saphyr::budget! { max_nodes: NODES_MAX, max_events: 2 * NODES_MAX },
                };
                serde_saphyr::from_slice_with_options::<Written>(text, options)
                    .map_err(|error| error.without_snippet().to_string())?
            }
        };
        if !matches!(&written.api_version, Text::Is(version) if !version.is_empty()) {
            return Err("no API version specified".to_owned());
        }
        let mut index = Self::default();
        let Entries(entries) = written.entries;
        for (chart, versions) in entries {
            let mut kept = Vec::new();
            let versions = match versions {
                Lenient::Is(versions) => versions,
                Lenient::Null => Vec::new(),
                Lenient::Other => {
                    index.warn(&chart, "its versions are no list");
                    Vec::new()
                }
            };
            for version in versions {
                match version.kept() {
                    Ok(entry) => kept.push(entry),
                    Err(problem) => index.warn(&chart, problem),
                }
            }
            kept.sort_by(|a, b| compare_versions(&b.version, &a.version));
            index.charts.insert(chart.into(), kept);
        }
        Ok(index)
    }

    /// The best version of a chart.
    pub(crate) fn choose(&self, chart: &str, wanted: &Wanted) -> Option<&IndexEntry> {
        wanted.choose(self.charts.get(chart)?, |entry| &entry.version)
    }

    /// What there is instead of a chart that was not found, as the end of a sentence.
    pub(crate) fn hint(&self, chart: &str) -> String {
        match self.charts.get(chart).map(Vec::as_slice) {
            None => String::new(),
            Some([]) => ": none of its versions can be used".to_owned(),
            Some(versions) => {
                let newest: Vec<_> = versions
                    .iter()
                    .take(HINTED)
                    .map(|entry| &*entry.version)
                    .collect();
                format!(
                    ": the newest of its {} versions are {}",
                    versions.len(),
                    newest.join(", ")
                )
            }
        }
    }

    fn warn(&mut self, chart: &str, problem: &str) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(format!(
                "skipping loading invalid entry for chart {chart:?}: {problem}"
            ));
        }
    }
}

/// The file as it is written. What no chart needs is passed over.
#[derive(serde::Deserialize)]
struct Written {
    #[serde(rename = "apiVersion", default)]
    api_version: Text,
    #[serde(default)]
    entries: Entries,
}

#[derive(Default)]
struct Entries(Vec<(String, Lenient<Vec<WrittenEntry>>)>);

/// One version as it is written.
struct WrittenEntry(Lenient<Fields>);

#[derive(serde::Deserialize)]
struct Fields {
    #[serde(default)]
    name: Text,
    #[serde(default)]
    version: Text,
    #[serde(default)]
    urls: Lenient<Vec<Text>>,
    #[serde(default)]
    digest: Text,
}

/// A text, or something else in its place.
#[derive(Default)]
enum Text {
    Is(String),
    #[default]
    Null,
    Other,
}

/// Something of the right kind, or anything else in its place.
#[derive(Default)]
enum Lenient<T> {
    Is(T),
    #[default]
    Null,
    Other,
}

impl WrittenEntry {
    fn kept(self) -> Result<IndexEntry, &'static str> {
        let Lenient::Is(fields) = self.0 else {
            return Err("empty entry");
        };
        let text = |text: Text| match text {
            Text::Is(text) => Some(text),
            Text::Null | Text::Other => None,
        };
        if text(fields.name).is_none_or(|name| name.is_empty()) {
            return Err("validation: chart.metadata.name is required");
        }
        let version = text(fields.version)
            .filter(|version| !version.is_empty())
            .ok_or("validation: chart.metadata.version is required")?;
        if !is_version(&version) {
            return Err("validation: chart.metadata.version is invalid");
        }
        let urls = match fields.urls {
            Lenient::Is(urls) => urls,
            Lenient::Null | Lenient::Other => Vec::new(),
        };
        let digest = text(fields.digest).unwrap_or_default();
        let digest = digest.strip_prefix("sha256:").unwrap_or(&digest);
        Ok(IndexEntry {
            version: version.into(),
            urls: urls.into_iter().filter_map(text).map(Box::from).collect(),
            digest: format!("sha256:{digest}").parse().ok(),
        })
    }
}

/// A visitor of whatever comes; it takes one kind and passes over the others.
struct Anything<T>(PhantomData<T>);

/// What each kind of value means where `Self` is expected.
trait FromAnything<'de>: Sized {
    fn null() -> Self;
    fn other() -> Self;
    fn text(_: &str) -> Self {
        Self::other()
    }
    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::other())
    }
    fn map<A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::other())
    }
}

impl<'de, T: FromAnything<'de>> Visitor<'de> for Anything<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::null())
    }

    fn visit_none<E>(self) -> Result<T, E> {
        Ok(T::null())
    }

    fn visit_bool<E>(self, _: bool) -> Result<T, E> {
        Ok(T::other())
    }

    fn visit_i64<E>(self, _: i64) -> Result<T, E> {
        Ok(T::other())
    }

    fn visit_u64<E>(self, _: u64) -> Result<T, E> {
        Ok(T::other())
    }

    fn visit_i128<E>(self, _: i128) -> Result<T, E> {
        Ok(T::other())
    }

    fn visit_u128<E>(self, _: u128) -> Result<T, E> {
        Ok(T::other())
    }

    fn visit_f64<E>(self, _: f64) -> Result<T, E> {
        Ok(T::other())
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<T, E> {
        Ok(T::other())
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<T, A::Error> {
        T::list(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
        T::map(fields)
    }
}

macro_rules! from_anything {
    ($($type:ty),*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Anything(PhantomData))
            }
        }
    )*};
}

from_anything!(
    Text,
    Entries,
    WrittenEntry,
    Lenient<Vec<WrittenEntry>>,
    Lenient<Vec<Text>>
);

impl FromAnything<'_> for Text {
    fn null() -> Self {
        Self::Null
    }

    fn other() -> Self {
        Self::Other
    }

    fn text(text: &str) -> Self {
        Self::Is(text.to_owned())
    }
}

impl<'de, T: Deserialize<'de>> FromAnything<'de> for Lenient<Vec<T>> {
    fn null() -> Self {
        Self::Null
    }

    fn other() -> Self {
        Self::Other
    }

    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Self::Is(all))
    }
}

impl<'de> FromAnything<'de> for WrittenEntry {
    fn null() -> Self {
        Self(Lenient::Null)
    }

    fn other() -> Self {
        Self(Lenient::Other)
    }

    fn map<A: MapAccess<'de>>(fields: A) -> Result<Self, A::Error> {
        let fields = Fields::deserialize(serde::de::value::MapAccessDeserializer::new(fields))?;
        Ok(Self(Lenient::Is(fields)))
    }
}

impl<'de> FromAnything<'de> for Entries {
    fn null() -> Self {
        Self::default()
    }

    fn other() -> Self {
        Self::default()
    }

    fn map<A: MapAccess<'de>>(mut fields: A) -> Result<Self, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = fields.next_entry()? {
            all.push(entry);
        }
        Ok(Self(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = r#"
apiVersion: v1
generated: "2026-01-01T00:00:00Z"
unknown: {a: [1, 2]}
entries:
  web:
    - {name: web, version: 1.2.0, urls: [web-1.2.0.tgz], digest: a000000000000000000000000000000000000000000000000000000000000001}
    - {name: web, version: 1.10.0+up1, urls: ["https://a/web.tgz", "https://b/web.tgz"], keywords: [a], maintainers: [{name: x}]}
    - {name: web, version: 2.0.0-rc.1, urls: [x]}
    - {name: web, version: not-a-version, urls: [x]}
    - {version: 1.3.0, urls: [x]}
    - {name: web, version: 1.30, urls: [x]}
    - {name: web, version: [1], urls: [x]}
    -
    - scalar
    - name: web
      version: v1.4.0
      urls: x
      digest: md5
  empty: []
  nothing:
  wrong: {a: 1}
"#;

    fn version(index: &Index, wanted: Option<&str>) -> Option<String> {
        let entry = index.choose("web", &Wanted::parse(wanted).unwrap())?;
        Some(entry.version.to_string())
    }

    #[test]
    fn bad_entries_are_passed_over() {
        let index = Index::parse(INDEX.as_bytes()).unwrap();
        assert_eq!(index.warnings.len(), 7, "{:#?}", index.warnings);
        assert_eq!(version(&index, None).as_deref(), Some("1.10.0+up1"));
        assert_eq!(version(&index, Some(">0-0")).as_deref(), Some("2.0.0-rc.1"));
        assert_eq!(version(&index, Some("1.4.x")).as_deref(), Some("v1.4.0"));
        assert_eq!(version(&index, Some("3")), None);
        let entry = index
            .choose("web", &Wanted::parse(Some("1.2.0")).unwrap())
            .unwrap();
        assert!(entry.digest.is_some());
        assert!(
            index
                .hint("web")
                .contains("the newest of its 4 versions are 2.0.0-rc.1, 1.10.0+up1")
        );
        assert!(index.choose("nothing", &Wanted::parse(None).unwrap()).is_none());
    }

    #[test]
    fn json_is_read_as_well() {
        let text = r#"{"apiVersion":"v1","entries":{"web":[{"name":"web","version":"1.0.0","urls":["w"],"x":null}]}}"#;
        assert_eq!(
            version(&Index::parse(text.as_bytes()).unwrap(), None).as_deref(),
            Some("1.0.0")
        );
    }

    #[test]
    fn what_is_no_index_is_refused() {
        for (text, expected) in [
            ("", "empty index.yaml file"),
            (" \n", "empty index.yaml file"),
            ("entries: {}", "no API version specified"),
            ("<html><body>Not found</body></html>", ""),
            ("a: [", "line"),
            ("- apiVersion: v1", ""),
        ] {
            let error = Index::parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn aliases_without_end_are_refused() {
        let mut text = "apiVersion: v1\na: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (one, before) in ('b'..='j').zip('a'..) {
            let many = vec![format!("*{before}"); 10].join(", ");
            text.push_str(&format!("{one}: &{one} [{many}]\n"));
        }
        assert!(Index::parse(text.as_bytes()).is_err());
    }
}
