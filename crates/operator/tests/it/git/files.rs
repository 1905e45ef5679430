//! Files: one commit, whatever folder, whatever the branch is called (A11, B12, B13, B14).

use std::collections::BTreeMap;

use evenkeel_operator::Error;
use evenkeel_operator::git::{BlobDigest, FileAction, FilePath};

use super::{Site, at_every_host, creations, file, note};

at_every_host!(
    all_changes_are_one_commit_also_the_first,
    who_changed_a_file_meanwhile_is_not_overwritten,
    the_default_branch_may_have_any_name,
    many_files_are_listed_whole,
);

async fn all_changes_are_one_commit_also_the_first(site: &Site) {
    let host = site.host();
    let project = site.new_project().await;
    assert_eq!(host.files(&project).await.unwrap(), BTreeMap::new());
    let first = creations(&[
        ("common.yml", ""),
        ("c-one.yml", "classes:\n- t-one.common\n"),
        ("deep/er/pipeline.yml", "stages: [build]"),
    ]);
    host.commit(&project, &first, &note()).await.unwrap();
    let project = host.find(&project.path).await.unwrap().unwrap();
    assert_eq!(project.default_branch.as_deref(), Some("main"));
    let files = host.files(&project).await.unwrap();
    let expected: BTreeMap<FilePath, BlobDigest> = [
        (file("common.yml"), BlobDigest::of(b"")),
        (file("c-one.yml"), BlobDigest::of(b"classes:\n- t-one.common\n")),
        (file("deep/er/pipeline.yml"), BlobDigest::of(b"stages: [build]")),
    ]
    .into();
    assert_eq!(files, expected);

    let changes: BTreeMap<FilePath, FileAction> = [
        (
            file("c-one.yml"),
            FileAction::Delete {
                over: files[&file("c-one.yml")].clone(),
            },
        ),
        (
            file("deep/er/pipeline.yml"),
            FileAction::Update {
                content: b"stages: [test]".to_vec(),
                over: files[&file("deep/er/pipeline.yml")].clone(),
            },
        ),
        (
            file("c-two.yml"),
            FileAction::Create {
                content: b"classes: []\n".to_vec(),
            },
        ),
    ]
    .into();
    host.commit(&project, &changes, &note()).await.unwrap();
    let names: Vec<String> = host
        .files(&project)
        .await
        .unwrap()
        .into_keys()
        .map(|path| path.to_string())
        .collect();
    assert_eq!(names, ["c-two.yml", "common.yml", "deep/er/pipeline.yml"]);
    let found = site.commits(&project).await;
    assert_eq!(found.len(), 2);
    for commit in found {
        assert_eq!(
            commit,
            [
                "Update cluster files",
                "Lieutenant Operator",
                "lieutenant-operator@syn.local"
            ]
        );
    }
}

/// Who changed a file since we looked keeps the change, and nothing of the commit is done.
async fn who_changed_a_file_meanwhile_is_not_overwritten(site: &Site) {
    let host = site.host();
    let project = site.new_project().await;
    host.commit(&project, &creations(&[("a", "A"), ("b", "B")]), &note())
        .await
        .unwrap();
    let project = host.find(&project.path).await.unwrap().unwrap();
    let stale = BlobDigest::of(b"what it once was");
    let update = FileAction::Update {
        content: b"ours".to_vec(),
        over: stale.clone(),
    };
    let delete = FileAction::Delete { over: stale };
    let create = FileAction::Create {
        content: b"ours".to_vec(),
    };
    for action in [update, delete, create] {
        let mut changes = creations(&[("c", "C")]);
        changes.insert(file("a"), action.clone());
        let error = host.commit(&project, &changes, &note()).await.unwrap_err();
        assert!(matches!(error, Error::Conflict { .. }), "{action:?}: {error}");
        let files = host.files(&project).await.unwrap();
        assert_eq!(files[&file("a")], BlobDigest::of(b"A"));
        assert!(!files.contains_key(&file("c")), "{action:?}");
    }
}

/// B14: the branch is the repository's own.
async fn the_default_branch_may_have_any_name(site: &Site) {
    let host = site.host();
    let project = site.new_project().await;
    host.commit(&project, &creations(&[("a", "A")]), &note())
        .await
        .unwrap();
    site.use_branch(&project, "release/next").await;
    let project = host.find(&project.path).await.unwrap().unwrap();
    assert_eq!(project.default_branch.as_deref(), Some("release/next"));
    host.commit(&project, &creations(&[("b", "B")]), &note())
        .await
        .unwrap();
    assert!(host.files(&project).await.unwrap().contains_key(&file("b")));
    assert_eq!(site.files_on(&project, "main").await, 1);
}

/// A11: more files than one page holds.
async fn many_files_are_listed_whole(site: &Site) {
    let host = site.host();
    let project = site.new_project().await;
    let names: Vec<String> = (0..1200)
        .map(|number| format!("folder/c-{number:04}.yml"))
        .collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
    host.commit(&project, &creations(&files), &note()).await.unwrap();
    let project = host.find(&project.path).await.unwrap().unwrap();
    assert_eq!(host.files(&project).await.unwrap().len(), 1200);
}

#[test]
fn files_lie_in_the_repository() {
    for bad in [
        "",
        "/a",
        "a/",
        "../a",
        "a/../../b",
        "a//b",
        ".git/config",
        "a/.GIT/x",
        "a\nb",
    ] {
        assert!(FilePath::new(bad).is_err(), "{bad:?}");
    }
    assert_eq!(
        FilePath::new(".gitlab-ci.yml").unwrap().as_str(),
        ".gitlab-ci.yml"
    );
}
