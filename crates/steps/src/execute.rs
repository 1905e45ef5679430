//! One step, with the hooks around it: observe and plan, then act if this pass may.

use std::time::Duration;

use crate::context::PassScope;
use crate::graph::Graph;
use crate::guarded::{Guarded, guarded};
use crate::hook::ON_ERROR_TIMEOUT;
use crate::report::Skip;
use crate::{Change, Context, Decision, Failure, Mode, Outcome, Values};

/// What a step's future came to.
pub(crate) enum Did {
    Ended(Outcome<Values>),
    Planned,
    Forbidden(Skip),
}

/// Runs one step: observe and plan, then act if this pass writes.
pub(crate) async fn execute<S: Send + Sync + 'static>(
    graph: &Graph<S>,
    scope: &PassScope<S>,
    number: usize,
    cx: Context<S>,
) -> (usize, Result<Did, Failure>) {
    let node = &graph.nodes[number];
    let span = scope
        .announcer
        .tell(|observer| observer.step_span(&graph.name, &node.name));
    let work = guarded(
        attempt(graph, scope, number, &cx),
        node.timeout,
        &*scope.runtime,
        span,
    )
    .await;
    let did = flatten(work, "the step", node.timeout);
    if let Err(failure) = &did
        && scope.mode == Mode::Live
    {
        for hook in graph.hooks.iter().rev() {
            // It may hang or panic; the failure it hears of is what counts.
            let _ = guarded(
                hook.on_error(&cx, failure),
                ON_ERROR_TIMEOUT,
                &*scope.runtime,
                None,
            )
            .await;
        }
    }
    (number, did)
}

/// The step between its hooks.
async fn attempt<S: Send + Sync + 'static>(
    graph: &Graph<S>,
    scope: &PassScope<S>,
    number: usize,
    cx: &Context<S>,
) -> Result<Did, Failure> {
    let live = scope.mode == Mode::Live;
    if live {
        for hook in &graph.hooks {
            hook.before(cx).await?;
        }
    }
    let did = match graph.nodes[number].step.decide(cx.clone()).await? {
        Decision::End(outcome) => Did::Ended(outcome),
        Decision::Act { changes, act } => {
            let forbidden = scope.forbids(&changes);
            cx.planned(changes);
            match forbidden {
                Some(skip) => Did::Forbidden(skip),
                None if live => Did::Ended(act.await?),
                None => Did::Planned,
            }
        }
    };
    if live && let Did::Ended(outcome) = &did {
        for hook in graph.hooks.iter().rev() {
            hook.after(cx, outcome).await?;
        }
    }
    Ok(did)
}

impl<S> PassScope<S> {
    /// Why these changes may not be made, if one of them may not: a step acts as a whole or not at all.
    fn forbids(&self, changes: &[Change]) -> Option<Skip> {
        changes.iter().find_map(|change| {
            let (_, reason) = self.forbidden.iter().find(|(verb, _)| *verb == change.verb)?;
            Some(Skip::Forbidden {
                change: change.to_string(),
                reason: reason.clone(),
            })
        })
    }
}

/// Makes timeouts and panics failures.
pub(crate) fn flatten<T>(
    guarded: Guarded<Result<T, Failure>>,
    what: &str,
    limit: Duration,
) -> Result<T, Failure> {
    match guarded {
        Guarded::Ended(result) => result,
        Guarded::TimedOut => Err(Failure::transient(format!("{what} did not end within {limit:?}"))),
        Guarded::Panicked(text) => Err(Failure::bug(format!("{what} panicked: {text}"))),
    }
}
