//! Hooks around the deletion of a component.

use evenkeel_core::{HookEvent, ObjectChange};

use super::{HookRun, Runner};
use crate::Error;
use crate::applyset::record::Record;
use crate::guard::Attempt;
use crate::progress::Observer;
use crate::target::ComponentTarget;

impl ComponentTarget {
    /// Runs the hooks of `event`, of the component's deletion, that have not run yet. Nothing runs where it was never applied,
    /// or is gone. `noted` gets what is changed, as it happens.
    ///
    /// # Errors
    /// As [`Session::run_hooks`](crate::Session::run_hooks).
    pub async fn run_delete_hooks(
        &self,
        run: HookRun<'_>,
        event: HookEvent,
        attempt: &Attempt,
        observer: &Observer,
        noted: &mut Vec<ObjectChange>,
    ) -> Result<(), Error> {
        if !run.hooks.any(event) {
            return Ok(());
        }
        let parent = self
            .cluster()
            .parent::<Record>(self.parent_name(), self.owner(), false);
        let Some(parent) = parent.await? else {
            return Ok(());
        };
        let mut runner = Runner {
            target: self,
            attempt,
            observer,
            parent: self.fence_parent(parent, attempt).await?,
            unwritten: false,
            changes: noted,
            run,
        };
        runner.run(event).await?;
        runner.write().await
    }
}
