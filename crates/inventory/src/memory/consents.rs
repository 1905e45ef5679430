//! Questions before deletions, and the consent that was given.

use async_trait::async_trait;
use evenkeel_core::{ClusterId, ComponentName, OperationId, OperationStateKind};
use evenkeel_telemetry::request;
use jiff::Timestamp;

use super::rows::{ConsentRow, Rows};
use super::{MemoryStore, Transaction};
use crate::sql::rows::{int, millis, moment, span};
use crate::{AuditAction, Consent, ConsentKey, Consents, DELETIONS_KEPT, Error, Level, Question, Signal};

impl Rows {
    /// Whether a question counts: its version is the newest, or the operation that asked is open.
    fn counts(&self, row: &ConsentRow) -> bool {
        let newest = self.clusters.get(&row.cluster).map(|cluster| cluster.version);
        newest == Some(int(row.consent.key.version.0))
            || self
                .operations
                .get(&row.consent.operation)
                .is_some_and(|operation| operation.is_open())
    }
}

impl Transaction<'_> {
    fn ask_consent(&mut self, question: &Question) -> Result<Consent, Error> {
        let needed = &question.needed;
        let cluster = question.operation.cluster();
        self.rows.live_cluster(cluster)?;
        let key = ConsentKey {
            version: question.version,
            component: needed.component.clone(),
            kind: needed.kind,
            plan: needed.digest(),
        };
        let goes = |row: &ConsentRow| {
            let of = &row.consent;
            row.cluster == *cluster
                && ((of.key.version < key.version && !self.rows.counts(row))
                    || (of.key.component == key.component
                        && of.given_at.is_none()
                        && of.key.plan != key.plan))
        };
        let kept: Vec<bool> = self.rows.consents.iter().map(|row| !goes(row)).collect();
        let mut kept = kept.into_iter();
        let now = self.now;
        let consents = &mut self.write().consents;
        consents.retain(|_| kept.next().unwrap_or(true));
        let place = consents
            .iter()
            .position(|row| row.cluster == *cluster && row.consent.key == key);
        let before = place.map(|place| consents.remove(place)).filter(|row| !row.used);
        let before = before.map(|row| row.consent);
        let consent = Consent {
            operation: question.operation.clone(),
            deletions: needed.deletions.iter().take(DELETIONS_KEPT).cloned().collect(),
            deleted: needed.deletions.len() as u64,
            of: needed.of as u64,
            asked_at: before
                .as_ref()
                .map_or_else(|| moment(now), |before| before.asked_at),
            until: before
                .as_ref()
                .map_or_else(|| moment(now + span(question.within)), |before| before.until),
            given_at: before.as_ref().and_then(|before| before.given_at),
            request_id: before.and_then(|before| before.request_id),
            key,
        };
        consents.push(ConsentRow {
            cluster: cluster.clone(),
            consent: consent.clone(),
            used: false,
        });
        self.signal(Signal::ClusterChanged);
        Ok(consent)
    }

    fn give_consent(
        &mut self,
        cluster: &ClusterId,
        key: &ConsentKey,
        deadline: i64,
    ) -> Result<Consent, Error> {
        let (now, request_id) = (self.now, request::current());
        let rows = &*self.rows;
        let is_it = |row: &ConsentRow| {
            row.cluster == *cluster && row.consent.key == *key && !row.used && rows.counts(row)
        };
        let place = rows.consents.iter().position(is_it).ok_or_else(|| {
            let ConsentKey {
                version,
                component,
                kind,
                plan,
            } = key;
            Error::not_found(
                "question of consent",
                format!("{component}, version {version}, {kind}, {plan}"),
            )
        })?;
        let Some(row) = self.write().consents.get_mut(place) else {
            return Err(Error::not_found("question of consent", &key.component));
        };
        if row.consent.given_at.is_none() {
            row.consent.given_at = Some(moment(now));
            row.consent.request_id = request_id;
        }
        let given = row.consent.clone();
        if self.go_on(&given.operation, deadline) {
            self.signal(Signal::OperationReady);
        }
        let detail = serde_json::json!({
            "version": key.version, "component": key.component, "kind": key.kind, "planDigest": key.plan,
            "deleted": given.deleted, "of": given.of, "operation": given.operation,
        });
        let target = self.cluster_target(cluster);
        self.audit_always(AuditAction::Consent, &target, &detail);
        self.signal(Signal::ClusterChanged);
        Ok(given)
    }

    /// Returns an operation to the queue if it waits, gives its run time, and says so in its timeline.
    fn go_on(&mut self, id: &OperationId, deadline: i64) -> bool {
        let waiting = self.rows.operations.get(id);
        let Some(row) = waiting.filter(|row| row.kind_of_state() == OperationStateKind::Waiting) else {
            return false;
        };
        let run = row.run.clone();
        if let Some(run) = self.write().runs.get_mut(&run) {
            run.deadline = run.deadline.max(deadline);
        }
        self.requeue_waiting(id);
        let by = match request::current() {
            Some(request_id) => format!("by request {request_id}"),
            None => "before it began to wait".to_owned(),
        };
        self.say(
            id,
            Level::Info,
            format!("consent was given {by}; the operation returned to the queue"),
        );
        true
    }

    fn resume_consented(&mut self, limit: u32, deadline: i64) -> u32 {
        let given = self.rows.consents.iter().filter(|row| !row.used);
        let mut given: Vec<(Timestamp, OperationId)> = given
            .filter_map(|row| Some((row.consent.given_at?, row.consent.operation.clone())))
            .collect();
        given.sort();
        let mut resumed = 0;
        for (_, id) in given {
            if resumed < limit && self.go_on(&id, deadline) {
                resumed += 1;
            }
        }
        if resumed > 0 {
            self.signal(Signal::OperationReady);
        }
        resumed
    }

    fn use_consents(&mut self, cluster: &ClusterId, component: &ComponentName) -> u64 {
        let mut used = 0;
        if self.rows.consents.is_empty() {
            return used;
        }
        for row in &mut self.write().consents {
            let of = &row.consent;
            if row.cluster == *cluster && of.key.component == *component && of.given_at.is_some() && !row.used
            {
                row.used = true;
                used += 1;
            }
        }
        used
    }
}

