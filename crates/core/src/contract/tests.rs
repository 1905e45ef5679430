//! The broker's contract as a table: K33 (one error is an error, all done is ready) and K48 (rules 1 to 4).

use jiff::Timestamp;

use super::*;

fn operation(state: OperationStateKind, attempt: u32) -> OperationFacts {
    OperationFacts {
        state,
        attempt,
        refused: false,
    }
}

fn facts(state: ClusterState, live: Option<Reports>) -> ClusterFacts {
    ClusterFacts {
        state,
        suspended: false,
        failed_before: false,
        live,
    }
}

#[test]
fn the_names_and_numbers_are_the_contracts() {
    let names: Vec<_> = BrokerStatus::ALL
        .iter()
        .map(|status| (status.number(), status.as_str()))
        .collect();
    assert_eq!(
        names,
        [
            (0, "error"),
            (1, "ready"),
            (2, "reconcile_pending"),
            (3, "reconciling"),
            (4, "reconcile_disabled"),
            (5, "delete_pending"),
            (6, "deleting"),
            (7, "delete_error"),
            (8, "deleted"),
            (9, "reconcile_error_retryable"),
            (10, "delete_error_retryable"),
        ]
    );
    let states: Vec<_> = BrokerOperationState::ALL
        .iter()
        .map(|state| state.as_str())
        .collect();
    assert_eq!(
        states,
        [
            "new",
            "in_progress",
            "client_error",
            "failed",
            "orphan",
            "done",
            "error"
        ]
    );
}

#[test]
fn the_broker_is_shown_what_is_tried_again_as_going_on() {
    for status in BrokerStatus::ALL {
        let expected = match status.as_str() {
            "reconcile_error_retryable" => "reconciling",
            "delete_error_retryable" => "deleting",
            same => same,
        };
        assert_eq!(status.shown().as_str(), expected);
    }
}

/// Every native state with everything that operations can say.
#[test]
fn every_state_has_its_name() {
    use Reports::{FailedForGood, FailingAgain, Well};
    let table = [
        // state, without a run, and with one that goes well, fails again, failed for good
        (ClusterState::Pending, ["reconcile_pending"; 4]),
        (
            ClusterState::Reconciling,
            ["reconciling", "reconciling", "reconcile_error_retryable", "error"],
        ),
        (ClusterState::Ready, ["ready"; 4]),
        (
            ClusterState::Degraded,
            [
                "reconcile_error_retryable",
                "reconciling",
                "reconcile_error_retryable",
                "error",
            ],
        ),
        (ClusterState::Failed, ["error"; 4]),
        (
            ClusterState::Deleting,
            [
                "delete_pending",
                "deleting",
                "delete_error_retryable",
                "delete_error",
            ],
        ),
        (ClusterState::DeleteFailed, ["delete_error"; 4]),
        (ClusterState::Deleted, ["deleted"; 4]),
    ];
    assert_eq!(table.len(), ClusterState::ALL.len());
    let lives = [None, Some(Well), Some(FailingAgain), Some(FailedForGood)];
    for (state, names) in table {
        for (live, name) in lives.into_iter().zip(names) {
            let facts = facts(state, live);
            assert_eq!(facts.status().as_str(), name, "{facts:?}");
            let suspended = ClusterFacts {
                suspended: true,
                ..facts
            };
            let expected = match state {
                ClusterState::Deleting | ClusterState::DeleteFailed | ClusterState::Deleted => name,
                _ => "reconcile_disabled",
            };
            assert_eq!(suspended.status().as_str(), expected, "{suspended:?}");
        }
    }
    let again = ClusterFacts {
        failed_before: true,
        ..facts(ClusterState::Deleting, None)
    };
    assert_eq!(again.status().as_str(), "delete_error_retryable");
}

/// K48, rule by rule, as one run goes through them; K33 is the first and the second.
#[test]
fn the_four_rules_of_a_run() {
    use OperationStateKind::{Failed, Pending, Retrying, Running, Succeeded};
    let live = |operations: &[(OperationStateKind, u32)]| {
        let operations = operations
            .iter()
            .map(|(state, attempt)| operation(*state, *attempt));
        facts(ClusterState::Reconciling, Some(Reports::of(operations))).status()
    };
    use BrokerStatus as Name;
    assert_eq!(
        live(&[(Running, 1), (Running, 1), (Pending, 0)]),
        Name::Reconciling,
        "all run"
    );
    assert_eq!(
        live(&[(Running, 1), (Retrying, 1)]),
        Name::Reconciling,
        "one failure is a hiccup"
    );
    assert_eq!(live(&[(Running, 1), (Running, 2)]), Name::Reconciling);
    for failing in [(Retrying, 2), (Running, 3), (Retrying, 3)] {
        let status = live(&[(Running, 1), failing]);
        assert_eq!(status, Name::ReconcileErrorRetryable, "rule 3: {failing:?}");
        assert_eq!(status.shown(), Name::Reconciling);
    }
    assert_eq!(
        live(&[(Running, 1), (Succeeded, 3)]),
        Name::Reconciling,
        "rule 4: it recovered"
    );
    assert_eq!(
        live(&[(Running, 1), (Failed, 1)]),
        Name::Error,
        "rule 1, while others run"
    );
    assert_eq!(
        live(&[(Failed, 1), (Retrying, 4)]),
        Name::Error,
        "the worst counts"
    );
    assert_eq!(
        facts(ClusterState::Ready, None).status(),
        Name::Ready,
        "rule 2: the last success makes the native state ready"
    );
}

#[test]
fn every_operation_has_its_name() {
    let deadline = Timestamp::UNIX_EPOCH;
    let reason = || "r".to_owned();
    for (state, attempt, name) in [
        (OperationState::Pending, 0, "new"),
        (OperationState::Pending, 1, "orphan"),
        (
            OperationState::Waiting {
                reason: reason(),
                deadline,
            },
            0,
            "new",
        ),
        (OperationState::Running, 1, "in_progress"),
        (
            OperationState::Retrying {
                reason: reason(),
                next_at: deadline,
            },
            1,
            "failed",
        ),
        (OperationState::Succeeded, 1, "done"),
        (OperationState::Skipped { reason: reason() }, 0, "error"),
        (OperationState::Superseded, 1, "done"),
        (OperationState::Cancelled, 1, "done"),
        (OperationState::Failed { reason: reason() }, 1, "error"),
    ] {
        assert_eq!(
            OperationFacts::new(&state, attempt).name().as_str(),
            name,
            "{state:?}"
        );
    }
    let refused = OperationFacts {
        refused: true,
        ..operation(OperationStateKind::Retrying, 1)
    };
    assert_eq!(refused.name(), BrokerOperationState::ClientError);
}
