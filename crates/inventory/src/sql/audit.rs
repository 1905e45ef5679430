//! The audit log.

use async_trait::async_trait;
use evenkeel_core::Digest;
use evenkeel_telemetry::request;
use serde_json::Value;

use super::SqlStore;
use super::lock::Lock;
use super::rows::{has_nul, int, millis, refuse_nul, uint};
use super::status::row_key;
use crate::cipher::Cipher;
use crate::sql::{Cells, Connection, Row, database, query, repeating};
use crate::{
    Audit, AuditAction, AuditEntry, AuditFault, AuditFilter, AuditVerdict, Cursor, Error, Page, PageRequest,
};

const WRITING: &str = "writing to the audit log";
const READING: &str = "reading the audit log";
/// Entries that a walk along the chain reads at a time.
const WALKED_TOGETHER: i64 = 500;
/// Who acts where nobody has to say who he is.
const ANONYMOUS: &str = "anonymous";
/// Who acts when a process does something by itself.
const ITSELF: &str = "evenkeel";

/// The last entry. Whoever writes the next one has locked the log before: the last thing that a transaction locks.
const HEAD: &str = "SELECT number, digest, mac FROM audit_ends WHERE name = 'head'";
/// The last entry that retention took away.
pub(super) const ANCHOR: &str = "SELECT number, digest, mac FROM audit_ends WHERE name = 'anchor'";
/// Entries, newest first; of one target by its index.
macro_rules! entries {
    ($target:literal) => {
        concat!(
            "SELECT number, at, actor, request_id, action, target, detail, digest FROM audit WHERE number < $1 AND ",
            $target,
            " AND ($4 IS NULL OR actor = $4) AND ($5 IS NULL OR at >= $5) AND ($6 IS NULL OR at < $6) \
             ORDER BY number DESC LIMIT $2"
        )
    };
}
pub(super) const ENTRIES: &str = entries!("($3 IS NULL OR target = $3)");
pub(super) const ENTRIES_OF_TARGET: &str = entries!("target = $3");
pub(super) const WALK: &str = "SELECT number, at, actor, request_id, action, target, detail, digest FROM audit \
     WHERE number > $1 AND number <= $2 ORDER BY number LIMIT $3";

/// One end of the chain.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct End {
    pub(super) number: i64,
    pub(super) digest: Vec<u8>,
    mac: Vec<u8>,
}

/// What an entry's digest covers besides the digest before it.
struct Content<'a> {
    number: i64,
    at: i64,
    actor: &'a str,
    request_id: Option<&'a str>,
    action: &'a str,
    target: &'a str,
    detail: &'a str,
}

/// Writes to the chain.
pub(super) struct Chain<'a> {
    pub(super) cipher: &'a Cipher,
    pub(super) now: i64,
}

impl Chain<'_> {
    /// Writes an entry about what this transaction did; the caller of the API, or the process by itself, did it.
    pub(super) async fn append(
        &self,
        connection: &mut Connection,
        action: AuditAction,
        target: &str,
        detail: Value,
    ) -> Result<(), Error> {
        connection.lock(Lock::Audit).await?;
        let request_id = request::current();
        let actor = match (request::actor(), &request_id) {
            (Some(actor), _) => actor,
            (None, Some(_)) => ANONYMOUS.to_owned(),
            (None, None) => ITSELF.to_owned(),
        };
        let head = end_of_chain(connection, HEAD).await?;
        let number = head.as_ref().map_or(0, |head| head.number).saturating_add(1);
        let detail = detail.to_string();
        let content = Content {
            number,
            at: self.now,
            actor: &actor,
            request_id: request_id.as_deref(),
            action: action.as_str(),
            target,
            detail: &detail,
        };
        let before = head.as_ref().map_or(&[][..], |head| &head.digest);
        let digest = audit_digest(self.cipher, before, &content);
        query(
            "INSERT INTO audit (number, at, actor, request_id, action, target, detail, digest) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(number)
        .bind(self.now)
        .bind(&actor)
        .bind(request_id.as_deref())
        .bind(action.as_str())
        .bind(target)
        .bind(&detail)
        .bind(digest.clone())
        .execute(&mut *connection)
        .await
        .map_err(database(WRITING))?;
        self.write_end(connection, "head", number, digest).await
    }

    /// Writes an end of the chain.
    pub(super) async fn write_end(
        &self,
        connection: &mut Connection,
        name: &'static str,
        number: i64,
        digest: Vec<u8>,
    ) -> Result<(), Error> {
        let mac = end_mac(self.cipher, name, number, &digest);
        query(
            "INSERT INTO audit_ends (name, number, digest, mac) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (name) DO UPDATE SET number = $2, digest = $3, mac = $4",
        )
        .bind(name)
        .bind(number)
        .bind(digest)
        .bind(mac)
        .execute(connection)
        .await
        .map(drop)
        .map_err(database(WRITING))
    }
}

