//! A kind in one file, a step of its own in another: `cargo run -p evenkeel-steps --example mailbox`.
//!
//! The kind is a mailbox on some mail server. This file has its snapshot, its pipeline and its frame; `quota.rs` has a
//! step that was added later without touching the others. The example plans, runs, runs again and tears down.

#![allow(clippy::print_stdout, reason = "an example that shows what it does")]

mod quota;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_core::Clock as _;
use evenkeel_steps::{
    Change, Decision, Error, Failure, Guard, Mode, Outcome, Pass, PassOptions, Pipeline, Report, RuntimeFns,
    Slot, step,
};
use evenkeel_telemetry::SystemClock;

/// What is outside: a mail server with quotas by address.
#[derive(Default)]
pub(crate) struct Server(Mutex<BTreeMap<String, Option<u32>>>);

/// What one pass looks at; nobody changes it meanwhile.
pub(crate) struct Mailbox {
    pub(crate) address: String,
    pub(crate) quota_mb: Option<u32>,
    pub(crate) protected: bool,
    pub(crate) server: Arc<Server>,
}

/// A mailbox that exists: whoever needs one comes after the step that makes it.
pub(crate) struct Account {
    pub(crate) address: String,
}

/// See [`Account`].
pub(crate) const ACCOUNT: Slot<Account> = Slot::new("account");

impl Server {
    pub(crate) fn with<R>(&self, look: impl FnOnce(&mut BTreeMap<String, Option<u32>>) -> R) -> R {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The kind's pipeline. A new step is one file and one line here.
fn pipeline() -> Result<Pipeline<Mailbox>, Error> {
    let account = step::<Mailbox>("account")
        .condition("MailboxReady")
        .provides(ACCOUNT);
    let account = account.decide(|cx, ()| async move {
        let mailbox = cx.shared_state();
        let account = Account {
            address: mailbox.address.clone(),
        };
        if mailbox.server.with(|known| known.contains_key(&mailbox.address)) {
            return Ok(Decision::End(Outcome::Done(account)));
        }
        let plan = vec![Change::new("create", mailbox.address.clone())];
        Ok(Decision::act(plan, async move {
            mailbox
                .server
                .with(|known| known.insert(mailbox.address.clone(), None));
            Ok(Outcome::changed_with(account, "created"))
        }))
    });
    let remove = step::<Mailbox>("remove-account").decide(|cx, ()| async move {
        let mailbox = cx.shared_state();
        if !mailbox.server.with(|known| known.contains_key(&mailbox.address)) {
            return Ok(Decision::End(Outcome::done()));
        }
        let plan = vec![Change::new("delete", mailbox.address.clone())];
        Ok(Decision::act(plan, async move {
            mailbox.server.with(|known| known.remove(&mailbox.address));
            Ok(Outcome::changed("removed"))
        }))
    });
    Pipeline::builder("mailbox")
        .step(account.torn_down_by(remove))
        .step(quota::step())
        .build()
}

/// The frame around the steps: where the snapshot comes from, what forbids, who hears of it.
struct Frame(Arc<Mailbox>);

impl Pass for Frame {
    type State = Mailbox;

    async fn gather(&self) -> Result<Arc<Mailbox>, Failure> {
        Ok(Arc::clone(&self.0))
    }

    fn guard(&self, mailbox: &Mailbox) -> Guard {
        if mailbox.protected {
            return Guard::forbid(["delete"], "the mailbox is protected");
        }
        Guard::Proceed
    }

    async fn publish(&self, report: &Report<Mailbox>) -> Result<(), Failure> {
        print!("{report}");
        for condition in report.conditions() {
            println!(
                "  {}: {:?}, {}",
                condition.name, condition.verdict, condition.reason
            );
        }
        println!();
        Ok(())
    }
}

fn frame(server: &Arc<Server>, protected: bool) -> Frame {
    Frame(Arc::new(Mailbox {
        address: "ada@example.org".to_owned(),
        quota_mb: Some(500),
        protected,
        server: Arc::clone(server),
    }))
}

fn options() -> PassOptions {
    let begin = tokio::time::Instant::now();
    PassOptions::new(Arc::new(RuntimeFns::new(
        || SystemClock.now(),
        move || begin.elapsed(),
        |delay| Box::pin(tokio::time::sleep(delay)),
    )))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let server = Arc::new(Server::default());
    let frame = |protected| frame(&server, protected);
    let options = options();
    let pipeline = pipeline()?;
    println!("{}", pipeline.describe());

    let _ = pipeline
        .run(&frame(false), options.clone().mode(Mode::DryRun))
        .await;
    let _ = pipeline.run(&frame(false), options.clone()).await;
    let _ = pipeline.run(&frame(false), options.clone()).await;
    if let Some(teardown) = pipeline.teardown() {
        let _ = teardown.run(&frame(true), options.clone()).await;
        let _ = teardown.run(&frame(false), options).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_kind_in_one_file_does_all_that_a_kind_does() {
        let server = Arc::new(Server::default());
        let known = || server.with(|known| known.clone().into_iter().collect::<Vec<_>>());
        let pipeline = pipeline().unwrap_or_else(|error| panic!("{error}"));
        let pass = async |mode| pipeline.run(&frame(&server, false), options().mode(mode)).await;

        let report = pass(Mode::DryRun).await;
        assert_eq!(report.conclusion().label(), "planned", "{report}");
        assert_eq!(known(), []);
        let report = pass(Mode::Live).await;
        assert_eq!(report.conclusion().label(), "changed", "{report}");
        assert_eq!(known(), [("ada@example.org".to_owned(), Some(500))]);
        let report = pass(Mode::Live).await;
        assert_eq!(report.conclusion().label(), "unchanged", "{report}");

        let teardown = pipeline
            .teardown()
            .unwrap_or_else(|| panic!("it has no way back"));
        let report = teardown.run(&frame(&server, true), options()).await;
        assert_eq!(known().len(), 1, "it is protected: {report}");
        let report = teardown.run(&frame(&server, false), options()).await;
        assert_eq!(known(), [], "{report}");
    }
}
