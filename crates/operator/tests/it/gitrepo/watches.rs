//! The controller as it runs: what happens reaches the objects at once.

use evenkeel_operator::Scope;
use evenkeel_operator::resources::ConditionStatus;
use evenkeel_telemetry::{OnCancel, OnError, Tasks};
use evenkeel_testkit::eventually;
use serde_json::json;

use super::World;
use crate::git::{Site, at_every_host};

at_every_host!(changes_of_objects_and_of_secrets_reach_the_host_at_once);

async fn changes_of_objects_and_of_secrets_reach_the_host_at_once(site: &Site) {
    let world = World::new(site).await;
    let tasks = Tasks::new();
    let (repos, scope) = (world.repos.clone(), Scope::Namespace(world.namespace.clone()));
    drop(
        tasks.spawn("gitrepos", OnError::Log, OnCancel::Wait, |token| async move {
            repos.run(scope, token).await;
            Ok::<(), std::io::Error>(())
        }),
    );
    let variables =
        json!([{ "name": "A", "valueFrom": { "secretKeyRef": { "name": "values", "key": "a" } } }]);
    world
        .write(
            "live",
            json!({ "apiSecretRef": { "name": "later" }, "ciVariables": variables }),
        )
        .await;
    eventually("the missing Secret is told", async || {
        let told = world.condition("live", "RepoReady").await;
        let is_told = told
            .as_ref()
            .is_some_and(|told| told.status == ConditionStatus::False);
        if is_told { Ok(()) } else { Err(told) }
    })
    .await;
    // Nobody waits for the next interval.
    world.secret("values", &json!({ "a": "one" })).await;
    world.secret("later", &world.host_secret()).await;
    let shows = async |value: &str| {
        eventually("the variable", async || {
            let Some(project) = world.project("live").await else {
                return Err("no repository".to_owned());
            };
            let variables = world.host().variables(&project).await.unwrap();
            match variables.get("A").and_then(|variable| variable.value.clone()) {
                Some(found) if found.expose() == value => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    };
    shows("one").await;
    world.secret("values", &json!({ "a": "two" })).await;
    shows("two").await;
    world.delete("live").await;
    eventually("the object goes", async || {
        if world.is_gone("live").await {
            Ok(())
        } else {
            Err("it is there")
        }
    })
    .await;
    let ended = tasks.shutdown(std::time::Duration::from_secs(20)).await;
    assert!(ended.aborted.is_empty(), "{ended:?}");
}
