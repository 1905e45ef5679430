//! A component that is watched, and what its watches tell.

use std::collections::BTreeSet;
use std::time::Duration;

use evenkeel_cluster::{Alarm, Baseline, Difference, DriftWatch, Expected, ManifestObject, WatchOptions};
use tokio::task::JoinHandle;

use crate::component::Component;
use crate::env::{Env, connect, owner};
use crate::wire::Wire;

/// Nobody waits for long in a test.
pub(crate) fn options() -> WatchOptions {
    WatchOptions {
        pause_first: Duration::from_millis(50),
        pause_longest: Duration::from_millis(500),
        judge_after: Duration::from_millis(50),
        ..WatchOptions::default()
    }
}

/// Live watches that run until they are dropped.
pub(crate) struct Watched<'a> {
    pub(crate) component: Component<'a>,
    pub(crate) watch: DriftWatch,
    running: JoinHandle<evenkeel_cluster::Error>,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// The scenario's cluster as it is seen over a wire of its own.
pub(crate) async fn over_a_wire(env: &Env) -> (Wire, Env) {
    let (wire, kubeconfig) = Wire::to(&env.kubeconfig(), env.cluster.server()).await;
    (wire, env.with(connect(&kubeconfig).await, env.name.clone()))
}

pub(crate) fn expected(component: &Component<'_>, documents: &[ManifestObject]) -> [Expected; 1] {
    [Expected {
        component: component.target.name().clone(),
        inputs: Some(component.inputs(documents).digest),
        readiness: component.options.readiness.clone(),
    }]
}

/// What a check sees of a component that is as it should be.
pub(crate) async fn baseline(component: &Component<'_>, documents: &[ManifestObject]) -> Baseline {
    let expected = expected(component, documents);
    evenkeel_testkit::eventually("a check that finds it as it should be", async || {
        let check = component
            .env
            .cluster
            .check_to_watch(&owner(), &expected)
            .await
            .unwrap();
        let found = format!("{:?}", check.components);
        check.baseline.ok_or(found)
    })
    .await
}

impl<'a> Watched<'a> {
    /// Installs a component and watches it from there on; all watches are open.
    pub(crate) async fn new(env: &'a Env, documents: &[ManifestObject], options: WatchOptions) -> Self {
        let component = Component::new(env);
        component.run(documents).await.unwrap();
        let watch = env
            .cluster
            .watch_over(baseline(&component, documents).await, options);
        let run = watch.clone();
        #[allow(clippy::disallowed_methods, reason = "ends with whoever drops it")]
        let running = tokio::spawn(async move { run.run().await });
        let watched = Self {
            component,
            watch,
            running,
        };
        watched.until_calm().await;
        watched
    }

    pub(crate) async fn until_calm(&self) {
        evenkeel_testkit::eventually("every watch to be open and nothing to depart", async || {
            if self.watch.is_calm() {
                Ok(())
            } else {
                Err(format!("{:?}", self.watch))
            }
        })
        .await;
    }

    pub(crate) async fn until_lost(&self) {
        evenkeel_testkit::eventually("a watch to be lost", async || {
            if self.watch.is_calm() { Err(()) } else { Ok(()) }
        })
        .await;
    }

    /// The next alarm.
    pub(crate) async fn alarm(&self) -> Alarm {
        tokio::time::timeout(evenkeel_testkit::BOUND, self.watch.alarmed())
            .await
            .expect("no alarm")
    }

    /// The names of all objects that are told until all of `names` were.
    pub(crate) async fn told(&self, names: &[&str]) -> BTreeSet<String> {
        let mut told = BTreeSet::new();
        while !names.iter().all(|name| told.contains(*name)) {
            let alarm = self.alarm().await;
            told.extend(
                alarm
                    .departures
                    .iter()
                    .map(|difference| object(difference).to_owned()),
            );
        }
        told
    }

    /// Puts everything right and goes on from another check.
    pub(crate) async fn heal(&self, documents: &[ManifestObject]) -> Vec<String> {
        let done = self.component.run(documents).await.unwrap().done();
        self.watch.renew(baseline(&self.component, documents).await);
        self.until_calm().await;
        done
    }
}

/// The name of the object that a difference is about.
pub(crate) fn object(difference: &Difference) -> &str {
    match difference {
        Difference::Missing(object)
        | Difference::Changed(object)
        | Difference::Replaced(object)
        | Difference::LeftOver(object) => &object.name,
        other => panic!("{other}"),
    }
}
