//! K29: the installation's list of processes, and whose writes a target sees.

use evenkeel_api::InstanceState;
use serde_json::json;

use crate::world::{World, component};

#[tokio::test]
async fn a_process_is_told_of_while_it_lives() {
    let mut world = World::new().await;
    let listed = async |world: &World| world.fleet().instances().await.unwrap();
    let first = loop {
        match &listed(&world).await[..] {
            [one] => break one.clone(),
            [] => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            more => panic!("{more:?}"),
        }
    };
    assert_eq!((first.host.as_str(), first.role.as_str()), ("test", "all"));
    assert_eq!(first.state, InstanceState::Running);
    // Whoever opens the file next knows that the one before is gone, in whatever way it went.
    for killed in [false, true] {
        match killed {
            false => world.stop().await,
            true => world.kill().await,
        }
        world.start().await;
        let seen = listed(&world).await;
        assert!(
            seen.iter().all(|one| one.id != first.id) && seen.len() <= 1,
            "{seen:?}"
        );
    }
}

#[tokio::test]
async fn a_target_sees_whose_writes_they_are() {
    let world = World::new().await;
    world.map_chart("map");
    let blue = world.cluster("blue");
    blue.log_writes(1_000);
    world.put("blue", json!([component("web", "map")])).await;
    world.ready("blue").await;
    let run = world.newest_run("blue").await;
    let operation = run.operations[0].id.to_string();
    let writes = blue.logged_writes();
    let map: Vec<_> = writes
        .iter()
        .filter(|write| write.resource == "configmaps" && write.name == "web")
        .collect();
    assert_eq!(map.len(), 1, "{writes:?}");
    let said = format!("(operation {operation}; fence ");
    assert!(map[0].user_agent.contains(&said), "{map:?}");
    assert!(
        writes.iter().all(|write| write.user_agent.contains(&said)),
        "{writes:?}"
    );
}
