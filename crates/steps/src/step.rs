//! What a step is and declares, and how to make one from a closure.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::slot::{SlotId, SlotNeed};
use crate::{Change, Context, Decision, Failure, Needs, Outcome, Permission, Predicate, Provides, Values};

/// How long a step may take that does not say so itself.
pub const DEFAULT_STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// One action with one responsibility. Object-safe, so that steps can be kept in registries and handed in by
/// component authors; [`step`] makes one from a closure, [`Effect`] is the form for larger ones that write.
pub trait Step<S: Send + Sync + 'static>: Send + Sync {
    /// Its name and place in the graph. Asked once, when the pipeline is built.
    fn spec(&self) -> Spec<S>;

    /// Observes and plans, without writing anything outside, and says what is to be done. The engine polls the
    /// future of [`Decision::Act`] only when this pass may write.
    fn decide<'a>(&'a self, cx: Context<S>) -> BoxFuture<'a, Result<Decision<'a, Values>, Failure>>;

    /// The step that takes away what this one makes, if that needs doing. It runs in
    /// [`Pipeline::teardown`](crate::Pipeline::teardown), after the teardowns of all steps that come after this
    /// one. Asked once, when the pipeline is built.
    fn teardown(&self) -> Option<Arc<dyn Step<S>>> {
        None
    }
}

/// What a step declares. Made by [`step`].
pub struct Spec<S, N = (), P = ()> {
    pub(crate) declared: Declared<S>,
    needs_token: N,
    provides_token: P,
}

/// The declaration as the graph reads it.
pub(crate) struct Declared<S> {
    pub(crate) name: String,
    pub(crate) weight: i32,
    pub(crate) timeout: Duration,
    pub(crate) when: Option<Predicate<S>>,
    pub(crate) after: Vec<After>,
    pub(crate) before: Vec<String>,
    pub(crate) live_only: bool,
    pub(crate) condition: Option<&'static str>,
    pub(crate) may: Vec<Permission>,
    pub(crate) needs: Vec<SlotNeed>,
    pub(crate) provides: Vec<SlotId>,
}

/// An edge by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct After {
    pub(crate) step: String,
    pub(crate) require_success: bool,
}

/// A step that looks at the outside, plans, and writes. `I` is what it needs, `O` what it provides.
pub trait Effect<S: Send + Sync + 'static, I, O>: Send + Sync + 'static {
    /// What it saw.
    type Observation: Send + Sync;

    /// Looks; writes nothing.
    fn observe(
        &self,
        cx: &Context<S>,
        input: &I,
    ) -> impl Future<Output = Result<Self::Observation, Failure>> + Send;

    /// Decides, from what was seen alone: no I/O, same input, same plan.
    ///
    /// # Errors
    /// When the input makes no plan possible.
    fn plan(&self, state: &S, input: &I, seen: &Self::Observation) -> Result<Plan<O>, Failure>;

    /// Makes the planned changes. Not called when the plan is [`Plan::Settled`] or the pass is a dry run.
    fn act(
        &self,
        cx: &Context<S>,
        input: I,
        seen: Self::Observation,
        changes: Vec<Change>,
    ) -> impl Future<Output = Result<Outcome<O>, Failure>> + Send;
}

/// The plan of an [`Effect`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan<O = ()> {
    /// Nothing to change; this is what the step provides.
    Settled(O),
    /// These changes.
    Changes(Vec<Change>),
}

/// A step made from a closure or an [`Effect`].
pub struct ClosureStep<S> {
    spec: Spec<S>,
    decide: Box<dyn Decide<S>>,
    teardown: Option<Arc<dyn Step<S>>>,
}

/// [`Step::decide`] without the declaration.
trait Decide<S>: Send + Sync {
    fn decide<'a>(&'a self, cx: Context<S>) -> BoxFuture<'a, Result<Decision<'a, Values>, Failure>>;
}

/// A typed closure behind [`Decide`].
struct Typed<N, P, F> {
    needs: N,
    provides: P,
    f: F,
}

