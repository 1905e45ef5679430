//! What a database's failure means: whether the call may succeed later, and whether it may be repeated at once.

use std::time::Duration;

use sqlx::error::ErrorKind;
use sqlx::postgres::PgDatabaseError;

use crate::Error;

/// SQLite's primary result codes that pass by themselves: busy, locked, input/output error, disk full.
const SQLITE_TRANSIENT: [i64; 4] = [5, 6, 10, 13];
/// PostgreSQL's states after which a transaction is known to have done nothing and may succeed at once:
/// serialization failure, deadlock, lock timeout.
const POSTGRES_UNDONE: [&str; 3] = ["40001", "40P01", "55P03"];
/// Classes and states of PostgreSQL that pass by themselves: connection lost, out of connections, disk or memory, server
/// going or coming, statement cancelled, idle in transaction, read-only after a fail-over, input/output error.
const POSTGRES_TRANSIENT: [&str; 8] = ["0800", "53", "57P", "57014", "25P03", "25P04", "25006", "58"];
/// Those of them that say: this connection is of no use, and its transaction undone; another one may do.
const POSTGRES_LOST: [&str; 5] = ["0800", "57P", "53300", "25P03", "25P04"];

/// How often one call is tried.
const TRIES: u32 = 5;
/// The first pause between tries; each is four times the one before, up to [`PAUSE_MAX`], and varied by a half.
const PAUSE: Duration = Duration::from_millis(15);
/// The longest pause between tries.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// What to do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It will fail again.
    Permanent,
    /// It may pass, in a while.
    Transient,
    /// Nothing was done, and the same call may succeed at once.
    Repeat,
}

fn verdict(error: &sqlx::Error) -> Verdict {
    match error {
        sqlx::Error::PoolTimedOut => Verdict::Transient,
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => Verdict::Repeat,
        sqlx::Error::Database(error) => match error.try_downcast_ref::<PgDatabaseError>() {
            Some(error) => {
                let among = |codes: &[&str]| codes.iter().any(|code| error.code().starts_with(code));
                if among(&POSTGRES_UNDONE) || among(&POSTGRES_LOST) {
                    Verdict::Repeat
                } else if among(&POSTGRES_TRANSIENT) {
                    Verdict::Transient
                } else {
                    Verdict::Permanent
                }
            }
            None => match error.code().and_then(|code| code.parse::<i64>().ok()) {
                Some(code) if SQLITE_TRANSIENT.contains(&(code & 0xff)) => Verdict::Transient,
                _ => Verdict::Permanent,
            },
        },
        _ => Verdict::Permanent,
    }
}

/// Turns the library's error into ours, saying what was being done.
pub(crate) fn database(doing: &'static str) -> impl Fn(sqlx::Error) -> Error {
    move |source| Error::Database {
        doing,
        transient: verdict(&source) != Verdict::Permanent,
        source: Box::new(source),
    }
}

/// The connection was lost while a transaction was being committed.
#[derive(Debug, thiserror::Error)]
#[error("it is not known whether it was done: {0}")]
struct OutcomeUnknown(#[source] sqlx::Error);

/// The same for a commit, which must not be repeated when nobody knows whether it counts.
pub(crate) fn commit_failed(doing: &'static str) -> impl Fn(sqlx::Error) -> Error {
    move |source| {
        let undone = matches!(&source, sqlx::Error::Database(error)
            if error.try_downcast_ref::<PgDatabaseError>().is_some_and(|error| POSTGRES_UNDONE.contains(&error.code())));
        if undone || verdict(&source) != Verdict::Repeat {
            return database(doing)(source);
        }
        Error::Database {
            doing,
            transient: true,
            source: Box::new(OutcomeUnknown(source)),
        }
    }
}

/// Whether a statement broke a unique constraint.
pub(crate) fn is_unique_violation(error: &Error) -> bool {
    kind(error).is_some_and(|kind| matches!(kind, ErrorKind::UniqueViolation))
}

/// Whether a statement names a row that is not there.
pub(crate) fn is_foreign_key_violation(error: &Error) -> bool {
    kind(error).is_some_and(|kind| matches!(kind, ErrorKind::ForeignKeyViolation))
}

fn library(error: &Error) -> Option<&sqlx::Error> {
    match error {
        Error::Database { source, .. } => source.downcast_ref(),
        _ => None,
    }
}

fn kind(error: &Error) -> Option<ErrorKind> {
    match library(error)? {
        sqlx::Error::Database(error) => Some(error.kind()),
        _ => None,
    }
}

/// Whether the call that failed so did nothing and may be repeated at once.
fn may_repeat(error: &Error) -> bool {
    library(error).is_some_and(|error| verdict(error) == Verdict::Repeat)
}

/// Calls until it succeeds, fails for good, or was tried [`TRIES`] times. `call` is one transaction.
///
/// # Errors
/// The last one.
pub(crate) async fn repeating<T, F: Future<Output = Result<T, Error>>>(
    call: impl Fn() -> F,
) -> Result<T, Error> {
    repeat(call, may_repeat).await
}

/// The same for one statement that reads.
pub(crate) async fn reading_again<T, F: Future<Output = Result<T, sqlx::Error>>>(
    call: impl Fn() -> F,
) -> Result<T, sqlx::Error> {
    repeat(call, |error| verdict(error) == Verdict::Repeat).await
}

async fn repeat<T, E: std::fmt::Display, F: Future<Output = Result<T, E>>>(
    call: impl Fn() -> F,
    may: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let mut pause = PAUSE;
    for _ in 1..TRIES {
        match call().await {
            Err(error) if may(&error) => {
                tracing::debug!(%error, "a database call is repeated");
                tokio::time::sleep(varied(pause)).await;
                pause = (pause * 4).min(PAUSE_MAX);
            }
            answer => return answer,
        }
    }
    call().await
}

/// Half to one and a half of a pause, so that those who met once do not meet again.
fn varied(pause: Duration) -> Duration {
    use std::hash::{BuildHasher as _, RandomState};
    let percent = u32::try_from(RandomState::new().hash_one(()) % 100).unwrap_or(50);
    pause * (50 + percent) / 100
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn io() -> sqlx::Error {
        sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into())
    }

    #[tokio::test]
    async fn what_did_nothing_is_repeated_a_few_times() {
        let calls = Cell::new(0);
        let answer: Result<(), _> = repeating(|| {
            calls.set(calls.get() + 1);
            async { Err(database("testing")(io())) }
        })
        .await;
        assert!(answer.unwrap_err().is_transient());
        assert_eq!(calls.get(), TRIES);
        let calls = Cell::new(0);
        let answer = repeating(|| {
            calls.set(calls.get() + 1);
            let second = calls.get() == 2;
            async move {
                if second {
                    Ok(7)
                } else {
                    Err(database("testing")(io()))
                }
            }
        })
        .await;
        assert_eq!(answer.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_commit_of_unknown_outcome_is_not_repeated() {
        let calls = Cell::new(0);
        let answer: Result<(), _> = repeating(|| {
            calls.set(calls.get() + 1);
            async { Err(commit_failed("testing")(io())) }
        })
        .await;
        let error = answer.unwrap_err();
        assert!(error.is_transient());
        assert!(error.to_string().contains("not known"), "{error}");
        assert_eq!(calls.get(), 1);
    }
}
