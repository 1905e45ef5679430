//! What waits for a person: changes that lose components, and operations that would delete much.

use std::time::Duration;

use evenkeel_api as api;
use evenkeel_core::{
    ChangeConsent, ClusterState, ConfigurationVersion, ConsentKind, OperationStateKind, Strategy,
};
use evenkeel_fleet::Error;
use evenkeel_inventory::{Audit as _, AuditFilter, PageRequest};
use serde_json::{Value, json};

use crate::world::{World, component, name, operations, reason, settings, state, values};

/// A chart with `count` ConfigMaps.
fn maps_chart(world: &World, chart: &str) {
    world.write(chart, "values.yaml", "count: 8\ntext: first\n");
    world.write(
        chart,
        "templates/maps.yaml",
        "{{- range until (int .Values.count) }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ $.Release.Name }}-{{ . }}\n\
         data:\n  text: {{ $.Values.text | quote }}\n{{- end }}\n",
    );
}

fn maps(count: usize, text: &str) -> Value {
    values(component("web", "maps"), json!({"count": count, "text": text}))
}

fn count(world: &World) -> usize {
    let cluster = world.cluster("blue");
    (0..8)
        .filter(|index| {
            cluster
                .get("v1", "ConfigMap", "apps", &format!("web-{index}"))
                .unwrap()
                .is_some()
        })
        .count()
}

fn waiting(status: &api::ClusterStatus) -> bool {
    state(status, "web") == Some(OperationStateKind::Waiting)
}

#[tokio::test]
async fn many_deletions_wait_for_consent() {
    let world = World::new().await;
    maps_chart(&world, "maps");
    world.map_chart("map");
    let other = || component("other", "map");
    world.put("blue", json!([maps(8, "first"), other()])).await;
    world.ready("blue").await;
    let second = world
        .put(
            "blue",
            json!([maps(2, "second"), values(other(), json!({"text": "second"}))]),
        )
        .await;
    let status = world.until("blue", "web waits", waiting).await;
    let why = reason(&status, "web");
    assert!(
        why.contains("6 of 8 objects would be deleted") && why.contains("evenkeel cluster consent blue"),
        "{why}"
    );
    // The other component is not held up, and the cluster says what it waits for.
    let told = |status: &api::ClusterStatus| {
        state(status, "other") == Some(OperationStateKind::Succeeded)
            && status.state == ClusterState::Reconciling
            && status
                .reason
                .as_ref()
                .is_some_and(|reason| reason.starts_with("component web: waits for consent"))
    };
    world.until("blue", "other is done", told).await;
    assert_eq!(world.text("blue", "other").as_deref(), Some("second"));
    assert_eq!(count(&world), 8);
    let first = world
        .cluster("blue")
        .get("v1", "ConfigMap", "apps", "web-0")
        .unwrap()
        .unwrap();
    assert_eq!(first["data"]["text"], "first", "nothing at all is done");

    let asked = world.fleet().consents(&name("blue")).await.unwrap();
    assert_eq!(asked.len(), 1, "{asked:?}");
    let asked = &asked[0];
    assert_eq!(
        (
            asked.component.as_str(),
            asked.version,
            asked.kind,
            asked.deleted,
            asked.of
        ),
        ("web", second.version, ConsentKind::Deletions, 6, 8)
    );
    assert_eq!(asked.objects[0].name, "web-2");
    // Consent to something else is refused, and says what is asked.
    let mut give = api::GiveConsent::from(asked);
    give.version = ConfigurationVersion(1);
    let error = world.fleet().give_consent(&name("blue"), give).await.unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, Error::NoQuestion { .. }) && text.contains(&asked.plan_digest.to_string()),
        "{text}"
    );
    let given = world
        .fleet()
        .give_consent(&name("blue"), api::GiveConsent::from(asked))
        .await
        .unwrap();
    assert!(given.given.is_some());
    world.ready("blue").await;
    assert_eq!(count(&world), 2);
    let run = world.newest_run("blue").await;
    assert_eq!(
        operations(&run),
        ["upgrade other succeeded", "upgrade web succeeded"],
        "the same run went on"
    );
    // It was used once.
    assert!(world.fleet().consents(&name("blue")).await.unwrap().is_empty());
    let again = world
        .fleet()
        .give_consent(&name("blue"), api::GiveConsent::from(asked))
        .await;
    assert!(matches!(again, Err(Error::NoQuestion { .. })), "{again:?}");
    let entries = world
        .store()
        .audit_entries(&AuditFilter::default(), &PageRequest::first(100))
        .await
        .unwrap()
        .items;
    let consents = entries.iter().filter(|entry| entry.action == "cluster.consent");
    assert_eq!(consents.count(), 1);
}

