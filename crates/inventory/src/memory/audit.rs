//! The audit log. Its digests have no key: whoever could change it could change the program.

use async_trait::async_trait;
use evenkeel_core::{ClusterId, Digest};
use evenkeel_telemetry::request;
use serde_json::Value;

use super::{MemoryStore, Transaction};
use crate::sql::rows::{int, millis, moment, refuse_nul, uint};
use crate::{
    Audit, AuditAction, AuditEntry, AuditFault, AuditFilter, AuditVerdict, Cursor, Error, Page, PageRequest,
};

fn digest(before: Option<Digest>, entry: &AuditEntry) -> Digest {
    let before = before.map(|digest| digest.to_string()).unwrap_or_default();
    let number = entry.number.to_string();
    let at = entry.at.to_string();
    let request = entry
        .request_id
        .as_ref()
        .map(|id| format!("request {id}"))
        .unwrap_or_default();
    let detail = entry.detail.to_string();
    Digest::of_parts([
        &before,
        &number,
        &at,
        &entry.actor,
        &request,
        &entry.action,
        &entry.target,
        &detail,
    ])
}

impl Transaction<'_> {
    /// Writes an entry about what this call did, if an API call asked for it.
    pub(super) fn audit(&mut self, action: AuditAction, target: &str, detail: &Value) {
        if request::current().is_some() {
            self.audit_always(action, target, detail);
        }
    }

    /// The same by a cluster's name.
    pub(super) fn audit_cluster(&mut self, action: AuditAction, cluster: &ClusterId, detail: &Value) {
        let target = self.cluster_target(cluster);
        self.audit(action, &target, detail);
    }

    pub(super) fn cluster_target(&self, cluster: &ClusterId) -> String {
        match self.rows.clusters.get(cluster) {
            Some(row) => format!("cluster/{}", row.name),
            None => format!("cluster/{cluster}"),
        }
    }

    /// The same, also where a process did it by itself.
    pub(super) fn audit_always(&mut self, action: AuditAction, target: &str, detail: &Value) {
        let request_id = request::current();
        let actor = match (request::actor(), &request_id) {
            (Some(actor), _) => actor,
            (None, Some(_)) => "anonymous".to_owned(),
            (None, None) => "evenkeel".to_owned(),
        };
        let (last, before) = self.rows.audit_head;
        let mut entry = AuditEntry {
            number: last + 1,
            at: moment(self.now),
            actor,
            request_id,
            action: action.as_str().to_owned(),
            target: target.to_owned(),
            detail: detail.clone(),
            digest: Digest::of(""),
        };
        entry.digest = digest(before, &entry);
        let rows = self.write();
        rows.audit_head = (entry.number, Some(entry.digest));
        rows.audit.insert(entry.number, entry);
    }

    fn verify(&self, known: Option<(u64, Digest)>) -> AuditVerdict {
        let rows = &*self.rows;
        let verdict = |entries, fault: Option<(u64, &str)>| AuditVerdict {
            entries,
            head: rows.audit_head,
            fault: fault.map(|(number, problem)| AuditFault {
                number,
                problem: problem.to_owned(),
            }),
        };
        let (mut number, mut before) = rows.audit_anchor;
        let mut met = known.is_none_or(|(known, _)| known <= number);
        let mut entries = 0;
        for entry in rows.audit.values() {
            number += 1;
            if entry.number != number || digest(before, entry) != entry.digest {
                return verdict(entries, Some((number, "it, or the one before it, was changed")));
            }
            entries += 1;
            before = Some(entry.digest);
            if let Some((known, expected)) = known.filter(|(known, _)| *known == number) {
                met = true;
                if expected != entry.digest {
                    return verdict(entries, Some((known, "it is not the one that was written down")));
                }
            }
        }
        let cut_off = "the chain ends before the entry that was written down: its end was cut off";
        verdict(entries, (!met).then_some((number, cut_off)))
    }

    /// Takes entries at the beginning of the log away.
    pub(super) fn clean_audit(&mut self, before: i64) -> u64 {
        let old = self
            .rows
            .audit
            .values()
            .take_while(|entry| millis(entry.at) < before);
        let Some((number, digest)) = old.last().map(|entry| (entry.number, entry.digest)) else {
            return 0;
        };
        let rows = self.write();
        rows.audit_anchor = (number, Some(digest));
        let kept = rows.audit.split_off(&(number + 1));
        std::mem::replace(&mut rows.audit, kept).len() as u64
    }
}

#[async_trait]
impl Audit for MemoryStore {
    async fn note_done(&self, action: AuditAction, target: &str, detail: Value) -> Result<(), Error> {
        refuse_nul("the target of an audit entry", target)?;
        refuse_nul("the detail of an audit entry", &detail.to_string())?;
        self.call("note_done", |transaction| {
            transaction.audit_always(action, target, &detail);
            Ok(())
        })
        .await
    }

    async fn audit_entries(
        &self,
        filter: &AuditFilter,
        page: &PageRequest,
    ) -> Result<Page<AuditEntry>, Error> {
        self.call("audit_entries", |transaction| {
            let before = uint(page.number_cursor()?);
            let limit = page.limit();
            let wanted = |entry: &AuditEntry| {
                filter
                    .target
                    .as_ref()
                    .is_none_or(|target| *target == entry.target)
                    && filter.actor.as_ref().is_none_or(|actor| *actor == entry.actor)
                    && filter.since.is_none_or(|since| since <= entry.at)
                    && filter.until.is_none_or(|until| entry.at < until)
            };
            let entries = transaction
                .rows
                .audit
                .range(..before)
                .rev()
                .map(|(_, entry)| entry);
            let found: Vec<_> = entries
                .filter(|entry| wanted(entry))
                .take(limit as usize + 1)
                .collect();
            Ok(Page::collect(&found, limit, |entry| {
                let number = int(entry.number).to_string();
                (Cursor(number.clone()), number, Ok((*entry).clone()))
            }))
        })
        .await
    }

    async fn verify_audit(&self, known: Option<(u64, Digest)>) -> Result<AuditVerdict, Error> {
        self.call("verify_audit", |transaction| Ok(transaction.verify(known)))
            .await
    }
}
