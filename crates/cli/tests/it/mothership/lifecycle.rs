//! What a cluster goes through in its life, as its owner sees it.

use std::io::{BufRead as _, Seek as _, SeekFrom};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::world::{PLAIN, Real, WEB, World, component, document, eventually, wanted};

/// From an accepted change to the first write at the cluster.
const STARTED_WITHIN: Duration = Duration::from_secs(2);

fn moment(value: &Value) -> Timestamp {
    value.as_str().unwrap().parse().unwrap()
}

#[test]
fn a_cluster_from_its_registration_to_its_end() {
    let east = Real::east();
    let world = World::new(&[]);
    world.chart("web", WEB);
    world.chart("plain", PLAIN);
    let (apps, tools) = (
        east.cluster.unused_namespace("apps"),
        east.cluster.unused_namespace("tools"),
    );
    let web = |values: Value| {
        wanted(
            "web",
            "web",
            &apps,
            json!({"dependsOn": ["base"], "values": [{"inline": values}]}),
        )
    };
    let base = wanted("base", "web", &apps, json!({}));
    let tool = wanted("tool", "plain", &tools, json!({"dependsOn": ["web"]}));
    let first = document("east", &[tool.clone(), web(json!({})), base.clone()]);

    installs(&world, &east, &first, &apps);
    stays_idle(&world, &east);
    world.run(&["cluster", "plan", "east"]).exits(0).prints(&[
        "cluster east at version 1",
        &format!("web in namespace {apps}: "),
        " none",
    ]);
    let values = json!({"replicas": 2, "greeting": "bonjour"});
    upgrades(
        &world,
        &east,
        &document("east", &[tool.clone(), web(values), base.clone()]),
        &apps,
    );
    heals(&world, &east, &apps);

    // What is no longer rendered goes.
    let values = json!({"replicas": 2, "greeting": "bonjour", "extra": false});
    let pruned = document("east", &[tool, web(values.clone()), base.clone()]);
    world
        .apply(&pruned, &["--wait"])
        .exits(0)
        .prints(&["cluster east changed, version 3"]);
    assert_eq!(east.get(&format!("{apps}/configmap/web-extra")), Value::Null);
    assert_ne!(east.get(&format!("{apps}/configmap/base-extra")), Value::Null);

    // What is no longer listed goes, with the namespace that was made for it.
    let reduced = document("east", &[web(values), base]);
    world.apply(&reduced, &["--wait"]).exits(0).prints(&["version 4"]);
    assert_eq!(east.get(&format!("namespace/{tools}")), Value::Null);
    let removal = world.operations(&world.runs("east")[0]);
    let removal: Vec<_> = removal
        .iter()
        .map(|one| (one["component"].clone(), one["strategy"].clone()))
        .collect();
    assert_eq!(removal, [(json!("tool"), json!("delete"))]);

    rolls_back(&world, &east, &apps, &tools);
    ends(&world, &east, &apps, &tools, &first);
}

