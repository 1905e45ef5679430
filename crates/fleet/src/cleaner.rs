//! Takes away what nobody needs any more.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_inventory::{Error, Store};
use evenkeel_telemetry::CancellationToken;
use jiff::{SignedDuration, Timestamp};

use crate::fleet::Inner;

/// How often it is looked for what can go.
const EVERY: Duration = Duration::from_secs(60 * 60);
/// How long an uploaded archive waits for a configuration that names it.
const ARCHIVE_GRACE: SignedDuration = SignedDuration::from_hours(24);
/// How many archives go in one transaction.
const ARCHIVES_TOGETHER: u32 = 100;

/// Cleans up from time to time.
///
/// # Errors
/// What the inventory fails with; the service is started again.
pub(crate) async fn serve(inner: Arc<Inner>, stop: CancellationToken) -> Result<(), Error> {
    loop {
        let removed = remove_archives(&*inner.store, inner.clock.now()).await?;
        if removed > 0 {
            tracing::info!(removed, "archives that no configuration names were removed");
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(EVERY) => {}
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
    use evenkeel_inventory::{Archives as _, OpenOptions, SqliteStore};

    use super::*;

    #[tokio::test]
    async fn an_archive_that_nobody_names_goes_after_its_grace() {
        let begin = Timestamp::UNIX_EPOCH;
        let clock = Arc::new(ManualClock::new(begin));
        let store = SqliteStore::open(OpenOptions::temporary(), clock)
            .await
            .expect("an inventory");
        let digest = store.put_archive(b"chart".to_vec()).await.expect("kept");
        let after = |hours| begin + SignedDuration::from_hours(hours);
        assert_eq!(remove_archives(&store, after(23)).await.expect("cleaned"), 0);
        assert!(store.archive(&digest).await.is_ok());
        assert_eq!(remove_archives(&store, after(25)).await.expect("cleaned"), 1);
        assert!(store.archive(&digest).await.is_err());
    }
}