/// An end of the chain, if it has one.
pub(super) async fn end_of_chain(
    connection: &mut Connection,
    statement: &'static str,
) -> Result<Option<End>, Error> {
    let row = query(statement)
        .fetch_optional(connection)
        .await
        .map_err(database(READING))?;
    row.map(|row| {
        let cells = Cells::new(&row, "audit_ends", "");
        Ok(End {
            number: cells.get("number")?,
            digest: cells.get("digest")?,
            mac: cells.get("mac")?,
        })
    })
    .transpose()
}

fn end_mac(cipher: &Cipher, name: &str, number: i64, digest: &[u8]) -> Vec<u8> {
    let number = number.to_be_bytes();
    let parts = [&b"audit-end"[..], name.as_bytes(), &number, digest];
    cipher.content_hash(parts).to_vec()
}

fn audit_digest(cipher: &Cipher, before: &[u8], content: &Content<'_>) -> Vec<u8> {
    let (number, at) = (content.number.to_be_bytes(), content.at.to_be_bytes());
    let parts = [
        &b"audit"[..],
        before,
        &number,
        &at,
        content.actor.as_bytes(),
        &[u8::from(content.request_id.is_some())],
        content.request_id.map_or(&[], str::as_bytes),
        content.action.as_bytes(),
        content.target.as_bytes(),
        content.detail.as_bytes(),
    ];
    cipher.content_hash(parts).to_vec()
}

impl SqlStore {
    /// Writes an entry about what this transaction did, if an API call asked for it: the last act of the transaction.
    pub(super) async fn audit(
        &self,
        connection: &mut Connection,
        action: AuditAction,
        target: &str,
        detail: Value,
    ) -> Result<(), Error> {
        match request::current() {
            None => Ok(()),
            Some(_) => self.audit_always(connection, action, target, detail).await,
        }
    }

    /// The same, also where a process did it by itself.
    pub(super) async fn audit_always(
        &self,
        connection: &mut Connection,
        action: AuditAction,
        target: &str,
        detail: Value,
    ) -> Result<(), Error> {
        self.chain().append(connection, action, target, detail).await
    }

    /// What writes to the chain, whoever asked.
    pub(super) fn chain(&self) -> Chain<'_> {
        Chain {
            cipher: &self.cipher,
            now: self.now(),
        }
    }

    /// Compares one row with the digest before it; answers its own.
    fn verify_row(&self, row: &Row, expected: i64, before: &[u8]) -> Result<(i64, Vec<u8>), AuditFault> {
        let fault = |problem: &str| AuditFault {
            number: uint(expected),
            problem: problem.to_owned(),
        };
        let cells = Cells::new(row, "audit", "");
        let unreadable = |_| fault("it cannot be read");
        let number: i64 = cells.get("number").map_err(unreadable)?;
        if number != expected {
            return Err(fault("it is missing"));
        }
        let content = Content {
            number,
            at: cells.get("at").map_err(unreadable)?,
            actor: cells.get("actor").map_err(unreadable)?,
            request_id: cells.get("request_id").map_err(unreadable)?,
            action: cells.get("action").map_err(unreadable)?,
            target: cells.get("target").map_err(unreadable)?,
            detail: cells.get("detail").map_err(unreadable)?,
        };
        let digest: Vec<u8> = cells.get("digest").map_err(unreadable)?;
        match audit_digest(&self.cipher, before, &content) == digest {
            true => Ok((number, digest)),
            false => Err(fault("it, or the one before it, was changed")),
        }
    }

    fn audit_entry(row: &Row) -> Result<AuditEntry, Error> {
        let cells = Cells::new(row, "audit", "");
        let number = cells.number("number")?;
        let cells = Cells::new(row, "audit", number.to_string());
        let detail: &str = cells.get("detail")?;
        let digest: &[u8] = cells.get("digest")?;
        Ok(AuditEntry {
            number,
            at: cells.time("at")?,
            actor: cells.get("actor")?,
            request_id: cells.get("request_id")?,
            action: cells.get("action")?,
            target: cells.get("target")?,
            detail: serde_json::from_str(detail).map_err(|_| cells.unreadable("detail", "it is no JSON"))?,
            digest: digest_of(digest).ok_or_else(|| cells.unreadable("digest", "it has another length"))?,
        })
    }

    /// The newest entry and the last one that retention took, as one moment has them; and whether there are entries at
    /// all.
    async fn ends(&self) -> Result<(Option<End>, Option<End>, bool), Error> {
        let mut snapshot = self.snapshot(READING).await?;
        let head = end_of_chain(&mut snapshot, HEAD).await?;
        let anchor = end_of_chain(&mut snapshot, ANCHOR).await?;
        let entries = match head {
            Some(_) => true,
            None => query("SELECT 1 FROM audit LIMIT 1")
                .fetch_optional(&mut *snapshot)
                .await
                .map_err(database(READING))?
                .is_some(),
        };
        Ok((head, anchor, entries))
    }

    /// Walks from one end to the other. Answers the number of entries, and what is wrong.
    async fn walk(
        &self,
        head: &End,
        anchor: Option<&End>,
        known: Option<(u64, Digest)>,
    ) -> Result<(u64, Option<AuditFault>), Error> {
        let fault = |number: i64, problem: &str| {
            Some(AuditFault {
                number: uint(number),
                problem: problem.to_owned(),
            })
        };
        for (name, end) in [("head", Some(head)), ("anchor", anchor)] {
            if let Some(end) = end
                && end_mac(&self.cipher, name, end.number, &end.digest) != end.mac
            {
                return Ok((0, fault(end.number, &format!("the chain's {name} was changed"))));
            }
        }
        let (mut number, mut digest) = anchor.map_or((0, Vec::new()), |end| (end.number, end.digest.clone()));
        let mut entries = 0;
        let mut met = known.is_none_or(|(known, _)| int(known) <= number);
        while number < head.number {
            let rows = query(WALK)
                .bind(number)
                .bind(head.number)
                .bind(WALKED_TOGETHER)
                .fetch_all(self.read())
                .await
                .map_err(database(READING))?;
            if rows.is_empty() {
                return Ok((entries, fault(number.saturating_add(1), "it is missing")));
            }
            for row in &rows {
                match self.verify_row(row, number.saturating_add(1), &digest) {
                    Err(found) => return Ok((entries, Some(found))),
                    Ok(next) => (number, digest) = next,
                }
                entries += 1;
                if let Some((known, expected)) = known
                    && int(known) == number
                {
                    met = true;
                    if digest_of(&digest) != Some(expected) {
                        return Ok((entries, fault(number, "it is not the one that was written down")));
                    }
                }
            }
        }
        if digest != head.digest {
            return Ok((entries, fault(number, "it is not the last one that was written")));
        }
        if !met {
            let problem = "the chain ends before the entry that was written down: its end was cut off";
            return Ok((entries, fault(number, problem)));
        }
        Ok((entries, None))
    }
}

