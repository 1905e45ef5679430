//! What the cluster itself remembers of a component: compact, in parts when it is large, and enough to go on from when
//! everything else is lost.

use evenkeel_cluster::{Difference, Limits, ManifestObject, Verb, Verdict};
use serde_json::Value;

use crate::component::Component;
use crate::documents::config_map;
use crate::env::Env;

const PARENTS: &str = "/api/v1/namespaces/evenkeel-system/secrets";

fn documents(count: usize) -> Vec<ManifestObject> {
    (0..count)
        .map(|index| config_map(&format!("c{index:05}"), "k", "1"))
        .collect()
}

/// The parts of a component's record, by name, with their sizes in base64.
pub(super) async fn parts(env: &Env, component: &Component<'_>) -> Vec<(String, usize)> {
    let selector = format!("evenkeel.dev/record-of={}", component.target.parent_name());
    let listed = env.must(&format!("{PARENTS}?labelSelector={selector}")).await;
    let size = |part: &Value| part["data"]["objects"].as_str().unwrap().len();
    let name = |part: &Value| part["metadata"]["name"].as_str().unwrap().to_owned();
    let items = listed["items"].as_array().unwrap();
    items.iter().map(|part| (name(part), size(part))).collect()
}

/// A record that one Secret cannot hold is kept in several, read by the same LIST as the parents, and only what changed of
/// it is written anew.
pub(crate) async fn a_large_record_is_kept_in_parts(env: &Env) {
    let limits = Limits {
        record_max: 3_000,
        apply_concurrency: 8,
        ..Limits::default()
    };
    let env = &env.again(limits).await;
    let mut component = Component::new(env);
    let all = documents(120);
    component.run(&all).await.unwrap();
    let first = parts(env, &component).await;
    assert!(first.len() >= 4, "{first:?}");
    assert!(first.iter().all(|(_, size)| *size <= 3_000), "{first:?}");
    let parent = env.must(&component.parent_path()).await;
    assert!(
        parent["data"]["record"].as_str().unwrap().len() < 1_000,
        "{parent}"
    );
    let record = component.target.record().await.unwrap().unwrap();
    assert_eq!((record.objects.len(), record.unfinished), (120, false));

    // A new process with no memory and no database finds all of it, and writes nothing.
    let stranger = &env.again(limits).await;
    let fresh = Component::new(stranger);
    let before = stranger.cluster.requests();
    assert!(matches!(fresh.check(&all).await, Verdict::Unchanged));
    let sent = stranger.cluster.requests().since(&before);
    assert_eq!((sent.of(Verb::List), sent.writes()), (2, 0), "{sent:?}");
    let pass = fresh.run(&all).await.unwrap();
    assert!(pass.plan.is_noop() && pass.changes.is_empty());
    assert_eq!(stranger.cluster.requests().since(&before).writes(), 0);

    // One object changes: one part is written anew, and the old one goes.
    let mut changed = all.clone();
    changed[7] = config_map("c00007", "k", "2");
    component.run(&changed).await.unwrap();
    let second = parts(env, &component).await;
    let kept = second.iter().filter(|part| first.contains(part)).count();
    assert_eq!((second.len(), kept), (first.len(), first.len() - 1));

    // Somebody removes a part: nothing is lost but the knowledge, which comes back.
    env.remove(&format!("{PARENTS}/{}", second[0].0)).await;
    let verdict = component.check(&changed).await;
    assert!(
        matches!(&verdict, Verdict::Differs(found) if found[..] == [Difference::Unfinished]),
        "{verdict:?}"
    );
    let uid = env.must(&component.path("configmaps", "c00007")).await["metadata"]["uid"].clone();
    let pass = component.run(&changed).await.unwrap();
    assert!(pass.changes.is_empty(), "{:?}", pass.done());
    assert_eq!(
        env.must(&component.path("configmaps", "c00007")).await["metadata"]["uid"],
        uid
    );
    assert!(matches!(component.check(&changed).await, Verdict::Unchanged));
    assert_eq!(parts(env, &component).await, second);

    // It becomes small again, and one Secret holds it.
    component.agreed = true;
    component.run(&documents(3)).await.unwrap();
    assert_eq!(parts(env, &component).await, []);
    let parent = env.must(&component.parent_path()).await;
    assert!(parent["data"].get("shards").is_none(), "{parent}");
    component.run(&all).await.unwrap();
    component.delete().await.unwrap();
    assert_eq!(parts(env, &component).await, []);
    assert!(env.get(&component.parent_path()).await.is_none());
}

/// 20,000 objects of one component, within the bound that every mothership has. A real server gets fewer of them and a
/// bound to match: there, it is the server that takes its time.
pub(crate) async fn twenty_thousand_objects_are_remembered(env: &Env) {
    let (count, limits) = if env.is_real() {
        let limits = Limits {
            record_max: 20_000,
            ..Limits::default()
        };
        (600, limits)
    } else {
        (20_000, Limits::default())
    };
    let limits = Limits {
        apply_concurrency: 16,
        in_flight: 16,
        ..limits
    };
    let env = &env.again(limits).await;
    let component = Component::new(env);
    let all = documents(count);
    component.apply(&all).await.unwrap();
    let parts = parts(env, &component).await;
    assert!(parts.len() >= 2, "{parts:?}");
    assert!(
        parts.iter().all(|(_, size)| *size <= limits.record_max),
        "{parts:?}"
    );
    let fresh = &env.again(limits).await;
    let component = Component::new(fresh);
    let before = fresh.cluster.requests();
    assert!(matches!(component.check(&all).await, Verdict::Unchanged));
    let sent = fresh.cluster.requests().since(&before);
    let pages = count.div_ceil(limits.page_size) as u64;
    assert_eq!((sent.of(Verb::List), sent.writes()), (1 + pages, 0), "{sent:?}");
}
