//! Clusters, their numbered configurations and kubeconfigs. K20: a kubeconfig comes with the contract, and another one alone
//! is a change.

use std::collections::BTreeMap;

use evenkeel_core::{
    ClusterId, ClusterState, ConfigurationVersion, DeleteMode, Digest, DueReason, Kubeconfig, KubeconfigFrom,
    KubeconfigSecret, ReconciliationState, Strategy,
};
use evenkeel_inventory::{
    ARCHIVE_BYTES_MAX, Change, DeletionOutcome, Error, Identity, PageRequest, PutCluster, StatusChange,
};
use jiff::SignedDuration;
use serde_json::json;

use crate::fixture::*;

pub(crate) async fn an_equal_configuration_makes_no_version<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let document = |values: serde_json::Value, labels: serde_json::Value| {
        serde_json::from_value(json!({
            "name": "c1", "labels": labels,
            "components": [{"name": "web", "source": {"directory": {"path": "x"}}, "namespace": "apps",
                            "values": [{"secret": values}]}],
        }))
        .unwrap()
    };
    let first = fleet
        .put(document(json!({"a": 1, "b": {"c": 2, "d": 3}}), json!({})))
        .await;
    assert_eq!(
        (first.version, first.change),
        (ConfigurationVersion(1), Change::Created)
    );
    let again = fleet
        .put(document(json!({"b": {"d": 3, "c": 2}, "a": 1}), json!({})))
        .await;
    assert_eq!(
        (again.version, again.change),
        (ConfigurationVersion(1), Change::Unchanged)
    );
    for (values, labels) in [
        (json!({"a": 2, "b": {"c": 2, "d": 3}}), json!({})),
        (json!({"a": "2", "b": {"c": 2, "d": 3}}), json!({})),
        (json!({"a": "2", "b": {"c": 2, "d": 3}}), json!({"env": "prod"})),
    ] {
        let changed = fleet.put(document(values, labels)).await;
        assert_eq!(changed.change, Change::Changed);
    }
    let cluster = fleet.store.cluster(&first.id).await.unwrap();
    assert_eq!(cluster.version, ConfigurationVersion(4));
    assert_eq!(cluster.status.observed_version, ConfigurationVersion(4));
    assert_eq!(
        cluster.labels,
        BTreeMap::from([("env".to_owned(), "prod".to_owned())])
    );
}

/// K3: the record holds where the kubeconfig is read, and tells one place from another.
pub(crate) async fn a_kubeconfig_may_be_kept_elsewhere<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let from = |name: &str| -> Kubeconfig {
        KubeconfigFrom::Secret(KubeconfigSecret {
            name: Some(name.to_owned()),
            ..KubeconfigSecret::default()
        })
        .into()
    };
    let put = PutCluster::new(spec("c1", &["web"])).with_kubeconfig(from("a"));
    let id = fleet.store.put_cluster(put.clone()).await.unwrap().id;
    assert!(fleet.store.cluster(&id).await.unwrap().has_kubeconfig);
    assert_eq!(fleet.store.kubeconfig(&id).await.unwrap(), from("a"));
    assert_eq!(
        fleet.store.put_cluster(put).await.unwrap().change,
        Change::Unchanged
    );
    let mut version = 1;
    // The text of a source, sent as a kubeconfig, is another thing.
    let text = serde_json::json!({"secret": {"name": "b", "key": "config"}}).to_string();
    for next in [from("b"), secret(&text).into(), from("b"), from("a")] {
        let changed = fleet.store.put_kubeconfig(&id, next.clone()).await.unwrap();
        version += 1;
        assert_eq!(changed.change, Change::Changed);
        assert_eq!(changed.version, ConfigurationVersion(version));
        assert_eq!(fleet.store.kubeconfig(&id).await.unwrap(), next);
    }
}

