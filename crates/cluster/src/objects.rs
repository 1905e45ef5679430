//! The requests that the rest of this crate is made of: list, read, apply, delete one kind of object.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use evenkeel_core::ObjectRef;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::applyset::labels::FIELD_MANAGER;
use crate::connection::{Guard, PatchKind, Subject, Verb, WatchStream};
use crate::discovery::Resource;
use crate::live::{ACCEPT_METADATA, ACCEPT_METADATA_LIST, LiveObject, Page};
use crate::{Cluster, Error};

const JSON: &str = "application/json";

/// What of a kind is listed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Selection<'a> {
    /// One namespace; all of them when none is given.
    pub(crate) namespace: Option<&'a str>,
    /// A label selector; everything when empty.
    pub(crate) labels: &'a str,
    /// A field selector; everything when empty.
    pub(crate) fields: &'a str,
    /// At most this many, in one page.
    pub(crate) at_most: Option<usize>,
}

/// A list and the version it is of.
#[derive(Debug)]
pub(crate) struct Listed<T> {
    pub(crate) items: Vec<T>,
    pub(crate) resource_version: String,
    /// Whether [`Selection::at_most`] left something out.
    pub(crate) more: bool,
}

/// What an apply did.
#[derive(Debug)]
pub(crate) struct Applied {
    /// Whether the object did not exist before.
    pub(crate) created: bool,
    pub(crate) live: LiveObject,
}

/// What must hold for a deletion to happen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeletePreconditions<'a> {
    pub(crate) uid: &'a str,
    pub(crate) resource_version: &'a str,
}

/// Whether an object goes at once or after what it owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// Its dependants follow by themselves.
    Background,
    /// Its dependants stay, without an owner.
    Orphan,
    /// It stays until its dependants are gone.
    Foreground,
}

impl Propagation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Orphan => "Orphan",
            Self::Foreground => "Foreground",
        }
    }
}

impl Selection<'_> {
    fn query(&self, limit: usize, token: Option<&str>) -> String {
        let mut query = format!(
            "limit={}",
            self.at_most.map_or(limit, |at_most| at_most.min(limit))
        );
        for (key, value) in [
            ("labelSelector", Some(self.labels)),
            ("fieldSelector", Some(self.fields)),
            ("continue", token),
        ] {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                query.push_str(&format!("&{key}={}", encode(value)));
            }
        }
        query
    }
}

/// Percent-encodes everything but what a query carries bare.
fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[derive(Deserialize)]
struct FullPage {
    #[serde(default)]
    metadata: crate::live::PageMetadata,
    items: Option<Vec<Value>>,
}

impl Cluster {
    /// Metadata of the objects of `resource` that `selection` names, page by page.
    pub(crate) async fn list_live(
        &self,
        resource: &Resource,
        selection: Selection<'_>,
    ) -> Result<Listed<LiveObject>, Error> {
        let mut items = Vec::new();
        let (metadata, more) = self
            .list_pages(resource, selection, ACCEPT_METADATA_LIST, |body, doing| {
                let page: Page =
                    serde_json::from_slice(body).map_err(|error| Error::decode(doing, &error))?;
                let (metadata, page) = page.into_parts();
                items.extend(page);
                Ok(metadata)
            })
            .await?;
        Ok(Listed {
            items,
            resource_version: metadata,
            more,
        })
    }

    /// Whole objects of `resource` that `selection` names, page by page.
    pub(crate) async fn list_full(
        &self,
        resource: &Resource,
        selection: Selection<'_>,
    ) -> Result<Listed<Value>, Error> {
        let mut items = Vec::new();
        let (resource_version, more) = self
            .list_pages(resource, selection, JSON, |body, doing| {
                let page: FullPage =
                    serde_json::from_slice(body).map_err(|error| Error::decode(doing, &error))?;
                items.extend(page.items.unwrap_or_default());
                Ok(page.metadata)
            })
            .await?;
        Ok(Listed {
            items,
            resource_version,
            more,
        })
    }

