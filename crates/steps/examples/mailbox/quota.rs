//! The step that keeps a mailbox's quota.

use evenkeel_steps::{Change, Context, Effect, Failure, Outcome, Plan, Predicate, Step};
use std::sync::Arc;

use crate::{ACCOUNT, Account, Mailbox};

struct Quota;

/// The step, with its place in the graph: it needs the account, and runs only for mailboxes with a quota.
pub(crate) fn step() -> impl Step<Mailbox> {
    evenkeel_steps::step("quota")
        .condition("MailboxReady")
        .needs(ACCOUNT)
        .when(Predicate::new("has a quota", |mailbox: &Mailbox| {
            mailbox.quota_mb.is_some()
        }))
        .effect(Quota)
}

impl Effect<Mailbox, Arc<Account>, ()> for Quota {
    type Observation = Option<u32>;

    async fn observe(&self, cx: &Context<Mailbox>, account: &Arc<Account>) -> Result<Option<u32>, Failure> {
        let server = &cx.state().server;
        Ok(server.with(|known| known.get(&account.address).copied().flatten()))
    }

    fn plan(&self, mailbox: &Mailbox, account: &Arc<Account>, seen: &Option<u32>) -> Result<Plan, Failure> {
        if *seen == mailbox.quota_mb {
            return Ok(Plan::Settled(()));
        }
        let detail = format!("{seen:?} → {:?} MB", mailbox.quota_mb);
        let change = Change::new("update", format!("quota of {}", account.address)).detail(detail);
        Ok(Plan::Changes(vec![change]))
    }

    async fn act(
        &self,
        cx: &Context<Mailbox>,
        account: Arc<Account>,
        _: Option<u32>,
        _: Vec<Change>,
    ) -> Result<Outcome, Failure> {
        let mailbox = cx.state();
        mailbox
            .server
            .with(|known| known.insert(account.address.clone(), mailbox.quota_mb));
        Ok(Outcome::changed("quota set"))
    }
}
