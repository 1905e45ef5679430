//! Which passes run when: a watch of the objects and of what belongs to them, and the moments that passes asked for.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_steps::{CancelFns, Conclusion, Failure};
use evenkeel_telemetry::CancellationToken;
use futures::StreamExt as _;
use kube::core::PartialObjectMeta;
use kube::runtime::applier;
use kube::runtime::controller::{Action, Config};
use kube::{Api, Client, Resource, ResourceExt as _};
use tokio::sync::Semaphore;
use tracing::field::Empty;
use tracing::{Instrument as _, debug, info_span, warn};

use super::access::Readable;
use super::{Kind, Passed, Passes, Sources};
use crate::leader::Fence;

/// When an object that cannot even be read is tried again.
const UNREADABLE: Duration = Duration::from_secs(5);

/// When a pass that changed something is followed by one that checks it, at the latest: what it changed at other systems wakes nobody.
const CHECK: Duration = Duration::from_secs(1);

/// Which objects a controller looks after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of one namespace.
    Namespace(String),
    /// All of the cluster.
    All,
}

impl Scope {
    pub(crate) fn api<K: Readable>(&self, client: Client) -> Api<K> {
        match self {
            Self::Namespace(namespace) => Api::namespaced(client, namespace),
            Self::All => Api::all(client),
        }
    }

    /// The metadata alone, which costs the server and us less.
    pub(crate) fn metadata<K: Readable>(&self, client: Client) -> Api<PartialObjectMeta<K>> {
        match self {
            Self::Namespace(namespace) => Api::namespaced(client, namespace),
            Self::All => Api::all(client),
        }
    }
}

/// Runs passes until `token` is cancelled; passes that run then end at their next safe point, as they do when `fence` says that the
/// Lease may be another's.
pub(crate) async fn run<K: Kind>(
    passes: Arc<Passes<K>>,
    sources: Sources<K::Object>,
    concurrency: u16,
    fence: Fence,
    token: CancellationToken,
) {
    let kind = K::Object::kind(&()).into_owned();
    let concurrency = concurrency.max(1);
    let (stop, ended) = (token.clone(), token.clone());
    // One permit for each pass: who has them all knows that none runs.
    let running = Arc::new(Semaphore::new(usize::from(concurrency)));
    let every = Arc::clone(&running);
    let store = sources.store();
    let turns = sources.turns().map(Ok::<_, Infallible>);
    let passing = applier(
        move |object, passes: Arc<Passes<K>>| {
            let (token, running, fence) = (token.clone(), Arc::clone(&running), fence.clone());
            let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
            let span =
                info_span!("reconcile", kind = %K::Object::kind(&()), %namespace, %name, attempt = Empty);
            let pass = async move {
                let _permit = running.acquire().await;
                let asked = token.clone();
                let cancel = CancelFns::new(
                    move || asked.is_cancelled() || fence.is_passed(),
                    move || Box::pin(token.clone().cancelled_owned()),
                );
                let passed = passes.pass_until(&namespace, &name, cancel).await?;
                debug!(due = ?passed.due, "{}", passed.timeline);
                Ok::<Action, Failure>(next(&passes, &passed))
            };
            Box::pin(pass.instrument(span))
        },
        |object, failure, _| {
            warn!(name = object.name_any(), %failure, "a pass could not begin");
            Action::requeue(UNREADABLE)
        },
        passes,
        store,
        turns.take_until(async move { stop.cancelled_owned().await }),
        Config::default().concurrency(concurrency),
    )
    .for_each(|ended| {
        if let Err(error) = ended {
            debug!(%kind, %error, "a turn was missed");
        }
        std::future::ready(())
    });
    // A controller whose first listing never came waits for it even when it is told to stop.
    let idle = async {
        ended.cancelled().await;
        let _all = every.acquire_many(u32::from(concurrency)).await;
    };
    tokio::select! {
        () = passing => {}
        () = idle => {}
    }
}

fn next<K: Kind>(passes: &Passes<K>, passed: &Passed) -> Action {
    let due = passed.due.as_ref().map(|due| {
        let wait = due.at.duration_since(passes.now());
        Duration::try_from(wait).unwrap_or_default()
    });
    let check = (passed.conclusion == Some(Conclusion::Changed)).then_some(CHECK);
    match due.into_iter().chain(check).min() {
        Some(wait) => Action::requeue(wait),
        None => Action::await_change(),
    }
}