/// Begins a step called `name`.
///
/// ```
/// use evenkeel_steps::{Outcome, Predicate, Slot, step};
///
/// struct State { name: String }
/// const GREETING: Slot<String> = Slot::new("greeting");
///
/// let greet = step::<State>("greet")
///     .provides(GREETING)
///     .when(Predicate::new("named", |s: &State| !s.name.is_empty()))
///     .run(|cx, ()| async move { Ok(Outcome::Done(format!("Hello, {}!", cx.state().name))) });
/// let shout = step::<State>("shout")
///     .needs(GREETING)
///     .act(|_, greeting| async move { Ok(Outcome::changed(greeting.to_uppercase())) });
/// # let _ = (greet, shout);
/// ```
pub fn step<S>(name: impl Into<String>) -> Spec<S> {
    Spec {
        declared: Declared {
            name: name.into(),
            weight: 0,
            timeout: DEFAULT_STEP_TIMEOUT,
            when: None,
            after: Vec::new(),
            before: Vec::new(),
            live_only: false,
            condition: None,
            may: Vec::new(),
            needs: Vec::new(),
            provides: Vec::new(),
        },
        needs_token: (),
        provides_token: (),
    }
}

// === impl Spec ===

impl<S, P> Spec<S, (), P> {
    /// The slots whose values the step gets. Each makes an edge from the step that provides it; when that step
    /// gives no value, this one is skipped, unless the slot is [optional](crate::Slot::optional).
    pub fn needs<N: Needs>(self, slots: N) -> Spec<S, N, P> {
        let Spec {
            mut declared,
            provides_token,
            ..
        } = self;
        declared.needs = slots.slots();
        Spec {
            declared,
            needs_token: slots,
            provides_token,
        }
    }
}

impl<S, N> Spec<S, N, ()> {
    /// The slots whose values the step hands over when it is done. The types make sure that it does.
    pub fn provides<P: Provides>(self, slots: P) -> Spec<S, N, P> {
        let Spec {
            mut declared,
            needs_token,
            ..
        } = self;
        declared.provides = slots.slots();
        Spec {
            declared,
            needs_token,
            provides_token: slots,
        }
    }
}

impl<S, N, P> Spec<S, N, P> {
    /// Runs after `step`. If that one is skipped, this one still runs; if it fails or waits, this one is blocked.
    pub fn after(mut self, step: impl Into<String>) -> Self {
        self.declared.after.push(After {
            step: step.into(),
            require_success: false,
        });
        self
    }

    /// Runs after `step` and only if that one ran and succeeded.
    pub fn after_success(mut self, step: impl Into<String>) -> Self {
        self.declared.after.push(After {
            step: step.into(),
            require_success: true,
        });
        self
    }

    /// Runs before `step`, as if that one had said [`after`](Self::after).
    pub fn before(mut self, step: impl Into<String>) -> Self {
        self.declared.before.push(step.into());
        self
    }

    /// Of the steps that are ready, the one with the smallest weight starts first; equal weights go by name.
    pub fn weight(mut self, weight: i32) -> Self {
        self.declared.weight = weight;
        self
    }

    /// The step is selected only when this holds for the snapshot.
    pub fn when(mut self, predicate: Predicate<S>) -> Self {
        self.declared.when = Some(match self.declared.when.take() {
            Some(earlier) => earlier & predicate,
            None => predicate,
        });
        self
    }

    /// How long the step may take, planning and acting together. [`DEFAULT_STEP_TIMEOUT`] when not set.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.declared.timeout = timeout;
        self
    }

    /// Skipped in a dry run: the step only makes sense after others have written, such as waiting for readiness.
    pub fn live_only(mut self) -> Self {
        self.declared.live_only = true;
        self
    }

    /// The condition that people see of this step, together with all others that name it: `RepoReady`. See
    /// [`Report::conditions`](crate::Report::conditions).
    pub fn condition(mut self, condition: &'static str) -> Self {
        self.declared.condition = Some(condition);
        self
    }

    /// What it asks of what is outside, in all that it does; see [`Permission`]. What is called twice adds up.
    pub fn may(mut self, permissions: impl IntoIterator<Item = Permission>) -> Self {
        self.declared.may.extend(permissions);
        self
    }

    /// The declaration without its typed tokens, for a [`Step`] written as a type of its own.
    pub fn declare(self) -> Spec<S> {
        Spec {
            declared: self.declared,
            needs_token: (),
            provides_token: (),
        }
    }
}

