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
/// `values` is the [`values_digest`] of what the user gives. Values may be secret: keep the key in memory, or under a
/// keyed hash.
pub fn render_key(chart: &Chart, values: &Digest, release: &Release, capabilities: &Capabilities) -> Digest {
    let flag = |set: bool| if set { b"1".as_slice() } else { b"0".as_slice() };
    let version = &capabilities.kube_version;
    let revision = release.revision.to_be_bytes();
    let digest = chart.digest();
    let fixed = [
        ENGINE.as_bytes(),
        digest.as_bytes().as_slice(),
        values.as_bytes().as_slice(),
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

/// How values are written when they are named. Another form would make each component a new revision, which remakes
/// passwords that charts made: it is changed only with a new first line.
const ENCODING: &[u8] = b"values/1\n";

/// Names a tree of values, types included: a template tells the integer 5 of `--set` from the float 5 of a values file.
///
/// It is the SHA-256 of a first line and of the tree: each value a letter and, big-endian, its number in 8 bytes, or its
/// length in 8 bytes and its bytes or items; the keys of a mapping in byte order, each before its value.
pub fn values_digest(values: &Value) -> Digest {
    let mut text = ENCODING.to_vec();
    encode(values, &mut text);
    Digest::of(text)
}

fn encode(value: &Value, into: &mut Vec<u8>) {
    let counted = |letter: u8, count: usize, into: &mut Vec<u8>| {
        into.push(letter);
        into.extend_from_slice(&(count as u64).to_be_bytes());
    };
    match value {
        Value::Null => into.push(b'n'),
        Value::Bool(true) => into.push(b't'),
        Value::Bool(false) => into.push(b'f'),
        Value::Int(number) => {
            into.push(b'i');
            into.extend_from_slice(&number.to_be_bytes());
        }
        Value::Uint(number) => {
            into.push(b'u');
            into.extend_from_slice(&number.to_be_bytes());
        }
        Value::Float(number) => {
            into.push(b'd');
            // All that is no number is one.
            let number = if number.is_nan() { f64::NAN } else { *number };
            into.extend_from_slice(&number.to_bits().to_be_bytes());
        }
        // Values hold no moments; one would be the text that it is written as.
        Value::String(text) | Value::Timestamp(text) => {
            counted(b's', text.len(), into);
            into.extend_from_slice(text.as_bytes());
        }
        Value::Binary(bytes) => {
            counted(b'b', bytes.len(), into);
            into.extend_from_slice(bytes);
        }
        Value::List(items) => {
            counted(b'l', items.len(), into);
            for item in items {
                encode(item, into);
            }
        }
        Value::Map(map) => {
            counted(b'm', map.len(), into);
            for (key, value) in map {
                into.extend_from_slice(&(key.len() as u64).to_be_bytes());
                into.extend_from_slice(key.as_bytes());
                encode(value, into);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new name for the same values would make every component of every cluster a new revision.
    #[test]
    fn names_of_values_stay_what_they_are() {
        let all = Value::List(vec![
            Value::Bool(true),
            Value::Bool(false),
            Value::Int(-5),
            Value::Uint(u64::MAX),
            Value::Float(1.5),
            Value::Float(-0.0),
        ]);
        let inner = Value::Map([(String::new(), Value::String("ü".to_owned()))].into());
        let tree = [("a", Value::Null), ("b", all), ("c", inner)];
        let tree = Value::Map(tree.map(|(key, value)| (key.to_owned(), value)).into());
        assert_eq!(
            values_digest(&tree).hex(),
            "fd79d7c08300c1d34c7847700d2e5b8ca4e3cc3ec86b24341fdc6ca6ae10343a"
        );
        assert_eq!(
            values_digest(&Value::Map([].into())).hex(),
            "f9f5dd1abcd31d8dc4a632ff10d1c6b219163661b3061cad6b6a0e05d559a2c6"
        );
    }

    #[test]
    fn trees_that_differ_have_other_names() {
        let text = |text: &str| Value::String(text.to_owned());
        let trees = [
            Value::Null,
            text("n"),
            Value::List(vec![]),
            Value::Map([].into()),
            Value::List(vec![text("ab")]),
            Value::List(vec![text("a"), text("b")]),
            Value::List(vec![Value::List(vec![text("a")]), text("b")]),
            Value::Map([("a".to_owned(), text("b"))].into()),
            Value::Map([("ab".to_owned(), text(""))].into()),
            Value::Int(1),
            Value::Uint(1),
            Value::Float(1.0),
            Value::Float(0.0),
            Value::Float(-0.0),
            Value::Float(f64::NAN),
        ];
        let names: std::collections::BTreeSet<_> = trees.iter().map(values_digest).collect();
        assert_eq!(names.len(), trees.len());
        assert_eq!(
            values_digest(&Value::Float(-f64::NAN)),
            values_digest(&Value::Float(f64::NAN))
        );
    }

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
        let none = values_digest(&Value::Null);
        let values = |value| values_digest(&Value::Map([("a".to_owned(), value)].into()));
        let base = render_key(&one, &none, &release, &capabilities);
        assert_eq!(base, render_key(&chart("a: 1\n"), &none, &release, &capabilities));

        let mut more = capabilities.clone();
        more.api_versions.push("x/v1".to_owned());
        let keys = [
            base,
            render_key(&other, &none, &release, &capabilities),
            render_key(&one, &values(Value::Int(1)), &release, &capabilities),
            render_key(&one, &values(Value::Float(1.0)), &release, &capabilities),
            render_key(
                &one,
                &none,
                &Release {
                    revision: 2,
                    ..release.clone()
                },
                &capabilities,
            ),
            render_key(
                &one,
                &none,
                &Release {
                    is_upgrade: true,
                    ..release.clone()
                },
                &capabilities,
            ),
            render_key(
                &one,
                &none,
                &Release {
                    name: "rn".into(),
                    namespace: "s".into(),
                    ..release.clone()
                },
                &capabilities,
            ),
            render_key(&one, &none, &release, &more),
        ];
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }
}
