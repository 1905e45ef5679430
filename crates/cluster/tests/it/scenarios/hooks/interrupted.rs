//! Hooks of attempts that end in the middle, and of which the next attempt goes on.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_cluster::{
    Attempt, DeleteOptions, Error, ErrorClass, HookRun, HookState, Hooks, Limits, ManifestObject, Occasion,
    Stop,
};
use evenkeel_core::{Fence, HookEvent};
use serde_json::{Value, json};

use super::{HookSucceeded, farewell, hook, hooks, pass, pass_as, suspended, uid, writes};
use crate::component::Component;
use crate::documents::{config_map, job, service_account};
use crate::env::{Env, WAIT};
use crate::every_call::{Action, Trial, every_call};

/// The attempt ends right after the Job was made, before its uid is written down.
pub(crate) async fn a_crash_between_making_and_recording_runs_nothing_twice(env: &Env) {
    let (behind, proxy) = env.behind(Limits::default()).await;
    let proxy = Arc::new(proxy);
    let component = Component::new(&behind);
    let documents = [config_map("plain", "k", "1")];
    let all = hooks(
        &component,
        vec![hook(
            job("migrate"),
            &[HookEvent::PreInstall],
            0,
            &[HookSucceeded],
        )],
    );
    let made = format!("/namespaces/{}/jobs/migrate", component.namespace);
    let watched = Arc::clone(&proxy);
    let attempt = Attempt {
        fence: Fence(1),
        guard: Arc::new(move |_: Duration| {
            let is_made = watched
                .passed()
                .iter()
                .any(|request| request.starts_with("PATCH ") && request.ends_with(&made));
            if is_made { Err(Stop::LeaseEnded) } else { Ok(()) }
        }),
    };
    let ran = pass_as(&component, attempt, &documents, &all, Occasion::Install, WAIT).await;
    assert_eq!(ran.end.unwrap_err().class(), ErrorClass::Stopped);
    let record = component.target.record().await.unwrap().unwrap();
    assert_eq!(
        (record.hooks.len(), record.hooks[0].uid.as_str()),
        (1, ""),
        "the intent is written, the uid is not"
    );
    component.set_fence(2);
    pass(&component, &documents, &all, Occasion::Install)
        .await
        .succeeded();
    let jobs: Vec<String> = writes(&proxy, &component)
        .into_iter()
        .filter(|write| write.contains("jobs/"))
        .collect();
    assert_eq!(
        jobs,
        ["PATCH jobs/migrate", "DELETE jobs/migrate"],
        "it was made once"
    );
    assert!(component.target.record().await.unwrap().unwrap().hooks.is_empty());
}

/// The attempt ends while the Job runs; the next one waits for the same Job, known by its uid.
pub(crate) async fn a_running_hook_is_gone_on_with(env: &Env) {
    let component = Component::new(env);
    let documents = [config_map("plain", "k", "1")];
    let all = hooks(
        &component,
        vec![hook(suspended("migrate"), &[HookEvent::PreInstall], 0, &[])],
    );
    let job = component.path("jobs", "migrate");
    {
        let running = pass(&component, &documents, &all, Occasion::Install);
        let recorded = evenkeel_testkit::eventually("the uid to be recorded", async || {
            let record = component.target.record().await.unwrap();
            let uid = record.and_then(|record| Some(record.hooks.first()?.uid.clone()));
            uid.filter(|uid| !uid.is_empty()).ok_or(())
        });
        tokio::select! {
            ran = running => panic!("a suspended Job is not done: {ran:?}"),
            _ = recorded => {}
        }
    }
    let first = uid(env, &job).await;
    let record = component.target.record().await.unwrap().unwrap();
    assert_eq!(record.hooks[0].uid, first);
    env.change(&job, &json!({"spec": {"suspend": false}})).await;
    let done = pass(&component, &documents, &all, Occasion::Install)
        .await
        .succeeded();
    assert_eq!(done, ["create ConfigMap/plain"]);
    assert_eq!(uid(env, &job).await, first);
}

