//! Which version of a chart: Helm's rules, which are those of Masterminds/semver. An exact version comes first; a
//! range never chooses a pre-release unless it names one.

use evenkeel_core::Digest;
use evenkeel_gotemplate::{VersionConstraint, compare_versions, is_version};

use crate::Error;

/// The range that `--devel` stands for.
pub(crate) const DEVELOPMENT: &str = ">0.0.0-0";

/// A version or a range, read.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// As it was written; none for the newest release.
    pub(crate) text: Option<String>,
    constraint: VersionConstraint,
}

/// What names one chart of a registry's repository.
#[derive(Clone, Debug)]
pub(crate) enum Pick {
    /// This manifest.
    Digest(Digest),
    /// This tag; a text like `1.2` that is also a range stands for that when there is no such tag.
    Tag(String, Option<Wanted>),
    /// The newest tag that fits.
    Range(Wanted),
}

impl Wanted {
    /// Reads a version or range; nothing stands for the newest release.
    ///
    /// # Errors
    /// [`Error::Range`].
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, Error> {
        let text = text.map(str::trim).filter(|text| !text.is_empty());
        let constraint = VersionConstraint::parse(text.unwrap_or("*")).map_err(|problem| Error::Range {
            text: text.unwrap_or_default().to_owned(),
            problem,
        })?;
        Ok(Self {
            text: text.map(str::to_owned),
            constraint,
        })
    }

    /// The best of some versions, which are sorted with the newest first.
    pub(crate) fn choose<'v, V>(&self, versions: &'v [V], version: impl Fn(&V) -> &str) -> Option<&'v V> {
        let exact = self
            .text
            .as_deref()
            .and_then(|text| versions.iter().find(|one| version(one) == text));
        exact.or_else(|| versions.iter().find(|one| self.constraint.matches(version(one))))
    }

    /// `"web" version "^2"`, as Helm says it.
    pub(crate) fn of_chart(&self, chart: &str) -> String {
        match &self.text {
            Some(text) => format!("chart {chart:?} version {text:?}"),
            None => format!("chart {chart:?}"),
        }
    }
}

impl Pick {
    /// Reads a tag, range or digest; nothing stands for the newest release.
    ///
    /// # Errors
    /// [`Error::Range`] for a digest that is none of SHA-256.
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, Error> {
        let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else {
            return Ok(Self::Range(Wanted::parse(None)?));
        };
        if text.contains(':') {
            return text.parse().map(Self::Digest).map_err(|_| Error::Range {
                text: text.to_owned(),
                problem: "a digest is sha256: and 64 hexadecimal digits".to_owned(),
            });
        }
        let wanted = Wanted::parse(Some(text)).ok();
        if is_version(text) {
            let is_whole = text.splitn(3, '.').count() == 3;
            return Ok(Self::Tag(tag(text), wanted.filter(|_| !is_whole)));
        }
        Ok(match wanted {
            Some(wanted) => Self::Range(wanted),
            // `latest`, or a version with the tag's spelling of `+`.
            None => Self::Tag(text.to_owned(), None),
        })
    }
}

/// A version as a tag, which cannot hold `+`.
pub(crate) fn tag(version: &str) -> String {
    version.replace('+', "_")
}

/// The versions among some tags, newest first. Only a whole version counts (`1.2.3`, not `v1.2.3` or `1.2`), as in
/// Helm.
pub(crate) fn versions_of_tags(tags: impl IntoIterator<Item = String>) -> Vec<String> {
    let is_strict = |version: &String| {
        is_version(version) && !version.starts_with('v') && {
            let core = version.split(['-', '+']).next().unwrap_or_default();
            core.split('.').count() == 3
        }
    };
    let mut versions: Vec<String> = tags
        .into_iter()
        .map(|tag| tag.replace('_', "+"))
        .filter(is_strict)
        .collect();
    versions.sort_by(|a, b| compare_versions(b, a).then_with(|| b.cmp(a)));
    versions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(wanted: &str, versions: &[&str]) -> Option<String> {
        let wanted = Wanted::parse(Some(wanted)).unwrap();
        wanted
            .choose(versions, |version| version)
            .map(|v| (*v).to_owned())
    }

    #[test]
    fn exact_versions_come_before_ranges() {
        let versions = ["2.0.0-rc.1", "1.10.0", "1.9.3", "1.9.0-beta", "1.2"];
        for (wanted, expected) in [
            ("", Some("1.10.0")),
            ("1.2", Some("1.2")),
            ("1.9", Some("1.9.3")),
            ("^1.2", Some("1.10.0")),
            ("1.9.0-beta", Some("1.9.0-beta")),
            (DEVELOPMENT, Some("2.0.0-rc.1")),
            (">=1.9.0-0 <1.9.3", Some("1.9.0-beta")),
            ("3.x", None),
        ] {
            assert_eq!(choose(wanted, &versions).as_deref(), expected, "{wanted}");
        }
        assert!(Wanted::parse(Some("not a range")).is_err());
    }

    /// Public case SRC-01.
    #[test]
    fn tags_spell_plus_as_underscore() {
        let tags = ["1.2.3_up4.5.6", "latest", "1.2.4_up4.5.6", "v9.0.0", "9"].map(str::to_owned);
        let versions = versions_of_tags(tags);
        assert_eq!(versions, ["1.2.4+up4.5.6", "1.2.3+up4.5.6"]);
        for (wanted, expected) in [
            ("1.2.3+up4.5.6", "1.2.3_up4.5.6"),
            ("1.2.x", "1.2.4_up4.5.6"),
            (">=1.2.0", "1.2.4_up4.5.6"),
            ("", "1.2.4_up4.5.6"),
            ("1.2.3_up4.5.6", "1.2.3_up4.5.6"),
            ("latest", "latest"),
            ("1.2", "1.2"),
        ] {
            let found = match Pick::parse(Some(wanted)).unwrap() {
                Pick::Tag(tag, _) => tag,
                Pick::Range(range) => tag(range.choose(&versions, |version| version).unwrap()),
                Pick::Digest(_) => panic!("no digest"),
            };
            assert_eq!(found, expected, "{wanted}");
        }
        let digest = Digest::of("x").to_string();
        assert!(matches!(Pick::parse(Some(&digest)), Ok(Pick::Digest(_))));
        assert!(Pick::parse(Some("sha512:00")).is_err());
        assert!(matches!(Pick::parse(Some("1.2")), Ok(Pick::Tag(_, Some(_)))));
    }
}
