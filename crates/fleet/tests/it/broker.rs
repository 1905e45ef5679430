//! K6: the inventory and the broker's list are compared, told apart, and where that is wanted brought together.

use evenkeel_api::{self as api, Outcome, SyncReport};
use evenkeel_core::LossLimit;
use evenkeel_fleet::{BrokerError, BrokerOptions, Error, Settings};
use evenkeel_inventory::Clusters as _;
use evenkeel_testkit::{Broker, eventually, temp_dir};
use http::StatusCode;
use serde_json::{Value, json};

use crate::world::{World, component, name, settings};

/// A mothership and its broker.
struct Site {
    world: World,
    broker: Broker,
    _folder: tempfile::TempDir,
}

impl Site {
    /// One that has compared once already, when there was nothing.
    async fn new(more: Settings) -> Self {
        let (broker, folder) = (Broker::start().await, temp_dir());
        let token_file = folder.path().join("token");
        std::fs::write(&token_file, format!("{}\n", broker.token())).unwrap();
        let options = BrokerOptions {
            url: broker.url(),
            token_file: Some(token_file),
        };
        let world = World::with(Settings {
            broker: Some(options),
            ..more
        })
        .await;
        let site = Self {
            world,
            broker,
            _folder: folder,
        };
        eventually("the first comparison, by itself", async || {
            match site.audited().await {
                entries if entries.is_empty() => Err(()),
                _ => Ok(()),
            }
        })
        .await;
        site
    }

    /// Registers a cluster of the broker.
    async fn register(&self, cluster: &str, labels: Value) {
        let kubeconfig = self.world.cluster(cluster).kubeconfig().to_owned();
        let document = json!({
            "name": cluster, "labels": labels, "kubeconfig": kubeconfig,
            "components": [component("web", "web")],
        });
        let document = api::ClusterDocument::from_value(document).unwrap();
        self.world
            .fleet()
            .put_cluster(&name(cluster), document)
            .await
            .unwrap();
    }

    async fn set(&self, key: &str, value: Value) {
        let everyone = api::SettingFor::default();
        self.world
            .fleet()
            .put_setting(key, &everyone, Some(value))
            .await
            .unwrap();
    }

    async fn sync(&self) -> SyncReport {
        self.world.fleet().sync_broker().await.unwrap()
    }

    async fn names(&self) -> Vec<String> {
        let page = self
            .world
            .fleet()
            .clusters(&api::ListClusters::default())
            .await
            .unwrap();
        page.items
            .iter()
            .map(|cluster| cluster.name.to_string())
            .collect()
    }

    async fn labels(&self, cluster: &str) -> Value {
        let cluster = self.world.store().cluster_by_name(&name(cluster)).await.unwrap();
        json!(cluster.labels)
    }

    /// Entries of the audit log about comparisons, newest first.
    async fn audited(&self) -> Vec<api::AuditEntry> {
        let list = api::ListAudit {
            target: Some("broker".to_owned()),
            ..api::ListAudit::default()
        };
        self.world.fleet().audit(&list).await.unwrap().items
    }
}

fn runtime(id: &str) -> Value {
    json!({"broker.evenkeel.dev/runtime": id})
}

/// A broker with more than two pages, one runtime that is missing here, one cluster that it has no more, one that differs.
async fn three_drifts(more: Settings) -> Site {
    let site = Site::new(more).await;
    site.world.map_chart("web");
    for number in 0..230 {
        site.broker
            .add(&format!("filler-{number}"), "provisioning", &json!({}));
    }
    site.broker.add("r-same", "succeeded", &json!({"region": "eu"}));
    site.broker.add(
        "r-differs",
        "succeeded",
        &json!({"region": "us", "shootName": "s"}),
    );
    site.broker
        .add("r-missing", "succeeded", &json!({"shootName": "lost"}));
    site.broker.add("r-deprovisioned", "deprovisioned", &json!({}));
    let labels =
        |id: &str| json!({"broker.evenkeel.dev/runtime": id, "broker.evenkeel.dev/region": "eu", "own": "x"});
    site.register("same", labels("r-same")).await;
    site.register("differs", labels("r-differs")).await;
    site.register("extra", labels("r-extra")).await;
    // Nobody's but its owner's.
    site.register("own", json!({"broker.evenkeel.dev/region": "eu"}))
        .await;
    for cluster in ["same", "differs", "extra", "own"] {
        site.world.ready(cluster).await;
    }
    site
}

fn found(report: &SyncReport) -> Value {
    json!([report.missing, report.extra, report.differing])
}

