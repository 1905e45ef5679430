//! Statements as static text, their parameters, and what comes back: one face over both databases.
//!
//! Nothing here takes a text that was made at run time, so no input can become part of a statement. Parameters are
//! `$1`, `$2`, …, which both databases know. A statement that both understand stands once; where they differ, both
//! texts stand side by side.

use std::borrow::Cow;

use sqlx::Executor as _;
use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::Query as SqlxQuery;
use sqlx::sqlite::{Sqlite, SqliteArguments};

use super::connection::{Connection, Executor, Pool};
use super::failures::reading_again;
#[cfg(feature = "recorded-statements")]
use super::recorded;
use super::row::{Cell, Row};

/// One statement, as each database wants it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Statement {
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

impl Statement {
    /// A text that both understand.
    pub(crate) const fn same(text: &'static str) -> Self {
        Self {
            sqlite: text,
            postgres: text,
        }
    }

    /// One text for each.
    pub(crate) const fn each(sqlite: &'static str, postgres: &'static str) -> Self {
        Self { sqlite, postgres }
    }
}

impl From<&'static str> for Statement {
    fn from(text: &'static str) -> Self {
        Self::same(text)
    }
}

/// One parameter.
#[derive(Clone, Debug)]
pub(crate) enum Value<'q> {
    Int(Option<i64>),
    Bool(bool),
    Text(Option<Cow<'q, str>>),
    Bytes(Option<Cow<'q, [u8]>>),
    /// Texts: for SQLite as JSON, taken apart by `json_each`; for PostgreSQL as `text[]`.
    Texts(Vec<String>),
}

macro_rules! values {
    ($($from:ty => $variant:ident($value:ident) $make:expr;)+) => {
        $(impl<'q> From<$from> for Value<'q> {
            fn from($value: $from) -> Self {
                Self::$variant($make)
            }
        })+
    };
}

values! {
    i64 => Int(value) Some(value);
    &i64 => Int(value) Some(*value);
    Option<i64> => Int(value) value;
    bool => Bool(value) value;
    &'q str => Text(value) Some(Cow::Borrowed(value));
    &'q String => Text(value) Some(Cow::Borrowed(value));
    &&'q str => Text(value) Some(Cow::Borrowed(*value));
    String => Text(value) Some(Cow::Owned(value));
    Option<&'q str> => Text(value) value.map(Cow::Borrowed);
    Option<String> => Text(value) value.map(Cow::Owned);
    Vec<u8> => Bytes(value) Some(Cow::Owned(value));
    &'q [u8] => Bytes(value) Some(Cow::Borrowed(value));
    Option<Vec<u8>> => Bytes(value) value.map(Cow::Owned);
    Vec<String> => Texts(value) value;
    &Vec<String> => Texts(value) value.clone();
}

/// A statement with its parameters.
#[derive(Clone)]
#[must_use = "a query does nothing until it is run"]
pub(crate) struct Query<'q> {
    statement: Statement,
    values: Vec<Value<'q>>,
}

/// Begins a query.
pub(crate) fn query<'q>(statement: impl Into<Statement>) -> Query<'q> {
    Query {
        statement: statement.into(),
        values: Vec::new(),
    }
}

/// Begins a query that answers one column.
pub(crate) fn query_scalar<'q, T: for<'r> Cell<'r>>(statement: impl Into<Statement>) -> Typed<'q, T> {
    Typed {
        query: query(statement),
        read: |row| row.at(0),
    }
}

/// Begins a query that answers tuples.
pub(crate) fn query_as<'q, T: Tuple>(statement: impl Into<Statement>) -> Typed<'q, T> {
    Typed {
        query: query(statement),
        read: T::read,
    }
}

/// Runs a built query on whatever it is given, with the same method on both databases.
macro_rules! run {
    ($query:ident, $on:ident, $method:ident, $sqlite:expr, $postgres:expr) => {
        match $on {
            Executor::Pool(Pool::Sqlite { readers, .. }) => {
                readers.$method($query.sqlite()).await.map($sqlite)
            }
            // What is run without a transaction only reads.
            Executor::Pool(Pool::Postgres(pool)) => reading_again(|| pool.$method($query.clone().postgres()))
                .await
                .map($postgres),
            Executor::Connection(Connection::Sqlite(open)) => {
                (&mut **open).$method($query.sqlite()).await.map($sqlite)
            }
            Executor::Connection(Connection::Postgres(open)) => {
                (&mut **open).$method($query.postgres()).await.map($postgres)
            }
        }
    };
}

impl<'q> Query<'q> {
    /// The next parameter.
    pub(crate) fn bind(mut self, value: impl Into<Value<'q>>) -> Self {
        self.values.push(value.into());
        self
    }

