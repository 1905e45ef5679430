//! Between rows and domain types. What does not fit is the error of its row.

use std::fmt::Display;
use std::io::{Read as _, Write as _};
use std::str::FromStr;

use evenkeel_core::{DueReason, Sensitive};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use jiff::Timestamp;
use serde::de::IntoDeserializer as _;
use serde::de::value::Error as ValueError;
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{Sqlite, SqliteRow};
use sqlx::{Decode, Row as _, Type};

use crate::Error;
use crate::cipher::{Cipher, Column};

/// SQLite's primary result codes that pass by themselves: busy, locked, input/output error, disk full.
const TRANSIENT: [i64; 4] = [5, 6, 10, 13];
/// The extended result codes of broken unique constraints: index, primary key.
const UNIQUE: [&str; 2] = ["2067", "1555"];

/// Turns the library's error into ours, saying what was being done.
pub(super) fn database(doing: &'static str) -> impl Fn(sqlx::Error) -> Error {
    move |source| {
        let transient = match &source {
            sqlx::Error::PoolTimedOut => true,
            sqlx::Error::Database(error) => error
                .code()
                .and_then(|code| code.parse::<i64>().ok())
                .is_some_and(|code| TRANSIENT.contains(&(code & 0xff))),
            _ => false,
        };
        Error::Database {
            doing,
            transient,
            source: Box::new(source),
        }
    }
}

/// Whether a statement broke a unique constraint.
pub(super) fn is_unique_violation(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.code().is_some_and(|code| UNIQUE.contains(&&*code)))
}

/// Whether a statement names a row that is not there.
pub(super) fn is_foreign_key_violation(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.code().as_deref() == Some("787"))
}

/// A moment in the database's unit.
pub(super) fn millis(at: Timestamp) -> i64 {
    at.as_millisecond()
}

/// A moment from the database's unit.
pub(super) fn moment(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap_or(if millis < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    })
}

/// A number of ours in the database's type.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of the database in ours, where it cannot be negative.
pub(super) fn uint(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The lane of a reason: its place in order of urgency.
pub(super) fn lane(reason: DueReason) -> i64 {
    match reason {
        DueReason::Deletion => 0,
        DueReason::Change => 1,
        DueReason::Drift => 2,
        DueReason::Retry => 3,
        DueReason::Periodic => 4,
    }
}

fn reason_of_lane(lane: i64) -> Option<DueReason> {
    use DueReason::{Change, Deletion, Drift, Periodic, Retry};
    [Deletion, Change, Drift, Retry, Periodic]
        .into_iter()
        .find(|reason| self::lane(*reason) == lane)
}

/// An enum of the domain from its name on the wire.
pub(super) fn named<'de, T: Deserialize<'de>>(name: &'de str) -> Result<T, ValueError> {
    T::deserialize(name.into_deserializer())
}

/// One row, read cell by cell; every failure names table, column and row.
pub(super) struct Cells<'a> {
    row: &'a SqliteRow,
    table: &'static str,
    key: String,
}

impl<'a> Cells<'a> {
    /// The row of `table` whose key is `key`.
    pub(super) fn new(row: &'a SqliteRow, table: &'static str, key: impl Into<String>) -> Self {
        Self {
            row,
            table,
            key: key.into(),
        }
    }

    pub(super) fn unreadable(&self, column: &'static str, reason: impl Display) -> Error {
        Error::Unreadable {
            table: self.table,
            column,
            row: self.key.clone(),
            reason: reason.to_string(),
        }
    }