#[tokio::test]
async fn k6_one_missing_one_extra_and_one_differing_cluster_are_told() {
    let site = three_drifts(settings()).await;
    let pages = site.broker.pages();
    let before = site.world.runs("differs").await;
    let report = site.sync().await;
    assert_eq!(site.broker.pages() - pages, 3);
    assert_eq!((report.runtimes, report.clusters), (234, 3));
    let expected = json!([
        [{"runtime": "r-missing", "shoot": "lost"}],
        [{"cluster": "extra", "runtime": "r-extra", "outcome": "told"}],
        [{"cluster": "differs", "runtime": "r-differs", "outcome": "told", "differences": [
            {"what": "broker.evenkeel.dev/region", "ours": "eu", "brokers": "us"},
        ]}],
    ]);
    assert_eq!(found(&report), expected);
    // Nothing was done, but that it is written down.
    assert_eq!(site.names().await, ["differs", "extra", "own", "same"]);
    assert_eq!(site.labels("differs").await["broker.evenkeel.dev/region"], "eu");
    assert_eq!(site.world.runs("differs").await, before);
    let entries = site.audited().await;
    let newest = &entries[0];
    assert_eq!(
        (newest.action.as_str(), newest.actor.as_str()),
        ("broker.sync", "evenkeel")
    );
    assert_eq!(
        newest.detail["counts"],
        json!({"missing": 1, "extra": 1, "differing": 1})
    );
    assert_eq!(newest.detail["extra"], expected[1]);
    assert!(
        site.world
            .fleet()
            .verify_audit(&api::KnownHead::default())
            .await
            .unwrap()
            .fault
            .is_none()
    );
}

#[tokio::test]
async fn k6_a_repair_forgets_what_is_gone_and_takes_over_what_differs() {
    let site = three_drifts(settings()).await;
    site.set("sync-repair", json!(true)).await;
    // Young ones are left: the broker's list may come later.
    let report = site.sync().await;
    let left = Outcome::Left("it was registered within the last 1h".to_owned());
    assert_eq!(report.extra[0].outcome, left);
    assert_eq!(report.differing[0].outcome, Outcome::Repaired);
    assert_eq!(site.labels("differs").await["broker.evenkeel.dev/region"], "us");
    assert_eq!(site.labels("differs").await["own"], "x");
    site.set("sync-grace", json!("0s")).await;
    let report = site.sync().await;
    assert_eq!(report.extra[0].outcome, Outcome::Repaired);
    assert_eq!(site.names().await, ["differs", "own", "same"]);
    // What ran on it runs on.
    assert_eq!(site.world.text("extra", "web").as_deref(), Some("first"));
    let audit = |target: &str| api::ListAudit {
        target: Some(target.to_owned()),
        actor: Some("evenkeel".to_owned()),
        ..api::ListAudit::default()
    };
    for (target, action) in [
        ("cluster/extra", "cluster.delete"),
        ("cluster/differs", "cluster.put"),
    ] {
        let entries = site.world.fleet().audit(&audit(target)).await.unwrap().items;
        let actions: Vec<&str> = entries.iter().map(|entry| entry.action.as_str()).collect();
        assert_eq!(actions, [action], "{target}");
        assert!(entries[0].request_id.as_ref().unwrap().starts_with("sync-"));
    }
    // What only the broker can bring is all that is left.
    let report = site.sync().await;
    assert_eq!(
        found(&report),
        json!([[{"runtime": "r-missing", "shoot": "lost"}], [], []])
    );
    site.broker.remove("r-missing");
    assert!(site.sync().await.is_same());
}

#[tokio::test]
async fn a_broker_that_has_too_many_no_more_is_not_believed() {
    let site = Site::new(Settings {
        sync_repair: true,
        sync_grace: std::time::Duration::ZERO,
        sync_repairs_max: 2,
        ..settings()
    })
    .await;
    site.world.map_chart("web");
    for number in 0..10 {
        let id = format!("r-{number}");
        site.register(&format!("c-{number}"), runtime(&id)).await;
        site.broker.add(&id, "succeeded", &json!({}));
    }
    assert!(site.sync().await.is_same());
    for number in 0..6 {
        site.broker.remove(&format!("r-{number}"));
    }
    let report = site.sync().await;
    let refused = report.refused.clone().unwrap();
    assert_eq!(
        refused,
        "the broker has 6 of 10 clusters no more: expected at most 10 %, or fewer than 5"
    );
    assert_eq!(site.names().await.len(), 10);
    assert_eq!(site.audited().await[0].detail["refused"], refused);
    // A person says that it is right. Even then not all at once.
    site.set("sync-losses-percent", json!(60)).await;
    let report = site.sync().await;
    let repaired = report
        .extra
        .iter()
        .filter(|extra| extra.outcome == Outcome::Repaired);
    assert_eq!(repaired.count(), 2);
    assert_eq!(site.names().await.len(), 8);
    // One that lists nothing is broken, however few there are.
    site.set("sync-losses-percent", json!(100)).await;
    for number in 6..10 {
        site.broker.remove(&format!("r-{number}"));
    }
    let report = site.sync().await;
    assert_eq!(report.refused.as_deref(), Some("the broker lists nothing at all"));
    assert_eq!(site.names().await.len(), 8);
}

