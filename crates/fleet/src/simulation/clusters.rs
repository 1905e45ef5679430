//! Model clusters: what is applied there, under which fence, by which operation.

use std::collections::BTreeMap;

use evenkeel_core::{ComponentName, Fence, OperationId};

/// Objects that each component has.
pub(super) const OBJECTS: u8 = 2;

/// One cluster.
#[derive(Debug, Default)]
pub(super) struct ModelCluster {
    /// Whether its API server does not answer.
    pub(super) unreachable: bool,
    pub(super) components: BTreeMap<ComponentName, Applied>,
    /// The highest fence that was ever taken, by component; it outlives the component.
    fences: BTreeMap<ComponentName, Fence>,
    /// Every write that was let in.
    pub(super) log: Vec<Write>,
}

/// What is there of a component.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// The inputs that were applied to the end.
    pub(super) inputs: Option<String>,
    /// Whether an attempt has begun and not reached its end.
    pub(super) unfinished: bool,
    /// Contents by object.
    pub(super) objects: BTreeMap<u8, String>,
    /// Whether all of it comes from requests that nobody waited for any more: the next pass removes it, and there is none over a
    /// cluster that is gone.
    pub(super) stray: bool,
}

/// A write that was let in.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) component: ComponentName,
    pub(super) fence: Fence,
    pub(super) operation: OperationId,
    /// Whether nobody waited for it any more when it arrived: its sender had given up, or had lost the operation.
    pub(super) overdue: bool,
}

/// What an attempt asks of a cluster.
#[derive(Clone, Debug)]
pub(super) enum Request {
    /// The fence, before the first write.
    TakeFence,
    /// The same before a deletion: it is kept with what is there, and nothing is made to keep it.
    TakeFenceOfRemains,
    /// An object with a content.
    Apply(u8, String),
    /// That all is applied of these inputs.
    Record(String),
    /// An object gone.
    Delete(u8),
    /// The component forgotten.
    Forget,
}

impl Request {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::TakeFence | Self::TakeFenceOfRemains => "takes the fence of",
            Self::Apply(..) => "applies",
            Self::Record(_) => "records",
            Self::Delete(_) => "deletes from",
            Self::Forget => "forgets",
        }
    }
}

impl ModelCluster {
    /// Does what is asked, unless a higher fence was taken: then it answers that one.
    pub(super) fn serve(&mut self, write: &Write, request: &Request) -> Result<(), Fence> {
        let highest = self.fences.entry(write.component.clone()).or_default();
        let takes_fence = matches!(request, Request::TakeFence | Request::TakeFenceOfRemains);
        if *highest > write.fence || (*highest < write.fence && !takes_fence) {
            return Err(*highest);
        }
        *highest = write.fence;
        self.log.push(write.clone());
        match request {
            Request::TakeFence => self.applied(write).unfinished = true,
            Request::Apply(object, content) => {
                self.applied(write).objects.insert(*object, content.clone());
            }
            Request::Forget => {
                self.components.remove(&write.component);
            }
            // What only changes what is there makes nothing.
            Request::TakeFenceOfRemains | Request::Record(_) | Request::Delete(_) => {
                if let Some(applied) = self.components.get_mut(&write.component) {
                    applied.change(request);
                }
            }
        }
        Ok(())
    }

    /// What is there of the component that is written, made if nothing is.
    fn applied(&mut self, write: &Write) -> &mut Applied {
        let nothing = || Applied {
            stray: true,
            ..Applied::default()
        };
        let applied = self
            .components
            .entry(write.component.clone())
            .or_insert_with(nothing);
        applied.stray &= write.overdue;
        applied
    }
}

impl Applied {
    fn change(&mut self, request: &Request) {
        match request {
            Request::Record(inputs) => {
                self.inputs = Some(inputs.clone());
                self.unfinished = false;
            }
            Request::Delete(object) => {
                self.objects.remove(object);
            }
            _ => self.unfinished = true,
        }
    }

    /// Whether it is just what `inputs` make.
    pub(super) fn is(&self, inputs: &str) -> bool {
        !self.unfinished
            && self.inputs.as_deref() == Some(inputs)
            && self.objects.len() == usize::from(OBJECTS)
            && self.objects.values().all(|content| content == inputs)
    }
}
