//! How much the engine itself costs: 1,000 steps that do nothing are to be scheduled in under 1 ms.
//!
//! `cargo bench -p evenkeel-steps`
#![allow(clippy::unwrap_used, clippy::panic)]

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use divan::Bencher;
use evenkeel_steps::{
    Failure, Outcome, Pass, PassOptions, Pipeline, Predicate, Report, RuntimeFns, Spec, Step, step,
};
use jiff::Timestamp;

const STEPS: usize = 1000;

fn main() {
    divan::main();
}

struct Frame;

impl Pass for Frame {
    type State = bool;

    async fn gather(&self) -> Result<Arc<bool>, Failure> {
        Ok(Arc::new(true))
    }

    async fn publish(&self, _: &Report<bool>) -> Result<(), Failure> {
        Ok(())
    }
}

fn pipeline(shape: impl Fn(usize, Spec<bool>) -> Spec<bool>) -> Pipeline<bool> {
    Pipeline::builder("bench").steps(steps(shape)).build().unwrap()
}

fn steps(shape: impl Fn(usize, Spec<bool>) -> Spec<bool>) -> Vec<Box<dyn Step<bool>>> {
    (0..STEPS)
        .map(|n| {
            let step = shape(n, step(name(n))).run(|_, ()| async { Ok(Outcome::done()) });
            Box::new(step) as Box<dyn Step<bool>>
        })
        .collect()
}

fn name(n: usize) -> String {
    format!("step-{n:04}")
}

/// Each step after the two before it.
fn ladder(n: usize, spec: Spec<bool>) -> Spec<bool> {
    (1..=2)
        .filter_map(|back| n.checked_sub(back))
        .fold(spec, |spec, above| spec.after(name(above)))
}

fn run(bencher: Bencher<'_, '_>, pipeline: &Pipeline<bool>, parallelism: usize) {
    let begin = Instant::now();
    let options = PassOptions::new(Arc::new(RuntimeFns::new(
        || Timestamp::UNIX_EPOCH,
        move || begin.elapsed(),
        |_: Duration| Box::pin(std::future::pending()),
    )))
    .parallelism(parallelism);
    bencher.bench_local(|| {
        let mut pass = pin!(pipeline.run(&Frame, options.clone()));
        match pass.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(report) => report,
            Poll::Pending => panic!("these steps never wait"),
        }
    });
}

#[divan::bench(args = [1, 8])]
fn independent(bencher: Bencher<'_, '_>, parallelism: usize) {
    run(bencher, &pipeline(|_, spec| spec), parallelism);
}

#[divan::bench(args = [1, 8])]
fn ladder_of_edges(bencher: Bencher<'_, '_>, parallelism: usize) {
    run(bencher, &pipeline(ladder), parallelism);
}

#[divan::bench]
fn nothing_selected(bencher: Bencher<'_, '_>) {
    let off = Predicate::new("on", |on: &bool| !on);
    run(bencher, &pipeline(|_, spec| spec.when(off.clone())), 1);
}

#[divan::bench]
fn build(bencher: Bencher<'_, '_>) {
    bencher
        .with_inputs(|| steps(ladder))
        .bench_local_values(|steps| Pipeline::builder("bench").steps(steps).build().unwrap());
}
