//! What Lieutenant shows of tenants and clusters: gauges of the same names, labels and values (§4.3), computed when somebody looks from
//! what the controllers have heard.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use kube::ResourceExt as _;

use super::cluster::tenant_of;
use crate::resources::{Cluster, CompileMeta, PackageVersion, Tenant};

/// Comes before every name.
const PREFIX: &str = "syn_lieutenant_";

/// Labels that a series has anyway; a fact of that name gets another.
const TAKEN: [&str; 2] = ["cluster", "tenant"];

/// One gauge: its name without the prefix, what it says, its series.
struct Gauge {
    name: &'static str,
    help: &'static str,
    series: String,
}

/// All gauges, in the text format of Prometheus.
pub(crate) fn text<'a>(
    tenants: impl IntoIterator<Item = &'a Tenant>,
    clusters: impl IntoIterator<Item = &'a Cluster>,
) -> String {
    let mut gauges = Gauges::default();
    for tenant in tenants {
        let labels = [
            ("tenant", tenant.name_any()),
            (
                "display_name",
                tenant.spec.display_name.clone().unwrap_or_default(),
            ),
        ];
        gauges.tenants.add(&labels, 1.0);
    }
    for cluster in clusters {
        gauges.cluster(cluster);
    }
    gauges.to_string()
}

struct Gauges {
    tenants: Gauge,
    clusters: Gauge,
    facts: Gauge,
    dynamic_facts: Gauge,
    last_compile: Gauge,
    build_info: Gauge,
    global: Gauge,
    tenant: Gauge,
    packages: Gauge,
    instances: Gauge,
}

impl Default for Gauges {
    fn default() -> Self {
        Self {
            tenants: Gauge::new("tenant_info", "Tenants"),
            clusters: Gauge::new("cluster_info", "Clusters"),
            facts: Gauge::new("cluster_facts", "Facts of clusters, as labels"),
            dynamic_facts: Gauge::new(
                "cluster_dynamic_facts",
                "What agents found out about clusters, as labels",
            ),
            last_compile: Gauge::new(
                "cluster_compile_meta_last_compile",
                "When the catalog of a cluster was compiled last, in seconds since 1970",
            ),
            build_info: Gauge::new(
                "cluster_compile_meta_commodore_build_info",
                "What the compiler of a catalog says of itself, as labels",
            ),
            global: Gauge::new(
                "cluster_compile_meta_global",
                "The global configuration that a catalog was compiled of",
            ),
            tenant: Gauge::new(
                "cluster_compile_meta_tenant",
                "The tenant's configuration that a catalog was compiled of",
            ),
            packages: Gauge::new(
                "cluster_compile_meta_package",
                "The packages that a catalog was compiled of",
            ),
            instances: Gauge::new(
                "cluster_compile_meta_instance",
                "The instances of components that a catalog was compiled of",
            ),
        }
    }
}

impl Gauges {
    fn cluster(&mut self, cluster: &Cluster) {
        let own = [
            ("cluster", cluster.name_any()),
            ("tenant", tenant_of(cluster).to_owned()),
        ];
        let display_name = cluster.spec.display_name.clone().unwrap_or_default();
        self.clusters
            .add(&with(&own, [("display_name", display_name)]), 1.0);
        self.facts.add(&with(&own, normalised(&cluster.spec.facts)), 1.0);
        let Some(status) = &cluster.status else {
            self.dynamic_facts.add(&own, 1.0);
            return;
        };
        self.dynamic_facts
            .add(&with(&own, normalised(&status.facts)), 1.0);
        if let Some(meta) = &status.compile_meta {
            self.compiled(&own, meta);
        }
    }

    fn compiled(&mut self, own: &[(&'static str, String)], meta: &CompileMeta) {
        if let Some(at) = meta.last_compile {
            #[expect(
                clippy::cast_precision_loss,
                reason = "seconds of this era are exact in a double"
            )]
            self.last_compile.add(own, at.as_second() as f64);
        }
        // Lieutenant takes these names as they are; one that is no name of a label costs the series.
        let build = &meta.commodore_build_info;
        if build
            .keys()
            .all(|key| is_label(key) && !TAKEN.contains(&key.as_str()))
        {
            let build = build.iter().map(|(key, value)| (key.clone(), value.clone()));
            self.build_info.add(&with(own, build), 1.0);
        }
        if let Some(global) = &meta.global {
            self.global.add(&with(own, version(global)), 1.0);
        }
        if let Some(tenant) = &meta.tenant {
            self.tenant.add(&with(own, version(tenant)), 1.0);
        }
        for (name, package) in &meta.packages {
            let labels = with(own, version(package));
            self.packages.add(&with(&labels, [("name", name.clone())]), 1.0);
        }
        for (name, instance) in &meta.instances {
            let component = instance.component.clone().unwrap_or_default();
            let labels = with(own, version(&instance.source));
            let more = [("name", name.clone()), ("component", component)];
            self.instances.add(&with(&labels, more), 1.0);
        }
    }
}

