//! Tokens of service accounts in Vault, where there are no Secrets with them (A24).

use evenkeel_operator::TenancySettings;
use evenkeel_operator::resources::{BootstrapToken, Cluster, ConditionStatus};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::ResourceExt as _;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;

use super::Land;
use super::land::assert_condition;

/// For how long a token is good unless it is said otherwise, and when it is replaced.
const DAYS: i64 = 30;
const RENEWED_AFTER: i64 = 20;

#[tokio::test]
async fn a_token_is_asked_for_kept_and_replaced_in_time() {
    let land = Land::without_token_secrets().await;
    land.tenant("t-one", json!({})).await;
    land.cluster("c-one", json!({})).await;
    land.settle().await;
    let status = land.get::<Cluster>("c-one").await.status.unwrap();
    assert_condition(&status.conditions, "VaultReady", ConditionStatus::True, "");
    assert!(land.api::<Secret>().get_opt("c-one").await.unwrap().is_none());
    let first = land.secret("t-one", "c-one").await.unwrap();
    assert_eq!(first.split('.').count(), 3);
    assert!(review(&land, &first).await);

    // It is kept for two thirds of its life, and the next pass is due to the moment.
    let passed = land.clusters.pass(&land.namespace, "c-one").await.unwrap();
    assert!(passed.due.is_some());
    land.clock
        .advance(SignedDuration::from_hours(24 * (RENEWED_AFTER - 1)));
    land.settle().await;
    assert_eq!(land.secret("t-one", "c-one").await.as_ref(), Some(&first));
    // An hour over: the clocks of the test and of the API server are not the same.
    land.clock.advance(SignedDuration::from_hours(25));
    land.clusters.pass(&land.namespace, "c-one").await.unwrap();
    let second = land.secret("t-one", "c-one").await.unwrap();
    assert_ne!(second, first);
    assert!(
        review(&land, &first).await,
        "the one before goes on until its end"
    );
    const { assert!(RENEWED_AFTER < DAYS) };
}

#[tokio::test]
async fn a_token_of_an_account_that_was_made_anew_is_replaced_at_once() {
    let land = Land::without_token_secrets().await;
    land.tenant("t-one", json!({})).await;
    land.cluster("c-one", json!({})).await;
    land.settle().await;
    let first = land.secret("t-one", "c-one").await.unwrap();
    land.api::<ServiceAccount>()
        .delete("c-one", &Default::default())
        .await
        .unwrap();
    land.settle().await;
    let second = land.secret("t-one", "c-one").await.unwrap();
    assert_ne!(second, first);
    assert!(review(&land, &second).await);
}

/// Compatibility: a Secret that is there is used, whatever the setting says.
#[tokio::test]
async fn a_secret_with_a_token_wins() {
    let land = Land::without_token_secrets().await;
    land.tenant("t-one", json!({})).await;
    land.cluster("c-one", json!({})).await;
    land.settle().await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": { "name": "c-one", "annotations": { "kubernetes.io/service-account.name": "c-one" } },
    });
    let params = PatchParams::apply("test");
    land.api::<Secret>()
        .patch("c-one", &params, &Patch::Apply(&secret))
        .await
        .unwrap();
    land.settle().await;
    let secret: Secret = land.get("c-one").await;
    let token = String::from_utf8(secret.data.unwrap()["token"].0.clone()).unwrap();
    assert_eq!(land.secret("t-one", "c-one").await, Some(token));
}

/// Whether the API server takes a token.
async fn review(land: &Land, token: &str) -> bool {
    use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
    let review = TokenReview {
        spec: TokenReviewSpec {
            token: token.to_owned(),
            ..TokenReviewSpec::default()
        },
        ..TokenReview::default()
    };
    let reviews: kube::Api<TokenReview> = kube::Api::all(land.client.clone());
    let seen = reviews.create(&Default::default(), &review).await.unwrap();
    seen.status.unwrap().authenticated == Some(true)
}

