//! The hooks of a component's deletion, kept beside its parent: they run also when their source is gone.

use evenkeel_core::{Digest, Sensitive};

use crate::Error;
use crate::applyset::Record;
use crate::renders::Keepsake;
use crate::session::Session;
use crate::target::ComponentTarget;

impl Session {
    /// Keeps the hooks of the component's deletion, in the form that the caller reads again, in the place of those kept before;
    /// none when it has none. Costs no request while they are the same.
    ///
    /// # Errors
    /// [`Error::TooLarge`] beyond what renders may take; whatever a request fails with.
    pub async fn keep_delete_hooks(&mut self, hooks: Option<&Sensitive<Vec<u8>>>) -> Result<bool, Error> {
        let digest = hooks.map(|hooks| Digest::of(hooks.expose()));
        let known = self.parent.as_ref().and_then(|parent| parent.record.delete_hooks);
        if known == digest {
            return Ok(false);
        }
        self.take_fence().await?;
        let (target, attempt) = (self.plan.target.clone(), self.attempt.clone());
        if let (Some(hooks), Some(digest)) = (hooks, digest) {
            target
                .store(Keepsake::DeleteHooks(digest), hooks, &attempt)
                .await?;
        }
        // The old ones count until the new ones are there and the record says so.
        self.update_record(|record| record.delete_hooks = digest).await?;
        target.forget_other_hooks(digest, &attempt).await?;
        Ok(true)
    }
}

impl ComponentTarget {
    /// The hooks of its deletion as they were given to [`Session::keep_delete_hooks`], by what `record` says of them; none
    /// when it has none.
    ///
    /// # Errors
    /// Whatever a request fails with.
    pub async fn delete_hooks(&self, record: &Record) -> Result<Option<Sensitive<Vec<u8>>>, Error> {
        match record.delete_hooks {
            Some(digest) => self.load(Keepsake::DeleteHooks(digest)).await,
            None => Ok(None),
        }
    }
}
