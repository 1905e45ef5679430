//! Settings in three layers.

use evenkeel_inventory::{Error, Setting, SettingLayer, SettingScope, Signal};

use crate::fixture::*;

fn text(text: &str) -> Option<Setting> {
    Some(Setting::Text(text.to_owned()))
}

pub(crate) async fn settings_have_layers<B: Backend>() {
    const KEY: &str = "check-interval";
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let mut grouped = spec("a", &[]);
    grouped.group = Some("default".to_owned());
    let (a, b) = (fleet.put(grouped).await.id, fleet.cluster("b", &[]).await);
    let group = SettingScope::Group("default".to_owned());
    let own = SettingScope::Cluster(a.clone());
    assert_eq!(store.effective_setting(&a, KEY).await.unwrap(), None);
    store
        .put_setting(&SettingScope::Default, KEY, text("90s"))
        .await
        .unwrap();
    store
        .put_setting(&SettingScope::Default, "failures-max", Some(Setting::Integer(7)))
        .await
        .unwrap();
    // Kept as it is usually written.
    assert_eq!(store.effective_setting(&a, KEY).await.unwrap(), text("1m30s"));
    store.put_setting(&group, KEY, text("1h")).await.unwrap();
    assert_eq!(store.effective_setting(&a, KEY).await.unwrap(), text("1h"));
    assert_eq!(store.effective_setting(&b, KEY).await.unwrap(), text("1m30s"));
    store.put_setting(&own, KEY, text("2h")).await.unwrap();
    assert_eq!(store.effective_setting(&a, KEY).await.unwrap(), text("2h"));
    assert_eq!(store.setting(&group, KEY).await.unwrap(), text("1h"));
    let layers = store.setting_layers().await.unwrap();
    let shown = |cluster, group| {
        let (value, layer) = layers.effective(cluster, group, KEY).unwrap();
        (Some(value.clone()), layer)
    };
    assert_eq!(
        shown(Some(&a), Some("default")),
        (text("2h"), SettingLayer::Cluster)
    );
    assert_eq!(
        shown(Some(&b), Some("default")),
        (text("1h"), SettingLayer::Group)
    );
    assert_eq!(
        shown(Some(&b), Some("other")),
        (text("1m30s"), SettingLayer::Default)
    );
    assert!(layers.has_groups() && layers.is_set_for(None, None));
    assert!(layers.is_set_for(Some(&a), None) && !layers.is_set_for(Some(&b), Some("other")));
    store.put_setting(&own, KEY, None).await.unwrap();
    assert_eq!(store.effective_setting(&a, KEY).await.unwrap(), text("1h"));
    assert_eq!(
        store.effective_setting(&a, "failures-max").await.unwrap(),
        Some(Setting::Integer(7))
    );
    let nobody = "nobody".parse().unwrap();
    assert!(matches!(
        store.effective_setting(&nobody, KEY).await,
        Err(Error::NotFound { .. })
    ));
    // A cluster's settings go with it.
    store.put_setting(&own, KEY, text("3h")).await.unwrap();
    store
        .request_deletion(&a, evenkeel_core::DeleteMode::Forget)
        .await
        .unwrap();
    assert_eq!(store.setting(&own, KEY).await.unwrap(), None);
    let late = store.put_setting(&own, KEY, text("3h")).await;
    assert!(matches!(late, Err(Error::NotFound { .. })), "{late:?}");
}

pub(crate) async fn what_is_not_valid_is_refused<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let store = &fleet.store;
    let group = SettingScope::Group("g".to_owned());
    for (scope, key, value) in [
        (&SettingScope::Default, "no-such-setting", text("1h")),
        (&SettingScope::Default, "check-interval", text("soon")),
        (&SettingScope::Default, "check-interval", text("300d")),
        (&SettingScope::Default, "failures-max", Some(Setting::Integer(0))),
        (&SettingScope::Default, "gone-when-host-unknown", text("perhaps")),
        (&group, "retention-runs", Some(Setting::Integer(5))),
    ] {
        let refused = store.put_setting(scope, key, value.clone()).await.unwrap_err();
        assert!(
            matches!(&refused, Error::Setting { key: named, .. } if named == key),
            "{refused}"
        );
        assert_eq!(store.setting(scope, key).await.unwrap(), None);
    }
    assert!(!store.setting_layers().await.unwrap().is_set_for(None, Some("g")));
}

pub(crate) async fn whoever_uses_settings_is_told<B: Backend>() {
    let fleet = Fleet::<B>::new().await;
    let mut told = fleet.store.signals().subscribe(Signal::SettingChanged);
    let scope = SettingScope::Default;
    fleet
        .store
        .put_setting(&scope, "retry-first", text("5s"))
        .await
        .unwrap();
    let heard = tokio::time::timeout(std::time::Duration::from_secs(30), told.changed());
    assert!(heard.await.unwrap());
}
