//! Installing, updating, and doing nothing; the namespace that is given wins and is made first (K28).

use evenkeel_cluster::{Difference, Error, Event, Verb, Verdict, WaitOptions};
use evenkeel_core::PlanAction;
use serde_json::json;

use crate::component::{Component, planned};
use crate::documents::{
    autoscaler, config_map, definition, deployment, doc, secret, service, service_account, widget,
};
use crate::env::{Env, WAIT};

pub(crate) async fn installs_in_order(env: &Env) {
    let component = Component::new(env);
    let documents = [
        deployment("web", 2),
        service("web"),
        config_map("settings", "a", "1"),
        secret("login", "password", "hunter2"),
        service_account("web"),
    ];
    let pass = component.run(&documents).await.unwrap();
    let done = pass.done();
    let at = |entry: &str| {
        done.iter()
            .position(|done| done == entry)
            .unwrap_or_else(|| panic!("{entry}: {done:?}"))
    };
    assert_eq!(done.len(), 6);
    assert_eq!(at(&format!("create Namespace/{}", component.namespace)), 0);
    assert!(at("create ServiceAccount/web") < at("create Secret/login"));
    assert!(at("create ConfigMap/settings") < at("create Service/web"));
    assert_eq!(at("create Deployment/web"), 5);

    let live = env.must(&component.path("deployments", "web")).await;
    assert_eq!(
        live["metadata"]["labels"]["applyset.kubernetes.io/part-of"],
        component.target.applyset_id()
    );
    assert_eq!(live["status"]["readyReplicas"], 2);
    let pod_labels = &live["spec"]["template"]["metadata"]["labels"];
    assert_eq!(
        pod_labels,
        &json!({"app": "web"}),
        "our label is on the object alone"
    );
    let managers: Vec<&str> = live["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["operation"] == "Apply")
        .filter_map(|entry| entry["manager"].as_str())
        .collect();
    assert_eq!(managers, ["evenkeel"]);
    let login = env.must(&component.path("secrets", "login")).await;
    assert_eq!(login["data"]["password"], "aHVudGVyMg==");

    let record = component.target.record().await.unwrap().unwrap();
    assert_eq!(record.objects.len(), 5);
    assert!(!record.unfinished);
}

/// 100 objects in 10 kinds: one LIST of parents and one metadata LIST per kind, no write.
pub(crate) async fn is_idle_when_nothing_changed(env: &Env) {
    let component = Component::new(env);
    let mut documents = Vec::new();
    for index in 0..10 {
        let name = format!("web-{index}");
        documents.extend([
            config_map(&name, "a", "1"),
            secret(&name, "a", "1"),
            service_account(&name),
            service(&name),
            deployment(&name, 0),
        ]);
        for (api_version, kind, spec) in [
            ("rbac.authorization.k8s.io/v1", "Role", json!({"rules": []})),
            (
                "rbac.authorization.k8s.io/v1",
                "RoleBinding",
                json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
                       "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": component.namespace}]}),
            ),
            (
                "networking.k8s.io/v1",
                "NetworkPolicy",
                json!({"spec": {"podSelector": {"matchLabels": {"app": name}}}}),
            ),
            (
                "policy/v1",
                "PodDisruptionBudget",
                json!({"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}}}),
            ),
            (
                "v1",
                "LimitRange",
                json!({"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}),
            ),
        ] {
            let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
            object
                .as_object_mut()
                .unwrap()
                .extend(spec.as_object().unwrap().clone());
            documents.push(doc("templates/rest.yaml", object));
        }
    }
    component.run(&documents).await.unwrap();
    // Controllers write their last words after an object is ready; what changed so is looked at once.
    let settled = evenkeel_testkit::eventually("an idle check", async || {
        let before = env.cluster.requests();
        let verdict = component.check(&documents).await;
        let sent = env.cluster.requests().since(&before);
        if sent.total() == 11 {
            Ok((verdict, sent))
        } else {
            Err((sent, format!("{verdict:?}")))
        }
    });
    let (verdict, sent) = settled.await;
    assert!(matches!(verdict, Verdict::Unchanged), "{verdict:?}");
    assert_eq!((sent.of(Verb::List), sent.writes()), (11, 0));

    let before = env.cluster.requests();
    let parent = env.must(&component.parent_path()).await;
    let pass = component.run(&documents).await.unwrap();
    assert!(pass.plan.is_noop(), "{}", pass.plan);
    assert_eq!(pass.plan.count(PlanAction::None), 100);
    assert_eq!(
        env.cluster.requests().since(&before).writes(),
        0,
        "a pass that changes nothing writes nothing"
    );
    assert_eq!(env.must(&component.parent_path()).await, parent);
}

pub(crate) async fn applies_only_what_changed(env: &Env) {
    let component = Component::new(env);
    let documents = [
        config_map("a", "k", "1"),
        config_map("b", "k", "1"),
        deployment("web", 1),
    ];
    component.run(&documents).await.unwrap();
    let before = env.cluster.requests();
    let pass = component
        .run(&[
            config_map("a", "k", "2"),
            config_map("b", "k", "1"),
            deployment("web", 1),
        ])
        .await
        .unwrap();
    assert_eq!(pass.done(), ["update ConfigMap/a"]);
    assert_eq!(env.cluster.requests().since(&before).of(Verb::Patch), 1);
    assert_eq!(
        env.must(&component.path("configmaps", "a")).await["data"],
        json!({"k": "2"})
    );

    // A field that is no longer rendered goes, as does a key; what others added stays.
    env.change(
        &component.path("configmaps", "a"),
        &json!({"data": {"theirs": "x"}}),
    )
    .await;
    let pass = component
        .run(&[
            config_map("a", "other", "2"),
            config_map("b", "k", "1"),
            deployment("web", 1),
        ])
        .await
        .unwrap();
    assert_eq!(pass.done(), ["update ConfigMap/a"]);
    assert_eq!(
        env.must(&component.path("configmaps", "a")).await["data"],
        json!({"other": "2", "theirs": "x"})
    );
}

/// ORD-01: a definition and the first resource of its kind in one manifest, in the worst order.
pub(crate) async fn takes_a_crd_and_its_resource(env: &Env) {
    let group = format!("{}.ex.io", crate::env::short(&env.name));
    let component = Component::new(env);
    // In the worst order, and on a cluster that knows nothing of the kind.
    let documents = [
        widget(&group, "w", 1),
        config_map("a", "k", "1"),
        definition(&group, "Namespaced", false),
    ];
    let plan = component.plan(&documents).await.unwrap();
    assert_eq!(
        planned(plan.summary(), PlanAction::Create).len(),
        4,
        "{:?}",
        plan.summary()
    );
    let pass = component.run(&documents).await.unwrap();
    let done = pass.done();
    let crd = done
        .iter()
        .position(|done| done.contains("CustomResourceDefinition"))
        .unwrap();
    let resource = done.iter().position(|done| done == "create Widget/w").unwrap();
    assert!(crd < resource, "{done:?}");
    env.must(&format!(
        "/apis/{group}/v1/namespaces/{}/widgets/w",
        component.namespace
    ))
    .await;
    let again = component.run(&documents).await.unwrap();
    assert!(
        again.plan.is_noop() && again.changes.is_empty(),
        "{:?}",
        again.plan
    );
    assert!(matches!(component.check(&documents).await, Verdict::Unchanged));
}

/// ORD-03: the scope of a kind decides where its objects are, also of one that the same manifest defines.
pub(crate) async fn places_objects(env: &Env) {
    let group = format!("{}.ex.io", crate::env::short(&env.name));
    let other = env.namespace("other").await;
    let component = Component::new(env);
    let mut explicit = config_map("explicit", "k", "1");
    explicit.object["metadata"]["namespace"] = json!(other);
    let role = doc(
        "templates/role.yaml",
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
               "metadata": {"name": component.namespace, "namespace": "ignored"}, "rules": []}),
    );
    let mut list = json!({"apiVersion": "v1", "kind": "List", "items": []});
    list["items"] = json!([config_map("in-list", "k", "1").object]);
    let documents = [
        config_map("plain", "k", "1"),
        explicit.clone(),
        role,
        doc("templates/list.yaml", list),
        definition(&group, "Cluster", false),
        widget(&group, "w", 1),
    ];
    component.run(&documents).await.unwrap();
    env.must(&component.path("configmaps", "plain")).await;
    env.must(&component.path("configmaps", "in-list")).await;
    env.must(&format!("/api/v1/namespaces/{other}/configmaps/explicit"))
        .await;
    env.must(&format!("/apis/{group}/v1/widgets/w")).await;
    assert!(component.run(&documents).await.unwrap().changes.is_empty());

    let mut forced = Component::named(env, "forced");
    forced.force_namespace = true;
    forced.run(&[explicit]).await.unwrap();
    env.must(&forced.path("configmaps", "explicit")).await;
}

