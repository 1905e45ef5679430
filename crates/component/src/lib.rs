//! One operation: what happens to one component of one cluster, as a pipeline on the step engine.
//!
//! ```text
//! obtain-source ─┐
//!                ├─▶ render ─▶ transform ─▶ plan ─▶ take-fence ─▶ keep-render ─▶ prepare-namespace
//! resolve-values ┘   (kept when marked)      │                                         │
//!                                            ▼ dry run ends here                       ▼
//!                                                            record ◀─ prune ◀─ wait-ready ◀─ apply
//! ```
//!
//! The mothership, `evenkeel local` and component tests run this same pipeline; they differ in where a component's
//! revision and kept renders come from ([`Ledger`]) and in who holds the lease.
//!
//! **Where does a new step go?** A file below `pipeline/`, and one line where [`Reconciler`] builds its pipelines.

mod error;
mod failure;
mod inputs;
mod kept;
mod keys;
mod ledger;
mod lookup;
mod operation;
mod outcome;
mod pipeline;
mod reconciler;
mod render;
mod task;
mod values;

pub use error::Error;
pub use inputs::{Considered, ENGINE};
pub use keys::SystemKeys;
pub use ledger::{Ledger, LedgerError, TargetLedger};
pub use outcome::{End, Level, Line, Outcome};
pub use reconciler::{Reconciler, RunOptions};
pub use task::{Task, Work};
pub use values::{Layer, Values};
