//! The order of components: which waits for which.

use std::collections::{BTreeMap, BTreeSet};

use crate::{ComponentName, ComponentSpec, Error, FieldError};

/// The checked dependency graph of one configuration: all names known, no cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComponentGraph {
    depends_on: BTreeMap<ComponentName, BTreeSet<ComponentName>>,
    order: Vec<ComponentName>,
}

/// A dependency that a component's reconciler declares, beside those that a configuration lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredDependency {
    /// What it depends on.
    pub on: ComponentName,
    /// Who says so, and of which versions: for people.
    pub declared: String,
}

impl ComponentGraph {
    /// Checks and orders `components`.
    ///
    /// # Errors
    /// [`Error::Spec`] that names every unknown dependency with its field path, and one cycle spelled out.
    pub fn new(components: &[ComponentSpec]) -> Result<Self, Error> {
        Self::with_declared(components, |_| Vec::new())
    }

    /// Checks and orders `components`, with what their reconcilers declare beside `dependsOn`.
    ///
    /// # Errors
    /// As [`ComponentGraph::new`]; a declared dependency that is not listed is one, too.
    pub fn with_declared(
        components: &[ComponentSpec],
        declared: impl Fn(&ComponentSpec) -> Vec<DeclaredDependency>,
    ) -> Result<Self, Error> {
        let names: BTreeSet<_> = components.iter().map(|component| &component.name).collect();
        let mut errors = Vec::new();
        let mut depends_on: BTreeMap<ComponentName, BTreeSet<ComponentName>> = BTreeMap::new();
        let mut declarations = BTreeMap::new();
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
            for DeclaredDependency { on, declared } in declared(component) {
                if !names.contains(&on) {
                    let message = format!(
                        "component {:?} is not listed, and {declared} depends on it",
                        on.as_str()
                    );
                    errors.push(FieldError::new(format!("components[{index}]"), message));
                } else if edges.insert(on.clone()) {
                    declarations.insert((component.name.clone(), on), declared);
                }
            }
        }
        let order = topological(&depends_on);
        if order.len() < depends_on.len() {
            errors.push(cycle_error(components, &depends_on, &order, &declarations));
        }
        if errors.is_empty() {
            Ok(Self { depends_on, order })
        } else {
            Err(Error::Spec(errors))
        }
    }

    /// The same graph, with `groups` of prerequisites before everything else, one after the other; only those count that are
    /// listed. What a prerequisite itself depends on goes with its group: nothing is ever asked to wait for itself.
    #[must_use]
    pub fn with_prerequisites(mut self, groups: &[Vec<ComponentName>]) -> Self {
        // How early a component goes: the first group that it belongs to, or that needs it.
        let mut ranks: BTreeMap<&ComponentName, usize> = BTreeMap::new();
        for (rank, group) in groups.iter().enumerate() {
            let mut ahead: Vec<&ComponentName> = group.iter().collect();
            while let Some(name) = ahead.pop() {
                // One that is not listed is nobody's prerequisite.
                let Some((name, edges)) = self.depends_on.get_key_value(name) else {
                    continue;
                };
                if !ranks.contains_key(name) {
                    ranks.insert(name, rank);
                    ahead.extend(edges);
                }
            }
        }
        // Edges lead to lower ranks alone, those of dependencies never to a higher one: no cycle can come of it.
        let mut more: Vec<(ComponentName, &ComponentName)> = Vec::new();
        for name in self.depends_on.keys() {
            let earlier = ranks.get(name).copied().unwrap_or(groups.len());
            for member in groups.iter().take(earlier).flatten() {
                if self.depends_on.contains_key(member) {
                    more.push((name.clone(), member));
                }
            }
        }
        for (name, member) in more {
            // Edges are as good as absent for whoever is not listed.
            if let Some(edges) = self.depends_on.get_mut(&name) {
                edges.insert(member.clone());
            }
        }
        self.order = topological(&self.depends_on);
        self
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

/// What is wrong when `components` cannot be ordered: where the cycle begins, its path, and who declared what of it.
fn cycle_error(
    components: &[ComponentSpec],
    depends_on: &BTreeMap<ComponentName, BTreeSet<ComponentName>>,
    ordered: &[ComponentName],
    declarations: &BTreeMap<(ComponentName, ComponentName), String>,
) -> FieldError {
    let path = cycle(depends_on, ordered);
    let names: Vec<&str> = path.iter().map(|name| name.as_str()).collect();
    let mut message = format!("dependsOn has the cycle {}", names.join(" → "));
    for (from, to) in path.iter().zip(path.iter().skip(1)) {
        if let Some(declared) = declarations.get(&((*from).clone(), (*to).clone())) {
            message.push_str(&format!("; {declared} depends on {to}"));
        }
    }
    let first = path.first();
    let index = components
        .iter()
        .position(|component| Some(&&component.name) == first);
    let field = match index {
        Some(index) => format!("components[{index}].dependsOn"),
        None => "components".to_owned(),
    };
    FieldError::new(field, message)
}

/// One cycle among the nodes that could not be ordered; its first node is its last.
fn cycle<'a>(
    depends_on: &'a BTreeMap<ComponentName, BTreeSet<ComponentName>>,
    ordered: &[ComponentName],
) -> Vec<&'a ComponentName> {
    let ordered: BTreeSet<_> = ordered.iter().collect();
    let stuck = |name: &&ComponentName| !ordered.contains(*name);
    let mut path: Vec<&ComponentName> = Vec::new();
    let mut next = depends_on.keys().find(stuck);
    while let Some(name) = next {
        if let Some(start) = path.iter().position(|seen| *seen == name) {
            return path.into_iter().skip(start).chain([name]).collect();
        }
        path.push(name);
        // Every stuck node waits for another stuck one, so the walk must come back to itself.
        next = depends_on.get(name).into_iter().flatten().find(stuck);
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    //! K41: prerequisites go first, those alone that are listed. K44: cycles and what is not there are found, with their path.

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

    fn group(names: &[&str]) -> Vec<ComponentName> {
        names
            .iter()
            .map(|name| ComponentName::new(*name).expect("a name"))
            .collect()
    }

    fn edges(graph: &ComponentGraph, name: &str) -> Vec<String> {
        let name = ComponentName::new(name).expect("a name");
        graph.depends_on(&name).map(ToString::to_string).collect()
    }

    fn declared(on: &str) -> Vec<DeclaredDependency> {
        vec![DeclaredDependency {
            on: ComponentName::new(on).expect("a name"),
            declared: "the reconciler of kiali, for versions >=1.2,".to_owned(),
        }]
    }

    #[test]
    fn prerequisites_go_before_everything_else_and_only_those_that_are_listed() {
        let components = [
            component("web", &["db"]),
            component("istio", &["certs"]),
            component("certs", &[]),
            component("db", &[]),
            component("policy", &[]),
        ];
        let graph = ComponentGraph::new(&components).expect("the graph is valid");
        let groups = [group(&["istio", "istio-base"]), group(&["policy"])];
        let graph = graph.with_prerequisites(&groups);
        assert_eq!(
            edges(&graph, "certs"),
            Vec::<String>::new(),
            "istio itself needs it"
        );
        assert_eq!(edges(&graph, "istio"), ["certs"]);
        assert_eq!(edges(&graph, "policy"), ["istio"]);
        assert_eq!(edges(&graph, "db"), ["istio", "policy"]);
        assert_eq!(edges(&graph, "web"), ["db", "istio", "policy"]);
        assert_eq!(names(graph.order()), ["certs", "istio", "policy", "db", "web"]);
        assert_eq!(
            names(graph.reversed().order()),
            ["web", "db", "policy", "istio", "certs"]
        );
    }

    #[test]
    fn without_a_listed_prerequisite_nothing_changes() {
        let components = [component("web", &["db"]), component("db", &[])];
        let graph = ComponentGraph::new(&components).expect("the graph is valid");
        assert_eq!(graph.clone().with_prerequisites(&[group(&["istio"])]), graph);
    }

    #[test]
    fn what_a_reconciler_declares_counts_like_depends_on() {
        let components = [component("istio", &[]), component("kiali", &[])];
        let of = |spec: &ComponentSpec| match spec.name.as_str() {
            "kiali" => declared("istio"),
            _ => Vec::new(),
        };
        let graph = ComponentGraph::with_declared(&components, of).expect("the graph is valid");
        assert_eq!(names(graph.order()), ["istio", "kiali"]);
        let alone = ComponentGraph::with_declared(&components[1..], of).map_err(|error| error.to_string());
        assert_eq!(
            alone,
            Err(
                "components[0]: component \"istio\" is not listed, and the reconciler of kiali, for versions >=1.2, depends \
                 on it"
                    .to_owned()
            )
        );
    }

    #[test]
    fn a_cycle_names_its_place_its_path_and_who_declared_it() {
        let components = [
            component("web", &[]),
            component("istio", &["kiali"]),
            component("kiali", &[]),
        ];
        let of = |spec: &ComponentSpec| match spec.name.as_str() {
            "kiali" => declared("istio"),
            _ => Vec::new(),
        };
        let error = ComponentGraph::with_declared(&components, of).map_err(|error| error.to_string());
        assert_eq!(
            error,
            Err(
                "components[1].dependsOn: dependsOn has the cycle istio → kiali → istio; the reconciler of kiali, for versions \
                 >=1.2, depends on istio"
                    .to_owned()
            )
        );
    }

    proptest! {
        #[test]
        fn prerequisites_never_make_a_cycle(
            edges in proptest::collection::vec((0usize..10, 0usize..10), 0..30),
            groups in proptest::collection::vec(proptest::collection::vec(0usize..12, 0..4), 0..4),
        ) {
            let components: Vec<_> = (0..10)
                .map(|node| {
                    let below = edges.iter().filter(|(from, to)| *from == node && to < from);
                    let below: Vec<_> = below.map(|(_, to)| format!("n{to}")).collect();
                    component(&format!("n{node}"), &below.iter().map(String::as_str).collect::<Vec<_>>())
                })
                .collect();
            let groups: Vec<Vec<ComponentName>> = groups
                .iter()
                .map(|members| group(&members.iter().map(|node| format!("n{node}")).collect::<Vec<_>>()
                    .iter().map(String::as_str).collect::<Vec<_>>()))
                .collect();
            let plain = ComponentGraph::new(&components).expect("the graph is valid");
            let graph = plain.clone().with_prerequisites(&groups);
            prop_assert_eq!(graph.order().len(), 10);
            for name in plain.order() {
                for dependency in plain.depends_on(name) {
                    prop_assert!(graph.depends_on(name).any(|other| other == dependency));
                }
            }
        }

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
