//! A process that is killed, for real, in the middle of its work.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;

use evenkeel_core::{Clock, DueReason, OperationState, Strategy};
use evenkeel_inventory::{
    Clusters as _, NewReconciliation, Queue as _, Reconciliations as _, SqlStore, Statuses as _,
};
use jiff::Timestamp;

use crate::fixture::*;

/// Where the child finds its database; unset in the parent.
const DATABASE: &str = "EVENKEEL_TEST_KILL_DATABASE";
/// Clusters that the child works through.
const CLUSTERS: usize = 200;

/// The child has no shared clock with its parent but the real one.
#[derive(Debug)]
struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "two processes agree on no other time")]
        Timestamp::now()
    }
}

/// Not a test by itself: what the child runs. It registers, plans, claims and reports, and says each commit aloud.
#[tokio::test]
async fn child() {
    let Some(directory) = std::env::var_os(DATABASE) else {
        return;
    };
    let directory = std::path::PathBuf::from(directory);
    let options = evenkeel_inventory::OpenOptions::file(directory.join("db"), directory.join("keys"));
    let store = SqlStore::open(options, Arc::new(RealClock)).await.unwrap();
    for number in 0..CLUSTERS {
        let put = evenkeel_inventory::PutCluster::new(spec(&format!("c{number}"), &["a", "b"]));
        let outcome = store.put_cluster(put).await.unwrap();
        let operation = |component: &str, depends_on: &[usize]| evenkeel_inventory::NewOperation {
            component: component.parse().unwrap(),
            kind: Strategy::Install,
            version: outcome.version,
            cause: "new".to_owned(),
            depends_on: depends_on.to_vec(),
            carries: None,
        };
        let new = NewReconciliation {
            cluster: outcome.id.clone(),
            version: outcome.version,
            strategy: Strategy::Install,
            reason: DueReason::Change,
            deadline: RealClock.now() + jiff::SignedDuration::from_secs(3_600),
            stamp: None,
            supersede: false,
            failing: None,
            operations: vec![operation("a", &[]), operation("b", &[0])],
        };
        store.begin_reconciliation(new).await.unwrap();
        eprintln!("begun {}", outcome.id);
        for claimed in store.claim(&claim(1)).await.unwrap().operations {
            eprintln!("claimed {}", claimed.id);
            store
                .report(report(&claimed, OperationState::Succeeded))
                .await
                .unwrap();
            eprintln!("succeeded {}", claimed.id);
        }
    }
}

#[tokio::test]
async fn whatever_was_said_aloud_survives_a_kill() {
    for lines in [1, 7, 50, 151] {
        let directory = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sqlite::kill::child", "--nocapture"])
            .env(DATABASE, directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said: Vec<String> = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map(Result::unwrap)
            .take(lines)
            .collect();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(said.len(), lines, "{said:?}");

        let options =
            evenkeel_inventory::OpenOptions::file(directory.path().join("db"), directory.path().join("keys"));
        let late = jiff::SignedDuration::from_secs(60);
        let clock = evenkeel_core::ManualClock::new(RealClock.now() + late);
        let store = SqlStore::open(options, Arc::new(clock)).await.unwrap();
        for line in &said {
            let (verb, id) = line.split_once(' ').unwrap();
            match verb {
                "begun" => {
                    let run = store
                        .running_reconciliation(&id.parse().unwrap())
                        .await
                        .unwrap()
                        .unwrap();
                    assert_eq!(store.operations(&run.id).await.unwrap().items.len(), 2);
                }
                "claimed" => assert!(store.operation(&id.parse().unwrap()).await.unwrap().attempt >= 1),
                "succeeded" => {
                    let operation = store.operation(&id.parse().unwrap()).await.unwrap();
                    assert_eq!(operation.state, OperationState::Succeeded);
                }
                other => panic!("{other}"),
            }
        }
        // Another process goes on where it ended, without help, and finishes everything once.
        loop {
            let claims = store.claim(&claim(64)).await.unwrap().operations;
            if claims.is_empty() {
                break;
            }
            let reports = claims
                .iter()
                .map(|claim| report(claim, OperationState::Succeeded))
                .collect();
            for answer in store.report_all(reports).await.unwrap() {
                answer.unwrap();
            }
        }
        let runs = store.settled_reconciliations(1_000).await.unwrap();
        let due = store.due_clusters(500).await.unwrap().due;
        let begun = said.iter().filter(|line| line.starts_with("begun")).count();
        assert!(runs.len() >= begun);
        // A cluster registered but not begun is due; nothing else is.
        assert!(due.len() <= 1, "{due:?}");
        for run in runs {
            for operation in store.operations(&run).await.unwrap().items {
                assert_eq!(operation.state, OperationState::Succeeded);
            }
        }
    }
}
