//! Groups and organisations (A21).

use evenkeel_operator::git::RepoPath;
use evenkeel_steps::FailureClass;

use super::{Site, at_every_host};

at_every_host!(a_group_is_made_where_there_is_none);

async fn a_group_is_made_where_there_is_none(site: &Site) {
    let host = site.host();
    let group = format!("{}-made", site.new_group().await);
    for _ in 0..2 {
        host.ensure_group(&group).await.unwrap();
    }
    let path = RepoPath::new(&group, "t-one").unwrap();
    let project = host.create(&path, "").await.unwrap();
    assert_eq!(project.path, path);
}

/// A21: groups in groups, with the path escaped once.
#[tokio::test]
async fn gitlab_groups_lie_in_groups() {
    let site = Site::gitlab().await;
    let host = site.host();
    let group = format!("{}/emea/west", site.new_group().await);
    host.ensure_group(&group).await.unwrap();
    host.ensure_group(&group).await.unwrap();
    let path = RepoPath::new(&group, "t-one").unwrap();
    let project = host.create(&path, "").await.unwrap();
    assert_eq!(project.path, path);
    assert_eq!(host.find(&path).await.unwrap(), Some(project));
}

/// Gitea knows no groups in groups, and says so.
#[tokio::test]
async fn gitea_groups_do_not_lie_in_groups() {
    let error = Site::Gitea.host().ensure_group("tenants/emea").await.unwrap_err();
    assert_eq!(error.class(), FailureClass::Invalid, "{error}");
    assert!(error.to_string().contains("tenants/emea"), "{error}");
}