    /// A cell as the library reads it.
    pub(super) fn get<T: Decode<'a, Sqlite> + Type<Sqlite>>(&self, column: &'static str) -> Result<T, Error> {
        // The library's message may quote the content.
        self.row
            .try_get(column)
            .map_err(|_| self.unreadable(column, "it is missing or of another type"))
    }

    /// A name, id or state.
    pub(super) fn parse<T: FromStr<Err: Display>>(&self, column: &'static str) -> Result<T, Error> {
        let text: &str = self.get(column)?;
        text.parse().map_err(|error| self.unreadable(column, error))
    }

    /// An enum, by its name on the wire.
    pub(super) fn named<T: for<'de> Deserialize<'de>>(&self, column: &'static str) -> Result<T, Error> {
        let text: &str = self.get(column)?;
        named(text).map_err(|error| self.unreadable(column, error))
    }

    /// The same, where it may be missing.
    pub(super) fn named_option<T: for<'de> Deserialize<'de>>(
        &self,
        column: &'static str,
    ) -> Result<Option<T>, Error> {
        let text: Option<&str> = self.get(column)?;
        text.map(|text| named(text).map_err(|error| self.unreadable(column, error)))
            .transpose()
    }

    /// A moment.
    pub(super) fn time(&self, column: &'static str) -> Result<Timestamp, Error> {
        self.get(column).map(moment)
    }

    /// A moment that may be missing.
    pub(super) fn time_option(&self, column: &'static str) -> Result<Option<Timestamp>, Error> {
        self.get::<Option<i64>>(column).map(|millis| millis.map(moment))
    }

    /// A number that cannot be negative.
    pub(super) fn number(&self, column: &'static str) -> Result<u64, Error> {
        let number: i64 = self.get(column)?;
        u64::try_from(number).map_err(|_| self.unreadable(column, "it is negative"))
    }

    /// A small number that cannot be negative.
    pub(super) fn count(&self, column: &'static str) -> Result<u32, Error> {
        let number: i64 = self.get(column)?;
        u32::try_from(number).map_err(|_| self.unreadable(column, "it is out of range"))
    }

    /// A lane.
    pub(super) fn due_reason(&self, column: &'static str) -> Result<DueReason, Error> {
        reason_of_lane(self.get(column)?).ok_or_else(|| self.unreadable(column, "there is no such lane"))
    }

    /// An encrypted text that may be missing.
    pub(super) fn secret_text(
        &self,
        cipher: &Cipher,
        column: Column,
        row: &str,
    ) -> Result<Option<String>, Error> {
        cipher.open_text(column, row, self.get(column.name)?)
    }
}

/// Deflated JSON.
pub(super) fn deflate<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    let failed = |source: std::io::Error| Error::Database {
        doing: "compressing a value",
        transient: false,
        source: Box::new(source),
    };
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    serde_json::to_writer(&mut encoder, value).map_err(|error| failed(error.into()))?;
    encoder.finish().map_err(failed)
}

/// What [`deflate`] made, of at most `max` bytes of JSON.
pub(super) fn inflate<T: for<'de> Deserialize<'de>>(bytes: &[u8], max: usize) -> Result<T, &'static str> {
    let mut json = Vec::new();
    DeflateDecoder::new(bytes)
        .take(max as u64 + 1)
        .read_to_end(&mut json)
        .map_err(|_| "it is not compressed data")?;
    if json.len() > max {
        return Err("it is larger than its bound");
    }
    serde_json::from_slice(&json).map_err(|_| "it is not the expected JSON")
}

/// Deflated bytes.
pub(super) fn deflate_bytes(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// What [`deflate_bytes`] made, of at most `max` bytes.
pub(super) fn inflate_bytes(bytes: &[u8], max: usize) -> Result<Sensitive<Vec<u8>>, &'static str> {
    let mut plain = Vec::new();
    let read = DeflateDecoder::new(bytes)
        .take(max as u64 + 1)
        .read_to_end(&mut plain);
    let plain = Sensitive::new(plain);
    match read {
        Err(_) => Err("it is not compressed data"),
        Ok(length) if length > max => Err("it is larger than its bound"),
        Ok(_) => Ok(plain),
    }
}

/// The JSON of a list of texts, for `json_each`.
pub(super) fn list<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<_> = texts
        .into_iter()
        .map(|text| serde_json::Value::from(text.as_ref()))
        .collect();
    serde_json::Value::from(texts).to_string()
}