fn digest_of(bytes: &[u8]) -> Option<Digest> {
    <[u8; 32]>::try_from(bytes).ok().map(Digest::from)
}

impl SqlStore {
    async fn note_done_once(&self, action: AuditAction, target: &str, detail: Value) -> Result<(), Error> {
        let mut transaction = self.write(WRITING).await?;
        self.audit_always(&mut transaction, action, target, detail)
            .await?;
        transaction.commit(WRITING).await
    }
}

#[async_trait]
impl Audit for SqlStore {
    async fn note_done(&self, action: AuditAction, target: &str, detail: Value) -> Result<(), Error> {
        refuse_nul("the target of an audit entry", target)?;
        refuse_nul("the detail of an audit entry", &detail.to_string())?;
        repeating(|| self.note_done_once(action, target, detail.clone())).await
    }

    async fn audit_entries(
        &self,
        filter: &AuditFilter,
        page: &PageRequest,
    ) -> Result<Page<AuditEntry>, Error> {
        let texts = [filter.target.as_deref(), filter.actor.as_deref()];
        if texts.into_iter().flatten().any(has_nul) {
            return Ok(Page::default());
        }
        let limit = page.limit();
        let statement = match filter.target {
            Some(_) => ENTRIES_OF_TARGET,
            None => ENTRIES,
        };
        let rows = query(statement)
            .bind(page.number_cursor()?)
            .bind(i64::from(limit) + 1)
            .bind(filter.target.as_deref())
            .bind(filter.actor.as_deref())
            .bind(filter.since.map(millis))
            .bind(filter.until.map(millis))
            .fetch_all(self.read())
            .await
            .map_err(database(READING))?;
        Ok(Page::collect(&rows, limit, |row| {
            let number: i64 = Cells::new(row, "audit", "").get("number").unwrap_or(0);
            (
                Cursor(number.to_string()),
                row_key("audit", number),
                Self::audit_entry(row),
            )
        }))
    }

    async fn verify_audit(&self, known: Option<(u64, Digest)>) -> Result<AuditVerdict, Error> {
        loop {
            let (head, anchor, any) = self.ends().await?;
            let Some(head) = head else {
                // Without an end there is no chain; entries without one were cut off from it.
                let problem = (any || known.is_some()).then(|| "the chain's head is missing".to_owned());
                return Ok(AuditVerdict {
                    entries: 0,
                    head: (0, None),
                    fault: problem.map(|problem| AuditFault { number: 0, problem }),
                });
            };
            let (entries, fault) = self.walk(&head, anchor.as_ref(), known).await?;
            // Retention may have taken the beginning while it was walked along.
            if fault.is_some() && self.ends().await?.1 != anchor {
                continue;
            }
            return Ok(AuditVerdict {
                entries,
                head: (uint(head.number), digest_of(&head.digest)),
                fault,
            });
        }
    }
}
