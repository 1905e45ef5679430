//! A namespace with the Secret of a Git host, and the controller in front of it.

use std::sync::Arc;

use evenkeel_core::{Clock as _, ManualClock};
use evenkeel_operator::git::{GitHost, Project, RepoPath};
use evenkeel_operator::resources::{Condition, ConditionStatus, GitRepo, GitRepoStatus};
use evenkeel_operator::{GitRepoSettings, GitRepos, Passed};
use evenkeel_telemetry::{SystemClock, Tasks};
use evenkeel_testkit::FaultProxy;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::admission::server;
use crate::git::Site;
use crate::rights::operator_of;

pub(crate) const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIJ22mHNYfSPnLAj8YiKa0RmxafD9r5nEUquizay7xh3s";
pub(crate) const OTHER_KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIJ5j/kzlDkY3qFTrFWoFQiD6B2MCO1UqG7B3yoOau9iG";

/// Keys of the host as the Secret has them.
pub(crate) const HOST_KEYS: &str = "git.example.org ssh-ed25519 HOSTKEY";

pub(crate) struct World<'a> {
    pub(crate) site: &'a Site,
    pub(crate) group: String,
    pub(crate) namespace: String,
    /// An administrator's.
    pub(crate) client: Client,
    /// Before the Git host.
    pub(crate) git: FaultProxy,
    /// Before the API server.
    pub(crate) kubernetes: FaultProxy,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) repos: GitRepos,
}

impl<'a> World<'a> {
    pub(crate) async fn new(site: &'a Site) -> Self {
        Self::with(site, GitRepoSettings::default()).await
    }

    /// One whose controller looks at everything with every pass: tests change what is outside, and look at once.
    pub(crate) async fn with(site: &'a Site, settings: GitRepoSettings) -> Self {
        let settings = GitRepoSettings {
            remember: false,
            ..settings
        };
        Self::exactly(site, settings).await
    }

    pub(crate) async fn exactly(site: &'a Site, settings: GitRepoSettings) -> Self {
        let client = server().client().await;
        let namespace = server().namespace("repos").await;
        let git = FaultProxy::before(&site.url()).await;
        let kubernetes = FaultProxy::start(operator_of(&namespace).await).await;
        let mut config = Config::new(kubernetes.url().parse().unwrap());
        config.default_retry = false;
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let repos = GitRepos::new(
            Client::try_from(config).unwrap(),
            settings,
            Arc::clone(&clock) as _,
            Tasks::new(),
        )
        .unwrap();
        let world = Self {
            site,
            group: site.new_group().await,
            namespace,
            client,
            git,
            kubernetes,
            clock,
            repos,
        };
        world.secret("git", &world.host_secret()).await;
        world
    }

    /// What the Secret of the Git host holds.
    pub(crate) fn host_secret(&self) -> Value {
        let provider = self.site.host().kind();
        json!({
            "endpoint": self.git.url(), "token": self.site.token(), "provider": provider, "hostKeys": HOST_KEYS,
        })
    }