/// E10: what was seen in Vault counts until the Secret with the token changes, or for the interval.
#[tokio::test]
async fn what_was_seen_in_vault_is_not_read_again_while_nothing_changes() {
    let land = Land::remembering().await;
    land.tenant("t-one", json!({})).await;
    land.cluster("c-one", json!({})).await;
    land.settle().await;
    let asks = async || {
        let before = land.vault_proxy.requests();
        land.clusters.pass(&land.namespace, "c-one").await.unwrap();
        land.vault_proxy.requests() - before
    };
    assert_eq!(asks().await, 0);
    let data = json!({ "stringData": { "token": "another" } });
    land.api::<Secret>()
        .patch("c-one", &PatchParams::default(), &Patch::Merge(&data))
        .await
        .unwrap();
    assert!(asks().await > 0);
    assert_ne!(asks().await, 0, "what was written is looked at once");
    assert_eq!(asks().await, 0);
    land.clock.advance(SignedDuration::from_hours(3));
    assert!(asks().await > 0);
    assert_eq!(asks().await, 0);
}

/// B24: who may see a cluster need not be one who may install its agent.
#[tokio::test]
async fn a_bootstrap_token_may_be_in_a_secret_with_its_hash_in_the_status() {
    let land = Land::with(TenancySettings {
        bootstrap_secrets: true,
        ..TenancySettings::default()
    })
    .await;
    land.tenant("t-one", json!({})).await;
    land.cluster("c-one", json!({})).await;
    let foreign = Secret {
        metadata: ObjectMeta {
            name: Some(BootstrapToken::secret_name("c-two")),
            ..ObjectMeta::default()
        },
        ..Secret::default()
    };
    let secrets = land.api::<Secret>();
    secrets.create(&PostParams::default(), &foreign).await.unwrap();
    land.settle().await;
    let token = async || {
        let secret: Secret = land.get("c-one-bootstrap-token").await;
        assert_eq!(secret.owner_references()[0].name, "c-one");
        String::from_utf8(secret.data.unwrap()[BootstrapToken::KEY].0.clone()).unwrap()
    };
    let shown = async || {
        let status = land.get::<Cluster>("c-one").await.status.unwrap();
        status.bootstrap_token.unwrap()
    };
    let first = token().await;
    let status = shown().await;
    assert!(status.token.is_none() && status.token_valid == Some(true));
    assert_eq!(status.token_hash, Some(BootstrapToken::hash(&first)));
    let until = status.valid_until;

    // One that was made before moves, and is as good as it was.
    let fields = json!({ "bootstrapToken": { "token": "b2xk", "tokenHash": null } });
    let clusters = land.api::<Cluster>();
    let params = PatchParams::default();
    clusters
        .patch_status("c-one", &params, &Patch::Merge(&json!({ "status": fields })))
        .await
        .unwrap();
    land.settle().await;
    let status = shown().await;
    assert!(status.token.is_none() && status.token_valid == Some(true));
    assert_eq!((token().await.as_str(), status.valid_until), ("b2xk", until));
    assert_eq!(status.token_hash, Some(BootstrapToken::hash("b2xk")));

    // Who wants a new one removes it from the status, as ever.
    clusters
        .patch_status(
            "c-one",
            &params,
            &Patch::Merge(&json!({ "status": { "bootstrapToken": null } })),
        )
        .await
        .unwrap();
    land.settle().await;
    let second = token().await;
    assert!(second != first && second != "b2xk");
    assert_eq!(shown().await.token_hash, Some(BootstrapToken::hash(&second)));

    // A Secret of somebody else is left as it is, and no token is made that nobody could read.
    land.cluster("c-two", json!({})).await;
    land.clusters.pass(&land.namespace, "c-two").await.unwrap();
    land.clusters.pass(&land.namespace, "c-two").await.unwrap();
    let status = land.get::<Cluster>("c-two").await.status.unwrap();
    let says = "belongs to another object";
    assert_condition(
        &status.conditions,
        "BootstrapTokenReady",
        ConditionStatus::False,
        says,
    );
    assert!(status.bootstrap_token.is_none());
    assert!(land.get::<Secret>("c-two-bootstrap-token").await.data.is_none());
}
