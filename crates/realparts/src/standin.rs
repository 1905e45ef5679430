//! Stand-ins for what no server here does: running Pods on a node, providing volumes, balancing load.
//!
//! Everything else is real. A stand-in only sets what its original would set, in the objects' status, so what
//! controllers and clients make of it is real again.

mod claims;
mod logs;
mod node;
mod pod_status;
mod pods;
mod services;

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use futures::StreamExt as _;
use futures::TryStreamExt as _;
use futures::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

pub use logs::LOG_ANNOTATION;
pub use pod_status::PodScript;
pub use pods::{DELAY_ANNOTATION, HOLD_TERMINATION_ANNOTATION, POD_SCRIPT_ANNOTATION};

use self::logs::LogServer;
use crate::Error;
use crate::certificates::Identity;

/// Pause between two looks at something that comes up.
const POLL: Duration = Duration::from_millis(50);

/// Pause after a failed call, before the next.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// How often one object's handling is retried; after that its next event, or the next list, tries again.
const HANDLING_TRIES: usize = 5;

/// Time limits of a call. The API server closes watches itself after their own time limit, which is shorter than
/// the time to read.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const READ_TIMEOUT: Duration = Duration::from_secs(330);

/// The stand-ins of one cluster, on a thread of their own until dropped.
#[derive(Debug)]
pub(crate) struct StandIns {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl StandIns {
    /// Starts them and waits until the cluster can take Pods: its node exists, and the default service account.
    /// The node's server of container logs presents itself by `identity`.
    pub(crate) fn start(kubeconfig: String, identity: Identity, bound: Duration) -> Result<Self, Error> {
        let (stop, stopped) = oneshot::channel::<()>();
        let (report, started) = mpsc::channel();
        let thread = thread("stand-ins", move |runtime| {
            runtime.block_on(async move {
                let (client, logs) = match prepare(&kubeconfig, &identity, bound).await {
                    Ok(prepared) => prepared,
                    Err(error) => {
                        // Whoever waits for the report is in `start`; if it is gone, there is no one to tell.
                        let _ = report.send(Err(error));
                        return;
                    }
                };
                let _ = report.send(Ok(()));
                let work = async {
                    tokio::join!(
                        pods::run(&client),
                        claims::run(&client),
                        services::run(&client),
                        logs.run(&client)
                    );
                };
                tokio::select! {
                    () = work => {}
                    _ = stopped => {}
                }
            });
        })?;
        let stand_ins = Self {
            stop: Some(stop),
            thread: Some(thread),
        };
        match started.recv() {
            Ok(result) => result.map(|()| stand_ins),
            Err(_) => Err(Error::Io {
                doing: "start the stand-ins of a cluster".to_owned(),
                source: std::io::Error::other("their thread ended"),
            }),
        }
    }
}

impl Drop for StandIns {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in it has been printed already.
            let _ = thread.join();
        }
    }
}

