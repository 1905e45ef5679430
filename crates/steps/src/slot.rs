//! Typed slots: what one step hands to another. A consumer that lists a slot gets its value, and with it an
//! edge in the graph.

use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::{Context, Failure};

/// A token for a value of type `T` that one step provides and others need.
///
/// ```
/// use evenkeel_steps::Slot;
///
/// struct Manifests(Vec<String>);
/// const MANIFESTS: Slot<Manifests> = Slot::new("manifests");
/// ```
pub struct Slot<T> {
    name: &'static str,
    value: PhantomData<fn() -> T>,
}

/// The token of a slot that a step can do without: [`Slot::optional`].
pub struct OptionalSlot<T>(Slot<T>);

/// A slot without its type in the signature.
#[derive(Clone, Copy)]
pub struct SlotId {
    pub(crate) name: &'static str,
    pub(crate) type_id: TypeId,
    pub(crate) type_name: &'static str,
}

/// A slot that a step reads.
#[derive(Debug, Clone, Copy)]
pub struct SlotNeed {
    /// Which slot.
    pub id: SlotId,
    /// Whether the step runs without it too.
    pub optional: bool,
}

/// Values for slots, by slot. What a step hands on, and what a caller gives into a pass.
#[derive(Default)]
pub struct Values(pub(crate) Vec<(SlotId, AnyArc)>);

pub(crate) type AnyArc = Arc<dyn Any + Send + Sync>;

/// What a step needs: a [`Slot`], an [`OptionalSlot`], `()`, or a tuple of such.
pub trait Needs: Copy + Send + Sync + 'static {
    /// What the step gets: `Arc<T>` for a slot, `Option<Arc<T>>` for an optional one.
    type Values: Send + Sync + 'static;

    /// The slots.
    fn slots(&self) -> Vec<SlotNeed>;

    /// Reads the values.
    ///
    /// # Errors
    /// A bug when the step did not declare a slot.
    fn read<S: Send + Sync + 'static>(&self, cx: &Context<S>) -> Result<Self::Values, Failure>;
}

/// What a step provides: a [`Slot`], `()`, or a tuple of such.
pub trait Provides: Copy + Send + Sync + 'static {
    /// What the step must hand over when it is done: `T` for a slot.
    type Values: Send + 'static;

    /// The slots.
    fn slots(&self) -> Vec<SlotId>;

    /// Puts the values under their slots.
    fn pack(&self, values: Self::Values, into: &mut Values);
}

// === impl Slot ===

impl<T: Send + Sync + 'static> Slot<T> {
    /// A slot. Two slots are the same when their names are; a pipeline refuses one name with two types.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            value: PhantomData,
        }
    }

    /// The slot's name.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The same slot for a step that runs without its value too. The order of the steps stays.
    pub const fn optional(self) -> OptionalSlot<T> {
        OptionalSlot(self)
    }

    /// The slot without its type.
    pub fn id(self) -> SlotId {
        SlotId {
            name: self.name,
            type_id: TypeId::of::<T>(),
            type_name: type_name::<T>(),
        }
    }
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slot<T> {}

impl<T> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({})", self.name)
    }
}

impl<T> Clone for OptionalSlot<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for OptionalSlot<T> {}

impl<T> fmt::Debug for OptionalSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OptionalSlot({})", self.0.name)
    }
}

// === impl SlotId ===

impl SlotId {
    /// The slot's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The Rust type of its value.
    pub fn type_name(&self) -> &'static str {
        self.type_name
    }
}

impl fmt::Debug for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.type_name)
    }
}

// === impl Values ===

impl Values {
    /// No values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `value` for `slot`.
    pub fn with<T: Send + Sync + 'static>(self, slot: Slot<T>, value: T) -> Self {
        self.with_shared(slot, Arc::new(value))
    }

    /// Adds a shared value for `slot`.
    pub fn with_shared<T: Send + Sync + 'static>(mut self, slot: Slot<T>, value: Arc<T>) -> Self {
        self.0.push((slot.id(), value));
        self
    }
}

/// Names only: a value may be secret.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(id, _)| id)).finish()
    }
}

// === impl Needs ===

impl Needs for () {
    type Values = ();
    fn slots(&self) -> Vec<SlotNeed> {
        Vec::new()
    }
    fn read<S: Send + Sync + 'static>(&self, _: &Context<S>) -> Result<(), Failure> {
        Ok(())
    }
}

impl<T: Send + Sync + 'static> Needs for Slot<T> {
    type Values = Arc<T>;
    fn slots(&self) -> Vec<SlotNeed> {
        vec![SlotNeed {
            id: self.id(),
            optional: false,
        }]
    }
    fn read<S: Send + Sync + 'static>(&self, cx: &Context<S>) -> Result<Arc<T>, Failure> {
        cx.get(*self)
    }
}

impl<T: Send + Sync + 'static> Needs for OptionalSlot<T> {
    type Values = Option<Arc<T>>;
    fn slots(&self) -> Vec<SlotNeed> {
        vec![SlotNeed {
            id: self.0.id(),
            optional: true,
        }]
    }
    fn read<S: Send + Sync + 'static>(&self, cx: &Context<S>) -> Result<Option<Arc<T>>, Failure> {
        cx.find(self.0)
    }
}

// === impl Provides ===

impl Provides for () {
    type Values = ();
    fn slots(&self) -> Vec<SlotId> {
        Vec::new()
    }
    fn pack(&self, (): (), _: &mut Values) {}
}

impl<T: Send + Sync + 'static> Provides for Slot<T> {
    type Values = T;
    fn slots(&self) -> Vec<SlotId> {
        vec![self.id()]
    }
    fn pack(&self, value: T, into: &mut Values) {
        into.0.push((self.id(), Arc::new(value)));
    }
}

macro_rules! tuples {
    ($($letter:ident $index:tt),+) => {
        impl<$($letter: Needs),+> Needs for ($($letter,)+) {
            type Values = ($($letter::Values,)+);
            fn slots(&self) -> Vec<SlotNeed> {
                let mut all = Vec::new();
                $(all.extend(self.$index.slots());)+
                all
            }
            fn read<S: Send + Sync + 'static>(&self, cx: &Context<S>) -> Result<Self::Values, Failure> {
                Ok(($(self.$index.read(cx)?,)+))
            }
        }

        impl<$($letter: Provides),+> Provides for ($($letter,)+) {
            type Values = ($($letter::Values,)+);
            fn slots(&self) -> Vec<SlotId> {
                let mut all = Vec::new();
                $(all.extend(self.$index.slots());)+
                all
            }
            fn pack(&self, values: Self::Values, into: &mut Values) {
                $(self.$index.pack(values.$index, into);)+
            }
        }
    };
}

tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
tuples!(A 0, B 1, C 2, D 3, E 4);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