    fn sqlite(self) -> SqlxQuery<'q, Sqlite, SqliteArguments> {
        #[cfg(feature = "recorded-statements")]
        recorded::note(recorded::Database::Sqlite, self.statement.sqlite, &[]);
        self.values
            .into_iter()
            .fold(sqlx::query(self.statement.sqlite), |query, value| match value {
                Value::Int(value) => query.bind(value),
                Value::Bool(value) => query.bind(value),
                Value::Text(value) => query.bind(value.map(Cow::into_owned)),
                Value::Bytes(value) => query.bind(value.map(Cow::into_owned)),
                Value::Texts(value) => query.bind(serde_json::Value::from(value).to_string()),
            })
    }

    fn postgres(self) -> SqlxQuery<'q, Postgres, PgArguments> {
        #[cfg(feature = "recorded-statements")]
        {
            let types: Vec<String> = self
                .values
                .iter()
                .map(|value| value.type_name().to_owned())
                .collect();
            recorded::note(recorded::Database::Postgres, self.statement.postgres, &types);
        }
        self.values
            .into_iter()
            .fold(sqlx::query(self.statement.postgres), |query, value| match value {
                Value::Int(value) => query.bind(value),
                Value::Bool(value) => query.bind(value),
                Value::Text(value) => query.bind(value.map(Cow::into_owned)),
                Value::Bytes(value) => query.bind(value.map(Cow::into_owned)),
                Value::Texts(value) => query.bind(value),
            })
    }

    /// Runs it; answers how many rows it touched.
    pub(crate) async fn execute(self, on: impl Into<Executor<'_>>) -> Result<u64, sqlx::Error> {
        let on = on.into();
        run!(self, on, execute, |done| done.rows_affected(), |done| done
            .rows_affected())
    }

    /// Runs it; answers all rows.
    pub(crate) async fn fetch_all(self, on: impl Into<Executor<'_>>) -> Result<Vec<Row>, sqlx::Error> {
        let on = on.into();
        run!(
            self,
            on,
            fetch_all,
            |rows| rows.into_iter().map(Row::Sqlite).collect(),
            |rows| rows.into_iter().map(Row::Postgres).collect()
        )
    }

    /// Runs it; answers the first row, if there is one.
    pub(crate) async fn fetch_optional(
        self,
        on: impl Into<Executor<'_>>,
    ) -> Result<Option<Row>, sqlx::Error> {
        let on = on.into();
        run!(self, on, fetch_optional, |row| row.map(Row::Sqlite), |row| row
            .map(Row::Postgres))
    }
}

/// A query whose rows are read as values.
#[must_use = "a query does nothing until it is run"]
pub(crate) struct Typed<'q, T> {
    query: Query<'q>,
    read: fn(&Row) -> Result<T, sqlx::Error>,
}

impl<'q, T> Typed<'q, T> {
    /// The next parameter.
    pub(crate) fn bind(self, value: impl Into<Value<'q>>) -> Self {
        Self {
            query: self.query.bind(value),
            read: self.read,
        }
    }

    /// Runs it; answers all rows.
    pub(crate) async fn fetch_all(self, on: impl Into<Executor<'_>>) -> Result<Vec<T>, sqlx::Error> {
        let rows = self.query.fetch_all(on).await?;
        rows.iter().map(self.read).collect()
    }

    /// Runs it; answers the first row, if there is one.
    pub(crate) async fn fetch_optional(self, on: impl Into<Executor<'_>>) -> Result<Option<T>, sqlx::Error> {
        let row = self.query.fetch_optional(on).await?;
        row.as_ref().map(self.read).transpose()
    }

    /// Runs it; answers the first row.
    pub(crate) async fn fetch_one(self, on: impl Into<Executor<'_>>) -> Result<T, sqlx::Error> {
        self.fetch_optional(on).await?.ok_or(sqlx::Error::RowNotFound)
    }
}

/// A row read as a tuple.
pub(crate) trait Tuple: Sized {
    /// Reads a row.
    fn read(row: &Row) -> Result<Self, sqlx::Error>;
}

macro_rules! tuples {
    ($($($column:ident $place:literal),+;)+) => {
        $(impl<$($column: for<'r> Cell<'r>),+> Tuple for ($($column,)+) {
            fn read(row: &Row) -> Result<Self, sqlx::Error> {
                Ok(($(row.at::<$column>($place)?,)+))
            }
        })+
    };
}

tuples! {
    A 0;
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
}

/// One statement for many rows of parameters. PostgreSQL runs it once, with one array a column.
#[must_use = "a batch does nothing until it is run"]
pub(crate) struct Batch {
    statement: Statement,
    on_sqlite: OnSqlite,
    rows: Vec<Vec<Value<'static>>>,
}