#[tokio::test]
async fn an_empty_render_waits_and_a_newer_version_frees_it() {
    let world = World::new().await;
    maps_chart(&world, "maps");
    world.put("blue", json!([maps(3, "first")])).await;
    world.ready("blue").await;
    world.put("blue", json!([maps(0, "first")])).await;
    world.until("blue", "web waits", waiting).await;
    let asked = world.fleet().consents(&name("blue")).await.unwrap();
    assert_eq!((asked[0].kind, asked[0].deleted), (ConsentKind::EmptyRender, 3));
    // Three would go without asking, were something left.
    world.put("blue", json!([maps(1, "second")])).await;
    world.ready("blue").await;
    assert_eq!(count(&world), 1);
    let late = world
        .fleet()
        .give_consent(&name("blue"), api::GiveConsent::from(&asked[0]))
        .await;
    assert!(matches!(late, Err(Error::NoQuestion { .. })), "{late:?}");
}

#[tokio::test]
async fn without_consent_the_operation_fails_and_late_consent_counts() {
    let mut short = settings();
    short.consent_within = Duration::from_secs(2);
    let world = World::with(short).await;
    maps_chart(&world, "maps");
    world.put("blue", json!([maps(8, "first")])).await;
    world.ready("blue").await;
    world.put("blue", json!([maps(1, "second")])).await;
    world.until("blue", "web waits", waiting).await;
    let failed = |status: &api::ClusterStatus| {
        let reason = status.reason.as_deref().unwrap_or_default();
        status.state == ClusterState::Degraded && reason.contains("consent was not given until")
    };
    let status = world.until("blue", "nobody answered", failed).await;
    assert!(status.reason.unwrap().contains("7 of 8 objects would be deleted"));
    assert_eq!(count(&world), 8);
    let runs = world.fleet().reconciliations(&name("blue")).await.unwrap();
    let first = world
        .fleet()
        .reconciliation(&runs[runs.len() - 2].id)
        .await
        .unwrap();
    let why = first.operations[0].state.reason().unwrap();
    assert!(why.starts_with("waited until the deadline for: consent"), "{why}");
    let asked = world.fleet().consents(&name("blue")).await.unwrap();
    world
        .fleet()
        .give_consent(&name("blue"), api::GiveConsent::from(&asked[0]))
        .await
        .unwrap();
    world.ready("blue").await;
    assert_eq!(count(&world), 1);
}

#[tokio::test]
async fn a_wait_survives_a_restart_and_the_deadline_of_its_run() {
    let mut short = settings();
    short.deadline = Duration::from_secs(5);
    let mut world = World::with(short).await;
    maps_chart(&world, "maps");
    world.put("blue", json!([maps(8, "first")])).await;
    world.ready("blue").await;
    world.put("blue", json!([maps(1, "second")])).await;
    world.until("blue", "web waits", waiting).await;
    let run = world.newest_run("blue").await.summary.id;
    world.kill().await;
    let late = evenkeel_telemetry::time::now() + jiff::SignedDuration::from_secs(6);
    evenkeel_testkit::eventually("the run is past its deadline", async || {
        let now = evenkeel_telemetry::time::now();
        if now > late { Ok(()) } else { Err(now) }
    })
    .await;
    world.start().await;
    let asked = world.fleet().consents(&name("blue")).await.unwrap();
    world
        .fleet()
        .give_consent(&name("blue"), api::GiveConsent::from(&asked[0]))
        .await
        .unwrap();
    let status = world.ready("blue").await;
    assert_eq!(status.reconciliation, Some(run), "the same run");
    assert_eq!(count(&world), 1);
}

