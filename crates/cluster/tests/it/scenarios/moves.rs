//! Objects that move between components of one cluster: they change hands by their label, and are never deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenkeel_cluster::{
    Error, ErrorClass, ManifestObject, Rendering, Siblings, Unknown, Verb, Verdict, Wanted,
};
use evenkeel_core::{ComponentName, ObjectRef, PlanAction};
use futures::future::BoxFuture;

use crate::component::Component;
use crate::documents::{config_map, deployment, service};
use crate::env::Env;

/// What a component renders, as its siblings know it.
fn objects(namespace: &str, documents: &[ManifestObject]) -> BTreeSet<ObjectRef> {
    let object = |document: &ManifestObject| ObjectRef {
        group: match document.object["apiVersion"].as_str().unwrap().split_once('/') {
            Some((group, _)) => group.to_owned(),
            None => String::new(),
        },
        kind: document.object["kind"].as_str().unwrap().to_owned(),
        namespace: Some(namespace.to_owned()),
        name: document.object["metadata"]["name"].as_str().unwrap().to_owned(),
    };
    documents.iter().map(object).collect()
}

/// Lets components know what each of them renders.
pub(super) fn introduce(components: &mut [(&mut Component<'_>, Option<&[ManifestObject]>)]) {
    let rendering = components.iter().filter_map(|(component, documents)| {
        let documents = (*documents)?;
        let rendered = objects(&component.namespace, documents);
        Some((component.target.name().clone(), rendered))
    });
    let rendering = Arc::new(Rendering(rendering.collect()));
    for (component, _) in components {
        component.target = component.target.clone().with_siblings(rendering.clone());
    }
}

/// Two components in one namespace: the one that loses objects, and the one that gains them.
pub(super) fn two<'e>(env: &'e Env, suffix: &str) -> (Component<'e>, Component<'e>) {
    let a = Component::named(env, &format!("a-{suffix}"));
    let mut b = Component::named(env, &format!("b-{suffix}"));
    b.namespace.clone_from(&a.namespace);
    (a, b)
}

pub(super) async fn uids(env: &Env, paths: &[String]) -> Vec<String> {
    let mut uids = Vec::new();
    for path in paths {
        uids.push(
            env.must(path).await["metadata"]["uid"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    uids
}

pub(super) fn moving() -> [ManifestObject; 3] {
    [config_map("c2", "k", "1"), deployment("web", 1), service("web")]
}

pub(super) fn paths(component: &Component<'_>) -> Vec<String> {
    vec![
        component.path("configmaps", "c2"),
        component.path("deployments", "web"),
        component.path("services", "web"),
    ]
}

/// DEL-02, in both orders.
pub(crate) async fn an_object_moves_between_components(env: &Env) {
    for losing_first in [true, false] {
        let (mut a, mut b) = two(env, if losing_first { "first" } else { "last" });
        let own = [config_map("c1", "k", "1")];
        let all: Vec<ManifestObject> = own.iter().cloned().chain(moving()).collect();
        let others = [config_map("c3", "k", "1")];
        introduce(&mut [(&mut a, Some(&all)), (&mut b, Some(&others))]);
        a.run(&all).await.unwrap();
        b.run(&others).await.unwrap();
        let paths = paths(&a);
        let before = uids(env, &paths).await;
        let sent = env.cluster.requests();

        let (to_a, to_b) = (own, [others.as_slice(), &moving()].concat());
        introduce(&mut [(&mut a, Some(&to_a)), (&mut b, Some(&to_b))]);
        let (left, taken) = if losing_first {
            let left = a.run(&to_a).await.unwrap();
            (left, b.run(&to_b).await.unwrap())
        } else {
            let taken = b.run(&to_b).await.unwrap();
            (a.run(&to_a).await.unwrap(), taken)
        };
        assert!(left.changes.is_empty(), "{:?}", left.done());
        assert_eq!(taken.planned(PlanAction::Adopt).len(), 3, "{:?}", taken.plan);
        let reason = taken
            .plan
            .changes
            .iter()
            .find(|change| change.action == PlanAction::Adopt);
        assert_eq!(
            reason.unwrap().reason,
            format!("it moves here from component {}", a.target.name())
        );
        if losing_first {
            let reason = format!(
                "no longer rendered, stays: it moves to component {}",
                b.target.name()
            );
            assert!(
                left.plan.skipped.iter().all(|skipped| skipped.reason == reason),
                "{:?}",
                left.plan.skipped
            );
        }
        assert_eq!(uids(env, &paths).await, before, "the same objects");
        for path in &paths {
            let live = env.must(path).await;
            assert_eq!(
                live["metadata"]["labels"]["applyset.kubernetes.io/part-of"],
                b.target.applyset_id()
            );
        }
        assert_eq!(
            env.must(&paths[1]).await["metadata"]["generation"],
            1,
            "no rollout"
        );
        if !env.is_real() {
            // Other scenarios share the real cluster, and this client.
            assert_eq!(env.cluster.requests().since(&sent).of(Verb::Delete), 0);
        }
        // And all is as it should be, for both.
        for (component, documents) in [(&a, &to_a[..]), (&b, &to_b[..])] {
            let verdict = component.check(documents).await;
            assert!(matches!(verdict, Verdict::Unchanged), "{verdict:?}");
            assert!(component.run(documents).await.unwrap().changes.is_empty());
        }
        // Each is deleted without touching what is the other's.
        assert!(a.delete().await.unwrap().complete);
        assert_eq!(uids(env, &paths).await, before);
    }
}

/// A component that is no longer listed loses its objects to one that renders them: deleted or let go, before or after.
pub(crate) async fn the_losing_component_goes(env: &Env) {
    for (suffix, losing_first, orphan) in [
        ("first", true, false),
        ("last", false, false),
        ("orphan", true, true),
    ] {
        let (mut a, mut b) = two(env, suffix);
        let all: Vec<ManifestObject> = [config_map("c1", "k", "1")].into_iter().chain(moving()).collect();
        introduce(&mut [(&mut a, Some(&all)), (&mut b, Some(&[]))]);
        a.run(&all).await.unwrap();
        let paths = paths(&a);
        let before = uids(env, &paths).await;

        let to_b = moving();
        introduce(&mut [(&mut a, None), (&mut b, Some(&to_b))]);
        if !losing_first {
            let taken = b.run(&to_b).await.unwrap();
            assert_eq!(taken.planned(PlanAction::Adopt).len(), 3, "{:?}", taken.plan);
        }
        let gone = if orphan {
            a.target.orphan(&a.attempt(), &a.observer()).await.unwrap()
        } else {
            a.delete().await.unwrap()
        };
        assert!(gone.complete);
        assert_eq!(uids(env, &paths).await, before, "{suffix}: not deleted");
        assert!(env.get(&a.parent_path()).await.is_none());
        let taken = b.run(&to_b).await.unwrap();
        assert_eq!(taken.planned(PlanAction::Create), Vec::<String>::new());
        assert_eq!(uids(env, &paths).await, before, "{suffix}: the same objects");
        let verdict = b.check(&to_b).await;
        assert!(matches!(verdict, Verdict::Unchanged), "{verdict:?}");
        let c1 = env.get(&a.path("configmaps", "c1")).await;
        assert_eq!(c1.is_some(), orphan, "what nobody renders goes, or is let go");
    }
}

pub(crate) async fn what_two_components_render_is_refused(env: &Env) {
    let (mut a, mut b) = two(env, "x");
    let (to_a, to_b) = (
        [config_map("c1", "k", "1"), config_map("both", "k", "a")],
        [config_map("c3", "k", "1"), config_map("both", "k", "b")],
    );
    introduce(&mut [(&mut a, Some(&to_a)), (&mut b, Some(&to_b))]);
    let before = env.cluster.requests();
    let names = |error: Error| {
        assert_eq!(error.class(), ErrorClass::Invalid, "{error}");
        let Error::RenderedTwice(twice) = error else {
            panic!("{error}")
        };
        assert_eq!(twice.len(), 1, "{twice:?}");
        twice[0].to_string()
    };
    // Nobody has it yet: neither gets it.
    let text = names(a.run(&to_a).await.unwrap_err());
    assert_eq!(
        text,
        format!(
            "ConfigMap/both in namespace {} by {} and {}",
            a.namespace,
            a.target.name(),
            b.target.name()
        )
    );
    if !env.is_real() {
        assert_eq!(env.cluster.requests().since(&before).writes(), 0);
    }
    // One has it: it keeps it, and goes on.
    introduce(&mut [(&mut a, Some(&to_a)), (&mut b, Some(&to_b[..1]))]);
    a.run(&to_a).await.unwrap();
    introduce(&mut [(&mut a, Some(&to_a)), (&mut b, Some(&to_b))]);
    names(b.run(&to_b).await.unwrap_err());
    b.options.adopt = true;
    names(b.run(&to_b).await.unwrap_err());
    b.options.adopt = false;
    assert!(env.get(&b.path("configmaps", "c3")).await.is_none());
    let more = [to_a.as_slice(), &[config_map("c4", "k", "1")]].concat();
    a.run(&more).await.unwrap();
    assert_eq!(env.must(&a.path("configmaps", "both")).await["data"]["k"], "a");
    // Whoever knows of no siblings is told whose it is.
    let alone = Component::named(env, "b-x");
    let mut alone_there = Component::named(env, "alone");
    alone_there.namespace.clone_from(&a.namespace);
    let error = alone_there.run(&to_b[1..]).await.unwrap_err();
    let owner = format!("component {} of this cluster", a.target.name());
    assert!(error.to_string().contains(&owner), "{error}");
    drop(alone);
}

/// Siblings of which one cannot be rendered.
#[derive(Debug)]
struct Silent(ComponentName, bool);

impl Siblings for Silent {
    fn wanting<'a>(&'a self, _: &'a ComponentName, _: &'a BTreeSet<ObjectRef>) -> BoxFuture<'a, Wanted> {
        let unknown = Unknown {
            reason: "the registry does not answer".to_owned(),
            may_pass: self.1,
        };
        let wanted = Wanted {
            by: BTreeMap::new(),
            unknown: BTreeMap::from([(self.0.clone(), unknown)]),
        };
        Box::pin(std::future::ready(wanted))
    }
}

/// A deletion cannot be taken back: it waits while another component may want the object.
pub(crate) async fn what_may_be_wanted_is_not_deleted(env: &Env) {
    let (mut a, mut b) = two(env, "x");
    let all = [config_map("c1", "k", "1"), config_map("c2", "k", "1")];
    a.run(&all).await.unwrap();
    let silent = |passing| Arc::new(Silent(b.target.name().clone(), passing));
    let untouched = a.target.clone();
    a.target = untouched.clone().with_siblings(silent(true));
    let error = a.run(&all[..1]).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Transient, "{error}");
    let text = error.to_string();
    assert!(
        text.contains("ConfigMap/c2") && text.contains("the registry does not answer"),
        "{text}"
    );
    let error = a.delete().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Transient, "{error}");
    env.must(&a.path("configmaps", "c2")).await;
    // What cannot be rendered at all stands in nobody's way.
    a.target = untouched.with_siblings(silent(false));
    assert_eq!(a.run(&all[..1]).await.unwrap().done(), ["delete ConfigMap/c2"]);
    // But nothing is taken from one that may still want it.
    b.target = b
        .target
        .clone()
        .with_siblings(Arc::new(Silent(a.target.name().clone(), false)));
    let error = b.run(&all[..1]).await.unwrap_err();
    assert!(matches!(&error, Error::SiblingUnknown(_)), "{error}");
}
