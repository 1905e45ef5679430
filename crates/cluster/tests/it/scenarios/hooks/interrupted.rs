//! Hooks of attempts that end in the middle, and of which the next attempt goes on.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_cluster::{Attempt, ErrorClass, HookState, Hooks, Limits, ManifestObject, Occasion, Stop};
use evenkeel_core::{Fence, HookEvent};
use evenkeel_testkit::CallFault;
use futures::stream::{self, StreamExt as _};
use serde_json::{Value, json};

use super::{HookSucceeded, behind, hook, hooks, pass, pass_as, suspended, uid, writes};
use crate::component::Component;
use crate::documents::{config_map, job, service_account};
use crate::env::{Env, WAIT};

/// Passes until a component is as it should be; one goes wrong, the next may meet what it left.
const PASSES: usize = 6;
/// Runs at one time.
const AT_ONCE: usize = 8;

/// The attempt ends right after the Job was made, before its uid is written down.
pub(crate) async fn a_crash_between_making_and_recording_runs_nothing_twice(env: &Env) {
    let (behind, proxy) = behind(env, env.name.clone(), Limits::default()).await;
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
    let limits = Limits {
        in_flight: 1,
        apply_concurrency: 1,
        read_timeout: Duration::from_secs(5),
        write_timeout: Duration::from_secs(5),
        ..Limits::default()
    };
    let run = async |fault: Option<(usize, CallFault)>| {
        let suffix = fault.map_or_else(
            || "none".to_owned(),
            |(at, fault)| format!("{at}-{fault:?}").to_lowercase(),
        );
        let (behind, proxy) = behind(env, format!("hook-fault-{suffix}"), limits).await;
        let component = Component::new(&behind);
        let (documents, hooks) = with_hooks(&component);
        if let Some((at, fault)) = fault {
            proxy.fail(at, fault);
        }
        let mut requests = 0;
        let mut failures = Vec::new();
        for number in 0.. {
            // What is recorded as installed is not installed again, though its recorder never heard of it.
            let known = if number > 0 {
                component.target.record().await.ok().flatten()
            } else {
                None
            };
            if known.is_some_and(|record| record.revision.is_some()) {
                break;
            }
            let ran = pass(&component, &documents, &hooks, Occasion::Install).await;
            if number == 0 {
                requests = proxy.requests();
            }
            match ran.end {
                Ok(()) => break,
                Err(error) => {
                    assert!(
                        !matches!(
                            error.class(),
                            ErrorClass::Invalid | ErrorClass::Bug | ErrorClass::Forbidden
                        ),
                        "{fault:?}: {error}"
                    );
                    failures.push(error.to_string());
                }
            }
            assert!(number < PASSES, "{fault:?}: {failures:?}");
        }
        let met = proxy.heal();
        let made = |name: &str| {
            writes(&proxy, &component)
                .iter()
                .filter(|write| *write == &format!("PATCH jobs/{name}"))
                .count()
        };
        assert_eq!((made("migrate"), made("seed")), (1, 1), "{fault:?}: {failures:?}");
        (state_of(&behind, &component).await, requests, met)
    };
    let (expected, requests, _) = run(None).await;
    assert_eq!(
        expected["record"]["hooks"],
        json!(["seed Succeeded", "steps Succeeded"])
    );
    assert!(requests > 20, "{requests}");
    let every = if env.is_real() { 12 } else { 3 };
    let mut faults = Vec::new();
    for (index, fault) in CallFault::ALL.into_iter().enumerate() {
        faults.extend(
            (0..requests)
                .filter(|at| (at + index) % every == 0)
                .map(|at| (at, fault)),
        );
    }
    let outcomes: Vec<_> = stream::iter(faults.clone())
        .map(|fault| run(Some(fault)))
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut met = 0;
    for (fault, (state, _, was_met)) in faults.iter().zip(outcomes) {
        met += usize::from(was_met);
        assert_eq!(state, expected, "{fault:?}");
    }
    assert!(
        met * 10 >= faults.len() * 8,
        "{met} of {} faults were met",
        faults.len()
    );
    eprintln!("install with hooks: {requests} requests, {met} faults met");
}
