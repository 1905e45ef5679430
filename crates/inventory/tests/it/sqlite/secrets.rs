//! What the file holds (K17, K47): sensitive values stand in it encrypted only, and open at their own place only. That every
//! statement is static text with bound parameters is held by `cargo xtask lint sql` and, with hostile filters, by
//! `contract::lists`.

use std::collections::BTreeMap;

use evenkeel_core::{
    ClusterState, ComponentRevision, ConfigurationVersion, Digest, OperationState, ReconciliationState,
    Sensitive,
};
use evenkeel_inventory::{
    Clusters as _, Configurations as _, Error, Level, PutCluster, StatusChange, Store, TimelineEntry,
};
use serde_json::json;

use super::{meddle, raw};
use crate::fixture::*;

/// Stands in every text that must not be found in the file. Long and unlike anything, so that it cannot be there by
/// chance.
pub(crate) const MARK: &str = "xYzZy-SeCrEt-plugh";

fn marked(what: &str) -> String {
    format!("{MARK} {what}")
}

/// A fleet with something in every encrypted column.
pub(crate) async fn filled<B: Backend>() -> Fleet<B> {
    let fleet = Fleet::<B>::new().await;
    let document = json!({
        "name": "c1",
        "components": [{"name": "web", "source": {"directory": {"path": "x"}}, "namespace": "apps",
                        "values": [{"secret": {"password": marked("value")}}, {"inline": {"also": marked("inline")}}]},
                       {"name": "db", "source": {"directory": {"path": "y"}}, "namespace": "apps"}],
    });
    let put = PutCluster::new(serde_json::from_value(document).unwrap())
        .with_kubeconfig(Sensitive::new(marked("kubeconfig")));
    let id = fleet.store.put_cluster(put).await.unwrap().id;
    let web = "web".parse().unwrap();
    fleet
        .store
        .resolve_revision(&id, &web, &Digest::of("inputs"))
        .await
        .unwrap();
    let render = Sensitive::new(marked("render").into_bytes());
    fleet
        .store
        .put_render(&id, &web, ComponentRevision(1), render)
        .await
        .unwrap();
    let mut plan = fleet.plan(&id, &[("web", &[]), ("db", &[])]).await;
    plan.operations[0].cause = marked("cause");
    let run = fleet.store.begin_reconciliation(plan).await.unwrap().id;
    for claim in fleet.claims(8).await.operations {
        let mut last = report(&claim, failed(&marked("reason")));
        last.timeline.push(TimelineEntry {
            at: fleet.now(),
            level: Level::Error,
            step: None,
            message: marked("timeline"),
        });
        fleet.store.report(last).await.unwrap();
    }
    let status = |reason: &str| StatusChange {
        reason: Some(marked(reason)),
        not_ready: Some(BTreeMap::from([("db".parse().unwrap(), marked("not ready"))])),
        ..StatusChange::new(ClusterState::Degraded, ConfigurationVersion(1))
    };
    let mut end = finish(ReconciliationState::Failed, ClusterState::Degraded, 1);
    end.reason = Some(marked("run"));
    end.status = status("status");
    fleet.store.finish_reconciliation(&run, end).await.unwrap();
    // And once more, so that the history holds a reason too.
    let change = StatusChange {
        state: ClusterState::Failed,
        ..status("second status")
    };
    fleet.store.record_status(&id, change).await.unwrap();
    fleet
}

pub(crate) fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

#[tokio::test]
async fn no_secret_stands_in_the_files() {
    let fleet = filled::<Sqlite>().await;
    let keys = std::fs::read_to_string(fleet.backend.directory.path().join("keys")).unwrap();
    let ring: serde_json::Value = serde_json::from_str(&keys).unwrap();
    let key = ring["keys"][0]["key"].as_str().unwrap().to_owned();
    let scan = |directory: &std::path::Path| {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if name != "keys" {
                let bytes = std::fs::read(&path).unwrap();
                assert!(!contains(&bytes, MARK.as_bytes()), "{name} holds a secret");
                assert!(!contains(&bytes, key.as_bytes()), "{name} holds the key");
            }
            names.push(name);
        }
        names.sort();
        names
    };
    let names = scan(fleet.backend.directory.path());
    assert_eq!(names, ["db", "db-shm", "db-wal", "db.lock", "keys"]);
    // What is not secret is found, so the scan can see.
    let wal = std::fs::read(fleet.backend.directory.path().join("db-wal")).unwrap();
    assert!(contains(&wal, b"cluster_configurations"));
    let Fleet { backend, store, .. } = fleet;
    drop(store);
    let (directory, _) = backend.close().await;
    scan(directory.path());
}

