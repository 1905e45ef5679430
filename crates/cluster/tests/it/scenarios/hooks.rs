//! K34: hooks of charts run as ordered steps, each once, whatever happens in between. Also the public cases REN-18 (the order
//! in which they run), ORD-05 (which of their objects are removed, and in which order) and RDY-10 (done is not the same as
//! ready).

mod deletion;
mod interrupted;

use std::collections::BTreeSet;
use std::time::Duration;

use evenkeel_cluster::{
    Attempt, Error, ErrorClass, HookDocument, HookFailure, HookRun, Hooks, Inputs, Limits, ManifestObject,
    Occasion, Placement, Session, WaitOptions,
};
use evenkeel_core::{ComponentRevision, HookDeletePolicy, HookEvent, Namespace, PlanAction};
use evenkeel_testkit::FaultProxy;
use serde_json::json;

use crate::component::Component;
use crate::documents::{config_map, definition, job, service_account, widget};
use crate::env::{Env, Script, WAIT};

pub(crate) use deletion::*;
pub(crate) use interrupted::*;

use HookDeletePolicy::{BeforeHookCreation, HookFailed, HookSucceeded};

fn hook(
    document: ManifestObject,
    events: &[HookEvent],
    weight: i64,
    policies: &[HookDeletePolicy],
) -> HookDocument {
    HookDocument {
        object: document.object,
        source: document.source,
        events: events.iter().copied().collect::<BTreeSet<_>>(),
        weight,
        delete_policies: policies.iter().copied().collect(),
    }
}

fn hooks(component: &Component<'_>, documents: Vec<HookDocument>) -> Hooks {
    let placement = Placement {
        namespace: Namespace::new(component.namespace.clone()).unwrap(),
        force_namespace: false,
    };
    Hooks::new(documents, &placement).unwrap()
}

/// The hooks of a deletion: one before it, which goes when it is done, and one after it.
fn farewell(component: &Component<'_>) -> Hooks {
    hooks(
        component,
        vec![
            hook(job("goodbye"), &[HookEvent::PreDelete], 0, &[HookSucceeded]),
            hook(job("swept"), &[HookEvent::PostDelete], 0, &[]),
        ],
    )
}

/// A Job whose pod follows `script`, and has logged something.
fn scripted(env: &Env, name: &str, script: Script) -> ManifestObject {
    let mut document = job(name);
    let mut annotations = env.script(script);
    annotations[evenkeel_testkit::LOG_ANNOTATION] = json!("cannot reach the database\n");
    annotations[evenkeel_simulator::LOG_ANNOTATION] = json!("cannot reach the database\n");
    document.object["spec"]["template"]["metadata"]["annotations"] = annotations;
    document
}

fn suspended(name: &str) -> ManifestObject {
    let mut document = job(name);
    document.object["spec"]["suspend"] = json!(true);
    document
}

/// What a pass changed, like `create Job/a`, also when it ended early.
#[derive(Debug)]
struct Ran {
    done: Vec<String>,
    end: Result<(), Error>,
}

impl Ran {
    fn failure(self) -> HookFailure {
        match self.end {
            Err(Error::Hook(failure)) => *failure,
            other => panic!("expected the failure of a hook, found {other:?}"),
        }
    }

    fn succeeded(self) -> Vec<String> {
        self.end.unwrap();
        self.done
    }
}

/// A whole pass, with hooks around it.
async fn pass(
    component: &Component<'_>,
    documents: &[ManifestObject],
    hooks: &Hooks,
    occasion: Occasion,
) -> Ran {
    pass_as(component, component.attempt(), documents, hooks, occasion, WAIT).await
}

async fn pass_as(
    component: &Component<'_>,
    attempt: Attempt,
    documents: &[ManifestObject],
    hooks: &Hooks,
    occasion: Occasion,
    within: Duration,
) -> Ran {
    let plan = component.plan(documents).await;
    let mut session = match plan {
        Ok(plan) => plan.begin(attempt, component.observer()),
        Err(error) => {
            return Ran {
                done: Vec::new(),
                end: Err(error),
            };
        }
    };
    let revision = match occasion {
        Occasion::Upgrade(revision) => revision,
        _ => ComponentRevision(1),
    };
    let inputs = Inputs {
        revision,
        ..component.inputs(documents)
    };
    let run = HookRun {
        hooks,
        occasion,
        within,
        adopt: component.options.adopt,
    };
    let end = steps(&mut session, run, &inputs).await;
    if end.is_err() {
        let _ = session.record_progress().await;
    }
    let changes = session.changes().iter();
    let done =
        changes.map(|change| format!("{} {}/{}", change.action, change.object.kind, change.object.name));
    Ran {
        done: done.collect(),
        end,
    }
}

