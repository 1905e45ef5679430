//! Which kinds a cluster serves: a compact map, read in two requests and kept with the client.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use evenkeel_core::{GroupKind, GroupVersionKind};
use serde::Deserialize;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};

use crate::connection::{Subject, Verb};
use crate::{Cluster, Error};

/// Aggregated discovery, as `kubectl` asks for it.
const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                      application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
/// The map is read again after this long even when nobody misses a kind: versions come and go with upgrades.
const TTL: Duration = Duration::from_secs(600);
/// A miss reads the map again only when it is older than this, so that an unknown kind costs little.
const MISS_INTERVAL: Duration = Duration::from_secs(2);

/// How long discovery may still name a kind that is no longer served.
const GONE_WITHIN: Duration = Duration::from_secs(3);
const GONE_INTERVAL: Duration = Duration::from_millis(200);

/// One served kind in one version: all that is needed to make its URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Group, version and kind.
    pub kind: GroupVersionKind,
    /// The plural name of the URLs.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether it can be listed and watched with metadata only, so that sets and emptiness can be told.
    pub listable: bool,
    /// Whether single objects of it can be deleted.
    pub deletable: bool,
    /// Whether it has a status subresource, which a controller writes.
    pub has_status: bool,
}

impl Resource {
    /// The path of the collection: of `namespace`, or of the whole cluster.
    pub(crate) fn collection(&self, namespace: Option<&str>) -> String {
        let GroupVersionKind { group, version, .. } = &self.kind;
        let root = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }

    /// The path of one object.
    pub(crate) fn object(&self, namespace: Option<&str>, name: &str) -> String {
        // Names of RBAC objects may hold characters that a path cannot carry bare, like `:` or `%`.
        let name: String = name
            .bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b':' | b'@' => {
                    char::from(byte).to_string()
                }
                _ => format!("%{byte:02X}"),
            })
            .collect();
        format!("{}/{name}", self.collection(namespace))
    }
}

/// What one cluster serves at one time.
#[derive(Debug)]
pub struct Discovery {
    /// Versions of each kind, the preferred one first.
    kinds: HashMap<GroupKind, Vec<Arc<Resource>>>,
    /// Group versions whose own server did not answer.
    unavailable: BTreeSet<String>,
    /// The server's version, read when somebody first asks and as old as the rest.
    version: OnceCell<String>,
    read_at: Instant,
}

impl Discovery {
    async fn read(cluster: &Cluster) -> Result<Arc<Self>, Error> {
        let subject = Subject::new("discover the kinds of the cluster");
        let (core, groups) = futures::try_join!(
            cluster.read(Verb::Get, "/api", ACCEPT, &subject),
            cluster.read(Verb::Get, "/apis", ACCEPT, &subject)
        )?;
        let mut discovery = Self {
            kinds: HashMap::new(),
            unavailable: BTreeSet::new(),
            version: OnceCell::new(),
            read_at: Instant::now(),
        };
        for body in [core, groups] {
            let list: GroupList =
                serde_json::from_slice(&body).map_err(|error| Error::decode(&subject.doing, &error))?;
            if list.kind != "APIGroupDiscoveryList" {
                let reason = "no aggregated discovery; expected Kubernetes 1.27 or newer".to_owned();
                return Err(Error::Decode {
                    doing: subject.doing,
                    reason,
                });
            }
            list.items.into_iter().for_each(|group| discovery.add(group));
        }
        Ok(Arc::new(discovery))
    }

    fn add(&mut self, group: Group) {
        let name = group.metadata.name;
        for version in group.versions {
            if version.freshness.as_deref() == Some("Stale") {
                self.unavailable.insert(if name.is_empty() {
                    version.version.clone()
                } else {
                    format!("{name}/{}", version.version)
                });
            }
            for resource in version.resources {
                let Some(response) = resource.response_kind.filter(|kind| !kind.kind.is_empty()) else {
                    continue;
                };
                let can = |verb: &str| resource.verbs.iter().any(|has| has == verb);
                // The kind of a response may be of another group, like a Scale; the URL's group is this one.
                let kind = GroupVersionKind {
                    group: name.clone(),
                    version: version.version.clone(),
                    kind: response.kind,
                };
                let versions = self.kinds.entry(kind.group_kind()).or_default();
                versions.push(Arc::new(Resource {
                    kind,
                    namespaced: resource.scope == "Namespaced",
                    listable: can("list"),
                    deletable: can("delete"),
                    has_status: resource
                        .subresources
                        .iter()
                        .any(|sub| sub.subresource == "status"),
                    plural: resource.resource,
                }));
            }
        }
    }

    /// The kind in exactly this version.
    pub fn exact(&self, kind: &GroupVersionKind) -> Option<&Arc<Resource>> {
        self.kinds
            .get(&kind.group_kind())?
            .iter()
            .find(|resource| resource.kind.version == kind.version)
    }

    /// The kind in the version the server prefers.
    pub fn preferred(&self, kind: &GroupKind) -> Option<&Arc<Resource>> {
        self.kinds.get(kind)?.first()
    }

