//! The database: SQLite, migrations, encryption, every SQL statement.
