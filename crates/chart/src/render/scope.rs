//! The dot of each chart's templates.

use evenkeel_gotemplate::{LIST_ANY, List, MAP_ANY, MAP_STR, Map, Value};

use super::capabilities::capabilities_value;
use super::files::files_map;
use super::values::VALUES;
use crate::capabilities::Capabilities;
use crate::dependencies::{Node, table};
use crate::metadata::{Dependency, ImportValues};
use crate::release::Release;

/// One scope per chart, in the numbering of [`crate::variant::Renderable::chart`]: parents before children.
pub(super) fn build(root: &Node, values: Map, release: &Release, capabilities: &Capabilities) -> Vec<Map> {
    let mut builder = Builder {
        release: Value::Map(release_map(release)),
        capabilities: capabilities_value(capabilities),
        scopes: Vec::new(),
    };
    builder.add(root, values, true);
    builder.scopes
}

/// `.Template`
pub(super) fn template(name: &str, base_path: &str) -> Value {
    let map = Map::new(
        &VALUES,
        [
            ("Name".into(), name.into()),
            ("BasePath".into(), base_path.into()),
        ]
        .into(),
    );
    Value::Map(map)
}

struct Builder {
    release: Value,
    capabilities: Value,
    scopes: Vec<Map>,
}

impl Builder {
    /// Adds the chart and, after it, its sub-charts; `values` are its own.
    fn add(&mut self, node: &Node, values: Map, is_root: bool) -> Map {
        let subcharts = Map::any();
        let chart = chart_map(node);
        chart.insert("IsRoot", is_root);
        let scope = Map::new(
            &VALUES,
            [
                ("Chart".into(), Value::Map(chart)),
                ("Files".into(), Value::Map(files_map(&node.chart.files))),
                ("Release".into(), self.release.clone()),
                ("Capabilities".into(), self.capabilities.clone()),
                ("Values".into(), Value::Map(values.with_class(&VALUES))),
                ("Subcharts".into(), Value::Map(subcharts.clone())),
            ]
            .into(),
        );
        self.scopes.push(scope.clone());
        for child in &node.children {
            // A sub-chart's values are the very mapping inside its parent's.
            let inner = table(&values, &child.name).unwrap_or_else(Map::any);
            let inner = self.add(child, inner, false);
            subcharts.insert(child.name.as_str(), inner.with_class(&MAP_ANY));
        }
        scope
    }
}

fn release_map(release: &Release) -> Map {
    let entries = [
        ("Name".into(), Value::from(release.name.as_str())),
        ("Namespace".into(), Value::from(release.namespace.as_str())),
        ("IsUpgrade".into(), Value::Bool(release.is_upgrade)),
        ("IsInstall".into(), Value::Bool(release.is_install)),
        (
            "Revision".into(),
            Value::int(i64::try_from(release.revision).unwrap_or(i64::MAX)),
        ),
        ("Service".into(), Value::from(release.service.as_str())),
    ];
    entries.into_iter().collect()
}

/// `.Chart`: in Helm 4 a mapping with the names of Go's fields.
fn chart_map(node: &Node) -> Map {
    let metadata = &node.chart.metadata;
    let texts = |texts: &[String]| Value::List(texts.iter().map(|text| Value::from(text.as_str())).collect());
    let annotations = match &metadata.annotations {
        None => Map::nil(&MAP_STR),
        Some(map) => Map::new(
            &MAP_STR,
            map.iter()
                .map(|(key, value)| (key.as_str().into(), Value::from(value.as_str())))
                .collect(),
        ),
    };
    let maintainers = metadata.maintainers.iter().map(|maintainer| {
        record([
            ("Name", &maintainer.name),
            ("Email", &maintainer.email),
            ("URL", &maintainer.url),
        ])
    });
    let dependencies = node.declared.iter().flatten().map(dependency_value);
    let map = Map::any();
    for (name, text) in [
        ("Name", &node.name),
        ("Home", &metadata.home),
        ("Version", &metadata.version),
        ("Description", &metadata.description),
        ("Icon", &metadata.icon),
        ("APIVersion", &metadata.api_version),
        ("Condition", &metadata.condition),
        ("Tags", &metadata.tags),
        ("AppVersion", &metadata.app_version),
        ("KubeVersion", &metadata.kube_version),
        ("Type", &metadata.kind),
    ] {
        map.insert(name, text.as_str());
    }
    map.insert("Sources", texts(&metadata.sources));
    map.insert("Keywords", texts(&metadata.keywords));
    map.insert("Maintainers", maintainers.collect::<List>());
    map.insert("Deprecated", metadata.deprecated);
    map.insert("Annotations", annotations);
    map.insert("Dependencies", List::new(&LIST_ANY, dependencies.collect()));
    map
}

fn record<'t>(fields: impl IntoIterator<Item = (&'t str, &'t String)>) -> Value {
    Value::Map(
        fields
            .into_iter()
            .map(|(name, text)| (name.into(), Value::from(text.as_str())))
            .collect(),
    )
}

fn dependency_value(dependency: &Dependency) -> Value {
    let Value::Map(map) = record([
        ("Name", &dependency.name),
        ("Version", &dependency.version),
        ("Repository", &dependency.repository),
        ("Condition", &dependency.condition),
        ("Alias", &dependency.alias),
    ]) else {
        return Value::Nil;
    };
    let imports = dependency.import_values.iter().filter_map(|import| {
        let (child, parent) = match import {
            ImportValues::Export(name) => (format!("exports.{name}"), "."),
            ImportValues::Path { child, parent } => (child.clone(), parent.as_str()),
            ImportValues::Ignored => return None,
        };
        let entries = [
            ("child".into(), Value::from(child)),
            ("parent".into(), Value::from(parent)),
        ];
        Some(Value::Map(Map::new(&MAP_STR, entries.into())))
    });
    map.insert(
        "Tags",
        dependency
            .tags
            .iter()
            .map(|tag| Value::from(tag.as_str()))
            .collect::<List>(),
    );
    map.insert("Enabled", dependency.enabled);
    map.insert("ImportValues", imports.collect::<List>());
    Value::Map(map)
}
