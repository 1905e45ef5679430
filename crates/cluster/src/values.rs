//! Values that a component takes from the target cluster itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evenkeel_core::{ObjectRef, Sensitive};
use serde_json::Value;

use crate::objects::built_in;
use crate::{Cluster, Error};

/// Which kind of object holds values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKind {
    /// A Secret.
    Secret,
    /// A ConfigMap.
    ConfigMap,
}

impl Cluster {
    /// The bytes under `key` of a Secret or ConfigMap; none when the object does not exist.
    ///
    /// # Errors
    /// [`Error::NoKey`] when the object lacks the key; whatever the request fails with.
    pub async fn read_data(
        &self,
        kind: DataKind,
        namespace: &str,
        name: &str,
        key: &str,
    ) -> Result<Option<Sensitive<Vec<u8>>>, Error> {
        let (kind, plural) = match kind {
            DataKind::Secret => ("Secret", "secrets"),
            DataKind::ConfigMap => ("ConfigMap", "configmaps"),
        };
        let object = ObjectRef {
            group: String::new(),
            kind: kind.to_owned(),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        };
        let Some(whole) = self
            .get_full(&built_in("", "v1", kind, plural, true), &object)
            .await?
        else {
            return Ok(None);
        };
        let field = |field: &str| {
            whole
                .get(field)
                .and_then(|data| data.get(key))
                .and_then(Value::as_str)
        };
        let decoded = |text: &str| {
            STANDARD.decode(text).map_err(|_| Error::Decode {
                doing: format!("read {object}"),
                reason: format!("key {key:?} is no base64"),
            })
        };
        let bytes = match (kind, field("data"), field("binaryData")) {
            ("Secret", Some(text), _) | ("ConfigMap", None, Some(text)) => decoded(text)?,
            ("ConfigMap", Some(text), _) => text.as_bytes().to_vec(),
            _ => {
                return Err(Error::NoKey {
                    object,
                    key: key.to_owned(),
                });
            }
        };
        Ok(Some(Sensitive::new(bytes)))
    }
}