impl<S: Send + Sync + 'static, N: Needs, P: Provides> Spec<S, N, P> {
    /// A step that only reads and computes. It runs in a dry run too.
    pub fn run<F, Fut>(self, f: F) -> ClosureStep<S>
    where
        F: Fn(Context<S>, N::Values) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Outcome<P::Values>, Failure>> + Send + 'static,
    {
        self.decide(move |cx, input| {
            let outcome = f(cx, input);
            async move { Ok(Decision::End(outcome.await?)) }
        })
    }

    /// A step that writes, without a plan of its own: a dry run shows it as one change, `run <name>`.
    pub fn act<F, Fut>(self, f: F) -> ClosureStep<S>
    where
        F: Fn(Context<S>, N::Values) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Outcome<P::Values>, Failure>> + Send + 'static,
    {
        let f = Arc::new(f);
        self.decide(move |cx, input| {
            let f = Arc::clone(&f);
            async move {
                let change = Change::new("run", cx.step().as_str());
                Ok(Decision::act(vec![change], async move { f(cx, input).await }))
            }
        })
    }

    /// A step that plans first: the closure observes and returns either an end or changes with the future that
    /// makes them.
    pub fn decide<F, Fut>(self, f: F) -> ClosureStep<S>
    where
        F: Fn(Context<S>, N::Values) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Decision<'static, P::Values>, Failure>> + Send + 'static,
    {
        let typed = Typed {
            needs: self.needs_token,
            provides: self.provides_token,
            f,
        };
        ClosureStep {
            spec: self.declare(),
            decide: Box::new(typed),
            teardown: None,
        }
    }

    /// A step with observe, plan and act as methods of a type.
    pub fn effect<E: Effect<S, N::Values, P::Values>>(self, effect: E) -> ClosureStep<S> {
        let effect = Arc::new(effect);
        self.decide(move |cx, input| {
            let effect = Arc::clone(&effect);
            async move {
                let seen = effect.observe(&cx, &input).await?;
                Ok(match effect.plan(cx.state(), &input, &seen)? {
                    Plan::Settled(value) => Decision::End(Outcome::Done(value)),
                    Plan::Changes(changes) => {
                        let planned = changes.clone();
                        Decision::act(
                            changes,
                            async move { effect.act(&cx, input, seen, planned).await },
                        )
                    }
                })
            }
        })
    }
}

impl<S> Clone for Declared<S> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            weight: self.weight,
            timeout: self.timeout,
            when: self.when.clone(),
            after: self.after.clone(),
            before: self.before.clone(),
            live_only: self.live_only,
            condition: self.condition,
            may: self.may.clone(),
            needs: self.needs.clone(),
            provides: self.provides.clone(),
        }
    }
}

impl<S, N: Copy, P: Copy> Clone for Spec<S, N, P> {
    fn clone(&self) -> Self {
        Self {
            declared: self.declared.clone(),
            needs_token: self.needs_token,
            provides_token: self.provides_token,
        }
    }
}

impl<S, N, P> fmt::Debug for Spec<S, N, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Declared {
            name,
            weight,
            timeout,
            when,
            after,
            before,
            live_only,
            condition,
            may,
            needs,
            provides,
        } = &self.declared;
        f.debug_struct("Spec")
            .field("name", name)
            .field("weight", weight)
            .field("timeout", timeout)
            .field("when", when)
            .field("after", after)
            .field("before", before)
            .field("live_only", live_only)
            .field("condition", condition)
            .field("may", may)
            .field("needs", needs)
            .field("provides", provides)
            .finish()
    }
}

