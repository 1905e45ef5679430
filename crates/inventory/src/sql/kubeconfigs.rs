//! How clusters are reached: numbered kubeconfigs, or where each is read. Both are encrypted.

use evenkeel_core::{ClusterId, Kubeconfig, KubeconfigFrom, Sensitive};

use super::SqlStore;
use super::configurations::{ACCEPTING, unwritable};
use super::status::row_key;
use crate::Error;
use crate::cipher::{Cipher, Column};
use crate::sql::{Cells, Connection, Row, database, query, query_as};

/// The kubeconfig in use of a cluster.
pub(super) const KUBECONFIG: &str = "SELECT k.number, k.kind, k.content FROM clusters c \
     JOIN kubeconfigs k ON k.cluster_id = c.id AND k.number = c.kubeconfig WHERE c.id = $1";
/// The content is the kubeconfig.
const INLINE: &str = "inline";
/// The content says where to read it.
const FROM: &str = "from";

/// A kubeconfig as it is stored.
struct Stored {
    kind: &'static str,
    content: Sensitive<Vec<u8>>,
}

impl Stored {
    fn of(kubeconfig: &Kubeconfig) -> Result<Self, Error> {
        Ok(match kubeconfig {
            Kubeconfig::Inline(content) => Self {
                kind: INLINE,
                content: content.expose().as_bytes().to_vec().into(),
            },
            Kubeconfig::From(from) => Self {
                kind: FROM,
                content: serde_json::to_vec(from).map_err(unwritable)?.into(),
            },
        })
    }

    /// Equal ones have the same.
    fn hash(&self, cipher: &Cipher) -> Vec<u8> {
        let label = match self.kind {
            FROM => &b"kubeconfig-from"[..],
            _ => &b"kubeconfig"[..],
        };
        cipher.content_hash([label, self.content.expose()]).to_vec()
    }
}

/// Reads a row of [`KUBECONFIG`].
pub(super) fn read_kubeconfig(cipher: &Cipher, row: &Row, cluster: &ClusterId) -> Result<Kubeconfig, Error> {
    let number: i64 = Cells::new(row, "kubeconfigs", cluster.as_str()).get("number")?;
    let key = row_key(cluster.as_str(), number);
    let cells = Cells::new(row, "kubeconfigs", &*key);
    let content = cipher
        .open_text(Column::KUBECONFIG, &key, cells.get("content")?)?
        .ok_or_else(|| Error::not_found("kubeconfig of cluster", cluster))?;
    match cells.get::<&str>("kind")? {
        INLINE => Ok(Sensitive::new(content).into()),
        FROM => serde_json::from_str::<KubeconfigFrom>(&content)
            .map(Kubeconfig::From)
            .map_err(|_| cells.unreadable("content", "it names no source of this release")),
        _ => Err(cells.unreadable("kind", "it is none of this release")),
    }
}

impl SqlStore {
    /// The number of a kubeconfig: the newest one's when it is the same, else a new one's.
    pub(super) async fn kubeconfig_number(
        &self,
        connection: &mut Connection,
        id: &ClusterId,
        kubeconfig: &Kubeconfig,
    ) -> Result<i64, Error> {
        let stored = Stored::of(kubeconfig)?;
        let hash = stored.hash(&self.cipher);
        let newest: Option<(i64, Vec<u8>)> = query_as(
            "SELECT number, content_hash FROM kubeconfigs WHERE cluster_id = $1 ORDER BY number DESC LIMIT 1",
        )
        .bind(id.as_str())
        .fetch_optional(&mut *connection)
        .await
        .map_err(database(ACCEPTING))?;
        let number = match newest {
            Some((number, known)) if known == hash => return Ok(number),
            newest => newest.map_or(1, |(number, _)| number.saturating_add(1)),
        };
        let key = row_key(id.as_str(), number);
        let content = self
            .cipher
            .seal(Column::KUBECONFIG, &key, stored.content.expose())?;
        query(
            "INSERT INTO kubeconfigs (cluster_id, number, kind, content, content_hash, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(id.as_str())
        .bind(number)
        .bind(stored.kind)
        .bind(content)
        .bind(hash)
        .bind(self.now())
        .execute(connection)
        .await
        .map_err(database(ACCEPTING))?;
        Ok(number)
    }
}
