//! What only the inside can see: which indexes the statements use, and that no encrypted column is forgotten.

use std::collections::BTreeSet;
use std::sync::Arc;

use evenkeel_core::{
    ClusterState, ComponentRevision, ConfigurationVersion, DueReason, ManualClock, OperationState, Sensitive,
    Strategy,
};
use jiff::Timestamp;
use sqlx::{AssertSqlSafe, Row as _};

use super::*;
use crate::cipher::Column;
use crate::{
    ClaimRequest, ClusterFilter, Clusters as _, Finish, Level, NewOperation, NewReconciliation, PutCluster,
    Queue as _, Reconciliations as _, Renders as _, Report, StatusChange, Statuses as _, TimelineEntry,
};

async fn store() -> SqlStore {
    let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
    SqlStore::open(OpenOptions::temporary(), clock).await.unwrap()
}

/// The connections of a SQLite store that read.
fn readers(store: &SqlStore) -> &sqlx::SqlitePool {
    match store.read() {
        Pool::Sqlite { readers, .. } => readers,
        Pool::Postgres(_) => unreachable!("these tests look at SQLite"),
    }
}

fn document(name: &str) -> evenkeel_core::ClusterSpec {
    serde_json::from_value(serde_json::json!({
        "name": name, "tenant": "t", "group": "g", "labels": {"env": "prod"},
        "components": [{"name": "web", "source": {"directory": {"path": "x"}}, "namespace": "apps"}],
    }))
    .unwrap()
}

/// Registers a cluster, plans a run over it and leaves one failed and one retrying operation.
async fn fill(store: &SqlStore, name: &str) {
    let put = PutCluster::new(document(name)).with_kubeconfig(Sensitive::new("k".to_owned()));
    let outcome = store.put_cluster(put).await.unwrap();
    let web = "web".parse().unwrap();
    let render = Sensitive::new(b"r".to_vec());
    store
        .put_render(&outcome.id, &web, ComponentRevision(1), render)
        .await
        .unwrap();
    let operation = |component: &str| NewOperation {
        component: component.parse().unwrap(),
        kind: Strategy::Install,
        version: outcome.version,
        cause: "c".to_owned(),
        depends_on: Vec::new(),
        carries: None,
    };
    let new = NewReconciliation {
        cluster: outcome.id.clone(),
        version: outcome.version,
        strategy: Strategy::Install,
        reason: DueReason::Change,
        deadline: Timestamp::MAX,
        stamp: None,
        supersede: false,
        failing: None,
        operations: vec![operation("web"), operation("db")],
    };
    let run = store.begin_reconciliation(new).await.unwrap().id;
    let request = ClaimRequest {
        worker: "w".to_owned(),
        limit: 8,
        lease: std::time::Duration::from_secs(15),
    };
    for claimed in store.claim(&request).await.unwrap().operations {
        let said = TimelineEntry {
            at: Timestamp::UNIX_EPOCH,
            level: Level::Info,
            step: None,
            message: "m".to_owned(),
        };
        let report = Report {
            operation: claimed.id,
            fence: claimed.lease.fence,
            state: OperationState::Failed {
                reason: "r".to_owned(),
            },
            changes: Vec::new(),
            timeline: vec![said],
        };
        store.report(report).await.unwrap();
    }
    let mut status = StatusChange::new(ClusterState::Degraded, ConfigurationVersion(1));
    status.reason = Some("s".to_owned());
    status.not_ready = Some([(web, "n".to_owned())].into());
    let finish = Finish {
        state: evenkeel_core::ReconciliationState::Failed,
        reason: Some("f".to_owned()),
        status,
    };
    store.finish_reconciliation(&run, finish).await.unwrap();
    let change = StatusChange::new(ClusterState::Failed, ConfigurationVersion(1));
    store.record_status(&outcome.id, change).await.unwrap();
    let change = StatusChange {
        reason: Some("t".to_owned()),
        ..StatusChange::new(ClusterState::Degraded, ConfigurationVersion(1))
    };
    store.record_status(&outcome.id, change).await.unwrap();
}

