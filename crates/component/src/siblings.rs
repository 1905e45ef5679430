//! What the other components of a configuration render, found by rendering them: only when an operation has to know, and
//! once for all operations of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use evenkeel_cluster::{
    Cluster, ComponentTarget, ManifestObject, Owner, Placement, Record, Siblings, Unknown, Wanted,
};
use evenkeel_core::{
    ComponentName, ComponentRevision, ComponentSpec, Namespace, ObjectRef, SourceFormat, SourceRef,
};
use evenkeel_source::Content;
use evenkeel_steps::{Failure, FailureClass};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use tokio::sync::OnceCell;

use crate::lookup::LiveLookup;
use crate::operation::capabilities;
use crate::pipeline::define::Definitions;
use crate::pipeline::obtain;
use crate::pipeline::render::{self, Place};
use crate::reconciler::Reconciler;
use crate::render::{Document, Documents, RenderInput};
use crate::{Error, Values};

/// How many components are rendered at the same time.
const TOGETHER: usize = 4;

/// One component, as far as its objects depend on it.
#[derive(Clone, Debug)]
pub struct Sibling {
    /// Its name.
    pub name: ComponentName,
    /// The chart, kustomization or manifests.
    pub source: SourceRef,
    /// Which of them; found by its files when there is none.
    pub format: Option<SourceFormat>,
    /// Its values.
    pub values: Values,
    /// The release namespace.
    pub namespace: Namespace,
    /// Whether it overrides even explicit namespaces.
    pub force_namespace: bool,
}

impl Sibling {
    /// A component of a configuration.
    ///
    /// # Errors
    /// As [`Values::of`].
    pub fn of(spec: &ComponentSpec) -> Result<Self, Error> {
        Ok(Self {
            name: spec.name.clone(),
            source: spec.source.clone(),
            format: spec.format,
            values: Values::of(spec)?,
            namespace: spec.namespace.clone(),
            force_namespace: spec.force_namespace,
        })
    }
}

/// The components of one configuration, and what was found of each so far. Shared by the operations of a run.
pub struct SiblingSet(Vec<(Sibling, OnceCell<BTreeSet<ObjectRef>>)>);

impl fmt::Debug for SiblingSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|(sibling, _)| sibling.name.as_str());
        f.debug_list().entries(names).finish()
    }
}

impl SiblingSet {
    /// A set of which nothing is known yet.
    pub fn new(siblings: Vec<Sibling>) -> Self {
        Self(
            siblings
                .into_iter()
                .map(|sibling| (sibling, OnceCell::new()))
                .collect(),
        )
    }
}

/// Renders siblings to know their objects.
#[derive(Clone, Debug)]
pub struct RenderedSiblings {
    reconciler: Reconciler,
    cluster: Cluster,
    owner: Owner,
    set: Arc<SiblingSet>,
}

impl RenderedSiblings {
    /// The siblings of `set` at `cluster`, kept in the name of `owner`.
    pub fn new(reconciler: Reconciler, cluster: Cluster, owner: Owner, set: Arc<SiblingSet>) -> Self {
        Self {
            reconciler,
            cluster,
            owner,
            set,
        }
    }

    async fn ask(&self, asking: &ComponentName, objects: &BTreeSet<ObjectRef>) -> Wanted {
        let mut wanted = Wanted::default();
        let mut others = Vec::with_capacity(self.set.0.len());
        for (sibling, rendered) in &self.set.0 {
            if sibling.name != *asking {
                others.push((sibling, rendered));
            }
        }
        // What charts may see of their own revision is remembered at the target: one read for all, where one is missing.
        let records = if others.iter().all(|(_, rendered)| rendered.initialized()) {
            Ok(BTreeMap::new())
        } else {
            self.cluster.records(&self.owner).await
        };
        let records = match records {
            Ok(records) => records,
            Err(error) => {
                let unknown = unknown(error.into());
                wanted.unknown = others
                    .into_iter()
                    .map(|(sibling, _)| (sibling.name.clone(), unknown.clone()))
                    .collect();
                return wanted;
            }
        };
        let records = &records;
        let mut rendering: Vec<BoxFuture<'_, _>> = Vec::with_capacity(others.len());
        for (sibling, rendered) in others {
            rendering.push(Box::pin(async move {
                let render = || self.objects(sibling, records.get(&sibling.name));
                (&sibling.name, rendered.get_or_try_init(render).await)
            }));
        }
        let mut rendered = stream::iter(rendering).buffer_unordered(TOGETHER);
        while let Some((name, rendered)) = rendered.next().await {
            match rendered {
                Ok(rendered) => wanted.by.extend(
                    rendered
                        .intersection(objects)
                        .map(|object| (object.clone(), name.clone())),
                ),
                Err(error) => {
                    tracing::debug!(component = name.as_str(), %error, "what a sibling renders is not known");
                    wanted.unknown.insert(name.clone(), unknown(error));
                }
            }
        }
        wanted
    }