#[async_trait]
impl Consents for MemoryStore {
    async fn ask_consent(&self, question: &Question) -> Result<Consent, Error> {
        self.call("ask_consent", |transaction| transaction.ask_consent(question))
            .await
    }

    async fn consents(&self, cluster: &ClusterId) -> Result<Vec<Consent>, Error> {
        self.call("consents", |transaction| {
            let rows = &*transaction.rows;
            let open = rows
                .consents
                .iter()
                .filter(|row| row.cluster == *cluster && !row.used && rows.counts(row));
            let mut open: Vec<_> = open.map(|row| row.consent.clone()).collect();
            open.sort_by_key(|of| {
                (
                    of.key.component.clone(),
                    of.key.kind.as_str(),
                    of.key.plan.to_string(),
                )
            });
            Ok(open)
        })
        .await
    }

    async fn give_consent(
        &self,
        cluster: &ClusterId,
        key: &ConsentKey,
        run_deadline: Timestamp,
    ) -> Result<Consent, Error> {
        self.call("give_consent", |transaction| {
            transaction.give_consent(cluster, key, millis(run_deadline))
        })
        .await
    }

    async fn use_consents(&self, cluster: &ClusterId, component: &ComponentName) -> Result<u64, Error> {
        self.call("use_consents", |transaction| {
            Ok(transaction.use_consents(cluster, component))
        })
        .await
    }

    async fn resume_consented(&self, limit: u32, run_deadline: Timestamp) -> Result<u32, Error> {
        self.call("resume_consented", |transaction| {
            Ok(transaction.resume_consented(limit, millis(run_deadline)))
        })
        .await
    }
}
