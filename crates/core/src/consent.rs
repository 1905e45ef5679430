//! What is not done before a person has agreed to it (DESIGN §7).
//!
//! Two moments ask. When a change is sent, the document says what it means to lose ([`ChangeConsent`]). When an operation
//! has its plan, the plan says what it would delete ([`ConsentNeeded`]); whoever agrees names that very plan by its digest.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{ClusterSpec, ComponentName, Digest, Error, ObjectRef};

/// How many objects of an error or a line are named; the rest are counted.
const NAMED_MAX: usize = 10;

macro_rules! names {
    ($type:ident, $what:literal, { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $type {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $type {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                Self::ALL.iter().copied().find(|known| known.as_str() == text).ok_or_else(|| Error::State {
                    what: $what,
                    value: text.to_owned(),
                    allowed: [$($name),+].join(", "),
                })
            }
        }
    };
}

/// What a new configuration may lose only when its sender says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChangeConsent {
    /// The list of components becomes empty.
    EmptyComponents,
    /// It loses more components than [`LossLimit::COMPONENTS`] lets go.
    Removals,
    /// A component goes to another namespace: it is deleted and installed anew.
    NamespaceChange,
}

names!(ChangeConsent, "consent", {
    EmptyComponents = "emptyComponents",
    Removals = "removals",
    NamespaceChange = "namespaceChange",
});

/// Why an operation needs consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConsentKind {
    /// Nothing is rendered any more, and objects are there.
    EmptyRender,
    /// More would be deleted than a [`LossLimit`] lets go.
    Deletions,
}

names!(ConsentKind, "kind of consent", {
    EmptyRender = "emptyRender",
    Deletions = "deletions",
});

/// How much may be lost at once without anybody being asked: up to a share, and any share below a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LossLimit {
    /// Per cent of all; more needs consent. 100 asks only when nothing is left, as every other rule does.
    pub percent: u8,
    /// Fewer than this many never need consent.
    pub least: usize,
}

impl LossLimit {
    /// Of a component's objects: a fifth, and at least 5.
    pub const OBJECTS: Self = Self {
        percent: 20,
        least: 5,
    };
    /// Of a cluster's components: a fifth, and at least 2.
    pub const COMPONENTS: Self = Self {
        percent: 20,
        least: 2,
    };

    /// Whether losing `lost` of `all` needs consent.
    pub fn is_passed(self, lost: usize, all: usize) -> bool {
        // In wide numbers: no count of objects makes the product overflow.
        lost >= self.least.max(1) && (lost as u128) * 100 > (all as u128) * u128::from(self.percent)
    }
}

/// One object that a plan deletes: which one, not only what it is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Doomed {
    /// The object.
    pub object: ObjectRef,
    /// Its uid: another object of the same name is another one.
    pub uid: String,
}

/// What a plan deletes and nobody has agreed to yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsentNeeded {
    /// The component.
    pub component: ComponentName,
    /// Why it is asked.
    pub kind: ConsentKind,
    /// What would be deleted, in order of reference.
    pub deletions: Vec<Doomed>,
    /// How many objects the component has.
    pub of: usize,
}

impl ConsentNeeded {
    /// Whether deleting `deletions` of the `of` objects of a component needs consent; `rendered` says whether anything is
    /// rendered.
    pub fn of_plan(
        component: &ComponentName,
        mut deletions: Vec<Doomed>,
        of: usize,
        rendered: bool,
        limit: LossLimit,
    ) -> Option<Self> {
        let kind = match deletions.len() {
            0 => return None,
            _ if !rendered => ConsentKind::EmptyRender,
            lost if limit.is_passed(lost, of) => ConsentKind::Deletions,
            _ => return None,
        };
        deletions.sort();
        Some(Self {
            component: component.clone(),
            kind,
            deletions,
            of,
        })
    }

    /// Names this plan among all: other objects, or another kind of question, give another digest. Whatever else the plan
    /// does has no part in it, so that a drifted object does not make an answer void.
    pub fn digest(&self) -> Digest {
        let mut parts = vec![self.kind.as_str(), self.component.as_str()];
        for Doomed { object, uid } in &self.deletions {
            parts.extend([
                object.group.as_str(),
                &object.kind,
                object.namespace.as_deref().unwrap_or_default(),
                &object.name,
                uid,
            ]);
        }
        Digest::of_parts(parts)
    }

