//! Fields that the API server never changes once an object exists, and what is done when a component needs them changed.
//!
//! The server decides what is such a change: a plan asks it by a dry run. The table below only says for which kinds and
//! fields that question is worth a request, and what follows from a yes. An annotation of the object overrides the table:
//!
//! | `evenkeel.dev/on-immutable-change` | what happens |
//! |---|---|
//! | `recreate` | deleted with all it owns, waited for, made again |
//! | `orphan-recreate` | deleted alone, its pods go on, and the new object takes them over |
//! | `error` | the plan is refused and nothing is written |
//!
//! Namespaces, CustomResourceDefinitions and PersistentVolumes are never deleted for this, whatever an annotation says.

use evenkeel_core::GroupKind;
use serde_json::{Map, Value};

use crate::applyset::labels::ON_IMMUTABLE_CHANGE;
use crate::fingerprint::Fingerprint;
use crate::order;

/// What is done with an object whose immutable fields must change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Deleted with all it owns, and made again.
    Recreate,
    /// Deleted without what it owns, and made again.
    OrphanRecreate,
    /// Refused.
    Refuse,
}

/// The fields of one kind that stay as they were made.
#[derive(Debug)]
pub(crate) struct Rule {
    group: &'static str,
    kind: &'static str,
    /// JSON pointers.
    pub(crate) fields: &'static [&'static str],
    /// What is done when the object says nothing else.
    pub(crate) policy: Policy,
}

const fn rule(
    group: &'static str,
    kind: &'static str,
    fields: &'static [&'static str],
    policy: Policy,
) -> Rule {
    Rule {
        group,
        kind,
        fields,
        policy,
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";
const STORAGE: &str = "storage.k8s.io";

/// Every kind with a rule. The sources are the validation of Kubernetes v1.37; each row is proven on the real server by
/// the scenario `the_server_agrees_with_every_rule`.
const RULES: [Rule; 24] = [
    // pkg/apis/batch/validation ValidateJobSpecUpdate. A Job is a run, so a changed one is another run.
    rule(
        "batch",
        "Job",
        &[
            "/spec/completions",
            "/spec/completionMode",
            "/spec/selector",
            "/spec/template",
            "/spec/podFailurePolicy",
            "/spec/backoffLimitPerIndex",
            "/spec/managedBy",
            "/spec/successPolicy",
        ],
        Policy::Recreate,
    ),
    // pkg/apis/apps/validation ValidateStatefulSetUpdate: all but a few fields. Pods and claims outlive the object.
    rule(
        "apps",
        "StatefulSet",
        &[
            "/spec/selector",
            "/spec/serviceName",
            "/spec/podManagementPolicy",
            "/spec/volumeClaimTemplates",
        ],
        Policy::OrphanRecreate,
    ),
    // pkg/apis/apps/validation ValidateDeploymentUpdate and siblings. To make one again stops every pod.
    rule("apps", "Deployment", &["/spec/selector"], Policy::Refuse),
    rule("apps", "DaemonSet", &["/spec/selector"], Policy::Refuse),
    rule("apps", "ReplicaSet", &["/spec/selector"], Policy::Refuse),
    // pkg/apis/apps/validation ValidateControllerRevisionUpdate.
    rule("apps", "ControllerRevision", &["/data"], Policy::Refuse),
    // pkg/apis/core/validation ValidatePodUpdate: all but images and a few bounds.
    rule("", "Pod", &["/spec"], Policy::Refuse),
    // pkg/apis/core/validation ValidateServiceUpdate: addresses are given once. To make one again changes its address.
    rule(
        "",
        "Service",
        &[
            "/spec/clusterIP",
            "/spec/clusterIPs",
            "/spec/ipFamilies",
            "/spec/loadBalancerClass",
            "/spec/healthCheckNodePort",
        ],
        Policy::Refuse,
    ),
    // pkg/apis/core/validation ValidatePersistentVolumeClaimUpdate: only the size may grow. To delete one deletes data.
    rule("", "PersistentVolumeClaim", &["/spec"], Policy::Refuse),
    // pkg/apis/core/validation ValidatePersistentVolumeUpdate: the source.
    rule("", "PersistentVolume", &["/spec"], Policy::Refuse),
    // KEP-1412 and pkg/apis/core/validation ValidateSecretUpdate, ValidateConfigMapUpdate. Sealed on purpose.
    rule("", "ConfigMap", &SEALED, Policy::Refuse),
    rule("", "Secret", &SEALED, Policy::Refuse),
    // pkg/apis/rbac/validation ValidateRoleBindingUpdate. `kubectl auth reconcile` makes such a binding again, too.
    rule(RBAC, "RoleBinding", &["/roleRef"], Policy::Recreate),
    rule(RBAC, "ClusterRoleBinding", &["/roleRef"], Policy::Recreate),
    // pkg/apis/storage/validation ValidateStorageClassUpdate, ValidateCSIDriverUpdate, ValidateVolumeAttributesClassUpdate.
    rule(
        STORAGE,
        "StorageClass",
        &[
            "/parameters",
            "/provisioner",
            "/reclaimPolicy",
            "/volumeBindingMode",
        ],
        Policy::Refuse,
    ),
    rule(
        STORAGE,
        "CSIDriver",
        &["/spec/attachRequired", "/spec/volumeLifecycleModes"],
        Policy::Refuse,
    ),
    rule(
        STORAGE,
        "VolumeAttributesClass",
        &["/driverName", "/parameters"],
        Policy::Refuse,
    ),
    // pkg/apis/scheduling/validation ValidatePriorityClassUpdate.
    rule(
        "scheduling.k8s.io",
        "PriorityClass",
        &["/value", "/preemptionPolicy"],
        Policy::Refuse,
    ),
    // pkg/apis/networking/validation ValidateIngressClassUpdate.
    rule(
        "networking.k8s.io",
        "IngressClass",
        &["/spec/controller"],
        Policy::Refuse,
    ),
    // pkg/apis/node/validation ValidateRuntimeClassUpdate.
    rule("node.k8s.io", "RuntimeClass", &["/handler"], Policy::Refuse),
    // pkg/apis/discovery/validation ValidateEndpointSliceUpdate.
    rule(
        "discovery.k8s.io",
        "EndpointSlice",
        &["/addressType"],
        Policy::Refuse,
    ),
    // pkg/apis/resource/validation ValidateResourceClaimUpdate, ValidateResourceClaimTemplateUpdate.
    rule("resource.k8s.io", "ResourceClaim", &["/spec"], Policy::Refuse),
    rule(
        "resource.k8s.io",
        "ResourceClaimTemplate",
        &["/spec"],
        Policy::Refuse,
    ),
    // pkg/apis/certificates/validation: a request is signed as it was made.
    rule(
        "certificates.k8s.io",
        "CertificateSigningRequest",
        &["/spec"],
        Policy::Refuse,
    ),
];

/// What of a Secret or ConfigMap stays; the content only while it is sealed.
const SEALED: [&str; 5] = ["/type", "/immutable", "/data", "/stringData", "/binaryData"];
/// Those of [`SEALED`] that stay only while the object says so.
const SEALED_CONTENT: [&str; 3] = ["/data", "/stringData", "/binaryData"];

/// The rule of a kind.
pub(crate) fn rule_of(kind: &GroupKind) -> Option<&'static Rule> {
    RULES
        .iter()
        .find(|rule| rule.kind == kind.kind && rule.group == kind.group)
}

/// The fields of `body` that a rule of its kind fixes.
fn fixed_fields<'a>(rule: &'static Rule, body: &'a Value) -> impl Iterator<Item = (&'static str, &'a Value)> {
    let sealed = body.get("immutable").and_then(Value::as_bool) == Some(true);
    rule.fields
        .iter()
        .filter(move |field| sealed || !(is_content(rule) && SEALED_CONTENT.contains(field)))
        .filter_map(|field| Some((*field, body.pointer(field)?)))
}

