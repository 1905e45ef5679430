//! A repository's life, by the decision table of the predecessor's tests (A22, A32, B19, B31).

use evenkeel_operator::Error;
use evenkeel_operator::git::{GitHost as _, ProjectId, RepoPath};
use evenkeel_steps::FailureClass;
use evenkeel_testkit::gitea;
use reqwest::Method;
use serde_json::json;

use super::{creations, file, host, host_at, new_group, new_project, note};

#[tokio::test]
async fn it_is_created_described_archived_brought_back_and_deleted() {
    let host = host();
    assert_eq!(host.kind(), "gitea");
    let path = RepoPath::new(&new_group(), "t-one").unwrap();
    assert_eq!(host.find(&path).await.unwrap(), None);
    let created = host.create(&path, "One Corp.").await.unwrap();
    assert_eq!(
        (&created.path, created.description.as_str()),
        (&path, "One Corp.")
    );
    assert_eq!((created.is_archived, &created.default_branch), (false, &None));
    assert_eq!(host.find(&path).await.unwrap().as_ref(), Some(&created));
    assert_eq!(host.get(created.id).await.unwrap().as_ref(), Some(&created));
    let seen = gitea()
        .call(Method::GET, &format!("repos/{path}"), serde_json::Value::Null)
        .unwrap();
    assert_eq!(seen["private"], true);

    host.describe(&created, "One & Only").await.unwrap();
    assert_eq!(host.find(&path).await.unwrap().unwrap().description, "One & Only");
    host.set_archived(&created, true).await.unwrap();
    assert!(host.find(&path).await.unwrap().unwrap().is_archived);
    host.set_archived(&created, true).await.unwrap();
    host.set_archived(&created, false).await.unwrap();
    assert!(!host.find(&path).await.unwrap().unwrap().is_archived);
    host.delete(&created).await.unwrap();
    assert_eq!(host.find(&path).await.unwrap(), None);
    assert_eq!(host.get(created.id).await.unwrap(), None);
    host.delete(&created).await.unwrap();
}

#[tokio::test]
async fn what_exists_is_not_created_again() {
    let host = host();
    let project = new_project(&host).await;
    let error = host.create(&project.path, "Another").await.unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
    assert_eq!(host.find(&project.path).await.unwrap().unwrap(), project);
}

/// The number stays when the name does not: what somebody moved is found by it, and its old place is free.
#[tokio::test]
async fn a_renamed_repository_is_found_by_its_number() {
    let host = host();
    let project = new_project(&host).await;
    let renamed = json!({ "name": "elsewhere" });
    gitea()
        .call(Method::PATCH, &format!("repos/{}", project.path), renamed)
        .unwrap();
    assert_eq!(host.find(&project.path).await.unwrap(), None);
    let found = host.get(project.id).await.unwrap().unwrap();
    assert_eq!(found.path.name(), "elsewhere");
    let second = host.create(&project.path, "").await.unwrap();
    assert_ne!(second.id, project.id);
}

#[tokio::test]
async fn a_missing_organisation_is_told() {
    let path = RepoPath::new("no-such-group", "t-one").unwrap();
    let error = host().create(&path, "").await.unwrap_err();
    assert_eq!(error.class(), FailureClass::Invalid);
    assert!(
        error.to_string().contains("there is no such organisation"),
        "{error}"
    );
    // Nothing is there, and that is an answer.
    assert_eq!(host().find(&path).await.unwrap(), None);
    assert_eq!(host().get(ProjectId(987_654_321)).await.unwrap(), None);
}

#[tokio::test]
async fn our_own_namespace_takes_repositories_too() {
    let user = gitea().create_user("operator-user").unwrap();
    let token = gitea().create_token(&user).unwrap();
    let host = host_at(&gitea().url(), &token);
    let path = RepoPath::new("operator-user", "mine").unwrap();
    let project = host.create(&path, "Mine").await.unwrap();
    assert_eq!(project.path, path);
}

/// A token that is not known is neither an absence nor an empty list.
#[tokio::test]
async fn a_token_that_is_not_known_is_told_and_not_shown() {
    let project = new_project(&host()).await;
    let stranger = host_at(&gitea().url(), "0123456789abcdef0123456789abcdef01234567");
    for error in [
        stranger.find(&project.path).await.unwrap_err(),
        stranger.deploy_keys(&project).await.unwrap_err(),
        stranger.delete(&project).await.unwrap_err(),
    ] {
        assert_eq!(error.class(), FailureClass::Forbidden, "{error}");
        assert!(
            !format!("{error:?} {stranger:?}").contains("0123456789"),
            "{error:?}"
        );
    }
}

/// B31: a slash at the end of the address is none in the middle of another.
#[tokio::test]
async fn an_address_may_end_in_a_slash() {
    let project = new_project(&host()).await;
    let host = host_at(&format!("{}/", gitea().url()), gitea().token());
    assert_eq!(host.find(&project.path).await.unwrap(), Some(project));
}

/// What is archived takes no changes, and says so.
#[tokio::test]
async fn an_archived_repository_takes_no_commit() {
    let host = host();
    let project = new_project(&host).await;
    host.commit(&project, &creations(&[("a", "A")]), &note())
        .await
        .unwrap();
    let project = host.find(&project.path).await.unwrap().unwrap();
    host.set_archived(&project, true).await.unwrap();
    let error = host
        .commit(&project, &creations(&[("b", "B")]), &note())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("commit 1 files"), "{error}");
    assert!(!host.files(&project).await.unwrap().contains_key(&file("b")));
}

#[test]
fn paths_lead_where_they_say() {
    for (group, name) in [
        ("", "a"),
        ("a", ""),
        ("a/../b", "c"),
        ("a", "b/c"),
        ("a", ".."),
        ("a//b", "c"),
    ] {
        assert!(RepoPath::new(group, name).is_err(), "{group} {name}");
    }
    let path = RepoPath::new("/tenants/emea/", "t-one").unwrap();
    assert_eq!((path.group(), path.name()), ("tenants/emea", "t-one"));
}
