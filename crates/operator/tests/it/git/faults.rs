//! Faults between us and a real Git host (E14, OPR-03).

use std::collections::BTreeMap;

use evenkeel_core::Sensitive;
use evenkeel_operator::Error;
use evenkeel_operator::git::{FileAction, GitHost, PublicKey, RepoPath};
use evenkeel_steps::FailureClass;
use evenkeel_testkit::{CallFault, FaultProxy, gitea};

use super::{creations, file, host, host_at, new_group, note};

/// Brings a repository to what it is to be, from whatever is there: what a pass does.
async fn converge(host: &dyn GitHost, path: &RepoPath) -> Result<(), Error> {
    let project = match host.find(path).await? {
        Some(project) => project,
        None => host.create(path, "One").await?,
    };
    let key = PublicKey::new(
        "ssh-ed25519",
        "AAAAC3NzaC1lZDI1NTE5AAAAIJ22mHNYfSPnLAj8YiKa0RmxafD9r5nEUquizay7xh3s",
    )?;
    if host.deploy_keys(&project).await?.is_empty() {
        host.add_deploy_key(&project, "steward", &key, true).await?;
    }
    let present = host.files(&project).await?;
    let mut changes: BTreeMap<_, FileAction> = creations(&[("common.yml", ""), ("c-one.yml", "x")]);
    changes.retain(|path, _| !present.contains_key(path));
    if !changes.is_empty() {
        host.commit(&project, &changes, &note()).await?;
    }
    if host.variables(&project).await?.is_empty() {
        let value = Sensitive::new("c-one".to_owned());
        host.set_variable(&project, "CLUSTERS", &value, false).await?;
    }
    Ok(())
}

async fn assert_converged(path: &RepoPath, when: &str) {
    let host = host();
    let project = host.find(path).await.unwrap().unwrap();
    assert_eq!(host.deploy_keys(&project).await.unwrap().len(), 1, "{when}");
    let files = host.files(&project).await.unwrap();
    assert!(
        files.len() == 2 && files.contains_key(&file("c-one.yml")),
        "{when}"
    );
    assert_eq!(host.variables(&project).await.unwrap().len(), 1, "{when}");
}

#[tokio::test]
async fn after_any_single_fault_the_next_pass_goes_on_from_what_is_there() {
    let group = new_group();
    let proxy = FaultProxy::before(&gitea().url()).await;
    let host = host_at(&proxy.url(), gitea().token());
    let path = RepoPath::new(&group, "first").unwrap();
    converge(&host, &path).await.unwrap();
    let calls = proxy.requests();
    assert!(calls > 8, "{calls}");
    let before = proxy.requests();
    converge(&host, &path).await.unwrap();
    // A second pass only reads.
    let passed = proxy.passed();
    assert!(
        passed[before..].iter().all(|call| call.starts_with("GET ")),
        "{passed:?}"
    );

    let faults = [
        CallFault::TooManyRequests,
        CallFault::InternalError,
        CallFault::CutBefore,
        CallFault::CutAfter,
    ];
    for fault in faults {
        for at in 0..calls {
            let when = format!("{fault:?} at {at}");
            let path = RepoPath::new(&group, &format!("r-{fault:?}-{at}").to_lowercase()).unwrap();
            proxy.fail(at, fault);
            let error = converge(&host, &path).await.unwrap_err();
            assert!(proxy.heal(), "{when}");
            match (fault, error.class()) {
                (CallFault::TooManyRequests, FailureClass::RateLimited { .. }) => {}
                (CallFault::TooManyRequests, _) => panic!("{when}: {error}"),
                (_, class) => assert_eq!(class, FailureClass::Transient, "{when}: {error}"),
            }
            converge(&host, &path).await.unwrap();
            assert_converged(&path, &when).await;
        }
    }
}

/// A host that does not answer is told after a while, with what was asked of it.
#[tokio::test]
async fn a_host_that_is_not_there_is_told() {
    let host = host_at("http://127.0.0.1:1", "t");
    let path = RepoPath::new("tenants", "t-one").unwrap();
    let error = host.find(&path).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("look for the repository tenants/t-one"),
        "{error}"
    );
}
