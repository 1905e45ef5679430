//! Agreement of key ring, database and the other processes on it. The database knows ids and check values, never a key.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use jiff::Timestamp;
use uuid::Uuid;

use super::SqlStore;
use super::audit::Chain;
use super::rows::{millis, moment, span};
use super::statement::Query;
use crate::cipher::{Cipher, check_value};
use crate::keys::Purpose;
use crate::rotation::{HOLDER_LIVE, REPLACED_GRACE};
use crate::sql::{Connection, Pool, Row, database, query, repeating};
use crate::{
    AuditAction, Error, KeyAgreement, KeyId, KeySource, KeyState, KeyStatus, Keyring, Keys, Reencrypted,
    RotationPlace,
};

const DOING: &str = "comparing the key ring with the database";
const REMOVING: &str = "removing a key";
/// Processes that told nothing for so long are forgotten, in milliseconds.
const HOLDER_FORGOTTEN: i64 = 60 * 60 * 1_000;

/// A key as the database knows it.
struct Registered {
    purpose: String,
    check: Vec<u8>,
    created_at: i64,
    active: bool,
    replaced_at: Option<i64>,
    emptied_at: Option<i64>,
    removed_at: Option<i64>,
}

impl Registered {
    fn read(row: &Row) -> Result<(KeyId, Self), sqlx::Error> {
        let id: i64 = row.at(0)?;
        let key = Self {
            purpose: row.at(1)?,
            check: row.at(2)?,
            created_at: row.at(3)?,
            active: row.at::<i64>(4)? != 0,
            replaced_at: row.at(5)?,
            emptied_at: row.at(6)?,
            removed_at: row.at(7)?,
        };
        Ok((KeyId(u32::try_from(id).unwrap_or(0)), key))
    }

    fn is_data(&self) -> bool {
        self.purpose == Purpose::Data.as_str()
    }
}

/// A process that holds keys.
struct Holder {
    process: String,
    keys: BTreeSet<String>,
    active: String,
}

/// What was agreed.
pub(super) struct Agreed {
    pub(super) ring: Keyring,
    pub(super) cipher: Cipher,
    pub(super) agreement: KeyAgreement,
}

async fn registered(connection: &mut Connection) -> Result<BTreeMap<KeyId, Registered>, Error> {
    let rows = query(
        "SELECT id, purpose, check_value, created_at, active, replaced_at, emptied_at, removed_at FROM encryption_keys \
         ORDER BY id",
    )
    .fetch_all(connection)
    .await
    .map_err(database(DOING))?;
    rows.iter()
        .map(|row| Registered::read(row).map_err(database(DOING)))
        .collect()
}

/// The other processes that were heard of lately; none on SQLite, which has one.
async fn holders(connection: &mut Connection, process: Uuid, now: i64) -> Result<Vec<Holder>, Error> {
    if !connection.is_shared() {
        return Ok(Vec::new());
    }
    let rows = query("SELECT process, keys, active FROM key_holders WHERE process <> $1 AND seen_at > $2")
        .bind(process.to_string())
        .bind(now.saturating_sub(span(HOLDER_LIVE)))
        .fetch_all(connection)
        .await
        .map_err(database(DOING))?;
    let read = |row: &Row| {
        Ok(Holder {
            process: row.at(0)?,
            keys: row.at::<String>(1)?.split(' ').map(ToOwned::to_owned).collect(),
            active: row.at(2)?,
        })
    };
    rows.iter()
        .map(|row| read(row).map_err(database(DOING)))
        .collect()
}

/// Nobody else registers, activates or removes a key until the transaction ends.
async fn lock_keys(connection: &mut Connection, doing: &'static str) -> Result<(), Error> {
    match connection.is_shared() {
        true => connection
            .script("LOCK TABLE encryption_keys IN SHARE ROW EXCLUSIVE MODE")
            .await
            .map_err(database(doing)),
        false => Ok(()),
    }
}

