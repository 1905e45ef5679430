//! Plain manifests and kustomizations through the mothership.

use serde_json::json;

use super::world::{PLAIN, Real, World, component, document, wanted};

#[test]
fn manifests_and_kustomizations_are_kept_like_charts() {
    let west = Real::west();
    let program = evenkeel_testkit::realparts::kustomize().unwrap();
    let world = World::new(&["--kustomize", program.to_str().unwrap()]);
    world.example("probe");
    world.example("kustomized");
    world.chart("plain", PLAIN);
    let apps = west.cluster.unused_namespace("formats");
    let whole = document(
        "west",
        &[
            wanted("probe", "probe", &apps, json!({"format": "manifests"})),
            wanted(
                "worker",
                "kustomized/overlays/prod",
                &apps,
                json!({"dependsOn": ["probe"]}),
            ),
            wanted("plain", "plain", &apps, json!({})),
        ],
    );
    world.install(&whole, &west);
    let worker = west.get(&format!("{apps}/deployments.apps/prod-worker"));
    assert_eq!(worker["status"]["readyReplicas"], 2);
    let reference =
        &worker["spec"]["template"]["spec"]["containers"][0]["envFrom"][0]["configMapRef"]["name"];
    let settings = format!("{apps}/configmaps/{}", reference.as_str().unwrap());
    assert_eq!(west.get(&settings)["data"]["QUEUE"], "orders");

    // Drift of either is seen and healed.
    west.kubectl(&["-n", &apps, "delete", "service", "probe"]);
    west.until(&format!("{apps}/services/probe"), |found| !found.is_null());
    west.kubectl(&["-n", &apps, "scale", "deployment", "prod-worker", "--replicas=5"]);
    west.until(&format!("{apps}/deployments.apps/prod-worker"), |found| {
        found["spec"]["replicas"] == 2
    });

    // Another file content is another version of the component, found by the next look.
    world.write(
        "charts/kustomized/overlays/prod/settings.env",
        "QUEUE=returns\nBATCH=1\n",
    );
    west.until(&settings, |found| found.is_null());
    let status = world.until_ready("west");
    assert_eq!(component(&status, "worker")["state"], "succeeded");
    world.delete("west");
}

#[test]
fn what_could_never_work_is_refused_at_once() {
    let world = World::new(&[]);
    world.example("probe");
    world.example("kustomized");
    let values = json!({"values": [{"inline": {"replicas": 2}}]});
    for (source, format) in [
        ("probe", "manifests"),
        ("kustomized/overlays/prod", "kustomization"),
    ] {
        let refused = world
            .apply(
                &document("west", &[wanted("it", source, "apps", values.clone())]),
                &[],
            )
            .exits(1);
        let expected =
            format!("components[0].values: expected none: the source holds {format}, which takes no values");
        assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
    }
    let mut said = values;
    said["format"] = json!("manifests");
    let refused = world
        .apply(&document("west", &[wanted("it", "probe", "apps", said)]), &[])
        .exits(1);
    assert!(
        refused
            .stderr
            .contains("components[0].values: expected none: format manifests takes no values"),
        "{}",
        refused.stderr
    );
}

#[test]
fn without_kustomize_only_kustomizations_fail() {
    let west = Real::west();
    let world = World::new(&[]);
    world.example("probe");
    world.example("kustomized");
    let apps = west.cluster.unused_namespace("formats");
    let whole = document(
        "west",
        &[
            wanted("probe", "probe", &apps, json!({})),
            wanted("worker", "kustomized/overlays/prod", &apps, json!({})),
        ],
    );
    let kubeconfig = west.cluster.kubeconfig_file().to_str().unwrap();
    world.apply(&whole, &["--kubeconfig", kubeconfig]).exits(0);
    let status = world.until("west", "the end of both", |status| {
        let state = |name: &str| component(status, name)["state"].clone();
        state("probe") == "succeeded" && (state("worker") == "failed" || state("worker") == "retrying")
    });
    let reason = component(&status, "worker")["reason"]
        .as_str()
        .unwrap_or_default();
    assert!(
        reason.contains("name kustomize with --kustomize or EVENKEEL_KUSTOMIZE"),
        "{status}"
    );
    world.delete("west");
}
