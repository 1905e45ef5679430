//! The settings there are: name, type, range, layers.

use std::fmt;
use std::time::Duration;

use evenkeel_core::HumanDuration;
use regex::Regex;

use super::{Setting, SettingScope};
use crate::Error;
use crate::sql::rows::refuse_nul;

/// The layers, from the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingLayer {
    /// For everyone.
    Default,
    /// For the clusters of a group.
    Group,
    /// For one cluster.
    Cluster,
}

impl SettingLayer {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Group => "group",
            Self::Cluster => "cluster",
        }
    }
}

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// `true` or `false`.
    Boolean,
    /// A whole number between two, both allowed.
    Integer {
        /// The least.
        min: i64,
        /// The largest.
        max: i64,
    },
    /// A time between two, both allowed, written like `1h30m`.
    Duration {
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// A text that a regular expression describes from its beginning to its end.
    Text {
        /// The expression.
        pattern: &'static str,
        /// Its longest length in bytes.
        max: usize,
    },
}

impl fmt::Display for SettingKind {
    /// What is expected, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("true or false"),
            Self::Integer { min, max } => write!(f, "a whole number from {min} to {max}"),
            Self::Duration { min, max } => {
                write!(
                    f,
                    "a time from {} to {}",
                    HumanDuration(*min),
                    HumanDuration(*max)
                )
            }
            Self::Text { pattern, max } => write!(f, "a text like {pattern}, of at most {max} bytes"),
        }
    }
}

/// One setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingDefinition {
    /// Its name.
    pub key: &'static str,
    /// What its values may be.
    pub kind: SettingKind,
    /// The strongest layer that may set it: some make no sense for a single cluster.
    pub finest: SettingLayer,
    /// What it is for.
    pub about: &'static str,
}

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = days(1);
const DECADE: Duration = days(3_650);

const fn days(count: u64) -> Duration {
    Duration::from_secs(count * 24 * 60 * 60)
}

const fn time(key: &'static str, min: Duration, max: Duration, about: &'static str) -> SettingDefinition {
    SettingDefinition {
        key,
        kind: SettingKind::Duration { min, max },
        finest: SettingLayer::Cluster,
        about,
    }
}

const fn number(key: &'static str, min: i64, max: i64, about: &'static str) -> SettingDefinition {
    SettingDefinition {
        key,
        kind: SettingKind::Integer { min, max },
        finest: SettingLayer::Cluster,
        about,
    }
}

const fn switch(key: &'static str, about: &'static str) -> SettingDefinition {
    SettingDefinition {
        key,
        kind: SettingKind::Boolean,
        finest: SettingLayer::Cluster,
        about,
    }
}

impl SettingDefinition {
    /// The same for everyone.
    const fn of_the_fleet(self) -> Self {
        Self {
            finest: SettingLayer::Default,
            ..self
        }
    }
}

