//! Counts requests at the server.
//!
//! The API server writes one audit line for each request before it handles it (stage `RequestReceived`, in its
//! default blocking mode) and one after (`ResponseComplete`). So when a client has an answer, the first line of that
//! request is on disk: counting those lines is exact, without waiting. Metrics are not: they are summed over all
//! clients. The cluster's own controllers and stand-ins are left out by the policy.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::Error;
use crate::cluster::{CONTROLLER_USER, STANDIN_USER};

/// The audit policy of a cluster, as `--audit-policy-file` wants it.
pub(crate) fn policy() -> String {
    format!(
        "apiVersion: audit.k8s.io/v1\n\
         kind: Policy\n\
         omitStages: [ResponseStarted, Panic]\n\
         omitManagedFields: true\n\
         rules:\n\
         - level: None\n\
         \x20 users: [\"system:apiserver\", \"{CONTROLLER_USER}\", \"{STANDIN_USER}\"]\n\
         - level: Metadata\n"
    )
}

/// The audit log of one cluster's API server.
#[derive(Clone, Debug)]
pub struct AuditLog {
    path: PathBuf,
}

/// A place in an audit log: what comes after it is later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditMark {
    offset: u64,
}

/// One request as the API server saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedRequest {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// Path and query.
    pub uri: String,
    /// Whose credentials it carried.
    pub user: String,
    /// The client's `User-Agent`; empty without one.
    pub user_agent: String,
    /// Plural name: `deployments`. Empty for paths that are no resources, like discovery.
    pub resource: String,
    /// API group; empty for the core group.
    pub group: String,
    /// `status`, `scale`, …; empty for the resource itself.
    pub subresource: String,
    /// Namespace, empty for objects without.
    pub namespace: String,
    /// Name of the object, empty for lists.
    pub name: String,
    /// HTTP status. None while the request runs, as a watch does, and possibly just after its answer arrived.
    pub code: Option<u16>,
}

impl AuditedRequest {
    /// Whether the request wanted to change something. A dry run changes nothing.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch" | "options" | "head")
            && !self.uri.contains("dryRun=All")
    }
}

impl AuditLog {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The file, one JSON object a line.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The present end of the log.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn mark(&self) -> Result<AuditMark, Error> {
        let length = std::fs::metadata(&self.path).map_err(self.io())?.len();
        Ok(AuditMark { offset: length })
    }

    /// All requests received after `mark`, in that order.
    ///
    /// # Errors
    /// When the file cannot be read or a line in it is broken.
    pub fn since(&self, mark: AuditMark) -> Result<Vec<AuditedRequest>, Error> {
        let mut file = File::open(&self.path).map_err(self.io())?;
        file.seek(SeekFrom::Start(mark.offset)).map_err(self.io())?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(self.io())?;
        parse(&bytes).map_err(|(offset, source)| Error::Audit {
            path: self.path.clone(),
            offset: mark.offset + offset,
            source,
        })
    }

    /// All requests received since the cluster started.
    ///
    /// # Errors
    /// As [`Self::since`].
    pub fn all(&self) -> Result<Vec<AuditedRequest>, Error> {
        self.since(AuditMark { offset: 0 })
    }

    fn io(&self) -> impl FnOnce(std::io::Error) -> Error {
        Error::io(format!("read the audit log {}", self.path.display()))
    }
}

/// The fields of an `audit.k8s.io/v1` Event that we use.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(rename = "auditID")]
    audit_id: String,
    stage: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    #[serde(default)]
    user: User,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: Option<ResponseStatus>,
}

#[derive(Default, Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectRef {
    #[serde(default)]
    resource: String,
    #[serde(default)]
    api_group: String,
    #[serde(default)]
    subresource: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: Option<u16>,
}

/// Requests of a piece of an audit log; on error the offset of the broken line. A last line without its end is
/// still being written and left out.
fn parse(bytes: &[u8]) -> Result<Vec<AuditedRequest>, (u64, serde_json::Error)> {
    let mut requests: Vec<AuditedRequest> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut offset = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if !line.ends_with(b"\n") {
            break;
        }
        let event: Event = serde_json::from_slice(line).map_err(|error| (offset, error))?;
        offset += line.len() as u64;
        if event.stage == "RequestReceived" {
            places.insert(event.audit_id, requests.len());
            requests.push(AuditedRequest {
                verb: event.verb,
                uri: event.request_uri,
                user: event.user.username,
                user_agent: event.user_agent,
                resource: event.object_ref.resource,
                group: event.object_ref.api_group,
                subresource: event.object_ref.subresource,
                namespace: event.object_ref.namespace,
                name: event.object_ref.name,
                code: None,
            });
        } else if let Some(request) = places
            .get(&event.audit_id)
            .and_then(|place| requests.get_mut(*place))
        {
            request.code = event.response_status.and_then(|status| status.code);
        }
    }
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = concat!(
        r#"{"auditID":"a","stage":"RequestReceived","requestURI":"/api/v1/namespaces/n/pods/p/status","verb":"patch","user":{"username":"me"},"userAgent":"probe","objectRef":{"resource":"pods","namespace":"n","name":"p","apiVersion":"v1","subresource":"status"}}"#,
        "\n",
        r#"{"auditID":"b","stage":"RequestReceived","requestURI":"/apis","verb":"get","user":{"username":"me"}}"#,
        "\n",
        r#"{"auditID":"a","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/n/pods/p/status","verb":"patch","responseStatus":{"metadata":{},"code":404}}"#,
        "\n",
        r#"{"auditID":"z","stage":"ResponseComplete","requestURI":"/before","verb":"get"}"#,
        "\n",
        r#"{"auditID":"c","sta"#,
    );

    #[test]
    fn a_request_is_counted_once_with_its_answer() {
        let requests = parse(LINES.as_bytes()).unwrap();
        assert_eq!(requests.len(), 2);
        assert_eq!(
            (requests[0].resource.as_str(), requests[0].subresource.as_str()),
            ("pods", "status")
        );
        assert_eq!((requests[0].code, requests[1].code), (Some(404), None));
        assert!(requests[0].is_write());
        assert!(!requests[1].is_write());
    }

    #[test]
    fn a_broken_line_is_an_error_with_its_place() {
        let (offset, _) =
            parse(format!("{}\nbroken\n", LINES.lines().next().unwrap()).as_bytes()).unwrap_err();
        assert_eq!(offset, LINES.lines().next().unwrap().len() as u64 + 1);
    }
}