/// APL-02: the key of a Service's port is port and protocol, not its name.
pub(crate) async fn keeps_named_ports_apart(env: &Env) {
    let component = Component::new(env);
    let ports = |ports: serde_json::Value| {
        let mut service = service("web");
        service.object["spec"]["ports"] = ports;
        [service]
    };
    component
        .run(&ports(json!([{"name": "http", "port": 80, "protocol": "TCP"}])))
        .await
        .unwrap();
    component
        .run(&ports(json!([{"name": "http", "port": 81, "protocol": "TCP"}])))
        .await
        .unwrap();
    let live = env.must(&component.path("services", "web")).await;
    assert_eq!(live["spec"]["ports"].as_array().unwrap().len(), 1);
    assert_eq!(live["spec"]["ports"][0]["port"], 81);
    let both = ports(
        json!([{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]),
    );
    component.run(&both).await.unwrap();
    let live = env.must(&component.path("services", "web")).await;
    assert_eq!(live["spec"]["ports"].as_array().unwrap().len(), 2);
    assert!(component.run(&both).await.unwrap().changes.is_empty());
}

pub(crate) async fn says_what_the_server_refuses(env: &Env) {
    let component = Component::new(env);
    let mut wrong = deployment("web", 1);
    wrong.object["spec"]["replicsa"] = json!(3);
    let error = component
        .run(&[wrong, config_map("good", "k", "1")])
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("Deployment.apps/web") && text.contains("replicsa"),
        "{text}"
    );
    assert_eq!(error.class(), evenkeel_cluster::ErrorClass::Invalid);
    // What came before it was applied, and the next pass goes on from there.
    env.must(&component.path("configmaps", "good")).await;
    let pass = component
        .run(&[deployment("web", 1), config_map("good", "k", "1")])
        .await
        .unwrap();
    assert!(pass.done().contains(&"create Deployment/web".to_owned()));
    assert!(!component.target.record().await.unwrap().unwrap().unfinished);
}

