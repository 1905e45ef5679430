//! The one node, on which all Pods run.

use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

/// Name of the node.
pub(super) const NODE: &str = "node-0";
/// Address of the node, where the stand-in for its kubelet listens.
pub(super) const NODE_ADDRESS: &str = "127.0.0.1";

/// Creates the node with room for everything, and ready; its kubelet is to be asked at `kubelet_port`. Daemon sets need it; so does the graceful end of Pods, which
/// the API server grants only to those that are bound to a node.
pub(super) async fn create(client: &Client, kubelet_port: u16) -> Result<(), kube::Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node: Node = from_json(json!({
        "metadata": {
            "name": NODE,
            "labels": {
                "kubernetes.io/hostname": NODE,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "node.kubernetes.io/instance-type": "stand-in",
                "topology.kubernetes.io/region": "region-0",
                "topology.kubernetes.io/zone": "zone-0",
            },
        },
    }))?;
    match nodes.create(&PostParams::default(), &node).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(error) => return Err(error),
    }
    let room = json!({"cpu": "1k", "memory": "4Ti", "ephemeral-storage": "16Ti", "pods": "100k"});
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "StandIn"});
    let status = json!({"status": {
        "capacity": room,
        "allocatable": room,
        // No host name: the API server would prefer it, and nothing resolves it.
        "addresses": [{"type": "InternalIP", "address": NODE_ADDRESS}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}},
        "conditions": [
            condition("Ready", "True"),
            condition("MemoryPressure", "False"),
            condition("DiskPressure", "False"),
            condition("PIDPressure", "False"),
            condition("NetworkUnavailable", "False"),
        ],
    }});
    nodes
        .patch_status(NODE, &PatchParams::default(), &Patch::Merge(&status))
        .await?;
    Ok(())
}

/// A typed object from literal JSON.
pub(super) fn from_json<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> Result<T, kube::Error> {
    serde_json::from_value(value).map_err(kube::Error::SerdeError)
}
