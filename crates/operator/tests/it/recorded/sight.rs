//! What there is in our namespace, in Vault and at GitLab.

use evenkeel_operator::resources::{Cluster, GitRepo, Tenant, TenantTemplate};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::ListParams;
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt as _};
use reqwest::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::comparison::Sight;
use super::form;
use crate::tenancy::Land;
use crate::vault::{call, server};

/// Everything that is to be equal, as it is now.
pub(super) async fn of(land: &Land) -> Sight {
    let mut sight = Sight::default();
    add::<TenantTemplate>(land, &mut sight).await;
    add::<Tenant>(land, &mut sight).await;
    add::<Cluster>(land, &mut sight).await;
    add::<GitRepo>(land, &mut sight).await;
    add::<Secret>(land, &mut sight).await;
    add::<ServiceAccount>(land, &mut sight).await;
    add::<Role>(land, &mut sight).await;
    add::<RoleBinding>(land, &mut sight).await;
    form::vault(&mut sight, &secrets(&land.mount));
    if let Some(double) = land.site.double_or("what projects hold") {
        form::projects(&mut sight, &double.projects());
    }
    sight
}

async fn add<K>(land: &Land, sight: &mut Sight)
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Serialize
        + DeserializeOwned
        + std::fmt::Debug,
{
    let list = land.api::<K>().list(&ListParams::default()).await.unwrap();
    for object in list.items {
        let name = object.name_any();
        // Kubernetes' own, and the rights of our controllers.
        if name == "default" && K::kind(&()) == "ServiceAccount" || name.starts_with("evenkeel-operator") {
            continue;
        }
        let text = serde_json::to_string(&object).unwrap();
        let mut value: Value = serde_json::from_str(&text.replace(&land.namespace, form::NAMESPACE)).unwrap();
        value["kind"] = json!(K::kind(&()));
        value["apiVersion"] = json!(K::api_version(&()));
        form::object(sight, value);
    }
}

/// All secrets of an engine, by path: their keys, or that the newest version is deleted.
fn secrets(mount: &str) -> Value {
    let mut found = json!({});
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let Ok(list) = server().call(
            Method::GET,
            &format!("{mount}/metadata/{folder}?list=true"),
            &Value::Null,
        ) else {
            continue;
        };
        for name in list["data"]["keys"].as_array().into_iter().flatten() {
            let path = format!("{folder}{}", name.as_str().unwrap());
            if path.ends_with('/') {
                folders.push(path);
                continue;
            }
            let metadata = call(Method::GET, &format!("{mount}/metadata/{path}"), &Value::Null);
            let version = metadata["data"]["current_version"].to_string();
            let newest = &metadata["data"]["versions"][&version];
            found[&path] = if newest["deletion_time"] == "" && newest["destroyed"] == false {
                let data = crate::vault::shown(mount, &path);
                let keys: Vec<&String> = data["data"].as_object().unwrap().keys().collect();
                json!({ "keys": keys })
            } else {
                json!("deleted")
            };
        }
    }
    found
}