/// All settings, by name. One that is not set counts as the process was told when it was started.
pub const SETTINGS: &[SettingDefinition] = &[
    time(
        "check-interval",
        SECOND,
        days(7),
        "how often an unchanged cluster is looked at",
    ),
    time("check-timeout", SECOND, HOUR, "how long one look may take"),
    time(
        "consent-within",
        SECOND,
        days(30),
        "how long an operation waits for consent",
    ),
    time(
        "deadline",
        SECOND,
        days(7),
        "how long one reconciliation may take with all its tries",
    ),
    number(
        "delete-failures-max",
        1,
        100_000,
        "failed deletions before a cluster is delete_failed",
    ),
    number(
        "deletions-least",
        1,
        1_000_000,
        "fewer deletions than this by one operation never need consent",
    ),
    number(
        "deletions-percent",
        0,
        100,
        "how many per cent of a component's objects one operation may delete without consent",
    ),
    number(
        "failures-max",
        1,
        100_000,
        "failed reconciliations of one version before a cluster is failed",
    ),
    switch(
        "gone-when-host-unknown",
        "whether a cluster that is being deleted counts as gone when the name of its API server cannot be resolved",
    ),
    SettingDefinition {
        key: "kubeconfig-namespace",
        kind: SettingKind::Text {
            pattern: "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
            max: 63,
        },
        finest: SettingLayer::Cluster,
        about: "the namespace of the mothership's own cluster for Secrets with kubeconfigs that name none",
    },
    SettingDefinition {
        key: "prerequisites",
        kind: SettingKind::Text {
            pattern: "(?:[a-z0-9]([a-z0-9-]*[a-z0-9])?([,;][a-z0-9]([a-z0-9-]*[a-z0-9])?)*)?",
            max: 4_096,
        },
        finest: SettingLayer::Cluster,
        about: "components that go before all others where they are listed: groups one after the other, like a,b;c",
    },
    time(
        "ready-timeout",
        SECOND,
        DAY,
        "how long a component's objects may take to become ready unless it says otherwise",
    ),
    number(
        "removals-least",
        1,
        1_000,
        "fewer components than this a change may always remove, but for the last",
    ),
    number(
        "removals-percent",
        0,
        100,
        "how many per cent of a cluster's components a change may remove without consent",
    ),
    time(
        "retention-audit-age",
        DAY,
        DECADE,
        "how long entries of the audit log are kept",
    )
    .of_the_fleet(),
    number(
        "retention-configurations",
        1,
        100_000,
        "newest configuration versions of a cluster that are kept",
    )
    .of_the_fleet(),
    time(
        "retention-deleted-age",
        MINUTE,
        DECADE,
        "how long the record of a deleted cluster is kept",
    )
    .of_the_fleet(),
    time(
        "retention-failed-run-age",
        MINUTE,
        DECADE,
        "how long runs that failed are kept",
    )
    .of_the_fleet(),
    time(
        "retention-history-age",
        MINUTE,
        DECADE,
        "how long past states of clusters are kept",
    )
    .of_the_fleet(),
    time(
        "retention-interval",
        MINUTE,
        days(7),
        "how often it is looked for what can go",
    )
    .of_the_fleet(),
    time(
        "retention-run-age",
        MINUTE,
        DECADE,
        "how long runs that ended well are kept",
    )
    .of_the_fleet(),
    number(
        "retention-runs",
        1,
        100_000,
        "newest runs of a cluster that are kept; failed ones beyond it only go by age",
    )
    .of_the_fleet(),
    time(
        "retry-first",
        Duration::from_millis(100),
        HOUR,
        "the first pause between tries; it doubles with every failure",
    ),
    time("retry-longest", SECOND, DAY, "the longest pause between tries"),
    time(
        "sync-grace",
        Duration::ZERO,
        days(30),
        "how old a cluster that the broker no longer lists must be to be forgotten",
    )
    .of_the_fleet(),
    time(
        "sync-interval",
        MINUTE,
        days(7),
        "how often the inventory is compared with the broker's list",
    )
    .of_the_fleet(),
    number(
        "sync-losses-least",
        1,
        1_000_000,
        "fewer clusters than this that the broker no longer lists may always be forgotten",
    )
    .of_the_fleet(),
    number(
        "sync-losses-percent",
        0,
        100,
        "how many per cent of the broker's clusters may be forgotten by one comparison",
    )
    .of_the_fleet(),
    switch(
        "sync-repair",
        "whether a comparison with the broker's list also repairs what it finds",
    )
    .of_the_fleet(),
    number(
        "sync-repairs-max",
        1,
        100_000,
        "how many clusters one comparison repairs",
    )
    .of_the_fleet(),
];

impl SettingDefinition {
    /// The setting of a name.
    pub fn find(key: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.key == key)
    }

    /// Checks where and to what a setting is set; answers the value as it is usually written.
    ///
    /// # Errors
    /// [`Error::Setting`], with what was expected.
    pub fn check(scope: &SettingScope, key: &str, value: &Setting) -> Result<Setting, Error> {
        let wrong = |problem: String| Error::Setting {
            key: key.to_owned(),
            problem,
        };
        let definition = Self::known(key)?;
        if scope.layer() > definition.finest {
            return Err(wrong(format!(
                "it can be set for {}, not for a {}",
                match definition.finest {
                    SettingLayer::Group => "everyone or a group",
                    _ => "everyone",
                },
                scope.layer().as_str()
            )));
        }
        definition
            .kind
            .check(value)
            .ok_or_else(|| wrong(format!("{value} is not {}", definition.kind)))
    }

    /// Checks what is to be put into an inventory, or taken back; answers the value as it is usually written.
    ///
    /// # Errors
    /// As [`Self::check`], and [`Error::NulCharacter`].
    pub(crate) fn check_put(
        scope: &SettingScope,
        key: &str,
        value: Option<&Setting>,
    ) -> Result<Option<Setting>, Error> {
        let value = match value {
            // What an older or newer release has set can be taken back.
            None => {
                refuse_nul("a setting's name", key)?;
                None
            }
            Some(value) => Some(Self::check(scope, key, value)?),
        };
        if let SettingScope::Group(group) = scope {
            refuse_nul("a setting's group", group)?;
        }
        Ok(value)
    }

    /// The setting of a name that somebody gave.
    ///
    /// # Errors
    /// [`Error::Setting`], with the names there are.
    pub fn known(key: &str) -> Result<&'static Self, Error> {
        Self::find(key).ok_or_else(|| {
            let names: Vec<_> = SETTINGS.iter().map(|setting| setting.key).collect();
            Error::Setting {
                key: key.to_owned(),
                problem: format!("there is no such setting; there are {}", names.join(", ")),
            }
        })
    }
}

