//! One step and one hook, registered once, are in every pipeline of operations (L12, L24), as they are in those of the operator: the
//! bundle knows of neither.

use std::sync::{Arc, Mutex};

use evenkeel_component::{End, Outcome};
use evenkeel_steps::{
    Bundle, Change, Context, Decision, Failure, Hook, Outcome as StepOutcome, Step, Values, step,
};
use futures::future::BoxFuture;

use crate::bench::Bench;

/// Writes down what steps do. Knows nothing of operations.
#[derive(Clone, Default)]
struct Census {
    heard: Arc<Mutex<Vec<String>>>,
    fails: bool,
}

impl Census {
    fn note(&self, line: String) {
        self.heard.lock().unwrap().push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.heard.lock().unwrap())
    }
}

impl<S: Send + Sync + 'static> Bundle<S> for Census {
    fn steps(&self) -> Vec<Box<dyn Step<S>>> {
        let fails = self.fails;
        let count = step::<S>("count").weight(-100).decide(move |_, ()| async move {
            if fails {
                return Err(Failure::invalid("it cannot be counted"));
            }
            let plan = vec![Change::new("count", "the operation")];
            Ok(Decision::act(plan, async { Ok(StepOutcome::changed("counted")) }))
        });
        vec![Box::new(count)]
    }

    fn hooks(&self) -> Vec<Box<dyn Hook<S>>> {
        vec![Box::new(self.clone())]
    }
}

impl<S: Send + Sync + 'static> Hook<S> for Census {
    fn before<'a>(&'a self, cx: &'a Context<S>) -> BoxFuture<'a, Result<(), Failure>> {
        self.note(format!("before {}", cx.step()));
        Box::pin(async { Ok(()) })
    }

    fn after<'a>(
        &'a self,
        cx: &'a Context<S>,
        _: &'a StepOutcome<Values>,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        self.note(format!("after {}", cx.step()));
        Box::pin(async { Ok(()) })
    }

    fn on_error<'a>(&'a self, cx: &'a Context<S>, failure: &'a Failure) -> BoxFuture<'a, ()> {
        self.note(format!("failed {}: {failure}", cx.step()));
        Box::pin(async {})
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_and_a_hook_registered_once_are_in_every_pipeline() {
    let census = Census::default();
    let bench = Bench::simulated("everywhere").await.with_bundle(&census);
    for pipeline in bench.describe() {
        assert!(pipeline.contains("  1. count [weight -100]\n"), "{pipeline}");
    }
    bench.write(
        "templates/config.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\n",
    );

    // Planning touches nothing, and no hook is called.
    assert_eq!(bench.plan("{}").await.end, End::Planned);
    assert_eq!(census.take(), Vec::<String>::new());

    let hooked = |ended: Outcome, expected: &[&str]| {
        assert_eq!(ended.end, End::Succeeded, "{ended:#?}");
        let heard = census.take();
        assert_eq!(heard[..2], ["before count", "after count"], "{heard:?}");
        for step in expected {
            let before = heard.iter().position(|line| *line == format!("before {step}"));
            let after = heard.iter().position(|line| *line == format!("after {step}"));
            assert!(before.is_some() && after > before, "{step}: {heard:?}");
        }
    };
    hooked(bench.apply("{}").await, &["obtain-source", "apply", "record"]);
    hooked(bench.define(&[]).await, &["collect-definitions"]);
    hooked(bench.uninstall().await, &["uninstall", "forget"]);
    hooked(bench.apply("{}").await, &["apply"]);
    hooked(bench.orphan().await, &["orphan"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_hears_of_a_failure_and_of_what_its_own_steps_do() {
    let census = Census {
        fails: true,
        ..Census::default()
    };
    let bench = Bench::simulated("everywhere-fails").await.with_bundle(&census);
    bench.write(
        "templates/config.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\n",
    );
    let ended = bench.apply("{}").await;
    assert!(matches!(ended.end, End::Failed { .. }), "{ended:#?}");
    let heard = census.take();
    assert_eq!(
        heard[..2],
        ["before count", "failed count: it cannot be counted"],
        "{heard:?}"
    );
    // What does not depend on it goes on, between its hooks.
    assert!(heard.contains(&"after obtain-source".to_owned()), "{heard:?}");
}
