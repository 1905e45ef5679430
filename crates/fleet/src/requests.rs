//! What people and programs ask of the fleet: read a request, check it, hand it to the inventory. Work follows by
//! itself: the inventory's signals wake the scheduler.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use evenkeel_api as api;
use evenkeel_cluster::ReadinessRules;
use evenkeel_core::{
    ClusterName, ClusterSpec, ConfigurationVersion, DeleteMode, DueReason, FieldError, Kubeconfig,
    ReconciliationId, ReconciliationState, SourceRef,
};
use evenkeel_inventory::{
    self as inventory, Change, ClusterFilter, Cursor, DeletionOutcome, PageRequest, PutCluster, Signal,
};

use crate::{Error, Fleet, Settings, consent, views};

/// How many rows a page has unless asked for otherwise.
pub(crate) const PAGE_SIZE: u32 = 100;
/// How often a status is read again when the cluster moved on in between; each time means that much happened.
const STATUS_TRIES: u32 = 10;
/// How often a change is compared with the newest version when that moved on in between.
const PUT_TRIES: u32 = 5;
/// How many versions and runs a history shows, newest first.
const HISTORY_SHOWN: u32 = 50;

/// What is stored of a cluster that is to be changed.
struct Stored {
    version: ConfigurationVersion,
    spec: ClusterSpec,
    /// Whether it is being deleted.
    going: bool,
    /// The settings that count for it.
    settings: Arc<Settings>,
}

impl Fleet {
    /// Registers a cluster or gives it a new configuration.
    ///
    /// # Errors
    /// [`Error::NameMismatch`], [`Error::Invalid`], [`Error::Sources`], [`Error::Kubeconfig`],
    /// [`Error::KubeconfigFrom`], [`Error::Consent`], and what the inventory refuses.
    pub async fn put_cluster(
        &self,
        path: &ClusterName,
        document: api::ClusterDocument,
    ) -> Result<api::Accepted, Error> {
        if document.spec.name != *path {
            return Err(Error::NameMismatch {
                document: document.spec.name,
                path: path.clone(),
            });
        }
        if let Some(kubeconfig) = &document.kubeconfig {
            self.check_kubeconfig(kubeconfig).await?;
        }
        document.spec.validate()?;
        check_schedule(&document.spec)?;
        check_readiness(&document.spec)?;
        self.check_order(&document.spec).await?;
        self.check_sources(&document.spec).await?;
        for tries_left in (0..PUT_TRIES).rev() {
            let stored = self.stored_spec(path).await?;
            let spec = document
                .spec
                .clone()
                .unmasked(stored.as_ref().map(|stored| &stored.spec))?;
            // One that is going is not changed whatever its sender consents to, and the inventory says so.
            if let Some(stored) = stored.as_ref().filter(|stored| !stored.going) {
                consent::check_change(&stored.settings, path, &stored.spec, &spec, &document.consent)?;
            }
            let put = PutCluster {
                id: None,
                spec,
                kubeconfig: document.kubeconfig.clone(),
                // What is lost was told from this version.
                if_version: stored
                    .as_ref()
                    .filter(|stored| !stored.going)
                    .map(|stored| stored.version),
            };
            match self.store().put_cluster(put).await {
                Err(inventory::Error::VersionMismatch { .. }) if tries_left > 0 => {}
                outcome => {
                    let outcome = outcome?;
                    tracing::info!(cluster = path.as_str(), version = outcome.version.0, change = ?outcome.change, "accepted");
                    return Ok(accepted(path, outcome));
                }
            }
        }
        // The last try has returned.
        Err(inventory::Error::NotFound {
            what: "cluster",
            id: path.to_string(),
        }
        .into())
    }

