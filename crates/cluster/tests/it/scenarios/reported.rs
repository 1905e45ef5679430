//! Faults that people reported of other tools, by the numbers of the cases, as far as no other scenario shows them.

use std::time::Duration;

use evenkeel_cluster::{DeleteOptions, Error, Event, Limits, Verdict};
use evenkeel_core::PlanAction;
use serde_json::{Value, json};

use crate::component::Component;
use crate::documents::{autoscaler, config_map, definition, deployment, doc, service, widget};
use crate::env::{Env, WAIT, short};
use crate::scenarios::apply::scale;

/// APL-02: the old entry of a named port that somebody else owns as well is named with its owner.
pub(crate) async fn an_entry_of_somebody_else_is_named(env: &Env) {
    let component = Component::new(env);
    let ports = |port: u16| {
        let mut service = service("web");
        service.object["spec"]["ports"] = json!([{"name": "http", "port": port, "protocol": "TCP"}]);
        [service]
    };
    component.run(&ports(80)).await.unwrap();
    // Somebody applies the same entry, so that both own it.
    let theirs = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}});
    let path = component.path("services", "web");
    let (status, answer) = env
        .send(
            "PATCH",
            &format!("{path}?fieldManager=somebody&force=true"),
            "application/apply-patch+yaml",
            Some(&theirs),
        )
        .await;
    assert_eq!(status, 200, "{answer}");
    let error = component.run(&ports(81)).await.unwrap_err();
    let told = error.to_string();
    assert!(told.contains("somebody") && told.contains("port=80"), "{told}");
    assert_eq!(env.must(&path).await["spec"]["ports"][0]["port"], 80);
    // They let go, and the next pass does it.
    let nothing = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}});
    let (status, answer) = env
        .send(
            "PATCH",
            &format!("{path}?fieldManager=somebody&force=true"),
            "application/apply-patch+yaml",
            Some(&nothing),
        )
        .await;
    assert_eq!(status, 200, "{answer}");
    component.run(&ports(81)).await.unwrap();
    let live = env.must(&path).await;
    assert_eq!(live["spec"]["ports"].as_array().map(Vec::len), Some(1));
    assert_eq!(live["spec"]["ports"][0]["port"], 81);
}

/// APL-04: an entry that a client-side tool had written twice is there once after the next version, and an entry that we
/// render twice is applied once.
pub(crate) async fn repeated_entries_become_one(env: &Env) {
    let mut component = Component::new(env);
    component.make_namespace().await;
    let with = |env: Value| {
        let mut deployment = deployment("web", 0);
        deployment.object["spec"]["template"]["spec"]["containers"][0]["env"] = env;
        deployment
    };
    let twice = json!([{"name": "A", "value": "x"}, {"name": "A", "value": "x"}]);
    let once = json!([{"name": "A", "value": "x"}]);
    env.make(
        &format!("{}?fieldManager=helm", component.collection("deployments")),
        &with(twice.clone()).object,
    )
    .await;
    let path = component.path("deployments", "web");
    let entries = async || env.must(&path).await["spec"]["template"]["spec"]["containers"][0]["env"].clone();
    assert_eq!(entries().await, twice);
    component.options.adopt = true;
    component.apply(&[with(once.clone())]).await.unwrap();
    assert_eq!(entries().await, once);
    component.options.adopt = false;
    assert!(
        component
            .apply(&[with(once.clone())])
            .await
            .unwrap()
            .changes
            .is_empty()
    );
    // Rendered twice, it is the same.
    assert!(component.apply(&[with(twice)]).await.unwrap().changes.is_empty());
    assert_eq!(entries().await, once);
    // Which of two different ones is meant, nobody can say; the container and the name are told.
    let differ = json!([{"name": "A", "value": "x"}, {"name": "A", "value": "y"}]);
    let error = component.apply(&[with(differ)]).await.unwrap_err();
    let told = error.to_string();
    assert!(told.contains("env") && told.contains("name=\"A\""), "{told}");
    assert_eq!(error.class(), evenkeel_cluster::ErrorClass::Invalid);
    assert_eq!(entries().await, once);
}