/// Reads the ring, makes it for an empty database, and checks it against the keys the database was encrypted with.
/// Keys of the ring that are new are registered before anything is encrypted with them; a newer active key becomes
/// everybody's once everybody holds it.
///
/// # Errors
/// [`Error::KeyMissing`], [`Error::KeyWrong`], [`Error::KeyRefused`], [`Error::KeyRing`], [`Error::Io`],
/// [`Error::Database`].
pub(super) async fn agree(
    pool: &Pool,
    source: &KeySource,
    process: Uuid,
    now: Timestamp,
) -> Result<Agreed, Error> {
    let mut transaction = pool.write(DOING).await?;
    // Two processes that start on an empty database agree on one ring's keys.
    lock_keys(&mut transaction, DOING).await?;
    let known = registered(&mut transaction).await?;
    let needed = known.iter().find(|(_, key)| key.removed_at.is_none());
    let ring = match (Keyring::read(source)?, needed) {
        (Some(ring), _) => ring,
        (None, None) => Keyring::create(source, now)?,
        (None, Some((key, _))) => {
            return Err(Error::KeyMissing {
                key: *key,
                ring: source.to_string(),
            });
        }
    };
    register(&mut transaction, &ring, &known, now).await?;
    let agreement = activate(&mut transaction, &ring, &known, process, now).await?;
    tell(&mut transaction, &ring, agreement.active, process, millis(now)).await?;
    let cipher = Cipher::new(&ring, agreement.active)?;
    let before = known.iter().find(|(_, key)| key.active).map(|(id, _)| *id);
    if let Some(before) = before.filter(|before| *before != agreement.active) {
        let detail = serde_json::json!({"before": before.to_string()});
        let target = format!("key/{}", agreement.active);
        let now = millis(now);
        Chain { cipher: &cipher, now }
            .append(&mut transaction, AuditAction::ActivateKey, &target, detail)
            .await?;
    }
    transaction.commit(DOING).await?;
    Ok(Agreed {
        ring,
        cipher,
        agreement,
    })
}

/// Compares the ring with what is known and registers what is new.
async fn register(
    connection: &mut Connection,
    ring: &Keyring,
    known: &BTreeMap<KeyId, Registered>,
    now: Timestamp,
) -> Result<(), Error> {
    let source = || ring.source().to_string();
    let mut held: BTreeMap<_, _> = ring
        .data()
        .map(|(id, key)| (id, (Purpose::Data, check_value(Purpose::Data, id, key))))
        .collect();
    let (id, key) = ring.content_hash();
    held.insert(
        id,
        (Purpose::ContentHash, check_value(Purpose::ContentHash, id, key)),
    );
    for (id, key) in known {
        match held.get(id) {
            None if key.removed_at.is_some() => {}
            None => {
                return Err(Error::KeyMissing {
                    key: *id,
                    ring: source(),
                });
            }
            Some((purpose, check)) if purpose.as_str() != key.purpose || *check != key.check => {
                return Err(Error::KeyWrong {
                    key: *id,
                    ring: source(),
                });
            }
            Some(_) => {}
        }
    }
    for (id, (purpose, check)) in held {
        if known.contains_key(&id) {
            continue;
        }
        // A second content-hash key would make equal content differ: there is one for the life of a database.
        if purpose == Purpose::ContentHash && !known.is_empty() {
            let known = known.iter().find(|(_, key)| !key.is_data());
            return Err(Error::KeyMissing {
                key: known.map_or(id, |(id, _)| *id),
                ring: source(),
            });
        }
        // Nothing is encrypted with it yet.
        query(
            "INSERT INTO encryption_keys (id, purpose, check_value, created_at, active, emptied_at) \
             VALUES ($1, $2, $3, $4, 0, $5)",
        )
        .bind(i64::from(id.0))
        .bind(purpose.as_str())
        .bind(check)
        .bind(millis(ring.created(id).unwrap_or(now)))
        .bind(millis(now))
        .execute(&mut *connection)
        .await
        .map_err(database(DOING))?;
    }
    Ok(())
}

