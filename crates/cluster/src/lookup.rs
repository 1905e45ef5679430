//! What Helm's `lookup` asks of a live cluster.

use evenkeel_core::{GroupVersionKind, ObjectRef};
use serde_json::{Value, json};

use crate::objects::Selection;
use crate::{Cluster, Error};

impl Cluster {
    /// The object of this name; with an empty name, a list of all. An empty namespace means all namespaces, or the scope
    /// of the cluster. None when the object or the kind does not exist.
    ///
    /// # Errors
    /// Whatever the request fails with.
    pub async fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, Error> {
        let kind = GroupVersionKind::from_api_version(api_version, kind);
        let Some(resource) = self.resource(&kind).await? else {
            return Ok(None);
        };
        let namespace = Some(namespace).filter(|namespace| resource.namespaced && !namespace.is_empty());
        if name.is_empty() {
            let selection = Selection {
                namespace,
                ..Selection::default()
            };
            let items = self.list_full(&resource, selection).await?.items;
            let list =
                json!({"apiVersion": api_version, "kind": format!("{}List", kind.kind), "items": items});
            return Ok(Some(list));
        }
        let object = ObjectRef {
            group: kind.group.clone(),
            kind: kind.kind.clone(),
            namespace: namespace.map(ToOwned::to_owned),
            name: name.to_owned(),
        };
        self.get_full(&resource, &object).await
    }
}
