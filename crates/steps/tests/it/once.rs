//! Calls that must not be made twice, with a fault at each call (E8, E14).

use std::sync::Mutex;

use evenkeel_steps::{Creation, Existence, Failure, Intent, Intents, Once, Record, once};

use crate::support::BEGIN;

/// How the k-th call of a run goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// It has no effect.
    Lost,
    /// It has its effect, and the caller does not hear of it: also a crash right after.
    AnswerLost,
}

/// A store and a far side that outlive the caller, and the fault there is.
#[derive(Default)]
struct World {
    records: Mutex<Vec<(Intent, Option<u32>)>>,
    /// The nonces of what was created.
    created: Mutex<Vec<String>>,
    calls: Mutex<usize>,
    faults: Vec<(usize, Fault)>,
    blind: bool,
}

impl World {
    fn call<T>(&self, effect: impl FnOnce() -> T) -> Result<T, Failure> {
        let mut calls = self.calls.lock().unwrap();
        *calls += 1;
        let fault = self
            .faults
            .iter()
            .find(|(at, _)| at == &*calls)
            .map(|(_, fault)| *fault);
        if fault == Some(Fault::Lost) {
            return Err(Failure::transient("lost"));
        }
        let done = effect();
        if fault == Some(Fault::AnswerLost) {
            return Err(Failure::transient("answer lost"));
        }
        Ok(done)
    }

    fn project(&self, nonce: &str) -> Option<u32> {
        let created = self.created.lock().unwrap();
        created
            .iter()
            .position(|known| known == nonce)
            .map(|at| at as u32)
    }
}

impl Intents for World {
    type Receipt = u32;

    async fn look(&self, operation: &str) -> Result<Record<u32>, Failure> {
        self.call(|| {
            let records = self.records.lock().unwrap();
            match records.iter().find(|(intent, _)| intent.operation == operation) {
                None => Record::Nothing,
                Some((intent, None)) => Record::Open(intent.clone()),
                Some((_, Some(receipt))) => Record::Finished(*receipt),
            }
        })
    }

    async fn begin(&self, intent: &Intent) -> Result<(), Failure> {
        self.call(|| self.records.lock().unwrap().push((intent.clone(), None)))
    }

    async fn finish(&self, intent: &Intent, receipt: &u32) -> Result<(), Failure> {
        self.call(|| {
            for (known, kept) in self.records.lock().unwrap().iter_mut() {
                if known == intent {
                    *kept = Some(*receipt);
                }
            }
        })
    }
}

impl Creation for World {
    type Receipt = u32;

    async fn find(&self, intent: &Intent) -> Result<Existence<u32>, Failure> {
        self.call(|| match self.project(&intent.nonce) {
            _ if self.blind => Existence::Unknown {
                reason: "the search is down".to_owned(),
            },
            Some(project) => Existence::Yes(project),
            None => Existence::No,
        })
    }

    async fn create(&self, intent: &Intent) -> Result<u32, Failure> {
        self.call(|| self.created.lock().unwrap().push(intent.nonce.clone()))?;
        Ok(self.project(&intent.nonce).unwrap())
    }
}

/// Tries until it succeeds, as passes do, each with a nonce of its own.
async fn until_done(world: &World) -> Once<u32> {
    for attempt in 0..10 {
        let nonce = || format!("nonce-{attempt}");
        if let Ok(once) = once(world, world, "create-project", nonce, BEGIN).await {
            return once;
        }
    }
    panic!("it never succeeds");
}

#[tokio::test]
async fn any_two_faults_lead_to_one_project() {
    let kinds = [Fault::Lost, Fault::AnswerLost];
    let mut found = 0;
    for first in 1..8 {
        for second in first + 1..12 {
            for faults in kinds.iter().flat_map(|a| kinds.iter().map(move |b| (*a, *b))) {
                let world = World {
                    faults: vec![(first, faults.0), (second, faults.1)],
                    ..World::default()
                };
                let once = until_done(&world).await;
                found += usize::from(matches!(once, Once::Found(_)));
                let created = world.created.lock().unwrap().len();
                assert_eq!(created, 1, "faults {faults:?} at {first} and {second}");
                assert_eq!(
                    until_done(&world).await,
                    Once::Known(0),
                    "and it is known from then on"
                );
            }
        }
    }
    assert!(found > 0, "some answer of the creation itself was lost");
}

#[tokio::test]
async fn without_a_fault_it_is_made_and_then_known() {
    let world = World::default();
    assert_eq!(until_done(&world).await, Once::Made(0));
    assert_eq!(*until_done(&world).await.receipt(), 0);
    assert_eq!(
        *world.calls.lock().unwrap(),
        5,
        "look, begin, create, finish; then look"
    );
}

#[tokio::test]
async fn what_cannot_be_found_out_creates_nothing() {
    let world = World {
        // The answer of the creation is lost.
        faults: vec![(3, Fault::AnswerLost)],
        blind: true,
        ..World::default()
    };
    let nonce = || "nonce".to_owned();
    let _ = once(&world, &world, "create-project", nonce, BEGIN)
        .await
        .unwrap_err();
    for _ in 0..3 {
        let failure = once(&world, &world, "create-project", nonce, BEGIN)
            .await
            .unwrap_err();
        assert_eq!(
            failure.message(),
            "create-project was begun at 2027-01-15T08:00:00Z, and whether it succeeded cannot be found out: \
             the search is down"
        );
    }
    assert_eq!(world.created.lock().unwrap().len(), 1);
}
