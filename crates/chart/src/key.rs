//! What a render depends on, as one digest: two renders with equal keys and clean taints give the same bytes.

use evenkeel_core::Digest;
use evenkeel_goyaml::Value;

use crate::capabilities::Capabilities;
use crate::chart::Chart;
use crate::release::Release;

/// Part of every key: raised whenever this engine prints other bytes for the same input.
const ENGINE: &str = "helm-4.3.1/1";

/// The key of a render: engine, chart, values, release and capabilities. Time, randomness and lookups are not part of
/// it; a render that used them says so in [`crate::Rendered::taints`].
///
/// It is made from the values, which may be secret: keep it in memory, or under a keyed hash.
pub fn render_key(chart: &Chart, values: &Value, release: &Release, capabilities: &Capabilities) -> Digest {
    let flag = |set: bool| if set { b"1".as_slice() } else { b"0".as_slice() };
    let version = &capabilities.kube_version;
    // With types: a template tells the integer 5 of `--set` from the float 5 of a values file.
    let values = format!("{values:?}");
    let revision = release.revision.to_be_bytes();
    let digest = chart.digest();
    let fixed = [
        ENGINE.as_bytes(),
        digest.as_bytes().as_slice(),
        values.as_bytes(),
        release.name.as_bytes(),
        release.namespace.as_bytes(),
        release.service.as_bytes(),
        &revision,
        flag(release.is_install),
        flag(release.is_upgrade),
        version.version.as_bytes(),
        version.normalized.as_bytes(),
    ];
    Digest::of_parts(
        fixed
            .into_iter()
            .chain(capabilities.api_versions.iter().map(String::as_bytes)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_input_counts() {
        let chart = |template: &str| {
            let files = [
                ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
                ("templates/a.yaml", template),
            ];
            Chart::from_files(files).unwrap()
        };
        let (one, other) = (chart("a: 1\n"), chart("a: 2\n"));
        let release = Release::install("r", "ns");
        let capabilities = Capabilities::default();
        let base = render_key(&one, &Value::Null, &release, &capabilities);
        assert_eq!(
            base,
            render_key(&chart("a: 1\n"), &Value::Null, &release, &capabilities)
        );

        let mut more = capabilities.clone();
        more.api_versions.push("x/v1".to_owned());
        let keys = [
            base,
            render_key(&other, &Value::Null, &release, &capabilities),
            render_key(
                &one,
                &Value::Map([("a".to_owned(), Value::Int(1))].into()),
                &release,
                &capabilities,
            ),
            render_key(
                &one,
                &Value::Map([("a".to_owned(), Value::Float(1.0))].into()),
                &release,
                &capabilities,
            ),
            render_key(
                &one,
                &Value::Null,
                &Release {
                    revision: 2,
                    ..release.clone()
                },
                &capabilities,
            ),
            render_key(
                &one,
                &Value::Null,
                &Release {
                    is_upgrade: true,
                    ..release.clone()
                },
                &capabilities,
            ),
            render_key(
                &one,
                &Value::Null,
                &Release {
                    name: "rn".into(),
                    namespace: "s".into(),
                    ..release.clone()
                },
                &capabilities,
            ),
            render_key(&one, &Value::Null, &release, &more),
        ];
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }
}
