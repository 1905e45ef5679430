//! What a reconciliation would do, asked for without doing it.

use evenkeel_api::PlannedWork;
use evenkeel_core::PlanAction;
use serde_json::json;

use crate::world::{World, component, name, with};

#[tokio::test]
async fn a_plan_shows_what_would_be_done_and_does_nothing() {
    let world = World::new().await;
    world.map_chart("map");
    world.deployment_chart("web");
    let secret = json!({"values": [{"inline": {}}, {"secret": {"text": "hunter2-old"}}]});
    let components = json!([
        with(component("settings", "map"), secret),
        component("web", "web")
    ]);
    world.put("blue", components).await;
    let status = world.ready("blue").await;
    let cluster = world.cluster("blue");

    let steady = world.fleet().plan(&name("blue")).await.unwrap();
    assert_eq!(steady.version, status.version);
    for component in &steady.components {
        let plan = component.plan.as_ref().unwrap();
        assert!(plan.is_noop() && component.diffs.is_empty(), "{component:?}");
        assert_eq!((component.work, &component.reason), (PlannedWork::Apply, &None));
    }

    // Two charts change in their directories; nothing is looked at by itself for an hour.
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  text: {{ .Values.text | quote }}\n  url: https://me:{{ .Values.text }}@db\n";
    world.write("map", "templates/map.yaml", map);
    world.write("web", "values.yaml", "replicas: 1\nbehaviour: ''\nimage: a:2\n");
    let runs = world.runs("blue").await;
    let plan = world.fleet().plan(&name("blue")).await.unwrap();
    let told: Vec<String> = plan
        .components
        .iter()
        .flat_map(|component| {
            let found = component.plan.as_ref().unwrap();
            assert_eq!(found.count(PlanAction::Update), 1, "{found}");
            let fields = component.diffs.iter().flat_map(|diff| &diff.fields);
            fields.map(|field| {
                let shown = |value: &Option<serde_json::Value>| value.clone().unwrap_or_default().to_string();
                format!("{} {} {}", field.path, shown(&field.before), shown(&field.after))
            })
        })
        .collect();
    assert_eq!(
        told,
        [
            r#"data.url null "********""#,
            r#"spec.template.spec.containers[main].image "a:1" "a:2""#
        ]
    );
    assert!(!format!("{plan:?}").contains("hunter2"));
    let live = cluster
        .get("apps/v1", "Deployment", "apps", "web")
        .unwrap()
        .unwrap();
    assert_eq!(
        live.pointer("/spec/template/spec/containers/0/image"),
        Some(&json!("a:1"))
    );
    let live = cluster
        .get("v1", "ConfigMap", "apps", "settings")
        .unwrap()
        .unwrap();
    assert_eq!(
        live["data"],
        json!({"text": "hunter2-old"}),
        "nothing was written to the cluster"
    );
    assert_eq!(world.runs("blue").await, runs, "and nothing was begun");
    assert_eq!(world.status("blue").await.revision, status.revision);
}

#[tokio::test]
async fn one_that_cannot_be_planned_stops_no_other() {
    let world = World::new().await;
    world.map_chart("good");
    world.map_chart("bad");
    world
        .put(
            "blue",
            json!([component("good", "good"), component("bad", "bad")]),
        )
        .await;
    world.ready("blue").await;
    world.write(
        "bad",
        "templates/map.yaml",
        "{{ .Values.text | nosuchfunction }}\n",
    );
    let plan = world.fleet().plan(&name("blue")).await.unwrap();
    let [bad, good] = &plan.components[..] else {
        panic!("{plan:?}")
    };
    let (bad, good) = if bad.name.as_str() == "bad" {
        (bad, good)
    } else {
        (good, bad)
    };
    assert!(good.plan.as_ref().is_some_and(evenkeel_core::Plan::is_noop) && good.reason.is_none());
    assert!(bad.plan.is_none());
    assert!(
        bad.reason
            .as_ref()
            .is_some_and(|reason| reason.contains("nosuchfunction")),
        "{bad:?}"
    );

    world.cluster("blue").faults().unreachable(true);
    let error = world.fleet().plan(&name("blue")).await.unwrap_err();
    assert!(matches!(error, evenkeel_fleet::Error::Target { .. }), "{error}");
    assert!(error.to_string().contains("cannot be reached"), "{error}");
}