fn installs(world: &World, east: &Real, first: &Value, apps: &str) {
    let mark = east.cluster.mark();
    let skipped = std::fs::metadata(east.cluster.audit().path()).unwrap().len();
    let file = world.write("east.json", &first.to_string());
    let kubeconfig = east.cluster.kubeconfig_file().to_str().unwrap();
    let file = file.to_str().unwrap();
    let applied = world
        .run(&[
            "cluster",
            "apply",
            "-f",
            file,
            "--kubeconfig",
            kubeconfig,
            "--wait",
        ])
        .exits(0);
    applied.prints(&["cluster east created, version 1", "cluster east is ready"]);

    let available = east.kubectl(&[
        "-n",
        apps,
        "get",
        "deployments",
        "-o",
        "jsonpath={.items[*].status.availableReplicas}",
    ]);
    assert_eq!(available, "1 1");
    let runs = world.runs("east");
    assert_eq!(
        (runs.len(), &runs[0]["strategy"], &runs[0]["state"]),
        (1, &json!("install"), &json!("succeeded"))
    );
    let operations = world.operations(&runs[0]);
    let order: Vec<_> = operations
        .iter()
        .map(|one| one["component"].as_str().unwrap())
        .collect();
    assert_eq!(order, ["base", "web", "tool"]);
    for pair in operations.windows(2) {
        assert!(
            moment(&pair[0]["finished"]) <= moment(&pair[1]["started"]),
            "{pair:?}"
        );
    }
    let (_, writes) = east.requests(mark);
    let at = |path: &str| {
        writes
            .iter()
            .position(|write| write.contains(path))
            .unwrap_or_else(|| panic!("{path}: {writes:?}"))
    };
    assert!(
        at("/deployments/base") < at("/deployments/web") && at("/deployments/web") < at("/configmaps/tool"),
        "{writes:?}"
    );

    let accepted = moment(&world.json(&["cluster", "history", "east"])["configurations"][0]["created"]);
    let took = first_write(east, skipped).duration_since(accepted);
    eprintln!(
        "from the accepted change to the first write: {} ms",
        took.as_millis()
    );
    assert!(
        took.is_positive() && took.unsigned_abs() < STARTED_WITHIN,
        "{took:?}"
    );

    // What people see.
    let list = world.run(&["cluster", "list"]).exits(0);
    assert_eq!(list.row("east")[1], "ready");
    assert_eq!(
        world
            .run(&["cluster", "list", "--state", "failed", "-o", "json"])
            .exits(0)
            .stdout
            .matches("east")
            .count(),
        0
    );
    let status = world.run(&["cluster", "status", "east"]).exits(0);
    assert_eq!(status.row("east")[1], "ready");
    assert_eq!(status.row("web")[..3], ["web", "succeeded", "1"]);
    world
        .run(&["cluster", "get", "east"])
        .exits(0)
        .prints(&["tool,web,base"]);
    let yaml = world.run(&["cluster", "get", "east", "-o", "yaml"]).exits(0);
    assert!(
        yaml.stdout.contains("hasKubeconfig: true") && !yaml.stdout.contains("client-key"),
        "{yaml:?}"
    );
}

/// When the API server received our first write after the first `skipped` bytes of its own log.
fn first_write(real: &Real, skipped: u64) -> Timestamp {
    let mut log = std::fs::File::open(real.cluster.audit().path()).unwrap();
    log.seek(SeekFrom::Start(skipped)).unwrap();
    let lines = std::io::BufReader::new(log).lines();
    let mut lines = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let first = lines.find(|line| {
        let ours = line["userAgent"]
            .as_str()
            .is_some_and(|agent| agent.starts_with("evenkeel/"));
        ours && matches!(line["verb"].as_str(), Some("create" | "patch" | "update"))
    });
    moment(&first.unwrap()["requestReceivedTimestamp"])
}

/// Periodic checks of an unchanged cluster write nothing, and once watches vouch for it they ask nothing.
fn stays_idle(world: &World, east: &Real) {
    let runs = world.runs("east").len();
    let before = world.status("east");
    let checked = |since: &Value| {
        let since = since["checked"].clone();
        world.until("east", "another check", move |status| {
            status["checked"] != since && status["checked"].is_string()
        })
    };
    let after = eventually("a check that asks nothing", || {
        let mark = east.cluster.mark();
        let after = checked(&checked(&world.status("east")));
        let (requests, writes) = east.requests(mark);
        assert_eq!(writes, [""; 0]);
        if requests == 0 {
            Ok(after)
        } else {
            Err(format!("{requests} requests"))
        }
    });
    assert_eq!(world.runs("east").len(), runs);
    assert_eq!(
        after["revision"], before["revision"],
        "being looked at is no change"
    );
}