    /// Replaces a cluster's kubeconfig, or where it is read.
    ///
    /// # Errors
    /// [`Error::Kubeconfig`], [`Error::KubeconfigFrom`], and what the inventory refuses.
    pub async fn put_kubeconfig(
        &self,
        name: &ClusterName,
        kubeconfig: Kubeconfig,
    ) -> Result<api::Accepted, Error> {
        self.check_kubeconfig(&kubeconfig).await?;
        let cluster = self.store().cluster_by_name(name).await?;
        let outcome = self.store().put_kubeconfig(&cluster.id, kubeconfig).await?;
        tracing::info!(
            cluster = name.as_str(),
            version = outcome.version.0,
            "accepted another kubeconfig"
        );
        Ok(accepted(name, outcome))
    }

    /// One cluster.
    ///
    /// # Errors
    /// What the inventory answers.
    pub async fn cluster(&self, name: &ClusterName) -> Result<api::Cluster, Error> {
        let cluster = self.store().cluster_by_name(name).await?;
        let configuration = self.store().newest_configuration(&cluster.id).await?;
        let kubeconfig = match self.store().kubeconfig(&cluster.id).await {
            // One that cannot be read is told of by the cluster's state.
            Err(inventory::Error::NotFound { .. } | inventory::Error::Unreadable { .. }) => None,
            kubeconfig => Some(kubeconfig?),
        };
        let from = kubeconfig.and_then(|kubeconfig| kubeconfig.reference().cloned());
        Ok(views::cluster(&cluster, &configuration.spec, from))
    }

    /// One page of clusters.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a label filter without `=`, and what the inventory answers.
    pub async fn clusters(&self, list: &api::ListClusters) -> Result<api::ClusterPage, Error> {
        let mut filter = ClusterFilter {
            state: list.state,
            component: list.component.clone(),
            tenant: list.tenant.clone(),
            group: list.group.clone(),
            ..ClusterFilter::default()
        };
        if let Some(label) = &list.label {
            let (key, value) = label.split_once('=').ok_or_else(|| Error::Parameter {
                name: "label",
                problem: format!("expected key=value, found {label:?}"),
            })?;
            filter.labels.insert(key.to_owned(), value.to_owned());
        }
        let limit = list.limit.unwrap_or(PAGE_SIZE);
        let request = match list.after.as_deref().map(str::parse::<Cursor>) {
            Some(Ok(cursor)) => PageRequest::after(cursor, limit),
            None => PageRequest::first(limit),
        };
        let page = self.store().clusters(&filter, &request).await?;
        warn_of(&page.failed);
        Ok(api::ClusterPage {
            items: page.items.into_iter().map(views::summary).collect(),
            next: page.next.map(|cursor| cursor.to_string()),
        })
    }

    /// How a cluster is.
    ///
    /// # Errors
    /// What the inventory answers.
    pub async fn status(&self, name: &ClusterName) -> Result<api::ClusterStatus, Error> {
        let mut cluster = self.store().cluster_by_name(name).await?;
        for tries_left in (0..STATUS_TRIES).rev() {
            let configuration = self.store().newest_configuration(&cluster.id).await?;
            let graph = configuration.spec.validate()?;
            let components = self.store().components(&cluster.id).await?;
            let newest = self
                .store()
                .reconciliations(&cluster.id, &PageRequest::first(1))
                .await?;
            let running = newest
                .items
                .first()
                .filter(|run| run.state == ReconciliationState::Running);
            let live = match running {
                Some(run) => Some(self.store().operations(&run.id).await?.items),
                None => None,
            };
            // Read one after the other, they may be of different moments: then the whole would be of none.
            let again = self.store().cluster_by_name(name).await?;
            if tries_left > 0 && !is_same(&cluster, &again) {
                cluster = again;
                continue;
            }
            warn_of(&components.failed);
            warn_of(&newest.failed);
            let newest = newest.items.first();
            let now = self.clock().now();
            return Ok(views::status(
                again,
                &graph,
                components.items,
                newest,
                live.as_deref(),
                now,
            ));
        }
        Err(inventory::Error::Outdated(cluster.id).into())
    }