/// Decides which key encrypts from now on.
async fn activate(
    connection: &mut Connection,
    ring: &Keyring,
    known: &BTreeMap<KeyId, Registered>,
    process: Uuid,
    now: Timestamp,
) -> Result<KeyAgreement, Error> {
    let wanted = ring.active();
    if known.get(&wanted).is_some_and(|key| key.removed_at.is_some()) {
        return Err(Error::KeyRefused {
            key: wanted,
            reason: format!(
                "the key ring {} has it as its active key, but it was removed from this database: make a new key with \
                 `evenkeel keys add` and `evenkeel keys rotate`",
                ring.source()
            ),
        });
    }
    let present = known.iter().find(|(_, key)| key.active).map(|(id, _)| *id);
    let leftovers = |active: KeyId| {
        known.iter().any(|(id, key)| {
            *id != active && key.is_data() && key.removed_at.is_none() && key.emptied_at.is_none()
        })
    };
    let stay = |active: KeyId, waiting_for: Vec<String>| KeyAgreement {
        active,
        wanted: (!waiting_for.is_empty()).then_some(wanted),
        leftovers: leftovers(active),
        waiting_for,
    };
    if let Some(present) = present {
        // A ring that lags behind the others does not turn the database back.
        let age = |id: KeyId| (ring.created(id), id);
        if present == wanted || age(wanted) < age(present) {
            return Ok(stay(present, Vec::new()));
        }
        let key = wanted.to_string();
        let lacking: Vec<_> = holders(connection, process, millis(now))
            .await?
            .into_iter()
            .filter(|holder| !holder.keys.contains(&key))
            .map(|holder| holder.process)
            .collect();
        if !lacking.is_empty() {
            return Ok(stay(present, lacking));
        }
    }
    query("UPDATE encryption_keys SET active = 0, replaced_at = $1, emptied_at = NULL WHERE active = 1")
        .bind(millis(now))
        .execute(&mut *connection)
        .await
        .map_err(database(DOING))?;
    query("UPDATE encryption_keys SET active = 1, replaced_at = NULL, emptied_at = NULL WHERE id = $1")
        .bind(i64::from(wanted.0))
        .execute(&mut *connection)
        .await
        .map_err(database(DOING))?;
    Ok(KeyAgreement {
        leftovers: present.is_some() || leftovers(wanted),
        ..stay(wanted, Vec::new())
    })
}

/// Tells the other processes what is held here.
async fn tell(
    connection: &mut Connection,
    ring: &Keyring,
    active: KeyId,
    process: Uuid,
    now: i64,
) -> Result<(), Error> {
    if !connection.is_shared() {
        return Ok(());
    }
    let keys: Vec<_> = ring.data_keys().map(|id| id.to_string()).collect();
    query(
        "INSERT INTO key_holders (process, keys, active, seen_at) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (process) DO UPDATE SET keys = $2, active = $3, seen_at = $4",
    )
    .bind(process.to_string())
    .bind(keys.join(" "))
    .bind(active.to_string())
    .bind(now)
    .execute(&mut *connection)
    .await
    .map_err(database(DOING))?;
    query("DELETE FROM key_holders WHERE seen_at < $1")
        .bind(now.saturating_sub(HOLDER_FORGOTTEN))
        .execute(connection)
        .await
        .map(drop)
        .map_err(database(DOING))
}

impl SqlStore {
    /// Says that this process holds no keys any more.
    pub(super) async fn let_go_of_keys(&self) -> Result<(), Error> {
        let mut transaction = self.write(DOING).await?;
        if transaction.is_shared() {
            query("DELETE FROM key_holders WHERE process = $1")
                .bind(self.process.to_string())
                .execute(&mut *transaction)
                .await
                .map_err(database(DOING))?;
        }
        transaction.commit(DOING).await
    }

    /// One try.
    async fn note_reencrypted_once(&self, since: Timestamp) -> Result<(), Error> {
        let doing = "noting that all is encrypted again";
        let mut transaction = self.write(doing).await?;
        // A call may have sealed with the old key before and be written after: such a pass saw not all.
        let grace = match transaction.is_shared() {
            true => span(REPLACED_GRACE),
            false => 0,
        };
        query(
            "UPDATE encryption_keys SET emptied_at = $1 WHERE purpose = 'data' AND active = 0 AND removed_at IS NULL \
             AND emptied_at IS NULL AND coalesce(replaced_at, 0) <= $2",
        )
        .bind(self.now())
        .bind(millis(since).saturating_sub(grace))
        .execute(&mut *transaction)
        .await
        .map_err(database(doing))?;
        transaction.commit(doing).await
    }