    /// Whether everything that would be deleted is among `agreed`: what is left of a plan that was broken off is.
    pub fn is_within(&self, agreed: &[Doomed]) -> bool {
        let agreed: BTreeSet<&Doomed> = agreed.iter().collect();
        self.deletions.iter().all(|doomed| agreed.contains(doomed))
    }
}

impl fmt::Display for ConsentNeeded {
    /// What would be deleted, and why that is asked; how to agree depends on who is asked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lost, of) = (self.deletions.len(), self.of);
        match self.kind {
            ConsentKind::EmptyRender => {
                write!(
                    f,
                    "nothing is rendered, and {lost} of {of} objects would be deleted"
                )?;
            }
            ConsentKind::Deletions => write!(f, "{lost} of {of} objects would be deleted")?,
        }
        let named: Vec<String> = self
            .deletions
            .iter()
            .take(NAMED_MAX)
            .map(|doomed| doomed.object.to_string())
            .collect();
        write!(f, ": {}", named.join(", "))?;
        match lost.saturating_sub(NAMED_MAX) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// What a change of configuration loses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeLoss {
    /// The consent that it needs.
    pub consent: ChangeConsent,
    /// What is lost, for people.
    pub what: String,
}

impl ClusterSpec {
    /// What is lost when this specification takes the place of `before`, as far as that needs consent: each kind at most
    /// once, with everything that it is about.
    pub fn losses(&self, before: &Self, limit: LossLimit) -> Vec<ChangeLoss> {
        let now = |name: &ComponentName| self.components.iter().find(|component| component.name == *name);
        let removed: Vec<&str> = before
            .components
            .iter()
            .filter(|component| now(&component.name).is_none())
            .map(|component| component.name.as_str())
            .collect();
        let moved: Vec<String> = before
            .components
            .iter()
            .filter_map(|old| Some((old, now(&old.name)?)))
            .filter(|(old, new)| old.namespace != new.namespace)
            .map(|(old, new)| format!("{} from {} to {}", old.name, old.namespace, new.namespace))
            .collect();
        let all = before.components.len();
        let mut losses = Vec::new();
        if all > 0 && self.components.is_empty() {
            losses.push(ChangeLoss {
                consent: ChangeConsent::EmptyComponents,
                what: format!("no component is left of {}", named(&removed)),
            });
        } else if limit.is_passed(removed.len(), all) {
            losses.push(ChangeLoss {
                consent: ChangeConsent::Removals,
                what: format!("{} of {all} components go: {}", removed.len(), named(&removed)),
            });
        }
        if !moved.is_empty() {
            losses.push(ChangeLoss {
                consent: ChangeConsent::NamespaceChange,
                what: format!(
                    "components are deleted and installed in another namespace: {}",
                    named(&moved)
                ),
            });
        }
        losses
    }
}