    /// How a cluster is once that differs from `known`, or after `wait` as it is then.
    ///
    /// # Errors
    /// What the inventory answers.
    pub async fn status_after(
        &self,
        name: &ClusterName,
        known: &str,
        wait: Duration,
    ) -> Result<api::ClusterStatus, Error> {
        // Subscribed before the first look, so that no change falls between the two.
        let mut changed = self.store().signals().subscribe(Signal::ClusterChanged);
        let mut settled = self.store().signals().subscribe(Signal::OperationSettled);
        let mut ready = self.store().signals().subscribe(Signal::OperationReady);
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            let status = self.status(name).await?;
            if status.revision != known {
                return Ok(status);
            }
            let signal = async {
                tokio::select! {
                    more = changed.changed() => more,
                    more = settled.changed() => more,
                    more = ready.changed() => more,
                }
            };
            match tokio::time::timeout_at(deadline, signal).await {
                Ok(true) => {}
                Ok(false) | Err(_) => return Ok(status),
            }
        }
    }

    /// Makes a cluster due now.
    ///
    /// # Errors
    /// What the inventory answers.
    pub async fn reconcile(&self, name: &ClusterName) -> Result<api::Accepted, Error> {
        let cluster = self.store().cluster_by_name(name).await?;
        self.store()
            .make_due(&cluster.id, self.clock().now(), DueReason::Change)
            .await?;
        Ok(api::Accepted {
            name: name.clone(),
            id: cluster.id,
            version: cluster.version,
            change: api::AcceptedChange::Unchanged,
        })
    }

    /// Takes the cluster that answers now for the one that is meant: after its control plane was made anew.
    ///
    /// # Errors
    /// [`Error::Target`] when it cannot be asked who it is, and what the inventory answers.
    pub async fn confirm_identity(&self, name: &ClusterName) -> Result<(), Error> {
        let cluster = self.store().cluster_by_name(name).await?;
        let troubled = |problem: String| Error::Target {
            cluster: name.clone(),
            problem,
        };
        let client = self
            .targets()
            .connect(&cluster.id)
            .await
            .map_err(|trouble| troubled(trouble.to_string()))?;
        let uid = client.uid().await.map_err(|error| troubled(error.to_string()))?;
        self.store().confirm_identity(&cluster.id, uid.as_str()).await?;
        self.targets().forget(&cluster.id);
        tracing::info!(
            cluster = name.as_str(),
            uid = uid.as_str(),
            "its identity was confirmed"
        );
        self.store()
            .make_due(&cluster.id, self.clock().now(), DueReason::Change)
            .await?;
        Ok(())
    }

    /// The newest configuration versions, newest first.
    ///
    /// # Errors
    /// What the inventory answers.
    pub async fn configurations(&self, name: &ClusterName) -> Result<Vec<api::Configuration>, Error> {
        let cluster = self.store().cluster_by_name(name).await?;
        let page = self
            .store()
            .configurations(&cluster.id, &PageRequest::first(HISTORY_SHOWN))
            .await?;
        warn_of(&page.failed);
        let mut configurations = Vec::with_capacity(page.items.len());
        for summary in page.items {
            let configuration = self.store().configuration(&cluster.id, summary.version).await?;
            configurations.push(views::configuration(&configuration));
        }
        Ok(configurations)
    }

    /// One configuration version.
    ///
    /// # Errors
    /// What the inventory answers.
    pub async fn configuration(
        &self,
        name: &ClusterName,
        version: ConfigurationVersion,
    ) -> Result<api::Configuration, Error> {
        let cluster = self.store().cluster_by_name(name).await?;
        Ok(views::configuration(
            &self.store().configuration(&cluster.id, version).await?,
        ))
    }

    /// Makes the components and labels of an older version the newest version; the kubeconfig, tenant and group of today
    /// stay.
    ///
    /// # Errors
    /// [`Error::Rollback`], [`Error::Sources`], [`Error::Consent`], and what the inventory answers.
    pub async fn rollback(
        &self,
        name: &ClusterName,
        rollback: &api::Rollback,
    ) -> Result<api::Accepted, Error> {
        let to = rollback.to;
        let cluster = self.store().cluster_by_name(name).await?;
        let refused = |problem: &str| Error::Rollback {
            cluster: name.clone(),
            to,
            problem: problem.to_owned(),
        };
        if to >= cluster.version {
            return Err(refused(if to == cluster.version {
                "it is the newest"
            } else {
                "there is no such version"
            }));
        }
        let old = match self.store().configuration(&cluster.id, to).await {
            Err(inventory::Error::NotFound { .. }) => return Err(refused("there is no such version")),
            old => old?,
        };
        let newest = self.store().newest_configuration(&cluster.id).await?;
        let spec = ClusterSpec {
            components: old.spec.components,
            labels: old.spec.labels,
            ..newest.spec.clone()
        };
        let settings = self.inner().settings_of(&cluster);
        consent::check_change(&settings, name, &newest.spec, &spec, &rollback.consent)?;
        self.check_order(&spec).await?;
        self.check_sources(&spec).await?;
        check_readiness(&spec)?;
        let put = PutCluster {
            if_version: Some(newest.version),
            ..PutCluster::new(spec)
        };
        let outcome = self.store().put_cluster(put).await?;
        tracing::info!(
            cluster = name.as_str(),
            version = outcome.version.0,
            from = to.0,
            "rolled back"
        );
        Ok(accepted(name, outcome))
    }

    /// Asks for a cluster to go.
    ///
    /// # Errors
    /// What the inventory answers.
    pub async fn delete_cluster(&self, name: &ClusterName, mode: DeleteMode) -> Result<api::Accepted, Error> {
        let cluster = self.store().cluster_by_name(name).await?;
        if self.store().request_deletion(&cluster.id, mode).await? == DeletionOutcome::Deleted {
            self.targets().forget(&cluster.id);
        }
        tracing::info!(
            cluster = name.as_str(),
            mode = mode.as_str(),
            "deletion was asked for"
        );
        Ok(api::Accepted {
            name: name.clone(),
            id: cluster.id,
            version: cluster.version,
            change: api::AcceptedChange::Changed,
        })
    }

    /// The newest runs of a cluster, newest first.
    ///
    /// # Errors
    /// What the inventory answers.
    pub async fn reconciliations(
        &self,
        name: &ClusterName,
    ) -> Result<Vec<api::ReconciliationSummary>, Error> {
        let cluster = self.store().cluster_by_name(name).await?;
        let page = self
            .store()
            .reconciliations(&cluster.id, &PageRequest::first(HISTORY_SHOWN))
            .await?;
        warn_of(&page.failed);
        Ok(page
            .items
            .into_iter()
            .map(views::reconciliation_summary)
            .collect())
    }

    /// One run with its operations, their words and the objects they touched.
    ///
    /// # Errors
    /// What the inventory answers.
    pub async fn reconciliation(&self, id: &ReconciliationId) -> Result<api::Reconciliation, Error> {
        let run = self.store().reconciliation(id).await?;
        let page = self.store().operations(id).await?;
        warn_of(&page.failed);
        let mut operations = Vec::with_capacity(page.items.len());
        for operation in page.items {
            let timeline = self.store().operation_timeline(&operation.id).await?;
            let changes = self.store().operation_changes(&operation.id).await?;
            operations.push(views::operation(id, operation, timeline, changes));
        }
        Ok(api::Reconciliation {
            summary: views::reconciliation_summary(run),
            operations,
        })
    }

    /// Keeps an uploaded archive.
    ///
    /// # Errors
    /// What the inventory answers; [`Error::Sources`] when it holds neither chart nor manifests.
    pub async fn put_archive(&self, archive: Bytes) -> Result<api::Archive, Error> {
        let size = archive.len() as u64;
        self.sources()
            .check_archive(archive.clone())
            .await
            .map_err(|error| Error::Sources(vec![FieldError::new("archive", error.to_string())]))?;
        let digest = self.store().put_archive(archive.into()).await?;
        Ok(api::Archive { digest, size })
    }

    /// Refuses components that depend on one another in a circle, or on one that is not listed, by what is declared of them
    /// beside `dependsOn`.
    async fn check_order(&self, spec: &ClusterSpec) -> Result<(), Error> {
        let graph = self.inner().reconciler.graph(&spec.components, false).await;
        graph.map(drop).map_err(Error::Invalid)
    }

    /// Refuses at once what could never be rendered: a directory outside the root, or none, and values for what takes
    /// none.
    async fn check_sources(&self, spec: &ClusterSpec) -> Result<(), Error> {
        let mut errors: Vec<_> = spec
            .components
            .iter()
            .enumerate()
            .filter_map(|(index, component)| {
                let error = self.sources().check(&component.source).err()?;
                Some(FieldError::new(
                    format!("components[{index}].source.{}", component.source.kind()),
                    error.to_string(),
                ))
            })
            .collect();
        for (index, component) in spec.components.iter().enumerate() {
            if component.values.is_empty() || component.format.is_some() {
                continue;
            }
            if !matches!(
                component.source,
                SourceRef::Directory { .. } | SourceRef::Archive { .. }
            ) {
                continue;
            }
            // What cannot be read fails its operation, and may be put right until then.
            let Ok(content) = self.sources().content(&component.source, None).await else {
                continue;
            };
            let format = content.format();
            if !format.takes_values() {
                errors.push(FieldError::new(
                    format!("components[{index}].values"),
                    format!("expected none: the source holds {format}, which takes no values"),
                ));
            }
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(Error::Sources(errors))
        }
    }

    /// What is stored of a live cluster of that name.
    async fn stored_spec(&self, name: &ClusterName) -> Result<Option<Stored>, Error> {
        let cluster = match self.store().cluster_by_name(name).await {
            Ok(cluster) => cluster,
            Err(inventory::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match self.store().newest_configuration(&cluster.id).await {
            Ok(configuration) => Ok(Some(Stored {
                version: configuration.version,
                spec: configuration.spec,
                going: cluster.deletion.is_some(),
                settings: self.inner().settings_of(&cluster),
            })),
            // A damaged row is replaced by what is being sent; only its masked secrets are lost.
            Err(inventory::Error::Unreadable { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Refuses a schedule with time zones that are not known here.
fn check_schedule(spec: &ClusterSpec) -> Result<(), Error> {
    let errors = crate::maintenance::check(&spec.schedule);
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Error::Invalid(evenkeel_core::Error::Spec(errors)))
    }
}

/// Refuses readiness rules that cannot be compiled, each with its place.
fn check_readiness(spec: &ClusterSpec) -> Result<(), Error> {
    let errors: Vec<FieldError> = spec
        .components
        .iter()
        .enumerate()
        .filter_map(|(index, component)| Some((index, ReadinessRules::compile(&component.readiness).err()?)))
        .flat_map(|(index, problems)| {
            problems.into_iter().map(move |problem| {
                let place = format!("line {}, column {}", problem.line, problem.column);
                let field = format!("components[{index}].{}", problem.field);
                FieldError::new(field, format!("{place}: {}", problem.message))
            })
        })
        .collect();
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Error::Invalid(evenkeel_core::Error::Spec(errors)))
    }
}

/// Whether nothing that a status shows has moved in between.
fn is_same(before: &inventory::Cluster, after: &inventory::Cluster) -> bool {
    let of = |cluster: &inventory::Cluster| {
        let status = &cluster.status;
        (
            cluster.id.clone(),
            cluster.version,
            status.state,
            status.observed_version,
            status.since,
        )
    };
    of(before) == of(after)
}

fn accepted(name: &ClusterName, outcome: inventory::PutOutcome) -> api::Accepted {
    api::Accepted {
        name: name.clone(),
        id: outcome.id,
        version: outcome.version,
        change: match outcome.change {
            Change::Created => api::AcceptedChange::Created,
            Change::Changed => api::AcceptedChange::Changed,
            Change::Unchanged => api::AcceptedChange::Unchanged,
        },
    }
}

/// A row that cannot be read is named in the log and touches nothing else.
pub(crate) fn warn_of(failed: &[inventory::RowFailure]) {
    for failure in failed {
        tracing::error!(row = failure.row, error = %failure.error, "a row cannot be read");
    }
}
