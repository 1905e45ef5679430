//! The pass itself: gather → guard → (select → run) → publish.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use jiff::Timestamp;

use crate::context::{Approval, PassScope};
use crate::execute::{Did, execute, flatten};
use crate::graph::{Graph, Node};
use crate::guarded::{Limits, guarded, panic_message};
use crate::pass::{DEFAULT_GATHER_TIMEOUT, DEFAULT_PUBLISH_TIMEOUT, Restriction, RestrictionKind};
use crate::report::{Ending, Entry, Interruption, Phase, Skip, Trouble};
use crate::schedule::{Next, Schedule};
use crate::slot::AnyArc;
use crate::{Context, Failure, Guard, Mode, Outcome, Pass, PassOptions, Pipeline, Report, Values};

/// A step that runs.
struct Running<S> {
    number: usize,
    cx: Context<S>,
    started: Duration,
}

/// The clocks of a pass: one reading of the wall clock, all else measured from it.
#[derive(Clone, Copy)]
struct Clocks {
    wall: Timestamp,
    monotonic: Duration,
}

impl<S: Send + Sync + 'static> Pipeline<S> {
    /// Runs one pass. Everything that can go wrong is in the report; nothing is thrown.
    ///
    /// Dropping the future drops the pass as it is, without publishing; to end a pass early, cancel it.
    pub async fn run<P: Pass<State = S>>(&self, pass: &P, options: PassOptions) -> Report<S> {
        let graph = &self.graph;
        let runtime = Arc::clone(&options.runtime);
        let clocks = Clocks {
            wall: runtime.now(),
            monotonic: runtime.elapsed(),
        };
        options
            .announcer
            .tell(|observer| observer.pass_started(&graph.name, options.mode));

        let mut limits = Limits::new(
            Arc::clone(&runtime),
            Arc::clone(&options.cancel),
            options.cancel_grace,
            options
                .budget
                .map(|budget| clocks.monotonic.saturating_add(budget.work)),
        );
        let mut report = Report {
            pipeline: graph.name.clone(),
            mode: options.mode,
            started: clocks.wall,
            duration: Duration::ZERO,
            state: None,
            gather: Phase {
                duration: Duration::ZERO,
                trouble: None,
            },
            guard: None,
            guard_trouble: None,
            steps: Vec::new(),
            publish: None,
            values: Vec::new(),
            cancelled: false,
            attempt: options.attempt,
        };
        self.work(pass, &options, clocks, &mut limits, &mut report).await;
        report.duration = runtime.elapsed().saturating_sub(clocks.monotonic);

        let publish_started = runtime.elapsed();
        let limit = options
            .budget
            .map_or(DEFAULT_PUBLISH_TIMEOUT, |budget| budget.publish);
        let published = guarded(async { pass.publish(&report).await }, limit, &*runtime, None).await;
        let trouble = flatten(published, "publishing", limit)
            .err()
            .map(|failure| trouble(&options, failure));
        let ended = runtime.elapsed();
        report.publish = Some(Phase {
            duration: ended.saturating_sub(publish_started),
            trouble,
        });
        report.duration = ended.saturating_sub(clocks.monotonic);
        options.announcer.tell(|observer| {
            observer.pass_finished(&graph.name, report.conclusion(), report.duration);
        });
        report
    }

    /// All up to publishing.
    async fn work<P: Pass<State = S>>(
        &self,
        pass: &P,
        options: &PassOptions,
        clocks: Clocks,
        limits: &mut Limits,
        report: &mut Report<S>,
    ) {
        let runtime = &*options.runtime;
        let gathered = match limits.check() {
            Some(interruption) => Err(interruption),
            None => {
                let limit = options
                    .budget
                    .map_or(DEFAULT_GATHER_TIMEOUT, |budget| budget.work);
                let mut gather = pin!(guarded(async { pass.gather().await }, limit, runtime, None));
                let gathered = poll_fn(|cx| match gather.as_mut().poll(cx) {
                    Poll::Ready(gathered) => Poll::Ready(Ok(gathered)),
                    Poll::Pending => limits.poll(cx).map(Err),
                })
                .await;
                gathered.map(|gathered| flatten(gathered, "gathering", limit))
            }
        };
        report.gather.duration = runtime.elapsed().saturating_sub(clocks.monotonic);
        let state = match gathered {
            Ok(Ok(state)) => state,
            Ok(Err(failure)) => {
                self.skip_all(
                    options,
                    report,
                    &Skip::NotGathered {
                        reason: failure.to_string(),
                    },
                );
                report.gather.trouble = Some(trouble(options, failure));
                return;
            }
            Err(interruption) => return self.skip_all(options, report, &Skip::Interrupted(interruption)),
        };
        report.state = Some(Arc::clone(&state));

        let guard = catch_unwind(AssertUnwindSafe(|| pass.guard(&state)))
            .map_err(|panic| Failure::bug(format!("the guard panicked: {}", panic_message(&*panic))))
            .and_then(|guard| self.check_names(&guard).map(|()| guard));
        let slots = guard.and_then(|guard| Ok((guard, self.fill_given(&options.given)?)));
        let (guard, slots) = match slots {
            Ok(ready) => ready,
            Err(failure) => {
                self.skip_all(
                    options,
                    report,
                    &Skip::GuardStopped {
                        reason: failure.to_string(),
                    },
                );
                report.guard_trouble = Some(trouble(options, failure));
                return;
            }
        };
        let restrictions: &[Restriction] = match &guard {
            Guard::Proceed => &[],
            Guard::Restrict(restrictions) => restrictions,
            Guard::Stop { reason, .. } => {
                self.skip_all(
                    options,
                    report,
                    &Skip::GuardStopped {
                        reason: reason.clone(),
                    },
                );
                report.guard = Some(guard);
                return;
            }
        };
        if restrictions
            .iter()
            .any(|restriction| restriction.kind == RestrictionKind::PlanOnly)
        {
            report.mode = Mode::DryRun;
        }

        let scope = Arc::new(PassScope {
            graph: Arc::clone(&self.graph),
            state,
            slots,
            runtime: Arc::clone(&options.runtime),
            announcer: options.announcer.clone(),
            cancel: Arc::clone(&options.cancel),
            mode: report.mode,
            attempt: options.attempt,
            forbidden: forbidden(restrictions),
            approved: approved(restrictions),
        });
        let schedule = Schedule::new(&self.graph, &scope.state, restrictions);
        let mut engine = Engine {
            graph: &self.graph,
            scope: &scope,
            options,
            clocks,
            schedule,
            entries: self.graph.nodes.iter().map(|_| None).collect(),
            stopped_by_cancel: false,
        };
        engine.run(limits).await;
        let Engine {
            mut entries,
            stopped_by_cancel,
            ..
        } = engine;
        report.steps = self
            .graph
            .order
            .iter()
            .filter_map(|number| entries[*number].take())
            .collect();
        report.cancelled = stopped_by_cancel;
        let ids = self.graph.slots.iter().map(|info| info.id);
        report.values = ids
            .zip(scope.slots.iter().map(|cell| cell.get().cloned()))
            .collect();
        report.guard = Some(guard);
    }

    fn skip_all(&self, options: &PassOptions, report: &mut Report<S>, skip: &Skip) {
        let ending = Ending::Skipped(skip.clone());
        let retry_at = retry_at(options, &ending);
        for number in &self.graph.order {
            let node = &self.graph.nodes[*number];
            options
                .announcer
                .tell(|observer| observer.step_skipped(&self.graph.name, &node.name, skip));
            report.steps.push(Entry::not_run(node, ending.clone(), retry_at));
        }
    }

    fn check_names(&self, guard: &Guard) -> Result<(), Failure> {
        let Guard::Restrict(restrictions) = guard else {
            return Ok(());
        };
        for restriction in restrictions {
            let (RestrictionKind::Only(names) | RestrictionKind::Except(names)) = &restriction.kind else {
                continue;
            };
            for name in names {
                if !self.graph.nodes.iter().any(|node| node.name == **name) {
                    let reason = &restriction.reason;
                    return Err(Failure::bug(format!(
                        "the guard restricts the pass ({reason}) and names step {name:?}, but there is no such step"
                    )));
                }
            }
        }
        Ok(())
    }

    fn fill_given(&self, given: &Values) -> Result<Vec<OnceLock<AnyArc>>, Failure> {
        let slots = &self.graph.slots;
        let cells: Vec<OnceLock<AnyArc>> = slots.iter().map(|_| OnceLock::new()).collect();
        for (id, value) in &given.0 {
            let number = slots
                .iter()
                .position(|slot| slot.given && slot.id.name == id.name && slot.id.type_id == id.type_id);
            let Some(number) = number else {
                return Err(Failure::bug(format!(
                    "the caller gives slot {id:?}, which the pipeline does not take"
                )));
            };
            if cells[number].set(Arc::clone(value)).is_err() {
                return Err(Failure::bug(format!("the caller gives slot {id:?} twice")));
            }
        }
        let missing = slots
            .iter()
            .zip(&cells)
            .find(|(slot, cell)| slot.given && cell.get().is_none());
        match missing {
            Some((slot, _)) => Err(Failure::bug(format!(
                "the caller does not give slot {:?}",
                slot.id
            ))),
            None => Ok(cells),
        }
    }
}

