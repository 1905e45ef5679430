//! K34: the hooks of a chart run at their moments: install hooks once in a component's life, upgrade hooks once with each new
//! revision, delete hooks from what was kept; a repair runs none, and tests are nobody's business but a person's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use evenkeel_cluster::{HookState, Stop, WriteGuard};
use evenkeel_component::{End, Outcome};
use evenkeel_core::{HookEvent, HookPolicy, PlanAction};
use evenkeel_telemetry::CancellationToken;
use serde_json::{Value, json};

use super::{CONFIG, DEPLOYMENT, actions, data, succeeded};
use crate::bench::Bench;

/// A ConfigMap that is a hook.
fn map(name: &str, events: &str, more: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, annotations: {{helm.sh/hook: '{events}'{more}}}}}\ndata: {{a: b}}\n"
    )
}

/// A Job that is a hook; its pod fails when the values say so.
fn job(name: &str, events: &str, more: &str) -> String {
    let (real, simulated) = (
        evenkeel_testkit::POD_SCRIPT_ANNOTATION,
        evenkeel_simulator::BEHAVIOUR_ANNOTATION,
    );
    format!(
        "
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, annotations: {{helm.sh/hook: '{events}'{more}}}}}
spec:
  backoffLimit: 0
  suspend: {{{{ .Values.suspend | default false }}}}
  template:
    metadata:
      annotations:
        {{{{- if .Values.fail }}}}
        {real}: fail
        {simulated}: fail
        {{{{- else }}}}
        none: none
        {{{{- end }}}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{{name: main, image: example.com/migrate:1}}]
"
    )
}

/// `create Job/a`, of what an operation changed in the order it did, without the namespace.
fn done(outcome: &Outcome) -> Vec<String> {
    let changes = outcome
        .changes
        .iter()
        .filter(|change| change.object.kind != "Namespace");
    changes
        .map(|change| format!("{} {}/{}", change.action, change.object.kind, change.object.name))
        .collect()
}

fn planned(outcome: &Outcome) -> Vec<String> {
    let hooks = outcome.plan.iter().flat_map(|plan| &plan.hooks);
    hooks
        .map(|hook| format!("{} {}", hook.event, hook.object.name))
        .collect()
}

/// Why the next try is due.
fn retry(outcome: &Outcome) -> &str {
    match &outcome.end {
        End::Retry { reason, .. } => reason,
        other => panic!("expected another try, found {other:?}"),
    }
}

fn all_moments(bench: &Bench) {
    bench.write("templates/config.yaml", CONFIG);
    let events = "pre-install post-install pre-upgrade post-upgrade pre-delete post-delete pre-rollback post-rollback test";
    for event in events.split(' ') {
        let text = map(event, event, ", helm.sh/hook-delete-policy: before-hook-creation");
        bench.write(&format!("templates/{event}.yaml"), &text);
    }
    bench.write(
        "templates/first.yaml",
        &job("first", "pre-install,pre-upgrade", ", helm.sh/hook-weight: '-1'"),
    );
}

pub(crate) async fn hooks_run_at_their_moment_and_never_else(bench: &Bench) {
    all_moments(bench);
    bench.write("templates/web.yaml", DEPLOYMENT);
    let installed = bench.apply("{}").await;
    succeeded(&installed);
    let expected = [
        "create Job/first",
        "create ConfigMap/pre-install",
        "create ConfigMap/config",
        "create Deployment/web",
        "create ConfigMap/post-install",
    ];
    assert_eq!(done(&installed), expected);
    assert_eq!(
        planned(&installed),
        [
            "pre-install first",
            "pre-install pre-install",
            "post-install post-install"
        ]
    );
    let pods = bench.find("apps/v1", "Deployment", "web").await.unwrap();
    assert_eq!(
        pods["status"]["readyReplicas"], 2,
        "what comes after is after readiness"
    );

    let again = bench.apply("{}").await;
    succeeded(&again);
    assert_eq!(
        (done(&again), planned(&again)),
        (Vec::<String>::new(), Vec::new())
    );

    // A repair is no upgrade.
    bench
        .send("DELETE", "/api/v1 configmaps/config", &Value::Null)
        .await;
    let repaired = bench.apply("{}").await;
    succeeded(&repaired);
    assert_eq!(done(&repaired), ["create ConfigMap/config"]);

    let first = bench.find("batch/v1", "Job", "first").await.unwrap();
    let upgraded = bench.apply("color: blue").await;
    succeeded(&upgraded);
    let expected = [
        "recreate Job/first",
        "create ConfigMap/pre-upgrade",
        "update ConfigMap/config",
        "create ConfigMap/post-upgrade",
    ];
    assert_eq!(done(&upgraded), expected);
    let second = bench.find("batch/v1", "Job", "first").await.unwrap();
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    assert_eq!(second["status"]["succeeded"], 1);
    for never in [
        "pre-rollback",
        "post-rollback",
        "test",
        "pre-delete",
        "post-delete",
    ] {
        assert!(bench.get("ConfigMap", never).await.is_none(), "{never}");
    }
}

