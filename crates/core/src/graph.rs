//! The order of components: which waits for which.

use std::collections::{BTreeMap, BTreeSet};

use crate::{ComponentName, ComponentSpec, Error, FieldError};

/// The checked dependency graph of one configuration: all names known, no cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComponentGraph {
    depends_on: BTreeMap<ComponentName, BTreeSet<ComponentName>>,
    order: Vec<ComponentName>,
}

impl ComponentGraph {
    /// Checks and orders `components`.
    ///
    /// # Errors
    /// [`Error::Spec`] that names every unknown dependency with its field path, and one cycle spelled out.
    pub fn new(components: &[ComponentSpec]) -> Result<Self, Error> {
        let names: BTreeSet<_> = components.iter().map(|component| &component.name).collect();
        let mut errors = Vec::new();
        let mut depends_on: BTreeMap<ComponentName, BTreeSet<ComponentName>> = BTreeMap::new();
        for (index, component) in components.iter().enumerate() {
            let edges = depends_on.entry(component.name.clone()).or_default();
            for (position, dependency) in component.depends_on.iter().enumerate() {
                if names.contains(dependency) {
                    edges.insert(dependency.clone());
                } else {
                    errors.push(FieldError::new(
                        format!("components[{index}].dependsOn[{position}]"),
                        format!("component {:?} is not listed", dependency.as_str()),
                    ));
                }
            }
        }
        let order = topological(&depends_on);
        if order.len() < depends_on.len() {
            errors.push(FieldError::new(
                "components",
                format!("dependsOn has the cycle {}", cycle(&depends_on, &order)),
            ));
        }
        if errors.is_empty() {
            Ok(Self { depends_on, order })
        } else {
            Err(Error::Spec(errors))
        }
    }

    /// All components, each after those it depends on; ties by name, so that two runs agree.
    pub fn order(&self) -> &[ComponentName] {
        &self.order
    }

    /// The components that `name` waits for.
    pub fn depends_on(&self, name: &ComponentName) -> impl Iterator<Item = &ComponentName> {
        self.depends_on.get(name).into_iter().flatten()
    }

    /// The components that wait for `name`; what `name` waits for when everything is deleted.
    pub fn dependents<'a>(&'a self, name: &'a ComponentName) -> impl Iterator<Item = &'a ComponentName> {
        self.depends_on
            .iter()
            .filter(move |(_, edges)| edges.contains(name))
            .map(|(dependent, _)| dependent)
    }

    /// The same graph with every arrow turned round, for deletion.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let mut depends_on: BTreeMap<ComponentName, BTreeSet<ComponentName>> = self
            .depends_on
            .keys()
            .map(|name| (name.clone(), BTreeSet::new()))
            .collect();
        for (name, edges) in &self.depends_on {
            for dependency in edges {
                depends_on
                    .entry(dependency.clone())
                    .or_default()
                    .insert(name.clone());
            }
        }
        Self {
            order: self.order.iter().rev().cloned().collect(),
            depends_on,
        }
    }
}

/// Kahn's algorithm; a node is ready when all it depends on stands before it. Nodes of a cycle, and those behind one,
/// are left out.
fn topological(depends_on: &BTreeMap<ComponentName, BTreeSet<ComponentName>>) -> Vec<ComponentName> {
    let mut missing: BTreeMap<&ComponentName, usize> = depends_on
        .iter()
        .map(|(name, edges)| (name, edges.len()))
        .collect();
    let mut dependents: BTreeMap<&ComponentName, Vec<&ComponentName>> = BTreeMap::new();
    for (name, edges) in depends_on {
        for dependency in edges {
            dependents.entry(dependency).or_default().push(name);
        }
    }
    let mut ready: BTreeSet<&ComponentName> = missing
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|(name, _)| *name)
        .collect();
    let mut order = Vec::with_capacity(depends_on.len());
    while let Some(name) = ready.pop_first() {
        order.push(name.clone());
        for dependent in dependents.get(name).into_iter().flatten().copied() {
            if let Some(count) = missing.get_mut(dependent) {
                *count -= 1;
                if *count == 0 {
                    ready.insert(dependent);
                }
            }
        }
    }
    order
}

/// One cycle among the nodes that could not be ordered, written `a → b → a`.
fn cycle(depends_on: &BTreeMap<ComponentName, BTreeSet<ComponentName>>, ordered: &[ComponentName]) -> String {
    let ordered: BTreeSet<_> = ordered.iter().collect();
    let stuck = |name: &&ComponentName| !ordered.contains(*name);
    let mut path: Vec<&ComponentName> = Vec::new();
    let mut next = depends_on.keys().find(stuck);
    while let Some(name) = next {
        if let Some(start) = path.iter().position(|seen| *seen == name) {
            let names = path.iter().skip(start).chain([&name]).map(|name| name.as_str());
            return names.collect::<Vec<_>>().join(" → ");
        }
        path.push(name);
        // Every stuck node waits for another stuck one, so the walk must come back to itself.
        next = depends_on.get(name).into_iter().flatten().find(stuck);
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn component(name: &str, depends_on: &[&str]) -> ComponentSpec {
        let json = serde_json::json!({
            "name": name, "source": {"directory": {"path": "x"}}, "namespace": "n", "dependsOn": depends_on,
        });
        serde_json::from_value(json).expect("the component is valid")
    }

    fn names(order: &[ComponentName]) -> Vec<&str> {
        order.iter().map(ComponentName::as_str).collect()
    }

    #[test]
    fn dependencies_come_first_and_ties_go_by_name() {
        let components = [
            component("web", &["db", "cache"]),
            component("db", &[]),
            component("cache", &[]),
        ];
        let graph = ComponentGraph::new(&components).expect("the graph is valid");
        assert_eq!(names(graph.order()), ["cache", "db", "web"]);
        assert_eq!(names(graph.reversed().order()), ["web", "db", "cache"]);
        let db = ComponentName::new("db").expect("a name");
        assert_eq!(
            graph
                .dependents(&db)
                .map(ComponentName::as_str)
                .collect::<Vec<_>>(),
            ["web"]
        );
    }

    #[test]
    fn a_component_that_waits_for_itself_is_a_cycle() {
        let error = ComponentGraph::new(&[component("a", &["a"])]).map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("a → a")));
    }

    #[test]
    fn what_stands_behind_a_cycle_is_not_blamed() {
        let components = [
            component("a", &["b"]),
            component("b", &["c"]),
            component("c", &["b"]),
        ];
        let error = ComponentGraph::new(&components).map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("b → c → b")));
    }

    proptest! {
        #[test]
        fn any_graph_without_a_cycle_is_ordered(edges in proptest::collection::vec((0usize..12, 0usize..12), 0..40)) {
            let components: Vec<_> = (0..12)
                .map(|node| {
                    // Arrows only to smaller numbers, so there is no cycle.
                    let below: Vec<_> = edges.iter().filter(|(from, to)| *from == node && to < from).collect();
                    let below: Vec<_> = below.iter().map(|(_, to)| format!("n{to}")).collect();
                    component(&format!("n{node}"), &below.iter().map(String::as_str).collect::<Vec<_>>())
                })
                .collect();
            let graph = ComponentGraph::new(&components).expect("the graph is valid");
            prop_assert_eq!(graph.order().len(), 12);
            for (position, name) in graph.order().iter().enumerate() {
                for dependency in graph.depends_on(name) {
                    prop_assert!(graph.order().iter().position(|other| other == dependency) < Some(position));
                }
            }
        }
    }
}
