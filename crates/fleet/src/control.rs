//! What people tell a cluster beside changing it: to be left alone, to go on, to be reconciled now and how (K18).

use evenkeel_api as api;
use evenkeel_core::{ClusterName, ComponentName};
use evenkeel_inventory::{Asked, Cluster};
use jiff::Timestamp;

use crate::{Error, Fleet, pause};

/// A suspension that only a person ends lasts until then.
const FOR_GOOD: Timestamp = Timestamp::MAX;

/// The suspension of a cluster, if it lasts at `now`.
pub(crate) fn suspension(cluster: &Cluster, now: Timestamp) -> Option<api::Suspension> {
    let until = cluster.status.suspended_until.filter(|until| *until > now)?;
    // The database keeps whole milliseconds.
    let for_good = until.as_millisecond() >= FOR_GOOD.as_millisecond();
    Some(api::Suspension {
        until: (!for_good).then_some(until),
    })
}

impl Fleet {
    /// Makes a cluster due now, for what is asked.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a component that the cluster does not list, [`Error::Suspended`], and what the inventory
    /// answers.
    pub async fn reconcile_for(
        &self,
        name: &ClusterName,
        asked: &api::Reconcile,
    ) -> Result<api::Accepted, Error> {
        let cluster = self.store().cluster_by_name(name).await?;
        let components = asked.component_names()?;
        if !components.is_empty() {
            let spec = self.store().newest_configuration(&cluster.id).await?.spec;
            let listed =
                |name: &ComponentName| spec.components.iter().any(|component| component.name == *name);
            if let Some(unknown) = components.iter().find(|name| !listed(name)) {
                return Err(Error::Parameter {
                    name: "components",
                    problem: format!("version {} does not list component {unknown}", cluster.version),
                });
            }
        }
        if suspension(&cluster, self.clock().now()).is_some() && asked.force {
            return Err(Error::Suspended(name.clone()));
        }
        let wish = Asked {
            force: asked.force,
            components: components.into_iter().collect(),
        };
        self.store().ask(&cluster.id, wish).await?;
        Ok(api::Accepted {
            name: name.clone(),
            id: cluster.id,
            version: cluster.version,
            change: api::AcceptedChange::Unchanged,
        })
    }

    /// Leaves a cluster alone until a moment, for a while, or until [`Fleet::resume`]. What runs goes on; changes are
    /// accepted and wait; a deletion is done.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a moment that has passed or two at once, and what the inventory answers.
    pub async fn suspend(&self, name: &ClusterName, suspend: api::Suspend) -> Result<api::Suspension, Error> {
        let now = self.clock().now();
        let wrong = |name, problem: &str| {
            Err(Error::Parameter {
                name,
                problem: problem.to_owned(),
            })
        };
        let until = match suspend {
            api::Suspend {
                until: Some(_),
                within: Some(_),
            } => return wrong("for", "expected either until or for, found both"),
            api::Suspend {
                until: Some(until), ..
            } => until,
            api::Suspend {
                within: Some(within), ..
            } => pause::after(now, within.0),
            api::Suspend { .. } => FOR_GOOD,
        };
        if until <= now {
            return wrong("until", "expected a moment that is to come");
        }
        let cluster = self.store().cluster_by_name(name).await?;
        self.store().suspend(&cluster.id, Some(until)).await?;
        tracing::info!(cluster = name.as_str(), %until, "suspended");
        Ok(api::Suspension {
            until: (until != FOR_GOOD).then_some(until),
        })
    }

    /// Ends a suspension and makes the cluster due.
    ///
    /// # Errors
    /// What the inventory answers.
    pub async fn resume(&self, name: &ClusterName) -> Result<api::Accepted, Error> {
        let cluster = self.store().cluster_by_name(name).await?;
        self.store().suspend(&cluster.id, None).await?;
        tracing::info!(cluster = name.as_str(), "resumed");
        Ok(api::Accepted {
            name: name.clone(),
            id: cluster.id,
            version: cluster.version,
            change: api::AcceptedChange::Unchanged,
        })
    }
}
