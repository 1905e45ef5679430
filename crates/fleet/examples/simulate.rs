//! Runs simulated schedules, many or one: what `cargo xtask simulate` calls.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it speaks to its user")]

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use evenkeel_fleet::simulation::{Outcome, run};

/// How often progress is told.
const TOLD_EVERY: u64 = 100_000;
/// Faults after which it ends.
const FAULTS_MAX: usize = 10;

struct Arguments {
    first: u64,
    count: u64,
    trace: bool,
}

fn arguments() -> Result<Arguments, String> {
    let mut told = Arguments {
        first: 1,
        count: 1_000,
        trace: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || {
            let text = words.next().ok_or_else(|| format!("{word} needs a number"))?;
            text.parse()
                .map_err(|_| format!("{word} {text}: expected a whole number"))
        };
        match word.as_str() {
            "--seed" => told.first = number()?,
            "--schedules" => told.count = number()?,
            "--trace" => told.trace = true,
            _ => return Err(format!("{word}: expected --seed N, --schedules N, --trace")),
        }
    }
    Ok(told)
}

/// Runs seeds until none is left, on as many threads as there are processors.
fn run_all(told: &Arguments) -> Result<(Vec<Outcome>, u64), std::io::Error> {
    let (next, steps) = (AtomicU64::new(0), AtomicU64::new(0));
    let faults = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || -> Result<(), std::io::Error> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let failed = faults.lock().unwrap_or_else(PoisonError::into_inner).len();
            if number >= told.count || failed >= FAULTS_MAX {
                return Ok(());
            }
            let outcome = run(told.first.wrapping_add(number), told.trace)?;
            steps.fetch_add(outcome.steps, Ordering::Relaxed);
            for line in &outcome.trace {
                println!("{line}");
            }
            if told.trace {
                println!("digest {:016x}, {} steps", outcome.digest, outcome.steps);
            }
            if let Some(fault) = &outcome.fault {
                println!("seed {}: {fault}\n  again: {}", outcome.seed, outcome.replay());
                faults
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(outcome);
            }
            if (number + 1) % TOLD_EVERY == 0 {
                println!("{} schedules", number + 1);
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker
                .join()
                .map_err(|_| std::io::Error::other("a schedule panicked"))??;
        }
        Ok::<_, std::io::Error>(())
    })?;
    let faults = faults.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((faults, steps.into_inner()))
}

fn main() -> ExitCode {
    let told = match arguments() {
        Ok(told) => told,
        Err(problem) => {
            eprintln!("error: {problem}");
            return ExitCode::from(2);
        }
    };
    match run_all(&told) {
        Ok((faults, steps)) if faults.is_empty() => {
            println!(
                "{} schedules from seed {}, {steps} steps: no fault",
                told.count, told.first
            );
            ExitCode::SUCCESS
        }
        Ok((faults, _)) => {
            println!("{} schedules failed", faults.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