/// A list read page by page misses what slips to a page that was read already.
#[tokio::test]
async fn what_only_slipped_between_pages_is_not_forgotten() {
    let site = Site::new(Settings {
        sync_repair: true,
        sync_grace: std::time::Duration::ZERO,
        sync_losses: LossLimit {
            percent: 100,
            least: 1,
        },
        ..settings()
    })
    .await;
    site.world.map_chart("web");
    for number in 0..150 {
        site.broker
            .add(&format!("filler-{number}"), "provisioning", &json!({}));
    }
    // The first of the second page.
    site.register("slips", runtime("filler-100")).await;
    site.broker.remove_after_first_page("filler-0");
    let report = site.sync().await;
    assert_eq!(report.runtimes, 149);
    assert_eq!(
        report.extra[0].outcome,
        Outcome::Left("the broker still has it".to_owned())
    );
    assert_eq!(site.names().await, ["slips"]);
}

#[tokio::test]
async fn who_is_to_go_is_for_the_broker_to_say() {
    let site = Site::new(Settings {
        sync_repair: true,
        sync_grace: std::time::Duration::ZERO,
        ..settings()
    })
    .await;
    site.world.map_chart("web");
    site.register("leaving", runtime("r-leaving")).await;
    site.broker.add("r-leaving", "deprovisioning", &json!({}));
    let report = site.sync().await;
    let differing = &report.differing[0];
    assert_eq!(
        (
            differing.differences[0].what.as_str(),
            differing.differences[0].brokers.as_str()
        ),
        ("state", "deprovisioning")
    );
    assert!(matches!(differing.outcome, Outcome::Left(_)), "{differing:?}");
    // Gone for good, says the broker.
    site.broker.remove("r-leaving");
    site.broker.add("r-leaving", "deprovisioned", &json!({}));
    assert_eq!(site.sync().await.extra[0].outcome, Outcome::Repaired);
    assert_eq!(site.names().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_broker_that_cannot_be_understood_changes_nothing_and_is_asked_again() {
    let site = Site::new(Settings {
        sync_repair: true,
        sync_grace: std::time::Duration::ZERO,
        ..settings()
    })
    .await;
    site.world.map_chart("web");
    site.broker.add("r-other", "provisioning", &json!({}));
    site.register("extra", runtime("r-extra")).await;
    let entries = site.audited().await.len();
    let fails = async || match site.world.fleet().sync_broker().await {
        Err(Error::Broker(error)) => error,
        other => panic!("{other:?}"),
    };
    site.broker
        .answer(Some((StatusCode::SERVICE_UNAVAILABLE, "over  loaded\n")));
    let busy = BrokerError::Refused {
        status: 503,
        problem: "over loaded".to_owned(),
    };
    assert_eq!(fails().await, busy);
    for odd in [
        "",
        "{",
        "[]",
        "{\"data\": []}",
        "{\"data\": [7], \"totalCount\": 1}",
        "<html>",
    ] {
        site.broker.answer(Some((StatusCode::OK, odd)));
        assert!(matches!(fails().await, BrokerError::NotUnderstood(_)), "{odd}");
    }
    site.broker.answer(Some((StatusCode::FOUND, "")));
    assert!(matches!(fails().await, BrokerError::Refused { status: 302, .. }));
    site.broker.answer(None);
    site.broker.tell_total(Some(300));
    let error = fails().await.to_string();
    assert_eq!(
        error,
        "the broker's list is not understood: it ends after 1 of 300 entries"
    );
    site.broker.tell_total(None);
    assert_eq!(site.names().await, ["extra"]);
    assert_eq!(site.audited().await.len(), entries);
    assert_eq!(site.sync().await.extra[0].outcome, Outcome::Repaired);
}

#[tokio::test]
async fn without_a_broker_there_is_nothing_to_compare_with() {
    let world = World::new().await;
    let error = world.fleet().sync_broker().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no broker to compare with: start with --broker-url"
    );
    let odd = Settings {
        broker: Some(BrokerOptions {
            url: "broker".to_owned(),
            token_file: None,
        }),
        ..settings()
    };
    assert!(odd.check().unwrap_err().to_string().contains("broker-url"));
}
