//! The chart that all programs apply: as many objects of each of ten kinds that nearly every chart has.

use std::path::Path;

use anyhow::Context;
use kube::api::{ApiResource, GroupVersionKind};

/// How many kinds there are.
pub(super) const KINDS: usize = TEMPLATES.len();

/// One kind: group, version, kind, name in URLs, and what an object of it holds beside its name.
struct Template(
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

/// The kinds, in Helm's order of installation. `NAME` stands for the object's name.
///
/// The Deployments have no replicas, so that no Pod is made; the autoscalers scale something else, for one that scales
/// them would keep whoever respects autoscalers from setting the replicas.
const TEMPLATES: [Template; 10] = [
    Template(
        "networking.k8s.io",
        "v1",
        "NetworkPolicy",
        "networkpolicies",
        "spec: {podSelector: {matchLabels: {app: NAME}}, policyTypes: [Ingress], ingress: [{ports: [{port: 8080}]}]}",
    ),
    Template(
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        "spec: {maxUnavailable: 1, selector: {matchLabels: {app: NAME}}}",
    ),
    Template("", "v1", "ServiceAccount", "serviceaccounts", ""),
    Template(
        "",
        "v1",
        "Secret",
        "secrets",
        "data: {user: aGVsbG8=, password: bm90LWEtc2VjcmV0}",
    ),
    Template(
        "",
        "v1",
        "ConfigMap",
        "configmaps",
        "data: {greeting: hello, answer: '42', settings.yaml: \"level: info\\nworkers: 4\\n\"}",
    ),
    Template(
        "rbac.authorization.k8s.io",
        "v1",
        "Role",
        "roles",
        "rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list, watch]}]",
    ),
    Template(
        "rbac.authorization.k8s.io",
        "v1",
        "RoleBinding",
        "rolebindings",
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: NAME}\n\
         subjects: [{kind: ServiceAccount, name: NAME}]",
    ),
    Template(
        "",
        "v1",
        "Service",
        "services",
        "spec: {selector: {app: NAME}, ports: [{name: http, port: 80, targetPort: 8080, protocol: TCP}]}",
    ),
    Template(
        "apps",
        "v1",
        "Deployment",
        "deployments",
        "spec:
  replicas: 0
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      serviceAccountName: NAME
      containers:
      - name: main
        image: registry.k8s.io/pause:3.10
        ports: [{name: http, containerPort: 8080, protocol: TCP}]
        resources: {requests: {cpu: 100m, memory: 64Mi}}",
    ),
    Template(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME-elsewhere}
  minReplicas: 1
  maxReplicas: 3
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]",
    ),
];

/// Every kind of the chart, as it is asked for.
pub(super) fn kinds() -> impl Iterator<Item = ApiResource> {
    TEMPLATES.iter().map(|Template(group, version, kind, plural, _)| {
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
    })
}

/// Writes the chart into `folder`, with so many objects of each kind. Their names begin with the release's.
pub(super) fn write(folder: &Path, objects: u16) -> anyhow::Result<()> {
    let templates = folder.join("templates");
    let wrong = || format!("the chart of the bench cannot be written to {}", folder.display());
    std::fs::create_dir_all(&templates).with_context(wrong)?;
    std::fs::write(
        folder.join("Chart.yaml"),
        "apiVersion: v2\nname: apply\nversion: 1.0.0\n",
    )
    .with_context(wrong)?;
    for Template(group, version, kind, plural, body) in &TEMPLATES {
        let api_version = if group.is_empty() {
            (*version).to_owned()
        } else {
            format!("{group}/{version}")
        };
        let body = body.replace("NAME", "{{ $.Release.Name }}-{{ $i }}");
        let text = format!(
            "{{{{- range $i := until {objects} }}}}\n---\napiVersion: {api_version}\nkind: {kind}\nmetadata:\n  \
             name: {{{{ $.Release.Name }}}}-{{{{ $i }}}}\n  labels: {{app: {{{{ $.Release.Name }}}}-{{{{ $i }}}}}}\n{body}\n\
             {{{{- end }}}}\n"
        );
        std::fs::write(templates.join(format!("{plural}.yaml")), text).with_context(wrong)?;
    }
    Ok(())
}
