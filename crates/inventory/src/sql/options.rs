//! How to open an inventory.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgSslMode};

use crate::{Error, KeySource};

/// Where the database is.
#[derive(Clone, Debug)]
pub enum Location {
    /// This SQLite file; it and its directories are made, private, when missing.
    File(PathBuf),
    /// A SQLite file in a directory of its own that goes with the store: demos and tests.
    Temporary,
    /// A PostgreSQL server, which any number of processes may share.
    Postgres(PostgresOptions),
}

impl fmt::Display for Location {
    /// For messages: no user, no password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Temporary => f.write_str("temporary"),
            Self::Postgres(server) => write!(f, "{server}"),
        }
    }
}

/// When a commit is on the disk. PostgreSQL decides that by its own settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// A crash of the process loses nothing; a loss of power may lose the last commits, never consistency.
    #[default]
    Normal,
    /// Each commit is on the disk before it is answered.
    Full,
}

/// How to open an inventory.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Where the database is.
    pub location: Location,
    /// Where the key ring is.
    pub keys: KeySource,
    /// When a commit is on the disk.
    pub synchronous: Synchronous,
}

impl OpenOptions {
    /// The database at `path`, its keys in the file `keys`.
    pub fn file(path: impl Into<PathBuf>, keys: impl Into<PathBuf>) -> Self {
        Self {
            location: Location::File(path.into()),
            keys: KeySource::File(keys.into()),
            synchronous: Synchronous::default(),
        }
    }

    /// A database and keys that end with the store.
    pub fn temporary() -> Self {
        Self {
            location: Location::Temporary,
            keys: KeySource::Ephemeral,
            synchronous: Synchronous::default(),
        }
    }

    /// A PostgreSQL database, its keys in the file `keys`.
    pub fn postgres(options: PostgresOptions, keys: impl Into<PathBuf>) -> Self {
        Self {
            location: Location::Postgres(options),
            keys: KeySource::File(keys.into()),
            synchronous: Synchronous::Full,
        }
    }
}

/// The most connections of one process unless told otherwise.
pub const POSTGRES_CONNECTIONS: u32 = 16;
/// How long one statement may take, on the server, unless told otherwise.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a statement waits for a lock unless told otherwise.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a transaction may lie idle: longer than any pause of ours, short enough that a process that hangs holds
/// nobody up.
const IDLE_IN_TRANSACTION_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a call waits for a connection unless told otherwise.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Whose time counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeSource {
    /// The database's: all processes agree, and a jump of one machine's clock moves no lease.
    #[default]
    Database,
    /// The clock the store is given: tests that turn it.
    Given,
}

/// A PostgreSQL database and how to use it.
#[derive(Clone)]
pub struct PostgresOptions {
    connect: Box<PgConnectOptions>,
    /// The most connections of this process, from 2.
    pub connections: u32,
    /// How long one statement may take.
    pub statement_timeout: Duration,
    /// How long a statement waits for a lock.
    pub lock_timeout: Duration,
    /// How long a call waits for a connection.
    pub acquire_timeout: Duration,
    /// Whose time counts.
    pub time: TimeSource,
}

impl FromStr for PostgresOptions {
    type Err = Error;

    /// Reads `postgres://user:password@host:port/database?sslmode=…&sslrootcert=…`. What it leaves out comes from the
    /// usual environment variables (`PGHOST`, `PGPASSWORD`, `PGSSLMODE`, …) and `~/.pgpass`.
    ///
    /// # Errors
    /// [`Error::DatabaseUrl`], which shows nothing of the URL: it may hold a password.
    fn from_str(url: &str) -> Result<Self, Error> {
        let refused = |reason: &str| Error::DatabaseUrl {
            reason: reason.to_owned(),
        };
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(refused("it does not begin with postgres://"));
        }
        // The library's message may quote a part of the URL.
        let connect = PgConnectOptions::from_str(url).map_err(|_| {
            refused("it is not postgres://USER[:PASSWORD]@HOST[:PORT]/DATABASE[?sslmode=MODE]; special characters of a password are written as %XX")
        })?;
        Ok(Self {
            connect: Box::new(connect),
            connections: POSTGRES_CONNECTIONS,
            statement_timeout: STATEMENT_TIMEOUT,
            lock_timeout: LOCK_TIMEOUT,
            acquire_timeout: ACQUIRE_TIMEOUT,
            time: TimeSource::default(),
        })
    }
}

impl PostgresOptions {
    /// What a connection is opened with, session settings included.
    pub(crate) fn connect_options(&self) -> PgConnectOptions {
        let millis = |time: Duration| time.as_millis().to_string();
        let off = || "off".to_owned();
        PgConnectOptions::clone(&self.connect)
            .application_name("evenkeel")
            .statement_cache_capacity(super::store::STATEMENTS)
            .options([
                ("statement_timeout", millis(self.statement_timeout)),
                ("lock_timeout", millis(self.lock_timeout)),
                (
                    "idle_in_transaction_session_timeout",
                    millis(IDLE_IN_TRANSACTION_TIMEOUT),
                ),
                // Every statement is written for an index. Without statistics, or with old ones, the planner would
                // rather read whole tables, and a prepared statement would keep doing so as they grow.
                ("enable_seqscan", off()),
                ("enable_hashjoin", off()),
                ("enable_mergejoin", off()),
                ("jit", off()),
            ])
    }
}

impl fmt::Display for PostgresOptions {
    /// Host, port and database; no user, no password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "postgres://{}:{}/{}",
            self.connect.get_host(),
            self.connect.get_port(),
            self.connect.get_database().unwrap_or_default()
        )
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encrypted = !matches!(
            self.connect.get_ssl_mode(),
            PgSslMode::Disable | PgSslMode::Allow | PgSslMode::Prefer
        );
        f.debug_struct("PostgresOptions")
            .field("database", &self.to_string())
            .field("tls_required", &encrypted)
            .field("connections", &self.connections)
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let url = "postgres://ek:s3cret@db.example:5433/fleet?sslmode=verify-full";
        let options: PostgresOptions = url.parse().unwrap();
        let shown = format!("{options} {options:?}");
        assert!(shown.contains("postgres://db.example:5433/fleet") && shown.contains("tls_required: true"));
        assert!(!shown.contains("s3cret") && !shown.contains("ek:"), "{shown}");
    }

    #[test]
    fn a_url_that_cannot_be_read_is_not_quoted() {
        for url in [
            "mysql://ek:s3cret@db/fleet",
            "postgres://ek:s3cret@db:notaport/fleet",
            "postgres://ek:s3cret@db/fleet?sslmode=s3cret",
        ] {
            let error = url.parse::<PostgresOptions>().unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("s3cret"), "{shown}");
        }
    }
}
