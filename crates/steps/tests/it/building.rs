//! What `build` refuses, in which words, and how a good graph prints.

use evenkeel_steps::{
    ClosureStep, Error, Outcome, Pipeline, PipelineBuilder, Predicate, Problem, Slot, Spec, step,
};

const SOURCE: Slot<u8> = Slot::new("source");
const MANIFESTS: Slot<String> = Slot::new("manifests");
const KEPT: Slot<u64> = Slot::new("kept");

fn idle(spec: Spec<()>) -> ClosureStep<()> {
    spec.run(|_, ()| async { Ok(Outcome::done()) })
}

fn named(name: &str) -> ClosureStep<()> {
    idle(step(name))
}

fn builder() -> PipelineBuilder<()> {
    Pipeline::builder("operation")
}

fn problems(builder: PipelineBuilder<()>) -> Vec<String> {
    match builder.build() {
        Err(Error::Graph { problems, .. }) => problems.iter().map(Problem::to_string).collect(),
        other => panic!("built: {other:?}"),
    }
}

#[test]
fn names_the_unknown_step_and_the_known_ones() {
    let built = builder()
        .step(idle(step("apply").after("plann").before("pruune")))
        .step(named("plan"));
    assert_eq!(
        problems(built),
        [
            "step \"apply\" is to run after \"plann\", but there is no such step (there are: apply, plan)",
            "step \"apply\" is to run before \"pruune\", but there is no such step (there are: apply, plan)",
        ]
    );
}

#[test]
fn spells_the_whole_cycle_with_the_cause_of_each_hop() {
    let built = builder()
        .step(
            step("render")
                .needs(SOURCE)
                .provides(MANIFESTS)
                .after("record")
                .run(|_, _| async { Ok(Outcome::Done(String::new())) }),
        )
        .step(
            step("source")
                .provides(SOURCE)
                .run(|_, ()| async { Ok(Outcome::Done(1)) }),
        )
        .step(
            step("apply")
                .needs(MANIFESTS)
                .before("record")
                .run(|_, _| async { Ok(Outcome::done()) }),
        )
        .step(named("record"))
        .step(idle(step("bystander").after("record")));
    assert_eq!(
        problems(built),
        [
            "the steps wait for each other: apply → record (apply runs before it) → render (runs after record) \
          → apply (needs slot \"manifests\")"
        ]
    );
}

#[test]
fn reports_independent_cycles_and_a_step_that_waits_for_itself() {
    let built = builder()
        .step(idle(step("a").after("b")))
        .step(idle(step("b").after("a")))
        .step(idle(step("x").after("y")))
        .step(idle(step("y").after("x")))
        .step(idle(step("self").after("self")));
    assert_eq!(
        problems(built),
        [
            "the steps wait for each other: a → b (runs after a) → a (runs after b)",
            "the steps wait for each other: self → self (runs after self)",
            "the steps wait for each other: x → y (runs after x) → x (runs after y)",
        ]
    );
}

#[test]
fn refuses_double_names_bad_names_and_bad_slots_all_at_once() {
    const OTHER: Slot<i32> = Slot::new("source");
    let built = builder()
        .given(KEPT)
        .step(named("twice"))
        .step(named("twice"))
        .step(named("Big Name"))
        .step(
            step("one")
                .provides((SOURCE, KEPT))
                .run(|_, ()| async { Ok(Outcome::Done((1, 2))) }),
        )
        .step(
            step("two")
                .provides(OTHER)
                .run(|_, ()| async { Ok(Outcome::Done(1)) }),
        )
        .step(
            step("reader")
                .needs(MANIFESTS)
                .run(|_, _| async { Ok(Outcome::done()) }),
        );
    assert_eq!(
        problems(built),
        [
            "\"Big Name\" is not a valid name: only a-z, 0-9, '-', '_' and '.' are allowed",
            "2 steps are named \"twice\"",
            "slot \"source\" is used with two types: u8 and i32",
            "step \"reader\" needs slot \"manifests\", but no step provides it and it is not declared as given \
             from outside",
            "slot \"kept\" is provided by more than one: the caller, step \"one\"",
            "slot \"source\" is provided by more than one: step \"one\", step \"two\"",
        ]
    );
}

#[test]
fn the_error_names_the_pipeline_and_lists_every_problem() {
    let error = Pipeline::<()>::builder("No")
        .step(idle(step("a").after("b")))
        .build()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "pipeline \"No\" cannot be built:\
         \n  - \"No\" is not a valid name: only a-z, 0-9, '-', '_' and '.' are allowed\
         \n  - step \"a\" is to run after \"b\", but there is no such step (there are: a)"
    );
}

fn operation(shuffled: bool) -> Pipeline<bool> {
    let chart = Predicate::new("chart", |state: &bool| *state);
    let suspended = Predicate::new("suspended", |state: &bool| !*state);
    let mut steps: Vec<Box<dyn evenkeel_steps::Step<bool>>> = vec![
        Box::new(
            step("source")
                .provides(SOURCE)
                .run(|_, ()| async { Ok(Outcome::Done(1)) }),
        ),
        Box::new(
            step("render")
                .needs((SOURCE, KEPT.optional()))
                .provides(MANIFESTS)
                .when(chart.clone() & !suspended)
                .run(|_, _| async { Ok(Outcome::Done(String::new())) }),
        ),
        Box::new(
            step("apply")
                .needs(MANIFESTS)
                .timeout(std::time::Duration::from_secs(300))
                .act(|_, _| async { Ok(Outcome::done()) }),
        ),
        Box::new(
            step("ready")
                .after_success("apply")
                .live_only()
                .run(|_, ()| async { Ok(Outcome::done()) }),
        ),
        Box::new(
            step("label")
                .weight(-5)
                .when(chart)
                .run(|_, ()| async { Ok(Outcome::done()) }),
        ),
        Box::new(step("aaa").run(|_, ()| async { Ok(Outcome::done()) })),
    ];
    if shuffled {
        steps.reverse();
    }
    Pipeline::builder("operation")
        .given(KEPT)
        .steps(steps)
        .build()
        .unwrap()
}

#[test]
fn prints_the_graph_the_same_whatever_the_order_of_registration() {
    insta::assert_snapshot!(operation(false).describe(), @r#"
    pipeline operation
    given kept
      1. label [weight -5]
           when     chart
           timeout  60s
      2. aaa
           timeout  60s
      3. source
           provides source
           timeout  60s
      4. render
           when     chart & !suspended
           after    source (slot source)
           may use  kept
           provides manifests
           timeout  60s
      5. apply
           after    render (slot manifests)
           timeout  300s
      6. ready
           after    apply (must succeed)
           timeout  60s
           dry run  skipped
    "#);
    assert_eq!(
        operation(false).describe().to_string(),
        operation(true).describe().to_string()
    );
    assert_eq!(
        operation(false).describe().dot(),
        operation(true).describe().dot()
    );
}

#[test]
fn draws_the_graph_for_graphviz() {
    insta::assert_snapshot!(operation(true).describe().dot(), @r#"
    digraph "operation" {
      rankdir=LR;
      node [shape=box];
      "label" [label="label\nwhen chart"];
      "aaa" [label="aaa"];
      "source" [label="source"];
      "render" [label="render\nwhen chart & !suspended"];
      "source" -> "render" [label="source"];
      "apply" [label="apply"];
      "render" -> "apply" [label="manifests"];
      "ready" [label="ready"];
      "apply" -> "ready" [label="", style=bold];
    }
    "#);
}