/// Runs the steps of one pass.
struct Engine<'a, S> {
    graph: &'a Graph<S>,
    scope: &'a Arc<PassScope<S>>,
    options: &'a PassOptions,
    clocks: Clocks,
    schedule: Schedule<'a, S>,
    entries: Vec<Option<Entry>>,
    stopped_by_cancel: bool,
}

impl<S: Send + Sync + 'static> Engine<'_, S> {
    async fn run(&mut self, limits: &mut Limits) {
        let mut futures = FuturesUnordered::new();
        let mut running: Vec<Running<S>> = Vec::new();
        loop {
            while running.len() < self.options.parallelism {
                let filled = |slot: usize| self.scope.slots[slot].get().is_some();
                match self.schedule.next(self.scope.mode, filled, || limits.check()) {
                    Next::Nothing => break,
                    Next::Ended(number, ending) => self.not_run(number, ending),
                    Next::Start(number) => {
                        let cx = Context::new(Arc::clone(self.scope), number);
                        let started = self.scope.runtime.elapsed();
                        self.tell_started(number);
                        futures.push(execute(self.graph, self.scope, number, cx.clone()));
                        running.push(Running { number, cx, started });
                    }
                }
            }
            if running.is_empty() {
                return;
            }
            let event = poll_fn(|cx| {
                if let Poll::Ready(Some(ended)) = futures.poll_next_unpin(cx) {
                    return Poll::Ready(Ok(ended));
                }
                limits.poll(cx).map(Err)
            })
            .await;
            match event {
                Ok((number, did)) => {
                    if let Some(position) = running.iter().position(|step| step.number == number) {
                        let step = running.swap_remove(position);
                        self.ended(step, did);
                    }
                }
                Err(interruption) => {
                    // A destructor that panics must not keep publish from running.
                    let _ = catch_unwind(AssertUnwindSafe(|| futures.clear()));
                    self.schedule
                        .halt(crate::schedule::Halt::Interrupted(interruption));
                    for step in running.drain(..) {
                        self.finish(step, Ending::Interrupted(interruption));
                    }
                }
            }
        }
    }

