//! Server-side apply: who owns which field, and what becomes of a field nobody wants any more.
//!
//! ```text
//!  live object ─┐                          ┌─► new object
//!  configuration├─► merge ─► prune ─► claim┤
//!  managedFields┘   (typed)  (dropped     └─► managedFields, or the conflicts
//!                             fields)
//! ```
//!
//! The rules are those of `sigs.k8s.io/structured-merge-diff` and of the field manager in `k8s.io/apimachinery`
//! (KEP-555): [`field_set`] is the set algebra, [`typed`] the walks over values with their schema, [`updater`] the
//! merge itself, [`managed`] the entries in `metadata.managedFields`, [`conflict`] the error texts.

pub(crate) mod conflict;
pub(crate) mod field_set;
pub(crate) mod managed;
pub(crate) mod path;
pub(crate) mod typed;
pub(crate) mod updater;

#[cfg(test)]
mod tests;
