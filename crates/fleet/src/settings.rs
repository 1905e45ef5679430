//! What a mothership can be told, with its defaults; checked before it starts.

use std::time::Duration;

use evenkeel_cluster::WatchOptions;
use evenkeel_component::{Declarations, KustomizeOptions, RenderLimits};
use evenkeel_core::{HumanDuration, LossLimit, Namespace};
use evenkeel_inventory::{ClaimLimits, Role};

use crate::{BrokerOptions, Prerequisites};

/// The most clusters that can be watched: each keeps a connection, of which a process has 2,000 at most, and others need
/// some, too.
const WATCHED_CLUSTERS_MAX: usize = 1_800;

/// Where kubeconfigs lie unless somebody says otherwise: where Evenkeel itself is installed.
const KUBECONFIG_NAMESPACE: &str = "evenkeel-system";

/// How many clusters the broker may stop listing before nothing is forgotten: a tenth, and always fewer than 5.
const SYNC_LOSSES: LossLimit = LossLimit {
    percent: 10,
    least: 5,
};

/// A setting that would not work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("setting {name} is not valid: {problem}")]
pub struct SettingError {
    /// The setting.
    pub name: &'static str,
    /// What is wrong, and what was expected.
    pub problem: String,
}

/// The settings of one mothership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The fleet's name: written to every target, so that two fleets never work on the same objects.
    pub fleet_name: String,
    /// This process, for people; correctness rests on fences.
    pub worker: String,
    /// What this process does.
    pub role: Role,
    /// How often an unchanged cluster is looked at.
    pub check_interval: Duration,
    /// How many clusters this process watches live, each over one connection of its own; 0 for none. The others are looked
    /// at by interval.
    pub watched_clusters: usize,
    /// How many watches it has on all of them together: one per kind of object, and one per cluster for its records.
    pub watches: usize,
    /// Of the looks by interval at a cluster for which its watches vouch, each so manieth asks the cluster all the same.
    pub full_check_every: u32,
    /// How one cluster is watched.
    pub watch_options: WatchOptions,
    /// How long what the watches of a cluster see is put down to the reconciliation that runs, unless the look after that
    /// shows otherwise sooner.
    pub drift_patience: Duration,
    /// How many clusters are looked at, at the same time.
    pub parallel_checks: usize,
    /// How long one look may take.
    pub check_timeout: Duration,
    /// How many operations this process works on, at the same time.
    pub slots: usize,
    /// How long a lease lasts.
    pub lease: Duration,
    /// How often leases are renewed.
    pub heartbeat: Duration,
    /// How long one write to a target may take; must end within what is left of a lease after a heartbeat.
    pub write_timeout: Duration,
    /// How long a component's objects may take to become ready unless it says otherwise.
    pub ready_timeout: Duration,
    /// The first pause between the tries of an operation or a cluster; it doubles with every failure.
    pub retry_first: Duration,
    /// The longest pause between tries.
    pub retry_longest: Duration,
    /// How long one reconciliation may take with all its tries.
    pub deadline: Duration,
    /// How long a run may go on before a newer version takes its place, once five in a row were overtaken so; twice as
    /// long after each further one.
    pub supersede_patience: Duration,
    /// How many operations may run at the same time in the whole installation, of one tenant, of one component.
    pub limits: ClaimLimits,
    /// On how many clusters a component version must fail before the others do not get it.
    pub breaker_failures: usize,
    /// And on more than how many per cent of those that got it.
    pub breaker_percent: u8,
    /// Failed reconciliations of one configuration version before the cluster is failed.
    pub failures_max: u32,
    /// Failed deletions before the cluster is delete_failed.
    pub delete_failures_max: u32,
    /// Whether a cluster that is being deleted counts as gone when the name of its API server does not exist.
    pub gone_when_host_unknown: bool,
    /// The namespace of the mothership's own cluster in which kubeconfigs lie whose Secret names none; a DNS label.
    pub kubeconfig_namespace: String,
    /// How many objects of one component are applied at the same time.
    pub parallel_objects: usize,
    /// What builds kustomizations; without, components made from them fail and say what is missing.
    pub kustomize: Option<KustomizeOptions>,
    /// Bounds on the render of one component.
    pub render_limits: RenderLimits,
    /// How many objects of a component may be deleted by one operation without consent.
    pub object_losses: LossLimit,
    /// How many components of a cluster a change may remove without consent.
    pub component_losses: LossLimit,
    /// How long an operation waits for consent.
    pub consent_within: Duration,
    /// Which components go before all others where they are listed.
    pub prerequisites: Prerequisites,
    /// What component reconcilers declare that their components depend on.
    pub declarations: Declarations,
    /// The environment broker whose list the inventory is compared with, if there is one.
    pub broker: Option<BrokerOptions>,
    /// How often it is.
    pub sync_interval: Duration,
    /// Whether what is found is repaired, too.
    pub sync_repair: bool,
    /// How many clusters one comparison repairs.
    pub sync_repairs_max: u32,
    /// How old a cluster must be to be forgotten: its runtime may not be in the list at once.
    pub sync_grace: Duration,
    /// How many of the broker's clusters one comparison may forget.
    pub sync_losses: LossLimit,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            fleet_name: "evenkeel".to_owned(),
            worker: format!("mothership-{}", std::process::id()),
            role: Role::All,
            check_interval: Duration::from_secs(5 * 60),
            watched_clusters: 1_000,
            watches: 20_000,
            full_check_every: 12,
            watch_options: WatchOptions::default(),
            drift_patience: Duration::from_secs(2),
            parallel_checks: 32,
            check_timeout: Duration::from_secs(60),
            slots: 16,
            lease: Duration::from_secs(15),
            heartbeat: Duration::from_secs(5),
            write_timeout: Duration::from_secs(9),
            ready_timeout: Duration::from_secs(5 * 60),
            retry_first: Duration::from_secs(2),
            retry_longest: Duration::from_secs(5 * 60),
            deadline: Duration::from_secs(60 * 60),
            supersede_patience: Duration::from_secs(10),
            limits: ClaimLimits::default(),
            breaker_failures: 3,
            breaker_percent: 15,
            failures_max: 150,
            delete_failures_max: 15,
            gone_when_host_unknown: false,
            kubeconfig_namespace: KUBECONFIG_NAMESPACE.to_owned(),
            parallel_objects: 4,
            kustomize: None,
            render_limits: RenderLimits::default(),
            object_losses: LossLimit::OBJECTS,
            component_losses: LossLimit::COMPONENTS,
            consent_within: Duration::from_secs(24 * 60 * 60),
            prerequisites: Prerequisites::default(),
            declarations: Declarations::default(),
            broker: None,
            sync_interval: Duration::from_secs(24 * 60 * 60),
            sync_repair: false,
            sync_repairs_max: 100,
            sync_grace: Duration::from_secs(60 * 60),
            sync_losses: SYNC_LOSSES,
        }
    }
}

