//! Takes away what nobody needs any more.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{Fence, Lease};
use evenkeel_inventory::{Chore, Cleaned, Error, RetentionPolicy, Store};
use evenkeel_telemetry::CancellationToken;
use jiff::{SignedDuration, Timestamp};

use crate::fleet::Inner;
use crate::instances::REMEMBERED;

/// The pause between two steps: the database has other things to do.
const STEP_PAUSE: Duration = Duration::from_millis(20);
/// How long an uploaded archive waits for a configuration that names it.
const ARCHIVE_GRACE: SignedDuration = SignedDuration::from_hours(24);
/// How many archives go in one transaction.
const ARCHIVES_TOGETHER: u32 = 100;

/// The longest between two questions whether it is time to clean.
const ASK_EVERY: Duration = Duration::from_secs(60);

/// Cleans up from time to time, as the settings say. One process of an installation does at a time (K29).
///
/// # Errors
/// What the inventory fails with; the service is started again.
pub(crate) async fn serve(inner: Arc<Inner>, stop: CancellationToken) -> Result<(), Error> {
    let owner = inner.instances.own().id;
    loop {
        // A change of the settings is heard of at the next pass.
        inner.tuning.read(&*inner.store).await?;
        let cleaning = inner.tuning.cleaning();
        let lease = inner.settings.lease;
        let taken = inner
            .store
            .take_chore(Chore::Clean, owner, lease, cleaning.every)
            .await?;
        if let Some(Lease { fence, .. }) = taken {
            let chore = Turn {
                store: &*inner.store,
                fence,
                lease,
                stop: &stop,
            };
            let cleaned = chore.clean(&cleaning.policy, inner.clock.now()).await;
            // What failed is tried by whoever asks next; what was done rests.
            inner
                .store
                .end_chore(Chore::Clean, fence, cleaned.is_ok())
                .await?;
            cleaned?;
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(cleaning.every.min(ASK_EVERY)) => {}
        }
    }
}

/// This process's turn at cleaning.
struct Turn<'a> {
    store: &'a dyn Store,
    fence: Fence,
    lease: Duration,
    stop: &'a CancellationToken,
}

impl Turn<'_> {
    /// Whether it goes on: the process lives, and nobody took the turn over. Asked before each step.
    async fn goes_on(&self) -> Result<bool, Error> {
        let kept = self
            .store
            .keep_chore(Chore::Clean, self.fence, self.lease)
            .await?;
        Ok(kept.is_some() && !self.stop.is_cancelled())
    }

    async fn clean(&self, policy: &RetentionPolicy, now: Timestamp) -> Result<(), Error> {
        self.store
            .forget_instances(now.saturating_sub(REMEMBERED).unwrap_or(Timestamp::MIN))
            .await?;
        let removed = self.remove_archives(now).await?;
        if removed > 0 {
            tracing::info!(removed, "archives that no configuration names were removed");
        }
        let cleaned = self.forget(policy).await?;
        if !cleaned.is_nothing() {
            let Cleaned {
                runs,
                states,
                configurations,
                kubeconfigs,
                clusters,
                audit,
                ..
            } = cleaned;
            tracing::info!(
                runs,
                states,
                configurations,
                kubeconfigs,
                clusters,
                audit,
                "the past was forgotten"
            );
        }
        Ok(())
    }

    /// Removes what `policy` does not keep, step by step. Answers what.
    async fn forget(&self, policy: &RetentionPolicy) -> Result<Cleaned, Error> {
        let mut all = Cleaned::default();
        while self.goes_on().await? {
            let step = self.store.clean(policy, all.next.take().as_ref()).await?;
            all.and(step);
            if all.next.is_none() {
                break;
            }
            tokio::time::sleep(STEP_PAUSE).await;
        }
        while self.goes_on().await? {
            let some = self.store.clean_audit(policy).await?;
            all.audit += some;
            if some == 0 {
                break;
            }
        }
        Ok(all)
    }

    /// Removes the archives that no configuration has named in time. Answers how many.
    async fn remove_archives(&self, now: Timestamp) -> Result<u64, Error> {
        let before = now.saturating_sub(ARCHIVE_GRACE).unwrap_or(Timestamp::MIN);
        let mut removed = 0;
        while self.goes_on().await? {
            let some = self
                .store
                .remove_unused_archives(before, ARCHIVES_TOGETHER)
                .await?;
            removed += some;
            if some < u64::from(ARCHIVES_TOGETHER) {
                break;
            }
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::ManualClock;
    use evenkeel_inventory::{Archives as _, Instance, OpenOptions, Processes as _, Role, SqlStore};

    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    async fn take(store: &SqlStore) -> Fence {
        let own = Instance::new("here", Role::All);
        let taken = store
            .take_chore(Chore::Clean, own.id, LEASE, Duration::ZERO)
            .await;
        taken.expect("asked").expect("nobody is at it").fence
    }

    fn turn<'a>(store: &'a SqlStore, fence: Fence, stop: &'a CancellationToken) -> Turn<'a> {
        Turn {
            store,
            fence,
            lease: LEASE,
            stop,
        }
    }

    #[tokio::test]
    async fn an_archive_that_nobody_names_goes_after_its_grace() {
        let begin = Timestamp::UNIX_EPOCH;
        let clock = Arc::new(ManualClock::new(begin));
        let store = SqlStore::open(OpenOptions::temporary(), clock)
            .await
            .expect("an inventory");
        let digest = store.put_archive(b"chart".to_vec()).await.expect("kept");
        let after = |hours| begin + SignedDuration::from_hours(hours);
        let stop = CancellationToken::new();
        let turn = turn(&store, take(&store).await, &stop);
        assert_eq!(turn.remove_archives(after(23)).await.expect("cleaned"), 0);
        assert!(store.archive(&digest).await.is_ok());
        assert_eq!(turn.remove_archives(after(25)).await.expect("cleaned"), 1);
        assert!(store.archive(&digest).await.is_err());
    }

    #[tokio::test]
    async fn the_past_is_forgotten_by_the_policy() {
        use evenkeel_core::{ClusterState, ConfigurationVersion};
        use evenkeel_inventory::{Clusters as _, PageRequest, PutCluster, StatusChange, Statuses as _};
        let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
        let store = SqlStore::open(OpenOptions::temporary(), clock.clone())
            .await
            .expect("an inventory");
        let mut ids = Vec::new();
        // More than one step looks at.
        for number in 0..120 {
            let spec = serde_json::json!({"name": format!("c{number}"), "components": []});
            let put = PutCluster::new(serde_json::from_value(spec).expect("a specification"));
            let id = store.put_cluster(put).await.expect("registered").id;
            let change = StatusChange::new(ClusterState::Ready, ConfigurationVersion(1));
            store.record_status(&id, change).await.expect("recorded");
            ids.push(id);
        }
        let stop = CancellationToken::new();
        let policy = RetentionPolicy::default();
        let first = turn(&store, take(&store).await, &stop);
        assert!(first.forget(&policy).await.expect("cleaned").is_nothing());
        clock.advance(SignedDuration::from_hours(24 * 31));
        let second = turn(&store, take(&store).await, &stop);
        let nothing = first.forget(&policy).await.expect("asked");
        assert!(nothing.is_nothing(), "its turn is over, and another's has begun");
        let cleaned = second.forget(&policy).await.expect("cleaned");
        assert_eq!((cleaned.states, cleaned.next), (120, None));
        let page = PageRequest::default();
        let history = store.status_history(&ids[0], &page).await.expect("a history");
        assert!(history.items.is_empty());
    }
}