/// CRY-03: whatever looks encrypted is in the list that a rotation visits, and the list names what exists.
#[tokio::test]
async fn the_list_of_encrypted_columns_is_complete() {
    let store = store().await;
    fill(&store, "c1").await;
    let columns = sqlx::query(
        "SELECT t.name AS table_name, c.name AS column_name, c.type FROM sqlite_schema t JOIN pragma_table_info(t.name) c \
         WHERE t.type = 'table'",
    )
    .fetch_all(readers(&store))
    .await
    .unwrap();
    let mut found = BTreeSet::new();
    for column in &columns {
        let (table, name): (String, String) = (column.get(0), column.get(1));
        if column.get::<String, _>(2) != "BLOB" {
            continue;
        }
        let statement = format!("SELECT count(*) FROM {table} WHERE substr({name}, 1, 2) = x'e701'");
        let count: i64 = sqlx::query_scalar(AssertSqlSafe(statement))
            .fetch_one(readers(&store))
            .await
            .unwrap();
        if count > 0 {
            found.insert(format!("{table}.{name}"));
        }
    }
    let listed: BTreeSet<_> = Column::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(found, listed);
}

/// The plan of a statement, one line a step.
async fn plan(store: &SqlStore, statement: &str) -> Vec<String> {
    sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}")))
        .fetch_all(readers(store))
        .await
        .unwrap()
        .iter()
        .map(|row| row.get("detail"))
        .collect()
}

/// Refuses plans that walk a whole table, or sort more than they return.
async fn check(store: &SqlStore, statement: impl Into<Statement>, indexes: &[&str], sorts: bool) {
    let statement = statement.into().sqlite;
    let plan = plan(store, statement).await;
    for index in indexes {
        assert!(
            plan.iter().any(|step| step.contains(index)),
            "{index} is not used: {plan:#?}\n{statement}"
        );
    }
    for step in &plan {
        let walks = step.starts_with("SCAN") && !step.contains("INDEX");
        let harmless = [
            "json_each",
            "SCAN j ",
            "SCAN j",
            "SCAN w",
            "SCAN n",
            "SCAN h",
            "SCAN d",
            "SCAN l",
            "SCAN p",
            "(subquery",
            "SCAN dependent",
            "CONSTANT",
        ];
        assert!(
            !walks || harmless.iter().any(|part| step.contains(part)),
            "a whole table is walked: {step}\n{statement}"
        );
        assert!(
            sorts || !step.contains("TEMP B-TREE"),
            "it sorts: {step}\n{statement}"
        );
    }
}