impl SettingKind {
    /// The value as it is usually written, if it is one. A text is read as what the setting wants, so that command lines
    /// need no types.
    fn check(&self, value: &Setting) -> Option<Setting> {
        match (self, value) {
            (Self::Boolean, Setting::Boolean(value)) => Some(Setting::Boolean(*value)),
            (Self::Boolean, Setting::Text(text)) => text.parse().ok().map(Setting::Boolean),
            (Self::Integer { min, max }, Setting::Integer(value)) => {
                (min..=max).contains(&value).then_some(Setting::Integer(*value))
            }
            (Self::Integer { .. }, Setting::Text(text)) => self.check(&Setting::Integer(text.parse().ok()?)),
            (Self::Duration { min, max }, Setting::Text(text)) => {
                let time: HumanDuration = text.parse().ok()?;
                (*min..=*max)
                    .contains(&time.0)
                    .then(|| Setting::Text(time.to_string()))
            }
            (Self::Text { pattern, max }, Setting::Text(text)) => {
                let whole = Regex::new(&format!("^(?:{pattern})$")).ok()?;
                let fits = text.len() <= *max && !text.contains('\0') && whole.is_match(text);
                fits.then(|| value.clone())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_once() {
        assert!(SETTINGS.windows(2).all(|two| two[0].key < two[1].key));
        for setting in SETTINGS {
            assert_eq!(SettingDefinition::find(setting.key), Some(setting));
            assert!(!setting.about.is_empty());
        }
    }

    #[test]
    fn values_are_checked_by_type_range_and_pattern() {
        let text = |text: &str| Setting::Text(text.to_owned());
        let letters = SettingKind::Text {
            pattern: "[a-z]+|[0-9]",
            max: 4,
        };
        let time = SettingKind::Duration {
            min: SECOND,
            max: HOUR,
        };
        let number = SettingKind::Integer { min: 1, max: 9 };
        for (kind, value, expected) in [
            (
                SettingKind::Boolean,
                Setting::Boolean(true),
                Some(Setting::Boolean(true)),
            ),
            (SettingKind::Boolean, text("false"), Some(Setting::Boolean(false))),
            (SettingKind::Boolean, text("yes"), None),
            (SettingKind::Boolean, Setting::Integer(1), None),
            (number, Setting::Integer(9), Some(Setting::Integer(9))),
            (number, text("1"), Some(Setting::Integer(1))),
            (number, Setting::Integer(10), None),
            (number, Setting::Integer(0), None),
            (number, text("1 + 1"), None),
            (time, text("90s"), Some(text("1m30s"))),
            (time, text("2h"), None),
            (time, text("1ms"), None),
            (time, Setting::Integer(30), None),
            (letters, text("abcd"), Some(text("abcd"))),
            (letters, text("7"), Some(text("7"))),
            (letters, text("abcde"), None),
            (letters, text("a7"), None),
            (letters, text("a\nb"), None),
            (letters, text(""), None),
        ] {
            assert_eq!(kind.check(&value), expected, "{kind}: {value}");
        }
    }

    #[test]
    fn what_is_refused_says_what_was_expected() {
        let refused = |scope: &SettingScope, key: &str, value: &str| {
            let value = Setting::Text(value.to_owned());
            SettingDefinition::check(scope, key, &value)
                .unwrap_err()
                .to_string()
        };
        let (all, group) = (SettingScope::Default, SettingScope::Group("g".to_owned()));
        let text = refused(&all, "chek-interval", "1m");
        assert!(
            text.contains("chek-interval") && text.contains("check-interval"),
            "{text}"
        );
        let text = refused(&all, "failures-max", "many");
        assert!(
            text.contains("many is not a whole number from 1 to 100000"),
            "{text}"
        );
        let text = refused(&group, "retention-runs", "5");
        assert!(
            text.contains("everyone") && text.contains("not for a group"),
            "{text}"
        );
        // Nothing is evaluated.
        let text = refused(&all, "check-interval", "$(reboot)");
        assert!(text.contains("a time from 1s to 7d"), "{text}");
    }
}
