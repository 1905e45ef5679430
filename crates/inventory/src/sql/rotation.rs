//! Encrypting again under the active key, batch by batch, while everything else goes on.
//!
//! A batch is read without a transaction, opened and sealed in memory, and written back where the cell still holds what
//! was read: whoever wrote meanwhile has written under the active key anyway. Nothing is remembered between two batches
//! but where the last one ended, and nothing at all between two passes: a cell tells by its first bytes whether it is
//! done. So a pass may be cut off anywhere, run twice, or by several processes at the same time.

use super::SqlStore;
use super::statement::{Query, Value};
use crate::cipher::{Cipher, Column, KEY_HEADER, encrypted_columns};
use crate::rotation::{KeyUse, NAMED_MAX, RowPart};
use crate::sql::{Row, Statement, batch, database, query, repeating};
use crate::{Error, KeyId, Reencrypted, RotationPlace, RowFailure};

const READING: &str = "looking for values under an older key";
const WRITING: &str = "encrypting values again";
/// Rows of one batch; large values come a few at a time.
const ROWS: i64 = 200;
const ROWS_OF_LARGE: i64 = 8;
/// Rows of one batch when they are only counted.
const ROWS_COUNTED: i64 = 5_000;

/// How one encrypted column is walked through and written.
struct Walk {
    column: Column,
    /// Parts of the primary key, in order: its texts, then maybe a number.
    texts: usize,
    number: bool,
    /// The next rows; a value under the active key is left out. $1 how such values begin, $2 limit, $3… the last key.
    stale: &'static str,
    /// How the next values begin. $1 how long that is, $2 limit, $3… the last key.
    heads: &'static str,
    /// Writes $1 where $2 stands, at key $3…
    swap: Statement,
}

/// The key's columns, with a comma between.
macro_rules! list {
    ($prefix:literal, $first:literal $(, $more:literal)*) => {
        concat!($prefix, $first $(, ", ", $prefix, $more)*)
    };
}

/// `a = s.k0 AND b = s.k1 …`
macro_rules! same_key {
    ($left:literal, $right:literal, $a:literal) => {
        concat!($left, $a, " = ", $right, $a)
    };
    ($left:literal, $right:literal, $a:literal, $b:literal) => {
        concat!(
            same_key!($left, $right, $a),
            " AND ",
            $left,
            $b,
            " = ",
            $right,
            $b
        )
    };
    ($left:literal, $right:literal, $a:literal, $b:literal, $c:literal) => {
        concat!(
            same_key!($left, $right, $a, $b),
            " AND ",
            $left,
            $c,
            " = ",
            $right,
            $c
        )
    };
}

/// Parameters from $3 on, one for each part of the key.
macro_rules! places {
    ($a:literal) => {
        "$3"
    };
    ($a:literal, $b:literal) => {
        "$3, $4"
    };
    ($a:literal, $b:literal, $c:literal) => {
        "$3, $4, $5"
    };
}

/// `a = $3 AND b = $4 …`
macro_rules! at_key {
    ($a:literal) => {
        concat!($a, " = $3")
    };
    ($a:literal, $b:literal) => {
        concat!($a, " = $3 AND ", $b, " = $4")
    };
    ($a:literal, $b:literal, $c:literal) => {
        concat!($a, " = $3 AND ", $b, " = $4 AND ", $c, " = $5")
    };
}

/// The next rows of a table after a key.
macro_rules! after {
    ($what:expr, $table:literal, $($key:literal),+) => {
        concat!(
            "SELECT ", list!("", $($key),+), ", ", $what, " FROM ", $table, " WHERE (", list!("", $($key),+), ") > (",
            places!($($key),+), ") ORDER BY ", list!("", $($key),+), " LIMIT $2"
        )
    };
}

