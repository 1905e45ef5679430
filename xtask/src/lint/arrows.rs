//! The arrows of the house: a crate may depend on crates below it in the list, never above.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::metadata::{Kind, Metadata, room};

/// The rooms from top to bottom, as ARCHITECTURE.md lists them.
const LIST: [&str; 15] = [
    "cli",
    "server",
    "operator",
    "fleet",
    "component",
    "inventory",
    "api",
    "cluster",
    "source",
    "chart",
    "gotemplate",
    "goyaml",
    "steps",
    "telemetry",
    "core",
];

/// The rooms beside the list, with those that they may depend on themselves. They stand in for what is outside, so
/// they must not be made of what they test.
const BESIDE: [(&str, &[&str]); 4] = [
    ("simulator", &["goyaml", "telemetry", "core", "realparts"]),
    ("realparts", &[]),
    ("testkit", &["realparts", "simulator", "telemetry", "core"]),
    ("xtask", &["chart", "gotemplate", "goyaml", "realparts"]),
];

/// Which rooms of the list may use one beside it outside their tests. Only tests may use `testkit`.
const USERS: [(&str, &[&str]); 4] = [
    ("simulator", &["cli"]),
    ("realparts", &["cli"]),
    ("testkit", &[]),
    ("xtask", &[]),
];

/// Rooms that may use less than what lies below them.
const NARROW: [(&str, Allowed); 3] = [
    ("api", Allowed::Only(&["core"])),
    ("inventory", Allowed::Only(&["telemetry", "core"])),
    ("component", Allowed::Not(&["inventory"])),
];

/// A restriction of what a room may use.
#[derive(Clone, Copy)]
enum Allowed {
    Only(&'static [&'static str]),
    Not(&'static [&'static str]),
}

impl Allowed {
    fn permits(self, room: &str) -> bool {
        match self {
            Self::Only(rooms) => rooms.contains(&room),
            Self::Not(rooms) => !rooms.contains(&room),
        }
    }
}

/// Checks every dependency between crates of the repository, and that there is no cycle among them.
pub(super) fn check(metadata: &Metadata) -> Vec<Finding> {
    let rooms: BTreeSet<&str> = metadata.members().map(|package| package.room()).collect();
    let mut findings = Vec::new();
    let mut arrows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in metadata.members() {
        let from = package.room();
        if position(from).is_none() && beside(from).is_none() {
            findings.push(Finding::new(
                format!("crate {}", package.name),
                "is not in the list of the house",
                "give it its place in xtask/src/lint/arrows.rs and in ARCHITECTURE.md",
            ));
            continue;
        }
        for dependency in &package.dependencies {
            let to = room(&dependency.name);
            if !rooms.contains(to) || to == from {
                continue;
            }
            // A test may use its own crate's users' stand-ins; a build may not.
            arrows.entry(from).or_default().insert(to);
            if let Some(what) = objection(from, to, dependency.kind) {
                findings.push(Finding::new(
                    format!("crate {}", package.name),
                    what,
                    "turn the dependency round, or move what both need into a crate below them",
                ));
            }
        }
    }
    findings.extend(cycle(&arrows).map(|cycle| {
        Finding::new(
            format!("crate {}", cycle.first().copied().unwrap_or_default()),
            format!("depends on itself: {}", cycle.join(" → ")),
            "break the cycle",
        )
    }));
    findings
}

fn position(room: &str) -> Option<usize> {
    LIST.iter().position(|listed| *listed == room)
}

fn beside(room: &str) -> Option<&'static [&'static str]> {
    BESIDE
        .iter()
        .find(|(name, _)| *name == room)
        .map(|(_, allowed)| *allowed)
}

/// What is wrong with `from` depending on `to`.
fn objection(from: &str, to: &str, kind: Kind) -> Option<String> {
    if let Some(allowed) = beside(from) {
        let is_test_support = kind == Kind::Dev && beside(to).is_some();
        return (!allowed.contains(&to) && !is_test_support)
            .then(|| format!("stands beside the list and must not depend on {to}"));
    }
    if let Some((_, users)) = USERS.iter().find(|(name, _)| *name == to) {
        return (kind != Kind::Dev && !users.contains(&from)).then(|| {
            format!(
                "depends on {to}, which is for {}tests",
                users
                    .iter()
                    .map(|user| format!("{user} and "))
                    .collect::<String>()
            )
        });
    }
    if position(from)? >= position(to)? {
        return Some(format!("depends upwards, on {to}"));
    }
    let (_, allowed) = NARROW.iter().find(|(name, _)| *name == from)?;
    (!allowed.permits(to)).then(|| format!("must not depend on {to}"))
}

