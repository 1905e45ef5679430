//! Opening a database on a server.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::Clock;
use evenkeel_telemetry::Tasks;
use futures::FutureExt as _;
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _};

use super::clock::ServerClock;
use super::wakeups::Wakeups;
use crate::sql::{
    Home, Opened, Pool, PostgresOptions, TimeSource, database, migrations, query_scalar, repeating,
};
use crate::{Error, Signal, Signals};

/// A connection that lay idle for longer is asked whether it still is one.
const FRESH: Duration = Duration::from_secs(1);
/// How long a connection lives, so that a server behind a balancer gets its share back after a fail-over.
const LIFETIME: Duration = Duration::from_secs(30 * 60);
/// How long the tasks have to end.
const STOP: Duration = Duration::from_secs(2);
/// The oldest server that is supported: the oldest that has every statement used here tested.
const SERVER_MIN: i64 = 140_000;

/// What belongs to a server besides the pool.
pub(crate) struct Server {
    name: String,
    tasks: Tasks,
    wakeups: Arc<Wakeups>,
}

impl Server {
    /// Where it is, without user and password.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Tells the other processes.
    pub(crate) fn tell(&self, signal: Signal) {
        self.wakeups.tell(signal);
    }

    /// Ends the tasks.
    pub(crate) async fn stop(&self) {
        self.tasks.shutdown(STOP).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

/// Opens a database and brings its schema up to date.
///
/// # Errors
/// [`Error::BinaryTooOld`], [`Error::Database`].
pub(crate) async fn open(
    options: &PostgresOptions,
    clock: Arc<dyn Clock>,
    signals: &Arc<Signals>,
) -> Result<Opened, Error> {
    let connect = options.connect_options().disable_statement_logging();
    let pool: PgPool = PgPoolOptions::new()
        .max_connections(options.connections.max(2))
        .acquire_timeout(options.acquire_timeout)
        .max_lifetime(LIFETIME)
        // Asking each time would cost a round trip a call.
        .test_before_acquire(false)
        .before_acquire(|connection, metadata| {
            async move {
                if metadata.idle_for > FRESH {
                    connection.ping().await?;
                }
                Ok(true)
            }
            .boxed()
        })
        .connect_lazy_with(connect.clone());
    let shared = Pool::Postgres(pool.clone());
    repeating(|| check_server(&shared)).await?;
    let server_clock = match options.time {
        TimeSource::Given => None,
        TimeSource::Database => Some(Arc::new(
            ServerClock::new(&pool)
                .await
                .map_err(database("asking for the time"))?,
        )),
    };
    let clock = match &server_clock {
        None => clock,
        Some(clock) => clock.clone(),
    };
    repeating(|| migrations::run(&shared, None, migrations::ALL, clock.now())).await?;
    let tasks = Tasks::new();
    let wakeups = Wakeups::start(&tasks, &pool, connect, server_clock, signals);
    Ok(Opened {
        pool: shared,
        home: Home::Postgres(Server {
            name: options.to_string(),
            tasks,
            wakeups,
        }),
        clock,
    })
}

/// Refuses a server that is too old.
async fn check_server(pool: &Pool) -> Result<(), Error> {
    let version: i64 = query_scalar::<i64>("SELECT current_setting('server_version_num')::bigint")
        .fetch_one(pool)
        .await
        .map_err(database("connecting to the database"))?;
    if version < SERVER_MIN {
        return Err(Error::ServerTooOld {
            found: version / 10_000,
            min: SERVER_MIN / 10_000,
        });
    }
    Ok(())
}