macro_rules! statements {
    ($column:expr, $table:literal, $name:literal, $texts:expr, $number:expr, $($key:literal),+) => {
        Walk {
            column: $column,
            texts: $texts,
            number: $number,
            stale: after!(
                concat!("CASE WHEN substr(", $name, ", 1, 6) = $1 THEN NULL ELSE ", $name, " END"),
                $table,
                $($key),+
            ),
            heads: after!(concat!("substr(", $name, ", 1, CAST($1 AS INTEGER))"), $table, $($key),+),
            swap: Statement::each(
                concat!("UPDATE ", $table, " SET ", $name, " = $1 WHERE ", at_key!($($key),+), " AND ", $name, " = $2"),
                // What somebody else has locked is passed over: nobody waits for this, and this waits for nobody.
                concat!(
                    "UPDATE ", $table, " AS t SET ", $name, " = n.new_value FROM (SELECT ", list!("k.", $($key),+),
                    ", s.new_value FROM unnest($1, $2, ", places!($($key),+), ") AS s (new_value, old_value, ",
                    list!("", $($key),+), ") JOIN ", $table, " AS k ON ", same_key!("k.", "s.", $($key),+), " AND k.", $name,
                    " = s.old_value ORDER BY ", list!("k.", $($key),+), " FOR NO KEY UPDATE OF k SKIP LOCKED) AS n WHERE ",
                    same_key!("t.", "n.", $($key),+)
                ),
            ),
        }
    };
}

const fn count(columns: &[&str]) -> usize {
    columns.len()
}

/// One walk for each column of the list.
macro_rules! walks {
    ($($constant:ident = $table:literal . $name:literal by $($text:literal)+ | $($number:literal)?;)+) => {
        const WALKS: &[Walk] = &[
            $(statements!(
                Column::$constant, $table, $name,
                count(&[$($text),+]), count(&[$($number)?]) == 1,
                $($text),+ $(, $number)?
            )),+
        ];
    };
}
encrypted_columns!(walks);

/// One row that was read: its key, its value where it is of interest.
struct Found {
    key: Vec<RowPart>,
    value: Option<Vec<u8>>,
}

impl Walk {
    /// The key before the first row.
    fn beginning(&self) -> Vec<RowPart> {
        let mut key = vec![RowPart::Text(String::new()); self.texts];
        key.extend(self.number.then_some(RowPart::Number(i64::MIN)));
        key
    }

    /// How many rows one batch takes.
    fn rows(&self) -> i64 {
        match self.column {
            Column::RENDER | Column::SPEC | Column::TIMELINE => ROWS_OF_LARGE,
            _ => ROWS,
        }
    }

    fn read(&self, row: &Row) -> Result<Found, sqlx::Error> {
        let mut key = Vec::with_capacity(self.texts + 1);
        for place in 0..self.texts {
            key.push(RowPart::Text(row.at(place)?));
        }
        if self.number {
            key.push(RowPart::Number(row.at(self.texts)?));
        }
        let value = row.at(key.len())?;
        Ok(Found { key, value })
    }

    /// The rows after a key.
    async fn after(
        &self,
        store: &SqlStore,
        statement: Query<'_>,
        limit: i64,
        last: &[RowPart],
    ) -> Result<Vec<Found>, Error> {
        let bound = last
            .iter()
            .fold(statement.bind(limit), |query, part| query.bind(Value::from(part)));
        let rows = bound.fetch_all(store.read()).await.map_err(database(READING))?;
        rows.iter()
            .map(|row| self.read(row).map_err(database(READING)))
            .collect()
    }
}

impl<'q> From<&'q RowPart> for Value<'q> {
    fn from(part: &'q RowPart) -> Self {
        match part {
            RowPart::Text(text) => text.into(),
            RowPart::Number(number) => (*number).into(),
        }
    }
}

/// The row as its value is bound to it.
fn row_key(key: &[RowPart]) -> String {
    let parts: Vec<_> = key.iter().map(ToString::to_string).collect();
    parts.join("/")
}

