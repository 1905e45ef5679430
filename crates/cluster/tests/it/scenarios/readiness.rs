//! Waiting for what controllers do: a terminating pod is not ready (K14), a custom resource is when its component's rule
//! says so (K38).

use std::time::Duration;

use evenkeel_cluster::{Error, ErrorClass, Event, Readiness, ReadinessRules, Verdict, WaitOptions};
use evenkeel_core::{PlanAction, ReadinessRule};
use evenkeel_testkit::HOLD_TERMINATION_ANNOTATION;
use serde_json::{Value, json};

use crate::component::Component;
use crate::documents::{
    config_map, definition, deployment, doc, job, pod_template, service, widget, workload,
};
use crate::env::{Env, Script, short};

fn script(env: &Env, document: &mut evenkeel_cluster::ManifestObject, script: Script) {
    let template = document.object.pointer_mut("/spec/template/metadata").unwrap();
    template["annotations"] = env.script(script);
}

async fn wait(
    component: &Component<'_>,
    documents: &[evenkeel_cluster::ManifestObject],
    seconds: u64,
) -> Error {
    let mut session = component.session(documents).await.unwrap();
    session.prepare_namespaces().await.unwrap();
    session.apply().await.unwrap();
    session
        .wait_ready(&WaitOptions {
            timeout: Duration::from_secs(seconds),
        })
        .await
        .unwrap_err()
}