pub(crate) async fn a_put_without_kubeconfig_keeps_it<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let put = PutCluster::new(spec("c1", &["web"])).with_kubeconfig(secret("first"));
    let id = fleet.store.put_cluster(put.clone()).await.unwrap().id;
    assert!(fleet.store.cluster(&id).await.unwrap().has_kubeconfig);
    assert_eq!(fleet.put(spec("c1", &["web"])).await.change, Change::Unchanged);
    assert_eq!(
        fleet.store.put_cluster(put).await.unwrap().change,
        Change::Unchanged
    );
    assert_eq!(
        fleet.put(spec("c1", &["web", "db"])).await.version,
        ConfigurationVersion(2)
    );
    assert_eq!(content(&fleet.store.kubeconfig(&id).await.unwrap()), "first");

    let changed = fleet
        .store
        .put_kubeconfig(&id, secret("second").into())
        .await
        .unwrap();
    assert_eq!(
        (changed.version, changed.change),
        (ConfigurationVersion(3), Change::Changed)
    );
    assert_eq!(content(&fleet.store.kubeconfig(&id).await.unwrap()), "second");
    let (old, new) = (
        fleet
            .store
            .configuration(&id, ConfigurationVersion(2))
            .await
            .unwrap(),
        fleet.store.newest_configuration(&id).await.unwrap(),
    );
    assert_eq!(old.spec, new.spec);
    assert_eq!((old.kubeconfig, new.kubeconfig), (Some(1), Some(2)));
    let same = fleet
        .store
        .put_kubeconfig(&id, secret("second").into())
        .await
        .unwrap();
    assert_eq!(
        (same.version, same.change),
        (ConfigurationVersion(3), Change::Unchanged)
    );

    let bare = fleet.cluster("c2", &[]).await;
    assert!(matches!(
        fleet.store.kubeconfig(&bare).await,
        Err(Error::NotFound { .. })
    ));
    let gone: ClusterId = "nobody".parse().unwrap();
    assert!(matches!(
        fleet.store.put_kubeconfig(&gone, secret("x").into()).await,
        Err(Error::NotFound { .. })
    ));
}

pub(crate) async fn a_name_is_free_again_after_deletion<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let first = fleet.cluster("c1", &["web"]).await;
    fleet
        .store
        .request_deletion(&first, DeleteMode::Uninstall)
        .await
        .unwrap();
    let mut plan = fleet.plan(&first, &[]).await;
    plan.strategy = Strategy::Delete;
    plan.reason = DueReason::Deletion;
    let run = fleet.store.begin_reconciliation(plan).await.unwrap();
    let end = finish(ReconciliationState::Succeeded, ClusterState::Deleted, 1);
    fleet.store.finish_reconciliation(&run.id, end).await.unwrap();

    let second = fleet.cluster("c1", &["web"]).await;
    assert_ne!(first, second);
    assert_eq!(
        fleet
            .store
            .cluster_by_name(&"c1".parse().unwrap())
            .await
            .unwrap()
            .id,
        second
    );
    let old = fleet.store.cluster(&first).await.unwrap();
    assert_eq!(old.status.state, ClusterState::Deleted);
    assert_eq!(old.deleted_at, Some(fleet.now()));
    // History stays.
    assert!(fleet.store.newest_configuration(&first).await.is_ok());
    assert_eq!(
        fleet.store.reconciliation(&run.id).await.unwrap().state,
        ReconciliationState::Succeeded
    );
}

pub(crate) async fn ids_of_brokers_are_checked<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let put = |id: &str, name: &str| PutCluster {
        id: Some(id.parse().unwrap()),
        ..PutCluster::new(spec(name, &[]))
    };
    let outcome = fleet.store.put_cluster(put("rt-1", "c1")).await.unwrap();
    assert_eq!(outcome.id.as_str(), "rt-1");
    assert_eq!(
        fleet.put(spec("c1", &[])).await.id,
        outcome.id,
        "the name finds it too"
    );
    let error = fleet.store.put_cluster(put("rt-2", "c1")).await.unwrap_err();
    assert!(
        matches!(&error, Error::NameTaken { owner, .. } if *owner == outcome.id),
        "{error}"
    );
    let error = fleet.store.put_cluster(put("rt-1", "c2")).await.unwrap_err();
    assert!(
        matches!(&error, Error::NameImmutable { name, .. } if name.as_str() == "c1"),
        "{error}"
    );
    fleet
        .store
        .request_deletion(&outcome.id, DeleteMode::Forget)
        .await
        .unwrap();
    let error = fleet.store.put_cluster(put("rt-1", "c1")).await.unwrap_err();
    assert!(matches!(error, Error::IdUsed(_)), "{error}");
    // The refusals left nothing behind.
    assert!(fleet.store.put_cluster(put("rt-2", "c1")).await.is_ok());
}

pub(crate) async fn a_precondition_is_compared_with_the_newest_version<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let put = |version, components| {
        fleet.store.put_cluster(PutCluster {
            if_version: Some(ConfigurationVersion(version)),
            ..PutCluster::new(spec("c1", components))
        })
    };
    assert!(matches!(put(1, &[]).await, Err(Error::VersionMismatch { .. })));
    put(0, &[]).await.unwrap();
    let error = put(0, &["web"]).await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::VersionMismatch {
                found: ConfigurationVersion(1),
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(put(1, &["web"]).await.unwrap().version, ConfigurationVersion(2));
}

