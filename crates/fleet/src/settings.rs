//! What a mothership can be told, with its defaults; checked before it starts.

use std::time::Duration;

use evenkeel_core::HumanDuration;

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
    /// How often an unchanged cluster is looked at.
    pub check_interval: Duration,
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
    /// Failed reconciliations of one configuration version before the cluster is failed.
    pub failures_max: u32,
    /// Failed deletions before the cluster is delete_failed.
    pub delete_failures_max: u32,
    /// How many objects of one component are applied at the same time.
    pub parallel_objects: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            fleet_name: "evenkeel".to_owned(),
            worker: format!("mothership-{}", std::process::id()),
            check_interval: Duration::from_secs(5 * 60),
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
            failures_max: 150,
            delete_failures_max: 15,
            parallel_objects: 4,
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
        ] {
            if value.is_zero() {
                return wrong(name, "expected more than 0s".to_owned());
            }
        }
        for (name, value) in [
            ("slots", self.slots),
            ("parallel-checks", self.parallel_checks),
            ("parallel-objects", self.parallel_objects),
        ] {
            if value == 0 {
                return wrong(name, "expected at least 1".to_owned());
            }
        }
        if evenkeel_core::Namespace::new(self.fleet_name.as_str()).is_err() {
            return wrong(
                "fleet-name",
                format!("{:?}: expected a DNS label", self.fleet_name),
            );
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
    fn a_write_must_end_within_its_lease() {
        let settings = Settings {
            write_timeout: Duration::from_secs(10),
            ..Settings::default()
        };
        let text = settings.check().map_err(|error| error.to_string());
        assert!(text.is_err_and(|text| text.contains("write-timeout") && text.contains("lease (15s)")));
    }
}