pub(crate) async fn workloads_become_ready(env: &Env) {
    let component = Component::new(env);
    let mut bare = pod_template("bare");
    bare["apiVersion"] = json!("v1");
    bare["kind"] = json!("Pod");
    bare["metadata"] = json!({"name": "bare"});
    let documents = [
        deployment("deployment", 2),
        deployment("none-wanted", 0),
        workload("StatefulSet", "stateful"),
        workload("DaemonSet", "daemon"),
        workload("ReplicaSet", "replicas"),
        job("job"),
        doc("templates/pod.yaml", bare),
    ];
    let pass = component.run(&documents).await.unwrap();
    assert_eq!(pass.plan.count(PlanAction::Create), 8);
    for (collection, name, field) in [
        ("deployments", "deployment", "readyReplicas"),
        ("statefulsets", "stateful", "readyReplicas"),
        ("daemonsets", "daemon", "numberReady"),
        ("replicasets", "replicas", "readyReplicas"),
        ("jobs", "job", "succeeded"),
    ] {
        let live = env.must(&component.path(collection, name)).await;
        assert!(
            live["status"][field].as_u64().is_some_and(|count| count > 0),
            "{name}: {live}"
        );
    }
    // Verdicts are told as they change, in-progress before ready.
    let told: Vec<Readiness> = component
        .events
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            Event::Readiness(state) if state.object.name == "deployment" => Some(state.readiness.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(told.last(), Some(&Readiness::Ready), "{told:?}");
    // Found ready, they are not asked again.
    let before = env.cluster.requests();
    component.run(&documents).await.unwrap();
    assert_eq!(
        env.cluster
            .requests()
            .since(&before)
            .of(evenkeel_cluster::Verb::Watch),
        0
    );
}

pub(crate) async fn a_failed_job_is_reported_at_once(env: &Env) {
    let component = Component::new(env);
    let mut failing = job("failing");
    script(env, &mut failing, Script::Fail);
    let error = wait(&component, &[failing, deployment("web", 1)], 300).await;
    let Error::NotReady {
        terminal: true,
        objects,
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(objects.len(), 1, "{error}");
    assert!(error.to_string().contains("Job.batch/failing"), "{error}");
    assert_eq!(error.class(), ErrorClass::NotReady);

    let mut stuck = deployment("stuck", 1);
    script(env, &mut stuck, Script::Pending);
    stuck.object["spec"]["progressDeadlineSeconds"] = json!(1);
    let component = Component::named(env, "deadline");
    let error = wait(&component, &[stuck], 300).await;
    assert!(
        matches!(&error, Error::NotReady { terminal: true, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("ProgressDeadlineExceeded"), "{error}");
}

pub(crate) async fn time_out_gives_a_diagnosis(env: &Env) {
    let component = Component::new(env);
    let mut broken = deployment("broken", 1);
    // A simulated image that cannot be had is a failure for good, at once.
    script(
        env,
        &mut broken,
        if env.is_real() {
            Script::ImageError
        } else {
            Script::Pending
        },
    );
    let documents = [broken, deployment("fine", 1), config_map("a", "k", "1")];
    let mut session = component.session(&documents).await.unwrap();
    session.prepare_namespaces().await.unwrap();
    session.apply().await.unwrap();
    env.until(
        "the pod to be in trouble",
        &component.collection("pods"),
        |pods| {
            let waits = |pod: &Value| {
                let waiting = pod.pointer("/status/containerStatuses/0/state/waiting/reason");
                waiting.is_some() || !env.is_real()
            };
            pods["items"]
                .as_array()
                .is_some_and(|pods| pods.len() == 2 && pods.iter().any(waits))
        },
    )
    .await;
    env.until(
        "the other to be ready",
        &component.path("deployments", "fine"),
        |live| live["status"]["availableReplicas"] == 1,
    )
    .await;
    let error = session
        .wait_ready(&WaitOptions {
            timeout: Duration::from_secs(3),
        })
        .await
        .unwrap_err();
    let Error::NotReady {
        terminal: false,
        objects,
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(objects.len(), 1, "only what is not ready is named: {error}");
    let text = error.to_string();
    assert!(
        text.contains("Deployment.apps/broken") && text.contains("Available: 0/1"),
        "{text}"
    );
    assert!(text.contains("pod broken-"), "{text}");
    assert!(!env.is_real() || text.contains("container main"), "{text}");
}

pub(crate) async fn a_terminating_pod_is_not_ready(env: &Env) {
    let component = Component::new(env);
    let mut pod = pod_template("bare");
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"] = json!({"name": "bare", "annotations": {HOLD_TERMINATION_ANNOTATION: "true"}});
    let documents = [doc("templates/pod.yaml", pod)];
    component.run(&documents).await.unwrap();
    let hold = json!({"metadata": {"finalizers": ["ex.io/hold"]}});
    env.change(&component.path("pods", "bare"), &hold).await;
    env.remove(&component.path("pods", "bare")).await;
    let live = env.must(&component.path("pods", "bare")).await;
    assert!(live["metadata"]["deletionTimestamp"].is_string());
    let ready = live["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    assert!(
        ready || !env.is_real(),
        "it says of itself that it is ready: {live}"
    );
    assert!(!evenkeel_cluster::readiness::judge(&live, evenkeel_cluster::Patience::Settled).is_ready());
    let verdict = component.check(&documents).await;
    assert!(!matches!(verdict, Verdict::Unchanged), "{verdict:?}");
    // It is made again once the old one is gone.
    let release = async {
        env.change(
            &component.path("pods", "bare"),
            &json!({"metadata": {"finalizers": null, "annotations": {HOLD_TERMINATION_ANNOTATION: null}}}),
        )
        .await;
    };
    let (pass, ()) = tokio::join!(component.run(&documents), release);
    assert_eq!(pass.unwrap().done(), ["create Pod/bare"]);
}

pub(crate) async fn a_claim_and_a_service_are_waited_for(env: &Env) {
    let component = Component::new(env);
    let claim = doc(
        "templates/pvc.yaml",
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
               "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    );
    let mut balanced = service("balanced");
    balanced.object["spec"]["type"] = json!("LoadBalancer");
    component.run(&[claim, balanced]).await.unwrap();
    let live = env.must(&component.path("persistentvolumeclaims", "data")).await;
    assert_eq!(live["status"]["phase"], "Bound");
    let live = env.must(&component.path("services", "balanced")).await;
    assert!(live["status"]["loadBalancer"]["ingress"][0].is_object(), "{live}");
}

pub(crate) async fn custom_resources_by_condition(env: &Env) {
    let group = format!("{}.ex.io", short(&env.name));
    let component = Component::new(env);
    let path = format!("/apis/{group}/v1/namespaces/{}/widgets/w", component.namespace);
    let status = |conditions: Value, observed: u32| json!({"status": {"observedGeneration": observed, "conditions": conditions}});
    let documents = [definition(&group, "Namespaced", true), widget(&group, "w", 1)];
    let controller = async {
        env.until("the widget", &path, Value::is_object).await;
        let not_yet = status(
            json!([{"type": "Ready", "status": "False", "reason": "Building", "message": "half done"}]),
            1,
        );
        env.change(&format!("{path}/status"), &not_yet).await;
        evenkeel_testkit::eventually("the verdict to be told", async || {
            let events = component.events.lock().unwrap();
            let told = events.iter().any(|event| matches!(event, Event::Readiness(state) if state.readiness.to_string().contains("half done")));
            if told { Ok(()) } else { Err(events.clone()) }
        })
        .await;
        env.change(
            &format!("{path}/status"),
            &status(json!([{"type": "Ready", "status": "True"}]), 1),
        )
        .await;
    };
    let (pass, ()) = tokio::join!(component.run(&documents), controller);
    pass.unwrap();
    // A new generation is not ready because the old one was.
    let changed = [definition(&group, "Namespaced", true), widget(&group, "w", 2)];
    let error = wait(&component, &changed, 2).await;
    assert!(error.to_string().contains("generation is 2"), "{error}");
    let stalled = status(
        json!([{"type": "Stalled", "status": "True", "reason": "Broken", "message": "no such size"}]),
        2,
    );
    env.change(&format!("{path}/status"), &stalled).await;
    let error = wait(&component, &changed, 300).await;
    assert!(
        matches!(&error, Error::NotReady { terminal: true, .. })
            && error.to_string().contains("no such size"),
        "{error}"
    );
    // One whose controller never says anything is taken as it is after a moment.
    let quiet = Component::named(env, "quiet");
    quiet.run(&[widget(&group, "q", 1)]).await.unwrap();
}

pub(crate) async fn a_check_sees_what_is_no_longer_ready(env: &Env) {
    let component = Component::new(env);
    let documents = [deployment("web", 1), config_map("a", "k", "1")];
    component.run(&documents).await.unwrap();
    let before = env.must(&component.parent_path()).await;
    let pods = env.must(&component.collection("pods")).await;
    let pod = pods["items"][0]["metadata"]["name"].as_str().unwrap().to_owned();
    env.set_ready(&component.path("pods", &pod), false).await;
    env.until(
        "the deployment to notice",
        &component.path("deployments", "web"),
        |live| live["status"].get("readyReplicas").is_none(),
    )
    .await;
    let verdict = component.check(&documents).await;
    let Verdict::NotReady(states) = &verdict else {
        panic!("{verdict:?}")
    };
    assert_eq!(states[0].object.name, "web");
    env.set_ready(&component.path("pods", &pod), true).await;
    evenkeel_testkit::eventually("the check to see it again", async || {
        match component.check(&documents).await {
            Verdict::Unchanged => Ok(()),
            verdict => Err(format!("{verdict:?}")),
        }
    })
    .await;
    // Looked at once, it is remembered.
    evenkeel_testkit::eventually("a check without a look", async || {
        let before = env.cluster.requests();
        component.check(&documents).await;
        let sent = env.cluster.requests().since(&before);
        if sent.total() == 3 && sent.writes() == 0 {
            Ok(())
        } else {
            Err(sent)
        }
    })
    .await;
    assert_eq!(
        env.must(&component.parent_path()).await,
        before,
        "a check writes nothing"
    );
}

fn rule(group: &str, ready: &str) -> ReadinessRule {
    ReadinessRule {
        api_version: format!("{group}/v1"),
        kind: "Widget".to_owned(),
        name: None,
        ready: ready.to_owned(),
        failed: Some("status.state == 'Broken'".to_owned()),
        message: Some("'the backend is ' + status.state".to_owned()),
    }
}

/// K38: a component is ready when its custom resource says so, in words of its own.
pub(crate) async fn a_rule_of_the_component_decides(env: &Env) {
    let group = format!("{}.ex.io", short(&env.name));
    let mut component = Component::new(env);
    component.options.readiness =
        ReadinessRules::compile(&[rule(&group, "status.state == 'Serving'")]).unwrap();
    let path = format!("/apis/{group}/v1/namespaces/{}/widgets/w", component.namespace);
    let state = |state: &str| json!({"status": {"state": state}});
    let documents = [definition(&group, "Namespaced", true), widget(&group, "w", 1)];
    // Its controller has not begun: by its kind's own rule it would be ready after a moment.
    let error = wait(&component, &documents, 7).await;
    assert!(
        matches!(&error, Error::NotReady { terminal: false, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("status"), "{error}");
    let controller = async {
        env.change(&format!("{path}/status"), &state("Starting")).await;
        evenkeel_testkit::eventually("its message to be told", async || {
            let events = component.events.lock().unwrap();
            let told = events.iter().any(|event| matches!(event, Event::Readiness(state) if state.readiness.to_string() == "the backend is Starting"));
            if told { Ok(()) } else { Err(events.clone()) }
        })
        .await;
        env.change(&format!("{path}/status"), &state("Serving")).await;
    };
    let (pass, ()) = tokio::join!(component.run(&documents), controller);
    pass.unwrap();
    assert!(matches!(component.check(&documents).await, Verdict::Unchanged));
    // A check sees it go, and a wait ends at once when waiting is useless.
    env.change(&format!("{path}/status"), &state("Broken")).await;
    let verdict = component.check(&documents).await;
    assert!(
        matches!(&verdict, Verdict::NotReady(states) if states[0].readiness.is_failed()),
        "{verdict:?}"
    );
    let error = wait(&component, &documents, 300).await;
    assert!(
        matches!(&error, Error::NotReady { terminal: true, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("the backend is Broken"), "{error}");
    // Another rule is looked at by the next pass, though nothing else changed.
    component.options.readiness =
        ReadinessRules::compile(&[rule(&group, "status.state in ['Serving', 'Idle']")]).unwrap();
    env.change(&format!("{path}/status"), &state("Idle")).await;
    component.run(&documents).await.unwrap();
    component.options.readiness =
        ReadinessRules::compile(&[rule(&group, "status.state == 'Serving'")]).unwrap();
    let error = wait(&component, &documents, 1).await;
    assert!(error.to_string().contains("the backend is Idle"), "{error}");
    // Kinds that have no status of their own can have a rule, too.
    let mut settings = Component::named(env, "settings");
    settings.options.readiness = ReadinessRules::compile(&[ReadinessRule {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: Some("filled".to_owned()),
        ready: "has(self.data.endpoint)".to_owned(),
        failed: None,
        message: None,
    }])
    .unwrap();
    let documents = [config_map("filled", "k", "1"), config_map("other", "k", "1")];
    let error = wait(&settings, &documents, 1).await;
    assert!(
        matches!(&error, Error::NotReady { objects, .. } if objects.len() == 1),
        "{error}"
    );
    let verdict = settings.check(&documents).await;
    assert!(!matches!(verdict, Verdict::Unchanged), "{verdict:?}");
    env.change(
        &settings.path("configmaps", "filled"),
        &json!({"data": {"endpoint": "x"}}),
    )
    .await;
    settings.run(&documents).await.unwrap();
    assert!(matches!(settings.check(&documents).await, Verdict::Unchanged));
}

/// What declares `status.observedGeneration` is not ready before its controller has seen it, however long that takes.
pub(crate) async fn what_its_controller_has_never_seen_is_not_ready(env: &Env) {
    let group = format!("{}.ex.io", short(&env.name));
    let mut crd = definition(&group, "Namespaced", true);
    crd.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = json!({"type": "object", "properties": {"observedGeneration": {"type": "integer"}, "note": {"type": "string"}}});
    let component = Component::new(env);
    let documents = [crd, widget(&group, "w", 1)];
    let error = wait(&component, &documents, 8).await;
    assert!(error.to_string().contains("has not seen it yet"), "{error}");
    let path = format!(
        "/apis/{group}/v1/namespaces/{}/widgets/w/status",
        component.namespace
    );
    env.change(&path, &json!({"status": {"note": "begun"}})).await;
    let error = wait(&component, &documents, 1).await;
    assert!(error.to_string().contains("has not seen it yet"), "{error}");
    env.change(&path, &json!({"status": {"observedGeneration": 1}}))
        .await;
    component.run(&documents).await.unwrap();
}

/// A claim of a class that waits for a pod is as it should be; one that waits for a volume is not.
pub(crate) async fn a_claim_may_wait_for_its_first_consumer(env: &Env) {
    let class = format!("{}-late", short(&env.name));
    env.make(
        "/apis/storage.k8s.io/v1/storageclasses",
        &json!({"metadata": {"name": class}, "provisioner": "evenkeel.dev/nobody", "volumeBindingMode": "WaitForFirstConsumer"}),
    )
    .await;
    let component = Component::new(env);
    let mut claim = doc(
        "templates/pvc.yaml",
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
               "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": {"requests": {"storage": "1Gi"}}}}),
    );
    hold(env, &mut claim);
    component.run(&[claim.clone()]).await.unwrap();
    let live = env.must(&component.path("persistentvolumeclaims", "data")).await;
    assert_ne!(live["status"]["phase"], "Bound");
    assert!(matches!(component.check(&[claim]).await, Verdict::Unchanged));
}

/// Keeps a claim from being bound.
fn hold(env: &Env, document: &mut evenkeel_cluster::ManifestObject) {
    if env.is_real() {
        document.object["spec"]["volumeName"] = json!("a-volume-that-is-not-there");
    } else {
        document.object["metadata"]["annotations"] =
            json!({evenkeel_simulator::BEHAVIOUR_ANNOTATION: "stuck"});
    }
}

/// What a crashing container wrote last is part of the diagnosis, within bounds.
pub(crate) async fn the_last_words_of_a_crashing_container_are_told(env: &Env) {
    let component = Component::new(env);
    let mut crashing = deployment("crashing", 1);
    script(env, &mut crashing, Script::CrashLoop);
    let log: String = (0..200).map(|line| format!("line {line}\n")).collect();
    let annotation = if env.is_real() {
        evenkeel_testkit::LOG_ANNOTATION
    } else {
        evenkeel_simulator::LOG_ANNOTATION
    };
    let template = crashing
        .object
        .pointer_mut("/spec/template/metadata/annotations")
        .unwrap();
    template[annotation] = json!(format!("{log}panic: no such host\n"));
    let mut session = component.session(&[crashing]).await.unwrap();
    session.prepare_namespaces().await.unwrap();
    session.apply().await.unwrap();
    env.until("the container to crash", &component.collection("pods"), |pods| {
        pods.pointer("/items/0/status/containerStatuses/0/restartCount")
            .and_then(Value::as_u64)
            .is_some_and(|restarts| restarts > 0)
            || pods
                .pointer("/items/0/status/containerStatuses/0/state/terminated")
                .is_some()
    })
    .await;
    let error = session
        .wait_ready(&WaitOptions {
            timeout: Duration::from_secs(1),
        })
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("Deployment.apps/crashing") && text.contains("pod crashing-"),
        "{text}"
    );
    assert!(
        text.contains("container main wrote") && text.contains("| panic: no such host"),
        "{text}"
    );
    assert!(
        text.contains("| line 199") && !text.contains("| line 5;"),
        "only the last lines: {text}"
    );
}

/// What a webhook guards cannot be written before somebody answers for it: its configuration is ready when each Service that is
/// called has a ready endpoint. One whose failure is ignored holds nothing up.
pub(crate) async fn a_webhook_waits_for_somebody_to_answer(env: &Env) {
    let component = Component::new(env);
    component.make_namespace().await;
    let nobody = json!({"spec": {"selector": {"app": "nobody"}}});
    let mut backend = service("backend").object;
    backend["spec"]["selector"] = nobody["spec"]["selector"].clone();
    env.make(&component.collection("services"), &backend).await;
    let backend = component.path("services", "backend");

    let name = format!("{}.example.com", component.namespace);
    let webhook = |name: String, service: &str, failure_policy: &str| {
        json!({
            "name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": failure_policy,
            "clientConfig": {"service": {"namespace": component.namespace, "name": service}},
            "rules": [{"apiGroups": ["nobody.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"]}],
        })
    };
    let configuration = doc(
        "templates/webhook.yaml",
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [webhook(name.clone(), "backend", "Fail"), webhook(format!("later.{name}"), "not-there", "Ignore")]}),
    );
    let documents = [configuration, deployment("web", 1)];
    let mut session = component.session(&documents).await.unwrap();
    session.prepare_namespaces().await.unwrap();
    session.apply().await.unwrap();
    let told = || {
        let events = component.events.lock().unwrap();
        let mut told = events.iter().filter_map(|event| match event {
            Event::Readiness(state) if state.object.name == name => Some(state.readiness.to_string()),
            _ => None,
        });
        told.next()
    };
    let somebody = async {
        evenkeel_testkit::eventually("the configuration is not ready", async || told().ok_or(())).await;
        let serving = json!({"spec": {"selector": {"app": "web"}}});
        env.change(&backend, &serving).await;
    };
    let options = WaitOptions {
        timeout: crate::env::WAIT,
    };
    let (waited, ()) = tokio::join!(session.wait_ready(&options), somebody);
    waited.unwrap();
    let told = told().unwrap();
    assert!(
        told.contains(&format!("Service {}/backend", component.namespace))
            && told.contains("no ready endpoint"),
        "{told}"
    );
    session.record(&component.inputs(&documents)).await.unwrap();
    let verdict = component.check(&documents).await;
    assert!(matches!(verdict, Verdict::Unchanged), "{verdict:?}");

    // Nobody answers any more: the next look at the configuration says so.
    env.change(&backend, &nobody).await;
    let slices = format!(
        "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices?labelSelector=kubernetes.io/service-name=backend",
        component.namespace
    );
    let is_empty = |slices: &Value| {
        let slices = slices["items"].as_array().unwrap();
        slices
            .iter()
            .all(|slice| slice["endpoints"].as_array().is_none_or(Vec::is_empty))
    };
    env.until("nothing to be behind the service", &slices, is_empty)
        .await;
    let path = format!("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{name}");
    env.change(&path, &json!({"metadata": {"annotations": {"theirs": "x"}}}))
        .await;
    let verdict = component.check(&documents).await;
    let Verdict::NotReady(objects) = &verdict else {
        panic!("{verdict:?}");
    };
    assert_eq!(objects[0].object.name, name);
    component.delete().await.unwrap();
}