impl SqlStore {
    /// Encrypts the next batch again.
    pub(super) async fn reencrypt_batch(&self, from: Option<RotationPlace>) -> Result<Reencrypted, Error> {
        let place = from.unwrap_or_default();
        let mut done = Reencrypted::default();
        let Some(walk) = WALKS.get(place.column) else {
            return Ok(done);
        };
        let last = place.after.unwrap_or_else(|| walk.beginning());
        let active = self.cipher.active();
        let statement = query(walk.stale).bind(Cipher::header(active).to_vec());
        let rows = walk.after(self, statement, walk.rows(), &last).await?;
        let ended = rows.len() < usize::try_from(walk.rows()).unwrap_or(usize::MAX);
        done.next = match rows.last() {
            Some(row) if !ended => Some(RotationPlace {
                column: place.column,
                after: Some(row.key.clone()),
            }),
            _ if place.column + 1 < WALKS.len() => Some(RotationPlace {
                column: place.column + 1,
                after: None,
            }),
            _ => None,
        };
        let mut swaps = Vec::new();
        for Found { key, value } in rows {
            let Some(old) = value else { continue };
            let row = row_key(&key);
            // One value that cannot be opened keeps no other from being encrypted again.
            match self.cipher.open(walk.column, &row, &old) {
                Ok(plain) => swaps.push((self.cipher.seal(walk.column, &row, plain.expose())?, old, key)),
                Err(error) => {
                    done.unreadable += 1;
                    if done.named.len() < NAMED_MAX {
                        done.named.push(RowFailure {
                            row: format!("{} {row}", walk.column),
                            error,
                        });
                    }
                }
            }
        }
        let wanted = swaps.len() as u64;
        if wanted > 0 {
            done.changed = repeating(|| self.swap(walk, &swaps)).await?;
            done.passed_over = wanted.saturating_sub(done.changed);
        }
        Ok(done)
    }

    /// Writes values where the old ones still stand. Answers how many.
    async fn swap(&self, walk: &Walk, swaps: &[(Vec<u8>, Vec<u8>, Vec<RowPart>)]) -> Result<u64, Error> {
        let mut rows = batch(walk.swap);
        for (new, old, key) in swaps {
            let key = key.iter().map(|part| match part {
                RowPart::Text(text) => Value::from(text.clone()),
                RowPart::Number(number) => Value::from(*number),
            });
            rows.push(
                [Value::from(new.clone()), Value::from(old.clone())]
                    .into_iter()
                    .chain(key),
            );
        }
        let mut transaction = self.write(WRITING).await?;
        let written = rows.execute(&mut transaction).await.map_err(database(WRITING))?;
        transaction.commit(WRITING).await?;
        Ok(written)
    }

    /// Counts the values under each key, in every encrypted column; ends early once `until` was met.
    pub(super) async fn key_use(&self, until: Option<KeyId>) -> Result<KeyUse, Error> {
        let mut used = KeyUse::default();
        for walk in WALKS {
            let mut last = walk.beginning();
            loop {
                let statement = query(walk.heads).bind(i64::try_from(KEY_HEADER).unwrap_or(6));
                let rows = walk.after(self, statement, ROWS_COUNTED, &last).await?;
                let ended = rows.len() < usize::try_from(ROWS_COUNTED).unwrap_or(usize::MAX);
                for Found { key, value } in &rows {
                    let Some(head) = value else { continue };
                    match Cipher::key_of(head) {
                        Some(id) => {
                            *used.rows.entry(id).or_default() += 1;
                            if Some(id) == until {
                                used.example = Some(format!("{} {}", walk.column, row_key(key)));
                                return Ok(used);
                            }
                        }
                        None => used.no_value += 1,
                    }
                }
                match rows.into_iter().next_back() {
                    Some(row) if !ended => last = row.key,
                    _ => break,
                }
            }
        }
        Ok(used)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The statements, for whoever looks at their plans.
    pub(in crate::sql) fn statements() -> Vec<(&'static str, &'static str)> {
        let of = |walk: &Walk| {
            [
                (walk.column.table, walk.stale),
                (walk.column.table, walk.heads),
                (walk.column.table, walk.swap.sqlite),
            ]
        };
        WALKS.iter().flat_map(of).collect()
    }

    #[test]
    fn every_column_is_walked_by_its_key() {
        let walked: Vec<_> = WALKS.iter().map(|walk| walk.column).collect();
        assert_eq!(walked, Column::ALL);
        let render = WALKS.iter().find(|walk| walk.column == Column::RENDER).unwrap();
        assert_eq!((render.texts, render.number), (2, true));
        assert_eq!(
            render.stale,
            "SELECT cluster_id, component, revision, CASE WHEN substr(content, 1, 6) = $1 THEN NULL ELSE content END \
             FROM renders WHERE (cluster_id, component, revision) > ($3, $4, $5) \
             ORDER BY cluster_id, component, revision LIMIT $2"
        );
        let key = [
            RowPart::Text("c".to_owned()),
            RowPart::Text("web".to_owned()),
            RowPart::Number(2),
        ];
        assert_eq!(row_key(&key), "c/web/2");
    }
}
