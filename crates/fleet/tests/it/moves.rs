//! Objects that move between components of one cluster keep their uid, whichever operation comes first.

use evenkeel_core::{ClusterState, OperationStateKind};
use serde_json::{Value, json};

use crate::world::{World, component, operations, reason, state, values, with};

/// A chart with a ConfigMap of each name that `names` lists.
fn names_chart(world: &World) {
    world.write("names", "values.yaml", "names: []\n");
    world.write(
        "names",
        "templates/maps.yaml",
        "{{- range .Values.names }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ . }}\ndata:\n  text: here\n{{- end }}\n",
    );
}

fn names(component_name: &str, names: &[&str]) -> Value {
    values(component(component_name, "names"), json!({"names": names}))
}

fn uid(world: &World, name: &str) -> Option<String> {
    let map = world
        .cluster("blue")
        .get("v1", "ConfigMap", "apps", name)
        .unwrap()?;
    Some(map["metadata"]["uid"].as_str().unwrap().to_owned())
}

fn part_of(world: &World, name: &str) -> String {
    let map = world
        .cluster("blue")
        .get("v1", "ConfigMap", "apps", name)
        .unwrap()
        .unwrap();
    map["metadata"]["labels"]["applyset.kubernetes.io/part-of"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn an_object_moves_in_either_order() {
    for losing_first in [true, false] {
        let world = World::new().await;
        names_chart(&world);
        let order = |losing: Value, gaining: Value| {
            let (first, second) = if losing_first { ("a", "b") } else { ("b", "a") };
            let depends = |component: Value| match component["name"] == second {
                true => with(component, json!({"dependsOn": [first]})),
                false => component,
            };
            json!([depends(losing), depends(gaining)])
        };
        world
            .put(
                "blue",
                order(names("a", &["one", "moving"]), names("b", &["two"])),
            )
            .await;
        world.ready("blue").await;
        let before = uid(&world, "moving").unwrap();
        let losing = part_of(&world, "moving");
        world
            .put(
                "blue",
                order(names("a", &["one"]), names("b", &["two", "moving"])),
            )
            .await;
        world.ready("blue").await;
        assert_eq!(uid(&world, "moving"), Some(before.clone()));
        assert_ne!(part_of(&world, "moving"), losing);
        assert_eq!(part_of(&world, "moving"), part_of(&world, "two"));
        let runs = world.runs("blue").await;
        world
            .fleet()
            .reconcile(&crate::world::name("blue"))
            .await
            .unwrap();
        world.ready("blue").await;
        assert_eq!(world.runs("blue").await, runs, "nothing is left to do");
    }
}

/// The losing component is no longer listed, and goes, before or after the gaining one takes over.
#[tokio::test]
async fn the_losing_component_is_removed() {
    for on_remove in ["delete", "orphan"] {
        let world = World::new().await;
        names_chart(&world);
        let losing = with(names("a", &["one", "moving"]), json!({"onRemove": on_remove}));
        world.put("blue", json!([losing, names("b", &["two"])])).await;
        world.ready("blue").await;
        let before = uid(&world, "moving").unwrap();
        world.put("blue", json!([names("b", &["two", "moving"])])).await;
        world.ready("blue").await;
        let mut done = operations(&world.newest_run("blue").await);
        done.sort();
        assert_eq!(done, ["delete a succeeded", "upgrade b succeeded"]);
        assert_eq!(uid(&world, "moving"), Some(before), "{on_remove}");
        assert_eq!(part_of(&world, "moving"), part_of(&world, "two"));
        assert_eq!(uid(&world, "one").is_some(), on_remove == "orphan");
    }
}

#[tokio::test]
async fn one_object_of_two_components_is_refused() {
    let world = World::new().await;
    names_chart(&world);
    world
        .put(
            "blue",
            json!([names("a", &["one", "both"]), names("b", &["two"])]),
        )
        .await;
    world.ready("blue").await;
    world
        .put(
            "blue",
            json!([
                names("a", &["one", "both"]),
                names("b", &["two", "both", "three"])
            ]),
        )
        .await;
    let status = world
        .until("blue", "refused", |status| status.state == ClusterState::Degraded)
        .await;
    assert_eq!(
        state(&status, "b"),
        Some(OperationStateKind::Failed),
        "{status:?}"
    );
    let why = reason(&status, "b");
    assert!(
        why.contains("ConfigMap/both in namespace apps by b and a"),
        "{why}"
    );
    assert_eq!(uid(&world, "three"), None, "nothing was applied");
    // Both are new: neither gets it.
    let world = World::new().await;
    names_chart(&world);
    world
        .put("blue", json!([names("a", &["both"]), names("b", &["both"])]))
        .await;
    let failed = |status: &evenkeel_api::ClusterStatus| {
        ["a", "b"]
            .iter()
            .all(|component| state(status, component) == Some(OperationStateKind::Failed))
    };
    world.until("blue", "both are refused", failed).await;
    assert_eq!(uid(&world, "both"), None);
}