pub(crate) async fn an_interrupted_pass_is_completed(env: &Env) {
    let component = Component::new(env);
    let first = [config_map("a", "k", "1"), config_map("dropped", "k", "1")];
    let mut session = component.session(&first).await.unwrap();
    session.prepare_namespaces().await.unwrap();
    session.apply().await.unwrap();
    drop(session);
    assert!(component.target.record().await.unwrap().unwrap().unfinished);
    assert!(matches!(component.check(&first).await, Verdict::Differs(_)));
    // A newer render lacks an object that the interrupted pass left.
    let second = [config_map("a", "k", "1"), config_map("b", "k", "1")];
    let pass = component.run(&second).await.unwrap();
    assert_eq!(pass.planned(PlanAction::Delete), ["ConfigMap/dropped"]);
    assert_eq!(
        pass.done(),
        ["create ConfigMap/b", "delete ConfigMap/dropped"],
        "what was right already is no change"
    );
    env.until_gone(&component.path("configmaps", "dropped")).await;
    assert!(matches!(component.check(&second).await, Verdict::Unchanged));
}

pub(crate) async fn progress_is_not_lost(env: &Env) {
    let component = Component::new(env);
    let mut wrong = deployment("web", 1);
    wrong.object["spec"]["replicsa"] = json!(3);
    let documents = [config_map("a", "k", "1"), secret("b", "k", "1"), wrong];
    let mut session = component.session(&documents).await.unwrap();
    session.prepare_namespaces().await.unwrap();
    session.apply().await.unwrap_err();
    session.record_progress().await.unwrap();
    let before = env.cluster.requests();
    let mut session = component.session(&documents).await.unwrap();
    session.apply().await.unwrap_err();
    assert_eq!(
        env.cluster.requests().since(&before).of(Verb::Patch),
        1,
        "only what failed is tried again"
    );
    assert!(
        matches!(component.check(&documents).await, Verdict::Differs(found) if found == [Difference::Unfinished])
    );
    assert!(
        !component
            .target
            .record()
            .await
            .unwrap()
            .unwrap()
            .objects
            .is_empty()
    );
    // What the interrupted passes left is pruned, though the record of the end never named it.
    let pass = component.run(&[config_map("a", "k", "1")]).await.unwrap();
    assert_eq!(pass.done(), ["delete Secret/b"]);
}

