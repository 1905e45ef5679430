//! A mothership with its workers: the real ones, before a model of the clusters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_cluster::{ClusterCheck, Difference, Stop, Verdict, WriteGuard as _};
use evenkeel_component::{End, Reconciler};
use evenkeel_core::{ClusterId, ComponentName, ComponentSpec, ObjectChange, ObjectRef, SourceRef, Strategy};
use evenkeel_inventory::{ClaimLimits, ClaimedOperation, Configuration, MemoryStore, Store};
use evenkeel_source::{DirectoryPolicy, Sources};
use evenkeel_telemetry::metrics::StepMetrics;
use evenkeel_telemetry::{Metrics, OnCancel, OnError, Tasks};
use tokio::sync::oneshot;

use super::clusters::{OBJECTS, Request, Write};
use super::link::ProcessLink;
use super::world::{ProcessClock, World};
use crate::archives::StoredArchives;
use crate::fleet::{Inner, Model};
use crate::look::Look;
use crate::site::{Compared, Site};
use crate::targets::Trouble;
use crate::workers::{Hold, Timeline};
use crate::{Settings, pause};

/// One process that runs.
pub(super) struct Process {
    pub(super) number: u64,
    pub(super) link: Arc<ProcessLink>,
    pub(super) clock: Arc<ProcessClock>,
    tasks: Tasks,
}

/// How all motherships work: short times, so that much happens in few virtual minutes.
pub(super) fn settings() -> Settings {
    Settings {
        fleet_name: "simulation".to_owned(),
        worker: "simulated".to_owned(),
        check_interval: Duration::from_secs(60),
        watched_clusters: 0,
        parallel_checks: 4,
        check_timeout: Duration::from_secs(20),
        slots: 3,
        lease: Duration::from_secs(15),
        heartbeat: Duration::from_secs(5),
        write_timeout: Duration::from_secs(9),
        retry_first: Duration::from_secs(1),
        retry_longest: Duration::from_secs(20),
        deadline: Duration::from_secs(120),
        supersede_patience: Duration::from_secs(5),
        limits: ClaimLimits::default(),
        // What holds versions back has tests of its own; here every cluster is to get what it asked for.
        breaker_failures: 1_000,
        // So has the limit of tries; a claim whose answer is lost under a clock that is an hour ahead holds for that hour.
        delete_failures_max: 1_000,
        failures_max: 1_000,
        ..Settings::default()
    }
}

/// What no schedule touches and all share, since it takes long to make.
fn unused(tasks: &Tasks, store: &Arc<dyn Store>) -> Option<Model> {
    static MADE: OnceLock<Option<Model>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let metrics = Metrics::new();
        let archives = Arc::new(StoredArchives(Arc::clone(store)));
        let sources = Arc::new(Sources::new(
            DirectoryPolicy::Refused,
            archives,
            store.clock(),
            tasks.clone(),
        ));
        Some(Model {
            reconciler: Reconciler::new(Arc::clone(&sources), tasks.clone(), store.clock()).ok()?,
            sources,
            steps: StepMetrics::register(&metrics).ok()?,
            metrics,
        })
    });
    made.clone()
}

impl Process {
    /// Starts process `number`.
    pub(super) fn start(world: &Arc<World>, number: u64) -> Self {
        world.note(number, "starts", "", 0);
        let link = Arc::new(ProcessLink::new(Arc::clone(world), number));
        let clock = Arc::new(world.clock());
        let tasks = Tasks::new();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::open(&world.database, clock.clone(), link.clone()));
        let site = Arc::new(ModelSite {
            world: Arc::clone(world),
            link: Arc::clone(&link),
            number,
        });
        let jitter = {
            let world = Arc::clone(world);
            Arc::new(move || world.chance.share())
        };
        match unused(&tasks, &store) {
            Some(unused) => Inner::modelled(store, settings(), tasks.clone(), unused, site, jitter).work(),
            None => world.broken("a process could not be made".to_owned()),
        }
        Self {
            number,
            link,
            clock,
            tasks,
        }
    }

    /// Ends it as `kill -9` would.
    pub(super) fn kill(self, world: &World) {
        world.note(self.number, "is killed", "", 0);
        self.tasks.kill();
    }
}

/// The model clusters as one process reaches them.
struct ModelSite {
    world: Arc<World>,
    link: Arc<ProcessLink>,
    number: u64,
}

/// What a component is made from.
pub(super) fn inputs(spec: &ComponentSpec) -> &str {
    match &spec.source {
        SourceRef::Directory { path } => path,
        _ => "",
    }
}

