//! Objects that change hands between components of one configuration.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::{ComponentName, ObjectRef};

use crate::applyset::applyset_id;
use crate::applyset::parent::Parents;
use crate::applyset::record::RecordedObject;
use crate::error::RenderedTwice;
use crate::live::{LiveObject, LiveObjects};
use crate::siblings::{SiblingUnknown, Wanted};
use crate::target::ComponentTarget;
use crate::{Desired, Error, order};

/// What moves, and from or to which component.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// Rendered here, and of another component that lets go of it.
    pub(super) here: BTreeMap<ObjectRef, ComponentName>,
    /// No longer rendered here, and rendered by another component.
    pub(super) away: BTreeMap<ObjectRef, ComponentName>,
}

/// What exists, and whose it is.
pub(super) struct Found<'a> {
    pub(super) members: &'a LiveObjects,
    pub(super) others: &'a LiveObjects,
    pub(super) recorded: &'a BTreeMap<ObjectRef, RecordedObject>,
    /// The other components of ours at the target, by the ids of their sets.
    pub(super) owners: &'a BTreeMap<String, ComponentName>,
}

/// The components of ours behind `parents`, by the ids of their sets.
pub(super) fn owners(parents: &Parents) -> BTreeMap<String, ComponentName> {
    let readable = parents
        .components
        .iter()
        .filter_map(|(name, parent)| Some((name, parent.as_ref().ok()?)));
    readable
        .map(|(name, parent)| (applyset_id(name), parent.record.component.clone()))
        .collect()
}

/// Whether an object with our label that is not rendered is one that we made. Controllers copy labels onto what they make;
/// without fields of ours it is theirs.
pub(super) fn is_ours(
    object: &ObjectRef,
    live: &LiveObject,
    recorded: &BTreeMap<ObjectRef, RecordedObject>,
) -> bool {
    recorded.contains_key(object) || (live.owned().is_some() && !live.has_controller())
}

impl ComponentTarget {
    /// Asks the siblings about every object that is new, of another component, or no longer rendered.
    ///
    /// # Errors
    /// [`Error::RenderedTwice`] with every object that another component renders, too; [`Error::SiblingUnknown`] when that
    /// cannot be told of an object that it is to be told of.
    pub(super) async fn moves(&self, desired: &Desired, found: &Found<'_>) -> Result<Moves, Error> {
        let Some(siblings) = self.siblings() else {
            return Ok(Moves::default());
        };
        let (mut new, mut theirs) = (BTreeSet::new(), BTreeMap::new());
        for wanted in desired.objects().iter().filter(|wanted| !wanted.is_shared()) {
            let object = &wanted.object;
            match found.members.get(object).or_else(|| found.others.get(object)) {
                None if !found.recorded.contains_key(object) => drop(new.insert(object.clone())),
                None => {}
                Some(live) => {
                    let owner = live.labels.part_of.as_ref().and_then(|set| found.owners.get(set));
                    theirs.extend(owner.map(|owner| (object.clone(), owner.clone())));
                }
            }
        }
        let left = left_over(desired, found);
        if new.is_empty() && theirs.is_empty() && left.is_empty() {
            return Ok(Moves::default());
        }
        let asked = new.iter().chain(theirs.keys()).chain(&left).cloned().collect();
        let wanted = siblings.wanting(self.name(), &asked).await;
        let twice: Vec<RenderedTwice> = new
            .iter()
            .chain(theirs.keys())
            .filter_map(|object| {
                Some(RenderedTwice {
                    object: object.clone(),
                    component: self.name().clone(),
                    other: wanted.by.get(object)?.clone(),
                })
            })
            .collect();
        if !twice.is_empty() {
            return Err(Error::RenderedTwice(twice));
        }
        for (object, owner) in &theirs {
            if let Some(unknown) = wanted.unknown.get(owner) {
                return Err(Error::SiblingUnknown(Box::new(SiblingUnknown {
                    component: owner.clone(),
                    object: object.clone(),
                    unknown: unknown.clone(),
                })));
            }
        }
        let away = moved_away(left, &wanted)?;
        Ok(Moves { here: theirs, away })
    }
}

/// What is ours, not rendered, and would be deleted.
fn left_over(desired: &Desired, found: &Found<'_>) -> BTreeSet<ObjectRef> {
    let rendered: BTreeSet<&ObjectRef> = desired.objects().iter().map(|wanted| &wanted.object).collect();
    found
        .members
        .iter()
        .filter(|(object, live)| {
            !rendered.contains(object)
                && !order::never_pruned(&object.group_kind())
                && live.stays().is_none()
                && is_ours(object, live, found.recorded)
        })
        .map(|(object, _)| object.clone())
        .collect()
}

/// Those of `left` that other components render.
///
/// # Errors
/// [`Error::SiblingUnknown`] when a component may render one of them as soon as it can be asked: a deletion cannot be
/// taken back. One that cannot render at all stands in nobody's way.
pub(crate) fn moved_away(
    left: BTreeSet<ObjectRef>,
    wanted: &Wanted,
) -> Result<BTreeMap<ObjectRef, ComponentName>, Error> {
    let mut away = BTreeMap::new();
    for object in left {
        match wanted.by.get(&object) {
            Some(component) => drop(away.insert(object, component.clone())),
            None => {
                if let Some((component, unknown)) =
                    wanted.unknown.iter().find(|(_, unknown)| unknown.may_pass)
                {
                    return Err(Error::SiblingUnknown(Box::new(SiblingUnknown {
                        component: component.clone(),
                        object,
                        unknown: unknown.clone(),
                    })));
                }
            }
        }
    }
    Ok(away)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unknown;

    fn object(name: &str) -> ObjectRef {
        ObjectRef {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: Some("shop".to_owned()),
            name: name.to_owned(),
        }
    }

    #[test]
    fn nothing_is_given_up_while_somebody_may_want_it() {
        let b = ComponentName::new("b").expect("a name");
        let mut wanted = Wanted {
            by: [(object("x"), b.clone())].into(),
            unknown: BTreeMap::new(),
        };
        let left = || BTreeSet::from([object("x"), object("y")]);
        let away = moved_away(left(), &wanted).expect("known");
        assert_eq!(away, BTreeMap::from([(object("x"), b.clone())]));
        let unknown = |may_pass| Unknown {
            reason: "no answer".to_owned(),
            may_pass,
        };
        wanted.unknown.insert(b.clone(), unknown(false));
        assert!(moved_away(left(), &wanted).is_ok());
        wanted.unknown.insert(b, unknown(true));
        let refused = moved_away(left(), &wanted).map_err(|error| error.to_string());
        assert!(refused.is_err_and(|text| text.contains("component b") && text.contains("ConfigMap/y")));
        assert!(
            moved_away(BTreeSet::from([object("x")]), &wanted).is_ok(),
            "what is known to move does"
        );
    }
}