async fn steps(session: &mut Session, run: HookRun<'_>, inputs: &Inputs) -> Result<(), Error> {
    session.prepare_namespaces().await?;
    session.apply_definitions().await?;
    session.run_hooks(run, run.occasion.before()).await?;
    session.apply().await?;
    session.wait_ready(&WaitOptions { timeout: WAIT }).await?;
    session.prune().await?;
    session.run_hooks(run, run.occasion.after()).await?;
    session.record(inputs).await
}

/// `PATCH jobs/a`, of the writes that reached the server in the component's namespace.
fn writes(proxy: &FaultProxy, component: &Component<'_>) -> Vec<String> {
    let marker = format!("/namespaces/{}/", component.namespace);
    let passed = proxy.passed().into_iter();
    passed
        .filter_map(|request| {
            let (method, path) = request.split_once(' ')?;
            let (_, object) = path.split_once(&marker)?;
            (method != "GET").then(|| format!("{method} {object}"))
        })
        .collect()
}

async fn uid(env: &Env, path: &str) -> String {
    env.must(path).await["metadata"]["uid"]
        .as_str()
        .unwrap()
        .to_owned()
}

pub(crate) async fn hooks_run_by_weight_then_by_name(env: &Env) {
    let (behind, proxy) = env.behind(Limits::default()).await;
    let component = Component::new(&behind);
    let install = &[HookEvent::PreInstall];
    let all = hooks(
        &component,
        vec![
            hook(job("a-job"), install, 0, &[]),
            hook(service_account("z-sa"), install, 0, &[]),
            hook(config_map("b", "k", "1"), install, 10, &[]),
            hook(config_map("m", "k", "1"), install, -5, &[]),
            hook(config_map("bad", "k", "1"), install, 0, &[]),
            hook(
                config_map("later", "k", "1"),
                &[HookEvent::PostInstall],
                -100,
                &[],
            ),
            hook(config_map("never", "k", "1"), &[HookEvent::PreUpgrade], -100, &[]),
        ],
    );
    let documents = [config_map("plain", "k", "1")];
    let done = pass(&component, &documents, &all, Occasion::Install)
        .await
        .succeeded();
    let order = [
        "ConfigMap/m",
        "Job/a-job",
        "ConfigMap/bad",
        "ServiceAccount/z-sa",
        "ConfigMap/b",
        "ConfigMap/plain",
        "ConfigMap/later",
    ];
    let created: Vec<&str> = done
        .iter()
        .filter_map(|done| done.strip_prefix("create "))
        .collect();
    assert_eq!(created[1..], order, "{done:?}");
    let expected = [
        "configmaps/m",
        "jobs/a-job",
        "configmaps/bad",
        "serviceaccounts/z-sa",
        "configmaps/b",
        "configmaps/plain",
        "configmaps/later",
    ];
    assert_eq!(
        writes(&proxy, &component),
        expected.map(|object| format!("PATCH {object}"))
    );

    // The Job was done before the next one began.
    let finished = env.must(&component.path("jobs", "a-job")).await;
    assert_eq!(finished["status"]["succeeded"], 1);
    let labels = &finished["metadata"]["labels"];
    assert_eq!(labels["evenkeel.dev/hook-of"], component.target.parent_name());
    assert!(labels.get("applyset.kubernetes.io/part-of").is_none(), "{labels}");

    // They are no members: a look at the component finds nothing to do, also when one of them is changed.
    env.change(&component.path("configmaps", "m"), &json!({"data": {"k": "2"}}))
        .await;
    assert!(component.plan(&documents).await.unwrap().is_noop());
    let again = pass(&component, &documents, &all, Occasion::Install)
        .await
        .succeeded();
    assert_eq!(again, Vec::<String>::new(), "what was done is not done again");
}

