//! The contract of the store.
