//! Finds, starts and stops the real servers used by tests and benches.