/// APL-08: what is taken over gets our label on itself alone; no selector, no template, and so no rollout.
pub(crate) async fn taking_over_touches_no_selector(env: &Env) {
    let mut component = Component::new(env);
    component.make_namespace().await;
    env.make(&component.collection("deployments"), &deployment("web", 1).object)
        .await;
    env.make(&component.collection("services"), &service("web").object)
        .await;
    let (workload, front) = (
        component.path("deployments", "web"),
        component.path("services", "web"),
    );
    let before = env
        .until("the pod to be ready", &workload, |live| {
            live["status"]["readyReplicas"] == 1
        })
        .await;
    let selector = env.must(&front).await["spec"]["selector"].clone();
    component.options.adopt = true;
    component
        .run(&[deployment("web", 1), service("web")])
        .await
        .unwrap();
    let after = env.must(&workload).await;
    assert_eq!(after["metadata"]["generation"], before["metadata"]["generation"]);
    assert_eq!(after["spec"], before["spec"]);
    let after = env.must(&front).await;
    assert_eq!(after["spec"]["selector"], selector);
    assert_eq!(
        after["metadata"]["labels"]["applyset.kubernetes.io/part-of"],
        component.target.applyset_id()
    );
}

/// APL-10: replicas that an autoscaler has set stay as they are when the chart no longer names any.
pub(crate) async fn replicas_stay_when_the_chart_names_none(env: &Env) {
    let component = Component::new(env);
    component
        .run(&[deployment("web", 2), autoscaler("web")])
        .await
        .unwrap();
    scale(env, &component, 7).await;
    component
        .apply(&[deployment("web", 2), autoscaler("web")])
        .await
        .unwrap();
    let path = component.path("deployments", "web");
    let before = env.must(&path).await;
    assert_eq!(before["spec"]["replicas"], 7);
    let mut silent = deployment("web", 2);
    silent.object["spec"].as_object_mut().unwrap().remove("replicas");
    component.apply(&[silent, autoscaler("web")]).await.unwrap();
    let after = env.must(&path).await;
    assert_eq!(after["spec"]["replicas"], 7);
    assert_eq!(
        after["metadata"]["generation"], before["metadata"]["generation"],
        "not even for a moment anything else"
    );
}

/// APL-14: an empty list in the manifest is a list that is meant to be empty. What others put there is told as a change of
/// theirs and taken with their name.
pub(crate) async fn an_empty_list_is_not_wiped_without_a_word(env: &Env) {
    let component = Component::new(env);
    let endpoints = || {
        doc(
            "templates/endpoints.yaml",
            json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "e"}, "subsets": []}),
        )
    };
    let documents = [endpoints()];
    component.run(&documents).await.unwrap();
    let path = component.path("endpoints", "e");
    let filled = json!({"subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]});
    env.change(&path, &filled).await;
    let verdict = component.check(&documents).await;
    assert!(matches!(verdict, Verdict::Differs(_)), "{verdict:?}");
    let pass = component.run(&documents).await.unwrap();
    assert_eq!(pass.done(), ["update Endpoints/e"]);
    let reason = &pass
        .plan
        .changes
        .iter()
        .find(|change| change.object.name == "e")
        .unwrap()
        .reason;
    assert!(reason.contains("subsets"), "{reason}");
    let events = component.events.lock().unwrap();
    let told = events.iter().any(|event| {
        matches!(event, Event::Forced { object, conflicts } if object.name == "e"
            && conflicts.iter().any(|conflict| conflict.manager == "somebody" && conflict.field.contains("subsets")))
    });
    assert!(told, "{events:?}");
}

/// ORD-01 and RDY-12: a kind answers 404 for a while after its definition is established, as it does on other API servers.
pub(crate) async fn a_kind_may_be_served_late(env: &Env) {
    let group = format!("{}.ex.io", short(&env.name));
    let (behind, proxy) = env.behind(Limits::default()).await;
    let component = Component::new(&behind);
    let documents = [
        widget(&group, "w", 1),
        deployment("web", 0),
        definition(&group, "Namespaced", false),
    ];
    let plan = component.plan(&documents).await.unwrap();
    assert_eq!(plan.summary().count(PlanAction::Create), 4, "{}", plan.summary());
    proxy.hide(&format!("/apis/{group}/v1/namespaces/"), 4);
    let pass = component.run(&documents).await.unwrap();
    assert!(
        pass.done().contains(&"create Widget/w".to_owned()),
        "{:?}",
        pass.done()
    );
    assert!(component.run(&documents).await.unwrap().changes.is_empty());
}

/// ORD-03: a cluster-scoped object with a namespace is applied, remembered and pruned without.
pub(crate) async fn scope_comes_from_the_kind(env: &Env) {
    let component = Component::new(env);
    let role = doc(
        "templates/role.yaml",
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
               "metadata": {"name": component.namespace, "namespace": "team-a"}, "rules": []}),
    );
    component.run(&[role, config_map("c", "k", "1")]).await.unwrap();
    let record = component.target.record().await.unwrap().unwrap();
    let place = |kind: &str| {
        let entry = record.objects.iter().find(|entry| entry.kind == kind).unwrap();
        entry.namespace.clone()
    };
    assert_eq!(
        (place("ClusterRole"), place("ConfigMap")),
        (None, Some(component.namespace.clone()))
    );
    let path = format!(
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/{}",
        component.namespace
    );
    env.must(&path).await;
    let pass = component.run(&[config_map("c", "k", "1")]).await.unwrap();
    assert_eq!(
        pass.done(),
        [format!("delete ClusterRole/{}", component.namespace)]
    );
    env.until_gone(&path).await;
}

