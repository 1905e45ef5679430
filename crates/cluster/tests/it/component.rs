//! One component of a scenario, taken through the steps of a pipeline.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use evenkeel_cluster::{
    Attempt, ComponentPlan, ComponentTarget, DeleteOptions, Deletion, Error, Event, Expected, Inputs,
    ManifestObject, Observer, Placement, PlanOptions, Session, Unguarded, Verdict, WaitOptions,
};
use evenkeel_core::{
    ComponentName, ComponentRevision, Digest, Fence, Namespace, ObjectChange, Plan, PlanAction,
};
use serde_json::json;

use crate::env::{Env, WAIT, owner, short};

pub(crate) struct Component<'a> {
    pub(crate) env: &'a Env,
    pub(crate) target: ComponentTarget,
    pub(crate) namespace: String,
    pub(crate) force_namespace: bool,
    pub(crate) options: PlanOptions,
    /// Whether somebody has agreed to whatever is deleted.
    pub(crate) agreed: bool,
    pub(crate) events: Arc<Mutex<Vec<Event>>>,
    fence: AtomicU64,
}

/// What a whole pass came to.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) plan: Plan,
    pub(crate) changes: Vec<ObjectChange>,
}

impl Pass {
    /// `create ConfigMap/a`, in the order it was done.
    pub(crate) fn done(&self) -> Vec<String> {
        self.changes
            .iter()
            .map(|change| format!("{} {}/{}", change.action, change.object.kind, change.object.name))
            .collect()
    }

    pub(crate) fn planned(&self, action: PlanAction) -> Vec<String> {
        planned(&self.plan, action)
    }
}

pub(crate) fn planned(plan: &Plan, action: PlanAction) -> Vec<String> {
    let changes = plan.changes.iter().filter(|change| change.action == action);
    changes
        .map(|change| format!("{}/{}", change.object.kind, change.object.name))
        .collect()
}

impl<'a> Component<'a> {
    /// The scenario's only component, in a namespace of its own that does not exist yet.
    pub(crate) fn new(env: &'a Env) -> Self {
        Self::named(env, "c")
    }

    pub(crate) fn named(env: &'a Env, suffix: &str) -> Self {
        let name = format!("{}-{suffix}", short(&env.name));
        let target = env
            .cluster
            .component(&owner(), &ComponentName::new(name.clone()).unwrap());
        Self {
            env,
            target,
            namespace: name,
            force_namespace: false,
            options: PlanOptions::default(),
            agreed: false,
            events: Arc::default(),
            fence: AtomicU64::new(1),
        }
    }

    pub(crate) fn attempt(&self) -> Attempt {
        Attempt {
            fence: Fence(self.fence.fetch_add(1, Ordering::Relaxed)),
            guard: Arc::new(Unguarded),
        }
    }

    /// The next attempt takes this number.
    pub(crate) fn set_fence(&self, fence: u64) {
        self.fence.store(fence, Ordering::Relaxed);
    }

    pub(crate) fn observer(&self) -> Observer {
        let events = Arc::clone(&self.events);
        Arc::new(move |event| events.lock().unwrap().push(event))
    }

    pub(crate) async fn plan(&self, documents: &[ManifestObject]) -> Result<ComponentPlan, Error> {
        let placement = Placement {
            namespace: Namespace::new(self.namespace.clone()).unwrap(),
            force_namespace: self.force_namespace,
        };
        let desired = self
            .target
            .desired(documents.to_vec(), &placement, Vec::new())
            .await?;
        self.target.plan(desired, &self.options).await
    }

    pub(crate) async fn session(&self, documents: &[ManifestObject]) -> Result<Session, Error> {
        let mut plan = self.plan(documents).await?;
        if self.agreed {
            plan.agree();
        }
        Ok(plan.begin(self.attempt(), self.observer()))
    }

