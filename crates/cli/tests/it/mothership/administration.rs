//! Keys, settings and the audit log from the command line, beside a mothership that serves.

use serde_json::json;

use super::world::{PLAIN, World, document, eventually, wanted};

const DATABASE: [&str; 2] = ["--database", "state/fleet.db"];

fn with_database<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &DATABASE].concat()
}

/// K17: a key is added, takes over, and the old one goes, while the mothership serves.
#[test]
fn keys_are_rotated_under_a_mothership() {
    let mut world = World::new(&[]);
    world.chart("web", PLAIN);
    world
        .apply(&document("c1", &[wanted("web", "web", "apps", json!({}))]), &[])
        .exits(0);
    let status = || world.json(&["keys", "status"]);
    let old = status()["keys"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(status()["keys"][0]["state"], "active");
    // Without another key there is nothing to rotate to.
    world
        .run(&with_database(&["keys", "rotate"]))
        .exits(1)
        .says(&[&old, "evenkeel keys add"]);
    world
        .run(&with_database(&["keys", "add"]))
        .exits(0)
        .prints(&["was added to", "fleet.keys"]);
    eventually("the new key is known", || {
        match status()["keys"].as_array().unwrap().len() {
            2 => Ok(()),
            _ => Err(status().to_string()),
        }
    });
    assert_eq!(status()["keys"][1]["state"], "new");
    let new = status()["keys"][1]["id"].as_str().unwrap().to_owned();
    world
        .run(&with_database(&["keys", "rotate", "--wait", "--timeout", "90s"]))
        .exits(0)
        .prints(&[&format!("everything is encrypted with key {new}")]);
    let after = status();
    assert_eq!(
        (&after["keys"][0]["values"], &after["keys"][0]["state"]),
        (&json!(0), &json!("replaced"))
    );
    assert_eq!(after["keys"][1]["state"], "active");
    // The database is the mothership's.
    world
        .run(&with_database(&["keys", "remove", &old, "--offline"]))
        .exits(1)
        .says(&["in use", "leave --offline out"]);
    world
        .run(&with_database(&["keys", "remove", &new]))
        .exits(1)
        .says(&[&new, "active key"]);
    world
        .run(&with_database(&["keys", "remove", &old]))
        .exits(0)
        .prints(&["was removed from"]);
    let ring = std::fs::read_to_string(world.path("state/fleet.keys")).unwrap();
    assert!(!ring.contains(&old) && ring.contains(&new));
    world.kill();
    // Nothing needs it: not the next start, and not a rotation without a mothership.
    world.run_alone(&with_database(&["keys", "add"])).exits(0);
    world
        .run_alone(&with_database(&["keys", "rotate", "--offline"]))
        .exits(0)
        .prints(&["values are encrypted again"]);
    world.start();
    world.run(&["cluster", "get", "c1"]).exits(0);
    let log = world.run(&["audit", "list"]).exits(0);
    log.prints(&["key.activate", "key.remove", "cluster.put"]);
    world
        .run(&["audit", "verify"])
        .exits(0)
        .prints(&["entries are whole"]);
}

#[test]
fn settings_are_set_and_the_audit_log_tells_of_it() {
    let world = World::new(&[]);
    world.chart("web", PLAIN);
    let mut grouped = document("c1", &[wanted("web", "web", "apps", json!({}))]);
    grouped["group"] = json!("blue");
    world.apply(&grouped, &[]).exits(0);
    let set = |arguments: &[&str]| world.run(&[&["settings", "set"], arguments].concat());
    set(&["failures-max", "20"])
        .exits(0)
        .prints(&["failures-max is 20 (from default)"]);
    set(&["failures-max", "30", "--group", "blue"])
        .exits(0)
        .prints(&["30 (from group)"]);
    set(&["check-interval", "90s", "--cluster", "c1"])
        .exits(0)
        .prints(&["check-interval is 1m30s (from cluster)"]);
    set(&["failures-max", "none"])
        .exits(1)
        .says(&["failures-max", "a whole number from 1 to 100000"]);
    set(&["failure-max", "3"])
        .exits(1)
        .says(&["no such setting", "failures-max"]);
    set(&["failures-max", "3", "--cluster", "c1", "--group", "blue"]).exits(2);
    let list = world.json(&["settings", "list", "--cluster", "c1"]);
    let of = |name: &str| {
        let all = list.as_array().unwrap();
        all.iter()
            .find(|setting| setting["name"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(
        (&of("failures-max")["value"], &of("failures-max")["layer"]),
        (&json!(30), &json!("group"))
    );
    assert_eq!(of("check-interval")["value"], "1m30s");
    assert!(of("deadline").get("value").is_none());
    world
        .run(&["settings", "unset", "failures-max", "--group", "blue"])
        .exits(0)
        .prints(&["failures-max is 20 (from default)"]);
    world
        .run(&["settings", "list"])
        .exits(0)
        .prints(&["retention-runs", "newest runs"]);
    let log = world.json(&[
        "audit",
        "list",
        "--target",
        "setting/check-interval of cluster c1",
    ]);
    assert_eq!(log["items"][0]["detail"]["value"], "1m30s");
    let verdict = world.json(&["audit", "verify"]);
    let head = format!("{}:{}", verdict["head"], verdict["digest"].as_str().unwrap());
    world.run(&["audit", "verify", "--known", &head]).exits(0);
    let later = head.replacen(&verdict["head"].to_string(), "99", 1);
    world
        .run(&["audit", "verify", "--known", &later])
        .exits(1)
        .prints(&["cut off"]);
    world.run(&["audit", "verify", "--known", "99"]).exits(2);
    world
        .run(&["cluster", "changes", "c1", "--object", "ConfigMap/web"])
        .exits(0);
    world
        .run(&["cluster", "history", "c1"])
        .exits(0)
        .prints(&["LASTED"]);
}
