//! What goes wrong stays where it is, says why, and is mended by itself once its cause is gone.

use evenkeel_simulator::{Options, Simulator};
use serde_json::{Value, json};

use super::world::{PLAIN, Real, WEB, World, component, document, wanted};

fn reason(status: &Value) -> &str {
    status["reason"].as_str().unwrap_or_default()
}

#[test]
fn a_failure_touches_only_what_depends_on_it() {
    let west = Real::west();
    let world = World::new(&["--deadline", "5m"]);
    world.chart("web", WEB);
    world.chart("plain", PLAIN);
    world.chart(
        "broken",
        &[(
            "templates/broken.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.a.b.c }}\n",
        )],
    );
    world.chart(
        "garbled",
        &[
            (
                "templates/a-good.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n",
            ),
            (
                "templates/z-bad.yaml",
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bad\n   data: {}\n",
            ),
        ],
    );
    let apps = west.cluster.unused_namespace("failures");
    let after = |name: &str| json!({"dependsOn": [name]});
    let whole = document(
        "west",
        &[
            wanted("fine", "web", &apps, json!({})),
            wanted("broken", "broken", &apps, json!({})),
            wanted("garbled", "garbled", &apps, json!({})),
            wanted(
                "crashing",
                "web",
                &apps,
                json!({"timeout": "5s", "values": [{"inline": {"script": "crash-loop"}}]}),
            ),
            wanted("next", "plain", &apps, after("broken")),
            wanted("last", "plain", &apps, after("next")),
        ],
    );
    let kubeconfig = west.cluster.kubeconfig_file().to_str().unwrap();
    world.apply(&whole, &["--kubeconfig", kubeconfig]).exits(0);

    // Another cluster goes on.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let simulator = runtime.block_on(Simulator::start(Options::default())).unwrap();
    let other = simulator.add_cluster("other").unwrap();
    let file = world.write("other.kubeconfig", other.kubeconfig());
    let healthy = document("other", &[wanted("plain", "plain", "apps", json!({}))]);
    world
        .apply(&healthy, &["--kubeconfig", file.to_str().unwrap(), "--wait"])
        .exits(0);

    let failed = |status: &Value| {
        let state = |name: &str| component(status, name)["state"].clone();
        ["broken", "garbled", "crashing"]
            .iter()
            .all(|name| state(name) == "failed" || state(name) == "retrying")
            && state("next") == "skipped"
            && state("last") == "skipped"
            && state("fine") == "succeeded"
    };
    let status = world.until("west", "each component's end", failed);
    assert_eq!(status["state"], "degraded");
    let said = |name: &str| {
        component(&status, name)["reason"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert!(
        said("broken").contains("broken/templates/broken.yaml:4:18"),
        "{}",
        said("broken")
    );
    assert!(
        said("garbled").contains("garbled/templates/z-bad.yaml") && said("garbled").contains("line 5"),
        "{}",
        said("garbled")
    );
    assert!(
        said("crashing").contains("Deployment.apps/crashing"),
        "{}",
        said("crashing")
    );
    assert!(said("next").contains("broken"), "{}", said("next"));
    assert!(
        said("last").contains("next") || said("last").contains("broken"),
        "{}",
        said("last")
    );
    assert!(!reason(&status).is_empty());
    // A manifest that cannot be read applies nothing of its component.
    assert_eq!(west.get(&format!("{apps}/configmap/good")), Value::Null);
    assert_eq!(west.get(&format!("{apps}/configmap/next")), Value::Null);

    // What people see, and what waits for it. At each new try the components are pending for a moment.
    super::world::eventually("what failed and what was skipped, in the table", || {
        let table = world.run(&["cluster", "status", "west"]).exits(0);
        let shown = table.stdout.contains("broken.yaml:4:18") && table.row("next")[1] == "skipped";
        if table.row("west")[1] == "degraded" && shown {
            Ok(())
        } else {
            Err(table.stdout)
        }
    });
    world
        .run(&["cluster", "status", "west", "--wait", "--timeout", "1s"])
        .exits(1)
        .says(&["west did not get there within 1s"]);
    let listed = world.run(&["cluster", "list", "--state", "degraded"]).exits(0);
    assert!(listed.stdout.contains("west"), "{}", listed.stdout);

    // What works is kept as it should be all the while.
    west.kubectl(&["-n", &apps, "delete", "configmap", "fine"]);
    west.until(&format!("{apps}/configmap/fine"), |found| {
        found["data"]["greeting"] == "hello"
    });

    // Mended charts are taken up by the next try; nobody has to say so.
    let components: Vec<_> = whole["components"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["name"] != "crashing")
        .cloned()
        .collect();
    world
        .apply(&document("west", &components), &[])
        .exits(0)
        .prints(&["version 2"]);
    world.until("west", "another failure", |status| {
        status["observedVersion"] == 2 && status["state"] == "degraded"
    });
    std::fs::remove_file(world.path("charts/broken/templates/broken.yaml")).unwrap();
    world.chart("broken", PLAIN);
    world.write(
        "charts/garbled/templates/z-bad.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\n",
    );
    let mended = world.until_ready("west");
    for name in ["broken", "garbled", "next", "last"] {
        assert_eq!(component(&mended, name)["state"], "succeeded", "{mended}");
    }
    assert_eq!(world.status("other")["state"], "ready");
    world.delete("west");
    runtime.block_on(simulator.stop());
}

#[test]
fn an_unreachable_cluster_is_never_taken_for_a_deleted_one() {
    let west = Real::west();
    let world = World::new(&[]);
    world.chart("web", WEB);
    let apps = west.cluster.unused_namespace("unreachable");
    world.install(
        &document("west", &[wanted("web", "web", &apps, json!({}))]),
        &west,
    );
    let uid = west.get(&format!("{apps}/deployment/web"))["metadata"]["uid"].clone();

    west.cluster.stop_api_server();
    let status = world.until("west", "an unreachable cluster", |status| {
        status["state"] == "degraded"
    });
    assert!(reason(&status).starts_with("unreachable: "), "{status}");
    world
        .run(&["cluster", "list"])
        .exits(0)
        .prints(&["degraded", "unreachable"]);
    west.cluster.start_api_server().unwrap();
    world.until_ready("west");
    assert_eq!(
        west.get(&format!("{apps}/deployment/web"))["metadata"]["uid"],
        uid
    );
    assert_eq!(world.runs("west").len(), 1, "there was nothing to do");

    // Nor when it is to be deleted.
    west.cluster.stop_api_server();
    world.run(&["cluster", "delete", "west", "--yes"]).exits(0);
    let status = world.until("west", "a deletion that cannot be done", |status| {
        reason(status).contains("unreachable")
    });
    assert_eq!(status["state"], "deleting");
    assert!(reason(&status).contains("forget"), "{status}");
    let changed = world.apply(&document("west", &[]), &[]).exits(1);
    changed.says(&["is being deleted", "EK-2002"]);
    west.cluster.start_api_server().unwrap();
    super::world::eventually("the end of the record", || {
        let ran = world.run(&["cluster", "get", "west"]);
        if ran.code == Some(1) && ran.stderr.contains("does not exist") {
            Ok(())
        } else {
            Err(ran.stdout)
        }
    });
    assert_eq!(west.get(&format!("namespace/{apps}")), Value::Null);
}

#[test]
fn wrong_credentials_are_named_and_replaced() {
    let west = Real::west();
    let world = World::new(&[]);
    world.chart("plain", PLAIN);
    let apps = west.cluster.unused_namespace("credentials");
    let whole = document("west", &[wanted("plain", "plain", &apps, json!({}))]);
    let file = |name: &str, content: &str| world.write(name, content).to_str().unwrap().to_owned();

    // A token that nobody has.
    let admin: Vec<_> = west.cluster.kubeconfig().lines().collect();
    let mut unknown = Vec::new();
    for line in admin {
        if line.contains("client-certificate-data:") {
            let indent = line.len() - line.trim_start_matches([' ', '-']).len();
            unknown.push(format!("{}token: nobodys-token", " ".repeat(indent)));
        } else if !line.contains("client-key-data:") {
            unknown.push(line.to_owned());
        }
    }
    let unknown = file("unknown", &unknown.join("\n"));
    world.apply(&whole, &["--kubeconfig", &unknown]).exits(0);
    let status = world.until("west", "a refusal", |status| {
        reason(status).starts_with("unauthorized: ")
    });
    assert_eq!(status["state"], "degraded");
    assert!(!status.to_string().contains("nobodys-token"));

    // One who may do nothing.
    let powerless = west.cluster.kubeconfig_for("nobody", None).unwrap();
    let powerless = file("powerless", &powerless);
    let changed = world.apply(&whole, &["--kubeconfig", &powerless]).exits(0);
    changed.prints(&["cluster west changed, version 2"]);
    let status = world.until("west", "another refusal", |status| {
        reason(status).starts_with("forbidden: ")
    });
    assert_eq!(
        (&status["state"], &status["observedVersion"]),
        (&json!("degraded"), &json!(2))
    );
    assert!(reason(&status).contains("nobody"), "{status}");

    world.install(&whole, &west);
    assert_eq!(world.status("west")["version"], 3);
    assert!(!world.said().iter().any(|line| line.contains("nobodys-token")));
    world.delete("west");
}
