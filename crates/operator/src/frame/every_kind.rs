//! What every kind has: written once over what it asks of a snapshot, and in every pipeline (L24).

use evenkeel_steps::{Bundle, Change, Decision, Outcome, Permission, Step, step};

use super::{Access, Claim, Readable, Snapshot, claim, permission};

/// The step before which nothing outside is touched.
pub(crate) const CLAIM: &str = "claim";

/// A snapshot of an object that is made ours.
pub(crate) trait Claimable: Snapshot<Object: Readable> {
    /// The way to the API server.
    fn access(&self) -> &Access;

    /// What is asked for to give the object its owners.
    fn owners() -> Vec<Permission> {
        Vec::new()
    }

    /// What the object has to get before anything is done for it: finalizers, protection, owner.
    fn claim(&self) -> Option<Claim>;
}

/// The steps of all kinds, towards what an object asks for. A step that all are to have is added here, and nowhere else.
pub(crate) struct EveryKind;

impl<S: Claimable> Bundle<S> for EveryKind {
    fn steps(&self) -> Vec<Box<dyn Step<S>>> {
        vec![Box::new(claiming())]
    }
}

/// Makes the object ours before anything outside is touched (B36).
fn claiming<S: Claimable>() -> impl Step<S> {
    let needed = [permission::patch::<S::Object>()];
    step::<S>(CLAIM)
        .may(needed)
        .may(S::owners())
        .decide(|cx, ()| async move {
            let state = cx.shared_state();
            let Some(missing) = state.claim() else {
                return Ok(Decision::End(Outcome::done()));
            };
            let plan: Vec<Change> = missing.changes();
            Ok(Decision::act(plan, async move {
                claim(state.access(), state.object(), missing).await?;
                Ok(Outcome::changed("claimed"))
            }))
        })
}
