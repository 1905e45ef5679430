//! One request goes wrong, whichever it is and however: what the passes after it reach is what passes without the fault reach.

use std::cell::Cell;
use std::time::Duration;

use evenkeel_cluster::{Error, ErrorClass, Limits};
use evenkeel_testkit::{CallFault, FaultProxy};
use futures::stream::{self, StreamExt as _};
use serde_json::Value;

use crate::env::Env;

/// Passes until all is as it should be; one goes wrong, the next may meet what it left.
const PASSES: usize = 6;
/// Trials at one time.
const AT_ONCE: usize = 12;
/// From so many requests on, not every kind of fault meets every one.
const MANY: usize = 25;

/// An action under test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Action {
    /// A word for names and messages.
    pub(crate) name: &'static str,
    pub(crate) limits: Limits,
    /// All but one in so many of the calls are left out.
    pub(crate) thin: usize,
}

impl Action {
    pub(crate) fn named(name: &'static str) -> Self {
        Self {
            name,
            limits: Limits::default(),
            thin: 1,
        }
    }
}

/// One trial of an action, in which at most one request goes wrong.
pub(crate) struct Trial {
    /// Every request of the trial goes through it.
    pub(crate) proxy: FaultProxy,
    /// What goes wrong, for messages.
    pub(crate) what: String,
    fault: Option<(usize, CallFault)>,
    /// How many requests the first pass took.
    requests: Cell<usize>,
    met: Cell<bool>,
}

impl Trial {
    /// Runs `pass`, which hears how many came before, until one succeeds. What was sent before this goes well, and so does what
    /// comes after.
    pub(crate) async fn passes(&self, mut pass: impl AsyncFnMut(usize) -> Result<(), Error>) {
        let before = self.proxy.requests();
        if let Some((at, fault)) = self.fault {
            self.proxy.fail(at, fault);
        }
        let mut failures = Vec::new();
        for number in 0.. {
            let ended = pass(number).await;
            if number == 0 {
                self.requests.set(self.proxy.requests() - before);
            }
            let Err(error) = ended else { break };
            let passes_by_itself = matches!(
                error.class(),
                ErrorClass::Transient
                    | ErrorClass::Unreachable
                    | ErrorClass::RateLimited(_)
                    | ErrorClass::Conflict
                    | ErrorClass::NotReady
            );
            assert!(passes_by_itself, "{}: {error}", self.what);
            failures.push(error.to_string());
            assert!(number < PASSES, "{}: {failures:?}", self.what);
        }
        self.met.set(self.proxy.heal());
    }
}

/// Tries `action` without a fault, and then with each kind of fault at each of its calls. `run` prepares what it needs, calls
/// [`Trial::passes`] once, and answers with all that is left, without what differs from run to run.
pub(crate) async fn every_call(env: &Env, action: Action, run: impl AsyncFn(&Env, &Trial) -> Value) {
    let limits = Limits {
        // One after the other, so that the k-th request is the same in every trial.
        in_flight: 1,
        apply_concurrency: 1,
        read_timeout: Duration::from_secs(5),
        write_timeout: Duration::from_secs(5),
        ..action.limits
    };
    let trial = async |fault: Option<(usize, CallFault)>| {
        let suffix = fault.map_or_else(
            || "none".to_owned(),
            |(at, fault)| format!("{at}-{fault:?}").to_lowercase(),
        );
        let scenario: String = env.name.chars().take(14).collect();
        let name = format!("{}-{}-{suffix}", scenario.trim_end_matches('-'), action.name);
        let (behind, proxy) = env.behind(limits).await;
        let behind = behind.with(behind.cluster.clone(), name);
        let trial = Trial {
            proxy,
            what: format!("{} {fault:?}", action.name),
            fault,
            requests: Cell::new(0),
            met: Cell::new(false),
        };
        let left = Box::pin(run(&behind, &trial)).await;
        (left, trial.requests.get(), trial.met.get())
    };
    let (expected, requests, _) = trial(None).await;
    assert!(requests >= 8, "{requests}");
    // A real server takes its time, so a part of the calls must do there, and of very many (a deletion looks at every kind
    // there is) everywhere; each kind of fault meets different ones, so that together they meet all.
    let every = match (env.is_real(), requests > MANY) {
        (false, false) => 1,
        (false, true) => 3,
        (true, false) => 6,
        (true, true) => 15,
    } * action.thin;
    let mut faults = Vec::new();
    for (index, fault) in CallFault::ALL.into_iter().enumerate() {
        faults.extend(
            (0..requests)
                .filter(|at| (at + index) % every == 0)
                .map(|at| (at, fault)),
        );
    }
    let outcomes: Vec<_> = stream::iter(faults.clone())
        .map(|fault| trial(Some(fault)))
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut met = 0;
    for (fault, (left, _, was_met)) in faults.iter().zip(outcomes) {
        met += usize::from(was_met);
        assert_eq!(left, expected, "{} {fault:?}", action.name);
    }
    // How often a controller is waited for differs from run to run, and with it the number of requests.
    assert!(
        met * 10 >= faults.len() * 8,
        "{met} of {} faults were met",
        faults.len()
    );
    eprintln!("{}: {requests} requests, {met} faults met", action.name);
}
