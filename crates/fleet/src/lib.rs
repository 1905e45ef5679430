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
//! **Where is …?** who is due: `scheduler`; what is found at one cluster: `look`; what follows from it: `planner`, `prerequisites`; who
//! does it: `workers`; who is watched, so that drift is seen at once: `watches`; what a cluster's status says: `bookkeeper`;
//! which settings count: `tuning`; what people may ask for: `requests`, `control`; what they have to agree to:
//! `consent`; whose turn it is: `fair`; which process looks at which cluster: `instances`; in which hours: `maintenance`; what fails elsewhere: `breaker`; what the environment
//! broker lists, and how the inventory differs from it: `broker`, `sync`.

mod administration;
mod archives;
mod batch;
mod bookkeeper;
mod breaker;
mod broker;
mod cleaner;
mod consent;
mod contract;
mod control;
mod dry_run;
mod error;
mod fair;
mod fleet;
mod gauges;
mod instances;
mod keys;
mod kubeconfigs;
mod ledger;
mod look;
mod maintenance;
mod pause;
mod phase;
mod planner;
mod prerequisites;
mod refused_calls;
mod requests;
mod scheduler;
mod settings;
mod siblings;
#[cfg(feature = "simulation")]
pub mod simulation;
mod site;
mod sync;
mod targets;
mod tuning;
mod views;
mod watches;
mod workers;

pub use broker::{BrokerError, BrokerOptions};
pub use error::Error;
pub use fleet::{Fleet, METRICS_CONTENT_TYPE, Parts};
pub use kubeconfigs::KubeconfigClusters;
pub use prerequisites::Prerequisites;
pub use settings::{SettingError, Settings};
pub use watches::Watched;
