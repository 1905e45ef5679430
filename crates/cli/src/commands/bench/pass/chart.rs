//! The chart of the bench: as many objects of each of ten kinds that nearly every cluster runs.

use std::path::Path;

use anyhow::Context;

/// How many kinds there are.
pub(in crate::commands::bench) const KINDS: usize = TEMPLATES.len();
/// How many objects in all.
pub(in crate::commands::bench) const OBJECTS: usize = KINDS * OBJECTS_OF_A_KIND;
/// How many of each kind, numbered from 0 behind the release's name.
pub(in crate::commands::bench) const OBJECTS_OF_A_KIND: usize = 10;

/// One template for each kind; `NAME` stands for the object's name.
const TEMPLATES: [&str; 10] = [
    "apiVersion: v1
kind: ConfigMap
metadata: {name: NAME}
data: {greeting: hello, answer: '42'}
",
    "apiVersion: v1
kind: Secret
metadata: {name: NAME}
stringData: {user: NAME, password: not-a-secret}
",
    "apiVersion: v1
kind: ServiceAccount
metadata: {name: NAME}
",
    "apiVersion: v1
kind: Service
metadata: {name: NAME}
spec: {selector: {app: NAME}, ports: [{name: http, port: 80, targetPort: 8080}]}
",
    "apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: 1
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      serviceAccountName: NAME
      containers:
      - name: main
        image: registry.k8s.io/pause:3.10
        ports: [{name: http, containerPort: 8080}]
        resources: {requests: {cpu: 100m, memory: 64Mi}}
",
    "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: NAME}
rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list, watch]}]
",
    "apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: NAME}
subjects: [{kind: ServiceAccount, name: NAME}]
",
    "apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: NAME}
spec: {podSelector: {matchLabels: {app: NAME}}, policyTypes: [Ingress], ingress: [{ports: [{port: 8080}]}]}
",
    "apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: NAME}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: NAME}}}
",
    "apiVersion: batch/v1
kind: CronJob
metadata: {name: NAME}
spec:
  schedule: '17 3 * * *'
  suspend: true
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: registry.k8s.io/pause:3.10}]
",
];

/// Writes the chart into `folder`.
pub(in crate::commands::bench) fn write(folder: &Path) -> anyhow::Result<()> {
    let templates = folder.join("templates");
    let wrong = || format!("the chart of the bench cannot be written to {}", folder.display());
    std::fs::create_dir(&templates).with_context(wrong)?;
    std::fs::write(
        folder.join("Chart.yaml"),
        "apiVersion: v2\nname: bench\nversion: 1.0.0\n",
    )
    .with_context(wrong)?;
    for (index, template) in TEMPLATES.iter().enumerate() {
        let name = "{{ $.Release.Name }}-{{ $i }}";
        let object = template.replace("NAME", name);
        let text = format!("{{{{- range $i := until {OBJECTS_OF_A_KIND} }}}}\n---\n{object}{{{{- end }}}}\n");
        std::fs::write(templates.join(format!("kind-{index}.yaml")), text).with_context(wrong)?;
    }
    Ok(())
}
