//! Faults between us and a real Git host (E14, OPR-03).

use std::collections::BTreeMap;

use evenkeel_core::Sensitive;
use evenkeel_operator::Error;
use evenkeel_operator::git::{FileAction, GitHost, PublicKey, RepoPath, VariableSetting};
use evenkeel_steps::FailureClass;
use evenkeel_testkit::{CallFault, FaultProxy};

use super::{Site, at_every_host, creations, file, note};

at_every_host!(
    after_any_single_fault_the_next_pass_goes_on_from_what_is_there,
    a_host_that_is_not_there_is_told,
);

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
        let setting = VariableSetting::plain(Sensitive::new("c-one".to_owned()));
        host.set_variable(&project, "CLUSTERS", &setting).await?;
    }
    Ok(())
}

async fn assert_converged(site: &Site, path: &RepoPath, when: &str) {
    let host = site.host();
    let project = host.find(path).await.unwrap().unwrap();
    assert_eq!(host.deploy_keys(&project).await.unwrap().len(), 1, "{when}");
    let files = host.files(&project).await.unwrap();
    assert!(
        files.len() == 2 && files.contains_key(&file("c-one.yml")),
        "{when}"
    );
    assert_eq!(host.variables(&project).await.unwrap().len(), 1, "{when}");
}

async fn after_any_single_fault_the_next_pass_goes_on_from_what_is_there(site: &Site) {
    let group = site.new_group().await;
    let proxy = FaultProxy::before(&site.url()).await;
    let host = site.host_at(&proxy.url(), site.token());
    let path = RepoPath::new(&group, "first").unwrap();
    converge(&*host, &path).await.unwrap();
    let calls = proxy.requests();
    assert!(calls > 8, "{calls}");
    let before = proxy.requests();
    converge(&*host, &path).await.unwrap();
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
            let error = converge(&*host, &path).await.unwrap_err();
            assert!(proxy.heal(), "{when}");
            match (fault, error.class()) {
                (CallFault::TooManyRequests, FailureClass::RateLimited { .. }) => {}
                (CallFault::TooManyRequests, _) => panic!("{when}: {error}"),
                (_, class) => assert_eq!(class, FailureClass::Transient, "{when}: {error}"),
            }
            converge(&*host, &path).await.unwrap();
            assert_converged(site, &path, &when).await;
        }
    }
}

/// A host that does not answer is told after a while, with what was asked of it.
async fn a_host_that_is_not_there_is_told(site: &Site) {
    let host = site.host_at("http://127.0.0.1:1", "t");
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