pub(crate) async fn a_failing_hook_stops_the_component_and_says_why(env: &Env) {
    let component = Component::new(env);
    let broken = hooks(
        &component,
        vec![hook(
            scripted(env, "migrate", Script::Fail),
            &[HookEvent::PreInstall],
            0,
            &[],
        )],
    );
    let documents = [config_map("plain", "k", "1")];
    let ran = pass(&component, &documents, &broken, Occasion::Install).await;
    assert!(
        !ran.done.contains(&"create ConfigMap/plain".to_owned()),
        "{:?}",
        ran.done
    );
    assert_eq!(ran.end.as_ref().unwrap_err().class(), ErrorClass::NotReady);
    let failure = ran.failure();
    let text = failure.to_string();
    assert_eq!((failure.event, failure.late), (HookEvent::PreInstall, None));
    assert!(
        text.contains("pre-install hook") && text.contains("Job.batch/migrate"),
        "{text}"
    );
    assert!(text.contains("BackoffLimitExceeded"), "{text}");
    assert!(text.contains("| cannot reach the database"), "{text}");
    // Its object stays for whoever looks into it, and makes room for the next try.
    let job = component.path("jobs", "migrate");
    let first = uid(env, &job).await;
    pass(&component, &documents, &broken, Occasion::Install)
        .await
        .failure();
    let second = uid(env, &job).await;
    assert_ne!(first, second, "it ran once more");

    let mended = hooks(
        &component,
        vec![hook(
            crate::documents::job("migrate"),
            &[HookEvent::PreInstall],
            0,
            &[],
        )],
    );
    pass(&component, &documents, &mended, Occasion::Install)
        .await
        .succeeded();
    assert_eq!(env.must(&job).await["status"]["succeeded"], 1);
    env.must(&component.path("configmaps", "plain")).await;
}

/// ORD-05.
pub(crate) async fn a_failed_hook_does_not_keep_the_others_from_being_removed(env: &Env) {
    let (behind, proxy) = env.behind(Limits::default()).await;
    let component = Component::new(&behind);
    let documents = [config_map("plain", "k", "1")];
    pass(&component, &documents, &Hooks::default(), Occasion::Install)
        .await
        .succeeded();
    let upgrade = &[HookEvent::PreUpgrade];
    let policies = &[HookSucceeded, HookFailed];
    let with = |job: ManifestObject| {
        hooks(
            &component,
            vec![
                hook(service_account("sa"), upgrade, -2, policies),
                hook(config_map("cfg", "k", "1"), upgrade, -1, policies),
                hook(job, upgrade, 0, policies),
            ],
        )
    };
    let before = writes(&proxy, &component).len();
    let occasion = Occasion::Upgrade(ComponentRevision(2));
    let broken = with(scripted(env, "j", Script::Fail));
    let text = pass(&component, &documents, &broken, occasion)
        .await
        .failure()
        .to_string();
    assert!(
        text.contains("| cannot reach the database"),
        "the log is read before the Job is deleted: {text}"
    );
    let done = writes(&proxy, &component);
    let expected = [
        "PATCH serviceaccounts/sa",
        "PATCH configmaps/cfg",
        "PATCH jobs/j",
        "DELETE jobs/j",
        "DELETE configmaps/cfg",
        "DELETE serviceaccounts/sa",
    ];
    assert_eq!(done[before..], expected);
    for (collection, name) in [("jobs", "j"), ("configmaps", "cfg"), ("serviceaccounts", "sa")] {
        assert!(
            env.get(&component.path(collection, name)).await.is_none(),
            "{name}"
        );
    }
    // All of them run again with the next one, and go when all succeeded, last one first.
    let before = done.len();
    pass(
        &component,
        &documents,
        &with(job("j")),
        Occasion::Upgrade(ComponentRevision(3)),
    )
    .await
    .succeeded();
    assert_eq!(writes(&proxy, &component)[before..], expected);
    let record = component.target.record().await.unwrap().unwrap();
    assert_eq!(record.hooks, [], "nothing is left of them");
}

pub(crate) async fn upgrades_replace_what_an_earlier_run_left(env: &Env) {
    let component = Component::new(env);
    let documents = [config_map("plain", "k", "1")];
    let events = &[HookEvent::PreInstall, HookEvent::PostUpgrade];
    let all = hooks(
        &component,
        vec![
            hook(job("by-default"), events, 0, &[]),
            // Where no policy makes room, a Job is made again all the same, and other kinds are applied over.
            hook(job("job"), events, 1, &[HookFailed]),
            hook(config_map("settings", "k", "1"), events, 2, &[HookFailed]),
            hook(config_map("fresh", "k", "1"), events, 3, &[BeforeHookCreation]),
        ],
    );
    let paths = [
        ("jobs", "by-default"),
        ("jobs", "job"),
        ("configmaps", "settings"),
        ("configmaps", "fresh"),
    ]
    .map(|(collection, name)| component.path(collection, name));
    pass(&component, &documents, &all, Occasion::Install)
        .await
        .succeeded();
    let mut first = Vec::new();
    for path in &paths {
        first.push(uid(env, path).await);
    }
    env.change(&paths[2], &json!({"data": {"k": "2"}})).await;
    let done = pass(
        &component,
        &documents,
        &all,
        Occasion::Upgrade(ComponentRevision(2)),
    )
    .await
    .succeeded();
    let expected = [
        "recreate Job/by-default",
        "recreate Job/job",
        "update ConfigMap/settings",
        "recreate ConfigMap/fresh",
    ];
    assert_eq!(done, expected);
    for (index, path) in paths.iter().enumerate() {
        assert_eq!(uid(env, path).await == first[index], index == 2, "{path}");
    }
    assert_eq!(env.must(&paths[2]).await["data"]["k"], "1");
    let again = pass(
        &component,
        &documents,
        &all,
        Occasion::Upgrade(ComponentRevision(2)),
    )
    .await
    .succeeded();
    assert_eq!(again, Vec::<String>::new(), "once per revision");
}

