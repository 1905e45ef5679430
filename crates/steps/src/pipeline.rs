//! A pipeline: a checked graph of steps, built once and run many times.

use std::fmt;
use std::sync::Arc;

use crate::describe::Description;
use crate::graph::Graph;
use crate::slot::SlotId;
use crate::{Error, Name, Slot, Step};

/// A checked graph of steps over snapshots of type `S`. Cheap to clone; any number of passes can run at once.
pub struct Pipeline<S> {
    pub(crate) graph: Arc<Graph<S>>,
}

/// Collects steps for a [`Pipeline`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct PipelineBuilder<S> {
    name: String,
    steps: Vec<Box<dyn Step<S>>>,
    given: Vec<SlotId>,
}

impl<S: Send + Sync + 'static> Pipeline<S> {
    /// Begins a pipeline called `name`.
    pub fn builder(name: impl Into<String>) -> PipelineBuilder<S> {
        PipelineBuilder {
            name: name.into(),
            steps: Vec::new(),
            given: Vec::new(),
        }
    }

    /// The pipeline's name.
    pub fn name(&self) -> &Name {
        &self.graph.name
    }

    /// The names of the steps, in the order in which one worker runs them.
    pub fn steps(&self) -> impl Iterator<Item = &Name> {
        self.graph
            .order
            .iter()
            .map(|number| &self.graph.nodes[*number].name)
    }

    /// Prints the graph.
    pub fn describe(&self) -> Description<'_, S> {
        Description(&self.graph)
    }
}

impl<S: Send + Sync + 'static> PipelineBuilder<S> {
    /// Adds a step. The order of the calls means nothing.
    pub fn step(mut self, step: impl Step<S> + 'static) -> Self {
        self.steps.push(Box::new(step));
        self
    }

    /// Adds steps.
    pub fn steps(mut self, steps: impl IntoIterator<Item = Box<dyn Step<S>>>) -> Self {
        self.steps.extend(steps);
        self
    }

    /// Declares a slot that no step provides: each pass gives its value with
    /// [`PassOptions::give`](crate::PassOptions::give).
    pub fn given<T: Send + Sync + 'static>(mut self, slot: Slot<T>) -> Self {
        self.given.push(slot.id());
        self
    }

    /// Checks the graph.
    ///
    /// # Errors
    /// [`Error::Graph`] lists every mistake: bad, double and unknown names, cycles with the way round, slots with
    /// two providers, with none, or with two types.
    pub fn build(self) -> Result<Pipeline<S>, Error> {
        let graph = Graph::build(self.name, self.steps, &self.given)?;
        Ok(Pipeline {
            graph: Arc::new(graph),
        })
    }
}

impl<S> Clone for Pipeline<S> {
    fn clone(&self) -> Self {
        Self {
            graph: Arc::clone(&self.graph),
        }
    }
}

impl<S> fmt::Debug for Pipeline<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Pipeline({}, {} steps)",
            self.graph.name,
            self.graph.nodes.len()
        )
    }
}

impl<S> fmt::Debug for PipelineBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PipelineBuilder({}, {} steps)", self.name, self.steps.len())
    }
}
