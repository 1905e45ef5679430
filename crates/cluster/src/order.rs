//! In which order kinds are applied, and which are never pruned.

use evenkeel_core::{GroupKind, ObjectRef};

/// Steps of application. Objects of one phase are applied at the same time, a later phase begins when an earlier one is
/// done; deletion goes backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// CustomResourceDefinitions; the next phase begins when they are established.
    Definitions,
    /// Namespaces.
    Namespaces,
    /// What others refer to and what limits them: accounts, roles, quotas, classes, policies.
    Foundations,
    /// Content and bindings: secrets, config maps, volumes, role bindings.
    Content,
    /// Services, so that pods find them in their environment.
    Services,
    /// What runs pods.
    Workloads,
    /// What makes workloads reachable or scales them.
    Exposure,
    /// Every kind that is not named here: custom resources.
    Custom,
    /// Admission webhooks and policies, which could refuse all of the above.
    Admission,
}

impl Phase {
    /// Every phase, in the order of application.
    pub const ALL: [Self; 9] = [
        Self::Definitions,
        Self::Namespaces,
        Self::Foundations,
        Self::Content,
        Self::Services,
        Self::Workloads,
        Self::Exposure,
        Self::Custom,
        Self::Admission,
    ];
}

const APPS: &str = "apps";
const BATCH: &str = "batch";
const RBAC: &str = "rbac.authorization.k8s.io";
const NETWORKING: &str = "networking.k8s.io";
const STORAGE: &str = "storage.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const EXTENSIONS: &str = "apiextensions.k8s.io";

/// Kinds in Helm's install order within their phases.
const TABLE: [(&str, &str, Phase); 45] = [
    (EXTENSIONS, "CustomResourceDefinition", Phase::Definitions),
    ("", "Namespace", Phase::Namespaces),
    ("scheduling.k8s.io", "PriorityClass", Phase::Foundations),
    (NETWORKING, "NetworkPolicy", Phase::Foundations),
    ("", "ResourceQuota", Phase::Foundations),
    ("", "LimitRange", Phase::Foundations),
    ("policy", "PodDisruptionBudget", Phase::Foundations),
    ("", "ServiceAccount", Phase::Foundations),
    (STORAGE, "StorageClass", Phase::Foundations),
    (STORAGE, "CSIDriver", Phase::Foundations),
    (STORAGE, "VolumeAttributesClass", Phase::Foundations),
    ("node.k8s.io", "RuntimeClass", Phase::Foundations),
    (NETWORKING, "IngressClass", Phase::Foundations),
    ("gateway.networking.k8s.io", "GatewayClass", Phase::Foundations),
    (RBAC, "ClusterRole", Phase::Foundations),
    (RBAC, "Role", Phase::Foundations),
    ("", "Secret", Phase::Content),
    ("", "ConfigMap", Phase::Content),
    ("", "PersistentVolume", Phase::Content),
    ("", "PersistentVolumeClaim", Phase::Content),
    (RBAC, "ClusterRoleBinding", Phase::Content),
    (RBAC, "RoleBinding", Phase::Content),
    ("", "PodTemplate", Phase::Content),
    (APPS, "ControllerRevision", Phase::Content),
    ("", "Service", Phase::Services),
    ("", "Endpoints", Phase::Services),
    ("discovery.k8s.io", "EndpointSlice", Phase::Services),
    (APPS, "DaemonSet", Phase::Workloads),
    ("", "Pod", Phase::Workloads),
    ("", "ReplicationController", Phase::Workloads),
    (APPS, "ReplicaSet", Phase::Workloads),
    (APPS, "Deployment", Phase::Workloads),
    (APPS, "StatefulSet", Phase::Workloads),
    (BATCH, "Job", Phase::Workloads),
    (BATCH, "CronJob", Phase::Workloads),
    ("coordination.k8s.io", "Lease", Phase::Workloads),
    ("autoscaling", "HorizontalPodAutoscaler", Phase::Exposure),
    (NETWORKING, "Ingress", Phase::Exposure),
    ("apiregistration.k8s.io", "APIService", Phase::Exposure),
    (ADMISSION, "ValidatingAdmissionPolicy", Phase::Admission),
    (ADMISSION, "MutatingAdmissionPolicy", Phase::Admission),
    (ADMISSION, "ValidatingAdmissionPolicyBinding", Phase::Admission),
    (ADMISSION, "MutatingAdmissionPolicyBinding", Phase::Admission),
    (ADMISSION, "MutatingWebhookConfiguration", Phase::Admission),
    (ADMISSION, "ValidatingWebhookConfiguration", Phase::Admission),
];