/// Asks an API server until it says that it is ready, or this is dropped.
#[derive(Debug)]
pub(crate) struct Readiness {
    ready: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Readiness {
    pub(crate) fn of(kubeconfig: String) -> Result<Self, Error> {
        let ready = Arc::new(AtomicBool::new(false));
        let stop = Arc::new(AtomicBool::new(false));
        let flags = (Arc::clone(&ready), Arc::clone(&stop));
        let thread = thread("readiness", move |runtime| {
            let (ready, stop) = flags;
            runtime.block_on(async {
                // The kubeconfig is ours; should it be broken, the bound of the wait ends it.
                let Ok(client) = client(&kubeconfig).await else {
                    return;
                };
                while !stop.load(Ordering::Relaxed) {
                    if is_ready(&client).await {
                        ready.store(true, Ordering::Relaxed);
                        return;
                    }
                    tokio::time::sleep(POLL).await;
                }
            });
        })?;
        Ok(Self {
            ready,
            stop,
            thread: Some(thread),
        })
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn is_ready(client: &Client) -> bool {
    let ask = async {
        let request = http::Request::get("/readyz")
            .body(Vec::new())
            .map_err(kube::Error::HttpError)?;
        client.request_text(request).await
    };
    matches!(tokio::time::timeout(CONNECT_TIMEOUT, ask).await, Ok(Ok(answer)) if answer == "ok")
}

/// A thread with a runtime of its own: one of a test would end with that test.
fn thread(
    name: &str,
    work: impl FnOnce(tokio::runtime::Runtime) + Send + 'static,
) -> Result<JoinHandle<()>, Error> {
    // Already installed is as good: what matters is that the process has one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::io(format!("start the runtime of {name}")))?;
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || work(runtime))
        .map_err(Error::io(format!("start the thread of {name}")))
}

async fn client(kubeconfig: &str) -> Result<Client, kube::Error> {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(READ_TIMEOUT);
    config.default_retry = false;
    Client::try_from(config)
}

/// Waits for what the controllers make first, and makes the node.
async fn prepare(
    kubeconfig: &str,
    identity: &Identity,
    bound: Duration,
) -> Result<(Client, LogServer), Error> {
    let logs = LogServer::bind(identity).await?;
    let client = client(kubeconfig)
        .await
        .map_err(Error::api("connect to the new cluster"))?;
    node::create(&client, logs.port()?)
        .await
        .map_err(Error::api("create the cluster's node"))?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let appears = async {
        while accounts.get("default").await.is_err() {
            tokio::time::sleep(POLL).await;
        }
    };
    if tokio::time::timeout(bound, appears).await.is_err() {
        return Err(Error::Io {
            doing: "find the default service account, which kube-controller-manager creates".to_owned(),
            source: std::io::ErrorKind::TimedOut.into(),
        });
    }
    Ok((client, logs))
}

/// What happened to an object.
enum Change<K> {
    /// It is there in this state.
    Present(K),
    /// It is gone; this was its last state.
    Gone(K),
}

/// Calls `handle` for every object there is and for every change, for ever. `handle` looks at the state alone, so it
/// does not matter if it is called twice, or late.
async fn follow<K, H, F>(api: Api<K>, handle: H)
where
    K: Clone + DeserializeOwned + Debug + kube::Resource,
    H: Fn(Change<K>) -> F,
    F: Future<Output = ()>,
{
    loop {
        // The server may be stopped by a test, or the watch be too old: list again, in any case.
        let _ = follow_once(&api, &handle).await;
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

async fn follow_once<K, H, F>(api: &Api<K>, handle: &H) -> Result<(), kube::Error>
where
    K: Clone + DeserializeOwned + Debug + kube::Resource,
    H: Fn(Change<K>) -> F,
    F: Future<Output = ()>,
{
    let list = api.list(&ListParams::default()).await?;
    let version = list.metadata.resource_version.clone().unwrap_or_default();
    let mut running: FuturesUnordered<F> = list
        .items
        .into_iter()
        .map(|object| handle(Change::Present(object)))
        .collect();
    let mut events = std::pin::pin!(api.watch(&WatchParams::default(), &version).await?);
    loop {
        tokio::select! {
            event = events.try_next() => match event? {
                Some(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                    running.push(handle(Change::Present(object)));
                }
                Some(WatchEvent::Deleted(object)) => running.push(handle(Change::Gone(object))),
                Some(WatchEvent::Bookmark(_)) => {}
                Some(WatchEvent::Error(_)) | None => return Ok(()),
            },
            Some(()) = running.next(), if !running.is_empty() => {}
        }
    }
}

/// Does `call` again while it fails for reasons that pass. That the object is gone or has changed is no failure: it
/// has had an event.
async fn settle<F>(mut call: impl FnMut() -> F)
where
    F: Future<Output = Result<(), kube::Error>>,
{
    for _ in 0..HANDLING_TRIES {
        match call().await {
            Ok(()) => return,
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => return,
            Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
        }
    }
}
