//! Variables of pipelines (B16).

use evenkeel_core::Sensitive;
use evenkeel_operator::git::VariableSetting;
use evenkeel_operator::resources::ConditionStatus;
use serde_json::json;

use super::World;
use crate::git::{Site, at_every_host};

at_every_host!(
    variables_follow_the_specification_and_those_of_others_stay,
    one_bad_variable_keeps_no_other_away,
);

async fn variables_follow_the_specification_and_those_of_others_stay(site: &Site) {
    let world = World::new(site).await;
    world.secret("values", &json!({ "a": "secret-value-one" })).await;
    let from = json!({ "secretKeyRef": { "name": "values", "key": "a" } });
    let both = json!({ "ciVariables": [
        { "name": "PLAIN", "value": "v" },
        { "name": "HIDDEN", "valueFrom": from, "gitlabOptions": { "masked": true, "raw": true, "description": "d" } },
    ] });
    world.write("vars", both.clone()).await;
    world.converge("vars").await;
    world.assert_settled("vars").await;
    let project = world.project("vars").await.unwrap();
    let theirs = VariableSetting::plain(Sensitive::new("theirs".to_owned()));
    world
        .host()
        .set_variable(&project, "THEIRS", &theirs)
        .await
        .unwrap();
    let text = world.status("vars").await.last_applied_ci_variables.unwrap();
    assert!(
        text.starts_with(r#"[{"name":"PLAIN","value":"v"},{"name":"HIDDEN","valueFrom":"#),
        "{text}"
    );
    // What was kept back from the status: the value itself.
    assert!(
        !serde_json::to_string(&world.get("vars").await)
            .unwrap()
            .contains("secret-value-one")
    );
    // A value that changes in its Secret is set.
    world.secret("values", &json!({ "a": "secret-value-two" })).await;
    let passed = world.converge("vars").await;
    assert!(
        passed.timeline.contains("set variable HIDDEN"),
        "{}",
        passed.timeline
    );
    world.assert_settled("vars").await;

    world
        .write(
            "vars",
            json!({ "ciVariables": [{ "name": "HIDDEN", "value": "now plain" }] }),
        )
        .await;
    world.converge("vars").await;
    let variables = world.host().variables(&project).await.unwrap();
    assert_eq!(variables.keys().collect::<Vec<_>>(), ["HIDDEN", "THEIRS"]);
    assert!(!variables["HIDDEN"].is_masked);
    world.write("vars", json!({})).await;
    world.converge("vars").await;
    let variables = world.host().variables(&project).await.unwrap();
    assert_eq!(variables.keys().collect::<Vec<_>>(), ["THEIRS"]);
    assert_eq!(
        world.status("vars").await.last_applied_ci_variables.as_deref(),
        Some("null")
    );
    world.assert_settled("vars").await;
}

async fn one_bad_variable_keeps_no_other_away(site: &Site) {
    let world = World::new(site).await;
    let missing =
        |optional: bool| json!({ "secretKeyRef": { "name": "missing", "key": "k", "optional": optional } });
    let variables = json!([
        { "name": "BAD", "valueFrom": missing(false) }, { "name": "BLANK", "valueFrom": missing(true) },
        { "name": "GOOD", "value": "v" },
    ]);
    world.write("vars", json!({ "ciVariables": variables })).await;
    world.pass("vars").await;
    world
        .assert_condition(
            "vars",
            "CiSynced",
            ConditionStatus::False,
            "the variable BAD: there is no Secret missing",
        )
        .await;
    let project = world.project("vars").await.unwrap();
    let variables = world.host().variables(&project).await.unwrap();
    assert!(
        variables.contains_key("GOOD") && !variables.contains_key("BAD"),
        "{variables:?}"
    );
    // GOOD was set, although not all was: it goes when nobody wants it any more.
    world.write("vars", json!({})).await;
    world.converge("vars").await;
    assert!(world.host().variables(&project).await.unwrap().is_empty());
}
