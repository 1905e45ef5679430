//! The process: who of several works, what it shows, how it ends.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_operator::{
    GitRepoSettings, LeaderSettings, Operator, OperatorSettings, Scope, TenancySettings,
};
use evenkeel_telemetry::{OnCancel, OnError, SystemClock, Tasks};
use evenkeel_testkit::eventually;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use kube::{Client, ResourceExt as _};

use crate::admission::{apply, server, succeed};
use crate::rights::operator_of;

const LEASE: &str = "9b76ddd4.syn.tools";

struct Process {
    tasks: Tasks,
    operator: Option<Operator>,
    addresses: evenkeel_operator::Addresses,
}

impl Process {
    async fn new(namespace: &str, client: &Client, identity: &str) -> Self {
        let tasks = Tasks::new();
        let settings = OperatorSettings {
            observe_only: false,
            scope: Scope::Namespace(namespace.to_owned()),
            tenancy: TenancySettings::default(),
            repositories: GitRepoSettings::default(),
            vault: None,
            leader: Some(LeaderSettings {
                namespace: namespace.to_owned(),
                identity: identity.to_owned(),
            }),
            metrics: Some(([127, 0, 0, 1], 0).into()),
            health: Some(([127, 0, 0, 1], 0).into()),
        };
        let client = client.clone();
        let operator = Operator::start(settings, client, Arc::new(SystemClock), tasks.clone())
            .await
            .unwrap();
        Self {
            tasks,
            addresses: operator.addresses(),
            operator: Some(operator),
        }
    }

    fn run(&mut self) {
        let operator = self.operator.take().unwrap();
        drop(
            self.tasks
                .spawn("operator", OnError::Shutdown, OnCancel::Wait, |token| {
                    operator.run(token)
                }),
        );
    }

    async fn stop(&self) {
        let ended = self.tasks.shutdown(Duration::from_secs(20)).await;
        assert!(ended.aborted.is_empty(), "{ended:?}");
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "calls of a test, to a server on loopback"
)]
async fn get(address: Option<std::net::SocketAddr>, path: &str) -> (u16, String) {
    let url = format!("http://{}{path}", address.unwrap());
    let answer = reqwest::Client::new().get(url).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

async fn holder(namespace: &str) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(server().client().await, namespace);
    let lease = leases.get_opt(LEASE).await.unwrap()?;
    lease.spec?.holder_identity.filter(|holder| !holder.is_empty())
}

/// The Lease is the predecessor's, so that old and new never run together; who ends gives it back.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_works_and_the_other_follows_when_it_ends() {
    let namespace = server().namespace("process").await;
    let client = operator_of(&namespace).await;
    let mut first = Process::new(&namespace, &client, "first").await;
    assert_eq!(
        get(first.addresses.health, "/healthz").await,
        (200, "ok".to_owned())
    );
    assert_eq!(get(first.addresses.health, "/readyz").await.0, 503);
    first.run();
    eventually("the first leads", async || {
        let holder = holder(&namespace).await;
        if holder.as_deref() == Some("first") {
            Ok(())
        } else {
            Err(holder)
        }
    })
    .await;
    assert_eq!(get(first.addresses.health, "/readyz").await.0, 200);
    let mut second = Process::new(&namespace, &client, "second").await;
    second.run();
    // It works, and shows what it does.
    let tenant = "{apiVersion: syn.tools/v1alpha1, kind: Tenant, metadata: {name: t-one}}";
    succeed(&apply(&namespace, tenant));
    let tenants: Api<evenkeel_operator::resources::Tenant> =
        Api::namespaced(server().client().await, &namespace);
    eventually("the tenant is looked after", async || {
        let tenant = tenants.get("t-one").await.unwrap();
        let conditions = tenant.status.clone().unwrap_or_default().conditions;
        let is_ready = conditions.iter().any(|condition| condition.kind == "Ready");
        if is_ready && !tenant.finalizers().is_empty() {
            Ok(())
        } else {
            Err(conditions)
        }
    })
    .await;
    let (status, text) = get(first.addresses.metrics, "/metrics").await;
    assert_eq!(status, 200);
    assert!(
        text.contains("evenkeel_steps_total{pipeline=\"tenant\",step=\"role\""),
        "{text}"
    );
    // Its objects too, by the predecessor's names, whoever works.
    let cluster = "{apiVersion: syn.tools/v1alpha1, kind: Cluster, metadata: {name: c-one}, \
        spec: {displayName: One, tenantRef: {name: t-one}, facts: {cloud: exo, cluster: x}}}";
    succeed(&apply(&namespace, cluster));
    eventually("tenant and cluster are shown", async || {
        let (_, text) = get(first.addresses.metrics, "/metrics").await;
        let is_shown = [
            "syn_lieutenant_tenant_info{tenant=\"t-one\",display_name=\"\"} 1\n",
            "syn_lieutenant_cluster_info{cluster=\"c-one\",tenant=\"t-one\",display_name=\"One\"} 1\n",
            "syn_lieutenant_cluster_facts{cluster=\"c-one\",tenant=\"t-one\",cloud=\"exo\",orig_cluster=\"x\"} 1\n",
        ]
        .iter()
        .all(|line| text.contains(line));
        if is_shown { Ok(()) } else { Err(text) }
    })
    .await;
    assert_eq!(holder(&namespace).await.as_deref(), Some("first"));
    let (_, text) = get(second.addresses.metrics, "/metrics").await;
    assert!(!text.contains("pipeline=\"tenant\""), "{text}");

    first.stop().await;
    eventually("the second follows", async || {
        let holder = holder(&namespace).await;
        if holder.as_deref() == Some("second") {
            Ok(())
        } else {
            Err(holder)
        }
    })
    .await;
    second.stop().await;
    assert_eq!(holder(&namespace).await, None);
}
