//! After a fault at any single call, of the host or of the API server, the next passes repair (E14, OPR-03, B36).

use evenkeel_steps::Conclusion;
use evenkeel_testkit::CallFault;
use serde_json::{Value, json};

use super::{KEY, World};
use crate::git::{Site, at_every_host, file};

at_every_host!(
    after_any_fault_of_the_host_the_next_passes_repair,
    after_any_fault_of_the_api_server_the_next_passes_repair,
    a_deletion_ends_after_any_fault,
);

const FAULTS: [CallFault; 4] = [
    CallFault::TooManyRequests,
    CallFault::InternalError,
    CallFault::CutBefore,
    CallFault::CutAfter,
];

/// How many passes may be needed after one fault.
const PASSES_MAX: usize = 6;

fn spec() -> Value {
    json!({
        "displayName": "One", "tenantRef": { "name": "t-one" }, "deletionPolicy": "Delete",
        "deployKeys": { "k1": { "type": "ssh-ed25519", "key": KEY } }, "generatedDeployKeys": { "g1": {} },
        "templateFiles": { "common.yml": "" }, "ciVariables": [{ "name": "CLUSTERS", "value": "c-one" }],
    })
}

async fn until_settled(world: &World<'_>, name: &str, when: &str) {
    let mut timeline = String::new();
    for _ in 0..PASSES_MAX {
        let Ok(passed) = world.repos.pass(&world.namespace, name).await else {
            continue;
        };
        world.wait_until_due(&passed);
        if matches!(passed.conclusion, None | Some(Conclusion::Unchanged)) {
            return;
        }
        timeline = passed.timeline;
    }
    panic!("{when}: not settled after {PASSES_MAX} passes: {timeline}");
}

async fn assert_complete(world: &World<'_>, name: &str, when: &str) {
    let project = world.project(name).await.unwrap();
    assert_eq!(project.description, "One", "{when}");
    assert_eq!(
        world.host().deploy_keys(&project).await.unwrap().len(),
        2,
        "{when}"
    );
    let files = world.host().files(&project).await.unwrap();
    assert!(
        files.len() == 1 && files.contains_key(&file("common.yml")),
        "{when}"
    );
    assert_eq!(world.host().variables(&project).await.unwrap().len(), 1, "{when}");
    assert_eq!(
        world.status(name).await.phase.as_deref(),
        Some("created"),
        "{when}"
    );
}

async fn after_any_fault_of_the_host_the_next_passes_repair(site: &Site) {
    let world = World::new(site).await;
    world.write("first", spec()).await;
    world.converge("first").await;
    let calls = world.git.requests();
    assert!(calls > 8, "{calls}");
    for fault in FAULTS {
        for at in 0..calls {
            let when = format!("{fault:?} at {at}");
            let name = format!("r-{fault:?}-{at}").to_lowercase();
            world.write(&name, spec()).await;
            world.git.fail(at, fault);
            let passed = world.pass(&name).await;
            world.wait_until_due(&passed);
            assert!(world.git.heal(), "{when}");
            assert_eq!(
                passed.conclusion,
                Some(Conclusion::Failed),
                "{when}: {}",
                passed.timeline
            );
            assert!(passed.due.is_some(), "{when}: it must come back");
            until_settled(&world, &name, &when).await;
            assert_complete(&world, &name, &when).await;
        }
    }
}

async fn after_any_fault_of_the_api_server_the_next_passes_repair(site: &Site) {
    let world = World::new(site).await;
    world.write("first", spec()).await;
    let before = world.kubernetes.requests();
    world.converge("first").await;
    let calls = world.kubernetes.requests() - before;
    for fault in FAULTS.into_iter().chain([CallFault::Conflict]) {
        for at in 0..calls {
            let when = format!("{fault:?} at {at}");
            let name = format!("k-{fault:?}-{at}").to_lowercase();
            world.write(&name, spec()).await;
            world.kubernetes.fail(at, fault);
            if let Ok(passed) = world.repos.pass(&world.namespace, &name).await {
                world.wait_until_due(&passed);
            }
            world.kubernetes.heal();
            until_settled(&world, &name, &when).await;
            assert_complete(&world, &name, &when).await;
        }
    }
}

async fn a_deletion_ends_after_any_fault(site: &Site) {
    let world = World::new(site).await;
    for (which, proxy) in [("git", &world.git), ("api", &world.kubernetes)] {
        for fault in FAULTS {
            let mut at = 0;
            loop {
                let when = format!("{which}: {fault:?} at {at}");
                let name = format!("d-{which}-{fault:?}-{at}").to_lowercase();
                world.write(&name, spec()).await;
                world.converge(&name).await;
                world.delete(&name).await;
                proxy.fail(at, fault);
                if let Ok(passed) = world.repos.pass(&world.namespace, &name).await {
                    world.wait_until_due(&passed);
                }
                let was_met = proxy.heal();
                until_settled(&world, &name, &when).await;
                assert!(world.is_gone(&name).await, "{when}");
                assert!(world.project(&name).await.is_none(), "{when}");
                if !was_met {
                    break;
                }
                at += 1;
            }
        }
    }
}
