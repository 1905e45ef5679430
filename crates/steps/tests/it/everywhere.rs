//! One step and one hook, registered once for all kinds, are in every pipeline and on every way back (L12, L24).

use std::sync::{Arc, Mutex};

use evenkeel_steps::{Bundle, Context, Failure, Hook, Outcome, Pipeline, Step, step};
use futures::future::BoxFuture;

use crate::support::{endings, options, run};

/// Knows nothing of any kind.
#[derive(Clone, Default)]
struct Census(Arc<Mutex<Vec<String>>>);

impl<S: Send + Sync + 'static> Bundle<S> for Census {
    fn steps(&self) -> Vec<Box<dyn Step<S>>> {
        let count = step::<S>("count")
            .weight(-100)
            .run(|_, ()| async { Ok(Outcome::done()) });
        let forget = step::<S>("forget").act(|_, ()| async { Ok(Outcome::changed("forgotten")) });
        vec![Box::new(count.torn_down_by(forget))]
    }

    fn hooks(&self) -> Vec<Box<dyn Hook<S>>> {
        vec![Box::new(self.clone())]
    }
}

impl<S: Send + Sync + 'static> Hook<S> for Census {
    fn before<'a>(&'a self, cx: &'a Context<S>) -> BoxFuture<'a, Result<(), Failure>> {
        self.0.lock().unwrap().push(cx.step().to_string());
        Box::pin(async { Ok(()) })
    }
}

struct Tenant;
struct Repository;

fn pipeline<S: Send + Sync + 'static>(own: &str, census: &Census) -> Pipeline<S> {
    Pipeline::<S>::builder(own)
        .bundle(census)
        .step(step::<S>(own).run(|_, ()| async { Ok(Outcome::done()) }))
        .build()
        .unwrap()
}

async fn seen<S: Send + Sync + 'static>(own: &str, state: fn() -> S) -> [Vec<String>; 3] {
    let census = Census::default();
    let pipeline = pipeline::<S>(own, &census);
    let there = endings(&run(&pipeline, state(), options()).await);
    let back = endings(&run(&pipeline.teardown().unwrap(), state(), options()).await);
    let hooked = census.0.lock().unwrap().clone();
    [there, back, hooked]
}

#[tokio::test(start_paused = true)]
async fn what_is_registered_for_all_kinds_is_in_every_pipeline() {
    let expected = |own: &str| {
        [
            vec!["count done".to_owned(), format!("{own} done")],
            vec!["forget changed: forgotten".to_owned()],
            vec!["count".to_owned(), own.to_owned(), "forget".to_owned()],
        ]
    };
    assert_eq!(seen("tenant", || Tenant).await, expected("tenant"));
    assert_eq!(seen("repository", || Repository).await, expected("repository"));
    assert_eq!(seen("operation", || ()).await, expected("operation"));
}
