//! Template files (B11 to B14, OPR-03).

use std::collections::BTreeMap;

use evenkeel_operator::git::{BlobDigest, FileAction};
use evenkeel_operator::resources::ConditionStatus;
use serde_json::json;

use super::World;
use crate::git::{Site, at_every_host, file, note};

at_every_host!(files_are_written_once_removed_by_tombstone_and_kept_where_that_is_asked);

async fn files_are_written_once_removed_by_tombstone_and_kept_where_that_is_asked(site: &Site) {
    let world = World::new(site).await;
    let tombstones = json!({ "templateFiles": { "old.yml": "{delete}" } });
    world.write("files", tombstones).await;
    world.converge("files").await;
    let project = world.project("files").await.unwrap();
    // An empty repository has nothing to remove.
    assert_eq!(project.default_branch, None);

    let files = |pipeline: &str| json!({ "templateFiles": { "common.yml": "", "seed.yml": "a", "ci/run.yml": pipeline } });
    world.write("files", files("one")).await;
    world
        .annotate("files", "evenkeel.dev/synced-files", json!(r#"["ci/run.yml"]"#))
        .await;
    world.converge("files").await;
    world.assert_settled("files").await;
    let project = world.project("files").await.unwrap();
    // A user edits what was written.
    let present = world.host().files(&project).await.unwrap();
    let edits: BTreeMap<_, _> = ["seed.yml", "ci/run.yml"]
        .into_iter()
        .map(|name| {
            let over = present[&file(name)].clone();
            (
                file(name),
                FileAction::Update {
                    content: b"edited".to_vec(),
                    over,
                },
            )
        })
        .collect();
    world.host().commit(&project, &edits, &note()).await.unwrap();
    world.converge("files").await;
    let present = world.host().files(&project).await.unwrap();
    assert_eq!(present[&file("seed.yml")], BlobDigest::of(b"edited"));
    assert_eq!(present[&file("ci/run.yml")], BlobDigest::of(b"one"));
    world.write("files", files("two")).await;
    world.converge("files").await;
    let present = world.host().files(&project).await.unwrap();
    assert_eq!(present[&file("ci/run.yml")], BlobDigest::of(b"two"));
    world.assert_settled("files").await;

    let gone = json!({ "templateFiles": { "seed.yml": "{delete}", "../out": "x", "common.yml": "" } });
    world.write("files", gone).await;
    world.pass("files").await;
    let present = world.host().files(&project).await.unwrap();
    assert!(!present.contains_key(&file("seed.yml")));
    world
        .assert_condition("files", "FilesSynced", ConditionStatus::False, "../out")
        .await;
    let commits = site.commits(&project).await;
    assert!(
        commits.iter().all(|commit| commit[1] == "Lieutenant Operator"),
        "{commits:?}"
    );
}