    /// Shows `look` each whole object of `resource` that `selection` names, and keeps none.
    pub(crate) async fn visit_full(
        &self,
        resource: &Resource,
        selection: Selection<'_>,
        mut look: impl FnMut(Value),
    ) -> Result<(), Error> {
        let visited = self.list_pages(resource, selection, JSON, |body, doing| {
            let page: FullPage =
                serde_json::from_slice(body).map_err(|error| Error::decode(doing, &error))?;
            page.items.unwrap_or_default().into_iter().for_each(&mut look);
            Ok(page.metadata)
        });
        visited.await.map(drop)
    }

    async fn list_pages(
        &self,
        resource: &Resource,
        selection: Selection<'_>,
        accept: &str,
        mut take: impl FnMut(&[u8], &str) -> Result<crate::live::PageMetadata, Error>,
    ) -> Result<(String, bool), Error> {
        let what = resource.kind.group_kind();
        let subject = Subject::new(match selection.namespace.filter(|_| resource.namespaced) {
            Some(namespace) => format!("list {what} in namespace {namespace}"),
            None => format!("list {what}"),
        });
        let collection = resource.collection(selection.namespace);
        let mut token: Option<String> = None;
        loop {
            let path = format!(
                "{collection}?{}",
                selection.query(self.limits().page_size, token.as_deref())
            );
            let body = self.read(Verb::List, &path, accept, &subject).await?;
            let metadata = take(&body, &subject.doing)?;
            let next = metadata.r#continue.filter(|token| !token.is_empty());
            let version = metadata.resource_version.unwrap_or_default();
            match next {
                Some(_) if selection.at_most.is_some() => return Ok((version, true)),
                Some(next) => token = Some(next),
                None => return Ok((version, false)),
            }
        }
    }

