//! Logs and supervised tasks.
