//! Agreement of key ring and database. The database knows ids and check values, never a key.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::sqlite::SqlitePool;

use super::rows::{database, millis};
use crate::cipher::check_value;
use crate::keys::Purpose;
use crate::{Error, KeyId, KeySource, Keyring};

const DOING: &str = "comparing the key ring with the database";

/// Reads the ring, makes it for an empty database, and checks it against the keys the database was encrypted with.
/// Keys of the ring that are new are registered before anything is encrypted with them.
///
/// # Errors
/// [`Error::KeyMissing`], [`Error::KeyWrong`], [`Error::KeyRing`], [`Error::Io`], [`Error::Database`].
pub(super) async fn agree(writer: &SqlitePool, source: &KeySource, now: Timestamp) -> Result<Keyring, Error> {
    let mut transaction = writer
        .begin_with("BEGIN IMMEDIATE")
        .await
        .map_err(database(DOING))?;
    let mut registered = BTreeMap::new();
    let rows = sqlx::query("SELECT id, purpose, check_value FROM encryption_keys ORDER BY id")
        .fetch_all(&mut *transaction)
        .await
        .map_err(database(DOING))?;
    for row in rows {
        let id: i64 = row.try_get(0).map_err(database(DOING))?;
        let purpose: String = row.try_get(1).map_err(database(DOING))?;
        let check: Vec<u8> = row.try_get(2).map_err(database(DOING))?;
        registered.insert(KeyId(u32::try_from(id).unwrap_or(0)), (purpose, check));
    }
    let ring = match (Keyring::read(source)?, registered.first_key_value()) {
        (Some(ring), _) => ring,
        (None, None) => Keyring::create(source, now)?,
        (None, Some((key, _))) => {
            return Err(Error::KeyMissing {
                key: *key,
                ring: source.to_string(),
            });
        }
    };
    let mut held: BTreeMap<_, _> = ring
        .data()
        .map(|(id, key)| (id, (Purpose::Data, check_value(Purpose::Data, id, key))))
        .collect();
    let (id, key) = ring.content_hash();
    held.insert(
        id,
        (Purpose::ContentHash, check_value(Purpose::ContentHash, id, key)),
    );
    for (key, (purpose, check)) in &registered {
        let ring = || source.to_string();
        match held.get(key) {
            None => {
                return Err(Error::KeyMissing {
                    key: *key,
                    ring: ring(),
                });
            }
            Some((held_purpose, held_check)) if held_purpose.as_str() != purpose || held_check != check => {
                return Err(Error::KeyWrong {
                    key: *key,
                    ring: ring(),
                });
            }
            Some(_) => {}
        }
    }
    for (id, (purpose, check)) in held {
        if registered.contains_key(&id) {
            continue;
        }
        // A second content-hash key would make equal content differ: there is one for the life of a database.
        if purpose == Purpose::ContentHash && !registered.is_empty() {
            let known = registered
                .iter()
                .find(|(_, (purpose, _))| purpose == Purpose::ContentHash.as_str())
                .map_or(id, |(id, _)| *id);
            return Err(Error::KeyMissing {
                key: known,
                ring: source.to_string(),
            });
        }
        sqlx::query("INSERT INTO encryption_keys (id, purpose, check_value, created_at) VALUES (?, ?, ?, ?)")
            .bind(i64::from(id.0))
            .bind(purpose.as_str())
            .bind(check)
            .bind(millis(now))
            .execute(&mut *transaction)
            .await
            .map_err(database(DOING))?;
    }
    transaction.commit().await.map_err(database(DOING))?;
    Ok(ring)
}