/// An attempt at an operation.
struct Attempt<'a> {
    site: &'a ModelSite,
    inner: &'a Inner,
    operation: &'a ClaimedOperation,
    hold: &'a Hold,
}

impl ModelSite {
    /// An answer comes, or does not.
    async fn answer(&self, cluster: &ClusterId) -> Result<(), Trouble> {
        self.link.gate().await;
        let most = if self.world.strikes(5) { 4_000 } else { 20 };
        tokio::time::sleep(self.world.chance.millis(1, most)).await;
        self.link.gate().await;
        let gone = self
            .world
            .clusters()
            .get(cluster)
            .is_none_or(|cluster| cluster.unreachable);
        match gone || self.world.strikes(3) {
            true => Err(Trouble::Slow(settings().check_timeout)),
            false => Ok(()),
        }
    }

    fn compare_now(&self, cluster: &ClusterId, components: &[ComponentSpec]) -> ClusterCheck {
        let clusters = self.world.clusters();
        let there = clusters.get(cluster).map(|cluster| &cluster.components);
        let mut verdicts = BTreeMap::new();
        for spec in components {
            let applied = there.and_then(|there| there.get(&spec.name));
            let difference = match applied {
                None => Some(Difference::NotInstalled),
                Some(applied) if applied.is(inputs(spec)) => None,
                Some(applied) if applied.unfinished => Some(Difference::Unfinished),
                Some(applied) if applied.inputs.as_deref() == Some(inputs(spec)) => {
                    Some(Difference::Missing(object()))
                }
                Some(_) => Some(Difference::Inputs),
            };
            let verdict = match difference {
                None => Verdict::Unchanged,
                Some(difference) => Verdict::Differs(vec![difference]),
            };
            verdicts.insert(spec.name.clone(), verdict);
        }
        let listed = |name: &ComponentName| components.iter().any(|spec| spec.name == *name);
        let names = there.into_iter().flat_map(BTreeMap::keys);
        ClusterCheck {
            unexpected: names.filter(|name| !listed(name)).cloned().collect(),
            components: verdicts,
            baseline: None,
        }
    }
}

impl Attempt<'_> {
    /// Sends one request, if the lease still outlasts it. It arrives whatever becomes of this process.
    async fn send(&self, request: Request) -> Result<(), End> {
        let Self {
            site,
            operation,
            hold,
            ..
        } = self;
        hold.permit(settings().write_timeout).map_err(End::Stopped)?;
        let longest = u64::try_from(settings().write_timeout.as_millis()).unwrap_or(0);
        site.world.permitted(operation, site.world.millis() + longest);
        // A process may stand still right between the two.
        site.link.gate().await;
        let (sender, answer) = oneshot::channel();
        let world = Arc::clone(&site.world);
        let number = site.number;
        let slow = world.strikes(3);
        let way = world.chance.millis(1, if slow { 12_000 } else { 15 });
        let mut write = Write {
            component: operation.component.clone(),
            fence: operation.lease.fence,
            operation: operation.id.clone(),
            overdue: way > settings().write_timeout,
        };
        let lost = world.strikes(2);
        let arrives = async move |_| {
            tokio::time::sleep(way).await;
            write.overdue |= !world.is_held(&write.operation, write.fence).await;
            let mut clusters = world.clusters();
            let cluster = clusters.entry(write.operation.cluster().clone()).or_default();
            if cluster.unreachable {
                return Ok::<_, std::convert::Infallible>(());
            }
            let served = cluster.serve(&write, &request);
            let what = if served.is_ok() {
                request.name()
            } else {
                "is refused: it"
            };
            world.note(number, what, write.component.as_str(), write.fence.0);
            if !lost {
                let _ = sender.send(served);
            }
            Ok(())
        };
        drop(
            site.world
                .network
                .spawn("request", OnError::Log, OnCancel::Abort, arrives),
        );
        let answer = tokio::time::timeout(settings().write_timeout, answer).await;
        site.link.gate().await;
        site.world.answered(operation);
        match answer {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err(at_target))) => Err(End::Fenced { at_target }),
            Ok(Err(_)) | Err(_) => Err(self.again("no answer")),
        }
    }

    fn again(&self, reason: &str) -> End {
        let inner = self.inner;
        let pause = pause::backoff(&inner.settings, self.operation.attempt, inner.jitter());
        End::Retry {
            reason: reason.to_owned(),
            at: pause::after(inner.clock.now(), pause),
        }
    }

    /// Waits, as for objects to become ready, unless it is to stop.
    async fn wait(&self, longest: u64) -> Result<(), End> {
        let wait = self.site.world.chance.millis(0, longest);
        tokio::select! {
            biased;
            () = self.hold.stopped().cancelled() => {
                let stop = self.hold.permit(Duration::ZERO).err();
                Err(End::Stopped(stop.unwrap_or(Stop::Cancelled)))
            }
            () = tokio::time::sleep(wait) => Ok(()),
        }
    }

    async fn run(&self) -> Result<End, End> {
        let operation = self.operation;
        let world = &self.site.world;
        let store = &self.inner.store;
        let configuration = store.configuration(&operation.cluster, operation.version).await;
        let configuration = configuration.map_err(|error| self.again(&error.to_string()))?;
        let spec = configuration
            .spec
            .components
            .iter()
            .find(|spec| spec.name == operation.component);
        if operation.kind == Strategy::Delete {
            self.send(Request::TakeFenceOfRemains).await?;
            for object in 0..OBJECTS {
                self.send(Request::Delete(object)).await?;
            }
            self.wait(200).await?;
            self.send(Request::Forget).await?;
            return Ok(End::Succeeded);
        }
        let Some(spec) = spec else {
            return Ok(End::Failed {
                reason: "internal: its version does not list it".to_owned(),
            });
        };
        let inputs = inputs(spec);
        if inputs.ends_with("bad") {
            return Ok(match world.chance.percent(90) {
                true => self.again("it never becomes ready"),
                false => End::Failed {
                    reason: "its chart cannot be rendered".to_owned(),
                },
            });
        }
        self.send(Request::TakeFence).await?;
        for object in 0..OBJECTS {
            self.send(Request::Apply(object, inputs.to_owned())).await?;
            if world.strikes(3) {
                return Ok(self.again("a webhook is not there"));
            }
            if world.strikes(2) {
                return Ok(End::Missing {
                    reason: "nobody serves kind Widget".to_owned(),
                });
            }
        }
        let longest = if world.strikes(20) { 20_000 } else { 300 };
        self.wait(longest).await?;
        self.send(Request::Record(inputs.to_owned())).await?;
        Ok(End::Succeeded)
    }
}

