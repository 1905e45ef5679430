use evenkeel_core::{ClusterId, Fence, OperationId, ReconciliationId};
use jiff::SignedDuration;

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn run(strategy: Strategy) -> Reconciliation {
    Reconciliation {
        id: reconciliation(),
        version: ConfigurationVersion(4),
        strategy,
        due_reason: DueReason::Change,
        state: ReconciliationState::Running,
        reason: None,
        created_at: NOW,
        deadline: NOW + SignedDuration::from_hours(1),
        finished_at: None,
    }
}

fn reconciliation() -> ReconciliationId {
    "c1--00000000-0000-7000-8000-000000000001".parse().expect("an id")
}

fn operation(component: &str, state: OperationState) -> Operation {
    let is_final = evenkeel_core::Transition::is_final(state.kind());
    let id: OperationId = "c1--00000000-0000-7000-8000-000000000002".parse().expect("an id");
    assert_eq!(id.cluster(), &ClusterId::new("c1").expect("an id"));
    Operation {
        id,
        reconciliation: reconciliation(),
        component: ComponentName::new(component).expect("a name"),
        kind: Strategy::Install,
        version: ConfigurationVersion(4),
        cause: String::new(),
        state,
        attempt: 1,
        fence: Fence(1),
        lease: None,
        stop: None,
        depends_on: Vec::new(),
        created_at: NOW,
        started_at: None,
        finished_at: is_final.then_some(NOW),
    }
}

fn failed_with(reason: &str) -> OperationState {
    OperationState::Failed {
        reason: reason.to_owned(),
    }
}

fn retrying(reason: &str) -> OperationState {
    OperationState::Retrying {
        reason: reason.to_owned(),
        next_at: NOW,
    }
}

fn skipped() -> OperationState {
    OperationState::Skipped {
        reason: "component \"db\" failed".to_owned(),
    }
}

fn timing() -> Timing {
    Timing {
        retry: NOW + SignedDuration::from_secs(2),
        periodic: NOW + SignedDuration::from_secs(300),
    }
}