pub(crate) async fn a_plan_lists_the_hooks_that_would_run(bench: &Bench) {
    all_moments(bench);
    let expected = [
        "pre-install first",
        "pre-install pre-install",
        "post-install post-install",
    ];
    let outcome = bench.plan("{}").await;
    assert_eq!(outcome.end, End::Planned);
    assert_eq!(planned(&outcome), expected);
    let plan = outcome.plan.unwrap();
    assert!(!plan.is_noop() && plan.to_string().ends_with("3 hooks"), "{plan}");
    assert_eq!(plan.hooks[0].weight, -1);
    assert!(bench.record().await.is_none() && bench.get("ConfigMap", "pre-install").await.is_none());
    succeeded(&bench.apply("{}").await);
    assert_eq!(planned(&bench.plan("{}").await), Vec::<String>::new());
    let upgrade = bench.plan("color: blue").await;
    assert_eq!(
        planned(&upgrade),
        [
            "pre-upgrade first",
            "pre-upgrade pre-upgrade",
            "post-upgrade post-upgrade"
        ]
    );
    let deletion = bench.plan_uninstall().await;
    assert_eq!(
        planned(&deletion),
        ["pre-delete pre-delete", "post-delete post-delete"]
    );
}

pub(crate) async fn ignored_hooks_are_listed_and_never_run(bench: &Bench) {
    all_moments(bench);
    let ignored = bench.apply_so("{}", HookPolicy::Ignore, false).await;
    succeeded(&ignored);
    assert_eq!(done(&ignored), ["create ConfigMap/config"]);
    let plan = ignored.plan.as_ref().unwrap();
    assert!(plan.hooks.is_empty());
    let skipped: Vec<&str> = plan
        .skipped
        .iter()
        .map(|skipped| skipped.object.name.as_str())
        .collect();
    assert!(
        skipped.contains(&"first") && skipped.contains(&"pre-delete") && !skipped.contains(&"test"),
        "{skipped:?}"
    );
    assert!(
        plan.skipped[0].reason.contains("hooks are ignored"),
        "{:?}",
        plan.skipped
    );

    // From now on they are to run: at the next moment, not for what is past. Those of the deletion are kept at once.
    let allowed = bench.apply("{}").await;
    succeeded(&allowed);
    assert_eq!(done(&allowed), Vec::<String>::new());
    assert_eq!(allowed.revision, ignored.revision, "it is the same revision");
    assert!(bench.record().await.unwrap().delete_hooks.is_some());
    let upgraded = bench.apply("color: blue").await;
    succeeded(&upgraded);
    assert!(
        done(&upgraded).contains(&"create ConfigMap/pre-upgrade".to_owned()),
        "{:?}",
        done(&upgraded)
    );
    succeeded(&bench.apply_so("color: blue", HookPolicy::Ignore, false).await);
    assert!(bench.record().await.unwrap().delete_hooks.is_none());
}

pub(crate) async fn a_failing_hook_ends_the_operation(bench: &Bench) {
    bench.write("templates/config.yaml", CONFIG);
    bench.write(
        "templates/migrate.yaml",
        &job("migrate", "pre-install,pre-upgrade", ""),
    );
    let failed = bench.apply("fail: true").await;
    let reason = retry(&failed);
    assert!(
        reason.contains("pre-install hook") && reason.contains("Job.batch/migrate"),
        "{reason}"
    );
    assert!(reason.contains("BackoffLimitExceeded"), "{reason}");
    assert!(failed.not_ready, "it was tried and not done");
    assert_eq!(done(&failed), ["create Job/migrate"]);
    let step = failed
        .lines
        .iter()
        .find(|line| line.text.contains("BackoffLimitExceeded"));
    assert_eq!(
        step.map(|line| line.step.as_str()),
        Some("pre-hooks"),
        "{:?}",
        failed.lines
    );
    assert!(
        bench.get("ConfigMap", "config").await.is_none(),
        "nothing came after it"
    );
    let record = bench.record().await.unwrap();
    assert_eq!((record.unfinished, record.revision), (true, None));
    assert_eq!(record.hooks[0].state, HookState::Failed);

    // Other values are another revision, but the component's life has still not begun.
    let mended = bench.apply("fail: false").await;
    succeeded(&mended);
    assert_eq!(done(&mended), ["recreate Job/migrate", "create ConfigMap/config"]);
    assert_eq!(planned(&mended), ["pre-install migrate"]);
}

