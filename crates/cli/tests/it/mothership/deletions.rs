//! The ways in which a cluster leaves the inventory.

use serde_json::{Value, json};

use super::world::{PLAIN, Real, WEB, World, document, wanted};

#[test]
fn orphaned_things_run_on_and_can_be_adopted_again() {
    let west = Real::west();
    let world = World::new(&[]);
    world.chart("web", WEB);
    let apps = west.cluster.unused_namespace("orphans");
    let whole = |more: Value| document("west", &[wanted("web", "web", &apps, more)]);
    world.install(&whole(json!({})), &west);
    let path = format!("{apps}/deployment/web");
    let running = west.get(&path);
    assert!(running["metadata"]["labels"]["applyset.kubernetes.io/part-of"].is_string());

    world
        .run(&["cluster", "delete", "west", "--yes", "--mode", "orphan", "--wait"])
        .exits(0)
        .prints(&["west is deleted"]);
    world
        .run(&["cluster", "status", "west"])
        .exits(1)
        .says(&["does not exist"]);
    let left = west.get(&path);
    assert_eq!(left["metadata"]["uid"], running["metadata"]["uid"]);
    assert_eq!(left["status"]["readyReplicas"], 1);
    let labels = left["metadata"]["labels"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    assert!(
        !labels
            .keys()
            .any(|key| key.contains("applyset") || key.contains("evenkeel")),
        "{labels:?}"
    );
    assert_eq!(west.get("namespace/evenkeel-system"), Value::Null);

    // They are somebody's now: not touched unless told so.
    let kubeconfig = west.cluster.kubeconfig_file().to_str().unwrap();
    world
        .apply(&whole(json!({})), &["--kubeconfig", kubeconfig])
        .exits(0)
        .prints(&["cluster west created, version 1"]);
    let stopped = world.until("west", "a refusal", |status| status["state"] == "degraded");
    let reason = stopped["reason"].as_str().unwrap();
    assert!(reason.contains("web") && reason.contains("adopt"), "{reason}");
    world.apply(&whole(json!({"adopt": true})), &["--wait"]).exits(0);
    let adopted = west.get(&path);
    assert_eq!(adopted["metadata"]["uid"], running["metadata"]["uid"]);
    world.delete("west");
    // The namespace was there before we were.
    assert_ne!(west.get(&format!("namespace/{apps}")), Value::Null);
    assert_eq!(west.get(&path), Value::Null);
    west.kubectl(&["delete", "namespace", &apps, "--wait=false"]);
}

#[test]
fn forgotten_things_are_found_again_by_their_own() {
    let west = Real::west();
    let world = World::new(&[]);
    world.chart("web", WEB);
    world.chart("plain", PLAIN);
    let apps = west.cluster.unused_namespace("forgotten");
    let whole = document(
        "west",
        &[
            wanted("web", "web", &apps, json!({})),
            wanted("plain", "plain", &apps, json!({})),
        ],
    );
    world.install(&whole, &west);
    let mark = west.cluster.mark();
    world
        .run(&["cluster", "delete", "west", "--yes", "--mode", "forget", "--wait"])
        .exits(0);
    world
        .run(&["cluster", "get", "west"])
        .exits(1)
        .says(&["does not exist"]);
    assert_eq!(west.requests(mark).1, [""; 0], "the record alone goes");

    // A mothership with a new database, but of the same fleet, knows its own by what is written at the cluster.
    let other = World::new(&[]);
    other.chart("web", WEB);
    other.chart("plain", PLAIN);
    let mark = west.cluster.mark();
    other.install(&whole, &west);
    assert_eq!(west.requests(mark).1, [""; 0], "all is as it should be");
    assert_eq!(other.runs("west").len(), 0);
    other.delete("west");
    assert_eq!(west.get(&format!("namespace/{apps}")), Value::Null);
}

#[test]
fn deleting_asks_for_what_is_there() {
    let world = World::new(&[]);
    world
        .run(&["cluster", "delete", "nobody", "--yes"])
        .exits(1)
        .says(&["nobody", "does not exist"]);
    world
        .run(&["cluster", "delete", "c1", "--mode", "erase"])
        .exits(2)
        .says(&["uninstall", "orphan", "forget"]);
    world.apply(&document("c1", &[]), &[]).exits(0);
    let deleted = world
        .run(&["cluster", "delete", "c1", "--yes", "--wait"])
        .exits(0);
    deleted.prints(&["cluster c1 is being deleted (uninstall)", "cluster c1 is deleted"]);
}
