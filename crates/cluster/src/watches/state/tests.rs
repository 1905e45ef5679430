//! What events come to, without a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{ComponentName, Digest, GroupKind};
use serde_json::{Value, json};
use tokio::time::advance;

use super::*;
use crate::Expected;
use crate::applyset::record::RecordedObject;
use crate::discovery::Resource;
use crate::fingerprint::Fingerprint;
use crate::objects::built_in;
use crate::watches::{SeenComponent, SeenKind, SeenParent, Sighting};

const MAPS: u32 = 0;
const DEPLOYMENTS: u32 = 1;
const PARENTS: u32 = 2;

fn fields() -> Value {
    json!({"f:data": {"f:a": {}}})
}

fn name() -> ComponentName {
    ComponentName::new("web").expect("name")
}

fn entry(kind: &str, name: &str, version: &str) -> RecordedObject {
    RecordedObject {
        group: String::new(),
        kind: kind.into(),
        namespace: Some("shop".into()),
        name: name.into(),
        uid: name.into(),
        content: None,
        fixed: None,
        owned: Some(Fingerprint::of(&fields())),
        resource_version: version.into(),
        kept: name == "kept",
        done: name == "done",
    }
}

fn live_as(object: &str, version: &str, fields: &Value, more: &Value) -> LiveObject {
    let mut body = json!({"metadata": {"name": object, "namespace": "shop", "uid": object, "resourceVersion": version,
        "labels": {"applyset.kubernetes.io/part-of": "set-web"},
        "managedFields": [{"manager": "evenkeel", "operation": "Apply", "fieldsV1": fields}, {"manager": "kubectl", "operation": "Update"}]}});
    if let (Some(metadata), Some(more)) = (body["metadata"].as_object_mut(), more.as_object()) {
        metadata.extend(more.clone());
    }
    LiveObject::read(body.to_string().as_bytes(), "test").expect("read")
}

fn good(object: &str, version: &str) -> LiveObject {
    live_as(object, version, &fields(), &json!({}))
}

fn bad(object: &str, version: &str) -> LiveObject {
    live_as(object, version, &json!({}), &json!({}))
}

/// Objects `a`, `kept` and `done` and Deployment `d`, listed at `version`.
fn baseline(version: &str) -> Baseline {
    let kinds = [
        GroupKind::new("", "ConfigMap"),
        GroupKind::new("apps", "Deployment"),
    ];
    let resources: [Arc<Resource>; 2] = [
        built_in("", "v1", "ConfigMap", "configmaps", true),
        built_in("apps", "v1", "Deployment", "deployments", true),
    ];
    let entries = ["a", "kept", "done"].map(|name| entry("ConfigMap", name, version));
    let deployment = entry("Deployment", "d", version);
    let lives = [good("a", version), good("d", version)];
    let (component, digest, rules) = (name(), Digest::of("inputs"), ReadinessRules::default());
    let mut seen: BTreeMap<&GroupKind, SeenKind<'_>> = BTreeMap::new();
    let maps = vec![
        (0, &entries[0], Some(&lives[0])),
        (0, &entries[1], None),
        (0, &entries[2], None),
    ];
    for (index, objects) in [maps, vec![(0, &deployment, Some(&lives[1]))]]
        .into_iter()
        .enumerate()
    {
        seen.insert(
            &kinds[index],
            SeenKind {
                resource: &resources[index],
                version,
                components: vec![0],
                objects,
            },
        );
    }
    Baseline::of(Sighting {
        fleet: "f",
        components: vec![SeenComponent {
            name: &component,
            inputs: Some(&digest),
            rules: &rules,
            set: "set-web",
        }],
        kinds: seen,
        definitions: None,
        parents: vec![SeenParent {
            name: "evenkeel-web",
            uid: "p",
            resource_version: "5",
        }],
    })
    .expect("a baseline")
}

