//! What deletes much waits for a person, who agrees to exactly what was shown.

use serde_json::{Value, json};

use super::world::{Real, World, document, wanted};

/// ConfigMaps of the names that its values list.
const MAPS: &[(&str, &str)] = &[
    ("values.yaml", "names: [a, b, c, d, e, f, g]\ntext: first\n"),
    (
        "templates/maps.yaml",
        "{{- range .Values.names }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ . }}}\ndata: {text: {{ $.Values.text }}}\n{{- end }}\n",
    ),
];

/// The digest of the only plan that waits.
#[track_caller]
fn asked(world: &World, version: u64) -> String {
    let asked = super::world::eventually("a question about the newest version", || {
        let open = world.json(&["cluster", "consent", "west"]);
        let one = open
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["version"] == version)
            .cloned();
        one.ok_or_else(|| open.to_string())
    });
    asked["planDigest"].as_str().unwrap().to_owned()
}

/// DESIGN §7: more than the set share of deletions waits for consent to the very plan that was shown.
#[test]
fn consent_is_given_to_the_plan_that_was_shown() {
    let west = Real::west();
    let world = World::new(&[]);
    world.chart("maps", MAPS);
    let apps = west.cluster.unused_namespace("consent");
    let whole = |values: Value| {
        document(
            "west",
            &[wanted(
                "maps",
                "maps",
                &apps,
                json!({"values": [{"inline": values}]}),
            )],
        )
    };
    world.install(&whole(json!({"text": "first"})), &west);
    world
        .run(&["cluster", "consent", "west"])
        .exits(0)
        .prints(&["nothing of cluster west waits for consent"]);

    world.apply(&whole(json!({"names": ["a"]})), &[]).exits(0);
    let older = asked(&world, 2);
    world.run(&["cluster", "consent", "west"]).exits(0).prints(&[
        "component maps at version 2: 6 of 7 objects would be deleted",
        "ConfigMap/b in namespace",
        "ConfigMap/g in namespace",
        &older,
    ]);
    // A newer version asks anew; to the older plan nobody can agree any more.
    world
        .apply(&whole(json!({"names": ["a"], "text": "second"})), &[])
        .exits(0);
    let newer = asked(&world, 3);
    if newer != older {
        world
            .run(&["cluster", "consent", "west", "--plan", &older])
            .exits(1)
            .says(&["nothing asks for consent to plan", &older]);
    }
    let nobody = format!("sha256:{}", "0".repeat(64));
    world
        .run(&["cluster", "consent", "west", "--plan", &nobody])
        .exits(1)
        .says(&["nothing asks for consent to plan", &nobody])
        .prints(&["component maps at version 3"]);
    world
        .run(&["cluster", "consent", "west", "--component", "other", "--yes"])
        .exits(0)
        .prints(&["nothing of cluster west waits for consent"]);
    let path = |name: &str| format!("{apps}/configmap/{name}");
    assert_ne!(west.get(&path("g")), Value::Null, "nothing was done yet");
    assert_eq!(west.get(&path("a"))["data"]["text"], "first");

    world
        .run(&["cluster", "consent", "west", "--plan", &newer])
        .exits(0)
        .says(&["component maps: consent was given to delete 6 of 7 objects"]);
    world.until("west", "version 3 to be ready", |status| {
        status["state"] == "ready" && status["version"] == 3
    });
    assert_eq!(west.get(&path("g")), Value::Null);
    assert_eq!(west.get(&path("a"))["data"]["text"], "second");
    world.delete("west");
}
