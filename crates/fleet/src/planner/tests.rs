//! What a run is for, chosen from what is found (K16, K35), and the order of its operations: definitions first, then
//! prerequisites (K41), then whoever waits for whom (K44).

use evenkeel_core::{ComponentSpec, Strategy};
use proptest::prelude::*;

use super::*;

const V: ConfigurationVersion = ConfigurationVersion(3);

fn name(text: &str) -> ComponentName {
    ComponentName::new(text).expect("a name")
}

fn graph(edges: &[(&str, &[&str])]) -> ComponentGraph {
    let component = |(name, depends_on): &(&str, &[&str])| -> ComponentSpec {
        let json = serde_json::json!({
            "name": name, "source": {"directory": {"path": "x"}}, "namespace": "n", "dependsOn": depends_on,
        });
        serde_json::from_value(json).expect("a component")
    };
    ComponentGraph::new(&edges.iter().map(component).collect::<Vec<_>>()).expect("a graph")
}

fn apply(component: &str, kind: Strategy) -> Application {
    Application {
        component: name(component),
        kind,
        cause: "it differs".to_owned(),
        moved: None,
    }
}

fn moved(component: &str) -> Application {
    Application {
        moved: Some("its namespace changed".to_owned()),
        ..apply(component, Strategy::Install)
    }
}

fn around(present: bool) -> Around {
    Around {
        present,
        definitions: None,
    }
}

fn removal(component: &str, dependents: &[&str]) -> Removal {
    Removal {
        component: name(component),
        version: ConfigurationVersion(2),
        cause: "it is no longer listed".to_owned(),
        dependents: dependents.iter().map(|text| name(text)).collect(),
    }
}

/// Each operation as `kind component < dependency, dependency`.
fn shown(planned: &Planned) -> Vec<String> {
    let operations = &planned.operations;
    let title = |operation: &NewOperation| format!("{} {}", operation.kind.as_str(), operation.component);
    let line = |operation: &NewOperation| {
        let waits: Vec<_> = operation
            .depends_on
            .iter()
            .map(|at| title(&operations[*at]))
            .collect();
        if waits.is_empty() {
            title(operation)
        } else {
            format!("{} < {}", title(operation), waits.join(", "))
        }
    };
    operations.iter().map(line).collect()
}

#[test]
fn dependencies_are_drawn_among_the_operations_alone() {
    let graph = graph(&[("db", &[]), ("api", &["db"]), ("web", &["api"])]);
    let all = ["db", "api", "web"].map(|name| apply(name, Strategy::Install));
    let planned = plan(V, &graph, all.to_vec(), Vec::new(), around(false));
    assert_eq!(planned.strategy, Strategy::Install);
    assert_eq!(
        shown(&planned),
        [
            "install db",
            "install api < install db",
            "install web < install api"
        ]
    );
    // The one in between is as it should be; the order of the others stays.
    let two = ["web", "db"].map(|name| apply(name, Strategy::Repair));
    let planned = plan(V, &graph, two.to_vec(), Vec::new(), around(true));
    assert_eq!(planned.strategy, Strategy::Repair);
    assert_eq!(shown(&planned), ["repair db", "repair web < repair db"]);
    let one = vec![apply("web", Strategy::Upgrade)];
    let planned = plan(V, &graph, one, Vec::new(), around(true));
    assert_eq!(planned.strategy, Strategy::Upgrade);
    assert_eq!(shown(&planned), ["upgrade web"]);
}

#[test]
fn definitions_go_before_everything_then_prerequisites_then_the_graph() {
    let graph = graph(&[("db", &[]), ("web", &["db"]), ("istio", &[]), ("cache", &[])]);
    let graph = graph.with_prerequisites(&[vec![name("istio"), name("istiod")]]);
    let all = ["db", "web", "istio", "cache"].map(|name| apply(name, Strategy::Install));
    let with = |definitions: bool| Around {
        present: false,
        definitions: definitions.then(|| "kinds".to_owned()),
    };
    let planned = plan(V, &graph, all.to_vec(), Vec::new(), with(true));
    assert_eq!(
        shown(&planned),
        [
            "install evenkeel-crds",
            "install istio < install evenkeel-crds",
            "install cache < install istio",
            "install db < install istio",
            "install web < install db, install istio",
        ]
    );
    // Whoever is as it should be is waited for by nobody.
    let some = ["web", "cache"].map(|name| apply(name, Strategy::Upgrade));
    let planned = plan(V, &graph, some.to_vec(), Vec::new(), with(false));
    assert_eq!(shown(&planned), ["upgrade cache", "upgrade web"]);
}

