//! How a mothership is started, and what its commands refuse.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::world::{PLAIN, World, document, wanted};
use crate::program::{Program, evenkeel};
use crate::ran::Ran;

fn mothership(world: &World, arguments: &[&str]) -> Ran {
    let mut command = evenkeel(world.folder.path());
    Ran::of(
        command
            .args(["mothership", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .output()
            .unwrap(),
    )
}

#[test]
fn what_cannot_work_is_refused_at_the_start() {
    let mut world = World::new(&[]);
    mothership(&world, &["--listen", "0.0.0.0:0"]).exits(2);
    let mut open = evenkeel(world.folder.path());
    let open = Ran::of(
        open.args(["mothership", "--listen", "0.0.0.0:8640"])
            .output()
            .unwrap(),
    );
    open.exits(1).says(&["0.0.0.0:8640", "loopback only"]);
    mothership(&world, &["--source-root", "nowhere"])
        .exits(2)
        .says(&["nowhere is not a directory"]);
    mothership(&world, &["--lease", "5s"])
        .exits(2)
        .says(&["write-timeout", "lease (5s)"]);
    mothership(&world, &["--slots", "0"]).exits(2).says(&["slots"]);
    mothership(&world, &["--fleet-name", "Not A Name"])
        .exits(2)
        .says(&["fleet-name"]);
    mothership(&world, &["--check-interval", "often"])
        .exits(2)
        .says(&["often", "30s"]);
    assert!(!world.path(".local").exists(), "nothing was made for them");

    // One process holds a database.
    mothership(&world, &["--database", "state/fleet.db"])
        .exits(1)
        .says(&["fleet.db is in use by process", "--database"]);

    // Its key ring is secret, made once, and never replaced for a database that holds secrets.
    let keys = world.path("state/fleet.keys");
    assert_eq!(
        std::fs::metadata(&keys).unwrap().permissions().mode() & 0o777,
        0o600
    );
    world.kill();
    let kept = std::fs::read(&keys).unwrap();
    std::fs::remove_file(&keys).unwrap();
    let refused = mothership(&world, &["--database", "state/fleet.db"]).exits(1);
    refused.says(&["key", "fleet.keys"]);
    assert!(!keys.exists());
    std::fs::write(&keys, kept).unwrap();
    world.start();
}

#[test]
fn the_database_is_in_the_state_directory_unless_told() {
    let folder = evenkeel_testkit::temp_dir();
    let mut program = Program::start(evenkeel(folder.path()).args(["mothership", "--listen", "127.0.0.1:0"]));
    program.says("serving on http://");
    assert!(folder.path().join(".local/state/evenkeel/evenkeel.db").exists());
    assert!(folder.path().join(".local/state/evenkeel/evenkeel.keys").exists());
    program.signal("INT");
    assert_eq!(program.ends(Duration::from_secs(20)).code(), Some(0));
}

#[test]
fn wrong_documents_change_nothing() {
    let world = World::new(&[]);
    world.chart("plain", PLAIN);
    let apply = |text: &str| {
        let file = world.write("fleet.yaml", text);
        world.run(&["cluster", "apply", "-f", file.to_str().unwrap()])
    };
    let good = "name: good\ncomponents: []\n---\n";
    apply(&format!(
        "{good}name: c1\ncomponents:\n- name: web\n   namespace: x\n"
    ))
    .exits(1)
    .says(&["fleet.yaml", "line 7"]);
    let unknown = apply(&format!(
        "{good}name: c1\ncomponents:\n- {{name: web, chart: x}}\n"
    ))
    .exits(1);
    unknown.says(&[
        "fleet.yaml, document at line 3",
        "components[0].chart",
        "unknown field",
    ]);
    apply("# nothing\n").exits(1).says(&["no cluster document"]);
    world
        .run(&["cluster", "apply", "-f", "missing.yaml"])
        .exits(1)
        .says(&["missing.yaml"]);
    world.run(&["cluster", "apply"]).exits(2);

    // The server's own refusals arrive with their code.
    let cyclic = json!({"dependsOn": ["b"]});
    let cyclic = document(
        "c1",
        &[
            wanted("a", "plain", "x", cyclic),
            wanted("b", "plain", "x", json!({"dependsOn": ["a"]})),
        ],
    );
    world
        .apply(&cyclic, &[])
        .exits(1)
        .says(&["cycle a → b → a", "EK-1002"]);
    let outside = document("c1", &[wanted("a", "../elsewhere", "x", json!({}))]);
    world
        .apply(&outside, &[])
        .exits(1)
        .says(&["components[0].source.directory", "EK-1007"]);
    let executes = world.write("exec.yaml", "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
        contexts: [{name: c, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n\
        users: [{name: u, user: {exec: {command: aws, apiVersion: client.authentication.k8s.io/v1}}}]\n");
    let fine = document("c1", &[wanted("a", "plain", "x", json!({}))]);
    world
        .apply(&fine, &["--kubeconfig", executes.to_str().unwrap()])
        .exits(1)
        .says(&["users[0].user.exec", "EK-1006"]);
    assert_eq!(world.json(&["cluster", "list"])["items"], json!([]));

    // Standard input is a file too.
    let mut command = evenkeel(world.folder.path());
    command
        .args(["cluster", "apply", "-f", "-"])
        .env("EVENKEEL_SERVER", world.server());
    let file = world.write("c1.json", &fine.to_string());
    let applied = Ran::of(
        command
            .stdin(std::fs::File::open(file).unwrap())
            .output()
            .unwrap(),
    );
    applied.exits(0).prints(&["cluster c1 created, version 1"]);
}

#[test]
fn a_mothership_that_is_not_there_is_said() {
    let folder = evenkeel_testkit::temp_dir();
    let run = |server: &str| {
        let mut command: Command = evenkeel(folder.path());
        Ran::of(
            command
                .args(["cluster", "list", "--server", server])
                .output()
                .unwrap(),
        )
    };
    // Nobody listens on the port of a listener that was closed.
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let refused = run(&format!("http://{closed}")).exits(1);
    refused.says(&[&closed.to_string(), "evenkeel mothership"]);
    run("localhost:1")
        .exits(1)
        .says(&["localhost:1", "http://127.0.0.1"]);
}