fn decide(
    strategy: Strategy,
    operations: &[Operation],
    failures: u32,
    how: impl Fn(&Ended<'_>) -> Finish,
) -> Finish {
    how(&Ended {
        run: &run(strategy),
        operations,
        failures,
        settings: &Settings::default(),
        timing: timing(),
    })
}

#[test]
fn all_done_is_ready_and_due_by_interval() {
    let operations = [operation("web", OperationState::Succeeded)];
    for operations in [&operations[..], &[]] {
        let finish = decide(Strategy::Install, operations, 1, ended);
        assert_eq!(finish.state, ReconciliationState::Succeeded);
        assert_eq!(finish.status.state, ClusterState::Ready);
        assert_eq!(finish.status.observed_version, ConfigurationVersion(4));
        assert_eq!(finish.status.failures, FailureCount::Reset);
        assert_eq!(finish.status.due, Due::At(timing().periodic, DueReason::Periodic));
    }
}

#[test]
fn a_failure_names_its_component_and_is_tried_again() {
    let operations = [
        operation("api", OperationState::Succeeded),
        operation("db", failed_with("no such chart")),
        operation("web", skipped()),
        operation("x", failed_with("other")),
    ];
    let finish = decide(Strategy::Upgrade, &operations, 3, ended);
    assert_eq!(finish.state, ReconciliationState::Failed);
    assert_eq!(finish.status.state, ClusterState::Degraded);
    let reason = "component db: no such chart; and 1 more component";
    assert_eq!(finish.status.reason.as_deref(), Some(reason));
    assert_eq!(finish.status.failures, FailureCount::Add);
    assert_eq!(finish.status.due, Due::At(timing().retry, DueReason::Retry));
}

#[test]
fn a_component_is_named_once() {
    let web = ComponentName::new("web").expect("a name");
    let reason = component_reason(&web, "component web does not render: no", 0);
    assert_eq!(reason, "component web: does not render: no");
    assert_eq!(
        component_reason(&web, "no", 2),
        "component web: no; and 2 more components"
    );
}

#[test]
fn at_the_limit_the_cluster_is_given_up() {
    let operations = [operation("db", failed_with("no such chart"))];
    let finish = decide(Strategy::Repair, &operations, 149, ended);
    assert_eq!(finish.status.state, ClusterState::Degraded);
    let finish = decide(Strategy::Repair, &operations, 150, ended);
    assert_eq!(
        (finish.status.state, finish.status.due),
        (ClusterState::Failed, Due::Never)
    );
    let finish = decide(Strategy::Delete, &operations, 14, ended);
    assert_eq!(finish.status.state, ClusterState::Deleting);
    assert_eq!(finish.status.due, Due::At(timing().retry, DueReason::Deletion));
    let finish = decide(Strategy::Delete, &operations, 15, ended);
    assert_eq!(
        (finish.status.state, finish.status.due),
        (ClusterState::DeleteFailed, Due::Never)
    );
    assert!(
        finish
            .status
            .reason
            .is_some_and(|reason| reason.contains("mode forget"))
    );
}

#[test]
fn a_deletion_that_is_done_ends_the_cluster() {
    let operations = [operation("db", OperationState::Succeeded)];
    let finish = decide(Strategy::Delete, &operations, 1, ended);
    assert_eq!(finish.status.state, ClusterState::Deleted);
}

#[test]
fn what_a_person_cancelled_is_no_success() {
    let operations = [
        operation("db", OperationState::Succeeded),
        operation("web", OperationState::Cancelled),
    ];
    let finish = decide(Strategy::Repair, &operations, 1, ended);
    assert_eq!(finish.state, ReconciliationState::Failed);
    assert_eq!(finish.status.reason.as_deref(), Some("web is cancelled"));
}

#[test]
fn out_of_time_says_what_was_not_done_and_why() {
    let operations = [
        operation("db", retrying("not ready in time: Deployment.apps/db")),
        operation("web", OperationState::Pending),
    ];
    let finish = decide(Strategy::Install, &operations, 1, overdue);
    assert_eq!(finish.state, ReconciliationState::Failed);
    let reason =
        "component db: not ready in time: Deployment.apps/db; not done within 1h (not done: db, web)";
    assert_eq!(finish.reason.as_deref(), Some(reason));
}

#[test]
fn a_failure_shows_while_the_others_go_on_and_goes_when_it_recovers() {
    let running = operation("api", OperationState::Running);
    let failing = [running.clone(), operation("db", retrying("no connection"))];
    let reason = Some("component db: no connection".to_owned());
    assert_eq!(
        standing(Strategy::Install, &failing, &BTreeMap::new()),
        Standing::Is(ClusterState::Degraded, reason.clone())
    );
    assert_eq!(
        standing(Strategy::Delete, &failing, &BTreeMap::new()),
        Standing::Is(ClusterState::Deleting, reason)
    );
    let again = Operation {
        attempt: 2,
        ..operation("db", OperationState::Running)
    };
    assert_eq!(
        standing(Strategy::Install, &[running.clone(), again], &BTreeMap::new()),
        Standing::Unknown
    );
    let recovered = [running, operation("db", OperationState::Succeeded)];
    assert_eq!(
        standing(Strategy::Install, &recovered, &BTreeMap::new()),
        Standing::Is(ClusterState::Reconciling, None)
    );
}

/// K48: back to reconciling when all that failed have recovered, also what an earlier run had left failing.
#[test]
fn what_failed_before_the_run_fails_until_it_has_recovered() {
    let name = |component: &str| ComponentName::new(component).expect("a name");
    let before = [
        (name("db"), "no connection".to_owned()),
        (name("web"), "no such chart".to_owned()),
    ];
    let before = BTreeMap::from(before);
    let degraded = |reason: &str| Standing::Is(ClusterState::Degraded, Some(reason.to_owned()));
    let stands = |db: OperationState, web: OperationState| {
        let operations = [
            operation("api", OperationState::Succeeded),
            operation("db", db),
            operation("web", web),
        ];
        standing(Strategy::Repair, &operations, &before)
    };
    assert_eq!(
        stands(OperationState::Running, OperationState::Pending),
        degraded("component db: no connection; and 1 more component")
    );
    assert_eq!(
        stands(OperationState::Succeeded, OperationState::Running),
        degraded("component web: no such chart")
    );
    assert_eq!(
        stands(OperationState::Running, failed_with("still no such chart")),
        degraded("component db: no connection; and 1 more component")
    );
    let rest = [
        operation("db", OperationState::Succeeded),
        operation("web", OperationState::Succeeded),
        operation("x", OperationState::Running),
    ];
    assert_eq!(
        standing(Strategy::Repair, &rest, &before),
        Standing::Is(ClusterState::Reconciling, None)
    );
}

#[test]
fn what_was_given_back_after_a_failure_is_not_taken_for_recovered() {
    for state in [OperationState::Running, OperationState::Pending] {
        let again = Operation {
            attempt: 2,
            ..operation("db", state)
        };
        let operations = [operation("api", OperationState::Succeeded), again];
        assert_eq!(
            standing(Strategy::Repair, &operations, &BTreeMap::new()),
            Standing::Unknown
        );
    }
}

#[test]
fn what_waits_for_a_person_is_told_and_hides_no_failure() {
    let waiting = || {
        let state = OperationState::Waiting {
            reason: "consent, for 6 of 8 objects".to_owned(),
            deadline: NOW,
        };
        operation("web", state)
    };
    let done = || operation("api", OperationState::Succeeded);
    assert_eq!(
        standing(Strategy::Upgrade, &[done(), waiting()], &BTreeMap::new()),
        Standing::Is(
            ClusterState::Reconciling,
            Some("component web: waits for consent, for 6 of 8 objects".to_owned())
        )
    );
    let failing = [waiting(), operation("db", retrying("no connection"))];
    assert_eq!(
        standing(Strategy::Upgrade, &failing, &BTreeMap::new()),
        Standing::Is(
            ClusterState::Degraded,
            Some("component db: no connection".to_owned())
        )
    );
}