/// DEL-06: a namespace that cannot go says what is in its way, within the time given, and the next call picks it up.
pub(crate) async fn a_namespace_that_cannot_go_says_why(env: &Env) {
    let component = Component::new(env);
    component.run(&[config_map("a", "k", "1")]).await.unwrap();
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "finalizers": ["ex.io/hold"]}});
    env.make(&component.collection("configmaps"), &held).await;
    // Somebody deletes the namespace while something in it is held.
    env.remove(&component.namespace_path()).await;
    env.until("the namespace to say so", &component.namespace_path(), |live| {
        live["status"]["conditions"].as_array().is_some_and(|conditions| {
            conditions.iter().any(|condition| {
                condition["type"] == "NamespaceFinalizersRemaining" && condition["status"] == "True"
            })
        })
    })
    .await;
    let started = std::time::Instant::now();
    let options = DeleteOptions {
        timeout: Duration::from_secs(3),
        ..DeleteOptions::default()
    };
    let error = component.delete_with(options).await.unwrap_err();
    assert!(
        started.elapsed() < Duration::from_secs(30),
        "{:?}",
        started.elapsed()
    );
    let told = error.to_string();
    assert!(matches!(error, Error::Stuck(_)), "{told}");
    assert!(
        told.contains("Namespace") && told.contains("ex.io/hold"),
        "{told}"
    );
    let theirs = env.must(&component.path("configmaps", "theirs")).await;
    assert_eq!(
        theirs["metadata"]["finalizers"],
        json!(["ex.io/hold"]),
        "not ours to strip"
    );
    env.change(
        &component.path("configmaps", "theirs"),
        &json!({"metadata": {"finalizers": null}}),
    )
    .await;
    assert!(component.delete().await.unwrap().complete);
    assert!(env.get(&component.namespace_path()).await.is_none());
}

/// DEL-07: a namespace that two components render stays as long as one of them wants it.
pub(crate) async fn a_namespace_that_two_render_outlives_one(env: &Env) {
    let shared = format!("{}-shared", short(&env.name));
    let namespace = || {
        doc(
            "templates/ns.yaml",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": shared}}),
        )
    };
    let (a, b) = (Component::named(env, "a"), Component::named(env, "b"));
    let inside = |name: &str| {
        let mut map = config_map(name, "k", "1");
        map.object["metadata"]["namespace"] = json!(shared);
        map
    };
    a.run(&[namespace(), inside("a")]).await.unwrap();
    b.run(&[namespace(), inside("b")]).await.unwrap();
    let path = format!("/api/v1/namespaces/{shared}");
    assert!(a.delete().await.unwrap().complete);
    env.must(&path).await;
    env.must(&format!("{path}/configmaps/b")).await;
    // The last one leaves it when a stranger lives there.
    env.make(
        &format!("{path}/configmaps"),
        &config_map("theirs", "k", "1").object,
    )
    .await;
    let deletion = b.delete().await.unwrap();
    assert!(
        deletion
            .kept
            .iter()
            .any(|kept| kept.object.name == shared && kept.reason.contains("not empty")),
        "{:?}",
        deletion.kept
    );
    env.must(&path).await;
}

/// DEL-11: an owner that somebody else has added keeps nothing of ours alive.
pub(crate) async fn an_owner_that_somebody_added_protects_nothing(env: &Env) {
    let component = Component::new(env);
    component
        .run(&[config_map("c", "k", "1"), config_map("d", "k", "1")])
        .await
        .unwrap();
    let owner = env
        .make(
            &component.collection("secrets"),
            &json!({"metadata": {"name": "x"}}),
        )
        .await;
    for controller in [false, true] {
        let name = if controller { "d" } else { "c" };
        let reference = json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "x",
            "uid": owner["metadata"]["uid"], "controller": controller}]}});
        env.change(&component.path("configmaps", name), &reference).await;
    }
    let deletion = component.delete().await.unwrap();
    assert!(deletion.complete);
    for name in ["c", "d"] {
        assert!(
            env.get(&component.path("configmaps", name)).await.is_none(),
            "{name}"
        );
    }
    env.must(&component.path("secrets", "x")).await;
}

