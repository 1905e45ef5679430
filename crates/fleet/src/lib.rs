//! The mothership's mind: it decides which cluster needs work, plans it, does it, and says truthfully how every cluster
//! is.
//!
//! ```text
//!  requests ──▶ inventory ──ClusterDue──▶ scheduler ──▶ look ──▶ planner ──▶ inventory
//!                   ▲                       (who)     (what differs)  (operations)   │
//!                   │                                                         OperationReady
//!                   │                                                                ▼
//!                bookkeeper ◀──── report ◀── operation ◀── workers (claim, lease, fence, heartbeat)
//!              (cluster status)              (component pipeline at the target)
//! ```
//!
//! Everything that must survive is in the inventory; what is in memory here (connections, leases held, looks that run)
//! may be lost at any moment. Services wait for the inventory's [`Signal`](evenkeel_inventory::Signal)s and for the next
//! moment something becomes due; nothing polls but a rare backstop.
//!
//! **Where is …?** who is due: `scheduler`; what is found at one cluster: `look`; what follows from it: `planner`; who
//! does it: `workers`; what a cluster's status says: `bookkeeper`; what people may ask for: `requests`.

mod archives;
mod batch;
mod bookkeeper;
mod cleaner;
mod error;
mod fleet;
mod gauges;
mod ledger;
mod look;
mod pause;
mod phase;
mod planner;
mod requests;
mod scheduler;
mod settings;
mod targets;
mod views;
mod workers;

pub use error::Error;
pub use fleet::{Fleet, METRICS_CONTENT_TYPE, Parts};
pub use settings::{SettingError, Settings};
