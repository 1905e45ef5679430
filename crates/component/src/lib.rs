//! One operation: what happens to one component of one cluster, as a pipeline on the step engine.
//!
//! ```text
//! obtain-source ─┐
//!                ├─▶ render ─▶ transform ─▶ plan ─▶ take-fence ─▶ keep-render ─▶ prepare-namespace
//! resolve-values ┘   (kept when marked)      │            keep-hooks                   │
//!                                            ▼ dry run ends here                       ▼
//!         record ◀─ restart-proxies ◀─ post-hooks ◀─ prune ◀─ wait-ready ◀─ apply ◀─ pre-hooks
//! ```
//!
//! What it turns out to be for (`evenkeel_core::Strategy`) decides which hooks run and whether proxies are restarted.
//!
//! Before the components of a run, one operation may apply the definitions of all: collect-definitions ─▶ plan ─▶ define ─▶
//! record.
//!
//! A deletion runs the hooks that were kept: plan ─▶ pre-delete-hooks ─▶ uninstall ─▶ post-delete-hooks ─▶ forget ─▶ leave.
//!
//! The mothership, `evenkeel local` and component tests run this same pipeline; they differ in where a component's
//! revision and kept renders come from ([`Ledger`]) and in who holds the lease.
//!
//! A source holds a chart, a kustomization or plain manifests; they differ in how `render` makes objects of them and in
//! nothing behind it. Kustomizations are built by [`Kustomize`], the one other program that is run for a component.
//!
//! **Where does a new step go?** A file below `pipeline/`, and one line where [`Reconciler`] builds its pipelines.
//! One that every pipeline is to have is a [`Bundle`](evenkeel_steps::Bundle): [`Reconciler::with_bundle`].

mod agreement;
mod declared;
mod error;
mod failure;
mod hooks;
mod inputs;
mod kept;
mod keys;
mod kustomize;
mod ledger;
mod lookup;
mod operation;
mod outcome;
mod pipeline;
mod reconciler;
mod render;
mod siblings;
mod task;
mod values;

pub use agreement::Agreement;
pub use declared::{Declaration, DeclarationError, Declarations};
pub use error::Error;
pub use inputs::{Considered, ENGINE};
pub use keys::SystemKeys;
pub use kustomize::{KUSTOMIZE_TIMEOUT, Kustomize, KustomizeOptions, RemoteBases};
pub use ledger::{Ledger, LedgerError, TargetLedger};
pub use lookup::LiveLookup;
pub use operation::{Operation, capabilities};
pub use outcome::{End, Level, Line, Outcome};
pub use reconciler::{Reconciler, RunOptions};
pub use render::RenderLimits;
pub use siblings::{RenderedSiblings, Sibling, SiblingSet};
pub use task::{Task, Work};
pub use values::{Layer, Values};
