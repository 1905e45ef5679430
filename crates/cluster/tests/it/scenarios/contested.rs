//! Who else writes to our objects all the time, and what of that is drift: cases DRF-02 and DRF-06.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_cluster::{Cluster, ConnectOptions, Error, Limits, Verdict};
use evenkeel_core::{Clock, ManualClock, Sensitive};
use jiff::SignedDuration;
use serde_json::json;

use crate::component::Component;
use crate::documents::{config_map, deployment, doc, service};
use crate::env::{Env, options};

/// DRF-02: who sets a field anew each time that it is corrected is named, and left alone for a while.
pub(crate) async fn a_contested_field_is_not_fought_for(env: &Env) {
    let clock = Arc::new(ManualClock::new("2026-12-01T00:00:00Z".parse().unwrap()));
    let options = ConnectOptions {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ..options()
    };
    let cluster = Cluster::connect(&Sensitive::new(env.kubeconfig()), options)
        .await
        .unwrap();
    let env = &env.with(cluster, env.name.clone());
    let component = Component::new(env);
    let documents = [config_map("a", "k", "ours"), config_map("b", "k", "1")];
    component.run(&documents).await.unwrap();
    let path = component.path("configmaps", "a");
    let theirs = json!({"data": {"k": "theirs"}});
    for _ in 0..3 {
        env.change(&path, &theirs).await;
        assert!(matches!(component.check(&documents).await, Verdict::Differs(_)));
        let pass = component.run(&documents).await.unwrap();
        assert_eq!(pass.done(), ["update ConfigMap/a"]);
        clock.advance(SignedDuration::from_secs(60));
    }
    let live = env.change(&path, &theirs).await;
    let verdict = component.check(&documents).await;
    let Verdict::NotReady(states) = &verdict else {
        panic!("{verdict:?}")
    };
    let told = states[0].to_string();
    assert!(
        told.contains("contested: data.k") && told.contains("somebody") && told.contains("3 times"),
        "{told}"
    );
    // Neither a check nor a pass writes, however often.
    let before = env.cluster.requests();
    let pass = component.run(&documents).await.unwrap();
    assert!(pass.changes.is_empty(), "{:?}", pass.done());
    component.check(&documents).await;
    assert_eq!(env.cluster.requests().since(&before).writes(), 0);
    assert_eq!(
        env.must(&path).await["metadata"]["resourceVersion"],
        live["metadata"]["resourceVersion"]
    );
    // Something else that changes is put right all the same, and a new content is applied.
    env.change(&component.path("configmaps", "b"), &json!({"data": {"k": "2"}}))
        .await;
    assert_eq!(
        component.run(&documents).await.unwrap().done(),
        ["update ConfigMap/b"]
    );
    // After the pause it is tried once more.
    clock.advance(SignedDuration::from_mins(11));
    assert!(matches!(component.check(&documents).await, Verdict::Differs(_)));
    assert_eq!(
        component.run(&documents).await.unwrap().done(),
        ["update ConfigMap/a"]
    );
    assert!(matches!(component.check(&documents).await, Verdict::Unchanged));
    let changed = [config_map("a", "k", "newer"), config_map("b", "k", "1")];
    env.change(&path, &theirs).await;
    assert_eq!(
        component.run(&changed).await.unwrap().done(),
        ["update ConfigMap/a"]
    );
    assert_eq!(env.must(&path).await["data"]["k"], "newer");
}

/// DRF-02: what admission changes of every write is no drift, since the same apply gives the same again.
pub(crate) async fn what_admission_changes_is_no_drift(env: &Env) {
    let component = Component::new(env);
    component.make_namespace().await;
    let policies = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
    let bindings = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";
    let name = format!("{}.ex.io", component.namespace);
    env.make(
        policies,
        &json!({"metadata": {"name": name}, "spec": {
            "failurePolicy": "Fail", "reinvocationPolicy": "Never",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": component.namespace}},
                "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}]},
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression":
                "[JSONPatch{op: \"add\", path: \"/data/k\", value: \"theirs\"}, JSONPatch{op: \"add\", path: \"/data/added\", value: \"x\"}]"}}]}}),
    )
    .await;
    env.make(
        bindings,
        &json!({"metadata": {"name": name}, "spec": {"policyName": name}}),
    )
    .await;
    let probe = json!({"metadata": {"name": "probe"}, "data": {"k": "x"}});
    evenkeel_testkit::eventually("the policy to be in force", async || {
        let path = format!("{}?dryRun=All", component.collection("configmaps"));
        let (_, answer) = env.send("POST", &path, "application/json", Some(&probe)).await;
        if answer["data"]["k"] == "theirs" {
            Ok(())
        } else {
            Err(answer)
        }
    })
    .await;
    let documents = [config_map("a", "k", "ours")];
    component.run(&documents).await.unwrap();
    let live = env.must(&component.path("configmaps", "a")).await;
    assert_eq!(live["data"], json!({"k": "theirs", "added": "x"}));
    for _ in 0..3 {
        assert!(matches!(component.check(&documents).await, Verdict::Unchanged));
        assert!(component.run(&documents).await.unwrap().changes.is_empty());
    }
    let still = env.must(&component.path("configmaps", "a")).await;
    assert_eq!(
        still["metadata"]["resourceVersion"],
        live["metadata"]["resourceVersion"]
    );
    env.remove(&format!("{bindings}/{name}")).await;
    env.remove(&format!("{policies}/{name}")).await;
}

