//! Which sub-charts take part in a render, under which names, and what they lend to their parents.

use std::collections::BTreeSet;
use std::sync::Arc;

use evenkeel_gotemplate::{Map, Value};
use evenkeel_goyaml as goyaml;

use crate::Error;
use crate::chart::LoadedChart;
use crate::convert::{deep_copy, map_from_yaml, map_to_yaml};
use crate::metadata::{Dependency, ImportValues};
use crate::values::coalesce::{Nulls, coalesce, coalesce_plain, merge_tables};
use evenkeel_gotemplate::version_satisfies;

/// A chart in its place in the tree: conditions, tags, aliases and imported values applied.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) chart: Arc<LoadedChart>,
    /// The alias, or the chart's own name.
    pub(crate) name: String,
    /// What is left of the declared dependencies; `None` when there never were any or all are disabled.
    pub(crate) declared: Option<Vec<Dependency>>,
    /// Default values, with imported ones.
    pub(crate) values: Arc<goyaml::Map>,
    pub(crate) children: Vec<Node>,
}

impl Node {
    fn new(chart: &Arc<LoadedChart>) -> Self {
        Self {
            chart: Arc::clone(chart),
            name: chart.name().to_owned(),
            declared: chart.metadata.dependencies.clone(),
            values: Arc::clone(&chart.values),
            children: chart.dependencies.iter().map(Self::new).collect(),
        }
    }

    /// A text that is equal for equal trees of the same loaded chart.
    pub(crate) fn signature(&self) -> String {
        let mut text = String::new();
        self.sign(&mut text);
        text
    }

    fn sign(&self, text: &mut String) {
        use std::fmt::Write as _;
        // Writing to a String cannot fail.
        let _ = write!(text, "{}@{:p}", self.name, Arc::as_ptr(&self.chart));
        for dependency in self.declared.iter().flatten() {
            let _ = write!(text, ",{}", dependency.name);
        }
        text.push('(');
        self.children.iter().for_each(|child| child.sign(text));
        text.push(')');
    }
}

/// Refuses a chart whose declared dependencies are not all in `charts/`.
pub(crate) fn check_present(chart: &LoadedChart) -> Result<(), Error> {
    let missing: Vec<String> = chart
        .metadata
        .dependencies
        .iter()
        .flatten()
        .filter(|declared| {
            !chart
                .dependencies
                .iter()
                .any(|present| present.name() == declared.name)
        })
        .map(|declared| declared.name.clone())
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Error::MissingDependencies(missing))
    }
}

/// Applies conditions, tags and aliases for the user's values.
pub(crate) fn enable(
    chart: &Arc<LoadedChart>,
    user: &goyaml::Map,
    warnings: &mut Vec<String>,
) -> Result<Node, Error> {
    let mut root = Node::new(chart);
    if root.declared.is_some() {
        enable_below(&mut root, &map_from_yaml(user), "", warnings)?;
    }
    Ok(root)
}

fn enable_below(node: &mut Node, values: &Map, path: &str, warnings: &mut Vec<String>) -> Result<(), Error> {
    let Some(mut declared) = node.declared.take() else {
        return Ok(());
    };

    let present = std::mem::take(&mut node.children);
    let is_declared = |child: &Node| {
        declared.iter().any(|dependency| {
            child.name == dependency.name
                && version_satisfies(&dependency.version, &child.chart.metadata.version)
        })
    };
    // Charts that nobody declared always take part, before the declared ones.
    node.children = present
        .iter()
        .filter(|child| !is_declared(child))
        .cloned()
        .collect();
    for dependency in &mut declared {
        let found = present.iter().find(|child| {
            child.name == dependency.name
                && version_satisfies(&dependency.version, &child.chart.metadata.version)
        });
        let found = found.cloned();
        if !dependency.alias.is_empty() {
            dependency.name.clone_from(&dependency.alias);
        }
        if let Some(mut child) = found {
            if !dependency.alias.is_empty() {
                child.name.clone_from(&dependency.alias);
            }
            node.children.push(child);
        }
        dependency.enabled = true;
    }

    let merged = coalesce(node, values, Nulls::Delete, warnings)
        .map_err(|error| Error::Dependencies(Box::new(error)))?;
    apply_tags(&mut declared, &merged, warnings);
    apply_conditions(&mut declared, &merged, path, warnings);

    let disabled: BTreeSet<String> = declared
        .iter()
        .filter(|dependency| !dependency.enabled)
        .map(|dependency| dependency.name.clone())
        .collect();
    node.children.retain(|child| !disabled.contains(&child.name));
    declared.retain(|dependency| !disabled.contains(&dependency.name));
    for child in &mut node.children {
        let below = format!("{path}{}.", child.name);
        enable_below(child, &merged, &below, warnings)?;
    }
    node.declared = (!declared.is_empty()).then_some(declared);
    Ok(())
}

