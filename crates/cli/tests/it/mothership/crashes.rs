//! A mothership that is killed, or asked to end, loses nothing and does nothing twice.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::world::{Real, WEB, World, component, document, wanted};

/// A mothership that was asked to end has ended by then.
const ENDS_WITHIN: Duration = Duration::from_secs(15);

fn password(real: &Real, namespace: &str) -> Value {
    real.get(&format!("{namespace}/secret/database-database"))["data"]["password"].clone()
}

/// Waits until an operation of `component` waits for its objects to become ready.
fn until_waiting(world: &World, real: &Real, name: &str, object: &str) {
    world.until("east", "an operation under way", |status| {
        component(status, name)["state"] == "running"
    });
    real.until(object, |found| found["status"]["observedGeneration"] == 1);
}

#[test]
fn a_killed_mothership_goes_on_where_it_was() {
    let east = Real::east();
    // The lease of a dead process ends soon.
    let mut world = World::new(&["--lease", "4s", "--heartbeat", "1s", "--write-timeout", "2s"]);
    world.example("database");
    world.chart("web", WEB);
    let (data, apps) = (
        east.cluster.unused_namespace("data"),
        east.cluster.unused_namespace("apps"),
    );
    let seedless = json!({"values": [{"inline": {"seed": {"enabled": false}}}]});
    let slow = json!({"dependsOn": ["database"], "values": [{"inline": {"script": "unready"}}]});
    let whole = document(
        "east",
        &[
            wanted("database", "database", &data, seedless.clone()),
            wanted("web", "web", &apps, slow),
        ],
    );
    let kubeconfig = east.cluster.kubeconfig_file().to_str().unwrap();
    world.apply(&whole, &["--kubeconfig", kubeconfig]).exits(0);
    let web = format!("{apps}/deployment/web");
    until_waiting(&world, &east, "web", &web);
    let (before, first_password) = (east.get(&web), password(&east, &data));
    assert!(first_password.is_string());
    let written = &before["metadata"]["resourceVersion"];
    assert!(written.is_string());

    world.kill();
    world.start();
    // The pod becomes ready only now, so that nobody else than the second process can have seen it.
    world.until("east", "another attempt", |status| {
        component(status, "web")["state"] == "running"
    });
    let pods = east.kubectl(&["-n", &apps, "get", "pods", "-o", "name"]);
    east.kubectl(&[
        "-n",
        &apps,
        "annotate",
        pods.trim(),
        "--overwrite",
        "stand-in.evenkeel.dev/pod=ready",
    ]);
    world.until_ready("east");

    let runs = world.runs("east");
    assert_eq!(
        (runs.len(), &runs[0]["strategy"]),
        (1, &json!("install")),
        "it is the same run"
    );
    let operations = world.operations(&runs[0]);
    let attempts: Vec<_> = operations
        .iter()
        .map(|one| {
            (
                one["component"].as_str().unwrap(),
                one["attempts"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        attempts,
        [("database", 1), ("web", 2)],
        "what was done is not done again"
    );
    let after = east.get(&web);
    assert_eq!(
        (&after["metadata"]["uid"], &after["metadata"]["generation"]),
        (&before["metadata"]["uid"], &json!(1))
    );
    assert_eq!(
        east.kubectl(&["-n", &apps, "get", "deployments", "-o", "name"])
            .lines()
            .count(),
        1
    );
    assert_eq!(password(&east, &data), first_password);
    keeps_its_password(&mut world, &east, &data, &apps, seedless);
}

/// A password made at random outlives repairs, changes of other components, and restarts.
fn keeps_its_password(world: &mut World, east: &Real, data: &str, apps: &str, seedless: Value) {
    let first = password(east, data);
    let uid = east.get(&format!("{data}/secret/database-database"))["metadata"]["uid"].clone();
    east.kubectl(&["-n", data, "delete", "secret", "database-database"]);
    let secret = east.until(&format!("{data}/secret/database-database"), |found| {
        found["metadata"]["uid"].is_string() && found["metadata"]["uid"] != uid
    });
    assert_eq!(
        secret["data"]["password"], first,
        "a repair brings the same one back"
    );
    world.until_ready("east");

    let changed = json!({"dependsOn": ["database"], "values": [{"inline": {"greeting": "other"}}]});
    let changed = document(
        "east",
        &[
            wanted("database", "database", data, seedless),
            wanted("web", "web", apps, changed),
        ],
    );
    world.apply(&changed, &["--wait"]).exits(0);
    assert_eq!(password(east, data), first);

    world.program().signal("TERM");
    assert_eq!(world.program().ends(ENDS_WITHIN).code(), Some(0));
    world.start();
    world.run(&["cluster", "reconcile", "east", "--wait"]).exits(0);
    assert_eq!(password(east, data), first);
    // Nor is it anywhere in the log.
    let plain = east.kubectl(&[
        "-n",
        data,
        "get",
        "secret",
        "database-database",
        "-o",
        "go-template={{.data.password | base64decode}}",
    ]);
    assert!(plain.len() == 24 && !world.said().iter().any(|line| line.contains(&plain)));
    world.delete("east");
}

#[test]
fn one_that_is_asked_to_end_gives_its_work_back() {
    let east = Real::east();
    // A lease so long that only work that was given back goes on in time.
    let mut world = World::new(&["--lease", "1h", "--heartbeat", "1m"]);
    world.chart("web", WEB);
    let apps = east.cluster.unused_namespace("apps");
    let whole = |script: &str| {
        document(
            "east",
            &[wanted(
                "web",
                "web",
                &apps,
                json!({"values": [{"inline": {"script": script}}]}),
            )],
        )
    };
    let kubeconfig = east.cluster.kubeconfig_file().to_str().unwrap();
    let web = format!("{apps}/deployment/web");
    world
        .apply(&whole("unready"), &["--kubeconfig", kubeconfig])
        .exits(0);
    until_waiting(&world, &east, "web", &web);

    for signal in ["TERM", "INT"] {
        let asked = Instant::now();
        world.program().signal(signal);
        let status = world.program().ends(ENDS_WITHIN);
        assert_eq!(status.code(), Some(0), "SIG{signal}");
        eprintln!("ended {} ms after SIG{signal}", asked.elapsed().as_millis());
        world.start();
        let begins = world.program().says("operation begins");
        let begins: Value = serde_json::from_str(&begins).unwrap();
        assert_eq!(
            begins["attempt"], 1,
            "what was given back has not failed: {begins}"
        );
        assert_eq!(world.runs("east").len(), 1);
    }
    // A newer configuration takes the place of what waits.
    world.apply(&whole("ready"), &["--wait"]).exits(0);
    let states: Vec<_> = world
        .runs("east")
        .iter()
        .map(|run| run["state"].clone())
        .collect();
    assert_eq!(states, [json!("succeeded"), json!("superseded")]);
    assert_eq!(east.get(&web)["metadata"]["generation"], 2);
    world.delete("east");
}

#[test]
fn one_id_finds_everything() {
    let east = Real::east();
    let mut world = World::new(&[]);
    world.chart("web", WEB);
    let apps = east.cluster.unused_namespace("apps");
    let mut whole = document("east", &[wanted("web", "web", &apps, json!({}))]);
    whole["kubeconfig"] = json!(east.cluster.kubeconfig());
    let answer = put(
        &world.server(),
        "/v2/clusters/east",
        "pager-4711",
        &whole.to_string(),
    );
    assert!(
        answer.starts_with("HTTP/1.1 201") && answer.contains("x-request-id: pager-4711"),
        "{answer}"
    );
    world.until_ready("east");

    let run = &world.runs("east")[0];
    let operation = &world.operations(run)[0];
    let written = "Deployment.apps/web";
    for (field, id) in [
        ("request_id", &json!("pager-4711")),
        ("reconciliation_id", &run["id"]),
        ("operation_id", &operation["id"]),
    ] {
        let lines = world.logs();
        let mut of_id = lines.iter().filter(|line| line[field] == *id);
        let object = of_id.find(|line| {
            line["object"]
                .as_str()
                .is_some_and(|object| object.contains(written))
        });
        let line =
            object.unwrap_or_else(|| panic!("no line with {field} {id} tells of {written}: {lines:#?}"));
        assert_eq!(
            (&line["cluster"], &line["component"]),
            (&json!("east"), &json!("web")),
            "{line}"
        );
        assert_eq!(
            (&line["reconciliation_id"], &line["operation_id"]),
            (&run["id"], &operation["id"]),
            "{line}"
        );
    }
    let of_request = |message: &str| {
        world
            .logs()
            .iter()
            .any(|line| line["request_id"] == "pager-4711" && line["message"] == message)
    };
    for message in [
        "accepted",
        "answered",
        "reconciliation begins",
        "operation begins",
        "operation ended",
        "reconciliation ended",
    ] {
        assert!(of_request(message), "{message}: {:#?}", world.logs());
    }
    // Every line about an operation names its cluster, and none is of another format.
    let lines = world.logs();
    assert!(
        lines
            .iter()
            .all(|line| line["operation_id"].is_null() || line["cluster"] == "east"),
        "{lines:#?}"
    );
    assert_eq!(
        lines.len() + 1,
        world.said().len(),
        "the line that says where it serves, and JSON"
    );

    // What comes by itself was asked for by nobody.
    east.kubectl(&["-n", &apps, "delete", "service", "web"]);
    east.until(&format!("{apps}/service/web"), |found| {
        found["metadata"].is_object()
    });
    world.until("east", "a second run", |status| {
        status["reconciliation"] != run["id"] && status["state"] == "ready"
    });
    let repair = world.runs("east")[0]["id"].clone();
    let lines = world.logs();
    let mut of_repair = lines
        .iter()
        .filter(|line| line["reconciliation_id"] == repair)
        .peekable();
    assert!(of_repair.peek().is_some() && of_repair.all(|line| line["request_id"].is_null()));
    world.delete("east");
    world.program().signal("INT");
    assert_eq!(world.program().ends(ENDS_WITHIN).code(), Some(0));
}

/// Sends a request as a program does that brings its own id.
fn put(server: &str, path: &str, request_id: &str, body: &str) -> String {
    use std::io::{Read as _, Write as _};
    let address = server.trim_start_matches("http://");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let head = format!(
        "PUT {path} HTTP/1.1\r\nhost: {address}\r\nx-request-id: {request_id}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