fn is_content(rule: &Rule) -> bool {
    rule.group.is_empty() && matches!(rule.kind, "ConfigMap" | "Secret")
}

/// A fingerprint of what `body` says in fields that stay as they were made; none for kinds without a rule.
///
/// As long as it is equal, no change of the rest can be refused for being immutable.
pub(crate) fn fixed(kind: &GroupKind, body: &Value) -> Option<Fingerprint> {
    let rule = rule_of(kind)?;
    let fields: Map<String, Value> = fixed_fields(rule, body)
        .map(|(field, value)| (field.to_owned(), value.clone()))
        .collect();
    Some(Fingerprint::of(&Value::Object(fields)))
}

/// `body` with nothing but the fields that stay, for naming those that differ.
pub(crate) fn only_fixed(rule: &'static Rule, body: &Value) -> Value {
    let mut only = Value::Object(Map::new());
    for field in rule.fields {
        if let Some(value) = body.pointer(field) {
            put(&mut only, field, value.clone());
        }
    }
    only
}

fn put(into: &mut Value, pointer: &str, value: Value) {
    let mut at = into;
    let mut keys = pointer.split('/').skip(1).peekable();
    while let Some(key) = keys.next() {
        let Some(map) = at.as_object_mut() else {
            return;
        };
        if keys.peek().is_none() {
            map.insert(key.to_owned(), value);
            return;
        }
        at = map.entry(key).or_insert_with(|| Value::Object(Map::new()));
    }
}