impl fmt::Display for Gauges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for gauge in [
            &self.tenants,
            &self.clusters,
            &self.facts,
            &self.dynamic_facts,
            &self.last_compile,
            &self.build_info,
            &self.global,
            &self.tenant,
            &self.packages,
            &self.instances,
        ] {
            gauge.fmt(f)?;
        }
        Ok(())
    }
}

impl Gauge {
    fn new(name: &'static str, help: &'static str) -> Self {
        Self {
            name,
            help,
            series: String::new(),
        }
    }

    fn add(&mut self, labels: &[(impl AsRef<str>, String)], value: f64) {
        let Self { name, series, .. } = self;
        // Writing to a string cannot fail.
        let _ = write!(series, "{PREFIX}{name}{{");
        for (number, (label, value)) in labels.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            let _ = write!(series, "{comma}{}=\"{}\"", label.as_ref(), escaped(value));
        }
        let _ = writeln!(series, "}} {value}");
    }
}

impl fmt::Display for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.series.is_empty() {
            return Ok(());
        }
        let Self { name, help, series } = self;
        write!(
            f,
            "# HELP {PREFIX}{name} {help}.\n# TYPE {PREFIX}{name} gauge\n{series}"
        )
    }
}

/// Labels, and more of them.
fn with<L: AsRef<str>>(
    labels: &[(impl AsRef<str>, String)],
    more: impl IntoIterator<Item = (L, String)>,
) -> Vec<(String, String)> {
    let labels = labels
        .iter()
        .map(|(label, value)| (label.as_ref().to_owned(), value.clone()));
    let more = more
        .into_iter()
        .map(|(label, value)| (label.as_ref().to_owned(), value));
    labels.chain(more).collect()
}

/// Lieutenant shows no path, whatever there is.
fn version(version: &PackageVersion) -> [(&'static str, String); 4] {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    [
        ("url", text(&version.url)),
        ("path", String::new()),
        ("version", text(&version.version)),
        ("gitSha", text(&version.git_sha)),
    ]
}

/// Facts as labels: whatever they are called, by a name that a label may have, and by one of their own.
fn normalised(facts: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let mut names = BTreeSet::new();
    let mut labels = Vec::with_capacity(facts.len());
    for (key, value) in facts {
        let name = label(key);
        let mut own = name.clone();
        let mut number = 0_usize;
        while !names.insert(own.clone()) {
            number += 1;
            own = format!("{name}_{number}");
        }
        labels.push((own, value.clone()));
    }
    labels
}

fn label(key: &str) -> String {
    let mut name = String::with_capacity(key.len());
    for (at, c) in key.chars().enumerate() {
        let is_kept = c == '_' || c.is_ascii_alphabetic() || at > 0 && c.is_ascii_digit();
        name.push(if is_kept { c } else { '_' });
    }
    if name.is_empty() {
        "_empty".clone_into(&mut name);
    }
    if name.starts_with('_') {
        name.insert_str(0, "fact_");
    }
    if TAKEN.contains(&name.as_str()) {
        name.insert_str(0, "orig_");
    }
    name
}