#[async_trait]
impl Site for ModelSite {
    async fn compare(&self, look: &Look<'_>, configuration: &Configuration) -> Result<Compared, Trouble> {
        let id = &look.cluster.id;
        self.answer(id).await?;
        let components = &configuration.spec.components;
        let check = self.compare_now(id, components);
        self.world
            .note(self.number, "checks", id.as_str(), configuration.version.0);
        Ok(Compared {
            considered: components.iter().map(|_| Ok(considered())).collect(),
            check,
            target: None,
        })
    }

    async fn ours(&self, look: &Look<'_>, _: Option<u64>) -> Result<BTreeSet<ComponentName>, Trouble> {
        let id = &look.cluster.id;
        self.answer(id).await?;
        self.world
            .note(self.number, "checks what is left of", id.as_str(), 0);
        Ok(self.compare_now(id, &[]).unexpected)
    }

    async fn may_define(&self, _: &Inner, _: &ComponentSpec) -> bool {
        false
    }

    async fn work(
        &self,
        inner: &Inner,
        operation: &ClaimedOperation,
        hold: &Arc<Hold>,
        _: &Arc<Timeline>,
    ) -> (End, Vec<ObjectChange>) {
        self.world.note(
            self.number,
            "begins",
            operation.component.as_str(),
            operation.lease.fence.0,
        );
        let attempt = Attempt {
            site: self,
            inner,
            operation,
            hold,
        };
        let end = attempt.run().await.unwrap_or_else(|end| end);
        let what = match &end {
            End::Succeeded => "is done with",
            End::Retry { .. } => "has to try again",
            End::Stopped(_) => "stops",
            End::Fenced { .. } => "is fenced off from",
            End::Missing { .. } => "misses something of",
            _ => "fails with",
        };
        self.world.note(
            self.number,
            what,
            operation.component.as_str(),
            operation.lease.fence.0,
        );
        (end, Vec::new())
    }
}

/// The object that is missing; which one does not matter.
fn object() -> ObjectRef {
    ObjectRef {
        group: String::new(),
        kind: "ConfigMap".to_owned(),
        namespace: None,
        name: "object".to_owned(),
    }
}

/// Inputs that nobody asks about.
fn considered() -> evenkeel_component::Considered {
    let digest = evenkeel_core::Digest::from([0; 32]);
    evenkeel_component::Considered {
        revision: digest,
        all: digest,
    }
}
