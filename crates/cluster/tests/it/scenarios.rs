//! The scenarios, by subject. Each leaves nothing that another would trip over: names are its own.

pub(crate) mod apply;
pub(crate) mod consent;
pub(crate) mod contested;
pub(crate) mod delete;
pub(crate) mod drift;
pub(crate) mod faults;
pub(crate) mod hooks;
pub(crate) mod immutable;
pub(crate) mod immutable_pairs;
pub(crate) mod inventory;
pub(crate) mod moves;
pub(crate) mod ownership;
pub(crate) mod prune;
pub(crate) mod readiness;
pub(crate) mod refusals;
pub(crate) mod renders;
pub(crate) mod reported;
pub(crate) mod watches;
