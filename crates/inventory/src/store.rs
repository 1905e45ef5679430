//! All subjects of the inventory in one object.

use std::sync::Arc;

use evenkeel_core::Clock;

use crate::{
    Archives, Audit, ChangeLog, Clusters, Configurations, Consents, Keys, Processes, Queue, Reconciliations,
    Renders, Retention, Revisions, Settings, Signals, Statuses,
};

/// The whole inventory, whatever database it lives in. Share it as `Arc<dyn Store>`; a room that needs one
/// subject takes that trait alone.
pub trait Store:
    Clusters
    + Configurations
    + Statuses
    + Reconciliations
    + Consents
    + Queue
    + Archives
    + Renders
    + Revisions
    + Settings
    + Processes
    + Keys
    + Audit
    + ChangeLog
    + Retention
{
    /// Where to learn that something changed.
    fn signals(&self) -> &Signals;

    /// The time that leases, deadlines and due times are in. Whoever compares them with the present asks this clock: a
    /// database that many share has its own time, and the clock of a machine may be an hour off.
    fn clock(&self) -> Arc<dyn Clock>;
}
