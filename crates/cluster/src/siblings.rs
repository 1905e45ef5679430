//! The other components of the same configuration: an object that moves between two of them changes hands and is not
//! deleted, and one that two of them render is refused (DESIGN §7).
//!
//! ```text
//! no longer rendered by A, rendered by B ──▶ A leaves it, whoever comes first; B takes it over by its label
//! rendered by B, of A, A renders it too  ──▶ refused, naming both
//! rendered by B, of A, A lets go of it   ──▶ B takes it over, and A finds that it is no longer its own
//! ```
//! Nobody has to come first: what keeps the object is that each of the two knows what the other renders.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use evenkeel_core::{ComponentName, ObjectRef};
use futures::future::BoxFuture;

/// Knows what the other components of a configuration render. Asked only about objects that are new, of another component,
/// or no longer rendered.
pub trait Siblings: fmt::Debug + Send + Sync {
    /// Which of `objects` other components than `asking` render.
    fn wanting<'a>(
        &'a self,
        asking: &'a ComponentName,
        objects: &'a BTreeSet<ObjectRef>,
    ) -> BoxFuture<'a, Wanted>;
}

/// What other components render.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The objects that are rendered, each with a component that does.
    pub by: BTreeMap<ObjectRef, ComponentName>,
    /// Components of which it is not known what they render.
    pub unknown: BTreeMap<ComponentName, Unknown>,
}

/// Why it is not known what a component renders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// For people.
    pub reason: String,
    /// Whether asking again may help without anybody changing anything.
    pub may_pass: bool,
}

/// An object of which it cannot be told whether another component renders it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiblingUnknown {
    /// The other component.
    pub component: ComponentName,
    /// The object.
    pub object: ObjectRef,
    /// Why what it renders is not known.
    pub unknown: Unknown,
}

impl fmt::Display for SiblingUnknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            component,
            object,
            unknown,
        } = self;
        write!(
            f,
            "component {component} is not known to let go of or take over {object}: what it renders cannot be told: {}",
            unknown.reason
        )
    }
}

/// A fixed answer: what each component renders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendering(pub BTreeMap<ComponentName, BTreeSet<ObjectRef>>);

impl Siblings for Rendering {
    fn wanting<'a>(
        &'a self,
        asking: &'a ComponentName,
        objects: &'a BTreeSet<ObjectRef>,
    ) -> BoxFuture<'a, Wanted> {
        let others = self.0.iter().filter(|(name, _)| *name != asking);
        let by = others.flat_map(|(name, rendered)| {
            rendered
                .intersection(objects)
                .map(|object| (object.clone(), name.clone()))
        });
        let wanted = Wanted {
            by: by.collect(),
            unknown: BTreeMap::new(),
        };
        Box::pin(std::future::ready(wanted))
    }
}

/// How a target knows its siblings, if it does.
pub(crate) type Known = Option<Arc<dyn Siblings>>;
