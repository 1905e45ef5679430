//! What a deleted component leaves of the set that components share, and what the last one leaves of us.

use std::collections::BTreeSet;
use std::time::Duration;

use evenkeel_core::{ObjectChange, ObjectRef, PlanAction, SkippedObject};
use tokio::time::Instant;

use super::{Deletion, Going};
use crate::applyset::Owner;
use crate::applyset::labels::{CLUSTER_PARENT, SYSTEM_NAMESPACE, applyset_id};
use crate::applyset::parent::{Parent, secret_ref};
use crate::applyset::record::SharedRecord;
use crate::guard::Attempt;
use crate::objects::{namespaces, secrets};
use crate::plan::{Removal, namespace_ref};
use crate::progress::Event;
use crate::race::Race;
use crate::target::ComponentTarget;
use crate::{Cluster, Error, order};

impl ComponentTarget {
    /// Deletes what only this component wanted of the shared set, where that is allowed, and takes its wishes back.
    pub(super) async fn release_shared(
        &self,
        shared: Option<Parent<SharedRecord>>,
        going: &Going<'_>,
        deletion: &mut Deletion,
    ) -> Result<(), Error> {
        let Going {
            attempt,
            options,
            deadline,
            observer,
            ..
        } = going;
        let Some(parent) = shared else {
            return Ok(());
        };
        let mut gone: BTreeSet<ObjectRef> = BTreeSet::new();
        if options.all {
            gone.extend(self.delete_definitions(&parent.record, going, deletion).await?);
        }
        if options.namespaces {
            for shared in parent.record.left_over_namespaces(self.name()) {
                let object = shared.recorded.object();
                let uid = &shared.recorded.uid;
                let kept = self
                    .cluster()
                    .delete_namespace_if_empty(&object, uid, *deadline, &*attempt.guard)
                    .await?;
                match kept {
                    Some(reason) => deletion.kept.push(SkippedObject { object, reason }),
                    None => {
                        observer(Event::Gone(object.clone()));
                        let at = self.cluster().clock().now();
                        deletion.changes.push(ObjectChange {
                            object: object.clone(),
                            action: PlanAction::Delete,
                            at,
                        });
                        gone.insert(object);
                    }
                }
            }
        }
        let name = self.name().clone();
        let change = |record: &mut SharedRecord| {
            let before = record.objects.len();
            let unwanted = record.unwant(&name, &BTreeSet::new());
            record
                .objects
                .retain(|shared| !gone.contains(&shared.recorded.object()));
            unwanted || record.objects.len() != before
        };
        self.cluster()
            .update_shared(
                self.owner(),
                Some(parent),
                &BTreeSet::new(),
                &*attempt.guard,
                change,
            )
            .await
            .map(drop)
    }

    async fn delete_definitions(
        &self,
        record: &SharedRecord,
        going: &Going<'_>,
        deletion: &mut Deletion,
    ) -> Result<Vec<ObjectRef>, Error> {
        let mut batch = Vec::new();
        for shared in record
            .objects
            .iter()
            .filter(|shared| order::is_definition(&shared.recorded.group_kind()))
        {
            let only_ours = shared.made_by_us && shared.wanted_by.keys().all(|name| name == self.name());
            let Some(resource) = self
                .cluster()
                .preferred_resource(&shared.recorded.group_kind())
                .await?
            else {
                continue;
            };
            let object = shared.recorded.object();
            match self.cluster().get_live(&resource, &object).await? {
                Some(live) if only_ours && live.uid == shared.recorded.uid && live.stays().is_none() => {
                    batch.push(Removal {
                        object,
                        resource,
                        live,
                    });
                }
                _ => {}
            }
        }
        self.delete_phase(&batch, going, deletion).await?;
        Ok(batch.into_iter().map(|removal| removal.object).collect())
    }

    /// Takes our label off shared objects that only this component wanted.
    pub(super) async fn let_go_of_shared(
        &self,
        shared: Option<Parent<SharedRecord>>,
        attempt: &Attempt,
    ) -> Result<(), Error> {
        let Some(parent) = shared else {
            return Ok(());
        };
        let set = applyset_id(CLUSTER_PARENT);
        let mut gone = BTreeSet::new();
        let only_ours = parent
            .record
            .objects
            .iter()
            .filter(|shared| shared.wanted_by.contains_key(self.name()) && shared.wanted_by.len() == 1);
        for shared in only_ours {
            let object = shared.recorded.object();
            let Some(resource) = self
                .cluster()
                .preferred_resource(&shared.recorded.group_kind())
                .await?
            else {
                continue;
            };
            if let Some(live) = self
                .cluster()
                .get_live(&resource, &object)
                .await?
                .filter(|live| live.is_part_of(&set))
            {
                self.cluster().let_go(&resource, &object, &live, attempt).await?;
            }
            gone.insert(object);
        }
        let name = self.name().clone();
        let change = |record: &mut SharedRecord| {
            let unwanted = record.unwant(&name, &BTreeSet::new());
            record
                .objects
                .retain(|shared| !gone.contains(&shared.recorded.object()));
            unwanted
        };
        self.cluster()
            .update_shared(
                self.owner(),
                Some(parent),
                &BTreeSet::new(),
                &*attempt.guard,
                change,
            )
            .await
            .map(drop)
    }
}

impl Cluster {
    /// Removes what is left of us when the last component is gone: the shared parent, and the namespace of the parents
    /// when it is empty. Does nothing while a component is left.
    ///
    /// # Errors
    /// Whatever a request fails with.
    pub async fn leave(&self, owner: &Owner, attempt: &Attempt, timeout: Duration) -> Result<(), Error> {
        let deadline = Instant::now() + timeout;
        let mut race = Race::new(self, format!("remove {CLUSTER_PARENT}")).by(deadline);
        while !self.leave_once(owner, attempt, deadline).await? {
            race.look_again(self, &secrets(), &secret_ref(CLUSTER_PARENT))
                .await?;
        }
        Ok(())
    }

    /// `false` when somebody wrote the shared parent meanwhile: perhaps a component has come.
    async fn leave_once(&self, owner: &Owner, attempt: &Attempt, deadline: Instant) -> Result<bool, Error> {
        let parents = self.parents(owner, false).await?;
        if !parents.components.is_empty() {
            return Ok(true);
        }
        self.remove_shards(parents.stray, &*attempt.guard).await;
        if let Some(shared) = &parents.shared {
            // Namespaces that were not empty when their component went may be by now.
            for left in shared
                .record
                .objects
                .iter()
                .filter(|left| left.made_by_us && left.wanted_by.is_empty())
            {
                let object = left.recorded.object();
                if order::is_namespace(&object.group_kind()) {
                    self.delete_namespace_if_empty(&object, &left.recorded.uid, deadline, &*attempt.guard)
                        .await?;
                }
            }
            match self.delete_parent(shared, &*attempt.guard).await {
                Err(Error::Conflict { .. }) => return Ok(false),
                outcome => outcome?,
            }
        }
        let system = namespace_ref(SYSTEM_NAMESPACE);
        if let Some(live) = self.get_live(&namespaces(), &system).await?
            && live.is_managed_by_us()
        {
            self.delete_namespace_if_empty(&system, &live.uid, deadline, &*attempt.guard)
                .await?;
        }
        Ok(true)
    }
}
