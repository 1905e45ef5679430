//! Stands in for a volume provisioner and the volume binder.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::node::from_json;
use super::{Change, follow, settle};

/// Binds each claim to a volume made for it, whatever its class, and removes the volume with the claim; for ever.
pub(super) async fn run(client: &Client) {
    follow(
        Api::<PersistentVolumeClaim>::all(client.clone()),
        |change| async move {
            match change {
                Change::Present(claim) if is_unbound(&claim) => settle(|| bind(client, &claim)).await,
                Change::Present(_) => {}
                Change::Gone(claim) => settle(|| release(client, &claim)).await,
            }
        },
    )
    .await;
}

fn is_unbound(claim: &PersistentVolumeClaim) -> bool {
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    phase != Some("Bound") && claim.metadata.deletion_timestamp.is_none()
}

/// Name of the volume made for a claim.
fn volume_name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", claim.uid().unwrap_or_default())
}

async fn bind(client: &Client, claim: &PersistentVolumeClaim) -> Result<(), kube::Error> {
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(client.clone(), &claim.namespace().unwrap_or_default());
    let spec = claim.spec.as_ref();
    let name = match spec.and_then(|spec| spec.volume_name.clone()) {
        // A claim may ask for a volume by name: that one it gets, if it exists.
        Some(name) if !name.is_empty() && name != volume_name(claim) => name,
        _ => {
            let name = volume_name(claim);
            create_volume(&volumes, claim, &name).await?;
            name
        }
    };
    let volume = volumes.get(&name).await?;
    volumes
        .patch_status(
            &name,
            &PatchParams::default(),
            &Patch::Merge(&json!({"status": {"phase": "Bound"}})),
        )
        .await?;
    let uid = json!({"metadata": {
        "uid": claim.uid(),
        "annotations": {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"},
    }, "spec": {"volumeName": name}});
    claims
        .patch(&claim.name_any(), &PatchParams::default(), &Patch::Merge(&uid))
        .await?;
    let status = json!({"status": {
        "phase": "Bound",
        "accessModes": spec.and_then(|spec| spec.access_modes.clone()),
        "capacity": volume.spec.and_then(|spec| spec.capacity),
    }});
    claims
        .patch_status(&claim.name_any(), &PatchParams::default(), &Patch::Merge(&status))
        .await?;
    Ok(())
}

async fn create_volume(
    volumes: &Api<PersistentVolume>,
    claim: &PersistentVolumeClaim,
    name: &str,
) -> Result<(), kube::Error> {
    let spec = claim.spec.clone().unwrap_or_default();
    let capacity = spec.resources.and_then(|resources| resources.requests);
    let volume: PersistentVolume = from_json(json!({
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": "stand-in"}},
        "spec": {
            "capacity": capacity,
            "accessModes": spec.access_modes,
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": spec.storage_class_name.unwrap_or_default(),
            "volumeMode": spec.volume_mode,
            "hostPath": {"path": format!("/nonexistent/{name}")},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": claim.namespace(),
                "name": claim.name_any(),
                "uid": claim.uid(),
            },
        },
    }))?;
    match volumes.create(&PostParams::default(), &volume).await {
        Ok(_) => Ok(()),
        // Made by an earlier try.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error),
    }
}

async fn release(client: &Client, claim: &PersistentVolumeClaim) -> Result<(), kube::Error> {
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    volumes
        .delete(&volume_name(claim), &DeleteParams::default())
        .await?;
    Ok(())
}