pub(crate) async fn hooks_of_a_deletion_run_though_the_source_is_gone(bench: &Bench) {
    bench.write("templates/config.yaml", CONFIG);
    bench.write("templates/seed.yaml", &job("seed", "post-install", ""));
    bench.write(
        "templates/bye.yaml",
        &job(
            "bye",
            "pre-delete",
            ", helm.sh/hook-delete-policy: hook-succeeded",
        ),
    );
    bench.write("templates/swept.yaml", &map("swept", "post-delete", ""));
    succeeded(&bench.apply("{}").await);
    // Another version of them counts as soon as it was applied.
    bench.write("templates/swept.yaml", &map("swept-well", "post-delete", ""));
    succeeded(&bench.apply("color: blue").await);
    for file in ["config", "seed", "bye", "swept"] {
        bench.remove(&format!("templates/{file}.yaml"));
    }
    bench.remove("Chart.yaml");
    let gone = bench.uninstall().await;
    succeeded(&gone);
    let changes: Vec<(PlanAction, String)> = gone
        .changes
        .iter()
        .map(|change| (change.action, change.object.name.clone()))
        .collect();
    let (create, delete) = (PlanAction::Create, PlanAction::Delete);
    let namespace = bench.namespace.to_string();
    let expected = [
        (create, "bye"),
        (delete, "bye"),
        (delete, "config"),
        (create, "swept-well"),
        (delete, "swept-well"),
        (delete, "seed"),
        (delete, &namespace),
    ];
    assert_eq!(changes, expected.map(|(action, name)| (action, name.to_owned())));
    assert!(bench.record().await.is_none());
    assert!(
        bench
            .cluster
            .lookup("v1", "Namespace", "", bench.namespace.as_str())
            .await
            .unwrap()
            .is_none()
    );
}

pub(crate) async fn hooks_of_a_deletion_can_be_left_out(bench: &Bench) {
    bench.write("templates/config.yaml", CONFIG);
    bench.write("templates/bye.yaml", &job("bye", "pre-delete", ""));
    let values = "fail: true";
    succeeded(&bench.apply(values).await);
    let failed = bench.uninstall().await;
    assert!(retry(&failed).contains("pre-delete hook"), "{failed:?}");
    assert!(
        bench.get("ConfigMap", "config").await.is_some(),
        "nothing was deleted"
    );
    let gone = bench.uninstall_without_hooks().await;
    succeeded(&gone);
    assert!(
        gone.changes
            .iter()
            .any(|change| change.object.name == "bye" && change.action == PlanAction::Delete)
    );
    assert!(bench.record().await.is_none());
}

pub(crate) async fn a_takeover_runs_no_install_hooks(bench: &Bench) {
    all_moments(bench);
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bench.namespace.as_str()}});
    bench.create(namespace).await;
    bench
        .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}, "data": {"color": "red"}}))
        .await;
    bench.write(
        "templates/first.yaml",
        &job("first", "pre-install,pre-upgrade", ""),
    );
    // It fails halfway, and is still no install when the objects have changed hands.
    bench.write("templates/late.yaml", &job("late", "post-upgrade", ""));
    let taken = bench.apply_so("fail: true", HookPolicy::Run, true).await;
    assert!(retry(&taken).contains("pre-upgrade hook"), "{taken:?}");
    let taken = bench.apply_so("fail: false", HookPolicy::Run, true).await;
    succeeded(&taken);
    assert!(
        bench.get("ConfigMap", "pre-upgrade").await.is_some()
            && bench.get("ConfigMap", "post-upgrade").await.is_some()
    );
    assert!(
        bench.get("ConfigMap", "pre-install").await.is_none()
            && bench.get("ConfigMap", "post-install").await.is_none()
    );
}

/// Lets writes start, or says that they may not, and why.
struct Switch(AtomicU8);

impl Switch {
    fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU8::new(0)))
    }

    fn stop(&self, why: Stop) {
        self.0
            .store(if why == Stop::Superseded { 1 } else { 2 }, Ordering::SeqCst);
    }
}

impl WriteGuard for Switch {
    fn permit(&self, _longest: Duration) -> Result<(), Stop> {
        match self.0.load(Ordering::SeqCst) {
            0 => Ok(()),
            1 => Err(Stop::Superseded),
            _ => Err(Stop::Cancelled),
        }
    }
}