/// What the object's annotation asks for.
pub(crate) fn asked(body: &Value) -> Option<Policy> {
    match annotation(body)? {
        "recreate" => Some(Policy::Recreate),
        "orphan-recreate" => Some(Policy::OrphanRecreate),
        _ => Some(Policy::Refuse),
    }
}

fn annotation(body: &Value) -> Option<&str> {
    body.get("metadata")?
        .get("annotations")?
        .get(ON_IMMUTABLE_CHANGE)?
        .as_str()
}

/// What is wrong with the annotation of an object, for whoever wrote it.
pub(crate) fn check_annotation(kind: &GroupKind, body: &Value) -> Result<(), String> {
    let Some(value) = annotation(body) else {
        return Ok(());
    };
    let wrong = match value {
        "error" => return Ok(()),
        "recreate" | "orphan-recreate" if never_deleted(kind) => {
            format!(
                "objects of kind {kind} are never deleted to be made again; expected error or no annotation"
            )
        }
        "recreate" => return Ok(()),
        "orphan-recreate" if order::owns_pods(kind) => return Ok(()),
        "orphan-recreate" => {
            format!("objects of kind {kind} own no pods that could go on; expected recreate or error")
        }
        other => format!("expected recreate, orphan-recreate or error, found {other:?}"),
    };
    Err(format!("metadata.annotations[{ON_IMMUTABLE_CHANGE}]: {wrong}"))
}

/// Kinds whose objects hold what others own: no override deletes them.
pub(crate) fn never_deleted(kind: &GroupKind) -> bool {
    order::is_shared(kind) || kind.group.is_empty() && kind.kind == "PersistentVolume"
}

/// What a person can do about a change that is refused.
pub(crate) fn advice(kind: &GroupKind) -> String {
    if never_deleted(kind) {
        return "it is never deleted for that; keep the fields as they are or give the new object another name".to_owned();
    }
    let loses = match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "PersistentVolumeClaim") => ", which deletes its data",
        ("apps", _) => ", which stops its pods",
        ("", "Service") => ", which may change its address",
        _ => "",
    };
    format!(
        "keep the fields as they are, give the new object another name, or set its annotation {ON_IMMUTABLE_CHANGE}: \
         recreate to have it deleted and made again{loses}"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_fixed_fields_count() {
        let job = GroupKind::new("batch", "Job");
        let body = json!({"spec": {"template": {"a": 1}, "backoffLimit": 1}});
        let more = json!({"spec": {"template": {"a": 1}, "backoffLimit": 2}});
        let other = json!({"spec": {"template": {"a": 2}, "backoffLimit": 1}});
        assert_eq!(fixed(&job, &body), fixed(&job, &more));
        assert_ne!(fixed(&job, &body), fixed(&job, &other));
        assert_eq!(fixed(&GroupKind::new("ex.io", "Job"), &body), None);
        let rule = rule_of(&job).expect("a rule");
        assert_eq!(only_fixed(rule, &body), json!({"spec": {"template": {"a": 1}}}));
    }

    #[test]
    fn content_is_fixed_while_it_is_sealed() {
        let kind = GroupKind::new("", "ConfigMap");
        let open = |value: &str| json!({"data": {"a": value}});
        let sealed = |value: &str| json!({"immutable": true, "data": {"a": value}});
        assert_eq!(fixed(&kind, &open("1")), fixed(&kind, &open("2")));
        assert_ne!(fixed(&kind, &sealed("1")), fixed(&kind, &sealed("2")));
        assert_ne!(fixed(&kind, &sealed("1")), fixed(&kind, &open("1")));
    }

    #[test]
    fn annotations_are_checked() {
        let with = |value: &str| json!({"metadata": {"annotations": {ON_IMMUTABLE_CHANGE: value}}});
        let job = GroupKind::new("batch", "Job");
        let volume = GroupKind::new("", "PersistentVolume");
        let claim = GroupKind::new("", "PersistentVolumeClaim");
        for (kind, value, accepted) in [
            (&job, "recreate", true),
            (&job, "orphan-recreate", true),
            (&job, "Recreate", false),
            (&claim, "recreate", true),
            (&claim, "orphan-recreate", false),
            (&volume, "recreate", false),
            (&volume, "error", true),
        ] {
            assert_eq!(
                check_annotation(kind, &with(value)).is_ok(),
                accepted,
                "{kind} {value}"
            );
        }
        assert_eq!(asked(&with("orphan-recreate")), Some(Policy::OrphanRecreate));
        assert_eq!(asked(&json!({})), None);
    }

    #[test]
    fn no_kind_has_two_rules() {
        for (index, rule) in RULES.iter().enumerate() {
            let later = RULES.iter().skip(index + 1);
            assert!(
                later
                    .into_iter()
                    .all(|other| (rule.group, rule.kind) != (other.group, other.kind)),
                "{rule:?}"
            );
        }
    }
}