/// APL-10: replicas that an autoscaler sets are not ours.
pub(crate) async fn replicas_belong_to_the_autoscaler(env: &Env) {
    let component = Component::new(env);
    let documents = [deployment("web", 2), autoscaler("web")];
    component.run(&documents).await.unwrap();
    scale(env, &component, 7).await;
    assert!(component.run(&documents).await.unwrap().changes.is_empty());
    let mut changed = deployment("web", 2);
    changed.object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example/main:2");
    component.apply(&[changed, autoscaler("web")]).await.unwrap();
    let live = env.must(&component.path("deployments", "web")).await;
    assert_eq!(live["spec"]["replicas"], 7);
    // One that is not in the manifest counts as well.
    let bare = Component::named(env, "bare");
    bare.run(&[deployment("web", 2)]).await.unwrap();
    env.make(
        &bare.collection("horizontalpodautoscalers"),
        &autoscaler("web").object,
    )
    .await;
    scale(env, &bare, 5).await;
    assert!(
        bare.run(&[deployment("web", 2)])
            .await
            .unwrap()
            .plan
            .count(PlanAction::Create)
            == 0
    );
    assert_eq!(
        env.must(&bare.path("deployments", "web")).await["spec"]["replicas"],
        5
    );
}

pub(crate) async fn a_new_autoscaler_takes_over_without_a_dip(env: &Env) {
    let component = Component::new(env);
    component.run(&[deployment("web", 4)]).await.unwrap();
    component
        .run(&[deployment("web", 4), autoscaler("web")])
        .await
        .unwrap();
    let live = env.must(&component.path("deployments", "web")).await;
    assert_eq!(live["spec"]["replicas"], 4, "not reset to the default on the way");
    // One rollout at most: the replicas never changed.
    let sets = env.must(&component.collection("replicasets")).await;
    assert_eq!(sets["items"].as_array().unwrap().len(), 1);
    scale(env, &component, 6).await;
    assert!(
        component
            .run(&[deployment("web", 4), autoscaler("web")])
            .await
            .unwrap()
            .changes
            .is_empty()
    );
}

/// Scales a Deployment as an autoscaler does.
pub(crate) async fn scale(env: &Env, component: &Component<'_>, replicas: u32) {
    let path = format!("{}/scale", component.path("deployments", "web"));
    env.change(&path, &json!({"spec": {"replicas": replicas}})).await;
}

/// DEL-09: a namespace that is being deleted is no lack of rights; it is waited for and made again.
pub(crate) async fn a_terminating_namespace_is_waited_for(env: &Env) {
    let component = Component::new(env);
    component.make_namespace().await;
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["ex.io/hold"]}});
    env.make(&component.collection("configmaps"), &held).await;
    env.remove(&component.namespace_path()).await;
    let documents = [config_map("a", "k", "1")];
    let release = async {
        evenkeel_testkit::eventually("the component to wait", async || {
            let waits = component
                .events
                .lock()
                .unwrap()
                .iter()
                .any(|event| matches!(event, Event::Waiting(_)));
            if waits { Ok(()) } else { Err("it does not") }
        })
        .await;
        env.change(
            &component.path("configmaps", "held"),
            &json!({"metadata": {"finalizers": null}}),
        )
        .await;
    };
    let mut session = component.session(&documents).await.unwrap();
    let (prepared, ()) = tokio::join!(session.prepare_namespaces(), release);
    prepared.unwrap();
    session.apply().await.unwrap();
    session.wait_ready(&WaitOptions { timeout: WAIT }).await.unwrap();
    env.must(&component.path("configmaps", "a")).await;

    // Told as what it is when it begins in the middle.
    let late = Component::named(env, "late");
    let mut session = late.session(&documents).await.unwrap();
    session.prepare_namespaces().await.unwrap();
    env.make(&late.collection("configmaps"), &held).await;
    env.remove(&late.namespace_path()).await;
    let error = session.apply().await.unwrap_err();
    let Error::Objects(errors) = &error else {
        panic!("{error}")
    };
    assert!(
        matches!(&errors[0].error, Error::NamespaceTerminating { .. }),
        "{error}"
    );
    assert_eq!(error.class(), evenkeel_cluster::ErrorClass::Transient);
    env.change(
        &late.path("configmaps", "held"),
        &json!({"metadata": {"finalizers": null}}),
    )
    .await;
}

