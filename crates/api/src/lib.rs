//! The REST contract: types and client.
