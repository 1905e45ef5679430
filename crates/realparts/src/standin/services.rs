//! Stands in for a cloud's load balancers.

use std::sync::atomic::{AtomicU8, Ordering};

use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::{Change, follow, settle};

/// Gives each Service of type LoadBalancer an address, for ever.
pub(super) async fn run(client: &Client) {
    follow(Api::<Service>::all(client.clone()), |change| async move {
        if let Change::Present(service) = change
            && wants_address(&service)
        {
            settle(|| give_address(client, &service)).await;
        }
    })
    .await;
}

fn wants_address(service: &Service) -> bool {
    let is_balanced = service
        .spec
        .as_ref()
        .is_some_and(|spec| spec.type_.as_deref() == Some("LoadBalancer"));
    let balancer = service
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());
    let has_address = balancer
        .and_then(|balancer| balancer.ingress.as_ref())
        .is_some_and(|list| !list.is_empty());
    is_balanced && !has_address && service.metadata.deletion_timestamp.is_none()
}

async fn give_address(client: &Client, service: &Service) -> Result<(), kube::Error> {
    // 198.51.100.0/24 is reserved for documentation; that addresses repeat after 250 disturbs no one.
    static GIVEN: AtomicU8 = AtomicU8::new(0);
    let host = 1 + GIVEN.fetch_add(1, Ordering::Relaxed) % 250;
    let services: Api<Service> = Api::namespaced(client.clone(), &service.namespace().unwrap_or_default());
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": format!("198.51.100.{host}")}]}}});
    services
        .patch_status(
            &service.name_any(),
            &PatchParams::default(),
            &Patch::Merge(&status),
        )
        .await?;
    Ok(())
}