fn apply_tags(declared: &mut [Dependency], values: &Map, warnings: &mut Vec<String>) {
    let Some(tags) = table(values, "tags") else { return };
    for dependency in declared {
        let (mut on, mut off) = (false, false);
        for tag in &dependency.tags {
            match tags.get(tag) {
                None => {}
                Some(Value::Bool(true)) => on = true,
                Some(Value::Bool(false)) => off = true,
                Some(_) => warnings.push(format!("tag {tag} of chart {} is not a boolean", dependency.name)),
            }
        }
        dependency.enabled = on || !off;
    }
}

fn apply_conditions(declared: &mut [Dependency], values: &Map, path: &str, warnings: &mut Vec<String>) {
    for dependency in declared {
        for condition in dependency
            .condition
            .trim()
            .split(',')
            .filter(|condition| !condition.is_empty())
        {
            match path_value(values, &format!("{path}{condition}")) {
                None => {}
                Some(Value::Bool(enabled)) => {
                    dependency.enabled = enabled;
                    break;
                }
                Some(_) => {
                    warnings.push(format!(
                        "condition {condition} of chart {} is not a boolean",
                        dependency.name
                    ));
                }
            }
        }
    }
}

/// The table at a dotted path.
pub(crate) fn table(values: &Map, path: &str) -> Option<Map> {
    path.split('.')
        .try_fold(values.clone(), |table, name| match table.get(name) {
            Some(Value::Map(inner)) => Some(inner),
            _ => None,
        })
}

/// The value at a dotted path, unless it is a table.
fn path_value(values: &Map, path: &str) -> Option<Value> {
    let (holder, name) = match path.rsplit_once('.') {
        Some((tables, name)) => (table(values, tables)?, name),
        None => (values.clone(), path),
    };
    holder.get(name).filter(|value| !matches!(value, Value::Map(_)))
}

/// Takes over what `import-values` asks for, deepest charts first.
pub(crate) fn import_values(node: &mut Node, warnings: &mut Vec<String>) -> Result<(), Error> {
    for child in &mut node.children {
        import_values(child, warnings)?;
    }
    let Some(declared) = &node.declared else {
        return Ok(());
    };
    let merged = coalesce_plain(node, &goyaml::Map::new(), Nulls::Keep, warnings)
        .map_err(|error| Error::Dependencies(Box::new(error)))?;
    let imported = Map::any();
    for dependency in declared {
        for import in &dependency.import_values {
            let (child, parent) = match import {
                ImportValues::Export(name) => (format!("exports.{name}"), "."),
                ImportValues::Path { child, parent } => (child.clone(), parent.as_str()),
                ImportValues::Ignored => continue,
            };
            let Some(found) = table(&merged, &format!("{}.{child}", dependency.name)) else {
                warnings.push(format!(
                    "import-values: chart {} has no table {child}",
                    dependency.name
                ));
                continue;
            };
            merge_tables(&imported, &nest(parent, found), warnings);
        }
    }
    // The parent's own values win over imported ones.
    let values = deep_copy(&merged);
    merge_tables(&values, &imported, warnings);
    node.values = Arc::new(map_to_yaml(&values));
    Ok(())
}

/// Puts a table at a dotted path; `.` is the top.
fn nest(path: &str, table: Map) -> Map {
    if path == "." {
        return table;
    }
    path.rsplit('.').fold(table, |inner, name| {
        let outer = Map::any();
        outer.insert(name, inner);
        outer
    })
}
