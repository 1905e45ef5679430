//! One row of either database, read cell by cell.

use std::fmt::Display;
use std::str::FromStr;

use evenkeel_core::DueReason;
use jiff::Timestamp;
use serde::Deserialize;
use sqlx::postgres::{PgRow, Postgres};
use sqlx::sqlite::{Sqlite, SqliteRow};
use sqlx::{Decode, Row as _, Type};

use super::rows::{moment, named, reason_of_lane};
use crate::Error;
use crate::cipher::{Cipher, Column};

/// A row.
pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// What a cell can be read as.
pub(crate) trait Cell<'r>:
    Decode<'r, Sqlite> + Type<Sqlite> + Decode<'r, Postgres> + Type<Postgres>
{
}

impl<'r, T: Decode<'r, Sqlite> + Type<Sqlite> + Decode<'r, Postgres> + Type<Postgres>> Cell<'r> for T {}

impl Row {
    /// The cell of a named column.
    pub(crate) fn named<'r, T: Cell<'r>>(&'r self, column: &str) -> Result<T, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }
    }

    /// The cell at a place, from 0.
    pub(crate) fn at<'r, T: Cell<'r>>(&'r self, place: usize) -> Result<T, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(place),
            Self::Postgres(row) => row.try_get(place),
        }
    }
}

/// A row's cells; every failure names table, column and row.
pub(crate) struct Cells<'a> {
    row: &'a Row,
    table: &'static str,
    key: String,
}

impl<'a> Cells<'a> {
    /// The row of `table` whose key is `key`.
    pub(crate) fn new(row: &'a Row, table: &'static str, key: impl Into<String>) -> Self {
        Self {
            row,
            table,
            key: key.into(),
        }
    }

    pub(crate) fn unreadable(&self, column: &'static str, reason: impl Display) -> Error {
        Error::Unreadable {
            table: self.table,
            column,
            row: self.key.clone(),
            reason: reason.to_string(),
        }
    }

    /// A cell as the library reads it.
    pub(crate) fn get<T: Cell<'a>>(&self, column: &'static str) -> Result<T, Error> {
        // The library's message may quote the content.
        self.row
            .named(column)
            .map_err(|_| self.unreadable(column, "it is missing or of another type"))
    }

    /// A name, id or state.
    pub(crate) fn parse<T: FromStr<Err: Display>>(&self, column: &'static str) -> Result<T, Error> {
        let text: &str = self.get(column)?;
        text.parse().map_err(|error| self.unreadable(column, error))
    }

    /// An enum, by its name on the wire.
    pub(crate) fn named<T: for<'de> Deserialize<'de>>(&self, column: &'static str) -> Result<T, Error> {
        let text: &str = self.get(column)?;
        named(text).map_err(|error| self.unreadable(column, error))
    }

    /// The same, where it may be missing.
    pub(crate) fn named_option<T: for<'de> Deserialize<'de>>(
        &self,
        column: &'static str,
    ) -> Result<Option<T>, Error> {
        let text: Option<&str> = self.get(column)?;
        text.map(|text| named(text).map_err(|error| self.unreadable(column, error)))
            .transpose()
    }

    /// A moment.
    pub(crate) fn time(&self, column: &'static str) -> Result<Timestamp, Error> {
        self.get(column).map(moment)
    }

    /// A moment that may be missing.
    pub(crate) fn time_option(&self, column: &'static str) -> Result<Option<Timestamp>, Error> {
        self.get::<Option<i64>>(column).map(|millis| millis.map(moment))
    }

    /// A number that cannot be negative.
    pub(crate) fn number(&self, column: &'static str) -> Result<u64, Error> {
        let number: i64 = self.get(column)?;
        u64::try_from(number).map_err(|_| self.unreadable(column, "it is negative"))
    }

    /// A small number that cannot be negative.
    pub(crate) fn count(&self, column: &'static str) -> Result<u32, Error> {
        let number: i64 = self.get(column)?;
        u32::try_from(number).map_err(|_| self.unreadable(column, "it is out of range"))
    }

    /// A lane.
    pub(crate) fn due_reason(&self, column: &'static str) -> Result<DueReason, Error> {
        reason_of_lane(self.get(column)?).ok_or_else(|| self.unreadable(column, "there is no such lane"))
    }

    /// An encrypted text that may be missing.
    pub(crate) fn secret_text(
        &self,
        cipher: &Cipher,
        column: Column,
        row: &str,
    ) -> Result<Option<String>, Error> {
        cipher.open_text(column, row, self.get(column.name)?)
    }
}
