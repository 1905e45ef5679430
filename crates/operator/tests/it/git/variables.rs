//! Variables of pipelines (B16).

use evenkeel_core::Sensitive;
use evenkeel_operator::git::GitHost as _;
use evenkeel_testkit::gitea;
use reqwest::Method;
use serde_json::json;

use super::{host, new_project};

fn value(text: &str) -> Sensitive<String> {
    Sensitive::new(text.to_owned())
}

#[tokio::test]
async fn variables_are_set_changed_and_taken_away() {
    let host = host();
    let project = new_project(&host).await;
    assert!(host.variables(&project).await.unwrap().is_empty());
    host.set_variable(&project, "COMMODORE_API_URL", &value("https://api"), false)
        .await
        .unwrap();
    host.set_variable(&project, "COMMODORE_API_TOKEN", &value("hush"), true)
        .await
        .unwrap();
    host.set_variable(&project, "COMMODORE_API_URL", &value("https://other"), false)
        .await
        .unwrap();
    host.set_variable(&project, "COMMODORE_API_TOKEN", &value("hush, hush"), true)
        .await
        .unwrap();
    let variables = host.variables(&project).await.unwrap();
    assert_eq!(variables.len(), 2);
    let url = &variables["COMMODORE_API_URL"];
    assert_eq!(
        (url.value.as_ref().unwrap().expose().as_str(), url.is_masked),
        ("https://other", false)
    );
    let token = &variables["COMMODORE_API_TOKEN"];
    assert_eq!((&token.value, token.is_masked), (&None, true));
    assert!(!format!("{variables:?}").contains("other"));

    for _ in 0..2 {
        host.delete_variable(&project, "COMMODORE_API_URL", false)
            .await
            .unwrap();
        host.delete_variable(&project, "COMMODORE_API_TOKEN", true)
            .await
            .unwrap();
    }
    assert!(host.variables(&project).await.unwrap().is_empty());
}

#[tokio::test]
async fn more_variables_than_a_page_are_all_listed() {
    let host = host();
    let project = new_project(&host).await;
    for number in 0..60 {
        let path = format!("repos/{}/actions/variables/V{number}", project.path);
        gitea()
            .call(Method::POST, &path, json!({ "value": "v" }))
            .unwrap();
    }
    assert_eq!(host.variables(&project).await.unwrap().len(), 60);
}
