//! Steps that many pipelines share.

use crate::{Hook, Step};

/// Steps and hooks that belong to every kind, written once: labels, deletion protection, write-back (L4, L24). Made
/// generic over the snapshot by what it asks of it:
///
/// ```
/// use evenkeel_steps::{Bundle, Outcome, Pipeline, Step, step};
///
/// /// What the bundle wants to know of any kind.
/// trait Owned: Send + Sync + 'static {
///     fn owner(&self) -> Option<&str>;
/// }
///
/// struct Labels;
/// impl<S: Owned> Bundle<S> for Labels {
///     fn steps(&self) -> Vec<Box<dyn Step<S>>> {
///         vec![Box::new(step::<S>("label-owner").run(|cx, ()| async move {
///             let owner = cx.state().owner().unwrap_or("nobody").to_owned();
///             Ok(Outcome::changed(owner))
///         }))]
///     }
/// }
///
/// struct Tenant;
/// impl Owned for Tenant {
///     fn owner(&self) -> Option<&str> {
///         None
///     }
/// }
/// struct Repository(String);
/// impl Owned for Repository {
///     fn owner(&self) -> Option<&str> {
///         Some(&self.0)
///     }
/// }
/// let tenants = Pipeline::<Tenant>::builder("tenant").bundle(&Labels).build()?;
/// let repositories = Pipeline::<Repository>::builder("repository").bundle(&Labels).build()?;
/// assert!(tenants.steps().any(|name| *name == "label-owner"));
/// assert!(repositories.steps().any(|name| *name == "label-owner"));
/// # Ok::<(), evenkeel_steps::Error>(())
/// ```
pub trait Bundle<S> {
    /// The steps.
    fn steps(&self) -> Vec<Box<dyn Step<S>>>;

    /// Hooks around every step of the pipeline, not only those of the bundle.
    fn hooks(&self) -> Vec<Box<dyn Hook<S>>> {
        Vec::new()
    }
}

/// Nothing is a bundle.
impl<S> Bundle<S> for () {
    fn steps(&self) -> Vec<Box<dyn Step<S>>> {
        Vec::new()
    }
}

/// Two bundles are one.
impl<S, A: Bundle<S>, B: Bundle<S>> Bundle<S> for (A, B) {
    fn steps(&self) -> Vec<Box<dyn Step<S>>> {
        let mut steps = self.0.steps();
        steps.extend(self.1.steps());
        steps
    }

    fn hooks(&self) -> Vec<Box<dyn Hook<S>>> {
        let mut hooks = self.0.hooks();
        hooks.extend(self.1.hooks());
        hooks
    }
}