#[test]
fn definitions_go_last_when_everything_goes() {
    let graph = graph(&[("db", &[]), ("web", &["db"])]);
    let removals = vec![
        removal("db", &[]),
        removal("web", &[]),
        removal("evenkeel-crds", &["db", "web"]),
    ];
    let planned = deletion(&graph, removals);
    assert_eq!(
        shown(&planned),
        [
            "delete db < delete web",
            "delete web",
            "delete evenkeel-crds < delete db, delete web"
        ]
    );
}

#[test]
fn what_is_removed_goes_after_whoever_used_it() {
    let graph = graph(&[("web", &[])]);
    let removals = vec![removal("db", &["cache", "web"]), removal("cache", &["web"])];
    let planned = plan(
        V,
        &graph,
        vec![apply("web", Strategy::Upgrade)],
        removals,
        around(true),
    );
    assert_eq!(planned.strategy, Strategy::Upgrade);
    assert_eq!(
        shown(&planned),
        [
            "upgrade web",
            "delete db < upgrade web, delete cache",
            "delete cache < upgrade web"
        ]
    );
    assert_eq!(planned.operations[1].version, ConfigurationVersion(2));
}

#[test]
fn a_moved_component_is_deleted_first_in_reverse_order() {
    let graph = graph(&[("db", &[]), ("web", &["db"])]);
    let planned = plan(
        V,
        &graph,
        vec![moved("db"), moved("web")],
        Vec::new(),
        around(true),
    );
    assert_eq!(planned.strategy, Strategy::Upgrade);
    assert_eq!(
        shown(&planned),
        [
            "delete web",
            "delete db < delete web",
            "install db < delete db",
            "install web < install db, delete web"
        ]
    );
}

#[test]
fn everything_goes_backwards() {
    let graph = graph(&[("db", &[]), ("api", &["db"]), ("web", &["api"])]);
    // The one in between was never installed; an older version listed another.
    let removals = vec![removal("db", &[]), removal("web", &[]), removal("old", &["web"])];
    let planned = deletion(&graph, removals);
    assert_eq!(planned.strategy, Strategy::Delete);
    assert_eq!(
        shown(&planned),
        ["delete db < delete web", "delete web", "delete old < delete web"]
    );
}

/// Whether taking away what waits for nothing takes everything away.
fn is_acyclic(operations: &[NewOperation]) -> bool {
    let mut done = BTreeSet::new();
    loop {
        let next = (0..operations.len()).find(|at| {
            !done.contains(at)
                && operations[*at]
                    .depends_on
                    .iter()
                    .all(|other| done.contains(other))
        });
        match next {
            Some(at) => done.insert(at),
            None => return done.len() == operations.len(),
        };
    }
}

proptest! {
    #[test]
    fn no_plan_has_a_cycle(
        new in proptest::collection::vec((0usize..8, 0usize..8), 0..24),
        old in proptest::collection::vec((0usize..12, 0usize..12), 0..36),
        applied in proptest::collection::vec(0usize..3, 8),
    ) {
        // Components 0 to 7 are listed, 8 to 11 are removed; the old graph runs the other way round.
        let names: Vec<String> = (0..12).map(|number| format!("c{number}")).collect();
        let edges: Vec<(&str, Vec<&str>)> = (0..8)
            .map(|from| {
                let below = new.iter().filter(|(f, to)| *f == from && to < f);
                (names[from].as_str(), below.map(|(_, to)| names[*to].as_str()).collect())
            })
            .collect();
        let edges: Vec<(&str, &[&str])> = edges.iter().map(|(from, to)| (*from, to.as_slice())).collect();
        let graph = graph(&edges);
        let applications = applied.iter().enumerate().filter_map(|(number, how)| match how {
            0 => None,
            1 => Some(apply(&names[number], Strategy::Upgrade)),
            _ => Some(moved(&names[number])),
        });
        let removals = (8..12).map(|number| {
            let dependents = old.iter().filter(|(from, to)| *to == number && from < to);
            let dependents: Vec<&str> = dependents.map(|(from, _)| names[*from].as_str()).collect();
            removal(&names[number], &dependents)
        });
        let removals: Vec<_> = removals.collect();
        let planned = plan(V, &graph, applications.collect(), removals.clone(), around(true));
        prop_assert!(is_acyclic(&planned.operations), "{:?}", shown(&planned));
        let planned = deletion(&graph, removals);
        prop_assert!(is_acyclic(&planned.operations), "{:?}", shown(&planned));
    }
}