// === impl ClosureStep ===

impl<S: Send + Sync + 'static> ClosureStep<S> {
    /// `step` takes away what this one makes; see [`Step::teardown`].
    ///
    /// ```
    /// use evenkeel_steps::{Outcome, Pipeline, step};
    ///
    /// let repository = step("repository")
    ///     .act(|_, ()| async { Ok(Outcome::changed("created")) })
    ///     .torn_down_by(step("remove-repository").act(|_, ()| async { Ok(Outcome::changed("removed")) }));
    /// let keys = step("keys")
    ///     .after("repository")
    ///     .act(|_, ()| async { Ok(Outcome::changed("created")) })
    ///     .torn_down_by(step("remove-keys").act(|_, ()| async { Ok(Outcome::changed("removed")) }));
    /// let pipeline = Pipeline::<()>::builder("git").step(repository).step(keys).build()?;
    /// let teardown = pipeline.teardown().expect("there are steps to tear down");
    /// let order: Vec<&str> = teardown.steps().map(|name| name.as_str()).collect();
    /// assert_eq!(order, ["remove-keys", "remove-repository"]);
    /// # Ok::<(), evenkeel_steps::Error>(())
    /// ```
    pub fn torn_down_by(mut self, step: impl Step<S> + 'static) -> Self {
        self.teardown = Some(Arc::new(step));
        self
    }
}

// === impl Step ===

impl<S: Send + Sync + 'static> Step<S> for ClosureStep<S> {
    fn spec(&self) -> Spec<S> {
        self.spec.clone()
    }

    fn decide<'a>(&'a self, cx: Context<S>) -> BoxFuture<'a, Result<Decision<'a, Values>, Failure>> {
        self.decide.decide(cx)
    }

    fn teardown(&self) -> Option<Arc<dyn Step<S>>> {
        self.teardown.clone()
    }
}

impl<S, N, P, F, Fut> Decide<S> for Typed<N, P, F>
where
    S: Send + Sync + 'static,
    N: Needs,
    P: Provides,
    F: Fn(Context<S>, N::Values) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Decision<'static, P::Values>, Failure>> + Send + 'static,
{
    fn decide<'a>(&'a self, cx: Context<S>) -> BoxFuture<'a, Result<Decision<'a, Values>, Failure>> {
        Box::pin(async move {
            let input = self.needs.read(&cx)?;
            Ok(match (self.f)(cx, input).await? {
                Decision::End(outcome) => Decision::End(self.pack(outcome)),
                Decision::Act { changes, act } => {
                    Decision::act(changes, async move { Ok(self.pack(act.await?)) })
                }
            })
        })
    }
}

impl<N, P: Provides, F> Typed<N, P, F> {
    fn pack(&self, outcome: Outcome<P::Values>) -> Outcome<Values> {
        outcome.map(|value| {
            let mut values = Values::new();
            self.provides.pack(value, &mut values);
            values
        })
    }
}

impl<S: Send + Sync + 'static, T: Step<S> + ?Sized> Step<S> for Box<T> {
    fn spec(&self) -> Spec<S> {
        (**self).spec()
    }

    fn decide<'a>(&'a self, cx: Context<S>) -> BoxFuture<'a, Result<Decision<'a, Values>, Failure>> {
        (**self).decide(cx)
    }

    fn teardown(&self) -> Option<Arc<dyn Step<S>>> {
        (**self).teardown()
    }
}

impl<S: Send + Sync + 'static, T: Step<S> + ?Sized> Step<S> for Arc<T> {
    fn spec(&self) -> Spec<S> {
        (**self).spec()
    }

    fn decide<'a>(&'a self, cx: Context<S>) -> BoxFuture<'a, Result<Decision<'a, Values>, Failure>> {
        (**self).decide(cx)
    }

    fn teardown(&self) -> Option<Arc<dyn Step<S>>> {
        (**self).teardown()
    }
}

impl<S> fmt::Debug for ClosureStep<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClosureStep").field(&self.spec).finish()
    }
}
