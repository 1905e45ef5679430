//! Drift as it happens: what live watches tell, what they do not, and what they survive.

use std::time::Duration;

use evenkeel_cluster::{Verb, Verdict, WatchOptions};
use evenkeel_testkit::FaultProxy;
use serde_json::json;

use super::apply::scale;
use crate::documents::{autoscaler, config_map, deployment, doc, secret, service_account};
use crate::env::{Env, connect};
use crate::watched::{Watched, baseline, expected, options, over_a_wire};

/// An annotation of ours, a changed label, a changed field, a deletion; of a kind with a generation and kinds without.
pub(crate) async fn every_edit_is_seen(env: &Env) {
    let mut noted = config_map("noted", "k", "1");
    noted.object["metadata"]["annotations"] = json!({"ours": "1"});
    let documents = [
        deployment("web", 1),
        noted,
        config_map("labelled", "k", "1"),
        config_map("changed", "k", "1"),
        config_map("deleted", "k", "1"),
        secret("hidden", "password", "hunter2"),
    ];
    let watched = Watched::new(env, &documents, options()).await;
    let component = &watched.component;
    let path = |collection: &str, name: &str| component.path(collection, name);
    let edits = [
        (
            path("deployments", "web"),
            json!({"spec": {"replicas": 2}}),
            "web",
        ),
        (
            path("configmaps", "noted"),
            json!({"metadata": {"annotations": {"ours": "2"}}}),
            "noted",
        ),
        (
            path("configmaps", "labelled"),
            json!({"metadata": {"labels": {"app": null}}}),
            "labelled",
        ),
        (
            path("configmaps", "changed"),
            json!({"data": {"k": "2"}}),
            "changed",
        ),
        (
            path("secrets", "hidden"),
            json!({"stringData": {"password": "evil"}}),
            "hidden",
        ),
    ];
    for (path, patch, name) in edits {
        env.change(&path, &patch).await;
        assert_eq!(watched.told(&[name]).await.len(), 1, "{name} and nothing else");
        assert!(!watched.watch.is_calm());
        let done = watched.heal(&documents).await;
        assert!(
            done.len() == 1 && done[0].ends_with(&format!("/{name}")),
            "{done:?}"
        );
    }
    env.remove(&path("configmaps", "deleted")).await;
    assert_eq!(watched.told(&["deleted"]).await.len(), 1);
    assert_eq!(watched.heal(&documents).await, ["create ConfigMap/deleted"]);
    // Our label gone: the watch does not see the object any more.
    env.change(
        &path("configmaps", "changed"),
        &json!({"metadata": {"labels": {"applyset.kubernetes.io/part-of": null}}}),
    )
    .await;
    assert_eq!(watched.told(&["changed"]).await.len(), 1);
    watched.heal(&documents).await;
    // A record of ours.
    env.change(
        &component.parent_path(),
        &json!({"metadata": {"annotations": {"theirs": "1"}}}),
    )
    .await;
    watched.told(&[component.target.parent_name()]).await;
}

