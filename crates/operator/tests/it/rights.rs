//! The controllers of the tests have the rights of `deploy/operator/role.yaml`, and no others.

use std::path::Path;
use std::sync::OnceLock;

use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};
use kube::api::{Api, ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::admission::{server, succeed};

const ROLE: &str = "evenkeel-operator";

/// Lets the operator that looks after `home` into a namespace.
pub(crate) async fn admit(home: &str, namespace: &str) {
    static APPLIED: OnceLock<()> = OnceLock::new();
    APPLIED.get_or_init(|| {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/operator/role.yaml");
        let mut apply = server().kubectl();
        apply.args(["apply", "--server-side", "-f"]).arg(file);
        succeed(&apply.output().unwrap());
    });
    let binding = RoleBinding {
        metadata: ObjectMeta {
            name: Some(format!("{ROLE}-of-{home}")),
            ..ObjectMeta::default()
        },
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "ClusterRole".to_owned(),
            name: ROLE.to_owned(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: ROLE.to_owned(),
            namespace: Some(home.to_owned()),
            ..Subject::default()
        }]),
    };
    let bindings: Api<RoleBinding> = Api::namespaced(server().client().await, namespace);
    bindings.create(&PostParams::default(), &binding).await.unwrap();
}

/// A client with the rights of the operator that looks after `namespace`.
pub(crate) async fn operator_of(namespace: &str) -> Client {
    admit(namespace, namespace).await;
    let kubeconfig = Kubeconfig::from_yaml(server().kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    config.auth_info.impersonate = Some(format!("system:serviceaccount:{namespace}:{ROLE}"));
    config.default_retry = false;
    Client::try_from(config).unwrap()
}