fn named<T: AsRef<str>>(names: &[T]) -> String {
    let told: Vec<&str> = names.iter().take(NAMED_MAX).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(NAMED_MAX) {
        0 => told.join(", "),
        more => format!("{} and {more} more", told.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doomed(count: usize) -> Vec<Doomed> {
        let one = |index| Doomed {
            object: ObjectRef {
                group: String::new(),
                kind: "ConfigMap".to_owned(),
                namespace: Some("shop".to_owned()),
                name: format!("c{index:02}"),
            },
            uid: format!("u{index}"),
        };
        (0..count).map(one).collect()
    }

    fn name(text: &str) -> ComponentName {
        ComponentName::new(text).expect("a name")
    }

    fn kind(lost: usize, of: usize, rendered: bool) -> Option<ConsentKind> {
        ConsentNeeded::of_plan(&name("web"), doomed(lost), of, rendered, LossLimit::OBJECTS)
            .map(|needed| needed.kind)
    }

    #[test]
    fn a_share_and_a_number_decide() {
        assert_eq!(kind(4, 4, true), None, "few are never asked about");
        assert_eq!(kind(5, 25, true), None, "a fifth is no more than a fifth");
        assert_eq!(kind(5, 24, true), Some(ConsentKind::Deletions));
        assert_eq!(kind(100, 1_000, true), None);
        assert_eq!(kind(1, 1, false), Some(ConsentKind::EmptyRender));
        assert_eq!(
            kind(0, 7, false),
            None,
            "where nothing is deleted nobody is asked"
        );
        let never = LossLimit {
            percent: 100,
            least: 0,
        };
        assert!(!never.is_passed(7, 7) && !never.is_passed(0, 0));
        let always = LossLimit { percent: 0, least: 0 };
        assert!(always.is_passed(1, 1_000) && !always.is_passed(0, 1_000));
    }

    #[test]
    fn a_digest_names_these_very_objects() {
        let needed = |deletions| ConsentNeeded {
            component: name("web"),
            kind: ConsentKind::Deletions,
            deletions,
            of: 9,
        };
        let digest = needed(doomed(5)).digest();
        let mut turned = doomed(5);
        turned.reverse();
        let sorted = ConsentNeeded::of_plan(&name("web"), turned, 9, true, LossLimit::OBJECTS);
        assert_eq!(
            sorted.map(|needed| needed.digest()),
            Some(digest),
            "the order does not count"
        );
        assert_ne!(needed(doomed(6)).digest(), digest);
        let mut anew = doomed(5);
        anew[0].uid = "another".to_owned();
        assert_ne!(needed(anew.clone()).digest(), digest);
        let empty = ConsentNeeded {
            kind: ConsentKind::EmptyRender,
            ..needed(doomed(5))
        };
        assert_ne!(empty.digest(), digest);
        assert!(needed(doomed(3)).is_within(&doomed(5)) && !needed(anew).is_within(&doomed(5)));
    }

    #[test]
    fn what_would_go_is_named_and_bounded() {
        let needed = ConsentNeeded::of_plan(&name("web"), doomed(12), 12, false, LossLimit::OBJECTS);
        let text = needed.map(|needed| needed.to_string()).unwrap_or_default();
        assert!(
            text.starts_with("nothing is rendered, and 12 of 12 objects would be deleted: ConfigMap/c00 in"),
            "{text}"
        );
        assert!(
            text.contains("c09") && !text.contains("c10") && text.ends_with("and 2 more"),
            "{text}"
        );
    }

    fn spec(components: &[(&str, &str)]) -> ClusterSpec {
        let components: Vec<_> = components
            .iter()
            .map(|(name, namespace)| {
                serde_json::json!({"name": name, "namespace": namespace, "source": {"directory": {"path": "x"}}})
            })
            .collect();
        serde_json::from_value(serde_json::json!({"name": "c1", "components": components})).expect("a spec")
    }

    fn losses(before: &[(&str, &str)], after: &[(&str, &str)]) -> Vec<ChangeConsent> {
        let losses = spec(after).losses(&spec(before), LossLimit::COMPONENTS);
        losses.into_iter().map(|loss| loss.consent).collect()
    }

    #[test]
    fn a_change_says_what_it_loses() {
        use ChangeConsent::{EmptyComponents, NamespaceChange, Removals};
        let three = [("a", "n"), ("b", "n"), ("c", "n")];
        assert_eq!(losses(&[], &[]), []);
        assert_eq!(losses(&[], &three), []);
        assert_eq!(losses(&three, &three), []);
        assert_eq!(losses(&three, &[]), [EmptyComponents]);
        assert_eq!(losses(&[("a", "n")], &[]), [EmptyComponents]);
        assert_eq!(losses(&three, &three[..2]), [], "one alone is never asked about");
        assert_eq!(losses(&three, &three[..1]), [Removals]);
        // Those that come make up for nothing.
        assert_eq!(losses(&three, &[("a", "n"), ("d", "n"), ("e", "n")]), [Removals]);
        assert_eq!(losses(&three, &[("a", "m")]), [Removals, NamespaceChange]);
        let ten: Vec<(String, &str)> = (0..10).map(|index| (format!("c{index}"), "n")).collect();
        let ten: Vec<(&str, &str)> = ten
            .iter()
            .map(|(name, namespace)| (name.as_str(), *namespace))
            .collect();
        assert_eq!(losses(&ten, &ten[..8]), []);
        assert_eq!(losses(&ten, &ten[..7]), [Removals]);
        let told = spec(&[("a", "m")]).losses(&spec(&three), LossLimit::COMPONENTS);
        assert!(told[0].what.ends_with("2 of 3 components go: b, c"), "{told:?}");
        assert!(told[1].what.ends_with("a from n to m"), "{told:?}");
    }

    #[test]
    fn names_read_back() {
        for kind in ConsentKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(*kind));
            assert_eq!(serde_json::to_value(kind).ok(), Some(kind.as_str().into()));
        }
        for consent in ChangeConsent::ALL {
            assert_eq!(consent.as_str().parse(), Ok(*consent));
            assert_eq!(serde_json::to_value(consent).ok(), Some(consent.as_str().into()));
        }
        assert!("all".parse::<ChangeConsent>().is_err());
    }
}