    /// The unavailable group version that could hold `group`, when there is one.
    pub fn unavailable(&self, group: &str) -> Option<&str> {
        let of_group = |known: &&String| known.split_once('/').map_or("", |(name, _)| name) == group;
        self.unavailable.iter().find(of_group).map(String::as_str)
    }

    /// Every group version whose own server did not answer.
    pub fn all_unavailable(&self) -> impl Iterator<Item = &str> {
        self.unavailable.iter().map(String::as_str)
    }

    /// One version of every namespaced kind that can be listed.
    pub(crate) fn namespaced(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.kinds
            .values()
            .filter_map(|versions| versions.first())
            .filter(|kind| kind.namespaced && kind.listable)
    }

    /// One version of every kind that can be listed and whose objects can be deleted.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.kinds
            .values()
            .filter_map(|versions| versions.first())
            .filter(|kind| kind.listable && kind.deletable)
    }

    /// Every served group version and kind, for `.Capabilities.APIVersions`: `apps/v1` and `apps/v1/Deployment`.
    pub fn api_versions(&self) -> BTreeSet<String> {
        let resources = self.kinds.values().flatten();
        resources
            .flat_map(|resource| [resource.kind.api_version(), resource.kind.to_string()])
            .collect()
    }
}

/// The discovery of one client; read at most once at a time, however many ask.
#[derive(Debug, Default)]
pub(crate) struct DiscoveryCache(RwLock<Arc<OnceCell<Arc<Discovery>>>>);

impl DiscoveryCache {
    fn cell(&self) -> Arc<OnceCell<Arc<Discovery>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets `seen`, unless somebody else has done so already.
    fn forget(&self, seen: &Arc<Discovery>) {
        let mut cell = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if cell.get().is_some_and(|current| Arc::ptr_eq(current, seen)) {
            *cell = Arc::default();
        }
    }
}

impl Cluster {
    /// What the cluster serves, as last read.
    ///
    /// # Errors
    /// Whatever the two requests fail with.
    pub async fn discovery(&self) -> Result<Arc<Discovery>, Error> {
        let cache = self.discovery_cache();
        let seen = cache
            .cell()
            .get_or_try_init(|| Discovery::read(self))
            .await?
            .clone();
        // While live watches vouch for the cluster, its checks ask it nothing.
        if seen.read_at.elapsed() < TTL || self.is_trusted() {
            return Ok(seen);
        }
        self.rediscover(&seen).await
    }

    /// What the cluster serves now, for somebody who missed a kind in `seen`.
    pub(crate) async fn discovery_after_miss(&self, seen: &Arc<Discovery>) -> Result<Arc<Discovery>, Error> {
        if seen.read_at.elapsed() < MISS_INTERVAL {
            return Ok(seen.clone());
        }
        self.rediscover(seen).await
    }

    /// What the cluster serves now, for somebody who knows that `seen` is out of date.
    pub(crate) async fn rediscover(&self, seen: &Arc<Discovery>) -> Result<Arc<Discovery>, Error> {
        let cache = self.discovery_cache();
        cache.forget(seen);
        cache
            .cell()
            .get_or_try_init(|| Discovery::read(self))
            .await
            .cloned()
    }

    /// Whether the cluster has stopped serving `kind`, for somebody whose request for it was answered with 404. Discovery
    /// learns a little later than requests do.
    pub(crate) async fn is_no_longer_served(&self, kind: &GroupKind) -> Result<bool, Error> {
        let deadline = Instant::now() + GONE_WITHIN;
        loop {
            let seen = self.discovery().await?;
            let now = self.rediscover(&seen).await?;
            if now.preferred(kind).is_none() {
                return Ok(now.unavailable(&kind.group).is_none());
            }
            if Instant::now() + GONE_INTERVAL > deadline {
                return Ok(false);
            }
            sleep(GONE_INTERVAL).await;
        }
    }

    /// The kind as served, in exactly this version; a miss looks once more.
    ///
    /// # Errors
    /// [`Error::ApiUnavailable`] when the group's server does not answer; whatever discovery fails with. `None` when the
    /// cluster serves no such kind.
    pub async fn resource(&self, kind: &GroupVersionKind) -> Result<Option<Arc<Resource>>, Error> {
        let seen = self.discovery().await?;
        if let Some(resource) = seen.exact(kind) {
            return Ok(Some(resource.clone()));
        }
        let seen = self.discovery_after_miss(&seen).await?;
        match (seen.exact(kind), seen.unavailable(&kind.group)) {
            (Some(resource), _) => Ok(Some(resource.clone())),
            (None, Some(group)) => Err(Error::ApiUnavailable {
                group: group.to_owned(),
            }),
            (None, None) => Ok(None),
        }
    }

