use evenkeel_core::{Digest, Fence, OperationState, ReconciliationId, Transition as _};
use jiff::SignedDuration;

use super::*;

fn reconciliation(number: u64) -> ReconciliationId {
    format!("c1--00000000-0000-7000-8000-{number:012}")
        .parse()
        .expect("an id")
}

fn operation(component: &str, kind: Strategy, version: u64, state: OperationState) -> Operation {
    let digest = Digest::of(component).hex();
    let (number, _) = digest.split_at(12);
    Operation {
        id: format!("c1--00000000-0000-7000-8000-{number}")
            .parse()
            .expect("an id"),
        reconciliation: reconciliation(1),
        component: component.parse().expect("a name"),
        kind,
        version: ConfigurationVersion(version),
        cause: String::new(),
        attempt: 1,
        fence: Fence(1),
        lease: None,
        stop: None,
        depends_on: Vec::new(),
        created_at: Timestamp::UNIX_EPOCH,
        started_at: None,
        finished_at: state.kind().is_final().then_some(Timestamp::UNIX_EPOCH),
        state,
    }
}

fn new(component: &str, kind: Strategy, version: u64) -> NewOperation {
    NewOperation {
        component: component.parse().expect("a name"),
        kind,
        version: ConfigurationVersion(version),
        cause: String::new(),
        depends_on: Vec::new(),
        carries: None,
    }
}

fn version(kubeconfig: u64, components: serde_json::Value) -> Version {
    let spec = serde_json::json!({"name": "c1", "components": components});
    Version {
        spec: Arc::new(serde_json::from_value(spec).expect("a specification")),
        kubeconfig: Some(kubeconfig),
    }
}

fn component(name: &str, more: serde_json::Value) -> serde_json::Value {
    let mut spec =
        serde_json::json!({"name": name, "source": {"directory": {"path": name}}, "namespace": "apps"});
    if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    spec
}

/// Which of the new operations go on as which.
fn carried(operations: Vec<NewOperation>, open: &[Operation], versions: &[(u64, Version)]) -> Vec<bool> {
    let mut planned = Planned {
        strategy: Strategy::Upgrade,
        operations,
    };
    let versions = versions
        .iter()
        .map(|(number, version)| (ConfigurationVersion(*number), version.clone()));
    carry_over(&mut planned, Strategy::Upgrade, open, &versions.collect());
    planned
        .operations
        .iter()
        .map(|operation| operation.carries.is_some())
        .collect()
}

#[test]
fn what_is_equal_goes_on_and_what_is_not_does_not() {
    use serde_json::json;
    let first = version(
        1,
        json!([
            component("same", json!({})),
            component("values", json!({"values": [{"inline": {"a": 1}}]})),
            component("order", json!({})),
            component("place", json!({})),
        ]),
    );
    let second = version(
        1,
        json!([
            component("same", json!({})),
            component("values", json!({"values": [{"inline": {"a": 2}}]})),
            component("order", json!({"dependsOn": ["same"], "onRemove": "orphan"})),
            component("place", json!({"namespace": "elsewhere"})),
            component("new", json!({})),
        ]),
    );
    let names = ["same", "values", "order", "place"];
    let open = names.map(|name| operation(name, Strategy::Install, 1, OperationState::Running));
    let planned = || {
        ["same", "values", "order", "place", "new"]
            .map(|name| new(name, Strategy::Upgrade, 2))
            .to_vec()
    };
    let versions = [(1, first.clone()), (2, second.clone())];
    assert_eq!(
        carried(planned(), &open, &versions),
        [true, false, true, false, false]
    );
    // Another kubeconfig may lead elsewhere: nothing is equal.
    let elsewhere = Version {
        kubeconfig: Some(2),
        ..second
    };
    let versions = [(1, first), (2, elsewhere)];
    assert_eq!(carried(planned(), &open, &versions), [false; 5]);
}

#[test]
fn deletions_go_on_where_they_mean_the_same() {
    let running = || OperationState::Running;
    let open = [
        operation("gone", Strategy::Delete, 1, running()),
        operation("back", Strategy::Delete, 1, running()),
        operation("web", Strategy::Install, 2, running()),
    ];
    let planned = vec![
        new("gone", Strategy::Delete, 1),
        new("back", Strategy::Install, 3),
        new("web", Strategy::Delete, 2),
    ];
    assert_eq!(carried(planned, &open, &[]), [true, false, false]);
    // The deletion of the cluster is done by its mode, that of a component by what its version says.
    let mut planned = Planned {
        strategy: Strategy::Delete,
        operations: vec![new("gone", Strategy::Delete, 1)],
    };
    carry_over(&mut planned, Strategy::Upgrade, &open, &BTreeMap::new());
    assert_eq!(planned.operations[0].carries, None);
}

#[test]
fn what_was_told_to_stop_or_moves_does_not_go_on() {
    let mut stopping = operation("web", Strategy::Install, 1, OperationState::Running);
    assert_eq!(
        carried(
            vec![new("web", Strategy::Install, 1)],
            std::slice::from_ref(&stopping),
            &[]
        ),
        [true]
    );
    let moved = vec![new("web", Strategy::Delete, 1), new("web", Strategy::Install, 1)];
    assert_eq!(
        carried(moved, std::slice::from_ref(&stopping), &[]),
        [false, false]
    );
    stopping.stop = Some(inventory::StopReason::Superseded);
    assert_eq!(
        carried(vec![new("web", Strategy::Install, 1)], &[stopping], &[]),
        [false]
    );
}

fn run(version: u64, state: ReconciliationState) -> Reconciliation {
    Reconciliation {
        id: reconciliation(version),
        version: ConfigurationVersion(version),
        strategy: Strategy::Upgrade,
        due_reason: DueReason::Change,
        state,
        reason: None,
        created_at: Timestamp::UNIX_EPOCH,
        deadline: Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1),
        finished_at: None,
    }
}

#[test]
fn patience_grows_with_each_version_that_was_overtaken() {
    use ReconciliationState::{Running, Succeeded, Superseded};
    let runs = [
        run(9, Running),
        run(8, Superseded),
        run(7, Superseded),
        run(6, Succeeded),
        run(5, Superseded),
    ];
    assert_eq!(overtaken(&runs), 2);
    // A run that was begun anew for the same version was not overtaken.
    let runs = [run(9, Running), run(9, Superseded), run(8, Superseded)];
    assert_eq!(overtaken(&runs), 0);
    assert_eq!(overtaken(&[]), 0);
    let settings = Settings::default();
    let seconds: Vec<u64> = [0, 4, 5, 6, 7, 40]
        .map(|count| patience(count, &settings).as_secs())
        .to_vec();
    assert_eq!(seconds, [0, 0, 10, 20, 40, 3_600]);
}