    /// The metadata of one object; none when it does not exist.
    pub(crate) async fn get_live(
        &self,
        resource: &Resource,
        object: &ObjectRef,
    ) -> Result<Option<LiveObject>, Error> {
        let subject = Subject::object("read", object);
        let path = resource.object(object.namespace.as_deref(), &object.name);
        match self.read(Verb::Get, &path, ACCEPT_METADATA, &subject).await {
            Ok(body) => LiveObject::read(&body, &subject.doing).map(Some),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// One whole object; none when it does not exist.
    pub(crate) async fn get_full(
        &self,
        resource: &Resource,
        object: &ObjectRef,
    ) -> Result<Option<Value>, Error> {
        let subject = Subject::object("read", object);
        let path = resource.object(object.namespace.as_deref(), &object.name);
        match self.read(Verb::Get, &path, JSON, &subject).await {
            Ok(body) => serde_json::from_slice(&body)
                .map(Some)
                .map_err(|error| Error::decode(&subject.doing, &error)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Server-side apply of `body` under `manager`.
    pub(crate) async fn apply_as(
        &self,
        manager: &str,
        resource: &Resource,
        object: &ObjectRef,
        body: Vec<u8>,
        force: bool,
        guard: Guard<'_>,
    ) -> Result<Applied, Error> {
        let subject = Subject::object("apply", object);
        let path = format!(
            "{}?fieldManager={manager}&force={force}&fieldValidation=Strict",
            resource.object(object.namespace.as_deref(), &object.name)
        );
        self.send_patch(&path, PatchKind::Apply, body, &subject, guard)
            .await
    }

    /// Server-side apply of `body` under our field manager.
    pub(crate) async fn apply(
        &self,
        resource: &Resource,
        object: &ObjectRef,
        body: Vec<u8>,
        force: bool,
        guard: Guard<'_>,
    ) -> Result<Applied, Error> {
        self.apply_as(FIELD_MANAGER, resource, object, body, force, guard)
            .await
    }

    /// Asks the server whether it would accept the apply of `body`, without any effect.
    ///
    /// # Errors
    /// What the apply itself would fail with, as far as the server can tell beforehand.
    pub(crate) async fn dry_run(
        &self,
        resource: &Resource,
        object: &ObjectRef,
        body: Vec<u8>,
    ) -> Result<(), Error> {
        let subject = Subject::object("try to apply", object);
        let path = format!(
            "{}?fieldManager={FIELD_MANAGER}&force=true&fieldValidation=Strict&dryRun=All",
            resource.object(object.namespace.as_deref(), &object.name)
        );
        let request = http::Request::patch(path)
            .header(http::header::ACCEPT, ACCEPT_METADATA)
            .header(http::header::CONTENT_TYPE, PatchKind::Apply.content_type())
            .body(Bytes::from(body));
        self.send(Verb::DryRun, request, &subject, None).await.map(drop)
    }

    /// The whole object as it would be after the apply of `body`, without any effect.
    ///
    /// # Errors
    /// As [`Cluster::dry_run`]; without `force` also that somebody else owns a field.
    pub(crate) async fn dry_run_whole(
        &self,
        resource: &Resource,
        object: &ObjectRef,
        body: Vec<u8>,
        force: bool,
    ) -> Result<Value, Error> {
        let subject = Subject::object("try to apply", object);
        let path = format!(
            "{}?fieldManager={FIELD_MANAGER}&force={force}&fieldValidation=Strict&dryRun=All",
            resource.object(object.namespace.as_deref(), &object.name)
        );
        let request = http::Request::patch(path)
            .header(http::header::ACCEPT, JSON)
            .header(http::header::CONTENT_TYPE, PatchKind::Apply.content_type())
            .body(Bytes::from(body));
        let sent = self.send(Verb::DryRun, request, &subject, None).await?;
        serde_json::from_slice(&sent.body).map_err(|error| Error::decode(&subject.doing, &error))
    }

    /// Changes an object by a JSON merge patch, or by JSON patch operations.
    pub(crate) async fn patch(
        &self,
        resource: &Resource,
        object: &ObjectRef,
        kind: PatchKind,
        patch: &Value,
        guard: Guard<'_>,
    ) -> Result<LiveObject, Error> {
        let subject = Subject::object("change", object);
        let path = format!(
            "{}?fieldManager={FIELD_MANAGER}",
            resource.object(object.namespace.as_deref(), &object.name)
        );
        let body = patch.to_string().into_bytes();
        let patched = self.send_patch(&path, kind, body, &subject, guard).await?;
        Ok(patched.live)
    }

    /// Sends a patch. Of what it makes only the metadata is looked at, so nothing else is asked for.
    async fn send_patch(
        &self,
        path: &str,
        kind: PatchKind,
        body: Vec<u8>,
        subject: &Subject,
        guard: Guard<'_>,
    ) -> Result<Applied, Error> {
        let request = http::Request::patch(path)
            .header(http::header::ACCEPT, ACCEPT_METADATA)
            .header(http::header::CONTENT_TYPE, kind.content_type())
            .body(Bytes::from(body));
        let sent = self.send(Verb::Patch, request, subject, Some(guard)).await?;
        Ok(Applied {
            created: sent.status == StatusCode::CREATED,
            live: LiveObject::read(&sent.body, &subject.doing)?,
        })
    }

    /// Makes an object that must not exist.
    pub(crate) async fn create(
        &self,
        resource: &Resource,
        object: &ObjectRef,
        body: &Value,
        guard: Guard<'_>,
    ) -> Result<Bytes, Error> {
        let subject = Subject::object("create", object);
        let path = format!(
            "{}?fieldManager={FIELD_MANAGER}",
            resource.collection(object.namespace.as_deref())
        );
        let body = body.to_string().into_bytes();
        Ok(self
            .write(Verb::Create, &path, JSON, body, &subject, guard)
            .await?
            .body)
    }

    /// Replaces an object; its body carries the resource version that must still hold.
    pub(crate) async fn replace(
        &self,
        resource: &Resource,
        object: &ObjectRef,
        body: &Value,
        guard: Guard<'_>,
    ) -> Result<Bytes, Error> {
        let subject = Subject::object("update", object);
        let path = format!(
            "{}?fieldManager={FIELD_MANAGER}",
            resource.object(object.namespace.as_deref(), &object.name)
        );
        let body = body.to_string().into_bytes();
        Ok(self
            .write(Verb::Update, &path, JSON, body, &subject, guard)
            .await?
            .body)
    }

    /// Asks for an object's deletion. `false` when it did not exist any more.
    pub(crate) async fn delete(
        &self,
        resource: &Resource,
        object: &ObjectRef,
        preconditions: DeletePreconditions<'_>,
        propagation: Propagation,
        guard: Guard<'_>,
    ) -> Result<bool, Error> {
        let subject = Subject::object("delete", object);
        let path = resource.object(object.namespace.as_deref(), &object.name);
        let body = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation.as_str(),
            "preconditions": {"uid": preconditions.uid, "resourceVersion": preconditions.resource_version},
        });
        let body = body.to_string().into_bytes();
        match self.write(Verb::Delete, &path, JSON, body, &subject, guard).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Follows the objects of `resource` that `selection` names from `resource_version` on.
    pub(crate) async fn watch_kind(
        &self,
        resource: &Resource,
        selection: Selection<'_>,
        resource_version: &str,
        metadata_only: bool,
    ) -> Result<WatchStream, Error> {
        // The server ends the watch a little before we would take it for dead.
        let lifetime = self.limits().watch_idle_timeout;
        let lifetime = lifetime
            .saturating_sub(Duration::from_secs(5))
            .max(Duration::from_secs(5));
        let accept = if metadata_only { ACCEPT_METADATA } else { JSON };
        self.watch_for(resource, selection, resource_version, accept, lifetime)
            .await
    }

    /// Follows the metadata of the objects of `resource` that `selection` names from `resource_version` on, until the
    /// server ends it after `lifetime`.
    pub(crate) async fn watch_metadata(
        &self,
        resource: &Resource,
        selection: Selection<'_>,
        resource_version: &str,
        lifetime: Duration,
    ) -> Result<WatchStream, Error> {
        self.watch_for(resource, selection, resource_version, ACCEPT_METADATA, lifetime)
            .await
    }

    async fn watch_for(
        &self,
        resource: &Resource,
        selection: Selection<'_>,
        resource_version: &str,
        accept: &str,
        lifetime: Duration,
    ) -> Result<WatchStream, Error> {
        let seconds = lifetime.as_secs().max(1);
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={seconds}&labelSelector={}&fieldSelector={}",
            resource.collection(selection.namespace),
            encode(resource_version),
            encode(selection.labels),
            encode(selection.fields),
        );
        self.watch(
            &path,
            accept,
            Subject::new(format!("watch {}", resource.kind.group_kind())),
        )
        .await
    }
}

/// A resource of Kubernetes itself that is used without asking discovery.
pub(crate) fn built_in(
    group: &str,
    version: &str,
    kind: &str,
    plural: &str,
    namespaced: bool,
) -> Arc<Resource> {
    Arc::new(Resource {
        kind: evenkeel_core::GroupVersionKind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        },
        plural: plural.to_owned(),
        namespaced,
        listable: true,
        deletable: true,
        has_status: false,
    })
}

/// Secrets, which hold parents and kept renders.
pub(crate) fn secrets() -> Arc<Resource> {
    built_in("", "v1", "Secret", "secrets", true)
}

/// Namespaces.
pub(crate) fn namespaces() -> Arc<Resource> {
    built_in("", "v1", "Namespace", "namespaces", false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_encoded() {
        let selection = Selection {
            labels: "applyset.kubernetes.io/part-of in (a,b)",
            ..Selection::default()
        };
        assert_eq!(
            selection.query(500, None),
            "limit=500&labelSelector=applyset.kubernetes.io%2Fpart-of%20in%20%28a%2Cb%29"
        );
        let one = Selection {
            at_most: Some(1),
            ..Selection::default()
        };
        assert_eq!(one.query(500, Some("x=")), "limit=1&continue=x%3D");
    }
}
