//! All subjects of the inventory in one object.

use crate::{
    Archives, Clusters, Configurations, Queue, Reconciliations, Renders, Revisions, Settings, Signals,
    Statuses,
};

/// The whole inventory, whatever database it lives in. Share it as `Arc<dyn Store>`; a room that needs one
/// subject takes that trait alone.
pub trait Store:
    Clusters + Configurations + Statuses + Reconciliations + Queue + Archives + Renders + Revisions + Settings
{
    /// Where to learn that something changed.
    fn signals(&self) -> &Signals;
}