    /// A digest of the documents, as a pipeline computes one of chart and values.
    pub(crate) fn inputs(&self, documents: &[ManifestObject]) -> Inputs {
        let contents: Vec<String> = documents
            .iter()
            .map(|document| document.object.to_string())
            .collect();
        Inputs {
            revision: ComponentRevision(1),
            digest: Digest::of_parts(contents),
        }
    }

    /// Everything but waiting.
    pub(crate) async fn apply(&self, documents: &[ManifestObject]) -> Result<Pass, Error> {
        let mut session = self.session(documents).await?;
        session.prepare_namespaces().await?;
        session.apply().await?;
        session.prune().await?;
        session.record(&self.inputs(documents)).await?;
        Ok(Pass {
            plan: session.plan().summary().clone(),
            changes: session.changes().to_vec(),
        })
    }

    /// A whole pass.
    pub(crate) async fn run(&self, documents: &[ManifestObject]) -> Result<Pass, Error> {
        let mut session = self.session(documents).await?;
        session.prepare_namespaces().await?;
        session.apply().await?;
        session.wait_ready(&WaitOptions { timeout: WAIT }).await?;
        session.prune().await?;
        session.record(&self.inputs(documents)).await?;
        Ok(Pass {
            plan: session.plan().summary().clone(),
            changes: session.changes().to_vec(),
        })
    }

    pub(crate) async fn delete(&self) -> Result<Deletion, Error> {
        self.delete_with(DeleteOptions {
            timeout: WAIT,
            ..DeleteOptions::default()
        })
        .await
    }

    pub(crate) async fn delete_with(&self, options: DeleteOptions) -> Result<Deletion, Error> {
        self.target
            .delete(&self.attempt(), &options, &self.observer())
            .await
    }

    pub(crate) async fn check(&self, documents: &[ManifestObject]) -> Verdict {
        let expected = Expected {
            component: self.target.name().clone(),
            inputs: Some(self.inputs(documents).digest),
            readiness: self.options.readiness.clone(),
        };
        let mut check = self.env.cluster.check(&owner(), &[expected]).await.unwrap();
        check.components.remove(self.target.name()).unwrap()
    }

    /// The path of an object in the component's namespace.
    pub(crate) fn path(&self, collection: &str, name: &str) -> String {
        let root = match collection {
            "deployments" | "statefulsets" | "daemonsets" | "replicasets" => "/apis/apps/v1",
            "jobs" => "/apis/batch/v1",
            "horizontalpodautoscalers" => "/apis/autoscaling/v2",
            "roles" | "rolebindings" => "/apis/rbac.authorization.k8s.io/v1",
            _ => "/api/v1",
        };
        format!("{root}/namespaces/{}/{collection}/{name}", self.namespace)
    }

    pub(crate) fn collection(&self, collection: &str) -> String {
        self.path(collection, "").trim_end_matches('/').to_owned()
    }

    pub(crate) fn namespace_path(&self) -> String {
        format!("/api/v1/namespaces/{}", self.namespace)
    }

    pub(crate) fn parent_path(&self) -> String {
        format!(
            "/api/v1/namespaces/evenkeel-system/secrets/{}",
            self.target.parent_name()
        )
    }

    /// Somebody makes the component's namespace.
    pub(crate) async fn make_namespace(&self) {
        self.env
            .make(
                "/api/v1/namespaces",
                &json!({"metadata": {"name": self.namespace}}),
            )
            .await;
    }
}

/// Everything that a pipeline awaits can be awaited by a task that moves between threads.
#[allow(dead_code, reason = "checked by the compiler")]
fn futures_can_be_sent(
    component: &Component<'static>,
    session: &'static mut Session,
    attempt: &'static Attempt,
) {
    fn sent<T: Send>(_: T) {}
    sent(component.env.cluster.check(&owner(), &[]));
    sent(component.target.record());
    sent(component.target.orphan(attempt, &component.observer()));
    sent(
        component
            .target
            .delete(attempt, &DeleteOptions::default(), &component.observer()),
    );
    sent(session.apply());
    sent(session.wait_ready(&WaitOptions { timeout: WAIT }));
}