/// G7: defaults, other notations of a quantity, replicas of an autoscaler, injected fields and containers, a caBundle, the
/// Secrets of a service account, status.
pub(crate) async fn no_false_drift(env: &Env) {
    let mut web = deployment("web", 2);
    web.object["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({"limits": {"cpu": "1000m", "memory": "1Gi"}});
    let hook = format!("{}.example.com", env.name);
    let webhook = doc(
        "templates/webhook.yaml",
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": hook},
            "webhooks": [{"name": hook, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
                "clientConfig": {"url": "https://127.0.0.1:1/"},
                "rules": [{"apiGroups": ["nobody.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"]}]}]}),
    );
    let mut scaler = autoscaler("web");
    scaler.object["metadata"]["name"] = json!("scaler");
    let documents = [
        web,
        scaler,
        config_map("a", "k", "1"),
        config_map("marker", "k", "1"),
        service_account("account"),
        webhook,
    ];
    let watched = Watched::new(env, &documents, options()).await;
    let component = &watched.component;
    let web = component.path("deployments", "web");
    scale(env, component, 5).await;
    env.change(
        &web,
        &json!({"metadata": {"annotations": {"deployment.kubernetes.io/theirs": "1"}}, "spec": {"revisionHistoryLimit": 3}}),
    )
    .await;
    let inject = json!({"spec": {"template": {"spec": {"containers": [{"name": "injected", "image": "registry.example/side:1"}]}}}});
    let (status, answer) = env
        .send(
            "PATCH",
            &format!("{web}?fieldManager=injector"),
            "application/strategic-merge-patch+json",
            Some(&inject),
        )
        .await;
    assert_eq!(status, 200, "{answer}");
    env.change(
        &component.path("configmaps", "a"),
        &json!({"data": {"theirs": "x"}}),
    )
    .await;
    env.change(
        &component.path("serviceaccounts", "account"),
        &json!({"secrets": [{"name": "account-token"}]}),
    )
    .await;
    let path = format!("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{hook}");
    let inject = json!([{"op": "add", "path": "/webhooks/0/matchPolicy", "value": "Exact"}]);
    let (status, answer) = env
        .send(
            "PATCH",
            &format!("{path}?fieldManager=injector"),
            "application/json-patch+json",
            Some(&inject),
        )
        .await;
    assert_eq!(status, 200, "{answer}");
    // Kinds are watched apart, so one real edit of each shows that all before it was seen.
    let marks = [
        (
            component.path("configmaps", "marker"),
            json!({"data": {"k": "2"}}),
            "marker",
        ),
        (
            component.path("serviceaccounts", "account"),
            json!({"metadata": {"labels": {"applyset.kubernetes.io/part-of": null}}}),
            "account",
        ),
        (
            path,
            json!({"metadata": {"labels": {"applyset.kubernetes.io/part-of": null}}}),
            hook.as_str(),
        ),
        (
            component.path("horizontalpodautoscalers", "scaler"),
            json!({"spec": {"maxReplicas": 11}}),
            "scaler",
        ),
        (web.clone(), json!({"metadata": {"labels": {"app": null}}}), "web"),
    ];
    let names: Vec<&str> = marks.iter().map(|mark| mark.2).collect();
    for (path, patch, _) in &marks {
        env.change(path, patch).await;
    }
    let told = watched.told(&names).await;
    assert_eq!(told.len(), names.len(), "{told:?}");
    // Nothing else had to be put right either.
    let done = watched.component.run(&documents).await.unwrap().done();
    assert_eq!(done.len(), names.len(), "{done:?}");
    let live = env.must(&web).await;
    assert_eq!(live["spec"]["replicas"], 5, "the autoscaler's");
    assert_eq!(
        live["spec"]["template"]["spec"]["containers"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

/// A watched cluster that nobody touches is asked nothing.
pub(crate) async fn nothing_is_asked(env: &Env) {
    let documents = [config_map("a", "k", "1"), secret("b", "k", "1")];
    let watched = Watched::new(env, &documents, options()).await;
    let expected_now = expected(&watched.component, &documents);
    let before = env.cluster.requests();
    for _ in 0..100 {
        assert!(watched.watch.vouches(&expected_now));
    }
    let others = expected(&watched.component, &documents[..1]);
    assert!(
        !watched.watch.vouches(&others) && !watched.watch.vouches(&[]),
        "it vouches only for what was found"
    );
    // A foreign change that is no drift is remembered, not asked about.
    env.change(
        &watched.component.path("configmaps", "a"),
        &json!({"data": {"theirs": "1"}}),
    )
    .await;
    env.change(
        &watched.component.path("configmaps", "a"),
        &json!({"data": {"k": "2"}}),
    )
    .await;
    watched.told(&["a"]).await;
    assert_eq!(env.cluster.requests().since(&before).total(), 0);
    assert!(!watched.watch.vouches(&expected_now));
    let size = watched.watch.size();
    assert!(size.objects >= 3 && size.bytes > 0, "{size:?}");
}

/// What we write ourselves is not told as somebody's change.
pub(crate) async fn our_own_writes_are_no_drift(env: &Env) {
    let first = [config_map("a", "k", "1"), deployment("web", 1)];
    let watched = Watched::new(env, &first, options()).await;
    let component = &watched.component;
    let mut web = deployment("web", 1);
    web.object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example/main:2");
    let second = [config_map("a", "k", "2"), web];
    let done = component.run(&second).await.unwrap().done();
    assert_eq!(done.len(), 2, "{done:?}");
    let told = watched.told(&[component.target.parent_name()]).await;
    assert_eq!(told.len(), 1, "the record and nothing else: {told:?}");
    watched.watch.renew(baseline(component, &second).await);
    watched.until_calm().await;
    assert!(watched.watch.vouches(&expected(component, &second)));
    // What comes after that is told as before.
    env.change(&component.path("configmaps", "a"), &json!({"data": {"k": "3"}}))
        .await;
    assert_eq!(watched.told(&["a"]).await.len(), 1);
}

/// KUB-06: the way to the cluster is cut; what happened meanwhile shows once it is back.
pub(crate) async fn an_edit_while_the_wire_is_cut_is_seen(env: &Env) {
    let (wire, over) = over_a_wire(env).await;
    let documents = [config_map("a", "k", "1"), config_map("b", "k", "1")];
    let watched = Watched::new(&over, &documents, options()).await;
    for round in 0..2 {
        wire.shut();
        watched.until_lost().await;
        assert!(!watched.watch.vouches(&expected(&watched.component, &documents)));
        let path = watched.component.path("configmaps", "a");
        if round == 0 {
            env.change(&path, &json!({"data": {"k": "2"}})).await;
        } else {
            env.remove(&path).await;
        }
        wire.reopen();
        assert_eq!(watched.told(&["a"]).await.len(), 1);
        watched.heal(&documents).await;
    }
    // Cut and back at once: nothing to tell.
    wire.cut();
    watched.until_lost().await;
    watched.until_calm().await;
}

/// KUB-06: 410, the server has forgotten what came after the last event, so the kind is listed and compared.
pub(crate) async fn what_the_server_forgot_is_compared(env: &Env) {
    let proxy = FaultProxy::start(connect(&env.kubeconfig()).await.raw_client()).await;
    let mut plain = crate::env::options();
    plain.policy = evenkeel_cluster::KubeconfigPolicy::Own {
        allow_exec: false,
        base: std::env::temp_dir(),
    };
    let kubeconfig = evenkeel_core::Sensitive::new(proxy.kubeconfig());
    let cluster = evenkeel_cluster::Cluster::connect(&kubeconfig, plain)
        .await
        .unwrap();
    let over = env.with(cluster, env.name.clone());
    let documents = [
        config_map("changed", "k", "1"),
        config_map("deleted", "k", "1"),
        config_map("same", "k", "1"),
    ];
    let short = WatchOptions {
        lifetime: Duration::from_secs(1),
        ..options()
    };
    let watched = Watched::new(&over, &documents, short).await;
    proxy.expire_watches(true);
    watched.until_lost().await;
    let lists = || over.cluster.requests().of(Verb::List);
    let before = lists();
    evenkeel_testkit::eventually("both kinds to be listed", async || {
        if lists() >= before + 4 {
            Ok(())
        } else {
            Err(lists())
        }
    })
    .await;
    env.change(
        &watched.component.path("configmaps", "changed"),
        &json!({"data": {"k": "2"}}),
    )
    .await;
    env.remove(&watched.component.path("configmaps", "deleted")).await;
    let mut told = watched.told(&["changed"]).await;
    if told.len() == 1 {
        told.extend(
            watched
                .alarm()
                .await
                .departures
                .iter()
                .map(|difference| difference.to_string()),
        );
    }
    assert_eq!(told.len(), 2, "{told:?}");
    proxy.expire_watches(false);
    let mut done = watched.heal(&documents).await;
    done.sort();
    assert_eq!(done, ["create ConfigMap/deleted", "update ConfigMap/changed"]);
}

/// All watches and all requests of a cluster share one connection, also when nothing was asked for long.
pub(crate) async fn one_connection_carries_it_all(env: &Env) {
    let (wire, over) = over_a_wire(env).await;
    let documents = [
        config_map("a", "k", "1"),
        secret("b", "k", "1"),
        service_account("c"),
        deployment("web", 1),
    ];
    let watched = Watched::new(&over, &documents, options()).await;
    assert_eq!(
        watched.watch.watches(),
        5,
        "one per kind, and one for the records"
    );
    evenkeel_testkit::eventually("one connection", async || match wire.open() {
        1 => Ok(()),
        open => Err(open),
    })
    .await;
    let made = wire.connections();
    for _ in 0..3 {
        assert!(matches!(
            watched.component.check(&documents).await,
            Verdict::Unchanged
        ));
    }
    env.change(
        &watched.component.path("configmaps", "a"),
        &json!({"data": {"k": "2"}}),
    )
    .await;
    watched.told(&["a"]).await;
    watched.heal(&documents).await;
    assert_eq!((wire.connections(), wire.open()), (made, 1));
}

/// Readiness is judged again where a rule says what it is: one GET, and an alarm only when the verdict is another.
pub(crate) async fn readiness_is_judged_again(env: &Env) {
    let documents = [deployment("web", 1), config_map("a", "k", "1")];
    let watched = Watched::new(env, &documents, options()).await;
    let component = &watched.component;
    let pods = env.must(&component.collection("pods")).await;
    let pod = pods["items"][0]["metadata"]["name"].as_str().unwrap().to_owned();
    env.set_ready(&component.path("pods", &pod), false).await;
    let alarm = watched.alarm().await;
    assert!(alarm.readiness && alarm.departures.is_empty(), "{alarm:?}");
    assert!(matches!(component.check(&documents).await, Verdict::NotReady(_)));
    env.set_ready(&component.path("pods", &pod), true).await;
    let alarm = watched.alarm().await;
    assert!(alarm.readiness && alarm.departures.is_empty(), "{alarm:?}");
    watched.until_calm().await;
    assert!(matches!(component.check(&documents).await, Verdict::Unchanged));
}
