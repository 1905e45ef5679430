//! Variables of pipelines (B16).

use evenkeel_core::Sensitive;
use evenkeel_operator::git::{Comparison, VariableOptions, VariableSetting};
use evenkeel_steps::FailureClass;

use super::{Site, at_every_host};

at_every_host!(
    variables_are_set_changed_and_taken_away,
    more_variables_than_a_page_are_all_listed,
);

fn value(text: &str) -> Sensitive<String> {
    Sensitive::new(text.to_owned())
}

async fn variables_are_set_changed_and_taken_away(site: &Site) {
    let host = site.host();
    let project = site.new_project().await;
    assert!(host.variables(&project).await.unwrap().is_empty());
    let url = VariableSetting::plain(value("https://other"));
    let token = VariableSetting::masked(value("hush-hush-hush"));
    for (name, setting) in [
        ("COMMODORE_API_URL", &VariableSetting::plain(value("https://api"))),
        (
            "COMMODORE_API_TOKEN",
            &VariableSetting::masked(value("hush-hush")),
        ),
        ("COMMODORE_API_URL", &url),
        ("COMMODORE_API_TOKEN", &token),
    ] {
        host.set_variable(&project, name, setting).await.unwrap();
    }
    let variables = host.variables(&project).await.unwrap();
    assert_eq!(variables.len(), 2);
    let (seen_url, seen_token) = (&variables["COMMODORE_API_URL"], &variables["COMMODORE_API_TOKEN"]);
    assert_eq!(url.compare(seen_url), Comparison::Same);
    assert_eq!(
        VariableSetting::masked(url.value.clone()).compare(seen_url),
        Comparison::Different
    );
    assert_eq!(
        VariableSetting::plain(value("https://api")).compare(seen_url),
        Comparison::Different
    );
    // Gitea never shows what is masked.
    let expected = match site {
        Site::Gitea => Comparison::Hidden,
        Site::GitLab(_) => Comparison::Same,
    };
    assert!(seen_token.is_masked);
    assert_eq!(token.compare(seen_token), expected);
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

async fn more_variables_than_a_page_are_all_listed(site: &Site) {
    let host = site.host();
    let project = site.new_project().await;
    let setting = VariableSetting::plain(value("v"));
    let count = site.more_than_a_page();
    for number in 0..count {
        host.set_variable(&project, &format!("V{number}"), &setting)
            .await
            .unwrap();
    }
    assert_eq!(host.variables(&project).await.unwrap().len(), count);
}

/// B16: what GitLab keeps beside the value is set, and told apart.
#[tokio::test]
async fn gitlab_keeps_the_options_of_a_variable() {
    let site = Site::gitlab().await;
    let (host, project) = (site.host(), site.new_project().await);
    let mut setting = VariableSetting {
        options: VariableOptions {
            description: "where the API is".to_owned(),
            is_protected: true,
            is_raw: true,
        },
        ..VariableSetting::plain(value("https://$api"))
    };
    host.set_variable(&project, "URL", &setting).await.unwrap();
    let seen = host.variables(&project).await.unwrap();
    assert_eq!(setting.compare(&seen["URL"]), Comparison::Same);
    setting.options.description.clear();
    assert_eq!(setting.compare(&seen["URL"]), Comparison::Different);
    host.set_variable(&project, "URL", &setting).await.unwrap();
    let seen = host.variables(&project).await.unwrap();
    assert_eq!(setting.compare(&seen["URL"]), Comparison::Same);
}

/// B16: a variable of the same name for one environment is somebody else's.
#[tokio::test]
async fn gitlab_variables_of_one_environment_stay_as_they_are() {
    let site = Site::gitlab().await;
    let (host, project) = (site.host(), site.new_project().await);
    let theirs = serde_json::json!({ "key": "URL", "value": "theirs", "environment_scope": "production" });
    site.call(reqwest::Method::POST, &project, "/variables", theirs)
        .await;
    assert!(host.variables(&project).await.unwrap().is_empty());
    let setting = VariableSetting::plain(value("ours"));
    for _ in 0..2 {
        host.set_variable(&project, "URL", &setting).await.unwrap();
    }
    assert_eq!(host.variables(&project).await.unwrap().len(), 1);
    host.delete_variable(&project, "URL", false).await.unwrap();
    let left = site
        .call(
            reqwest::Method::GET,
            &project,
            "/variables",
            serde_json::Value::Null,
        )
        .await;
    assert_eq!(left[0]["value"], "theirs");
}

/// B16: what cannot be masked is told, by the name of the variable.
#[tokio::test]
async fn gitlab_refuses_to_mask_what_is_too_short() {
    let site = Site::gitlab().await;
    let (host, project) = (site.host(), site.new_project().await);
    for text in ["", "short"] {
        let error = host
            .set_variable(&project, "TOKEN", &VariableSetting::masked(value(text)))
            .await
            .unwrap_err();
        assert_eq!(error.class(), FailureClass::Invalid, "{error}");
        assert!(
            error.to_string().starts_with("cannot set the variable TOKEN of "),
            "{error}"
        );
    }
}
