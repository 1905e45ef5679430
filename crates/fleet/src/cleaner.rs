//! Takes away what nobody needs any more.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_inventory::{Cleaned, Error, RetentionPolicy, Store};
use evenkeel_telemetry::CancellationToken;
use jiff::{SignedDuration, Timestamp};

use crate::fleet::Inner;

/// The pause between two steps: the database has other things to do.
const STEP_PAUSE: Duration = Duration::from_millis(20);
/// How long an uploaded archive waits for a configuration that names it.
const ARCHIVE_GRACE: SignedDuration = SignedDuration::from_hours(24);
/// How many archives go in one transaction.
const ARCHIVES_TOGETHER: u32 = 100;

/// Cleans up from time to time, as the settings say.
///
/// # Errors
/// What the inventory fails with; the service is started again.
pub(crate) async fn serve(inner: Arc<Inner>, stop: CancellationToken) -> Result<(), Error> {
    loop {
        let removed = remove_archives(&*inner.store, inner.clock.now()).await?;
        if removed > 0 {
            tracing::info!(removed, "archives that no configuration names were removed");
        }
        // A change of the settings is heard of at the next pass.
        inner.tuning.read(&*inner.store).await?;
        let cleaning = inner.tuning.cleaning();
        let cleaned = forget(&*inner.store, &cleaning.policy, &stop).await?;
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
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(cleaning.every) => {}
        }
    }
}

/// Removes what `policy` does not keep, step by step. Answers what.
async fn forget(
    store: &dyn Store,
    policy: &RetentionPolicy,
    stop: &CancellationToken,
) -> Result<Cleaned, Error> {
    let mut all = Cleaned::default();
    loop {
        let step = store.clean(policy, all.next.take().as_ref()).await?;
        all.and(step);
        if all.next.is_none() || stop.is_cancelled() {
            break;
        }
        tokio::time::sleep(STEP_PAUSE).await;
    }
    loop {
        let some = store.clean_audit(policy).await?;
        all.audit += some;
        if some == 0 || stop.is_cancelled() {
            return Ok(all);
        }
    }
}

/// Removes the archives that no configuration has named in time. Answers how many.
async fn remove_archives(store: &dyn Store, now: Timestamp) -> Result<u64, Error> {
    let before = now.saturating_sub(ARCHIVE_GRACE).unwrap_or(Timestamp::MIN);
    let mut removed = 0;
    loop {
        let some = store.remove_unused_archives(before, ARCHIVES_TOGETHER).await?;
        removed += some;
        if some < u64::from(ARCHIVES_TOGETHER) {
            return Ok(removed);
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::ManualClock;
    use evenkeel_inventory::{Archives as _, OpenOptions, SqlStore};

    use super::*;

    #[tokio::test]
    async fn an_archive_that_nobody_names_goes_after_its_grace() {
        let begin = Timestamp::UNIX_EPOCH;
        let clock = Arc::new(ManualClock::new(begin));
        let store = SqlStore::open(OpenOptions::temporary(), clock)
            .await
            .expect("an inventory");
        let digest = store.put_archive(b"chart".to_vec()).await.expect("kept");
        let after = |hours| begin + SignedDuration::from_hours(hours);
        assert_eq!(remove_archives(&store, after(23)).await.expect("cleaned"), 0);
        assert!(store.archive(&digest).await.is_ok());
        assert_eq!(remove_archives(&store, after(25)).await.expect("cleaned"), 1);
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
        assert!(
            forget(&store, &policy, &stop)
                .await
                .expect("cleaned")
                .is_nothing()
        );
        clock.advance(SignedDuration::from_hours(24 * 31));
        let cleaned = forget(&store, &policy, &stop).await.expect("cleaned");
        assert_eq!((cleaned.states, cleaned.next), (120, None));
        let page = PageRequest::default();
        let history = store.status_history(&ids[0], &page).await.expect("a history");
        assert!(history.items.is_empty());
    }
}