#[tokio::test]
async fn hot_statements_use_their_indexes() {
    let store = store().await;
    let fresh = [false, true];
    for filled in fresh {
        if filled {
            // With statistics the planner may think otherwise.
            for number in 0..300 {
                store
                    .put_cluster(PutCluster::new(document(&format!("n{number}"))))
                    .await
                    .unwrap();
            }
            for number in 0..60 {
                fill(&store, &format!("f{number}")).await;
            }
            let mut transaction = store.write("analysing").await.unwrap();
            transaction.script("ANALYZE").await.unwrap();
            transaction.commit("analysing").await.unwrap();
        }
        // Sorts at most the few rows that each lane gave.
        check(&store, due::DUE, &["cluster_status_due"], true).await;
        check(&store, due::NEXT_DUE, &["cluster_status_next"], false).await;
        check(&store, due::NOTE_CHECKS, &["cluster_id=?"], true).await;
        check(
            &store,
            queue::claim::READY,
            &["operations_ready", "operations_running"],
            false,
        )
        .await;
        check(&store, queue::claim::FIRST_WAKE, &["operations_wake"], false).await;
        check(&store, queue::claim::WOKEN, &["operations_wake"], false).await;
        check(&store, queue::claim::RAISE_FENCES, &["PRIMARY KEY", "id=?"], true).await;
        check(&store, queue::claim::TAKE, &["id=?"], true).await;
        // By id, or along the few that run.
        check(&store, queue::RENEW, &[], true).await;
        check(
            &store,
            queue::DEPENDENTS,
            &["operation_dependencies_reverse", "id=?"],
            true,
        )
        .await;
        check(&store, queue::END, &["id=?"], true).await;
        check(&store, queue::SHOW, &["cluster_id=? AND component=?"], true).await;
        check(&store, queue::fair::LAST_PLACE, &["operations_tenant"], false).await;
        check(&store, queue::carry::FORMER, &["operations_running"], true).await;
        check(&store, queue::MISSING, &["operations_previous"], true).await;
        check(&store, queue::carry::FOLLOW, &["operations_previous"], true).await;
        check(&store, reconciliations::CARRIED_FROM_RUN, &["id=?"], true).await;
        check(&store, reconciliations::SETTLED, &["operations_open"], true).await;
        check(&store, reconciliations::WORKED_ON, &["operations_running"], true).await;
        check(
            &store,
            reconciliations::OVERDUE,
            &["reconciliations_deadline"],
            false,
        )
        .await;
        check(&store, consents::OF_CLUSTER, &["cluster_id=?"], false).await;
        check(&store, consents::USE, &["cluster_id=?"], false).await;
        check(&store, consents::CONSENTED, &["consents_given"], true).await;
        check(
            &store,
            reconciliations::OF_CLUSTER,
            &["reconciliations_cluster"],
            false,
        )
        .await;
        check(
            &store,
            reconciliations::OPERATIONS_OF_RUN,
            &["operations_reconciliation"],
            false,
        )
        .await;
        check(&store, retention::OLD_RUNS, &["reconciliations_cluster"], true).await;
        check(&store, retention::OLD_STATES, &["cluster_id=?"], true).await;
        check(&store, retention::OLD_VERSIONS, &["cluster_id=?"], true).await;
        check(&store, retention::OLD_KUBECONFIGS, &["cluster_id=?"], true).await;
        check(&store, audit::ENTRIES, &["rowid<?"], false).await;
        check(&store, audit::ENTRIES_OF_TARGET, &["audit_target"], false).await;
        check(&store, audit::WALK, &["rowid>?"], false).await;
        check(&store, settings::AFTER, &["(scope,key)>(?,?)"], false).await;
        check(&store, change_log::RUNS, &["reconciliations_cluster"], false).await;
        check(
            &store,
            change_log::REPORTS,
            &["operations_reconciliation", "operation_id=?"],
            true,
        )
        .await;
        for (_, statement) in rotation::tests::statements() {
            check(&store, statement, &["SEARCH"], false).await;
        }
        let filter = ClusterFilter::default;
        let named = |text: &str| Some(text.to_owned());
        for (filter, index) in [
            (filter(), "clusters_live_name"),
            (
                ClusterFilter {
                    tenant: named("t"),
                    ..filter()
                },
                "clusters_live_tenant",
            ),
            (
                ClusterFilter {
                    group: named("g"),
                    ..filter()
                },
                "clusters_live_group",
            ),
            (
                ClusterFilter {
                    state: Some(ClusterState::Failed),
                    ..filter()
                },
                "cluster_status_state",
            ),
            (
                ClusterFilter {
                    state: Some(ClusterState::Ready),
                    ..filter()
                },
                "cluster_status_state",
            ),
            (
                ClusterFilter {
                    component: Some("web".parse().unwrap()),
                    ..filter()
                },
                "components_listed",
            ),
            (
                ClusterFilter {
                    labels: [("env".to_owned(), "prod".to_owned())].into(),
                    ..filter()
                },
                "SEARCH d USING PRIMARY KEY (key=? AND value=? AND name>?)",
            ),
        ] {
            check(&store, list::statement(&filter), &[index], false).await;
        }
    }
}

/// Final deletion knows every table that belongs to a cluster.
#[tokio::test]
async fn nothing_of_a_deleted_cluster_is_forgotten() {
    let store = store().await;
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT DISTINCT t.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c \
         WHERE t.type = 'table' AND c.name = 'cluster_id'",
    )
    .fetch_all(readers(&store))
    .await
    .unwrap();
    assert!(tables.len() > 8);
    // These go before the rest: with the runs, and as past states.
    let earlier = ["reconciliations", "operations", "status_history"];
    for table in tables {
        let removes = format!("DELETE FROM {table} WHERE cluster_id = $1");
        assert!(
            earlier.contains(&&*table) || retention::REST_OF_CLUSTER.contains(&&*removes),
            "{table} is not in retention::REST_OF_CLUSTER"
        );
    }
}