    /// Writes a Secret.
    pub(crate) async fn secret(&self, name: &str, data: &Value) {
        let object =
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": data });
        self.secrets()
            .patch(name, &PatchParams::apply("test").force(), &Patch::Apply(&object))
            .await
            .unwrap();
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn objects(&self) -> Api<GitRepo> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Writes an object with these fields beside path, name and Secret, as a user does.
    pub(crate) async fn write(&self, name: &str, spec: Value) -> GitRepo {
        let mut whole = json!({ "path": self.group, "repoName": name, "apiSecretRef": { "name": "git" } });
        for (field, value) in spec.as_object().unwrap() {
            whole[field] = value.clone();
        }
        let object = json!({ "apiVersion": "syn.tools/v1alpha1", "kind": "GitRepo", "metadata": { "name": name }, "spec": whole });
        self.objects()
            .patch(name, &PatchParams::apply("test").force(), &Patch::Apply(&object))
            .await
            .unwrap()
    }

    /// Annotates an object; null takes an annotation away.
    pub(crate) async fn annotate(&self, name: &str, annotation: &str, value: Value) {
        let fields = json!({ "metadata": { "annotations": { annotation: value } } });
        self.objects()
            .patch(name, &PatchParams::default(), &Patch::Merge(&fields))
            .await
            .unwrap();
    }

    /// Lets somebody delete an object.
    pub(crate) async fn delete(&self, name: &str) {
        self.objects().delete(name, &Default::default()).await.unwrap();
    }

    pub(crate) async fn get(&self, name: &str) -> GitRepo {
        self.objects().get(name).await.unwrap()
    }

    pub(crate) async fn is_gone(&self, name: &str) -> bool {
        self.objects().get_opt(name).await.unwrap().is_none()
    }

    pub(crate) async fn status(&self, name: &str) -> GitRepoStatus {
        self.get(name).await.status.unwrap_or_default()
    }

    pub(crate) async fn condition(&self, name: &str, kind: &str) -> Option<Condition> {
        let conditions = self.status(name).await.conditions;
        conditions.into_iter().find(|condition| condition.kind == kind)
    }

    pub(crate) async fn assert_condition(&self, name: &str, kind: &str, status: ConditionStatus, says: &str) {
        let conditions = self.status(name).await.conditions;
        let condition = conditions.iter().find(|condition| condition.kind == kind);
        let is_so =
            condition.is_some_and(|condition| condition.status == status && condition.message.contains(says));
        assert!(
            is_so,
            "{kind} should be {status:?} and say {says:?}: {conditions:#?}"
        );
    }

    pub(crate) async fn pass(&self, name: &str) -> Passed {
        self.repos.pass(&self.namespace, name).await.unwrap()
    }

    /// Writes a status as the predecessor's controller does.
    pub(crate) async fn write_as_predecessor(&self, name: &str, status: Value) {
        let params = PatchParams {
            field_manager: Some("manager".to_owned()),
            ..PatchParams::default()
        };
        let status = json!({ "status": status });
        self.objects()
            .patch_status(name, &params, &Patch::Merge(&status))
            .await
            .unwrap();
    }

    /// Lets the time pass until a pass that left something open says that the next one is due: a host may have asked for a pause.
    pub(crate) fn wait_until_due(&self, passed: &Passed) {
        let is_open = passed
            .conclusion
            .is_some_and(|conclusion| conclusion > evenkeel_steps::Conclusion::Changed);
        if let Some(due) = passed.due.as_ref().filter(|_| is_open) {
            self.clock.advance(due.at.duration_since(self.clock.now()));
        }
    }

    /// A pass that leaves nothing open.
    pub(crate) async fn converge(&self, name: &str) -> Passed {
        let passed = self.pass(name).await;
        let conclusion = passed.conclusion.unwrap();
        assert!(
            conclusion <= evenkeel_steps::Conclusion::Changed,
            "{}",
            passed.timeline
        );
        passed
    }

    /// Another pass, which must write nothing anywhere.
    pub(crate) async fn assert_settled(&self, name: &str) {
        let (git, kubernetes) = (self.git.requests(), self.kubernetes.requests());
        let passed = self.pass(name).await;
        for calls in [&self.git.passed()[git..], &self.kubernetes.passed()[kubernetes..]] {
            let writes: Vec<&String> = calls.iter().filter(|call| !call.starts_with("GET ")).collect();
            assert!(writes.is_empty(), "{writes:#?}\n{}", passed.timeline);
        }
        assert_eq!(
            passed.conclusion,
            Some(evenkeel_steps::Conclusion::Unchanged),
            "{}",
            passed.timeline
        );
    }

    pub(crate) fn path(&self, name: &str) -> RepoPath {
        RepoPath::new(&self.group, name).unwrap()
    }

    /// The host, past the proxy.
    pub(crate) fn host(&self) -> Arc<dyn GitHost> {
        self.site.host()
    }

    pub(crate) async fn project(&self, name: &str) -> Option<Project> {
        self.host().find(&self.path(name)).await.unwrap()
    }

    /// The address that a status shows.
    pub(crate) fn url(&self, name: &str) -> String {
        let host = self.git.url().replace("http://", "");
        format!("ssh://git@{host}/{}/{name}.git", self.group)
    }
}