/// How SQLite runs a batch.
#[derive(Clone, Copy, Debug)]
enum OnSqlite {
    /// Once a row, with `$1`, `$2`, … for its values.
    EachRow,
    /// Once, with `$1` for all rows as a JSON array of arrays; bytes are hexadecimal digits in it.
    AtOnce,
}

/// Begins a batch that SQLite runs once a row: for rows of many bytes.
pub(crate) fn batch(statement: impl Into<Statement>) -> Batch {
    Batch {
        statement: statement.into(),
        on_sqlite: OnSqlite::EachRow,
        rows: Vec::new(),
    }
}

/// Begins a batch that SQLite, too, runs once, over `json_each($1)`: each statement is a round trip to its thread.
pub(crate) fn batch_at_once(statement: impl Into<Statement>) -> Batch {
    Batch {
        on_sqlite: OnSqlite::AtOnce,
        ..batch(statement)
    }
}

impl Value<'_> {
    /// What PostgreSQL calls its type.
    #[cfg(feature = "recorded-statements")]
    fn type_name(&self) -> &'static str {
        match self {
            Self::Int(_) => "bigint",
            Self::Bool(_) => "boolean",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytea",
            Self::Texts(_) => "text[]",
        }
    }

    fn into_json(self) -> serde_json::Value {
        match self {
            Self::Int(value) => value.into(),
            Self::Bool(value) => value.into(),
            Self::Text(value) => value.map(Cow::into_owned).into(),
            Self::Bytes(value) => value.map(hex::encode).into(),
            Self::Texts(value) => value.into(),
        }
    }
}

/// One parameter of every row of a batch.
enum Column {
    Int(Vec<Option<i64>>),
    Bool(Vec<bool>),
    Text(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl Column {
    fn of(value: &Value<'_>) -> Self {
        match value {
            Value::Int(_) => Self::Int(Vec::new()),
            Value::Bool(_) => Self::Bool(Vec::new()),
            Value::Text(_) | Value::Texts(_) => Self::Text(Vec::new()),
            Value::Bytes(_) => Self::Bytes(Vec::new()),
        }
    }

    /// Appends a value of this column's type.
    fn push(&mut self, value: Value<'_>) {
        match (self, value) {
            (Self::Int(column), Value::Int(value)) => column.push(value),
            (Self::Bool(column), Value::Bool(value)) => column.push(value),
            (Self::Text(column), Value::Text(value)) => column.push(value.map(Cow::into_owned)),
            (Self::Bytes(column), Value::Bytes(value)) => column.push(value.map(Cow::into_owned)),
            // Rows of one batch are made by one piece of code, so a column has one type. Were it not so, the arrays
            // would differ in length and the database would refuse the NULLs that fill them up.
            _ => {}
        }
    }
}

impl Batch {
    /// One more row.
    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = Value<'static>>) {
        self.rows.push(row.into_iter().collect());
    }

    /// Runs it; answers how many rows of the database it touched. Without rows it does nothing.
    pub(crate) async fn execute(self, connection: &mut Connection) -> Result<u64, sqlx::Error> {
        let Some(first) = self.rows.first() else {
            return Ok(0);
        };
        match (connection, self.on_sqlite) {
            (connection @ Connection::Sqlite(_), OnSqlite::AtOnce) => {
                let row = |row: Vec<Value<'_>>| row.into_iter().map(Value::into_json).collect();
                let rows: Vec<serde_json::Value> = self.rows.into_iter().map(row).collect();
                query(self.statement)
                    .bind(serde_json::Value::from(rows).to_string())
                    .execute(connection)
                    .await
            }
            (connection @ Connection::Sqlite(_), OnSqlite::EachRow) => {
                let mut touched = 0;
                for values in self.rows {
                    let query = Query {
                        statement: self.statement,
                        values,
                    };
                    touched += query.execute(&mut *connection).await?;
                }
                Ok(touched)
            }
            (Connection::Postgres(open), _) => {
                #[cfg(feature = "recorded-statements")]
                {
                    let types: Vec<String> = first
                        .iter()
                        .map(|value| format!("{}[]", value.type_name()))
                        .collect();
                    recorded::note(recorded::Database::Postgres, self.statement.postgres, &types);
                }
                let mut columns: Vec<Column> = first.iter().map(Column::of).collect();
                for row in self.rows {
                    for (column, value) in columns.iter_mut().zip(row) {
                        column.push(value);
                    }
                }
                let query =
                    columns
                        .into_iter()
                        .fold(
                            sqlx::query(self.statement.postgres),
                            |query, column| match column {
                                Column::Int(column) => query.bind(column),
                                Column::Bool(column) => query.bind(column),
                                Column::Text(column) => query.bind(column),
                                Column::Bytes(column) => query.bind(column),
                            },
                        );
                (&mut **open)
                    .execute(query)
                    .await
                    .map(|done| done.rows_affected())
            }
        }
    }
}
