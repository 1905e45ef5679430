//! One step, with the hooks around it: observe and plan, then act if this pass may.

use std::sync::Arc;
use std::time::Duration;

use crate::context::PassScope;
use crate::graph::Graph;
use crate::guarded::{Guarded, guarded};
use crate::hook::ON_ERROR_TIMEOUT;
use crate::permission::{Asker, asking};
use crate::report::Skip;
use crate::{Change, Context, Decision, Failure, Mode, Name, Outcome, Values};

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
    let node = &graph.nodes[number];
    let asker = |only_reads| Asker {
        rights: Arc::clone(&node.rights),
        only_reads,
    };
    let did = match asking(asker(true), node.step.decide(cx.clone())).await? {
        Decision::End(outcome) => Did::Ended(outcome),
        Decision::Act { changes, act } => {
            let forbidden = scope.forbids(&node.name, &changes);
            cx.planned(changes);
            match forbidden {
                Some(skip) => Did::Forbidden(skip),
                None if live => Did::Ended(asking(asker(false), act).await?),
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
    fn forbids(&self, step: &Name, changes: &[Change]) -> Option<Skip> {
        let by_verb = changes.iter().find_map(|change| {
            let (_, reason) = self.forbidden.iter().find(|(verb, _)| *verb == change.verb)?;
            Some((change, reason))
        });
        let unapproved = || {
            let (approved, reason) = self.approved.as_ref()?;
            let of_step = approved.iter().find(|(name, _)| *step == **name);
            let is_approved = of_step.is_some_and(|(_, approved)| approved == changes);
            changes
                .first()
                .filter(|_| !is_approved)
                .map(|change| (change, reason))
        };
        let (change, reason) = by_verb.or_else(unapproved)?;
        Some(Skip::Forbidden {
            change: change.to_string(),
            reason: reason.clone(),
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
