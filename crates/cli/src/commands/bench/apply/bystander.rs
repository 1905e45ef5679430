//! Somebody else at the cluster: makes room for the programs, waits for quiet, edits what is not theirs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use evenkeel_cluster::{Cluster, ConnectOptions, KubeconfigPolicy, Limits};
use evenkeel_core::Sensitive;
use evenkeel_telemetry::SystemClock;
use futures::StreamExt as _;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
    PostParams, WatchEvent, WatchParams,
};
use serde_json::{Value, json};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(180);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(250);
/// Writes between two looks that are no unrest: leases are renewed all the time.
const WRITES_AT_REST: u64 = 2;
/// Under whose name it edits.
const FIELD_MANAGER: &str = "somebody";

/// Its connection.
pub(super) struct Bystander {
    client: kube::Client,
}

/// One edit of an object that is somebody else's.
pub(super) struct Edit {
    pub(super) resource: ApiResource,
    pub(super) name: String,
    /// The field, as a JSON pointer, and what is written into it.
    pub(super) field: &'static str,
    pub(super) value: Value,
}

impl Bystander {
    pub(super) async fn connect(kubeconfig: &str) -> anyhow::Result<Self> {
        let options = ConnectOptions {
            policy: KubeconfigPolicy::Registered,
            limits: Limits::default(),
            clock: Arc::new(SystemClock),
        };
        let cluster = Cluster::connect(&Sensitive::new(kubeconfig.to_owned()), options).await?;
        Ok(Self {
            client: cluster.raw_client(),
        })
    }

    fn namespaces(&self) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &core("Namespace", "namespaces"))
    }

    fn api(&self, resource: &ApiResource, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, resource)
    }

    pub(super) async fn create_namespace(&self, name: &str) -> anyhow::Result<()> {
        let namespace = DynamicObject::new(name, &core("Namespace", "namespaces"));
        let created = self.namespaces().create(&PostParams::default(), &namespace).await;
        created.with_context(|| format!("namespace {name} cannot be made"))?;
        Ok(())
    }

    /// Deletes namespaces with all that is in them, and waits until they are gone.
    pub(super) async fn delete_namespaces(&self, names: &[String]) -> anyhow::Result<()> {
        let api = self.namespaces();
        for name in names {
            let deleted = api.delete(name, &DeleteParams::default()).await;
            deleted.with_context(|| format!("namespace {name} cannot be deleted"))?;
        }
        let deadline = Instant::now() + PATIENCE;
        for name in names {
            while api.get_metadata_opt(name).await?.is_some() {
                if Instant::now() > deadline {
                    bail!("namespace {name} was not gone within {PATIENCE:?}");
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(())
    }

    /// How many objects of a kind in a namespace have names that begin with that of the namespace.
    pub(super) async fn count(&self, resource: &ApiResource, namespace: &str) -> anyhow::Result<usize> {
        let listed = self
            .api(resource, namespace)
            .list_metadata(&ListParams::default())
            .await?;
        let is_of_chart = |name: Option<&String>| name.is_some_and(|name| name.starts_with(namespace));
        let names = listed.items.iter().map(|item| item.metadata.name.as_ref());
        Ok(names.filter(|name| is_of_chart(*name)).count())
    }

    /// Waits until controllers have written what was left for them to write.
    pub(super) async fn settle(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let mut before = self.revision().await?;
        loop {
            tokio::time::sleep(PAUSE).await;
            let now = self.revision().await?;
            if now.saturating_sub(before) <= WRITES_AT_REST {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("the cluster did not come to rest within {PATIENCE:?}");
            }
            before = now;
        }
    }

    /// A number that grows with each write to the cluster.
    async fn revision(&self) -> anyhow::Result<u64> {
        let one = ListParams::default().limit(1);
        let listed = self
            .api(&core("ConfigMap", "configmaps"), "kube-system")
            .list_metadata(&one)
            .await?;
        let version = listed.metadata.resource_version.unwrap_or_default();
        version
            .parse()
            .with_context(|| format!("{version:?} is no revision of etcd"))
    }

    /// Edits an object and tells how long it takes from the answer to that until the field is no longer as it was set.
    pub(super) async fn heal_time(&self, namespace: &str, edit: &Edit) -> anyhow::Result<Duration> {
        let Edit {
            resource,
            name,
            field,
            value,
        } = edit;
        let api = self.api(resource, namespace);
        let what = format!("{field} of {} {name}", resource.kind);
        let patch = Patch::Merge(nested(field, value.clone()));
        let parameters = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let edited = api.patch(name, &parameters, &patch).await;
        let edited = edited.with_context(|| format!("{what} cannot be edited"))?;
        let started = Instant::now();
        if edited.data.pointer(field) != Some(value) {
            bail!("the edit of {what} had no effect");
        }
        let version = edited.metadata.resource_version.unwrap_or_default();
        let parameters = WatchParams::default().fields(&format!("metadata.name={name}"));
        let healed = async {
            let mut events = Box::pin(api.watch(&parameters, &version).await?);
            while let Some(event) = events.next().await {
                if let WatchEvent::Modified(object) = event?
                    && object.data.pointer(field) != Some(value)
                {
                    return Ok(started.elapsed());
                }
            }
            bail!("the watch of {what} ended");
        };
        match tokio::time::timeout(PATIENCE, healed).await {
            Ok(healed) => healed,
            Err(_) => bail!("{what} was not healed within {PATIENCE:?}"),
        }
    }
}

/// A kind of the core group.
fn core(kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", kind), plural)
}

/// `{"a": {"b": value}}` of `/a/b`.
fn nested(pointer: &str, value: Value) -> Value {
    pointer
        .split('/')
        .skip(1)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .fold(value, |inner, key| json!({key: inner}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_becomes_a_patch() {
        assert_eq!(
            nested("/spec/selector/app", json!("x")),
            json!({"spec": {"selector": {"app": "x"}}})
        );
    }
}