#[tokio::test]
async fn every_secret_can_be_read_again() {
    let fleet = filled::<Sqlite>().await;
    read_all(&*fleet.store).await;
    let store = &fleet.backend.store;
    let cluster = store.cluster_by_name(&"c1".parse().unwrap()).await.unwrap();
    // Nothing of it shows when printed.
    for shown in [
        format!("{:?}", store.newest_configuration(&cluster.id).await),
        format!("{store:?}"),
        format!("{:?}", store.kubeconfig(&cluster.id).await),
    ] {
        assert!(!shown.contains(MARK), "{shown}");
    }
}

/// Reads everything that [`filled`] has put into encrypted columns.
pub(crate) async fn read_all(store: &dyn Store) {
    let cluster = store.cluster_by_name(&"c1".parse().unwrap()).await.unwrap();
    assert_eq!(cluster.status.reason, Some(marked("second status")));
    assert_eq!(
        content(&store.kubeconfig(&cluster.id).await.unwrap()),
        &marked("kubeconfig")
    );
    let configuration = store.newest_configuration(&cluster.id).await.unwrap();
    assert!(
        serde_json::to_string(&configuration.spec)
            .unwrap()
            .contains(&marked("inline"))
    );
    let components = store.components(&cluster.id).await.unwrap().items;
    assert_eq!(components[0].not_ready, Some(marked("not ready")));
    let runs = store
        .reconciliations(&cluster.id, &Default::default())
        .await
        .unwrap()
        .items;
    assert_eq!(runs[0].reason, Some(marked("run")));
    let operations = store.operations(&runs[0].id).await.unwrap().items;
    assert_eq!(operations[0].cause, marked("cause"));
    assert_eq!(
        operations[0].state,
        OperationState::Failed {
            reason: marked("reason")
        }
    );
    assert_eq!(
        store.operation_timeline(&operations[0].id).await.unwrap()[0].message,
        marked("timeline")
    );
    let render = store
        .render(&cluster.id, &"web".parse().unwrap(), ComponentRevision(1))
        .await
        .unwrap();
    assert_eq!(render.unwrap().expose(), marked("render").as_bytes());
    let history = store
        .status_history(&cluster.id, &Default::default())
        .await
        .unwrap()
        .items;
    assert_eq!(history[0].reason, Some(marked("status")));
}

/// CRY-05.
#[tokio::test]
async fn values_moved_or_changed_do_not_open() {
    let fleet = Fleet::<Sqlite>::new().await;
    let mut ids = Vec::new();
    for name in ["a", "b"] {
        let put = PutCluster::new(spec(name, &[])).with_kubeconfig(secret(name));
        ids.push(fleet.store.put_cluster(put).await.unwrap().id);
    }
    let path = fleet.backend.directory.path().join("db");
    let put_back = "UPDATE kubeconfigs SET content = (SELECT content FROM saved WHERE saved.cluster_id = kubeconfigs.cluster_id)";
    meddle(
        &path,
        "CREATE TABLE saved AS SELECT cluster_id, content FROM kubeconfigs",
    )
    .await;
    for damage in [
        "UPDATE kubeconfigs SET content = (SELECT content FROM saved WHERE saved.cluster_id <> kubeconfigs.cluster_id)",
        "UPDATE kubeconfigs SET content = (SELECT spec FROM cluster_configurations v WHERE v.cluster_id = kubeconfigs.cluster_id)",
        "UPDATE kubeconfigs SET content = substr(content, 1, length(content) - 1)",
        "UPDATE kubeconfigs SET content = x''",
        "UPDATE kubeconfigs SET content = CAST('apiVersion: v1' AS BLOB)",
        "UPDATE kubeconfigs SET content = unhex(substr(hex(content), 1, length(hex(content)) - 1) \
         || CASE substr(hex(content), -1) WHEN '0' THEN '1' ELSE '0' END)",
    ] {
        meddle(&path, damage).await;
        for id in &ids {
            let error = fleet.store.kubeconfig(id).await.unwrap_err();
            assert!(
                matches!(
                    &error,
                    Error::Unreadable {
                        table: "kubeconfigs",
                        ..
                    }
                ),
                "{damage}: {error}"
            );
            assert!(error.to_string().contains(&format!("{id}/1")), "{error}");
        }
        meddle(&path, put_back).await;
        for id in &ids {
            assert!(fleet.store.kubeconfig(id).await.is_ok());
        }
    }
    // The same text twice does not look the same.
    let put = PutCluster::new(spec("c", &[])).with_kubeconfig(secret("a"));
    fleet.store.put_cluster(put).await.unwrap();
    let mut connection = raw(&path).await;
    let contents: Vec<Vec<u8>> = sqlx::query_scalar("SELECT content FROM kubeconfigs")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert_eq!(contents.len(), 3);
    assert_ne!(contents[0], contents[2]);
    let hashes: Vec<Vec<u8>> = sqlx::query_scalar("SELECT content_hash FROM kubeconfigs")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    let plain = Digest::of("a");
    assert!(
        hashes.iter().all(|hash| hash.as_slice() != plain.as_bytes()),
        "hashes are keyed"
    );
}
