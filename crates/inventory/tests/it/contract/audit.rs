//! Who did what.

use std::collections::BTreeSet;

use evenkeel_core::{DeleteMode, DueReason};
use evenkeel_inventory::{
    AuditAction, AuditEntry, AuditFilter, Error, PageRequest, PutCluster, RetentionPolicy, Setting,
    SettingScope, Store,
};
use evenkeel_telemetry::request::{scope, scope_of};

use crate::fixture::*;

async fn entries(store: &dyn Store) -> Vec<AuditEntry> {
    let filter = AuditFilter::default();
    let page = store
        .audit_entries(&filter, &PageRequest::default())
        .await
        .unwrap();
    assert!(page.failed.is_empty(), "{:?}", page.failed);
    page.items
}

/// Every API call of the store that changes something.
pub(crate) async fn whatever_a_call_changes_is_written_down<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let id = fleet.cluster("quiet", &[]).await;
    store
        .make_due(&id, fleet.now(), DueReason::Periodic)
        .await
        .unwrap();
    assert!(entries(&**store).await.is_empty(), "nobody asked");

    let call = |id: &str| id.to_owned();
    let put =
        |components: &[&str]| PutCluster::new(spec("a", components)).with_kubeconfig(secret("very secret"));
    scope_of(call("r-1"), "ann".to_owned(), async {
        let a = store.put_cluster(put(&["web"])).await.unwrap().id;
        // Nothing changes, nothing is written down.
        store.put_cluster(put(&["web"])).await.unwrap();
        store.put_cluster(put(&["db"])).await.unwrap();
        store
            .put_kubeconfig(&a, secret("also secret").into())
            .await
            .unwrap();
        store.make_due(&a, fleet.now(), DueReason::Change).await.unwrap();
        store.suspend(&a, Some(fleet.after(60))).await.unwrap();
        store.confirm_identity(&a, "uid-1").await.unwrap();
        let own = SettingScope::Cluster(a.clone());
        store
            .put_setting(&own, "failures-max", Some(Setting::Integer(3)))
            .await
            .unwrap();
    })
    .await;
    fleet.advance(60);
    scope(call("r-2"), async {
        store.put_archive(b"chart".to_vec()).await.unwrap();
        let a = store.cluster_by_name(&"a".parse().unwrap()).await.unwrap().id;
        store.request_deletion(&a, DeleteMode::Orphan).await.unwrap();
    })
    .await;
    let all = entries(&**store).await;
    let told: Vec<_> = all
        .iter()
        .rev()
        .map(|entry| (entry.number, &*entry.actor, &*entry.action, &*entry.target))
        .collect();
    let archive = format!("archive/{}", evenkeel_core::Digest::of("chart"));
    assert_eq!(
        told,
        [
            (1, "ann", "cluster.put", "cluster/a"),
            (2, "ann", "cluster.put", "cluster/a"),
            (3, "ann", "cluster.kubeconfig", "cluster/a"),
            (4, "ann", "cluster.reconcile", "cluster/a"),
            (5, "ann", "cluster.suspend", "cluster/a"),
            (6, "ann", "cluster.confirm-identity", "cluster/a"),
            (7, "ann", "setting.put", "setting/failures-max of cluster a"),
            (8, "anonymous", "archive.put", &*archive),
            (9, "anonymous", "cluster.delete", "cluster/a"),
        ]
    );
    let last = all.last().unwrap();
    assert_eq!(
        (last.request_id.as_deref(), last.at),
        (Some("r-1"), fleet.after(-60))
    );
    assert_eq!(last.detail["change"], "created");
    assert_eq!(all[7].detail["version"], 2);
    assert_ne!(all[7].detail["configuration"], last.detail["configuration"]);
    assert!(!format!("{all:?}").contains("secret"), "{all:?}");
    let digests: BTreeSet<_> = all.iter().map(|entry| entry.digest).collect();
    assert_eq!(digests.len(), all.len());

    let some = |filter: AuditFilter| async move {
        let page = store
            .audit_entries(&filter, &PageRequest::default())
            .await
            .unwrap();
        page.items.iter().map(|entry| entry.number).collect::<Vec<_>>()
    };
    let any = AuditFilter::default;
    let text = |text: &str| Some(text.to_owned());
    let by_target = AuditFilter {
        target: text("cluster/a"),
        actor: text("anonymous"),
        ..any()
    };
    assert_eq!(some(by_target).await, [9]);
    let by_actor = AuditFilter {
        actor: text("anonymous"),
        ..any()
    };
    assert_eq!(some(by_actor).await, [9, 8]);
    let late = AuditFilter {
        since: Some(fleet.now()),
        ..any()
    };
    assert_eq!(some(late).await, [9, 8]);
    let early = AuditFilter {
        until: Some(fleet.now()),
        ..any()
    };
    assert_eq!(some(early).await, [7, 6, 5, 4, 3, 2, 1]);
    let first = store.audit_entries(&any(), &PageRequest::first(4)).await.unwrap();
    let next = PageRequest::after(first.next.unwrap(), 4);
    let second = store.audit_entries(&any(), &next).await.unwrap();
    assert_eq!(second.items[0].number, 5);
    let verdict = store.verify_audit(None).await.unwrap();
    assert_eq!((verdict.entries, verdict.fault), (9, None));
    assert_eq!(verdict.head, (9, Some(all[0].digest)));
    // What a process does as a whole, and by itself, is told as such.
    let detail = serde_json::json!({"counts": {"extra": 1}});
    store
        .note_done(AuditAction::SyncBroker, "broker", detail.clone())
        .await
        .unwrap();
    let newest = &entries(&**store).await[0];
    assert_eq!(
        (newest.number, &*newest.actor, &*newest.action),
        (10, "evenkeel", "broker.sync")
    );
    assert_eq!((newest.request_id.as_deref(), &newest.detail), (None, &detail));
    let odd = store
        .note_done(AuditAction::RefuseCall, "cluster/\0", detail)
        .await;
    assert!(matches!(odd, Err(Error::NulCharacter { .. })), "{odd:?}");
    assert_eq!(store.verify_audit(None).await.unwrap().fault, None);
}

