//! A repository's life, by the decision table of the predecessor's tests (A22, A32, B19, B31).

use evenkeel_operator::Error;
use evenkeel_operator::git::{ProjectId, RepoPath};
use evenkeel_steps::FailureClass;
use evenkeel_testkit::{FaultProxy, gitea};
use reqwest::Method;
use serde_json::Value;

use super::{Site, at_every_host, creations, file, note};

at_every_host!(
    it_is_created_described_archived_brought_back_and_deleted,
    what_exists_is_not_created_again,
    a_renamed_repository_is_found_by_its_number,
    a_repository_is_renamed_and_moved_and_keeps_its_number,
    a_place_that_is_not_free_is_told_and_nothing_is_lost,
    a_missing_organisation_is_told,
    a_token_that_is_not_known_is_told_and_not_shown,
    an_address_may_end_in_a_slash,
    a_server_may_stand_below_a_path,
    an_archived_repository_takes_no_commit,
);

async fn it_is_created_described_archived_brought_back_and_deleted(site: &Site) {
    let host = site.host();
    let kind = match site {
        Site::Gitea => "gitea",
        Site::GitLab(_) => "gitlab",
    };
    assert_eq!(host.kind(), kind);
    let path = RepoPath::new(&site.new_group().await, "t-one").unwrap();
    assert_eq!(host.find(&path).await.unwrap(), None);
    let created = host.create(&path, "One Corp.").await.unwrap();
    assert_eq!(
        (&created.path, created.description.as_str()),
        (&path, "One Corp.")
    );
    assert_eq!((created.is_archived, &created.default_branch), (false, &None));
    assert_eq!(host.find(&path).await.unwrap().as_ref(), Some(&created));
    assert_eq!(host.get(created.id).await.unwrap().as_ref(), Some(&created));
    let seen = site.call(Method::GET, &created, "", Value::Null).await;
    match site {
        Site::Gitea => assert_eq!(seen["private"], true),
        Site::GitLab(_) => assert_eq!(seen["visibility"], "private"),
    }

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

async fn what_exists_is_not_created_again(site: &Site) {
    let host = site.host();
    let project = site.new_project().await;
    let error = host.create(&project.path, "Another").await.unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
    assert_eq!(host.find(&project.path).await.unwrap().unwrap(), project);
}

/// The number stays when the name does not: what somebody moved is found by it, and its old place is free.
async fn a_renamed_repository_is_found_by_its_number(site: &Site) {
    let host = site.host();
    let project = site.new_project().await;
    site.rename(&project, "elsewhere").await;
    assert_eq!(host.find(&project.path).await.unwrap(), None);
    let found = host.get(project.id).await.unwrap().unwrap();
    assert_eq!(found.path.name(), "elsewhere");
    let second = host.create(&project.path, "").await.unwrap();
    assert_ne!(second.id, project.id);
}

/// B19.
async fn a_repository_is_renamed_and_moved_and_keeps_its_number(site: &Site) {
    let host = site.host();
    let project = site.new_project().await;
    let (first, second) = (project.path.group().to_owned(), site.new_group().await);
    let mut there = project.clone();
    for (group, name) in [
        (&first, "renamed"),
        (&second, "renamed"),
        (&first, "t-one"),
        (&first, "t-one"),
    ] {
        let to = RepoPath::new(group, name).unwrap();
        let left = there.path.clone();
        there = host.relocate(&there, &to).await.unwrap();
        assert_eq!((there.id, &there.path), (project.id, &to));
        assert_eq!(host.find(&to).await.unwrap().unwrap().id, project.id);
        assert!(left == to || host.find(&left).await.unwrap().is_none());
    }
    // The way over the one place between is barred: there is another.
    let between = RepoPath::new(&second, "t-one").unwrap();
    let other = host.create(&between, "").await.unwrap();
    let to = RepoPath::new(&second, "both").unwrap();
    there = host.relocate(&there, &to).await.unwrap();
    assert_eq!(host.find(&to).await.unwrap().unwrap().id, project.id);
    assert_eq!(host.find(&between).await.unwrap().unwrap().id, other.id);
    assert_eq!(there.path, to);
}

async fn a_place_that_is_not_free_is_told_and_nothing_is_lost(site: &Site) {
    let host = site.host();
    let (one, two) = (site.new_project().await, site.new_project().await);
    let same_group = RepoPath::new(one.path.group(), "other").unwrap();
    host.create(&same_group, "").await.unwrap();
    let nowhere = RepoPath::new("no-such-group", "t-one").unwrap();
    for (to, says) in [
        (&two.path, "another repository is at"),
        (&same_group, "another repository is at"),
        (&nowhere, "create no-such-group"),
    ] {
        let error = host.relocate(&one, to).await.unwrap_err();
        assert_eq!(error.class(), FailureClass::Invalid, "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(host.get(one.id).await.unwrap().as_ref(), Some(&one));
    }
}

async fn a_missing_organisation_is_told(site: &Site) {
    let path = RepoPath::new("no-such-group", "t-one").unwrap();
    let host = site.host();
    let error = host.create(&path, "").await.unwrap_err();
    assert_eq!(error.class(), FailureClass::Invalid);
    assert!(error.to_string().contains("create no-such-group"), "{error}");
    // Nothing is there, and that is an answer.
    assert_eq!(host.find(&path).await.unwrap(), None);
    assert_eq!(host.get(ProjectId(987_654_321)).await.unwrap(), None);
}

#[tokio::test]
async fn our_own_namespace_takes_repositories_too() {
    let user = gitea().create_user("operator-user").unwrap();
    let token = gitea().create_token(&user).unwrap();
    let host = Site::Gitea.host_at(&gitea().url(), &token);
    let path = RepoPath::new("operator-user", "mine").unwrap();
    let project = host.create(&path, "Mine").await.unwrap();
    assert_eq!(project.path, path);
}

/// A token that is not known is neither an absence nor an empty list.
async fn a_token_that_is_not_known_is_told_and_not_shown(site: &Site) {
    let project = site.new_project().await;
    let stranger = site.host_at(&site.url(), "0123456789abcdef0123456789abcdef01234567");
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
async fn an_address_may_end_in_a_slash(site: &Site) {
    let project = site.new_project().await;
    let host = site.host_at(&format!("{}/", site.url()), site.token());
    assert_eq!(host.find(&project.path).await.unwrap(), Some(project));
}

/// B31: a server that shares its name with others is asked below its path, and nothing else is.
async fn a_server_may_stand_below_a_path(site: &Site) {
    let proxy = FaultProxy::before(&site.url()).await;
    proxy.below("/forge");
    for end in ["/forge", "/forge/"] {
        let host = site.host_at(&format!("{}{end}", proxy.url()), site.token());
        let path = RepoPath::new(&site.new_group().await, "t-one").unwrap();
        let project = host.create(&path, "One Corp.").await.unwrap();
        host.describe(&project, "One & Only").await.unwrap();
        host.commit(&project, &creations(&[("sub/a", "A")]), &note())
            .await
            .unwrap();
        let project = host.find(&path).await.unwrap().unwrap();
        assert_eq!(project.description, "One & Only");
        assert!(host.files(&project).await.unwrap().contains_key(&file("sub/a")));
        assert!(host.deploy_keys(&project).await.unwrap().is_empty());
        assert!(host.variables(&project).await.unwrap().is_empty());
        host.delete(&project).await.unwrap();
        assert_eq!(host.find(&path).await.unwrap(), None);
    }
    let beside = site.host_at(&proxy.url(), site.token());
    let path = RepoPath::new("beside", "t-one").unwrap();
    assert_eq!(beside.find(&path).await.ok().flatten(), None);
}

/// What is archived takes no changes, and says so.
async fn an_archived_repository_takes_no_commit(site: &Site) {
    let host = site.host();
    let project = site.new_project().await;
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

/// Newer servers keep what was deleted for some days: it is as good as gone.
#[tokio::test]
async fn what_gitlab_keeps_after_its_deletion_is_gone() {
    let site = Site::gitlab().await;
    let Some(double) = site.double_or("a server that keeps what was deleted: not every one does") else {
        return;
    };
    double.delay_deletions(true);
    let (host, project) = (site.host(), site.new_project().await);
    host.delete(&project).await.unwrap();
    assert_eq!(host.find(&project.path).await.unwrap(), None);
    assert_eq!(host.get(project.id).await.unwrap(), None);
    host.delete(&project).await.unwrap();
    // Its place is not free yet.
    let error = host.create(&project.path, "").await.unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
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