/// A definition gains a version and objects of both versions are applied; a version that objects are stored in cannot go,
/// and then nothing else is applied.
pub(crate) async fn a_definition_is_upgraded_with_its_stored_versions(env: &Env) {
    let group = format!("{}.ex.io", crate::env::short(&env.name));
    let component = Component::new(env);
    let first = [definition(&group, "Namespaced", false), widget(&group, "w", 1)];
    component.run(&first).await.unwrap();
    let mut both = definition(&group, "Namespaced", false);
    // The server converts between versions what it merges, so each must know the fields of the other.
    let old = &mut both.object["spec"]["versions"][0];
    old["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["colour"] =
        json!({"type": "string"});
    let mut newer = old.clone();
    newer["name"] = json!("v2");
    both.object["spec"]["versions"][0]["storage"] = json!(false);
    both.object["spec"]["versions"]
        .as_array_mut()
        .unwrap()
        .push(newer);
    let mut coloured = widget(&group, "w", 2);
    coloured.object["apiVersion"] = json!(format!("{group}/v2"));
    coloured.object["spec"]["colour"] = json!("red");
    let second = [both.clone(), coloured.clone()];
    let mut done = component.run(&second).await.unwrap().done();
    done.sort();
    assert_eq!(
        done,
        [
            format!("update CustomResourceDefinition/widgets.{group}"),
            "update Widget/w".to_owned()
        ]
    );
    let path = format!("/apis/{group}/v2/namespaces/{}/widgets/w", component.namespace);
    assert_eq!(env.must(&path).await["spec"], json!({"size": 2, "colour": "red"}));
    assert!(component.run(&second).await.unwrap().changes.is_empty());

    let mut without = both.clone();
    without.object["spec"]["versions"]
        .as_array_mut()
        .unwrap()
        .remove(0);
    let mut bigger = coloured.clone();
    bigger.object["spec"]["size"] = json!(3);
    let error = component
        .run(&[without, bigger, config_map("later", "k", "1")])
        .await
        .unwrap_err();
    let told = error.to_string();
    assert!(
        told.contains("storedVersions") && told.contains("CustomResourceDefinition"),
        "{told}"
    );
    assert_eq!(env.must(&path).await["spec"]["size"], 2);
    assert!(env.get(&component.path("configmaps", "later")).await.is_none());
}

/// A webhook that cannot be called just after its installation is waited for, within the same pass.
pub(crate) async fn a_webhook_that_is_not_up_yet_is_waited_for(env: &Env) {
    let component = Component::new(env);
    component.make_namespace().await;
    let name = format!("{}.ex.io", component.namespace);
    let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    env.make(
        hooks,
        &json!({"metadata": {"name": name}, "webhooks": [{
            "name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 1,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": component.namespace}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
            "clientConfig": {"url": "https://127.0.0.1:9/nobody"}}]}),
    )
    .await;
    // The server takes a moment to call it.
    let probe = json!({"metadata": {"name": "probe"}});
    evenkeel_testkit::eventually("the webhook to be called", async || {
        let path = format!("{}?dryRun=All", component.collection("configmaps"));
        let (status, answer) = env.send("POST", &path, "application/json", Some(&probe)).await;
        if status == 500 { Ok(()) } else { Err(answer) }
    })
    .await;
    let documents = [config_map("a", "k", "1")];
    let up = async {
        evenkeel_testkit::eventually("the first tries to fail", async || {
            if env.cluster.requests().of(Verb::Patch) >= 2 {
                Ok(())
            } else {
                Err("not yet")
            }
        })
        .await;
        env.remove(&format!("{hooks}/{name}")).await;
    };
    let (pass, ()) = tokio::join!(component.run(&documents), up);
    assert_eq!(pass.unwrap().done(), ["create ConfigMap/a"]);
}
