//! What decides a component's objects, as digests.

use evenkeel_chart::{Capabilities, Chart};
use evenkeel_core::{ComponentName, Digest, HookPolicy, Namespace, OnConflict, SourceFormat};

use crate::render::capabilities_digest;
use crate::values::ResolvedValues;

/// The version of the engine, part of every render's inputs: a release that renders differently looks at every component
/// once. Raise it with each change that makes other bytes or other objects of the same chart.
pub const ENGINE: &str = "1";

/// The digests of what decides a component's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Considered {
    /// Source, values, name and namespace: another one is another component revision.
    pub revision: Digest,
    /// All that the render could see, the cluster's version, kustomize's and ours included: another one is worth another
    /// look.
    pub all: Digest,
}

impl Considered {
    /// Of a component without values, from a source in that format, made by a tool of that version.
    pub(crate) fn without_values(
        format: SourceFormat,
        source: Digest,
        tool: &str,
        name: &ComponentName,
        namespace: &Namespace,
        force_namespace: bool,
    ) -> Self {
        let revision = Digest::of_parts([
            format.as_str().as_bytes(),
            source.as_bytes().as_slice(),
            name.as_str().as_bytes(),
            namespace.as_str().as_bytes(),
        ]);
        let all = Digest::of_parts([
            revision.as_bytes().as_slice(),
            &[u8::from(force_namespace)],
            tool.as_bytes(),
            ENGINE.as_bytes(),
        ]);
        Self { revision, all }
    }

    /// Of a component that is a chart with its values.
    pub(crate) fn of_chart(
        chart: &Chart,
        values: &ResolvedValues,
        name: &ComponentName,
        namespace: &Namespace,
        force_namespace: bool,
        capabilities: &Capabilities,
    ) -> Self {
        let revision = Digest::of_parts([
            chart.digest().as_bytes().as_slice(),
            values.digest.as_bytes(),
            name.as_str().as_bytes(),
            namespace.as_str().as_bytes(),
        ]);
        // Every new kind in a cluster changes its capabilities; that is nothing to a chart that never asks for them.
        let seen = (chart.asks_for_capabilities() || values.mention_capabilities)
            .then(|| capabilities_digest(capabilities).to_string());
        let all = Digest::of_parts([
            revision.as_bytes().as_slice(),
            &[u8::from(force_namespace)],
            seen.unwrap_or_default().as_bytes(),
            ENGINE.as_bytes(),
        ]);
        Self { revision, all }
    }

    /// Another set of readiness rules is worth another look at the objects, too.
    #[must_use]
    pub(crate) fn with_readiness(self, seal: &str) -> Self {
        if seal.is_empty() {
            return self;
        }
        Self {
            all: Digest::of_parts([self.all.as_bytes().as_slice(), seal.as_bytes()]),
            ..self
        }
    }

    /// Another policy about fields of others is worth another look, too: what was left to them may be taken now.
    #[must_use]
    pub(crate) fn with_conflicts(self, policy: OnConflict) -> Self {
        if policy.is_default() {
            return self;
        }
        let seal = format!("conflicts: {policy}");
        Self {
            all: Digest::of_parts([self.all.as_bytes().as_slice(), seal.as_bytes()]),
            ..self
        }
    }

    /// Another policy of hooks is worth another look, too: those of the deletion are kept, or no longer.
    #[must_use]
    pub(crate) fn with_hooks(self, policy: HookPolicy) -> Self {
        match policy {
            HookPolicy::Run => self,
            HookPolicy::Ignore => Self {
                all: Digest::of_parts([self.all.as_bytes().as_slice(), b"no hooks"]),
                ..self
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::Sensitive;

    use super::*;
    use crate::Values;
    use crate::values::merge;

    fn considered(template: &str, values: &str, api_versions: &[&str]) -> Considered {
        let files = [
            ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
            ("templates/a.yaml", template),
        ];
        let chart = Chart::from_files(files).unwrap();
        let texts = vec![("values".to_owned(), Sensitive::new(values.to_owned()))];
        let values = merge(&Values::default(), texts).unwrap();
        let api_versions = api_versions.iter().map(|version| (*version).to_owned()).collect();
        let capabilities = Capabilities {
            api_versions,
            ..Capabilities::default()
        };
        let (name, namespace) = ("c".parse().unwrap(), "n".parse().unwrap());
        Considered::of_chart(&chart, &values, &name, &namespace, false, &capabilities)
    }

    #[test]
    fn a_new_kind_counts_only_for_charts_that_ask() {
        let asking = "a: {{ .Capabilities.APIVersions.Has \"x/v1\" }}";
        assert_eq!(
            considered("a: 1", "{}", &["v1"]),
            considered("a: 1", "{}", &["v1", "x/v1"])
        );
        assert_ne!(
            considered(asking, "{}", &["v1"]),
            considered(asking, "{}", &["v1", "x/v1"])
        );
        let values = "text: '{{ .Capabilities.KubeVersion }}'";
        assert_ne!(
            considered("a: 1", values, &["v1"]),
            considered("a: 1", values, &["v1", "x/v1"])
        );
    }

    #[test]
    fn format_source_and_tool_count_where_they_matter() {
        let (name, namespace) = ("c".parse().unwrap(), "n".parse().unwrap());
        let of = |format, source: &str, tool: &str| {
            Considered::without_values(format, Digest::of(source), tool, &name, &namespace, false)
        };
        let first = of(SourceFormat::Kustomization, "a", "v1");
        assert_eq!(first, of(SourceFormat::Kustomization, "a", "v1"));
        assert_ne!(first.revision, of(SourceFormat::Manifests, "a", "v1").revision);
        assert_ne!(
            first.revision,
            of(SourceFormat::Kustomization, "b", "v1").revision
        );
        // Another program may print something else; that is a look, not a new revision.
        let newer = of(SourceFormat::Kustomization, "a", "v2");
        assert_eq!(first.revision, newer.revision);
        assert_ne!(first.all, newer.all);
    }

    #[test]
    fn values_count() {
        assert_ne!(
            considered("a: 1", "b: 1", &["v1"]).revision,
            considered("a: 1", "b: 2", &["v1"]).revision
        );
    }
}
