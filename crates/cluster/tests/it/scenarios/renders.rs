//! What is kept at the target, and what is read there.

use evenkeel_cluster::{DataKind, Error};
use evenkeel_core::{ComponentRevision, Sensitive};
use serde_json::json;

use crate::component::Component;
use crate::documents::config_map;
use crate::env::Env;

pub(crate) async fn renders_are_kept(env: &Env) {
    let component = Component::new(env);
    let target = &component.target;
    let (one, two) = (ComponentRevision(1), ComponentRevision(2));
    assert!(target.load_render(one).await.unwrap().is_none());
    // Incompressible, so that it takes several Secrets.
    let mut state = 1_u64;
    let big: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .take(200_000)
    .flatten()
    .collect();
    target
        .store_render(one, &Sensitive::new(big.clone()), &component.attempt())
        .await
        .unwrap();
    let selector = format!("evenkeel.dev/render-of={}", target.parent_name());
    let list = format!("/api/v1/namespaces/evenkeel-system/secrets?labelSelector={selector}");
    assert_eq!(env.must(&list).await["items"].as_array().unwrap().len(), 3);
    assert_eq!(target.load_render(one).await.unwrap().unwrap().expose(), &big);
    let before = env.cluster.requests();
    target
        .store_render(one, &Sensitive::new(big.clone()), &component.attempt())
        .await
        .unwrap();
    assert_eq!(
        env.cluster.requests().since(&before).writes(),
        0,
        "what is kept is not written again"
    );

    target
        .store_render(two, &Sensitive::new(b"small".to_vec()), &component.attempt())
        .await
        .unwrap();
    assert_eq!(target.load_render(one).await.unwrap().unwrap().expose(), &big);
    assert_eq!(target.load_render(two).await.unwrap().unwrap().expose(), b"small");
    // A chunk that is lost makes the whole unusable, not wrong.
    env.remove(&format!(
        "/api/v1/namespaces/evenkeel-system/secrets/{}-render-2",
        target.parent_name()
    ))
    .await;
    assert!(target.load_render(one).await.unwrap().is_none());
    target
        .forget_other_renders(two, &component.attempt())
        .await
        .unwrap();
    assert_eq!(env.must(&list).await["items"].as_array().unwrap().len(), 1);

    component.run(&[config_map("a", "k", "1")]).await.unwrap();
    component.delete().await.unwrap();
    assert_eq!(
        env.must(&list).await["items"],
        json!([]),
        "they go with the component"
    );
}

pub(crate) async fn values_are_read(env: &Env) {
    let namespace = env.namespace("values").await;
    let collection = format!("/api/v1/namespaces/{namespace}");
    env.make(
        &format!("{collection}/secrets"),
        &json!({"metadata": {"name": "v"}, "stringData": {"values.yaml": "a: 1"}}),
    )
    .await;
    env.make(
        &format!("{collection}/configmaps"),
        &json!({"metadata": {"name": "v"}, "data": {"k": "b: 2"}, "binaryData": {"bin": "AAE="}}),
    )
    .await;
    let read = async |kind, name, key| env.cluster.read_data(kind, &namespace, name, key).await;
    let found = read(DataKind::Secret, "v", "values.yaml").await.unwrap().unwrap();
    assert_eq!(found.expose(), b"a: 1");
    assert_eq!(
        read(DataKind::ConfigMap, "v", "k")
            .await
            .unwrap()
            .unwrap()
            .expose(),
        b"b: 2"
    );
    assert_eq!(
        read(DataKind::ConfigMap, "v", "bin")
            .await
            .unwrap()
            .unwrap()
            .expose(),
        &[0, 1]
    );
    assert!(read(DataKind::Secret, "absent", "k").await.unwrap().is_none());
    let error = read(DataKind::Secret, "v", "absent").await.unwrap_err();
    assert!(matches!(error, Error::NoKey { .. }), "{error}");
}
