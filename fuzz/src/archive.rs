//! Chart archives from arbitrary bytes: sound enough to be unpacked, strange enough to be worth it.

use std::io::Write as _;

use arbitrary::{Result, Unstructured};
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use crate::template::once_in;

const NAMES: &[&str] = &[
    "c/Chart.yaml",
    "c/values.yaml",
    "c/values.schema.json",
    "c/templates/a.yaml",
    "c/templates/_h.tpl",
    "c/charts/s/Chart.yaml",
    "c/charts/s/values.yaml",
    "c/charts/s/templates/b.yaml",
    "c/charts/n.tgz",
    "c/crds/x.yaml",
    "c/requirements.yaml",
    "c/Chart.lock",
    "c/.helmignore",
    "c/README.md",
    "./c/Chart.yaml",
    "c/../Chart.yaml",
    "../c/x",
    "/c/x",
    "c//x",
    "c/./x",
    "c\\x",
    "c/C:/x",
    "d/x",
    "Chart.yaml",
    "c",
    "c/",
    "c/CHART.yaml",
    "",
];

const CONTENTS: &[&str] = &[
    "apiVersion: v2\nname: c\nversion: 1.0.0\n",
    "apiVersion: v2\nname: s\nversion: 0.1.0-a+b\ntype: library\n",
    "apiVersion: v1\nname: c\nversion: 1.0.0\nkubeVersion: '>=1'\n",
    "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies:\n- {name: s, version: '>0', alias: t, condition: s.on, tags: [x], \
     import-values: [data, {child: a, parent: b}]}\n",
    "dependencies:\n- {name: s, version: '*'}\n",
    "a: {b: 1}\ns: {on: true}\nglobal: {g: 1}\nexports: {data: {c: 1}}\n",
    "a: &a [1, 2]\nb: *a\n---\nc: 1\n",
    "{\"type\": \"object\", \"properties\": {\"a\": {\"$ref\": \"#\"}}}",
    "{\"$ref\": \"http://example.invalid/schema\"}",
    "{{ toYaml .Values }}\n---\nkind: ConfigMap\nmetadata: {name: x, annotations: {helm.sh/hook: pre-install}}\n",
    "{{ define \"d\" }}{{ .Files.Get \"README.md\" }}{{ (.Files.Glob \"**\").AsConfig }}{{ end }}{{ include \"d\" . }}\n",
    "*.md\n!x\n/charts\n",
    "",
];

/// An archive with the entries that the bytes ask for.
///
/// # Errors
/// When the bytes do not suffice.
pub fn chart_archive(bytes: &mut Unstructured<'_>, depth: usize) -> Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    for _ in 0..bytes.int_in_range(0..=12)? {
        let name = if once_in(bytes, 6)? {
            bytes.arbitrary::<String>()?
        } else {
            (*bytes.choose(NAMES)?).to_owned()
        };
        let mut header = Header::new_gnu();
        let data = if depth > 0 && once_in(bytes, 8)? {
            chart_archive(bytes, depth - 1)?
        } else if once_in(bytes, 20)? {
            // Zeros pack to a thousandth: a bomb of a few of these is small.
            vec![0; bytes.int_in_range(0..=6 << 20)?]
        } else if once_in(bytes, 4)? {
            bytes.arbitrary::<Vec<u8>>()?
        } else {
            bytes.choose(CONTENTS)?.as_bytes().to_vec()
        };
        header.set_entry_type(match bytes.int_in_range(0..=20)? {
            0 => EntryType::Directory,
            1 => EntryType::Symlink,
            2 => EntryType::Link,
            3 => EntryType::XHeader,
            4 => EntryType::GNULongName,
            5 => EntryType::GNUSparse,
            6 => EntryType::new(bytes.arbitrary()?),
            _ => EntryType::Regular,
        });
        // The library refuses strange paths, so they are written past it.
        if let Some(field) = header.as_mut_bytes().get_mut(..100) {
            for (to, from) in field.iter_mut().zip(name.bytes()) {
                *to = from;
            }
        }
        let stated = if once_in(bytes, 20)? {
            bytes.arbitrary::<u64>()?
        } else {
            data.len() as u64
        };
        header.set_size(stated);
        header.set_cksum();
        if builder.append(&header, data.as_slice()).is_err() {
            return Err(arbitrary::Error::IncorrectFormat);
        }
    }
    let tar = builder
        .into_inner()
        .map_err(|_| arbitrary::Error::IncorrectFormat)?;
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed
        .write_all(&tar)
        .map_err(|_| arbitrary::Error::IncorrectFormat)?;
    packed.finish().map_err(|_| arbitrary::Error::IncorrectFormat)
}
