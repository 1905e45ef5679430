//! Laying the user's values over those of a chart and its sub-charts, with Helm 4.3.1's rules for `null`, globals and
//! shared mappings.
//!
//! The work is done on template values, whose mappings are shared by all who hold them: a sub-chart's values *are* the
//! mapping under its name in the parent's values, and some nested mappings of `global` are shared as well. Templates
//! can see that when they change a mapping, so it is kept.

use std::collections::BTreeSet;

use evenkeel_gotemplate::{Map, Str, Value, go_quoted};
use evenkeel_goyaml as goyaml;

use crate::Error;
use crate::convert::{deep_copy, map_from_yaml};
use crate::dependencies::Node;

/// The key under which values are handed down to all sub-charts.
pub(crate) const GLOBAL: &str = "global";

/// What to do with `null`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nulls {
    /// A `null` deletes the default of the same name, and is gone itself.
    Delete,
    /// A `null` stays, for a later pass to act on.
    Keep,
}

/// The values a chart renders with. `user` is not changed.
pub(crate) fn coalesce(
    node: &Node,
    user: &Map,
    nulls: Nulls,
    warnings: &mut Vec<String>,
) -> Result<Map, Error> {
    let values = deep_copy(user);
    Pass { warnings }.chart(node, &values, "", nulls)?;
    Ok(values)
}

/// The same for a tree of plain values.
pub(crate) fn coalesce_plain(
    node: &Node,
    user: &goyaml::Map,
    nulls: Nulls,
    warnings: &mut Vec<String>,
) -> Result<Map, Error> {
    let values = map_from_yaml(user);
    Pass { warnings }.chart(node, &values, "", nulls)?;
    Ok(values)
}

/// Adds to `over` what only `under` has; both keep their `null`s.
pub(crate) fn merge_tables(over: &Map, under: &Map, warnings: &mut Vec<String>) {
    Pass { warnings }.tables(over, under, "", Nulls::Keep);
}

struct Pass<'w> {
    warnings: &'w mut Vec<String>,
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        name.to_owned()
    } else {
        format!("{prefix}.{name}")
    }
}

impl Pass<'_> {
    fn warn(&mut self, text: String) {
        self.warnings.push(text);
    }

    fn chart(&mut self, node: &Node, values: &Map, prefix: &str, nulls: Nulls) -> Result<(), Error> {
        self.own(node, values, prefix, nulls);
        for child in &node.children {
            let inner = match values.get(&child.name) {
                None => {
                    let inner = Map::any();
                    values.insert(child.name.as_str(), inner.clone());
                    inner
                }
                Some(Value::Map(inner)) => inner,
                Some(_) => return Err(Error::SubchartValues(child.name.clone())),
            };
            let below = join(prefix, &node.name);
            self.globals(&inner, values, &below);
            self.chart(child, &inner, &below, nulls)?;
        }
        Ok(())
    }

    /// Hands `global` down; what the sub-chart's own `global` says less specifically stays.
    fn globals(&mut self, inner: &Map, outer: &Map, prefix: &str) {
        let down = match inner.get(GLOBAL) {
            None => Map::any(),
            Some(Value::Map(map)) => map,
            Some(_) => {
                return self.warn(format!(
                    "warning: skipping globals because destination {GLOBAL} is not a table."
                ));
            }
        };
        let up = match outer.get(GLOBAL) {
            None => Vec::new(),
            Some(Value::Map(map)) => map.to_vec(),
            Some(_) => {
                return self.warn(format!(
                    "warning: skipping globals because source {GLOBAL} is not a table."
                ));
            }
        };
        for (key, value) in up {
            match (value, down.get(&key)) {
                (Value::Map(table), None) => {
                    down.insert(key, shallow_copy(&table));
                }
                (Value::Map(table), Some(Value::Map(own))) => {
                    // The copy is one level deep: tables below it stay shared with the parent's, as in Helm.
                    let merged = shallow_copy(&table);
                    self.tables(&merged, &own, &join(prefix, &key.to_text()), Nulls::Keep);
                    down.insert(key, merged);
                }
                (Value::Map(_), Some(_)) => {
                    self.warn(format!(
                        "Conflict: cannot merge map onto non-map for {}. Skipping.",
                        go_quoted(key.as_bytes())
                    ));
                }
                (_, Some(Value::Map(_))) => self.warn(format!("key {key} is table. Skipping")),
                (value, _) => {
                    down.insert(key, value);
                }
            }
        }
        inner.insert(GLOBAL, down);
    }

    /// The chart's own defaults under the values given for it.
    fn own(&mut self, node: &Node, values: &Map, prefix: &str, nulls: Nulls) {
        let prefix = join(prefix, &node.name);
        let defaults = map_from_yaml(&node.values);
        for (key, default) in defaults.to_vec() {
            match values.get(&key) {
                Some(Value::Nil) if nulls == Nulls::Delete => {
                    values.remove(&key);
                }
                Some(Value::Map(table)) => match default {
                    Value::Map(default) => {
                        let is_child = node
                            .children
                            .iter()
                            .any(|child| child.name.as_bytes() == key.as_bytes());
                        let nulls = if is_child { Nulls::Keep } else { nulls };
                        if nulls == Nulls::Delete {
                            drop_nulls(&default);
                        }
                        self.tables(&table, &default, &join(&prefix, &key.to_text()), nulls);
                    }
                    Value::Nil => {}
                    _ => self.warn(format!("warning: skipped value for {prefix}.{key}: Not a table.")),
                },
                Some(_) => {}
                None => {
                    if nulls == Nulls::Delete {
                        match &default {
                            Value::Nil => continue,
                            Value::Map(table) => drop_nulls(table),
                            _ => {}
                        }
                    }
                    values.insert(key, default);
                }
            }
        }
    }

    /// Adds to `over` what only `under` has. A `null` in `over` deletes (or keeps) what `under` says.
    fn tables(&mut self, over: &Map, under: &Map, prefix: &str, nulls: Nulls) {
        let set: BTreeSet<Str> = under
            .to_vec()
            .into_iter()
            .filter(|(_, value)| !value.is_nil())
            .map(|(key, _)| key)
            .collect();
        for (key, value) in over.to_vec() {
            if value.is_nil() {
                under.insert(key, Value::Nil);
            }
        }
        for (key, value) in under.to_vec() {
            match (over.get(&key), value) {
                (Some(Value::Nil), _) if nulls == Nulls::Delete && set.contains(&key) => {
                    over.remove(&key);
                }
                (None, value) => {
                    over.insert(key, value);
                }
                (Some(Value::Map(over)), Value::Map(under)) => {
                    self.tables(&over, &under, &join(prefix, &key.to_text()), nulls);
                }
                // Helm's text shows the value; ours does not, for it may be secret.
                (Some(_), Value::Map(_)) => self.warn(format!(
                    "warning: cannot overwrite table with non table for {}",
                    join(prefix, &key.to_text())
                )),
                (Some(Value::Map(_)), value) if !value.is_nil() => self.warn(format!(
                    "warning: destination for {} is a table. Ignoring non-table value",
                    join(prefix, &key.to_text())
                )),
                _ => {}
            }
        }
    }
}

fn shallow_copy(map: &Map) -> Map {
    map.to_vec().into_iter().collect()
}

fn drop_nulls(map: &Map) {
    for (key, value) in map.to_vec() {
        match value {
            Value::Nil => {
                map.remove(&key);
            }
            Value::Map(inner) => drop_nulls(&inner),
            _ => {}
        }
    }
}