/// A way from a room back to itself, if there is one.
fn cycle<'a>(arrows: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Option<Vec<&'a str>> {
    fn visit<'a>(
        room: &'a str,
        arrows: &BTreeMap<&'a str, BTreeSet<&'a str>>,
        path: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<&'a str>> {
        if let Some(start) = path.iter().position(|earlier| *earlier == room) {
            let mut cycle: Vec<&str> = path.iter().skip(start).copied().collect();
            cycle.push(room);
            return Some(cycle);
        }
        if !done.insert(room) {
            return None;
        }
        path.push(room);
        let found = arrows
            .get(room)
            .into_iter()
            .flatten()
            .find_map(|next| visit(next, arrows, path, done));
        path.pop();
        found
    }
    let mut done = BTreeSet::new();
    arrows
        .keys()
        .find_map(|room| visit(room, arrows, &mut Vec::new(), &mut done))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Metadata of crates with their dependencies and the kinds of these.
    fn metadata(crates: &[(&str, &[(&str, Kind)])]) -> Metadata {
        let packages: Vec<_> = crates
            .iter()
            .map(|(name, dependencies)| {
                let dependencies: Vec<_> = dependencies
                    .iter()
                    .map(|(name, kind)| {
                        let kind = match kind {
                            Kind::Normal => None,
                            Kind::Dev => Some("dev"),
                            Kind::Build => Some("build"),
                        };
                        json!({"name": name, "kind": kind})
                    })
                    .collect();
                json!({"id": name, "name": name, "dependencies": dependencies})
            })
            .collect();
        let members: Vec<&str> = crates.iter().map(|(name, _)| *name).collect();
        serde_json::from_value(json!({
            "packages": packages,
            "workspace_members": members,
            "resolve": {"nodes": []},
        }))
        .unwrap()
    }

    fn findings(crates: &[(&str, &[(&str, Kind)])]) -> Vec<String> {
        check(&metadata(crates))
            .into_iter()
            .map(|finding| format!("{}: {}", finding.place, finding.what))
            .collect()
    }

    const LEAF: &[(&str, Kind)] = &[];

    #[test]
    fn an_arrow_down_is_fine_and_one_up_is_not() {
        let down: &[(&str, Kind)] = &[("evenkeel-core", Kind::Normal)];
        assert_eq!(
            findings(&[("evenkeel-chart", down), ("evenkeel-core", LEAF)]),
            [""; 0]
        );
        let up: &[(&str, Kind)] = &[("evenkeel-chart", Kind::Normal)];
        assert_eq!(
            findings(&[("evenkeel-chart", LEAF), ("evenkeel-core", up)]),
            ["crate evenkeel-core: depends upwards, on chart"]
        );
    }

    #[test]
    fn tests_must_not_depend_upwards_either() {
        let up: &[(&str, Kind)] = &[("evenkeel-fleet", Kind::Dev)];
        assert_eq!(
            findings(&[("evenkeel-fleet", LEAF), ("evenkeel-steps", up)]),
            ["crate evenkeel-steps: depends upwards, on fleet"]
        );
    }

    #[test]
    fn real_parts_and_the_simulator_are_for_tests_and_the_command_line() {
        let kit: &[(&str, Kind)] = &[("evenkeel-testkit", Kind::Dev), ("evenkeel-simulator", Kind::Dev)];
        let cli: &[(&str, Kind)] = &[
            ("evenkeel-simulator", Kind::Normal),
            ("evenkeel-realparts", Kind::Normal),
        ];
        let beside = [
            ("evenkeel-testkit", LEAF),
            ("evenkeel-simulator", LEAF),
            ("evenkeel-realparts", LEAF),
        ];
        let good = [
            [("evenkeel-cluster", kit), ("evenkeel-cli", cli)].as_slice(),
            &beside,
        ]
        .concat();
        assert_eq!(findings(&good), [""; 0]);
        let normal: &[(&str, Kind)] = &[
            ("evenkeel-testkit", Kind::Normal),
            ("evenkeel-simulator", Kind::Normal),
        ];
        let bad = [[("evenkeel-cluster", normal)].as_slice(), &beside].concat();
        assert_eq!(
            findings(&bad),
            [
                "crate evenkeel-cluster: depends on testkit, which is for tests",
                "crate evenkeel-cluster: depends on simulator, which is for cli and tests",
            ]
        );
    }

    #[test]
    fn stand_ins_are_not_made_of_what_they_test() {
        let engine: &[(&str, Kind)] = &[("evenkeel-cluster", Kind::Normal)];
        assert_eq!(
            findings(&[("evenkeel-simulator", engine), ("evenkeel-cluster", LEAF)]),
            ["crate evenkeel-simulator: stands beside the list and must not depend on cluster"]
        );
    }

    #[test]
    fn narrow_rooms_use_only_what_they_may() {
        let inventory: &[(&str, Kind)] = &[("evenkeel-cluster", Kind::Normal)];
        let component: &[(&str, Kind)] = &[
            ("evenkeel-inventory", Kind::Normal),
            ("evenkeel-cluster", Kind::Normal),
        ];
        assert_eq!(
            findings(&[
                ("evenkeel-inventory", inventory),
                ("evenkeel-component", component),
                ("evenkeel-cluster", LEAF),
            ]),
            [
                "crate evenkeel-inventory: must not depend on cluster",
                "crate evenkeel-component: must not depend on inventory",
            ]
        );
    }

    #[test]
    fn cycles_are_shown_whole() {
        let to_testkit: &[(&str, Kind)] = &[("evenkeel-testkit", Kind::Dev)];
        let to_simulator: &[(&str, Kind)] = &[("evenkeel-simulator", Kind::Normal)];
        assert_eq!(
            findings(&[
                ("evenkeel-simulator", to_testkit),
                ("evenkeel-testkit", to_simulator)
            ]),
            ["crate simulator: depends on itself: simulator → testkit → simulator"]
        );
    }

    #[test]
    fn a_crate_without_a_place_is_told() {
        assert_eq!(
            findings(&[("evenkeel-extra", LEAF)]),
            ["crate evenkeel-extra: is not in the list of the house"]
        );
    }
}
