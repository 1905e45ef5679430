//! Pages and filters of lists.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::{ClusterState, ConfigurationVersion, DeleteMode};
use evenkeel_inventory::{
    AuditFilter, ChangeFilter, ClusterFilter, Error, PageRequest, PutCluster, StatusChange,
};
use serde_json::json;

use crate::fixture::*;

pub(crate) async fn pages_hold_every_cluster_once<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    for number in 0..23 {
        fleet.cluster(&format!("c{number:02}"), &[]).await;
    }
    let mut request = PageRequest::first(5);
    let mut names = Vec::new();
    loop {
        let page = fleet
            .store
            .clusters(&ClusterFilter::default(), &request)
            .await
            .unwrap();
        assert!(page.items.len() <= 5 && page.failed.is_empty());
        names.extend(page.items.iter().map(|cluster| cluster.name.to_string()));
        // One that goes and one that comes do not shift the rest.
        match names.len() {
            5 => {
                let gone = fleet
                    .store
                    .cluster_by_name(&"c00".parse().unwrap())
                    .await
                    .unwrap()
                    .id;
                fleet
                    .store
                    .request_deletion(&gone, DeleteMode::Forget)
                    .await
                    .unwrap();
            }
            10 => drop(fleet.cluster("c03a", &[]).await),
            _ => {}
        }
        match page.next {
            Some(next) => request = PageRequest::after(next, 5),
            None => break,
        }
    }
    let expected: Vec<_> = (0..23).map(|number| format!("c{number:02}")).collect();
    assert_eq!(names, expected);
}

pub(crate) async fn filters_select<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    for (name, tenant, group, env, component) in [
        ("a", "t1", "g1", "prod", "web"),
        ("b", "t1", "g2", "prod", "db"),
        ("c", "t2", "g1", "dev", "web"),
        ("d", "t2", "g2", "prod", "web"),
        ("gone", "t1", "g1", "prod", "web"),
    ] {
        let document = json!({
            "name": name, "tenant": tenant, "group": group, "labels": {"env": env, "all": ""},
            "components": [{"name": component, "source": {"directory": {"path": "x"}}, "namespace": "apps"}],
        });
        fleet.put(serde_json::from_value(document).unwrap()).await;
    }
    let id = |name: &str| {
        let name = name.parse().unwrap();
        let store = fleet.store.clone();
        async move { store.cluster_by_name(&name).await.unwrap().id }
    };
    fleet
        .store
        .request_deletion(&id("gone").await, DeleteMode::Forget)
        .await
        .unwrap();
    for (name, state) in [
        ("a", ClusterState::Ready),
        ("b", ClusterState::Failed),
        ("d", ClusterState::Ready),
    ] {
        let change = StatusChange::new(state, ConfigurationVersion(1));
        fleet.store.record_status(&id(name).await, change).await.unwrap();
    }
    let labels = |pairs: &[(&str, &str)]| {
        let pairs = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        ClusterFilter {
            labels: pairs.collect(),
            ..ClusterFilter::default()
        }
    };
    let none = ClusterFilter::default;
    let t1 = || Some("t1".to_owned());
    let web = || Some("web".parse().unwrap());
    for (filter, expected) in [
        (none(), "abcd"),
        (
            ClusterFilter {
                state: Some(ClusterState::Ready),
                ..none()
            },
            "ad",
        ),
        (
            ClusterFilter {
                state: Some(ClusterState::Failed),
                ..none()
            },
            "b",
        ),
        (
            ClusterFilter {
                state: Some(ClusterState::Pending),
                ..none()
            },
            "c",
        ),
        (
            ClusterFilter {
                state: Some(ClusterState::Deleted),
                ..none()
            },
            "",
        ),
        (labels(&[("env", "prod")]), "abd"),
        (labels(&[("env", "prod"), ("all", "")]), "abd"),
        (labels(&[("env", "prod"), ("all", "x")]), ""),
        (labels(&[("prod", "env")]), ""),
        (
            ClusterFilter {
                component: web(),
                ..none()
            },
            "acd",
        ),
        (
            ClusterFilter {
                tenant: t1(),
                ..none()
            },
            "ab",
        ),
        (
            ClusterFilter {
                group: Some("g2".to_owned()),
                ..none()
            },
            "bd",
        ),
        (
            ClusterFilter {
                tenant: t1(),
                component: web(),
                ..none()
            },
            "a",
        ),
        (
            ClusterFilter {
                state: Some(ClusterState::Ready),
                group: Some("g2".to_owned()),
                ..none()
            },
            "d",
        ),
        (
            ClusterFilter {
                state: Some(ClusterState::Failed),
                tenant: t1(),
                ..labels(&[("env", "prod")])
            },
            "b",
        ),
        (
            ClusterFilter {
                component: web(),
                ..labels(&[("env", "dev")])
            },
            "c",
        ),
    ] {
        // Page by page, so that the cursor works with every driver.
        let mut names = String::new();
        let mut request = PageRequest::first(1);
        loop {
            let page = fleet.store.clusters(&filter, &request).await.unwrap();
            names.extend(page.items.iter().map(|cluster| cluster.name.to_string()));
            match page.next {
                Some(next) => request = PageRequest::after(next, 1),
                None => break,
            }
        }
        assert_eq!(names, expected, "{filter:?}");
    }
    // What the newest version no longer says is no longer found.
    fleet.put(spec("a", &["other"])).await;
    let names = |filter: ClusterFilter| {
        let store = fleet.store.clone();
        async move {
            let page = store.clusters(&filter, &PageRequest::default()).await.unwrap();
            page.items
                .iter()
                .map(|cluster| cluster.name.to_string())
                .collect::<String>()
        }
    };
    assert_eq!(names(labels(&[("env", "prod")])).await, "bd");
    assert_eq!(
        names(ClusterFilter {
            component: web(),
            ..none()
        })
        .await,
        "cd"
    );
    assert_eq!(
        names(ClusterFilter {
            tenant: t1(),
            ..none()
        })
        .await,
        "b"
    );
}

