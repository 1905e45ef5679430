//! Which of the Services that webhooks are called at have somebody behind them.

use std::collections::BTreeSet;

use evenkeel_core::ObjectRef;
use serde_json::Value;

use crate::connection::WatchEvent;
use crate::objects::{Listed, Selection, built_in};
use crate::readiness::webhooks::{self, Backend};
use crate::{Cluster, Error, ErrorClass};

/// What was found behind the webhooks of some configurations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backends {
    /// The Services without a ready endpoint.
    pub(crate) unserved: BTreeSet<Backend>,
    /// One of them, and the resource version from which its endpoints can be followed.
    since: Option<(Backend, String)>,
}

impl Cluster {
    /// Looks behind the webhooks that `configurations` speak of: one LIST of EndpointSlices for each Service.
    ///
    /// What may not be read is taken as served: it only makes verdicts better.
    ///
    /// # Errors
    /// Whatever else a request fails with.
    pub(crate) async fn backends(&self, configurations: &[Value]) -> Result<Backends, Error> {
        let mut found = Backends::default();
        let backends: BTreeSet<Backend> = configurations.iter().flat_map(webhooks::backends).collect();
        for backend in backends {
            let listed = match self.endpoint_slices(&backend).await {
                Ok(listed) => listed,
                Err(error) if may_not_be_read(&error) => {
                    tracing::debug!(%error, %backend, "endpoints cannot be read");
                    continue;
                }
                Err(error) => return Err(error),
            };
            if listed.items.iter().any(has_ready_endpoint) {
                continue;
            }
            // Such a name leads out of the cluster, where no endpoints are known.
            if listed.items.is_empty() && self.is_external(&backend).await? {
                continue;
            }
            if found.since.is_none() {
                found.since = Some((backend.clone(), listed.resource_version));
            }
            found.unserved.insert(backend);
        }
        Ok(found)
    }

    async fn endpoint_slices(&self, backend: &Backend) -> Result<Listed<Value>, Error> {
        let labels = selector(backend);
        let selection = Selection {
            namespace: Some(&backend.namespace),
            labels: &labels,
            ..Selection::default()
        };
        self.list_full(&slices(), selection).await
    }

    async fn is_external(&self, backend: &Backend) -> Result<bool, Error> {
        let services = built_in("", "v1", "Service", "services", true);
        let service = ObjectRef {
            group: String::new(),
            kind: "Service".to_owned(),
            namespace: Some(backend.namespace.clone()),
            name: backend.name.clone(),
        };
        match self.get_full(&services, &service).await {
            Ok(service) => Ok(service.is_some_and(|service| {
                service.pointer("/spec/type").and_then(Value::as_str) == Some("ExternalName")
            })),
            Err(error) if may_not_be_read(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns when something has changed behind an unserved webhook, or when it can no longer be told; never while there is
    /// none.
    ///
    /// # Errors
    /// Whatever the watch fails with.
    pub(crate) async fn backends_changed(&self, backends: &Backends) -> Result<(), Error> {
        let Some((backend, since)) = &backends.since else {
            return std::future::pending().await;
        };
        let labels = selector(backend);
        let selection = Selection {
            namespace: Some(&backend.namespace),
            labels: &labels,
            ..Selection::default()
        };
        let mut watch = match self.watch_kind(&slices(), selection, since, true).await {
            Err(Error::Expired { .. }) => return Ok(()),
            watch => watch?,
        };
        loop {
            match watch.next().await {
                Ok(Some(WatchEvent::Bookmark(_))) => {}
                Ok(_) | Err(Error::Expired { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

fn slices() -> std::sync::Arc<crate::discovery::Resource> {
    built_in("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true)
}

fn selector(backend: &Backend) -> String {
    format!("kubernetes.io/service-name={}", backend.name)
}

fn may_not_be_read(error: &Error) -> bool {
    matches!(error.class(), ErrorClass::Forbidden | ErrorClass::NotFound)
}

/// Whether a slice lists an endpoint that takes calls; one that does not say is taken as ready, as consumers of slices must.
fn has_ready_endpoint(slice: &Value) -> bool {
    let endpoints = slice.get("endpoints").and_then(Value::as_array);
    endpoints.into_iter().flatten().any(|endpoint| {
        let ready = endpoint.pointer("/conditions/ready").and_then(Value::as_bool);
        ready != Some(false)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_endpoint_that_does_not_say_is_ready() {
        for (endpoints, ready) in [
            (json!([]), false),
            (json!(null), false),
            (json!([{"conditions": {"ready": false}}]), false),
            (
                json!([{"conditions": {"ready": false}}, {"conditions": {"ready": true}}]),
                true,
            ),
            (json!([{"addresses": ["10.0.0.1"]}]), true),
        ] {
            assert_eq!(
                has_ready_endpoint(&json!({ "endpoints": endpoints })),
                ready,
                "{endpoints}"
            );
        }
    }
}
