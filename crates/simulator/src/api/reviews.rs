//! Requests that are answered, or turned into another change, without being stored: evictions, bindings, tokens and
//! reviews.

use serde_json::json;

use super::{Answer, ApiRequest};
use crate::body;
use crate::request::ResourcePath;
use crate::state::delete::DeleteOptions;
use crate::state::{Endpoint, State};
use crate::status::ApiError;

/// Kinds that are answered, not stored.
pub(super) fn is_review(endpoint: &Endpoint) -> bool {
    ["authentication.k8s.io", "authorization.k8s.io"].contains(&endpoint.resource.group.as_str())
}

impl ApiRequest {
    /// The eviction of a pod is its deletion; disruption budgets are not asked.
    pub(super) fn evict(&self, state: &mut State, path: &ResourcePath) -> Result<Answer, ApiError> {
        let pods = state
            .endpoint("", "pods")
            .ok_or_else(ApiError::no_such_resource)?;
        let body = body::parse(&self.body, "Eviction")?;
        let options = body
            .value
            .get("deleteOptions")
            .map(DeleteOptions::from_value)
            .transpose()?;
        state.delete(&pods, &path.namespace, &path.name, &options.unwrap_or_default())?;
        let status =
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        Ok(Answer::Json {
            code: 201,
            body: status.to_string(),
            warnings: Vec::new(),
        })
    }

    pub(super) fn bind(&self, state: &mut State, path: &ResourcePath) -> Result<Answer, ApiError> {
        let pods = state
            .endpoint("", "pods")
            .ok_or_else(ApiError::no_such_resource)?;
        let body = body::parse(&self.body, "Binding")?;
        let node = crate::json::text(&body.value, &["target", "name"]).to_owned();
        let key = crate::object::Key::new(&path.namespace, &path.name);
        state.change(&pods, &key, "binding", "kube-scheduler", |pod| {
            crate::json::set(pod, &["spec", "nodeName"], node)
        })?;
        let status =
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        Ok(Answer::Json {
            code: 201,
            body: status.to_string(),
            warnings: Vec::new(),
        })
    }

    pub(super) fn token(&self, path: &ResourcePath) -> Result<Answer, ApiError> {
        let mut review = body::parse(&self.body, "TokenRequest")?.value;
        let token = format!("simulated-{}-{}", path.name, uuid::Uuid::new_v4());
        crate::json::set(
            &mut review,
            &["status"],
            json!({"token": token, "expirationTimestamp": "2099-01-01T00:00:00Z"}),
        );
        Ok(Answer::Json {
            code: 201,
            body: review.to_string(),
            warnings: Vec::new(),
        })
    }

    /// Whoever has the cluster's token may do everything.
    pub(super) fn review(&self, endpoint: &Endpoint) -> Result<Answer, ApiError> {
        let mut review = body::parse(&self.body, &endpoint.resource.kind)?.value;
        let user = json!({"username": "evenkeel", "groups": ["system:masters", "system:authenticated"]});
        let status = match endpoint.resource.kind.as_str() {
            "SelfSubjectReview" => json!({"userInfo": user}),
            "SelfSubjectRulesReview" => {
                json!({"incomplete": false, "nonResourceRules": [{"nonResourceURLs": ["*"],
                "verbs": ["*"]}], "resourceRules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]})
            }
            "TokenReview" => json!({"authenticated": true, "user": user}),
            _ => json!({"allowed": true}),
        };
        crate::json::set(&mut review, &["status"], status);
        Ok(Answer::Json {
            code: 201,
            body: review.to_string(),
            warnings: Vec::new(),
        })
    }
}
