//! Processes and chores.

use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::{Fence, Lease};
use jiff::Timestamp;
use uuid::Uuid;

use super::rows::{ChoreRow, InstanceRow};
use super::{MemoryStore, Transaction};
use crate::sql::rows::{millis, moment, span};
use crate::{Chore, Error, Instance, PAGE_MAX, Processes, SeenInstance, Signal};

impl Transaction<'_> {
    fn note_instance(&mut self, instance: &Instance) {
        let now = self.now;
        let known = self
            .rows
            .instances
            .get(&instance.id)
            .map(|row| row.instance.draining);
        if known != Some(instance.draining) {
            self.signal(Signal::InstancesChanged);
        }
        let row = self
            .write()
            .instances
            .entry(instance.id)
            .or_insert_with(|| InstanceRow {
                instance: instance.clone(),
                started_at: now,
                last_seen_at: now,
            });
        row.last_seen_at = now;
        row.instance.draining = instance.draining;
    }

    fn instances(&self, since: i64) -> Vec<SeenInstance> {
        let mut seen: Vec<_> = self
            .rows
            .instances
            .values()
            .filter(|row| row.last_seen_at >= since)
            .collect();
        seen.sort_by_key(|row| std::cmp::Reverse(row.last_seen_at));
        seen.truncate(PAGE_MAX as usize);
        seen.sort_by_key(|row| (row.started_at, row.instance.id));
        let view = |row: &InstanceRow| SeenInstance {
            instance: row.instance.clone(),
            started_at: moment(row.started_at),
            last_seen_at: moment(row.last_seen_at),
        };
        seen.into_iter().map(view).collect()
    }

    fn take_chore(&mut self, chore: Chore, lease: Duration, every: Duration) -> Option<Lease> {
        let now = self.now;
        let before = self.rows.chores.get(chore.as_str());
        if let Some(row) = before
            && (row.lease_until > now || row.done_at.is_some_and(|done| done > now - span(every)))
        {
            return None;
        }
        let row = ChoreRow {
            fence: before.map_or(Fence(1), |row| row.fence.next()),
            lease_until: now + span(lease),
            done_at: before.and_then(|row| row.done_at),
        };
        let lease = Lease {
            fence: row.fence,
            until: moment(row.lease_until),
        };
        self.write().chores.insert(chore.as_str(), row);
        Some(lease)
    }

    /// Writes to a chore that is held under `fence`. Answers whether it is.
    fn write_chore(&mut self, chore: Chore, fence: Fence, until: i64, done: bool) -> bool {
        let now = self.now;
        let row = self.write().chores.get_mut(chore.as_str());
        let Some(row) = row.filter(|row| row.fence == fence && row.lease_until > now) else {
            return false;
        };
        row.lease_until = until;
        if done {
            row.done_at = Some(now);
        }
        true
    }
}

#[async_trait]
impl Processes for MemoryStore {
    async fn note_instance(&self, instance: &Instance) -> Result<(), Error> {
        self.call("note_instance", |transaction| {
            transaction.note_instance(instance);
            Ok(())
        })
        .await
    }

    async fn forget_instance(&self, id: Uuid) -> Result<(), Error> {
        self.call("forget_instance", |transaction| {
            transaction.write().instances.remove(&id);
            transaction.signal(Signal::InstancesChanged);
            Ok(())
        })
        .await
    }

    async fn instances(&self, since: Timestamp) -> Result<Vec<SeenInstance>, Error> {
        self.call(
            "instances",
            |transaction| Ok(transaction.instances(millis(since))),
        )
        .await
    }

    async fn forget_instances(&self, before: Timestamp) -> Result<(), Error> {
        let before = millis(before);
        self.call("forget_instances", |transaction| {
            transaction
                .write()
                .instances
                .retain(|_, row| row.last_seen_at >= before);
            Ok(())
        })
        .await
    }

    async fn take_chore(
        &self,
        chore: Chore,
        _owner: Uuid,
        lease: Duration,
        every: Duration,
    ) -> Result<Option<Lease>, Error> {
        self.call("take_chore", |transaction| {
            Ok(transaction.take_chore(chore, lease, every))
        })
        .await
    }

    async fn keep_chore(&self, chore: Chore, fence: Fence, lease: Duration) -> Result<Option<Lease>, Error> {
        self.call("keep_chore", |transaction| {
            let until = transaction.now + span(lease);
            let held = transaction.write_chore(chore, fence, until, false);
            Ok(held.then(|| Lease {
                fence,
                until: moment(until),
            }))
        })
        .await
    }

    async fn end_chore(&self, chore: Chore, fence: Fence, done: bool) -> Result<(), Error> {
        self.call("end_chore", |transaction| {
            let now = transaction.now;
            transaction.write_chore(chore, fence, now, done);
            Ok(())
        })
        .await
    }
}