/// DRF-06: what controllers fill in is no drift, and what is injected into an empty field of ours stays.
pub(crate) async fn what_controllers_fill_in_stays(env: &Env) {
    let component = Component::new(env);
    let name = format!("{}.ex.io", component.namespace);
    let hook = doc(
        "templates/webhook.yaml",
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name}, "webhooks": [{
                "name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
                "namespaceSelector": {"matchLabels": {"no": "namespace"}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
                "clientConfig": {"url": "https://127.0.0.1:9/nobody", "caBundle": ""}}]}),
    );
    let documents = [hook, service("web"), deployment("web", 1)];
    component.run(&documents).await.unwrap();
    let path = format!("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{name}");
    // What a certificate controller does.
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["x".to_owned()])
        .unwrap()
        .self_signed(&key)
        .unwrap();
    let bundle = {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(certificate.pem())
    };
    let inject = json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}]);
    let (status, answer) = env
        .send(
            "PATCH",
            &format!("{path}?fieldManager=injector"),
            "application/json-patch+json",
            Some(&inject),
        )
        .await;
    assert_eq!(status, 200, "{answer}");
    env.change(
        &component.path("deployments", "web"),
        &json!({"metadata": {"annotations": {"deployment.kubernetes.io/revision": "1"}}}),
    )
    .await;
    let address = env.must(&component.path("services", "web")).await["spec"]["clusterIP"].clone();
    assert!(address.is_string());
    let verdict = component.check(&documents).await;
    assert!(!matches!(verdict, Verdict::Differs(_)), "{verdict:?}");
    assert!(component.run(&documents).await.unwrap().changes.is_empty());
    // Even where another part of it changes.
    let mut changed = documents.clone();
    changed[0].object["webhooks"][0]["timeoutSeconds"] = json!(3);
    component.run(&changed).await.unwrap();
    let live = env.must(&path).await;
    assert_eq!(live["webhooks"][0]["clientConfig"]["caBundle"], bundle.as_str());
    assert_eq!(live["webhooks"][0]["timeoutSeconds"], 3);
    assert_eq!(
        env.must(&component.path("services", "web")).await["spec"]["clusterIP"],
        address
    );
}

/// More often than anybody would count tries.
const OUTRUN: usize = 12;

/// Somebody writes right before us, again and again: an object that is applied, one whose field is taken back, one that is
/// pruned, and what we remember of the component. All of it is done in the end, at once and not by a later pass.
pub(crate) async fn who_writes_all_the_time_stops_nobody(env: &Env) {
    let limits = Limits {
        // However slow the machine is: what is tested is that it goes on, not how long it takes.
        race_within: Duration::from_secs(60),
        ..Limits::default()
    };
    let (behind, proxy) = env.behind(limits).await;
    let component = Component::new(&behind);
    let first = [
        deployment("web", 1),
        config_map("taken", "k", "1"),
        config_map("pruned", "k", "1"),
    ];
    component.run(&first).await.unwrap();
    env.change(
        &component.path("configmaps", "taken"),
        &json!({"data": {"k": "theirs"}}),
    )
    .await;
    let paths = [
        component.path("deployments", "web"),
        component.path("configmaps", "taken"),
        component.path("configmaps", "pruned"),
        component.parent_path(),
    ];
    proxy.outrun("busybody", &paths, OUTRUN);
    let mut web = deployment("web", 1);
    web.object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example/main:2");
    let second = [web.clone(), config_map("taken", "k", "2")];
    let mut done = component.run(&second).await.unwrap().done();
    done.sort();
    assert_eq!(
        done,
        [
            "delete ConfigMap/pruned",
            "update ConfigMap/taken",
            "update Deployment/web"
        ]
    );
    let outran = proxy.outran();
    for path in &paths {
        assert_eq!(outran.get(path), Some(&OUTRUN), "{path}");
    }
    assert_eq!(env.must(&paths[1]).await["data"]["k"], "2");
    assert_eq!(
        env.must(&paths[0]).await["spec"]["template"]["spec"]["containers"][0]["image"],
        "registry.example/main:2"
    );
    env.until_gone(&paths[2]).await;
    // So is a deletion, with the namespace and the parent.
    let paths = [
        component.path("deployments", "web"),
        component.path("configmaps", "taken"),
        component.parent_path(),
        component.namespace_path(),
    ];
    proxy.outrun("busybody", &paths, OUTRUN);
    let deletion = component.delete().await.unwrap();
    assert!(deletion.complete && deletion.kept.is_empty(), "{deletion:?}");
    let outran = proxy.outran();
    for path in &paths {
        assert_eq!(outran.get(path), Some(&OUTRUN), "{path}");
    }
    for path in &paths {
        env.until_gone(path).await;
    }
}

/// Who is before us each time until the bound is named, with how often.
pub(crate) async fn who_never_lets_us_write_is_named(env: &Env) {
    let limits = Limits {
        race_within: Duration::from_secs(2),
        ..Limits::default()
    };
    let (behind, proxy) = env.behind(limits).await;
    let component = Component::new(&behind);
    component.run(&[config_map("a", "k", "1")]).await.unwrap();
    let path = component.path("configmaps", "a");
    proxy.outrun("busybody", std::slice::from_ref(&path), usize::MAX);
    let error = component.run(&[config_map("a", "k", "2")]).await.unwrap_err();
    let tries = proxy.outran()[&path];
    assert!(tries >= 2, "{tries}");
    let told = error.to_string();
    assert!(
        told.contains(&format!("{tries} times within")) && told.contains(&format!("busybody ({tries})")),
        "{tries}: {told}"
    );
    let Error::Objects(failed) = &error else {
        panic!("{error:?}")
    };
    assert!(matches!(failed[0].error, Error::LostRace(_)), "{error:?}");
    assert_eq!(env.must(&path).await["data"]["k"], "1");
}