/// Whether a label may be called so; what begins with two underscores is Prometheus's own.
fn is_label(name: &str) -> bool {
    let is_first = |c: char| c == '_' || c.is_ascii_alphabetic();
    name.starts_with(is_first)
        && name.chars().all(|c| is_first(c) || c.is_ascii_digit())
        && !name.starts_with("__")
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', r"\\")
        .replace('"', r#"\""#)
        .replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cluster(spec: Value, status: Value) -> Cluster {
        let object = json!({
            "apiVersion": "syn.tools/v1alpha1", "kind": "Cluster", "metadata": { "name": "c-one" },
            "spec": spec, "status": status,
        });
        serde_json::from_value(object).unwrap()
    }

    fn series(text: &str) -> Vec<&str> {
        text.lines().filter(|line| !line.starts_with('#')).collect()
    }

    #[test]
    fn tenants_and_clusters_are_shown_by_name() {
        let tenant: Tenant = serde_json::from_value(json!({
            "apiVersion": "syn.tools/v1alpha1", "kind": "Tenant", "metadata": { "name": "t-one" },
            "spec": { "displayName": "One \"Corp\" \\ Co.\n" },
        }))
        .unwrap();
        let spec = json!({ "displayName": "A Cluster", "tenantRef": { "name": "t-one" }, "facts": { "cloud": "exo" } });
        let cluster = cluster(
            spec,
            json!({ "facts": { "kubernetesVersion": "{\"major\":\"1\"}" } }),
        );
        let text = text([&tenant], [&cluster]);
        assert_eq!(
            series(&text),
            [
                r#"syn_lieutenant_tenant_info{tenant="t-one",display_name="One \"Corp\" \\ Co.\n"} 1"#,
                r#"syn_lieutenant_cluster_info{cluster="c-one",tenant="t-one",display_name="A Cluster"} 1"#,
                r#"syn_lieutenant_cluster_facts{cluster="c-one",tenant="t-one",cloud="exo"} 1"#,
                r#"syn_lieutenant_cluster_dynamic_facts{cluster="c-one",tenant="t-one",kubernetesVersion="{\"major\":\"1\"}"} 1"#,
            ]
        );
        assert!(text.starts_with("# HELP syn_lieutenant_tenant_info "), "{text}");
        assert!(
            text.contains("\n# TYPE syn_lieutenant_cluster_facts gauge\n"),
            "{text}"
        );
    }

    #[test]
    fn facts_get_names_that_labels_may_have() {
        let names = |keys: &[&str]| -> Vec<String> {
            let facts = keys
                .iter()
                .map(|key| ((*key).to_owned(), String::new()))
                .collect();
            normalised(&facts).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(&[""]), ["fact__empty"]);
        assert_eq!(
            names(&["1st", "ünder", "_x"]),
            ["fact__st", "fact__x", "fact__nder"]
        );
        assert_eq!(names(&["cluster", "tenant"]), ["orig_cluster", "orig_tenant"]);
        assert_eq!(names(&["a-b", "a.b", "a_b"]), ["a_b", "a_b_1", "a_b_2"]);
    }

    #[test]
    fn what_a_catalog_was_compiled_of_is_shown() {
        let package = json!({ "url": "https://git/x", "version": "v1", "gitSha": "abc", "path": "sub" });
        let mut instance = package.clone();
        instance["component"] = json!("comp");
        let meta = json!({
            "lastCompile": "2026-01-02T03:04:05Z", "commodoreBuildInfo": { "version": "1.2" },
            "global": package, "tenant": package, "packages": { "p": package }, "instances": { "i": instance },
        });
        let mut object = cluster(
            json!({ "tenantRef": { "name": "t" } }),
            json!({ "compileMeta": meta }),
        );
        let shown = text([], [&object]);
        let source = r#"cluster="c-one",tenant="t",url="https://git/x",path="",version="v1",gitSha="abc""#;
        assert_eq!(
            series(&shown)[3..],
            [
                r#"syn_lieutenant_cluster_compile_meta_last_compile{cluster="c-one",tenant="t"} 1767323045"#.to_owned(),
                r#"syn_lieutenant_cluster_compile_meta_commodore_build_info{cluster="c-one",tenant="t",version="1.2"} 1"#
                    .to_owned(),
                format!("syn_lieutenant_cluster_compile_meta_global{{{source}}} 1"),
                format!("syn_lieutenant_cluster_compile_meta_tenant{{{source}}} 1"),
                format!("syn_lieutenant_cluster_compile_meta_package{{{source},name=\"p\"}} 1"),
                format!("syn_lieutenant_cluster_compile_meta_instance{{{source},name=\"i\",component=\"comp\"}} 1"),
            ]
        );
        let status = object.status.as_mut().unwrap();
        let meta = status.compile_meta.as_mut().unwrap();
        meta.commodore_build_info
            .insert("not-a-label".to_owned(), String::new());
        assert!(!text([], [&object]).contains("build_info"));
    }
}