fn upgrades(world: &World, east: &Real, upgraded: &Value, apps: &str) {
    let base = east.get(&format!("{apps}/deployment/base"))["metadata"]["resourceVersion"].clone();
    let applied = world.apply(upgraded, &["--wait"]).exits(0);
    applied.prints(&["cluster east changed, version 2", "cluster east is ready"]);
    let web = east.get(&format!("{apps}/deployment/web"));
    assert_eq!(
        (&web["spec"]["replicas"], &web["status"]["readyReplicas"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(
        east.get(&format!("{apps}/configmap/web"))["data"]["greeting"],
        "bonjour"
    );
    assert_eq!(
        east.get(&format!("{apps}/deployment/base"))["metadata"]["resourceVersion"],
        base
    );
    let runs = world.runs("east");
    assert_eq!(
        (&runs[0]["strategy"], &runs[0]["version"]),
        (&json!("upgrade"), &json!(2))
    );
    let operations = world.operations(&runs[0]);
    assert_eq!(
        operations.len(),
        1,
        "only what differs becomes an operation: {operations:?}"
    );
    assert_eq!(component(&world.status("east"), "web")["revision"], 2);
    world
        .apply(upgraded, &["--wait"])
        .exits(0)
        .prints(&["cluster east unchanged, version 2"]);
}

fn heals(world: &World, east: &Real, apps: &str) {
    let deployment = format!("{apps}/deployment/web");
    let before = east.get(&deployment)["metadata"]["uid"].clone();
    east.kubectl(&["-n", apps, "delete", "deployment", "web", "--wait=false"]);
    east.until(&deployment, |found| {
        found["status"]["readyReplicas"] == 2 && found["metadata"]["uid"] != before
    });
    world.until_ready("east");

    let patch = r#"{"data":{"greeting":"hacked","theirs":"kept"}}"#;
    east.kubectl(&[
        "-n",
        apps,
        "patch",
        "configmap",
        "web",
        "--type=merge",
        "-p",
        patch,
    ]);
    let healed = east.until(&format!("{apps}/configmap/web"), |found| {
        found["data"]["greeting"] == "bonjour"
    });
    assert_eq!(
        healed["data"]["theirs"], "kept",
        "a field that nobody asked for is nobody's business"
    );
    world.until_ready("east");
    let runs = world.runs("east");
    for run in &runs[..2] {
        assert_eq!(
            (&run["strategy"], &run["state"], &run["version"]),
            (&json!("repair"), &json!("succeeded"), &json!(2))
        );
    }
    let causes = world.operations(&runs[0])[0]["cause"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(causes.contains("ConfigMap"), "{causes}");
    assert_eq!(
        component(&world.status("east"), "web")["revision"],
        2,
        "a repair is no revision"
    );
}

fn rolls_back(world: &World, east: &Real, apps: &str, tools: &str) {
    let rolled = world
        .run(&["cluster", "rollback", "east", "--to", "2", "--wait"])
        .exits(0);
    rolled.prints(&[
        "cluster east is at version 5, made from version 2",
        "cluster east is ready",
    ]);
    assert_ne!(east.get(&format!("{tools}/configmap/tool")), Value::Null);
    assert_ne!(east.get(&format!("{apps}/configmap/web-extra")), Value::Null);
    world
        .run(&["cluster", "rollback", "east", "--to", "5"])
        .exits(1)
        .says(&["east", "version 5", "newest", "EK-2002"]);
    world
        .run(&["cluster", "rollback", "east", "--to", "50"])
        .exits(1)
        .says(&["no such version"]);

    let history = world.json(&["cluster", "history", "east"]);
    let versions: Vec<_> = history["configurations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["version"].as_u64().unwrap())
        .collect();
    assert_eq!(versions, [5, 4, 3, 2, 1]);
    let table = world.run(&["cluster", "history", "east"]).exits(0);
    assert_eq!(table.row("4")[2], "web,base");

    let mark = east.cluster.mark();
    world
        .run(&["cluster", "reconcile", "east", "--wait"])
        .exits(0)
        .prints(&["cluster east is due now"]);
    assert_eq!(east.requests(mark).1, [""; 0], "there is nothing to do");
    let run = &world.runs("east")[0];
    let shown = world
        .run(&["reconciliation", "get", run["id"].as_str().unwrap()])
        .exits(0);
    shown.prints(&["COMPONENT", "apply", "ConfigMap/tool"]);
}

fn ends(world: &World, east: &Real, apps: &str, tools: &str, first: &Value) {
    world.delete("east");
    for namespace in [apps, tools, "evenkeel-system"] {
        assert_eq!(east.get(&format!("namespace/{namespace}")), Value::Null);
    }
    world
        .run(&["cluster", "get", "east"])
        .exits(1)
        .says(&["east", "does not exist", "EK-2001"]);
    world.run(&["cluster", "list"]).exits(0).prints(&["NAME"]);
    // The name can be used again, and knows nothing of its former life.
    let again = world.apply(first, &[]).exits(0);
    again.prints(&["cluster east created, version 1"]);
    let status = eventually("a reason", || {
        let status = world.status("east");
        if status["reason"].is_string() {
            Ok(status)
        } else {
            Err(status.to_string())
        }
    });
    assert!(
        status["reason"].as_str().unwrap().contains("no kubeconfig"),
        "{status}"
    );
    world
        .run(&["cluster", "delete", "east", "--yes", "--wait"])
        .exits(0);
}