/// Others that drift meanwhile are healed.
#[tokio::test]
async fn what_waits_holds_up_no_healing() {
    let mut often = settings();
    often.check_interval = Duration::from_secs(1);
    let world = World::with(often).await;
    maps_chart(&world, "maps");
    world.map_chart("map");
    world
        .put("blue", json!([maps(8, "first"), component("other", "map")]))
        .await;
    world.ready("blue").await;
    world
        .put("blue", json!([maps(1, "second"), component("other", "map")]))
        .await;
    world.until("blue", "web waits", waiting).await;
    let patch = json!({"data": {"text": "somebody's"}});
    world
        .cluster("blue")
        .patch("somebody", "v1", "ConfigMap", "apps", "other", patch)
        .unwrap();
    evenkeel_testkit::eventually("other is healed", async || {
        match world.text("blue", "other").as_deref() {
            Some("first") => Ok(()),
            text => Err(text.map(str::to_owned)),
        }
    })
    .await;
    // In a run of its own, where the question is the same with the same deadline.
    world.until("blue", "web waits again", waiting).await;
    let asked = world.fleet().consents(&name("blue")).await.unwrap();
    assert_eq!(asked.len(), 1);
    world
        .fleet()
        .give_consent(&name("blue"), api::GiveConsent::from(&asked[0]))
        .await
        .unwrap();
    world.ready("blue").await;
    assert_eq!(count(&world), 1);
}

#[tokio::test]
async fn a_change_that_loses_much_says_so() {
    let world = World::new().await;
    world.map_chart("map");
    let list = |names: &[&str]| -> Value {
        names
            .iter()
            .map(|name| component(name, "map"))
            .collect::<Vec<_>>()
            .into()
    };
    world.put("blue", list(&["a", "b", "c"])).await;
    world.ready("blue").await;
    let kubeconfig = world.cluster("blue").kubeconfig().to_owned();
    let put = |components: Value, consent: &[ChangeConsent]| {
        let document = json!({
            "name": "blue", "components": components, "kubeconfig": kubeconfig, "consent": consent,
        });
        let document = api::ClusterDocument::from_value(document).unwrap();
        let world = &world;
        async move { world.fleet().put_cluster(&name("blue"), document).await }
    };
    let mut elsewhere = list(&["a", "b", "c"]);
    elsewhere[0]["namespace"] = json!("elsewhere");
    use ChangeConsent::{EmptyComponents, NamespaceChange, Removals};
    for (components, wrong, right, told) in [
        (list(&["a"]), Removals, Removals, "2 of 3 components go: b, c"),
        (
            list(&[]),
            Removals,
            EmptyComponents,
            "no component is left of a, b, c",
        ),
        (elsewhere, Removals, NamespaceChange, "a from apps to elsewhere"),
    ] {
        let given: &[ChangeConsent] = if wrong == right { &[] } else { &[wrong] };
        let error = put(components, given).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Consent { .. }), "{text}");
        assert!(
            text.contains(told) && text.contains(&format!("`consent: [{right}]`")),
            "{text}"
        );
    }
    assert_eq!(world.status("blue").await.version, ConfigurationVersion(1));
    // One of three goes without asking; an older version is no way around.
    put(list(&["a", "b"]), &[]).await.unwrap();
    put(list(&["a", "b", "d", "e"]), &[]).await.unwrap();
    let back = api::Rollback {
        to: ConfigurationVersion(2),
        consent: [].into(),
    };
    let error = world.fleet().rollback(&name("blue"), &back).await.unwrap_err();
    assert!(matches!(error, Error::Consent { .. }), "{error}");
    let back = api::Rollback {
        consent: [Removals].into(),
        ..back
    };
    world.fleet().rollback(&name("blue"), &back).await.unwrap();
    world.ready("blue").await;
    put(list(&[]), &[EmptyComponents]).await.unwrap();
    world.ready("blue").await;
    assert_eq!(world.text("blue", "a"), None);
    assert_eq!(
        world.newest_run("blue").await.operations[0].strategy,
        Strategy::Delete
    );
}
