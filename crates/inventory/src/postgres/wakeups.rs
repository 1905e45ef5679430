//! Signals between the processes of one database: `LISTEN` and `NOTIFY`, as hints.
//!
//! A lost notification costs at most [`BACKSTOP`]; a connection that was lost counts as every signal at once. Many
//! signals go out as one: a transaction with a notification holds a lock of the whole server while it commits, so there
//! is one short transaction for all, never one a row, and none inside a transaction that does work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use evenkeel_telemetry::{OnCancel, OnError, Tasks};
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use tokio::sync::Notify;
use uuid::Uuid;

use super::clock::ServerClock;
use crate::{Signal, Signals};

/// The channel of all Evenkeel processes of one database.
const CHANNEL: &str = "evenkeel";
/// For how long signals are gathered after some went out.
const GATHER: Duration = Duration::from_millis(5);
/// How often everybody looks whether nobody said anything.
const BACKSTOP: Duration = Duration::from_secs(10);
/// The pause before a lost connection is made again.
const RECONNECT: Duration = Duration::from_secs(1);

/// What this process has to tell the others.
#[derive(Debug)]
pub(crate) struct Wakeups {
    /// Whose words are ours, and not news.
    process: Uuid,
    /// A bit for each kind of signal.
    untold: AtomicU32,
    told: Notify,
}

/// The bit of a signal.
fn bit(signal: Signal) -> u32 {
    Signal::ALL
        .iter()
        .position(|other| *other == signal)
        .map_or(0, |place| 1 << place)
}

impl Wakeups {
    /// Starts the tasks that tell, listen and look.
    pub(crate) fn start(
        tasks: &Tasks,
        pool: &PgPool,
        connect: PgConnectOptions,
        clock: Option<Arc<ServerClock>>,
        signals: &Arc<Signals>,
    ) -> Arc<Self> {
        let wakeups = Arc::new(Self {
            process: Uuid::now_v7(),
            untold: AtomicU32::new(0),
            told: Notify::new(),
        });
        let (teller, telling) = (wakeups.clone(), pool.clone());
        drop(
            tasks.spawn("database-notify", OnError::Log, OnCancel::Abort, |_| async move {
                teller.tell_all(&telling).await
            }),
        );
        let (listener, listening) = (wakeups.clone(), signals.clone());
        drop(
            tasks.spawn("database-listen", OnError::Log, OnCancel::Abort, |_| async move {
                listener.listen(connect, &listening).await
            }),
        );
        let (pool, signals) = (pool.clone(), signals.clone());
        drop(tasks.spawn(
            "database-backstop",
            OnError::Log,
            OnCancel::Abort,
            |_| async move { look(&pool, clock.as_deref(), &signals).await },
        ));
        wakeups
    }

    /// Has the others told, soon.
    pub(crate) fn tell(&self, signal: Signal) {
        if self.untold.fetch_or(bit(signal), Ordering::AcqRel) & bit(signal) == 0 {
            self.told.notify_one();
        }
    }

    async fn tell_all(&self, pool: &PgPool) -> Result<(), sqlx::Error> {
        loop {
            self.told.notified().await;
            let signals = self.untold.swap(0, Ordering::AcqRel);
            if signals == 0 {
                continue;
            }
            let told = sqlx::query("SELECT pg_notify($1, $2)")
                .bind(CHANNEL)
                .bind(format!("{}:{signals}", self.process.simple()))
                .execute(pool)
                .await;
            if let Err(error) = told {
                tracing::debug!(%error, "other processes are told later");
                self.untold.fetch_or(signals, Ordering::AcqRel);
                self.told.notify_one();
                tokio::time::sleep(RECONNECT).await;
            }
            tokio::time::sleep(GATHER).await;
        }
    }

    /// Hears the others, for ever.
    async fn listen(&self, connect: PgConnectOptions, signals: &Signals) -> Result<(), sqlx::Error> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(connect);
        loop {
            if let Err(error) = self.hear(&pool, signals).await {
                tracing::debug!(%error, "the connection that listens was lost");
            }
            send_all(signals);
            tokio::time::sleep(RECONNECT).await;
        }
    }

    async fn hear(&self, pool: &PgPool, signals: &Signals) -> Result<(), sqlx::Error> {
        let mut listener = PgListener::connect_with(pool).await?;
        listener.listen(CHANNEL).await?;
        // What was said before is not heard.
        send_all(signals);
        // None: the connection was lost, and with it what was said meanwhile.
        while let Some(notification) = listener.try_recv().await? {
            let Some((process, said)) = notification.payload().split_once(':') else {
                continue;
            };
            if Uuid::try_parse(process).is_ok_and(|process| process == self.process) {
                continue;
            }
            let said: u32 = said.parse().unwrap_or(u32::MAX);
            for signal in Signal::ALL {
                if said & bit(signal) != 0 {
                    signals.send(signal);
                }
            }
        }
        Ok(())
    }
}

fn send_all(signals: &Signals) {
    for signal in Signal::ALL {
        signals.send(signal);
    }
}

/// Has everybody look now and then, and follows the server's time.
async fn look(pool: &PgPool, clock: Option<&ServerClock>, signals: &Signals) -> Result<(), sqlx::Error> {
    loop {
        tokio::time::sleep(BACKSTOP).await;
        if let Some(clock) = clock
            && let Err(error) = clock.follow(pool).await
        {
            tracing::debug!(%error, "the database was not asked for the time");
        }
        send_all(signals);
    }
}