    /// A step's future has ended.
    fn ended(&mut self, step: Running<S>, did: Result<Did, Failure>) {
        let ending = match did {
            Err(failure) => Ending::Failed(failure),
            Ok(Did::Planned) => Ending::Planned,
            Ok(Did::Forbidden(skip)) => Ending::Skipped(skip),
            Ok(Did::Ended(outcome)) => match outcome {
                Outcome::Done(values) => self
                    .provide(step.number, values)
                    .map_or_else(Ending::Failed, |()| Ending::Done),
                Outcome::Changed { value, summary } => self
                    .provide(step.number, value)
                    .map_or_else(Ending::Failed, |()| Ending::Changed { summary }),
                Outcome::Wait { delay, reason } => Ending::Waiting {
                    until: delay.moment(self.scope.runtime.now()),
                    reason,
                },
                Outcome::Stop { reason } => {
                    self.stopped_by_cancel |= self.scope.cancel.is_cancelled();
                    Ending::Stopped { reason }
                }
            },
        };
        self.finish(step, ending);
    }

    /// Puts what a step hands over into its slots.
    fn provide(&self, number: usize, values: Values) -> Result<(), Failure> {
        let node = &self.graph.nodes[number];
        for (id, value) in values.0 {
            let slot = node.provides.iter().copied().find(|slot| {
                let known = self.graph.slots[*slot].id;
                known.name == id.name && known.type_id == id.type_id
            });
            let taken = slot.is_some_and(|slot| self.scope.slots[slot].set(value).is_ok());
            if !taken {
                return Err(Failure::bug(format!(
                    "step {} hands over slot {id:?}, which it does not declare, or twice",
                    node.name
                )));
            }
        }
        match node
            .provides
            .iter()
            .find(|slot| self.scope.slots[**slot].get().is_none())
        {
            Some(slot) => Err(Failure::bug(format!(
                "step {} is done, but did not hand over slot {:?}",
                node.name, self.graph.slots[*slot].id
            ))),
            None => Ok(()),
        }
    }