/// Kubernetes' own groups that have a dot in their name, as those of custom resources must.
const BUILT_IN_GROUPS: [&str; 19] = [
    ADMISSION,
    EXTENSIONS,
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    NETWORKING,
    "node.k8s.io",
    RBAC,
    "resource.k8s.io",
    "scheduling.k8s.io",
    STORAGE,
    "storagemigration.k8s.io",
    "scheduling.x-k8s.io",
];

fn row(kind: &str, group: &str) -> Option<(usize, Phase)> {
    TABLE
        .iter()
        .enumerate()
        .find(|(_, (of, name, _))| *name == kind && *of == group)
        .map(|(index, (_, _, phase))| (index, *phase))
}

/// The phase in which a kind is applied.
pub fn phase(kind: &GroupKind) -> Phase {
    row(&kind.kind, &kind.group).map_or(Phase::Custom, |(_, phase)| phase)
}

/// What objects are sorted by: phase, place of the kind, kind, namespace, name.
pub(crate) fn sort_key(object: &ObjectRef) -> (Phase, usize, ObjectRef) {
    let (index, phase) = row(&object.kind, &object.group).unwrap_or((TABLE.len(), Phase::Custom));
    (phase, index, object.clone())
}

/// Whether Kubernetes itself defines the kind.
pub(crate) fn is_built_in(kind: &GroupKind) -> bool {
    !kind.group.contains('.') || BUILT_IN_GROUPS.contains(&kind.group.as_str())
}

/// Whether objects of the kind stay when a render lacks them (DESIGN §4.9): deleting them deletes what others own.
pub(crate) fn never_pruned(kind: &GroupKind) -> bool {
    matches!(
        (kind.group.as_str(), kind.kind.as_str()),
        ("", "Namespace" | "PersistentVolume" | "PersistentVolumeClaim")
            | (EXTENSIONS, "CustomResourceDefinition")
    )
}

/// Whether objects of the kind belong to the set that a cluster's components share.
pub(crate) fn is_shared(kind: &GroupKind) -> bool {
    is_namespace(kind) || is_definition(kind)
}

pub(crate) fn is_namespace(kind: &GroupKind) -> bool {
    kind.group.is_empty() && kind.kind == "Namespace"
}

pub(crate) fn is_definition(kind: &GroupKind) -> bool {
    kind.group == EXTENSIONS && kind.kind == "CustomResourceDefinition"
}

/// Whether the kind's objects own others that must be gone before they are: then deletion waits for those too.
pub(crate) fn owns_pods(kind: &GroupKind) -> bool {
    matches!(
        (kind.group.as_str(), kind.kind.as_str()),
        (APPS, "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet")
            | (BATCH, "Job" | "CronJob")
            | ("", "ReplicationController")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_need_comes_first() {
        let order = [
            ("apiextensions.k8s.io", "CustomResourceDefinition"),
            ("", "Namespace"),
            ("", "ServiceAccount"),
            ("", "Secret"),
            ("", "Service"),
            ("apps", "Deployment"),
            ("networking.k8s.io", "Ingress"),
            ("ex.io", "Widget"),
            ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ];
        let phases: Vec<Phase> = order
            .iter()
            .map(|(group, kind)| phase(&GroupKind::new(*group, *kind)))
            .collect();
        assert!(phases.is_sorted(), "{phases:?}");
        assert_eq!(phases, Phase::ALL);
        // A role must exist before it is bound, an account before its token Secret.
        assert!(phase(&GroupKind::new(RBAC, "Role")) < phase(&GroupKind::new(RBAC, "RoleBinding")));
    }

    #[test]
    fn a_custom_kind_of_a_familiar_name_is_custom() {
        assert_eq!(
            phase(&GroupKind::new("serving.knative.dev", "Service")),
            Phase::Custom
        );
        assert!(!is_built_in(&GroupKind::new("serving.knative.dev", "Service")));
        assert!(!is_built_in(&GroupKind::new(
            "gateway.networking.k8s.io",
            "HTTPRoute"
        )));
        assert!(
            is_built_in(&GroupKind::new("apps", "Deployment")) && is_built_in(&GroupKind::new("", "Event"))
        );
    }

    #[test]
    fn the_table_follows_its_phases() {
        assert!(TABLE.iter().map(|(_, _, phase)| phase).is_sorted());
    }
}
