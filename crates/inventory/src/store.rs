//! All subjects of the inventory in one object.

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
}