/// Waits until the hook's Job runs and is recorded with its uid.
async fn until_recorded(bench: &Bench) {
    evenkeel_testkit::eventually("the hook to be recorded", async || {
        let record = bench.record().await;
        let hook = record.and_then(|record| record.hooks.first().cloned());
        if hook.as_ref().is_some_and(|hook| !hook.uid.is_empty()) {
            Ok(())
        } else {
            Err(hook)
        }
    })
    .await;
}

pub(crate) async fn a_hook_is_waited_for_though_a_newer_version_comes(bench: &Bench) {
    bench.write("templates/config.yaml", CONFIG);
    bench.write("templates/migrate.yaml", &job("migrate", "pre-install", ""));
    let (guard, cancel) = (Switch::new(), CancellationToken::new());
    let running = bench.apply_guarded("suspend: true", guard.clone(), cancel.clone());
    tokio::pin!(running);
    tokio::select! {
        ended = &mut running => panic!("the hook is suspended: {ended:?}"),
        () = until_recorded(bench) => {}
    }
    guard.stop(Stop::Superseded);
    cancel.cancel();
    // Longer than what is left to work that is just broken off.
    let ended = tokio::time::timeout(Duration::from_secs(4), &mut running).await;
    assert!(ended.is_err(), "the hook still runs: {ended:?}");
    bench
        .send(
            "PATCH",
            "/apis/batch/v1 jobs/migrate",
            &json!({"spec": {"suspend": false}}),
        )
        .await;
    let ended = running.await;
    assert!(matches!(ended.end, End::Stopped(_)), "{ended:?}");
    let migrate = bench.find("batch/v1", "Job", "migrate").await.unwrap();
    assert_eq!(
        migrate["status"]["succeeded"], 1,
        "it stopped when the hook had ended"
    );
    assert!(
        bench.get("ConfigMap", "config").await.is_none(),
        "and wrote nothing more"
    );
}

pub(crate) async fn a_cancelled_operation_leaves_its_hook_to_the_next(bench: &Bench) {
    bench.write("templates/config.yaml", CONFIG);
    bench.write("templates/migrate.yaml", &job("migrate", "pre-install", ""));
    let (guard, cancel) = (Switch::new(), CancellationToken::new());
    let running = bench.apply_guarded("suspend: true", guard.clone(), cancel.clone());
    tokio::pin!(running);
    tokio::select! {
        ended = &mut running => panic!("the hook is suspended: {ended:?}"),
        () = until_recorded(bench) => {}
    }
    guard.stop(Stop::Cancelled);
    cancel.cancel();
    let ended = running.await;
    assert_eq!(ended.end, End::Stopped(Stop::Cancelled));
    let first = bench.find("batch/v1", "Job", "migrate").await.unwrap();
    assert_eq!(done(&ended), ["create Job/migrate"], "what was changed is told");
    bench
        .send(
            "PATCH",
            "/apis/batch/v1 jobs/migrate",
            &json!({"spec": {"suspend": false}}),
        )
        .await;
    let next = bench.apply("suspend: true").await;
    succeeded(&next);
    assert_eq!(done(&next), ["create ConfigMap/config"]);
    let second = bench.find("batch/v1", "Job", "migrate").await.unwrap();
    assert_eq!(
        first["metadata"]["uid"], second["metadata"]["uid"],
        "the same one"
    );
}

/// A hook that draws a password is part of a kept render: a try that is repeated draws no other.
pub(crate) async fn hooks_keep_their_passwords(bench: &Bench) {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: login, annotations: {helm.sh/hook: pre-install}}\nstringData: {password: {{ randAlphaNum 24 | quote }}}\n";
    bench.write("templates/login.yaml", secret);
    bench.write("templates/config.yaml", CONFIG);
    bench.write(
        "templates/seed.yaml",
        &job(
            "seed",
            "post-install",
            ", helm.sh/hook-delete-policy: hook-failed",
        ),
    );
    let failed = bench.apply("fail: true").await;
    assert!(retry(&failed).contains("post-install hook"), "{failed:?}");
    assert!(
        bench.find("batch/v1", "Job", "seed").await.is_none(),
        "its policy says so"
    );
    let first = data(bench, "Secret", "login").await;
    let failed = bench.apply("fail: true").await;
    assert_eq!(
        actions(&failed),
        [
            (PlanAction::Create, "Job".to_owned()),
            (PlanAction::Delete, "Job".to_owned())
        ]
    );
    assert_eq!(data(bench, "Secret", "login").await, first);
    assert_eq!(
        failed.plan.as_ref().unwrap().hooks[0].event,
        HookEvent::PreInstall
    );
}