fn state() -> State {
    let mut state = State::new(baseline("10"));
    for id in [MAPS, DEPLOYMENTS, PARENTS] {
        state.set_open(id, true);
        let mut at = state
            .table
            .kind(id)
            .map(|kind| kind.position.to_string())
            .unwrap_or_default();
        state.resume(id, &mut at);
    }
    state
}

fn saw(state: &mut State, live: &LiveObject) -> News {
    state.saw(MAPS, live, false, |_| false)
}

fn told(state: &mut State) -> Vec<String> {
    let alarm = state.take_alarm();
    alarm.map_or_else(
        |_| Vec::new(),
        |alarm| alarm.departures.iter().map(ToString::to_string).collect(),
    )
}

#[tokio::test(start_paused = true)]
async fn what_departs_is_told_once_and_what_is_put_right_is_not() {
    let mut state = state();
    assert!(state.is_calm());
    assert_eq!(saw(&mut state, &good("a", "11")), News::default());
    assert!(state.is_calm(), "a change by others is no drift");
    assert!(saw(&mut state, &bad("a", "12")).alarm);
    assert!(!state.is_calm());
    assert_eq!(told(&mut state).len(), 1);
    assert_eq!(state.take_alarm(), Err(None));
    assert!(!saw(&mut state, &bad("a", "13")).alarm, "just told");
    advance(TOLD_ONCE_WITHIN).await;
    assert!(
        saw(&mut state, &bad("a", "14")).alarm,
        "nobody did anything about it"
    );
    saw(&mut state, &good("a", "15"));
    assert!(
        state.is_calm() && told(&mut state).is_empty(),
        "put right before it was told"
    );
    let last = good("a", "16");
    assert!(state.saw(MAPS, &last, true, |_| false).alarm);
    assert_eq!(told(&mut state), ["ConfigMap/a in namespace shop is missing"]);
}

#[tokio::test(start_paused = true)]
async fn who_may_be_gone_may_and_strangers_do_not_matter() {
    let mut state = state();
    for object in ["kept", "done"] {
        state.saw(MAPS, &good(object, "11"), true, |_| false);
        assert!(state.is_calm(), "{object}");
    }
    let controller = json!({"ownerReferences": [{"controller": true}]});
    let copy = live_as("copy", "11", &fields(), &controller);
    saw(&mut state, &copy);
    assert!(state.is_calm(), "a copy of our label is not ours");
    let left = good("left", "12");
    assert!(saw(&mut state, &left).alarm, "an interrupted attempt left it");
    state.saw(MAPS, &left, true, |_| false);
    assert!(state.is_calm());
    let shard = json!({"labels": {"evenkeel.dev/record-of": "evenkeel-web"}});
    state.saw(
        PARENTS,
        &live_as("evenkeel-x", "12", &json!({}), &shard),
        false,
        |_| false,
    );
    assert!(state.is_calm(), "what stands beside a record is no record");
}

#[tokio::test(start_paused = true)]
async fn another_check_is_right_about_all_that_it_saw() {
    let mut state = state();
    saw(&mut state, &bad("a", "12"));
    assert_eq!(told(&mut state).len(), 1);
    // Seen by the check, and after it.
    state.saw(DEPLOYMENTS, &bad("d", "14"), false, |_| false);
    state.renew(baseline("13"));
    assert_eq!(told(&mut state).len(), 1, "only what came after it");
    assert!(!state.is_calm());
    saw(&mut state, &bad("a", "12"));
    saw(&mut state, &bad("a", "13"));
    assert!(told(&mut state).is_empty(), "old news");
    // A watch that is taken up again begins where the check ended.
    let mut at = "12".to_owned();
    state.resume(MAPS, &mut at);
    assert_eq!(at, "13");
    let mut later = "20".to_owned();
    state.resume(MAPS, &mut later);
    assert_eq!(later, "20");
    assert!(
        state.table.kinds.iter().all(|kind| kind.open),
        "no watch was lost by it"
    );
    let expected = |inputs: &str| {
        [Expected {
            component: name(),
            inputs: Some(Digest::of(inputs)),
            readiness: ReadinessRules::default(),
        }]
    };
    assert!(state.table.expects(&expected("inputs")) && !state.table.expects(&expected("others")));
}

