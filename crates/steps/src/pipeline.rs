//! A pipeline: a checked graph of steps, built once and run many times.

use std::fmt;
use std::sync::Arc;

use crate::describe::Description;
use crate::graph::Graph;
use crate::slot::SlotId;
use crate::teardown::teardown;
use crate::{Bundle, Error, Hook, Name, Permission, Slot, Step};

/// A checked graph of steps over snapshots of type `S`. Cheap to clone; any number of passes can run at once.
pub struct Pipeline<S> {
    pub(crate) graph: Arc<Graph<S>>,
    teardown: Option<Arc<Graph<S>>>,
}

/// Collects steps for a [`Pipeline`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct PipelineBuilder<S> {
    name: String,
    steps: Vec<Arc<dyn Step<S>>>,
    given: Vec<SlotId>,
    hooks: Vec<Arc<dyn Hook<S>>>,
}

impl<S: Send + Sync + 'static> Pipeline<S> {
    /// Begins a pipeline called `name`.
    pub fn builder(name: impl Into<String>) -> PipelineBuilder<S> {
        PipelineBuilder {
            name: name.into(),
            steps: Vec::new(),
            given: Vec::new(),
            hooks: Vec::new(),
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

    /// What the steps ask of what is outside, each with its step, in the order in which one worker runs them.
    pub fn permissions(&self) -> impl Iterator<Item = (&Name, &Permission)> {
        self.graph.order.iter().flat_map(|number| {
            let node = &self.graph.nodes[*number];
            node.rights.may.iter().map(|permission| (&node.name, permission))
        })
    }

    /// The way back: the [teardowns](Step::teardown) of the steps, those of later steps before those of earlier
    /// ones. It is called `<name>.teardown`, takes the same given slots and has the same hooks. `None` when no step
    /// has one.
    pub fn teardown(&self) -> Option<Self> {
        let graph = Arc::clone(self.teardown.as_ref()?);
        Some(Self {
            graph,
            teardown: None,
        })
    }

    /// Prints the graph.
    pub fn describe(&self) -> Description<'_, S> {
        Description(&self.graph)
    }
}

impl<S: Send + Sync + 'static> PipelineBuilder<S> {
    /// Adds a step. The order of the calls means nothing.
    pub fn step(mut self, step: impl Step<S> + 'static) -> Self {
        self.steps.push(Arc::new(step));
        self
    }

    /// Adds steps.
    pub fn steps(mut self, steps: impl IntoIterator<Item = Box<dyn Step<S>>>) -> Self {
        self.steps.extend(steps.into_iter().map(Arc::from));
        self
    }

    /// Adds the steps and hooks that many pipelines share.
    pub fn bundle(mut self, bundle: &impl Bundle<S>) -> Self {
        self.hooks.extend(bundle.hooks().into_iter().map(Arc::from));
        self.steps(bundle.steps())
    }

    /// Adds a hook around every step.
    pub fn hook(mut self, hook: impl Hook<S> + 'static) -> Self {
        self.hooks.push(Arc::new(hook));
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
    /// two providers, with none, or with two types. The graph of the teardowns is checked as well.
    pub fn build(self) -> Result<Pipeline<S>, Error> {
        let graph = Graph::build(self.name, self.steps, &self.given, self.hooks)?;
        let teardown = teardown(&graph, &self.given)?;
        Ok(Pipeline {
            graph: Arc::new(graph),
            teardown: teardown.map(Arc::new),
        })
    }
}

impl<S> Clone for Pipeline<S> {
    fn clone(&self) -> Self {
        Self {
            graph: Arc::clone(&self.graph),
            teardown: self.teardown.clone(),
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