pub(crate) async fn a_hook_over_somebody_elses_object_is_refused(env: &Env) {
    let mut component = Component::new(env);
    component.make_namespace().await;
    let theirs = component.path("configmaps", "settings");
    env.make(
        &component.collection("configmaps"),
        &json!({"metadata": {"name": "settings"}, "data": {"theirs": "1"}}),
    )
    .await;
    let all = hooks(
        &component,
        vec![hook(
            config_map("settings", "k", "1"),
            &[HookEvent::PreInstall],
            0,
            &[],
        )],
    );
    let documents = [config_map("plain", "k", "1")];
    let ran = pass(&component, &documents, &all, Occasion::Install).await;
    assert!(
        matches!(&ran.end, Err(Error::Foreign(objects)) if objects[0].object.name == "settings"),
        "{ran:?}"
    );
    assert_eq!(env.must(&theirs).await["data"], json!({"theirs": "1"}));
    component.options.adopt = true;
    pass(&component, &documents, &all, Occasion::Install)
        .await
        .succeeded();
    assert_eq!(env.must(&theirs).await["data"], json!({"k": "1"}));

    // What a hook made may become an object of the component, without a word of consent, and goes with it.
    component.options.adopt = false;
    let documents = [config_map("plain", "k", "1"), config_map("settings", "k", "2")];
    pass(
        &component,
        &documents,
        &Hooks::default(),
        Occasion::Upgrade(ComponentRevision(2)),
    )
    .await
    .succeeded();
    let labels = env.must(&theirs).await["metadata"]["labels"].clone();
    assert_eq!(
        labels["applyset.kubernetes.io/part-of"],
        component.target.applyset_id()
    );
    assert!(labels.get("evenkeel.dev/hook-of").is_none(), "{labels}");
    let plan = component.plan(&documents[..1]).await.unwrap();
    assert_eq!(plan.summary().count(PlanAction::Delete), 1);
}

pub(crate) async fn a_job_that_removes_itself_is_done(env: &Env) {
    let component = Component::new(env);
    let documents = [config_map("plain", "k", "1")];
    let mut brief = job("migrate");
    brief.object["spec"]["ttlSecondsAfterFinished"] = json!(0);
    let all = hooks(&component, vec![hook(brief, &[HookEvent::PreInstall], 0, &[])]);
    pass(&component, &documents, &all, Occasion::Install)
        .await
        .succeeded();
    env.until_gone(&component.path("jobs", "migrate")).await;
    assert!(component.plan(&documents).await.unwrap().is_noop());
}

/// Definitions in hooks are applied, not awaited and never deleted, as for Helm; later hooks may use their kinds. So may the
/// first ones use the kinds of the component's own definitions.
pub(crate) async fn definitions_may_be_hooks(env: &Env) {
    let component = Component::new(env);
    let (first, second) = (
        format!("{}.hooks.test", component.namespace),
        format!("{}.own.test", component.namespace),
    );
    let events = &[HookEvent::PreInstall];
    let all = hooks(
        &component,
        vec![
            hook(
                definition(&first, "Namespaced", false),
                events,
                -1,
                &[BeforeHookCreation, HookSucceeded],
            ),
            hook(widget(&first, "a", 1), events, 0, &[]),
            hook(widget(&second, "b", 1), events, 1, &[]),
        ],
    );
    let documents = [
        definition(&second, "Namespaced", false),
        config_map("plain", "k", "1"),
    ];
    let done = pass(&component, &documents, &all, Occasion::Install)
        .await
        .succeeded();
    let expected = [
        format!("create CustomResourceDefinition/widgets.{second}"),
        format!("create CustomResourceDefinition/widgets.{first}"),
        "create Widget/a".to_owned(),
        "create Widget/b".to_owned(),
        "create ConfigMap/plain".to_owned(),
    ];
    assert_eq!(done[1..], expected, "{done:?}");
    let path =
        |group: &str| format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}");
    env.must(&path(&first)).await;
    component.delete().await.unwrap();
    env.must(&path(&first)).await;
    for group in [first, second] {
        env.remove(&path(&group)).await;
    }
}