    /// The kind in the version that the server prefers; a miss looks once more.
    ///
    /// # Errors
    /// As [`Cluster::resource`].
    pub async fn preferred_resource(&self, kind: &GroupKind) -> Result<Option<Arc<Resource>>, Error> {
        let seen = self.discovery().await?;
        if let Some(resource) = seen.preferred(kind) {
            return Ok(Some(resource.clone()));
        }
        let seen = self.discovery_after_miss(&seen).await?;
        match (seen.preferred(kind), seen.unavailable(&kind.group)) {
            (Some(resource), _) => Ok(Some(resource.clone())),
            (None, Some(group)) => Err(Error::ApiUnavailable {
                group: group.to_owned(),
            }),
            (None, None) => Ok(None),
        }
    }

    /// The server's version, like `v1.37.2`, for `.Capabilities.KubeVersion`; kept as long as what it serves.
    ///
    /// # Errors
    /// Whatever the request fails with.
    pub async fn kubernetes_version(&self) -> Result<String, Error> {
        if self.discovery_cache().cell().initialized() {
            let seen = self.discovery().await?;
            return seen
                .version
                .get_or_try_init(|| self.read_version())
                .await
                .cloned();
        }
        // Asked of a new client: what it does not know yet is read at the same time.
        let (seen, version) = futures::try_join!(self.discovery(), self.read_version())?;
        Ok(seen.version.get_or_init(|| async { version }).await.clone())
    }

    async fn read_version(&self) -> Result<String, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            git_version: String,
        }
        let subject = Subject::new("read the version of the cluster");
        let body = self
            .read(Verb::Get, "/version", "application/json", &subject)
            .await?;
        let version: Version =
            serde_json::from_slice(&body).map_err(|error| Error::decode(&subject.doing, &error))?;
        Ok(version.git_version)
    }
}

#[derive(Deserialize)]
struct GroupList {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: Name,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
struct Name {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Version {
    #[serde(default)]
    version: String,
    freshness: Option<String>,
    #[serde(default)]
    resources: Vec<ResourceEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceEntry {
    resource: String,
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    subresources: Vec<Subresource>,
}

#[derive(Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
struct Subresource {
    #[serde(default)]
    subresource: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn discovery() -> Discovery {
        let groups: Vec<Group> = serde_json::from_value(json!([
            {"versions": [{"version": "v1", "resources": [
                {"resource": "configmaps", "responseKind": {"kind": "ConfigMap"}, "scope": "Namespaced", "verbs": ["list", "get"]},
            ]}]},
            {"metadata": {"name": "autoscaling"}, "versions": [
                {"version": "v2", "resources": [{"resource": "horizontalpodautoscalers", "responseKind": {"kind": "HorizontalPodAutoscaler"},
                    "scope": "Namespaced", "verbs": ["list", "delete"], "subresources": [{"subresource": "status"}]}]},
                {"version": "v1", "resources": [{"resource": "horizontalpodautoscalers", "responseKind": {"kind": "HorizontalPodAutoscaler"},
                    "scope": "Namespaced", "verbs": ["list"]}]},
            ]},
            {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1beta1", "freshness": "Stale"}]},
        ]))
        .expect("groups");
        let mut discovery = Discovery {
            kinds: HashMap::new(),
            unavailable: BTreeSet::new(),
            version: OnceCell::new(),
            read_at: Instant::now(),
        };
        groups.into_iter().for_each(|group| discovery.add(group));
        discovery
    }

    #[tokio::test]
    async fn kinds_are_found_by_version_and_by_preference() {
        let discovery = discovery();
        let hpa = GroupKind::new("autoscaling", "HorizontalPodAutoscaler");
        let preferred = discovery.preferred(&hpa).expect("served");
        assert_eq!(preferred.kind.version, "v2");
        assert!(preferred.has_status && preferred.deletable);
        let v1 = GroupVersionKind::from_api_version("autoscaling/v1", "HorizontalPodAutoscaler");
        assert_eq!(
            discovery.exact(&v1).map(|found| found.kind.version.as_str()),
            Some("v1")
        );
        let v3 = GroupVersionKind::from_api_version("autoscaling/v3", "HorizontalPodAutoscaler");
        assert_eq!(discovery.exact(&v3), None);
        assert!(
            discovery
                .api_versions()
                .contains("autoscaling/v2/HorizontalPodAutoscaler")
        );
    }

    #[tokio::test]
    async fn a_broken_api_is_no_missing_one() {
        let discovery = discovery();
        assert_eq!(
            discovery.unavailable("metrics.k8s.io"),
            Some("metrics.k8s.io/v1beta1")
        );
        assert_eq!(discovery.unavailable("autoscaling"), None);
        assert_eq!(discovery.unavailable(""), None);
    }

    #[tokio::test]
    async fn paths_carry_any_name() {
        let discovery = discovery();
        let resource = discovery
            .preferred(&GroupKind::new("", "ConfigMap"))
            .expect("served");
        assert_eq!(
            resource.object(Some("a"), "b"),
            "/api/v1/namespaces/a/configmaps/b"
        );
        assert_eq!(
            resource.object(Some("a"), "x:y%z/é"),
            "/api/v1/namespaces/a/configmaps/x:y%25z%2F%C3%A9"
        );
        assert_eq!(resource.collection(None), "/api/v1/configmaps");
    }
}
