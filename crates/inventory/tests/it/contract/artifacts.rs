use evenkeel_core::{ComponentRevision, DeleteMode, Digest, Sensitive};
use evenkeel_inventory::{Error, RENDER_BYTES_MAX};

use crate::fixture::*;

fn bytes(text: &str) -> Sensitive<Vec<u8>> {
    Sensitive::new(text.as_bytes().to_vec())
}

pub(crate) async fn the_first_render_counts<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let id = fleet.cluster("c1", &["web"]).await;
    let (web, db) = ("web".parse().unwrap(), "db".parse().unwrap());
    let revision = ComponentRevision;
    assert!(store.render(&id, &web, revision(1)).await.unwrap().is_none());
    let kept = store
        .put_render(&id, &web, revision(1), bytes("password: one"))
        .await
        .unwrap();
    assert_eq!(kept.expose(), b"password: one");
    let kept = store
        .put_render(&id, &web, revision(1), bytes("password: two"))
        .await
        .unwrap();
    assert_eq!(kept.expose(), b"password: one", "every attempt applies the same");
    assert!(store.render(&id, &db, revision(1)).await.unwrap().is_none());
    store
        .put_render(&id, &web, revision(2), bytes("two"))
        .await
        .unwrap();
    store
        .put_render(&id, &db, revision(1), bytes("db"))
        .await
        .unwrap();
    assert!(store.render(&id, &web, revision(1)).await.unwrap().is_some());
    store
        .put_render(&id, &web, revision(3), bytes("three"))
        .await
        .unwrap();
    assert!(
        store.render(&id, &web, revision(1)).await.unwrap().is_none(),
        "two are kept"
    );
    assert_eq!(
        store
            .render(&id, &web, revision(2))
            .await
            .unwrap()
            .unwrap()
            .expose(),
        b"two"
    );
    assert_eq!(
        store
            .render(&id, &db, revision(1))
            .await
            .unwrap()
            .unwrap()
            .expose(),
        b"db"
    );

    let large = Sensitive::new(vec![b'x'; RENDER_BYTES_MAX + 1]);
    let error = store.put_render(&id, &web, revision(4), large).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    let large = Sensitive::new(vec![b'x'; RENDER_BYTES_MAX]);
    let kept = store.put_render(&id, &web, revision(4), large).await.unwrap();
    assert_eq!(store.render(&id, &web, revision(4)).await.unwrap().unwrap(), kept);
    let nobody = "nobody".parse().unwrap();
    let error = store
        .put_render(&nobody, &web, revision(1), bytes("x"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    store.request_deletion(&id, DeleteMode::Forget).await.unwrap();
    assert!(store.render(&id, &web, revision(4)).await.unwrap().is_none());
}

pub(crate) async fn revisions_follow_the_inputs<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let (a, b) = (
        fleet.cluster("a", &["web"]).await,
        fleet.cluster("b", &["web"]).await,
    );
    let (web, other) = ("web".parse().unwrap(), "other".parse().unwrap());
    let (one, two) = (Digest::of("1"), Digest::of("2"));
    for (cluster, component, inputs, expected) in [
        (&a, &web, &one, 1),
        (&a, &web, &one, 1),
        (&b, &web, &two, 1),
        (&a, &web, &two, 2),
        (&a, &other, &two, 1),
        (&a, &web, &two, 2),
        // Back to what was: a new revision, as a Helm rollback is.
        (&a, &web, &one, 3),
    ] {
        let revision = store.resolve_revision(cluster, component, inputs).await.unwrap();
        assert_eq!(revision, ComponentRevision(expected));
    }
    let components = store.components(&a).await.unwrap().items;
    assert_eq!(
        (components.len(), components[0].revision),
        (1, ComponentRevision(3))
    );
    let nobody = "nobody".parse().unwrap();
    assert!(matches!(
        store.resolve_revision(&nobody, &web, &one).await,
        Err(Error::NotFound { .. })
    ));
}