pub(crate) async fn what_cannot_be_run_is_refused<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let mut cyclic = spec("c1", &["a", "b"]);
    cyclic.components[0].depends_on.push("b".parse().unwrap());
    cyclic.components[1].depends_on.push("a".parse().unwrap());
    let error = fleet
        .store
        .put_cluster(PutCluster::new(cyclic))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("cycle a → b → a"), "{error}");

    let digest = Digest::of("never uploaded");
    let mut unknown = spec("c1", &["a"]);
    unknown.components[0].source = evenkeel_core::SourceRef::Archive { digest };
    let error = fleet
        .store
        .put_cluster(PutCluster::new(unknown))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::ArchiveUnknown { digest: other, .. } if *other == digest),
        "{error}"
    );
    let name = "c1".parse().unwrap();
    assert!(matches!(
        fleet.store.cluster_by_name(&name).await,
        Err(Error::NotFound { .. })
    ));
}

pub(crate) async fn archives_are_kept_while_named<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let named = fleet.store.put_archive(b"chart one".to_vec()).await.unwrap();
    let unused = fleet.store.put_archive(b"chart two".to_vec()).await.unwrap();
    assert_eq!(
        fleet.store.put_archive(b"chart one".to_vec()).await.unwrap(),
        named
    );
    assert_eq!(named, Digest::of("chart one"));
    let mut document = spec("c1", &["a", "b"]);
    for component in &mut document.components {
        component.source = evenkeel_core::SourceRef::Archive { digest: named };
    }
    fleet.put(document).await;
    // Only an older version names it now.
    fleet.put(spec("c1", &["a"])).await;
    let before = fleet.after(1);
    assert_eq!(
        fleet.store.remove_unused_archives(fleet.now(), 10).await.unwrap(),
        0,
        "too fresh"
    );
    assert_eq!(fleet.store.remove_unused_archives(before, 10).await.unwrap(), 1);
    assert_eq!(fleet.store.archive(&named).await.unwrap(), b"chart one");
    assert!(matches!(
        fleet.store.archive(&unused).await,
        Err(Error::NotFound { .. })
    ));
    let error = fleet
        .store
        .put_archive(vec![0; ARCHIVE_BYTES_MAX + 1])
        .await
        .unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    fleet.store.put_archive(vec![0; ARCHIVE_BYTES_MAX]).await.unwrap();
}

pub(crate) async fn identities_are_compared<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let (a, b) = (fleet.cluster("a", &[]).await, fleet.cluster("b", &[]).await);
    let store = &fleet.store;
    assert_eq!(store.record_identity(&a, "uid-1").await.unwrap(), Identity::New);
    assert_eq!(store.record_identity(&a, "uid-1").await.unwrap(), Identity::Same);
    let changed = Identity::Changed {
        recorded: "uid-1".to_owned(),
    };
    assert_eq!(store.record_identity(&a, "uid-2").await.unwrap(), changed);
    assert_eq!(
        store.record_identity(&b, "uid-1").await.unwrap(),
        Identity::Taken { by: a.clone() }
    );
    assert_eq!(store.cluster(&b).await.unwrap().kube_system_uid, None);
    store.confirm_identity(&a, "uid-2").await.unwrap();
    assert_eq!(store.record_identity(&a, "uid-2").await.unwrap(), Identity::Same);
    assert_eq!(store.record_identity(&b, "uid-1").await.unwrap(), Identity::New);
    // The uid of one that is gone may come again.
    store.request_deletion(&a, DeleteMode::Forget).await.unwrap();
    let c = fleet.cluster("c", &[]).await;
    assert_eq!(store.record_identity(&c, "uid-2").await.unwrap(), Identity::New);
    assert!(matches!(
        store.record_identity(&a, "uid-2").await,
        Err(Error::NotFound { .. })
    ));
    assert!(matches!(
        store.confirm_identity(&a, "uid-2").await,
        Err(Error::NotFound { .. })
    ));
}