impl Settings {
    /// Refuses what would not work together.
    ///
    /// # Errors
    /// [`SettingError`] naming the setting and the rule.
    pub fn check(&self) -> Result<(), SettingError> {
        let wrong = |name, problem: String| Err(SettingError { name, problem });
        let left = self.lease.saturating_sub(self.heartbeat);
        if self.write_timeout >= left {
            return wrong(
                "write-timeout",
                format!(
                    "{} must be shorter than lease ({}) less heartbeat ({}), so that a write ends within its lease",
                    HumanDuration(self.write_timeout),
                    HumanDuration(self.lease),
                    HumanDuration(self.heartbeat)
                ),
            );
        }
        for (name, value) in [
            ("check-interval", self.check_interval),
            ("check-timeout", self.check_timeout),
            ("heartbeat", self.heartbeat),
            ("retry-first", self.retry_first),
            ("ready-timeout", self.ready_timeout),
            ("deadline", self.deadline),
            ("consent-within", self.consent_within),
            ("drift-patience", self.drift_patience),
            ("supersede-patience", self.supersede_patience),
            ("sync-interval", self.sync_interval),
        ] {
            if value.is_zero() {
                return wrong(name, "expected more than 0s".to_owned());
            }
        }
        if self.full_check_every == 0 {
            return wrong("full-check-every", "expected at least 1".to_owned());
        }
        if self.watched_clusters > WATCHED_CLUSTERS_MAX {
            return wrong(
                "watched-clusters",
                format!("expected at most {WATCHED_CLUSTERS_MAX}: each keeps a connection open"),
            );
        }
        for (name, value) in [
            ("slots", self.slots),
            ("parallel-checks", self.parallel_checks),
            ("parallel-objects", self.parallel_objects),
            ("breaker-failures", self.breaker_failures),
        ] {
            if value == 0 {
                return wrong(name, "expected at least 1".to_owned());
            }
        }
        if self.breaker_percent > 100 {
            return wrong(
                "breaker-percent",
                format!("{} %: expected at most 100", self.breaker_percent),
            );
        }
        if let Some(broker) = &self.broker {
            broker.check().or_else(|problem| wrong("broker-url", problem))?;
        }
        for (name, limit) in [
            ("operations-max", self.limits.total),
            ("operations-per-tenant", self.limits.per_tenant),
            ("operations-per-component", self.limits.per_component),
        ] {
            if limit == Some(0) {
                return wrong(name, "expected at least 1; leave it out for no limit".to_owned());
            }
        }
        for (name, limit) in [
            ("object-losses", self.object_losses),
            ("component-losses", self.component_losses),
            ("sync-losses", self.sync_losses),
        ] {
            if limit.percent > 100 {
                return wrong(name, format!("{} %: expected at most 100", limit.percent));
            }
        }
        for (name, value) in [
            ("fleet-name", &self.fleet_name),
            ("kubeconfig-namespace", &self.kubeconfig_namespace),
        ] {
            if Namespace::new(value.as_str()).is_err() {
                return wrong(name, format!("{value:?}: expected a DNS label"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_work() {
        assert_eq!(Settings::default().check(), Ok(()));
    }

    #[test]
    fn watches_leave_connections_for_others() {
        let settings = Settings {
            watched_clusters: 2_000,
            ..Settings::default()
        };
        let text = settings.check().map_err(|error| error.to_string());
        assert!(text.is_err_and(|text| text.contains("watched-clusters")));
    }

    #[test]
    fn a_write_must_end_within_its_lease() {
        let settings = Settings {
            write_timeout: Duration::from_secs(10),
            ..Settings::default()
        };
        let text = settings.check().map_err(|error| error.to_string());
        assert!(text.is_err_and(|text| text.contains("write-timeout") && text.contains("lease (15s)")));
    }
}
