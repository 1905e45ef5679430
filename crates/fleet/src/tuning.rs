//! The settings that count: those of the inventory, in three layers, over what the process was started with.
//!
//! They are kept in memory, read where a value is used, and read again when the inventory says that one changed.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use evenkeel_core::{ClusterId, HumanDuration, LossLimit};
use evenkeel_inventory::{Cluster, Error, RetentionPolicy, SETTINGS, Setting, SettingLayers, Signal, Store};
use evenkeel_telemetry::CancellationToken;

use crate::Settings;
use crate::fleet::Inner;
use crate::requests::warn_of;

/// The longest without reading them again, should a signal ever be lost.
const BACKSTOP: Duration = Duration::from_secs(60);
/// How often it is looked for what can go unless a setting says otherwise.
const CLEAN_EVERY: Duration = Duration::from_secs(60 * 60);

/// What counts for whom.
pub(crate) struct Tuning {
    base: Arc<Settings>,
    present: RwLock<Arc<Present>>,
}

/// The settings as they were read last.
struct Present {
    layers: SettingLayers,
    everyone: Arc<Settings>,
}

/// How and how often the past is forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cleaning {
    pub(crate) every: Duration,
    pub(crate) policy: RetentionPolicy,
}

impl Tuning {
    /// What counts as long as nothing was read.
    pub(crate) fn new(base: Settings) -> Self {
        let base = Arc::new(base);
        let present = Present {
            layers: SettingLayers::default(),
            everyone: Arc::clone(&base),
        };
        Self {
            base,
            present: RwLock::new(Arc::new(present)),
        }
    }

    /// Reads the inventory's settings.
    ///
    /// # Errors
    /// What the inventory fails with; then everything stays as it was.
    pub(crate) async fn read(&self, store: &dyn Store) -> Result<(), Error> {
        let layers = store.setting_layers().await?;
        warn_of(&layers.failed);
        let everyone = match layers.is_set_for(None, None) {
            true => Arc::new(self.over_base(&layers, None, None)),
            false => Arc::clone(&self.base),
        };
        let present = Arc::new(Present { layers, everyone });
        *self.present.write().unwrap_or_else(PoisonError::into_inner) = present;
        Ok(())
    }

