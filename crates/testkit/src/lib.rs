//! Shared test support; never a normal dependency.