#[tokio::test(start_paused = true)]
async fn a_list_shows_what_was_missed() {
    let mut state = state();
    let listed = |lives: Vec<LiveObject>| -> LiveObjects {
        let kind = GroupKind::new("", "ConfigMap");
        lives
            .into_iter()
            .map(|live| (live.reference(&kind), live))
            .collect()
    };
    assert!(
        !state
            .listed(MAPS, &listed(vec![good("a", "11")]), |_, _| false)
            .alarm
    );
    assert!(state.is_calm());
    let left = listed(vec![good("left", "12")]);
    assert!(state.listed(MAPS, &left, |_, _| false).alarm);
    let mut all = told(&mut state);
    all.sort();
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(
        all[0].contains("ConfigMap/(one of them)") && all[1].contains("ConfigMap/left"),
        "{all:?}"
    );
    state.listed(MAPS, &listed(vec![good("a", "13")]), |_, _| false);
    assert!(state.is_calm(), "both are as they were again");
    assert!(state.is_lost(MAPS).alarm);
}

#[tokio::test(start_paused = true)]
async fn readiness_is_in_doubt_only_where_a_rule_says_what_it_is() {
    let mut state = state();
    let status = good("d", "11");
    assert!(
        !state.saw(DEPLOYMENTS, &status, false, |_| true).doubt,
        "judged at this version already"
    );
    assert!(!saw(&mut state, &good("a", "11")).doubt);
    let again = good("d", "12");
    assert!(state.saw(DEPLOYMENTS, &again, false, |_| false).doubt);
    assert!(!state.is_calm());
    let doubts = state.doubts(10);
    assert_eq!(doubts.len(), 1);
    let (key, doubt) = doubts[0].clone();
    assert!(state.judged(key, &doubt, false).alarm);
    let alarm = state.take_alarm().expect("an alarm");
    assert!(alarm.readiness && alarm.departures.is_empty());
    // Written again: judged again, whatever is remembered.
    assert!(state.saw(DEPLOYMENTS, &good("d", "13"), false, |_| true).doubt);
    assert_eq!(
        state.judged(key, &doubt, true),
        News::default(),
        "that was another version"
    );
    let (key, doubt) = state.doubts(10)[0].clone();
    assert!(state.judged(key, &doubt, true).alarm);
    assert!(state.take_alarm().is_ok_and(|alarm| alarm.readiness) && state.is_calm());
    // While a record shows that somebody works on the component, that is who judges.
    let parent = live_as(
        "evenkeel-web",
        "14",
        &json!({}),
        &json!({"namespace": "evenkeel-system", "uid": "p"}),
    );
    assert!(state.saw(PARENTS, &parent, false, |_| false).alarm);
    assert!(state.saw(DEPLOYMENTS, &good("d", "15"), false, |_| false).doubt);
    assert!(state.doubts(10).is_empty() && !state.is_calm());
}

#[tokio::test(start_paused = true)]
async fn what_is_fought_over_is_told_later_and_later() {
    let mut state = state();
    let mut version = 11;
    let mut waited = Vec::new();
    for _ in 0..7 {
        saw(&mut state, &bad("a", &version.to_string()));
        let started = Instant::now();
        let alarm = loop {
            match state.take_alarm() {
                Ok(alarm) => break alarm,
                Err(next) => advance(next.expect("some time") - Instant::now()).await,
            }
        };
        assert_eq!(alarm.count, 1);
        waited.push(started.elapsed().as_secs());
        saw(&mut state, &good("a", &(version + 1).to_string()));
        version += 2;
    }
    assert_eq!(waited, [0, 0, 0, 1, 2, 4, 8]);
    advance(FOUGHT_WITHIN + Duration::from_secs(1)).await;
    saw(&mut state, &bad("a", "99"));
    assert!(state.take_alarm().is_ok(), "peace was made meanwhile");
}