pub(crate) async fn a_change_and_its_entry_are_one<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let refused = scope("r-1".to_owned(), async {
        let mut put = PutCluster::new(spec("a", &["web"]));
        put.if_version = Some(evenkeel_core::ConfigurationVersion(7));
        store.put_cluster(put).await
    })
    .await;
    assert!(
        matches!(refused, Err(Error::VersionMismatch { .. })),
        "{refused:?}"
    );
    assert!(
        entries(&**store).await.is_empty(),
        "what did not happen is not told"
    );
    scope("r-2".to_owned(), fleet.cluster("a", &[])).await;
    // Both are there again after a crash, or neither.
    let fleet = fleet.crash().await;
    assert_eq!(entries(&*fleet.store).await.len(), 1);
    assert_eq!(fleet.store.verify_audit(None).await.unwrap().fault, None);
}

pub(crate) async fn the_chain_grows_under_everybody<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let put = |worker: usize| {
        let fleet = &fleet;
        async move {
            for number in 0..10 {
                let put = PutCluster::new(spec(&format!("c-{worker}-{number}"), &["web"]));
                let call = format!("r-{worker}-{number}");
                scope(call, fleet.store.put_cluster(put)).await.unwrap();
            }
        }
    };
    let verify = async {
        for _ in 0..5 {
            let verdict = fleet.store.verify_audit(None).await.unwrap();
            assert_eq!(verdict.fault, None, "while it grows");
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(put(0), put(1), put(2), put(3), put(4), put(5), verify);
    let verdict = fleet.store.verify_audit(None).await.unwrap();
    assert_eq!((verdict.entries, verdict.fault), (60, None));
    assert_eq!(verdict.head.0, 60);
}

pub(crate) async fn a_beginning_goes_and_the_rest_holds<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    for number in 0..5 {
        scope(format!("r-{number}"), fleet.cluster(&format!("c{number}"), &[])).await;
        fleet.advance(24 * 60 * 60);
    }
    let written_down = store.verify_audit(None).await.unwrap().head;
    let policy = |days: u64| RetentionPolicy {
        audit_age: std::time::Duration::from_secs(days * 24 * 60 * 60 + 1),
        ..RetentionPolicy::default()
    };
    assert_eq!(store.clean_audit(&policy(5)).await.unwrap(), 0);
    assert_eq!(store.clean_audit(&policy(2)).await.unwrap(), 3);
    assert_eq!(store.clean_audit(&policy(2)).await.unwrap(), 0);
    let verdict = store.verify_audit(None).await.unwrap();
    assert_eq!((verdict.entries, verdict.fault), (2, None));
    let known = written_down.1.map(|digest| (written_down.0, digest));
    assert_eq!(store.verify_audit(known).await.unwrap().fault, None);
    // Everything may go; the chain goes on where it was.
    assert_eq!(store.clean_audit(&policy(0)).await.unwrap(), 2);
    assert_eq!(store.verify_audit(known).await.unwrap().fault, None);
    scope("r".to_owned(), fleet.cluster("late", &[])).await;
    let verdict = store.verify_audit(known).await.unwrap();
    assert_eq!((verdict.entries, verdict.head.0, verdict.fault), (1, 6, None));
    let wrong = Some((6, evenkeel_core::Digest::of("another")));
    assert!(store.verify_audit(wrong).await.unwrap().fault.is_some());
    let later = Some((7, evenkeel_core::Digest::of("later")));
    let fault = store.verify_audit(later).await.unwrap().fault.unwrap();
    assert!(fault.problem.contains("cut off"), "{fault}");
}
