//! The steps of an operation, and what they hand to one another.

pub(crate) mod apply;
pub(crate) mod define;
pub(crate) mod hooks;
pub(crate) mod obtain;
pub(crate) mod plan;
pub(crate) mod proxies;
pub(crate) mod remove;
pub(crate) mod render;

use std::sync::Arc;
use std::time::Duration;

use evenkeel_cluster::{Desired, Inputs, Session};
use evenkeel_core::{ComponentRevision, Plan, Sensitive};
use evenkeel_source::Content;
use evenkeel_steps::{Bundle, Pipeline, Slot};
use tokio::sync::Mutex;

use crate::hooks::Due;
use crate::inputs::Considered;
use crate::operation::Operation;
use crate::render::Documents;
use crate::values::ResolvedValues;

/// How long the steps that read, render and plan may take, each.
pub(crate) const PREPARE_TIMEOUT: Duration = Duration::from_secs(120);
/// The longest that applying may take; large components on slow servers.
pub(crate) const APPLY_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// The longest that anything may be waited for, whatever a component asks for.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// The definitions of all components.
pub(crate) const DEFINITIONS: Slot<define::Definitions> = Slot::new("definitions");
/// What the source holds, shared by all who use it.
pub(crate) const CONTENT: Slot<Content> = Slot::new("content");
/// All values as one tree.
pub(crate) const VALUES: Slot<ResolvedValues> = Slot::new("values");
/// What was rendered, and under which revision.
pub(crate) const RENDERED: Slot<Rendered> = Slot::new("rendered");
/// What the cluster should have.
pub(crate) const DESIRED: Slot<Desired> = Slot::new("desired");
/// The hooks of the render, checked.
pub(crate) const HOOKS: Slot<hooks::Prepared> = Slot::new("hooks");
/// The hooks that this operation runs.
pub(crate) const DUE: Slot<Due> = Slot::new("due-hooks");
/// What is to be done, for people.
pub(crate) const PLAN: Slot<Plan> = Slot::new("plan");
/// The attempt at the plan. The steps that use it run one after the other, so the lock is never waited for.
pub(crate) const SESSION: Slot<Mutex<Session>> = Slot::new("session");

/// What was rendered.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) documents: Arc<Documents>,
    pub(crate) considered: Considered,
    pub(crate) revision: ComponentRevision,
    /// A marked render in the form in which it is kept at the target.
    pub(crate) kept: Option<Sensitive<Vec<u8>>>,
}

impl Rendered {
    pub(crate) fn inputs(&self) -> Inputs {
        Inputs {
            revision: self.revision,
            digest: self.considered.all,
        }
    }
}

/// Making the cluster have what the source gives.
pub(crate) fn applying(every: &impl Bundle<Operation>) -> Result<Pipeline<Operation>, evenkeel_steps::Error> {
    Pipeline::builder("apply-component")
        .bundle(every)
        .step(obtain::source())
        .step(obtain::values())
        .step(render::render())
        .step(render::transform())
        .step(plan::plan())
        .step(apply::take_fence())
        .step(apply::keep_render())
        .step(hooks::keep())
        .step(apply::prepare_namespace())
        .step(hooks::before())
        .step(apply::apply())
        .step(apply::wait_ready())
        .step(apply::prune())
        .step(hooks::after())
        .step(proxies::restart())
        .step(apply::record())
        .build()
}

/// Making the cluster have the definitions of all components.
pub(crate) fn defining(every: &impl Bundle<Operation>) -> Result<Pipeline<Operation>, evenkeel_steps::Error> {
    Pipeline::builder("define-kinds")
        .bundle(every)
        .step(define::collect())
        .step(define::plan())
        .step(define::define())
        .step(define::record())
        .build()
}

/// Deleting a component's objects.
pub(crate) fn uninstalling(
    every: &impl Bundle<Operation>,
) -> Result<Pipeline<Operation>, evenkeel_steps::Error> {
    Pipeline::builder("uninstall-component")
        .bundle(every)
        .step(remove::plan())
        .step(hooks::before_deletion())
        .step(remove::uninstall())
        .step(hooks::after_deletion())
        .step(remove::forget())
        .step(remove::leave("forget"))
        .build()
}

/// Letting go of a component's objects.
pub(crate) fn orphaning(
    every: &impl Bundle<Operation>,
) -> Result<Pipeline<Operation>, evenkeel_steps::Error> {
    Pipeline::builder("orphan-component")
        .bundle(every)
        .step(remove::orphan())
        .step(remove::leave("orphan"))
        .build()
}
