//! Writing the record of a component whose fence is ours, although others may write its Secret, too.

use std::collections::BTreeSet;

use evenkeel_core::GroupKind;

use super::parent::Parent;
use super::record::Record;
use crate::Error;
use crate::guard::Attempt;
use crate::objects::secrets;
use crate::race::Race;
use crate::target::ComponentTarget;

impl ComponentTarget {
    /// Replaces the record after the fence was taken.
    ///
    /// Nobody but a newer attempt changes what is recorded; but anybody may label or annotate the Secret, which is no reason to
    /// fail.
    ///
    /// # Errors
    /// [`Error::Fenced`] when a newer attempt has taken over; [`Error::Conflict`] when somebody changed the record itself;
    /// [`Error::LostRace`]; whatever a request fails with.
    pub(crate) async fn write_fenced(
        &self,
        parent: &Parent<Record>,
        record: &Record,
        kinds: &BTreeSet<GroupKind>,
        attempt: &Attempt,
    ) -> Result<Parent<Record>, Error> {
        let mut race = Race::new(self.cluster(), format!("write {}", parent.name));
        let mut newest: Option<Parent<Record>> = None;
        loop {
            let over = newest.as_ref().unwrap_or(parent);
            let error = match self
                .cluster()
                .update_parent(over, self.owner(), record, kinds, &*attempt.guard)
                .await
            {
                Err(error @ Error::Conflict { .. }) => error,
                outcome => return outcome,
            };
            match self.parent_again(&mut race, false).await? {
                Some(now) if now.record.fence > attempt.fence => {
                    return Err(Error::Fenced {
                        component: self.name().to_string(),
                        ours: attempt.fence,
                        theirs: now.record.fence,
                    });
                }
                Some(now) if now.record == parent.record => newest = Some(now),
                _ => return Err(error),
            }
        }
    }

    /// The parent as it is after a race for it was lost.
    pub(crate) async fn parent_again(
        &self,
        race: &mut Race,
        take_over: bool,
    ) -> Result<Option<Parent<Record>>, Error> {
        let secret = super::parent::secret_ref(self.parent_name());
        race.look_again(self.cluster(), &secrets(), &secret).await?;
        self.cluster()
            .parent(self.parent_name(), self.owner(), take_over)
            .await
    }
}