    fn finish(&mut self, step: Running<S>, ending: Ending) {
        let name = &self.graph.nodes[step.number].name;
        let duration = self.scope.runtime.elapsed().saturating_sub(step.started);
        self.scope
            .announcer
            .tell(|observer| observer.step_finished(&self.graph.name, name, &ending, duration));
        let since = step.started.saturating_sub(self.clocks.monotonic);
        let log = step.cx.take_log();
        let entry = Entry {
            name: name.clone(),
            started: Some(self.clocks.wall.checked_add(since).unwrap_or(Timestamp::MAX)),
            duration,
            retry_at: retry_at(self.options, &ending),
            ending: ending.clone(),
            changes: log.changes,
            due: log.due,
            condition: self.graph.nodes[step.number].condition,
            progress: log.lines,
            progress_dropped: log.dropped,
        };
        self.entries[step.number] = Some(entry);
        self.schedule.resolve(step.number, ending);
    }

    fn not_run(&mut self, number: usize, ending: Ending) {
        let node = &self.graph.nodes[number];
        self.scope.announcer.tell(|observer| match &ending {
            Ending::Skipped(skip) => observer.step_skipped(&self.graph.name, &node.name, skip),
            other => observer.step_finished(&self.graph.name, &node.name, other, Duration::ZERO),
        });
        let retry_at = retry_at(self.options, &ending);
        self.entries[number] = Some(Entry::not_run(node, ending.clone(), retry_at));
        self.schedule.resolve(number, ending);
    }

    fn tell_started(&self, number: usize) {
        let name = &self.graph.nodes[number].name;
        self.scope
            .announcer
            .tell(|observer| observer.step_started(&self.graph.name, name));
    }
}

impl Entry {
    fn not_run<S>(node: &Node<S>, ending: Ending, retry_at: Option<Timestamp>) -> Self {
        Self {
            name: node.name.clone(),
            started: None,
            duration: Duration::ZERO,
            ending,
            changes: Vec::new(),
            due: None,
            condition: node.condition,
            progress: Vec::new(),
            progress_dropped: 0,
            retry_at,
        }
    }
}

/// The verbs that no step may act on, each with the reason.
fn forbidden(restrictions: &[Restriction]) -> Vec<(String, String)> {
    restrictions
        .iter()
        .filter_map(|restriction| match &restriction.kind {
            RestrictionKind::Forbid(verbs) => Some((verbs, &restriction.reason)),
            _ => None,
        })
        .flat_map(|(verbs, reason)| verbs.iter().map(move |verb| (verb.clone(), reason.clone())))
        .collect()
}

/// The changes that alone may be made. Of two lists the first counts: who gives two has to mean the same by them.
fn approved(restrictions: &[Restriction]) -> Option<Approval> {
    restrictions
        .iter()
        .find_map(|restriction| match &restriction.kind {
            RestrictionKind::Approved(changes) => Some((changes.clone(), restriction.reason.clone())),
            _ => None,
        })
}

fn trouble(options: &PassOptions, failure: Failure) -> Trouble {
    let retry_at = options
        .retry
        .retry_at(&failure, options.attempt, options.jitter, options.runtime.now());
    Trouble { failure, retry_at }
}

/// When a step that ended so wants another pass.
fn retry_at(options: &PassOptions, ending: &Ending) -> Option<Timestamp> {
    match ending {
        Ending::Waiting { until, .. } => Some(*until),
        Ending::Failed(failure) => {
            options
                .retry
                .retry_at(failure, options.attempt, options.jitter, options.runtime.now())
        }
        Ending::Interrupted(Interruption::OutOfTime)
        | Ending::Skipped(Skip::Interrupted(Interruption::OutOfTime)) => {
            let delay = options.retry.backoff.delay(options.attempt, options.jitter);
            Some(options.runtime.now().checked_add(delay).unwrap_or(Timestamp::MAX))
        }
        // Whoever cancelled knows when to go on; the others are satisfied or wait for somebody who asks.
        Ending::Interrupted(Interruption::Cancelled)
        | Ending::Done
        | Ending::Changed { .. }
        | Ending::Planned
        | Ending::Stopped { .. }
        | Ending::Skipped(_) => None,
    }
}