/// Nobody knows how a hook ended that vanished while nobody looked: neither is it taken for done, nor run again unasked.
pub(crate) async fn a_hook_that_vanished_fails_once_and_runs_again(env: &Env) {
    let component = Component::new(env);
    let documents = [config_map("plain", "k", "1")];
    let all = hooks(
        &component,
        vec![hook(suspended("migrate"), &[HookEvent::PreInstall], 0, &[])],
    );
    let job = component.path("jobs", "migrate");
    let within = Duration::from_millis(1500);
    let late = pass_as(
        &component,
        component.attempt(),
        &documents,
        &all,
        Occasion::Install,
        within,
    )
    .await
    .failure();
    assert_eq!(late.late, Some(within));
    assert!(
        late.to_string().contains("not done within 1.5s") && late.to_string().contains("it is suspended"),
        "{late}"
    );
    let first = uid(env, &job).await;

    // What was late has failed: the next attempt makes it anew. Then somebody deletes it while it runs.
    let gone = {
        let running = pass(&component, &documents, &all, Occasion::Install);
        let deleted = async {
            env.until("another one", &job, |found| {
                found["metadata"]["uid"].as_str().is_some_and(|uid| uid != first)
            })
            .await;
            evenkeel_testkit::eventually("the uid to be recorded", async || {
                let record = component.target.record().await.unwrap().unwrap();
                if record
                    .hooks
                    .iter()
                    .any(|hook| !hook.uid.is_empty() && hook.uid != first)
                {
                    Ok(())
                } else {
                    Err(record.hooks)
                }
            })
            .await;
            env.remove(&job).await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ran = running => ran.failure(),
            () = deleted => unreachable!(),
        }
    };
    assert!(gone.to_string().contains("deleted by somebody else"), "{gone}");
    env.until_gone(&job).await;

    // One that vanishes between two attempts.
    {
        let running = pass(&component, &documents, &all, Occasion::Install);
        let recorded = evenkeel_testkit::eventually("the uid to be recorded", async || {
            let record = component.target.record().await.unwrap().unwrap();
            let begun = record
                .hooks
                .iter()
                .any(|hook| !hook.uid.is_empty() && hook.state == HookState::Begun);
            if begun { Ok(()) } else { Err(record.hooks) }
        });
        tokio::select! {
            ran = running => panic!("a suspended Job is not done: {ran:?}"),
            () = recorded => {}
        }
    }
    env.remove(&job).await;
    env.until_gone(&job).await;
    let vanished = pass(&component, &documents, &all, Occasion::Install)
        .await
        .failure();
    assert!(
        vanished.to_string().contains("nobody saw how it ended"),
        "{vanished}"
    );
    assert!(env.get(&job).await.is_none(), "it is not run again unasked");
    let well = hooks(
        &component,
        vec![hook(
            crate::documents::job("migrate"),
            &[HookEvent::PreInstall],
            0,
            &[],
        )],
    );
    pass(&component, &documents, &well, Occasion::Install)
        .await
        .succeeded();
}

fn with_hooks(component: &Component<'_>) -> (Vec<ManifestObject>, Hooks) {
    let all = hooks(
        component,
        vec![
            hook(config_map("steps", "k", "1"), &[HookEvent::PreInstall], -1, &[]),
            hook(job("migrate"), &[HookEvent::PreInstall], 0, &[HookSucceeded]),
            hook(job("seed"), &[HookEvent::PostInstall], 0, &[]),
        ],
    );
    (vec![service_account("sa"), config_map("settings", "k", "1")], all)
}

/// Everything that a run leaves, without what differs from run to run.
async fn state_of(env: &Env, component: &Component<'_>) -> Value {
    let mut found = serde_json::Map::new();
    for collection in ["configmaps", "serviceaccounts", "jobs"] {
        let listed = env.must(&component.collection(collection)).await;
        for item in listed["items"].as_array().unwrap() {
            let name = item["metadata"]["name"].as_str().unwrap();
            if !["kube-root-ca.crt", "default"].contains(&name) {
                let labels = item["metadata"]["labels"].as_object().unwrap();
                let ours: Vec<&String> = labels
                    .keys()
                    .filter(|key| key.contains("hook-of") || key.contains("part-of"))
                    .collect();
                found.insert(
                    format!("{collection}/{name}"),
                    json!({"labels": ours, "succeeded": item["status"]["succeeded"], "data": item["data"]}),
                );
            }
        }
    }
    let record = component.target.record().await.unwrap().unwrap();
    let mut left: Vec<String> = record
        .hooks
        .iter()
        .map(|hook| format!("{} {:?}", hook.name, hook.state))
        .collect();
    left.sort();
    found.insert("record".to_owned(), json!({"hooks": left, "objects": record.objects.len(), "unfinished": record.unfinished, "revision": record.revision}));
    Value::Object(found)
}

