//! The way back: what steps made is taken away in reverse order.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::graph::Graph;
use crate::slot::SlotId;
use crate::{Context, Decision, Error, Failure, Spec, Step, Values};

/// A teardown that waits for those of later steps.
struct InOrder<S> {
    step: Arc<dyn Step<S>>,
    /// The names of the teardowns that come first.
    after: Vec<String>,
}

/// The graph of the teardowns, with the edges of `forward` turned round. Steps without a teardown hand the order on.
pub(crate) fn teardown<S: Send + Sync + 'static>(
    forward: &Graph<S>,
    given: &[SlotId],
) -> Result<Option<Graph<S>>, Error> {
    let teardowns: Vec<Option<Arc<dyn Step<S>>>> =
        forward.nodes.iter().map(|node| node.step.teardown()).collect();
    let names: Vec<Option<String>> = teardowns
        .iter()
        .map(|step| step.as_ref().map(|step| step.spec().declared.name))
        .collect();
    let steps: Vec<Arc<dyn Step<S>>> = teardowns
        .into_iter()
        .enumerate()
        .filter_map(|(number, step)| {
            let after = nearest_below(forward, &names, number);
            Some(Arc::new(InOrder { step: step?, after }) as Arc<dyn Step<S>>)
        })
        .collect();
    if steps.is_empty() {
        return Ok(None);
    }
    let name = format!("{}.teardown", forward.name);
    Graph::build(name, steps, given, forward.hooks.clone()).map(Some)
}

/// The teardowns of the nearest steps below `number` that have one.
fn nearest_below<S>(forward: &Graph<S>, names: &[Option<String>], number: usize) -> Vec<String> {
    let mut seen = vec![false; names.len()];
    let mut found = Vec::new();
    let mut open = forward.nodes[number].successors.clone();
    while let Some(below) = open.pop() {
        if std::mem::replace(&mut seen[below], true) {
            continue;
        }
        match &names[below] {
            Some(name) => found.push(name.clone()),
            None => open.extend(&forward.nodes[below].successors),
        }
    }
    found
}

impl<S: Send + Sync + 'static> Step<S> for InOrder<S> {
    fn spec(&self) -> Spec<S> {
        self.after
            .iter()
            .fold(self.step.spec(), |spec, name| spec.after(name))
    }

    fn decide<'a>(&'a self, cx: Context<S>) -> BoxFuture<'a, Result<Decision<'a, Values>, Failure>> {
        self.step.decide(cx)
    }
}