/// A definition that two components render belongs to both: neither takes it from the other, and it outlives one of them,
/// whatever that one's deletion asks for.
pub(crate) async fn a_definition_that_two_render_is_shared(env: &Env) {
    let group = format!("{}.ex.io", short(&env.name));
    let (a, b) = (Component::named(env, "a"), Component::named(env, "b"));
    let of = |name: &str, size: u32| {
        [
            definition(&group, "Namespaced", false),
            widget(&group, name, size),
        ]
    };
    a.run(&of("a", 1)).await.unwrap();
    // The other one's is a little older.
    let mut theirs = of("b", 1);
    theirs[0].object["metadata"]["labels"] = json!({"chart": "older"});
    b.run(&theirs).await.unwrap();
    for _ in 0..2 {
        assert!(
            a.run(&of("a", 1)).await.unwrap().changes.is_empty(),
            "they do not take turns"
        );
        assert!(b.run(&theirs).await.unwrap().changes.is_empty());
    }
    let all = DeleteOptions {
        all: true,
        timeout: WAIT,
        ..DeleteOptions::default()
    };
    assert!(a.delete_with(all).await.unwrap().complete);
    let crd = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}");
    env.must(&crd).await;
    env.must(&format!("/apis/{group}/v1/namespaces/{}/widgets/b", b.namespace))
        .await;
    assert!(matches!(b.check(&theirs).await, Verdict::Unchanged));
    let all = DeleteOptions {
        all: true,
        timeout: WAIT,
        ..DeleteOptions::default()
    };
    assert!(b.delete_with(all).await.unwrap().complete);
    assert!(env.get(&crd).await.is_none());
}

/// The status of a disruption budget changes with every pod; once its controller has seen it, that costs no look.
pub(crate) async fn a_busy_disruption_budget_costs_no_look(env: &Env) {
    let component = Component::new(env);
    let budget = doc(
        "templates/pdb.yaml",
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
               "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "nobody"}}}}),
    );
    let documents = [budget, config_map("a", "k", "1")];
    component.run(&documents).await.unwrap();
    let path = format!(
        "/apis/policy/v1/namespaces/{}/poddisruptionbudgets/b/status",
        component.namespace
    );
    let mut sent = Vec::new();
    for round in 0..4 {
        let status = json!({"status": {"disruptedPods": {format!("p{round}"): "2026-12-01T00:00:00Z"}}});
        env.change(&path, &status).await;
        let before = env.cluster.requests();
        assert!(matches!(component.check(&documents).await, Verdict::Unchanged));
        sent.push(env.cluster.requests().since(&before).total());
    }
    assert_eq!(
        sent[1..],
        [3, 3, 3],
        "one LIST of parents and one per kind: {sent:?}"
    );
}

/// A plan for people says which fields change and how, and shows nothing that is secret.
pub(crate) async fn a_plan_shows_fields_and_no_secrets(env: &Env) {
    let component = Component::new(env);
    let with = |image: &str, password: &str| {
        let mut web = deployment("web", 1);
        web.object["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        [
            web,
            crate::documents::secret("login", "password", password),
            config_map("settings", "url", &format!("https://me:{password}@db")),
            config_map("same", "k", "1"),
        ]
    };
    component
        .apply(&with("registry.example/main:1", "hunter2-old"))
        .await
        .unwrap();
    let before = env.cluster.requests();
    let plan = component
        .plan(&with("registry.example/main:2", "hunter2-new"))
        .await
        .unwrap();
    let secrets = evenkeel_cluster::Secrets::new(["hunter2-new".to_owned(), "hunter2-old".to_owned()]);
    let diffs = plan.diffs(&secrets).await.unwrap();
    assert_eq!(env.cluster.requests().since(&before).writes(), 0);
    let told: Vec<String> = diffs
        .iter()
        .flat_map(|diff| {
            let line = |field: &evenkeel_core::FieldDiff| {
                let shown = |value: &Option<Value>| value.clone().unwrap_or_default().to_string();
                format!(
                    "{} {} {} {}",
                    diff.object.name,
                    field.path,
                    shown(&field.before),
                    shown(&field.after)
                )
            };
            diff.fields.iter().map(line).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(
        told,
        [
            r#"login data.password "********" "********""#,
            r#"settings data.url "********" "********""#,
            r#"web spec.template.spec.containers[main].image "registry.example/main:1" "registry.example/main:2""#,
        ]
    );
    assert!(
        diffs.iter().all(|diff| diff.note.is_none() && diff.more == 0),
        "{diffs:?}"
    );
    assert!(!format!("{diffs:?}").contains("hunter2"));
}