    fn present(&self) -> Arc<Present> {
        Arc::clone(&self.present.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What counts for a cluster of a group.
    pub(crate) fn of(&self, cluster: &ClusterId, group: Option<&str>) -> Arc<Settings> {
        let present = self.present();
        match present.layers.is_set_for(Some(cluster), group) {
            true => Arc::new(self.over_base(&present.layers, Some(cluster), group)),
            false => Arc::clone(&present.everyone),
        }
    }

    /// The same, where the cluster's group is not known: it is asked for only when groups have settings.
    ///
    /// # Errors
    /// What the inventory answers.
    pub(crate) async fn of_id(&self, store: &dyn Store, cluster: &ClusterId) -> Result<Arc<Settings>, Error> {
        if !self.present().layers.has_groups() {
            return Ok(self.of(cluster, None));
        }
        let cluster = store.cluster(cluster).await?;
        Ok(self.of(&cluster.id, cluster.group.as_deref()))
    }

    fn over_base(
        &self,
        layers: &SettingLayers,
        cluster: Option<&ClusterId>,
        group: Option<&str>,
    ) -> Settings {
        let mut settings = Settings::clone(&self.base);
        for definition in SETTINGS {
            if let Some((value, _)) = layers.effective(cluster, group, definition.key) {
                set(&mut settings, definition.key, value);
            }
        }
        settings
    }

    /// What counts for everyone.
    pub(crate) fn everyone(&self) -> Arc<Settings> {
        Arc::clone(&self.present().everyone)
    }

    /// How the past is forgotten.
    pub(crate) fn cleaning(&self) -> Cleaning {
        let present = self.present();
        let value = |key: &str| present.layers.effective(None, None, key).map(|(value, _)| value);
        let span = |key: &str, otherwise: Duration| value(key).and_then(duration).unwrap_or(otherwise);
        let count = |key: &str, otherwise: u32| value(key).and_then(number).unwrap_or(otherwise);
        let usual = RetentionPolicy::default();
        Cleaning {
            every: span("retention-interval", CLEAN_EVERY),
            policy: RetentionPolicy {
                runs: count("retention-runs", usual.runs),
                run_age: span("retention-run-age", usual.run_age),
                failed_run_age: span("retention-failed-run-age", usual.failed_run_age),
                history_age: span("retention-history-age", usual.history_age),
                configurations: count("retention-configurations", usual.configurations),
                deleted_cluster_age: span("retention-deleted-age", usual.deleted_cluster_age),
                audit_age: span("retention-audit-age", usual.audit_age),
            },
        }
    }
}

/// A setting's value where this process uses it.
fn set(settings: &mut Settings, key: &str, value: &Setting) {
    let time = |place: &mut Duration| *place = duration(value).unwrap_or(*place);
    let count = |place: &mut u32| *place = number(value).unwrap_or(*place);
    let least = |limit: &mut LossLimit| {
        let least = number(value).and_then(|least| usize::try_from(least).ok());
        limit.least = least.unwrap_or(limit.least);
    };
    let percent = |limit: &mut LossLimit| {
        let percent = number(value).and_then(|percent| u8::try_from(percent).ok());
        limit.percent = percent.unwrap_or(limit.percent);
    };
    match key {
        "check-interval" => time(&mut settings.check_interval),
        "check-timeout" => time(&mut settings.check_timeout),
        "consent-within" => time(&mut settings.consent_within),
        "deadline" => time(&mut settings.deadline),
        "deletions-least" => least(&mut settings.object_losses),
        "sync-grace" => time(&mut settings.sync_grace),
        "sync-interval" => time(&mut settings.sync_interval),
        "sync-losses-least" => least(&mut settings.sync_losses),
        "sync-losses-percent" => percent(&mut settings.sync_losses),
        "sync-repairs-max" => count(&mut settings.sync_repairs_max),
        "deletions-percent" => percent(&mut settings.object_losses),
        "removals-least" => least(&mut settings.component_losses),
        "removals-percent" => percent(&mut settings.component_losses),
        "ready-timeout" => time(&mut settings.ready_timeout),
        "retry-first" => time(&mut settings.retry_first),
        "retry-longest" => time(&mut settings.retry_longest),
        "failures-max" => count(&mut settings.failures_max),
        "delete-failures-max" => count(&mut settings.delete_failures_max),
        "prerequisites" => {
            if let Setting::Text(text) = value
                && let Ok(prerequisites) = text.parse()
            {
                settings.prerequisites = prerequisites;
            }
        }
        "sync-repair" => {
            if let Setting::Boolean(value) = value {
                settings.sync_repair = *value;
            }
        }
        "gone-when-host-unknown" => {
            if let Setting::Boolean(value) = value {
                settings.gone_when_host_unknown = *value;
            }
        }
        "kubeconfig-namespace" => {
            if let Setting::Text(value) = value {
                settings.kubeconfig_namespace.clone_from(value);
            }
        }
        // What is not about clusters is read where it is used.
        _ => {}
    }
}

fn duration(value: &Setting) -> Option<Duration> {
    match value {
        Setting::Text(text) => text.parse().ok().map(|time: HumanDuration| time.0),
        _ => None,
    }
}

fn number(value: &Setting) -> Option<u32> {
    match value {
        Setting::Integer(number) => u32::try_from(*number).ok(),
        _ => None,
    }
}

/// Reads the settings whenever one was changed.
///
/// # Errors
/// What the inventory fails with; the service is started again.
pub(crate) async fn serve(inner: Arc<Inner>, stop: CancellationToken) -> Result<(), Error> {
    // Subscribed before the first reading, so that no change falls between the two.
    let mut changed = inner.store.signals().subscribe(Signal::SettingChanged);
    loop {
        inner.tuning.read(&*inner.store).await?;
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            more = changed.changed() => if !more { return Ok(()) },
            () = tokio::time::sleep(BACKSTOP) => {}
        }
    }
}

impl Inner {
    /// The settings that count for a cluster.
    pub(crate) fn settings_of(&self, cluster: &Cluster) -> Arc<Settings> {
        self.tuning.of(&cluster.id, cluster.group.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::ManualClock;
    use evenkeel_inventory::{Clusters as _, OpenOptions, SettingScope, Settings as _, SqlStore};

    use super::*;

    #[test]
    fn every_setting_is_used() {
        let layers_of = |definition: &evenkeel_inventory::SettingDefinition| {
            use evenkeel_inventory::SettingKind::{Boolean, Duration, Integer, Text};
            match definition.kind {
                Boolean => Setting::Boolean(true),
                Integer { max, .. } => Setting::Integer(max),
                Duration { max, .. } => Setting::Text(HumanDuration(max).to_string()),
                Text { .. } => Setting::Text(String::new()),
            }
        };
        for definition in SETTINGS {
            let value = layers_of(definition);
            let mut settings = Settings::default();
            set(&mut settings, definition.key, &value);
            let about_cleaning = definition.key.starts_with("retention-");
            assert!(
                settings != Settings::default() || about_cleaning,
                "{} is used by nobody",
                definition.key
            );
        }
    }

    #[tokio::test]
    async fn the_narrower_layer_counts() {
        let clock = Arc::new(ManualClock::new(jiff::Timestamp::UNIX_EPOCH));
        let store = SqlStore::open(OpenOptions::temporary(), clock)
            .await
            .expect("an inventory");
        let spec = |name: &str, group: &str| {
            serde_json::from_value(serde_json::json!({"name": name, "group": group, "components": []}))
                .expect("a specification")
        };
        let mut ids = Vec::new();
        for (name, group) in [("a", "g"), ("b", "g"), ("c", "other")] {
            let put = evenkeel_inventory::PutCluster::new(spec(name, group));
            ids.push(store.put_cluster(put).await.expect("registered").id);
        }
        let base = Settings {
            failures_max: 9,
            ..Settings::default()
        };
        let tuning = Tuning::new(base.clone());
        tuning.read(&store).await.expect("read");
        assert!(
            Arc::ptr_eq(&tuning.of(&ids[0], Some("g")), &tuning.base),
            "nothing is copied"
        );
        let usual = tuning.cleaning();
        assert_eq!(usual.policy, RetentionPolicy::default());
        for (scope, key, value) in [
            (SettingScope::Default, "check-interval", "7m"),
            (SettingScope::Default, "retention-runs", "12"),
            (SettingScope::Default, "retention-run-age", "9d"),
            (SettingScope::Group("g".to_owned()), "check-interval", "8m"),
            (SettingScope::Cluster(ids[0].clone()), "check-interval", "9m"),
        ] {
            let value = Some(Setting::Text(value.to_owned()));
            store.put_setting(&scope, key, value).await.expect("set");
        }
        tuning.read(&store).await.expect("read");
        let mut minutes = Vec::new();
        for id in &ids {
            let settings = tuning.of_id(&store, id).await.expect("a cluster");
            assert_eq!(settings.failures_max, 9);
            minutes.push(settings.check_interval.as_secs() / 60);
        }
        assert_eq!(minutes, [9, 8, 7]);
        let cleaning = tuning.cleaning();
        assert_eq!(cleaning.policy.runs, 12);
        assert_eq!(cleaning.policy.run_age, Duration::from_secs(9 * 24 * 60 * 60));
        assert_eq!(cleaning.policy.configurations, usual.policy.configurations);
    }

    #[test]
    fn what_may_be_lost_is_a_setting() {
        let mut settings = Settings::default();
        for (key, value) in [
            ("deletions-percent", Setting::Integer(50)),
            ("deletions-least", Setting::Integer(7)),
            ("removals-percent", Setting::Integer(0)),
            ("removals-least", Setting::Integer(1)),
            ("consent-within", Setting::Text("2h".to_owned())),
        ] {
            set(&mut settings, key, &value);
        }
        let limit = |percent, least| LossLimit { percent, least };
        assert_eq!(settings.object_losses, limit(50, 7));
        assert_eq!(settings.component_losses, limit(0, 1));
        assert_eq!(settings.consent_within, Duration::from_secs(2 * 60 * 60));
        assert!(settings.check().is_ok());
    }
}
