//! Deletion in reverse order (E4, L4).

use evenkeel_steps::{ClosureStep, Failure, Outcome, Pipeline, Slot, step};

use crate::support::{endings, options, run};

fn acts(name: &str) -> ClosureStep<()> {
    step(name).act(|_, ()| async { Ok(Outcome::changed("gone")) })
}

fn makes(name: &str, above: &[&str]) -> ClosureStep<()> {
    above
        .iter()
        .fold(step(name), |spec, above| spec.after(*above))
        .act(|_, ()| async { Ok(Outcome::changed("made")) })
}

#[tokio::test(start_paused = true)]
async fn what_came_last_goes_first() {
    const PROJECT: Slot<u32> = Slot::new("project");
    let pipeline = Pipeline::builder("repo")
        .step(
            step("project")
                .provides(PROJECT)
                .act(|_, ()| async { Ok(Outcome::changed_with(7, "made")) })
                .torn_down_by(acts("remove-project")),
        )
        // Has nothing to take away, and hands the order on.
        .step(
            step("settle")
                .needs(PROJECT)
                .run(|_, _| async { Ok(Outcome::done()) }),
        )
        .step(makes("keys", &["settle"]).torn_down_by(acts("a-keys")))
        .step(makes("tokens", &["keys", "project"]).torn_down_by(acts("z-tokens")))
        .step(makes("apart", &[]).torn_down_by(acts("remove-apart")))
        .build()
        .unwrap();
    let teardown = pipeline.teardown().unwrap();
    assert_eq!(teardown.name().as_str(), "repo.teardown");
    assert!(
        teardown.teardown().is_none(),
        "there is no way back from the way back"
    );
    let report = run(&teardown, (), options()).await;
    assert_eq!(
        endings(&report),
        [
            "remove-apart changed: gone",
            "z-tokens changed: gone",
            "a-keys changed: gone",
            "remove-project changed: gone"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_stands_on_something_keeps_it_from_going() {
    let stuck = step("remove-keys").act(|_, ()| async { Err(Failure::transient("no answer")) });
    let pipeline = Pipeline::builder("repo")
        .step(makes("project", &[]).torn_down_by(acts("remove-project")))
        .step(makes("keys", &["project"]).torn_down_by(stuck))
        .step(makes("vault", &[]).torn_down_by(acts("remove-vault")))
        .build()
        .unwrap();
    let report = run(&pipeline.teardown().unwrap(), (), options()).await;
    assert_eq!(
        endings(&report),
        [
            "remove-keys failed: no answer",
            "remove-project skipped: blocked by remove-keys: failed: no answer",
            "remove-vault changed: gone",
        ]
    );
}

#[test]
fn a_pipeline_without_teardowns_has_no_way_back() {
    let pipeline = Pipeline::builder("repo").step(makes("a", &[])).build().unwrap();
    assert!(pipeline.teardown().is_none());
}

#[test]
fn mistakes_in_teardowns_are_found_when_the_pipeline_is_built() {
    let error = Pipeline::builder("repo")
        .step(makes("a", &[]).torn_down_by(acts("remove")))
        .step(makes("b", &["a"]).torn_down_by(acts("remove")))
        .build()
        .unwrap_err()
        .to_string();
    assert!(error.contains("\"repo.teardown\""), "{error}");
    assert!(error.contains("2 steps are named \"remove\""), "{error}");
}