pub(crate) async fn a_deletion_takes_no_changes<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["web"]).await;
    let store = &fleet.store;
    let outcome = store.request_deletion(&id, DeleteMode::Uninstall).await.unwrap();
    assert_eq!(outcome, DeletionOutcome::Requested);
    let cluster = store.cluster(&id).await.unwrap();
    assert_eq!(cluster.status.state, ClusterState::Deleting);
    assert_eq!(cluster.status.due, Some((fleet.now(), DueReason::Deletion)));
    let requested_at = cluster.deletion.unwrap().requested_at;
    let error = store
        .put_cluster(PutCluster::new(spec("c1", &[])))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::BeingDeleted(_)), "{error}");
    assert!(matches!(
        store.put_kubeconfig(&id, secret("x").into()).await,
        Err(Error::BeingDeleted(_))
    ));
    let plan = fleet.plan(&id, &[("web", &[])]).await;
    assert!(matches!(
        store.begin_reconciliation(plan).await,
        Err(Error::BeingDeleted(_))
    ));
    // Another try, in another mode.
    let failed = StatusChange::new(ClusterState::DeleteFailed, ConfigurationVersion(1));
    store.record_status(&id, failed).await.unwrap();
    fleet.advance(5);
    store.request_deletion(&id, DeleteMode::Orphan).await.unwrap();
    let cluster = store.cluster(&id).await.unwrap();
    assert_eq!(cluster.status.state, ClusterState::Deleting);
    let deletion = cluster.deletion.unwrap();
    assert_eq!(
        (deletion.mode, deletion.requested_at),
        (DeleteMode::Orphan, requested_at)
    );
}

pub(crate) async fn forgetting_ends_a_life_at_once<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let put = PutCluster::new(spec("c1", &["web", "db"])).with_kubeconfig(secret("x"));
    let id = fleet.store.put_cluster(put).await.unwrap().id;
    let run = fleet.plan(&id, &[("web", &[]), ("db", &[])]).await;
    let run = fleet.store.begin_reconciliation(run).await.unwrap();
    let running = fleet.claims(1).await.operations.remove(0);
    let outcome = fleet
        .store
        .request_deletion(&id, DeleteMode::Forget)
        .await
        .unwrap();
    assert_eq!(outcome, DeletionOutcome::Deleted);
    assert_eq!(
        fleet.store.cluster(&id).await.unwrap().status.state,
        ClusterState::Deleted
    );
    assert!(matches!(
        fleet.store.kubeconfig(&id).await,
        Err(Error::NotFound { .. })
    ));
    assert_eq!(
        fleet.store.reconciliation(&run.id).await.unwrap().state,
        ReconciliationState::Cancelled
    );
    assert!(fleet.claims(8).await.operations.is_empty());
    // The one that runs learns of it and its last word is still taken.
    let beats = fleet
        .store
        .heartbeat(&[(running.id.clone(), running.lease.fence)], LEASE)
        .await
        .unwrap();
    assert!(matches!(
        beats[0].outcome,
        evenkeel_inventory::HeartbeatOutcome::Stop(_, evenkeel_inventory::StopReason::Cancelled)
    ));
    let settled = fleet
        .report(&running, evenkeel_core::OperationState::Cancelled)
        .await;
    assert_eq!(settled.open, 0);
    assert!(fleet.store.due_clusters(8).await.unwrap().due.is_empty());
    let error = fleet
        .store
        .request_deletion(&id, DeleteMode::Forget)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
}

pub(crate) async fn versions_are_listed_and_immutable<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("c1", &["a"]).await;
    for components in [&["b"][..], &["c"], &["a"]] {
        fleet.clock.advance(SignedDuration::from_secs(1));
        fleet.put(spec("c1", components)).await;
    }
    let page = fleet
        .store
        .configurations(&id, &PageRequest::first(3))
        .await
        .unwrap();
    let versions: Vec<_> = page.items.iter().map(|item| item.version.0).collect();
    assert_eq!(versions, [4, 3, 2]);
    let rest = PageRequest::after(page.next.unwrap(), 3);
    let page = fleet.store.configurations(&id, &rest).await.unwrap();
    assert_eq!(page.items.len(), 1);
    assert!(page.next.is_none());
    // A rollback is a new version; the old ones say what they said.
    for (version, component) in [(1, "a"), (2, "b"), (3, "c"), (4, "a")] {
        let configuration = fleet
            .store
            .configuration(&id, ConfigurationVersion(version))
            .await
            .unwrap();
        assert_eq!(configuration.spec.components[0].name.as_str(), component);
    }
    assert!(matches!(
        fleet.store.configuration(&id, ConfigurationVersion(5)).await,
        Err(Error::NotFound { .. })
    ));
    let nobody = "nobody".parse().unwrap();
    let error = fleet
        .store
        .configurations(&nobody, &PageRequest::default())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
}