/// One request of an install with hooks goes wrong, whichever it is and however: the end is the same, and no Job ran twice.
pub(crate) async fn an_install_with_hooks_survives_a_fault_at_any_call(env: &Env) {
    every_call(env, Action::named("hooks"), async |env, trial| {
        let component = Component::new(env);
        let (documents, hooks) = with_hooks(&component);
        trial
            .passes(async |number| {
                // What is recorded as installed is not installed again, though its recorder never heard of it.
                let known = if number > 0 {
                    component.target.record().await.ok().flatten()
                } else {
                    None
                };
                if known.is_some_and(|record| record.revision.is_some()) {
                    return Ok(());
                }
                pass(&component, &documents, &hooks, Occasion::Install).await.end
            })
            .await;
        for job in ["migrate", "seed"] {
            assert_eq!(made(trial, &component, job), 1, "{} {job}", trial.what);
        }
        let state = state_of(env, &component).await;
        assert_eq!(
            state["record"]["hooks"],
            json!(["seed Succeeded", "steps Succeeded"])
        );
        state
    })
    .await;
}

/// How often a Job was made.
fn made(trial: &Trial, component: &Component<'_>, job: &str) -> usize {
    let made = format!("PATCH jobs/{job}");
    writes(&trial.proxy, component)
        .iter()
        .filter(|write| **write == made)
        .count()
}

/// The same of a deletion: its hooks run once each, the objects go between them, and nothing is left.
pub(crate) async fn a_deletion_with_hooks_survives_a_fault_at_any_call(env: &Env) {
    let action = Action {
        // It looks at every kind that there is.
        thin: 2,
        ..Action::named("goodbye")
    };
    every_call(env, action, async |env, trial| {
        let component = Component::new(env);
        let (documents, installed) = with_hooks(&component);
        pass(&component, &documents, &installed, Occasion::Install)
            .await
            .succeeded();
        let of_deletion = farewell(&component);
        trial
            .passes(async |number| {
                // A component that is gone is not deleted again: its hooks would run once more.
                if number > 0 && component.target.record().await?.is_none() {
                    let rest = component.delete().await?;
                    return rest.complete.then_some(()).ok_or_else(unfinished);
                }
                delete_with(&component, &of_deletion).await
            })
            .await;
        for job in ["goodbye", "swept"] {
            assert_eq!(made(trial, &component, job), 1, "{} {job}", trial.what);
        }
        let namespace = env.get(&component.namespace_path()).await;
        let parent = env.get(&component.parent_path()).await;
        json!({"namespace": namespace.is_some(), "parent": parent.is_some()})
    })
    .await;
}

fn unfinished() -> Error {
    Error::Bug("a deletion that waits ended before everything was gone".to_owned())
}

/// A whole deletion, with hooks around it.
async fn delete_with(component: &Component<'_>, hooks: &Hooks) -> Result<(), Error> {
    let run = HookRun {
        hooks,
        occasion: Occasion::Delete,
        within: WAIT,
        adopt: false,
    };
    let options = DeleteOptions {
        timeout: WAIT,
        ..DeleteOptions::default()
    };
    let (target, attempt, observer) = (&component.target, component.attempt(), component.observer());
    let mut changes = Vec::new();
    target
        .run_delete_hooks(run, HookEvent::PreDelete, &attempt, &observer, &mut changes)
        .await?;
    target.delete_objects(&attempt, &options, &observer).await?;
    target
        .run_delete_hooks(run, HookEvent::PostDelete, &attempt, &observer, &mut changes)
        .await?;
    let rest = target.delete_rest(&attempt, &options, &observer).await?;
    rest.complete.then_some(()).ok_or_else(unfinished)
}
