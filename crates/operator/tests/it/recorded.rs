//! What the predecessor was recorded doing, step after step, and the same done by ours: `tests/recorded`, made with Lieutenant's
//! operator at 89518a69 against a Kubernetes, a Vault and a double of GitLab. Field by field everything is equal, but for what
//! `differences` lists.

mod calls;
mod comparison;
mod differences;
mod form;
mod sight;

use std::path::{Path, PathBuf};
use std::time::Duration;

use evenkeel_operator::TenancySettings;
use evenkeel_operator::resources::{Cluster, GitRepo, Tenant};
use evenkeel_telemetry::Tasks;
use evenkeel_testkit::eventually;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::admission::{server, succeed};
use crate::tenancy::Land;
use calls::Calls;
use comparison::{Sight, compare};
use differences::unexpected;

const PROTECTION: &str = "syn.tools/protected-delete";

/// The steps in which something is applied; in those after them something is deleted.
const APPLIED: [&str; 11] = [
    "01-tenant",
    "02-cluster-from-template",
    "03-cluster-changed",
    "04-tenant-repo-features",
    "05-compile-pipeline-on",
    "06-compile-pipeline-cluster",
    "07-compile-pipeline-cluster-off",
    "08-cluster-unmanaged",
    "09-invalid",
    "10-tenant-template",
    "11-cluster-and-adoption",
];
const DELETED: [&str; 4] = [
    "12-delete-cluster-policy-delete",
    "13-delete-cluster-protected",
    "14-delete-cluster-unprotected",
    "15-delete-tenant",
];

/// Groups are there before anything is put into them, as ever.
const GROUPS: [&str; 4] = ["tenants", "catalogs/exo", "fromtemplate", "cats"];

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Everything as it was recorded after a step; the calls up to it are in `calls`.
fn recorded(step: &str, calls: &mut Calls) -> Sight {
    let folder = tests().join("recorded").join(step);
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    calls.replay(&text("gitlab.txt"));
    let mut sight = Sight::default();
    form::objects(&mut sight, &text("objects.yaml"));
    form::vault(&mut sight, &serde_json::from_str(&text("vault.json")).unwrap());
    form::projects(&mut sight, &calls.projects());
    sight
}

/// Applies a file as the people did who made the recording.
fn kubectl_apply(land: &Land, step: &str) {
    let file = tests().join("data/lieutenant").join(format!("{step}.yaml"));
    let mut command = server().kubectl();
    command.args(["-n", &land.namespace, "apply", "-f"]).arg(file);
    succeed(&command.output().unwrap());
}

async fn delete(land: &Land, step: &str) {
    match step {
        "12-delete-cluster-policy-delete" => {
            land.annotate::<GitRepo>("c-two", PROTECTION, "false").await;
            land.annotate::<Cluster>("c-two", PROTECTION, "false").await;
            land.delete::<Cluster>("c-two").await;
        }
        "13-delete-cluster-protected" => land.delete::<Cluster>("c-one").await,
        "14-delete-cluster-unprotected" => {
            land.annotate::<GitRepo>("c-one", PROTECTION, "false").await;
            land.annotate::<Cluster>("c-one", PROTECTION, "false").await;
        }
        _ => {
            land.annotate::<Tenant>("t-one", PROTECTION, "false").await;
            land.delete::<Tenant>("t-one").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recorded_steps_end_in_the_same_objects_secrets_and_repositories() {
    let land = Land::with(TenancySettings {
        protect: true,
        ..TenancySettings::default()
    })
    .await;
    // What is in a real GitLab besides cannot be told from what is ours.
    if land.site.double_or("the recorded steps").is_none() {
        return;
    }
    for group in GROUPS {
        land.host().ensure_group(group).await.unwrap();
    }
    let keys = json!({ "stringData": { "hostKeys": "gitlab.example.org ssh-ed25519 HOSTKEY" } });
    land.api::<Secret>()
        .patch("git", &PatchParams::default(), &Patch::Merge(&keys))
        .await
        .unwrap();
    let tasks = Tasks::new();
    land.run(&tasks);

    let mut calls = Calls::default();
    let mut last = None;
    for (number, step) in (1..).zip(APPLIED.into_iter().chain(DELETED)) {
        if APPLIED.contains(&step) {
            kubectl_apply(&land, step);
        } else {
            delete(&land, step).await;
        }
        let recorded = recorded(step, &mut calls);
        eventually(step, async || {
            let found = compare(&recorded, &sight::of(&land).await);
            match unexpected(number, &found) {
                problems if problems.is_empty() => Ok(()),
                problems => Err(problems),
            }
        })
        .await;
        last = Some((number, recorded));
    }
    // It was no moment in passing: nobody wants to change anything.
    let ended = tasks.shutdown(Duration::from_secs(20)).await;
    assert!(ended.aborted.is_empty(), "{ended:?}");
    land.settle().await;
    let (number, recorded) = last.unwrap();
    let found = compare(&recorded, &sight::of(&land).await);
    let problems = unexpected(number, &found);
    assert!(problems.is_empty(), "{problems:#?}");
}
