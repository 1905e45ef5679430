//! Stands in for scheduler and kubelet: Pods come to a node, run, and end.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::node::{NODE, from_json};
use super::pod_status::{self, Next};
use super::{Change, follow, settle};

/// Annotation that says what becomes of a Pod: a [`PodScript`](super::PodScript) by name. It may be changed while
/// the Pod lives, which then follows.
pub const POD_SCRIPT_ANNOTATION: &str = "stand-in.evenkeel.dev/pod";

/// Annotation with the milliseconds that a Pod stays pending after it came to its node.
pub const DELAY_ANNOTATION: &str = "stand-in.evenkeel.dev/delay-ms";

/// Annotation that keeps a deleted Pod terminating for as long as it is there, whatever its value.
pub const HOLD_TERMINATION_ANNOTATION: &str = "stand-in.evenkeel.dev/hold-termination";

/// Takes care of all Pods, for ever.
pub(super) async fn run(client: &Client) {
    follow(Api::<Pod>::all(client.clone()), |change| async move {
        if let Change::Present(pod) = change {
            if let Next::Status { starts: true, .. } = pod_status::next(&pod, now()) {
                tokio::time::sleep(delay(&pod)).await;
            }
            settle(|| advance(client, &pod)).await;
        }
    })
    .await;
}

/// The wall clock: this stands in for a machine, and controllers compare its times with theirs.
#[expect(
    clippy::disallowed_methods,
    reason = "a stand-in lives in real time, with the real controllers"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

fn delay(pod: &Pod) -> Duration {
    let given = pod
        .annotations()
        .get(DELAY_ANNOTATION)
        .and_then(|text| text.parse().ok());
    Duration::from_millis(given.unwrap_or_default())
}

/// Does the next thing that is due. What that leads to is another event, so one at a time is enough.
async fn advance(client: &Client, pod: &Pod) -> Result<(), kube::Error> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let name = pod.name_any();
    match pod_status::next(pod, now()) {
        Next::Nothing => Ok(()),
        Next::Bind => {
            let binding = json!({
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name, "uid": pod.uid()},
                "target": {"kind": "Node", "name": NODE},
            });
            let _: serde_json::Value = pods
                .create_subresource("binding", &name, &PostParams::default(), &binding)
                .await?;
            Ok(())
        }
        Next::End => {
            let end = DeleteParams {
                grace_period_seconds: Some(0),
                preconditions: Some(Preconditions {
                    uid: pod.uid(),
                    resource_version: None,
                }),
                ..DeleteParams::default()
            };
            pods.delete(&name, &end).await.map(drop)
        }
        Next::Status { status, warning, .. } => {
            // The uid guards against a Pod of the same name, as stateful sets make them.
            let patch = json!({"metadata": {"uid": pod.uid()}, "status": status});
            pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch))
                .await?;
            match warning {
                Some((reason, message)) => warn(client, pod, reason, &message).await,
                None => Ok(()),
            }
        }
    }
}

/// The event with which a kubelet tells why a Pod does not run.
async fn warn(client: &Client, pod: &Pod, reason: &str, message: &str) -> Result<(), kube::Error> {
    let namespace = pod.namespace().unwrap_or_default();
    let events: Api<Event> = Api::namespaced(client.clone(), &namespace);
    let time = now().to_string();
    let event: Event = from_json(json!({
        "metadata": {"generateName": format!("{}.", pod.name_any()), "namespace": namespace},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "count": 1,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "source": {"component": "kubelet", "host": NODE},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": namespace,
            "name": pod.name_any(),
            "uid": pod.uid(),
        },
    }))?;
    events.create(&PostParams::default(), &event).await.map(drop)
}
