//! The database's time: all processes agree on it, and no jump of a machine's clock moves a lease.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use evenkeel_core::Clock;
use evenkeel_telemetry::time::elapsed;
use jiff::Timestamp;
use sqlx::postgres::PgPool;

/// A question that takes longer than this tells too little about when it was answered.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// The server's clock, continued by this process's monotonic one between two questions.
#[derive(Debug)]
pub(crate) struct ServerClock {
    /// Microseconds from the origin of [`elapsed`] to the server's time.
    offset: AtomicI64,
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl ServerClock {
    /// Asks the server for the first time.
    pub(crate) async fn new(pool: &PgPool) -> Result<Self, sqlx::Error> {
        Ok(Self {
            offset: AtomicI64::new(ask(pool).await?.0),
        })
    }

    /// Asks again.
    pub(crate) async fn follow(&self, pool: &PgPool) -> Result<(), sqlx::Error> {
        let (offset, took) = ask(pool).await?;
        if took <= ANSWER_MAX {
            self.offset.store(offset, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The offset, and how long the answer took.
async fn ask(pool: &PgPool) -> Result<(i64, Duration), sqlx::Error> {
    let mut connection = pool.acquire().await?;
    let before = elapsed();
    let server: i64 = sqlx::query_scalar("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        .fetch_one(&mut *connection)
        .await?;
    let took = elapsed().saturating_sub(before);
    let middle = micros(before).saturating_add(micros(took / 2));
    Ok((server.saturating_sub(middle), took))
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        let now = self
            .offset
            .load(Ordering::Relaxed)
            .saturating_add(micros(elapsed()));
        Timestamp::from_microsecond(now).unwrap_or(Timestamp::MAX)
    }
}