/// Texts that would end a statement, were they ever pasted into one.
const INJECTIONS: [&str; 9] = [
    "' OR '1'='1",
    "'; DROP TABLE clusters; --",
    "\" OR 1=1 --",
    "%",
    "_",
    "a' UNION SELECT content FROM kubeconfigs --",
    "\\",
    "?1",
    "{\"a\": \"]\"}\u{0}",
];

pub(crate) async fn filters_are_data<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let id = fleet.cluster("a", &["web"]).await;
    for text in INJECTIONS {
        let own = || Some(text.to_owned());
        for filter in [
            ClusterFilter {
                tenant: own(),
                ..ClusterFilter::default()
            },
            ClusterFilter {
                group: own(),
                ..ClusterFilter::default()
            },
            ClusterFilter {
                labels: BTreeMap::from([(text.to_owned(), "x".to_owned())]),
                ..ClusterFilter::default()
            },
            ClusterFilter {
                labels: BTreeMap::from([("x".to_owned(), text.to_owned())]),
                ..ClusterFilter::default()
            },
        ] {
            let page = fleet
                .store
                .clusters(&filter, &PageRequest::default())
                .await
                .unwrap();
            assert!(page.items.is_empty() && page.failed.is_empty(), "{filter:?}");
        }
        let cursor = || PageRequest::after(text.parse().unwrap(), 10);
        let page = fleet
            .store
            .clusters(&ClusterFilter::default(), &cursor())
            .await
            .unwrap();
        assert!(page.items.len() <= 1, "{text}");
        for refused in [
            fleet.store.configurations(&id, &cursor()).await.map(drop),
            fleet.store.status_history(&id, &cursor()).await.map(drop),
        ] {
            assert!(
                matches!(refused, Err(Error::NotFound { .. })),
                "{text}: {refused:?}"
            );
        }
        assert!(
            fleet
                .store
                .reconciliations(&id, &cursor())
                .await
                .unwrap()
                .items
                .is_empty()
        );
        // Kept, found again, and still data.
        let setting = evenkeel_inventory::Setting::Integer(7);
        let scope = evenkeel_inventory::SettingScope::Group(text.to_owned());
        let refused = fleet.store.put_setting(&scope, text, Some(setting.clone())).await;
        assert!(matches!(refused, Err(Error::Setting { .. })), "{refused:?}");
        let words = Some(evenkeel_inventory::Setting::Text(text.to_owned()));
        let refused = fleet.store.put_setting(&scope, "failures-max", words).await;
        assert!(matches!(refused, Err(Error::Setting { .. })), "{refused:?}");
        let by = |target: Option<&str>, actor: Option<&str>| AuditFilter {
            target: target.map(ToOwned::to_owned),
            actor: actor.map(ToOwned::to_owned),
            ..AuditFilter::default()
        };
        for filter in [by(Some(text), None), by(None, Some(text))] {
            let page = fleet
                .store
                .audit_entries(&filter, &PageRequest::default())
                .await
                .unwrap();
            assert!(page.items.is_empty());
        }
        let filter = ChangeFilter {
            kind: Some(text.to_owned()),
            namespace: Some(text.to_owned()),
            name: Some(text.to_owned()),
            ..ChangeFilter::default()
        };
        let page = fleet
            .store
            .object_changes(&id, &filter, &PageRequest::default())
            .await
            .unwrap();
        assert!(page.items.is_empty());
        let refused = fleet.store.object_changes(&id, &filter, &cursor()).await;
        assert!(matches!(refused, Err(Error::NotFound { .. })), "{refused:?}");
        if text.contains('\0') {
            let refused = fleet
                .store
                .put_setting(&scope, "failures-max", Some(setting))
                .await;
            assert!(matches!(refused, Err(Error::NulCharacter { .. })), "{refused:?}");
            let refused = fleet.store.put_setting(&scope, text, None).await;
            assert!(matches!(refused, Err(Error::NulCharacter { .. })), "{refused:?}");
            assert_eq!(fleet.store.setting(&scope, text).await.unwrap(), None);
            let mut document = spec("nul", &[]);
            document.tenant = own();
            let refused = fleet.store.put_cluster(PutCluster::new(document)).await;
            assert!(matches!(refused, Err(Error::NulCharacter { .. })), "{refused:?}");
            continue;
        }
        fleet
            .store
            .put_setting(&scope, "failures-max", Some(setting.clone()))
            .await
            .unwrap();
        assert_eq!(
            fleet.store.setting(&scope, "failures-max").await.unwrap(),
            Some(setting)
        );
    }
    // As content they are kept and found as they are; a NUL is refused, because PostgreSQL cannot keep it.
    for (number, text) in INJECTIONS.iter().filter(|text| !text.contains('\0')).enumerate() {
        let mut document = spec(&format!("x{number}"), &[]);
        document.tenant = Some((*text).to_owned());
        document.labels.insert((*text).to_owned(), (*text).to_owned());
        let id = fleet.put(document).await.id;
        for filter in [
            ClusterFilter {
                tenant: Some((*text).to_owned()),
                ..ClusterFilter::default()
            },
            ClusterFilter {
                labels: BTreeMap::from([((*text).to_owned(), (*text).to_owned())]),
                ..ClusterFilter::default()
            },
        ] {
            let page = fleet
                .store
                .clusters(&filter, &PageRequest::default())
                .await
                .unwrap();
            let found: BTreeSet<_> = page.items.iter().map(|cluster| &cluster.id).collect();
            assert_eq!(found, BTreeSet::from([&id]), "{filter:?}");
        }
    }
}
