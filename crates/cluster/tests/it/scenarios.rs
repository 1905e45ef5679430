//! The scenarios, by subject. Each leaves nothing that another would trip over: names are its own.

pub(crate) mod apply;
pub(crate) mod delete;
pub(crate) mod drift;
pub(crate) mod ownership;
pub(crate) mod prune;
pub(crate) mod readiness;
pub(crate) mod refusals;
pub(crate) mod renders;