    /// The definitions that all of them render.
    ///
    /// # Errors
    /// What the records at the target cannot be read with.
    pub(crate) async fn definitions(&self) -> Result<Definitions, Error> {
        let records = &self.cluster.records(&self.owner).await?;
        let mut rendering: Vec<BoxFuture<'_, _>> = Vec::with_capacity(self.set.0.len());
        for (sibling, _) in &self.set.0 {
            rendering.push(Box::pin(async move {
                let of_one = self.definitions_of(sibling, records.get(&sibling.name));
                (&sibling.name, of_one.await)
            }));
        }
        // In the order of the configuration: who comes first when two render the same.
        let rendered: Vec<_> = stream::iter(rendering).buffered(TOGETHER).collect().await;
        let mut definitions = Definitions::default();
        for (name, rendered) in rendered {
            match rendered {
                Ok(documents) => definitions.add(name, documents),
                Err(error) => definitions.unknown.push((name.clone(), error.to_string())),
            }
        }
        Ok(definitions)
    }

    async fn definitions_of(
        &self,
        sibling: &Sibling,
        record: Option<&Record>,
    ) -> Result<Vec<ManifestObject>, Error> {
        let target = self.cluster.component(&self.owner, &sibling.name);
        let documents = Box::pin(self.documents(&target, sibling, record)).await?;
        let mut documents = documents.manifest();
        documents.retain(|document| is_definition(&document.object));
        if !documents.is_empty() {
            // One that is not valid is left to its component.
            let placement = Placement {
                namespace: sibling.namespace.clone(),
                force_namespace: sibling.force_namespace,
            };
            target.desired(documents.clone(), &placement, Vec::new()).await?;
        }
        Ok(documents)
    }

    /// The objects that one component renders.
    async fn objects(
        &self,
        sibling: &Sibling,
        record: Option<&Record>,
    ) -> Result<BTreeSet<ObjectRef>, Error> {
        let target = self.cluster.component(&self.owner, &sibling.name);
        let documents = Box::pin(self.documents(&target, sibling, record)).await?;
        let placement = Placement {
            namespace: sibling.namespace.clone(),
            force_namespace: sibling.force_namespace,
        };
        let desired = target
            .desired(documents.manifest(), &placement, Vec::new())
            .await?;
        let objects = desired.objects().iter();
        Ok(objects.map(|desired| desired.object.clone()).collect())
    }

    async fn documents(
        &self,
        target: &ComponentTarget,
        sibling: &Sibling,
        record: Option<&Record>,
    ) -> Result<Arc<Documents>, Error> {
        let shared = self.reconciler.shared();
        let content = shared.sources.content(&sibling.source, sibling.format).await?;
        obtain::refuse_values(&sibling.name, &sibling.values, &content)?;
        let chart = match &content {
            Content::Chart(chart) => Arc::clone(chart),
            Content::Manifests(manifests) => {
                return Ok(Arc::new(Documents {
                    objects: manifests.objects().iter().cloned().map(Document::from).collect(),
                    hooks: Vec::new(),
                    is_marked: false,
                }));
            }
            Content::Kustomization(kustomization) => {
                return render::built_of(shared, &sibling.name, kustomization).await;
            }
        };
        let values = obtain::resolve(target, &sibling.values, &sibling.namespace).await?;
        let capabilities = capabilities(target.cluster()).await?;
        let place = Place {
            name: &sibling.name,
            namespace: &sibling.namespace,
            force_namespace: sibling.force_namespace,
        };
        let considered = render::consider(shared, &content, &values, &capabilities, place).await?;
        // As its own operation will count, or has counted.
        let revision = match record.and_then(|record| Some((record.revision?, record.inputs))) {
            None => ComponentRevision(1),
            Some((revision, inputs)) if inputs == Some(considered.all) => revision,
            Some((revision, _)) => revision.next(),
        };
        let (name, namespace) = (sibling.name.clone(), sibling.namespace.clone());
        let lookup = LiveLookup::new(target.cluster().clone(), tokio::runtime::Handle::current());
        let (shared, tasks) = (shared.clone(), shared.tasks.clone());
        let rendered = move || {
            let input = RenderInput {
                chart: &chart,
                values: &values,
                name: &name,
                namespace: &namespace,
                revision,
                capabilities: &capabilities,
            };
            let key = input.key();
            if let Some(documents) = shared.renders.get(&key) {
                return Ok(documents);
            }
            let documents =
                Arc::new(input.render(shared.clock.now(), Some(Arc::new(lookup)), shared.render_limits)?);
            shared.renders.insert(key, &documents);
            Ok(documents)
        };
        tasks
            .blocking("render a sibling", rendered)
            .await
            .unwrap_or(Err(Error::Ending))
    }
}

impl Siblings for RenderedSiblings {
    fn wanting<'a>(
        &'a self,
        asking: &'a ComponentName,
        objects: &'a BTreeSet<ObjectRef>,
    ) -> BoxFuture<'a, Wanted> {
        Box::pin(self.ask(asking, objects))
    }
}

fn is_definition(object: &serde_json::Value) -> bool {
    let text = |key: &str| object.get(key).and_then(serde_json::Value::as_str);
    text("kind") == Some("CustomResourceDefinition")
        && text("apiVersion").is_some_and(|version| version.starts_with("apiextensions.k8s.io/"))
}

fn unknown(error: Error) -> Unknown {
    let failure = Failure::from(error);
    Unknown {
        reason: failure.message().to_owned(),
        may_pass: matches!(
            failure.class(),
            FailureClass::Transient | FailureClass::RateLimited { .. } | FailureClass::Conflict
        ),
    }
}