    /// Looks whether a key may go; answers nothing or why not.
    async fn check_removable(&self, id: KeyId) -> Result<(), Error> {
        let now = self.now();
        let mut transaction = self.write(REMOVING).await?;
        lock_keys(&mut transaction, REMOVING).await?;
        let known = registered(&mut transaction).await?;
        let key = known
            .get(&id)
            .filter(|key| key.is_data())
            .ok_or_else(|| Error::not_found("data key", id))?;
        let refused = |reason: String| Err(Error::KeyRefused { key: id, reason });
        if key.active {
            return refused("it is the active key: rotate to another one first".to_owned());
        }
        if !transaction.is_shared() {
            return Ok(());
        }
        let text = id.to_string();
        let others = holders(&mut transaction, self.process, now).await?;
        if let Some(holder) = others.iter().find(|holder| holder.active == text) {
            return refused(format!("process {} still encrypts with it", holder.process));
        }
        let free = key
            .replaced_at
            .map_or(i64::MIN, |at| at.saturating_add(span(REPLACED_GRACE)));
        if free > now {
            let seconds = free.saturating_sub(now).div_euclid(1_000) + 1;
            return refused(format!(
                "it was replaced just now, and calls that are under way may still use it: try again in {seconds} s"
            ));
        }
        Ok(())
    }

    /// One try.
    async fn write_key(&self, write: Query<'_>, removed: Option<KeyId>) -> Result<(), Error> {
        let mut transaction = self.write(REMOVING).await?;
        write
            .execute(&mut *transaction)
            .await
            .map_err(database(REMOVING))?;
        if let Some(id) = removed {
            let (action, detail) = (AuditAction::RemoveKey, serde_json::json!({}));
            self.audit_always(&mut transaction, action, &format!("key/{id}"), detail)
                .await?;
        }
        transaction.commit(REMOVING).await
    }
}

#[async_trait]
impl Keys for SqlStore {
    async fn refresh_keys(&self) -> Result<KeyAgreement, Error> {
        if matches!(self.key_source, KeySource::Ephemeral) {
            return Ok(KeyAgreement {
                active: self.cipher.active(),
                wanted: None,
                waiting_for: Vec::new(),
                leftovers: false,
            });
        }
        let Agreed { ring, agreement, .. } =
            repeating(|| agree(self.read(), &self.key_source, self.process, moment(self.now()))).await?;
        let before = self.cipher.active();
        self.cipher.replace(&ring, agreement.active)?;
        if before != agreement.active {
            tracing::info!(key = %agreement.active, before = %before, "another key encrypts from now on");
        }
        Ok(agreement)
    }

    async fn key_status(&self) -> Result<KeyStatus, Error> {
        let mut snapshot = self.snapshot(DOING).await?;
        let known = registered(&mut snapshot).await?;
        drop(snapshot);
        let mut used = self.key_use(None).await?;
        let mut keys: Vec<_> = known
            .into_iter()
            .filter(|(_, key)| key.is_data())
            .map(|(id, key)| KeyState {
                id,
                created_at: moment(key.created_at),
                active: key.active,
                replaced_at: key.replaced_at.map(moment),
                removed_at: key.removed_at.map(moment),
                rows: used.rows.remove(&id).unwrap_or(0),
            })
            .collect();
        keys.sort_by_key(|key| (key.created_at, key.id));
        Ok(KeyStatus {
            keys,
            unknown: used.rows,
            damaged: used.no_value,
        })
    }

    async fn reencrypt(&self, from: Option<RotationPlace>) -> Result<Reencrypted, Error> {
        self.reencrypt_batch(from).await
    }

    async fn note_reencrypted(&self, since: Timestamp) -> Result<(), Error> {
        repeating(|| self.note_reencrypted_once(since)).await
    }

    async fn remove_key(&self, id: KeyId) -> Result<(), Error> {
        repeating(|| self.check_removable(id)).await?;
        // Whoever reads the list of columns reads it from where the values are: nothing is forgotten.
        if let Some(example) = self.key_use(Some(id)).await?.example {
            // The next pass looks at everything once more.
            let again =
                query("UPDATE encryption_keys SET emptied_at = NULL WHERE id = $1").bind(i64::from(id.0));
            repeating(|| self.write_key(again.clone(), None)).await?;
            return Err(Error::KeyRefused {
                key: id,
                reason: format!(
                    "values are still encrypted with it, {example} among them: wait until they are encrypted again, or see \
                     `evenkeel keys status`"
                ),
            });
        }
        let remove = query(
            "UPDATE encryption_keys SET removed_at = coalesce(removed_at, $2) WHERE id = $1 AND active = 0",
        )
        .bind(i64::from(id.0))
        .bind(self.now());
        repeating(|| self.write_key(remove.clone(), Some(id))).await
    }
}
