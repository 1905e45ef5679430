//! A double of the part of GitLab that the operator speaks to: no real GitLab can be had in a test.
//!
//! It keeps state and enforces what GitLab documents of version 4 of its REST interface: authentication, pages of at most 100
//! with `x-next-page`, paths escaped as one segment, read-only archived projects, redirects from former paths, commits that
//! happen whole or not at all and are refused over a file that changed, unique keys, values that can be masked, tokens that
//! are shown once and live a year at most. Whoever breaks a rule gets GitLab's status and GitLab's words.

mod commits;
mod members;
mod projects;
mod routes;
mod wire;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use projects::Project;

/// What its clients must show.
const TOKEN: &str = "glpat-of-the-double";

/// A GitLab on the loopback interface, without TLS; ends when dropped.
#[derive(Debug)]
pub struct GitLab {
    address: SocketAddr,
    state: Arc<State>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
pub(super) struct State {
    site: Mutex<Site>,
    delays_deletions: AtomicBool,
}

/// All that it holds.
#[derive(Default)]
pub(super) struct Site {
    last_id: u64,
    /// Groups by number, with the whole path.
    groups: BTreeMap<u64, String>,
    projects: BTreeMap<u64, Project>,
    /// Former paths of projects.
    moved: BTreeMap<String, u64>,
}

impl Site {
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

impl State {
    fn site(&self) -> MutexGuard<'_, Site> {
        self.site.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

impl Drop for GitLab {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl GitLab {
    /// Starts one without groups, on the calling runtime.
    ///
    /// # Panics
    /// When no port can be had.
    #[allow(clippy::disallowed_methods, reason = "ended by whoever drops the double")]
    pub async fn start() -> Self {
        let listening = async {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
            let address = listener.local_addr()?;
            Ok::<_, std::io::Error>((listener, address))
        };
        let (listener, address) = match listening.await {
            Ok(listening) => listening,
            Err(error) => panic!("the double of GitLab cannot listen: {error}"),
        };
        let state = Arc::new(State::default());
        let serving = tokio::spawn(serve(listener, Arc::clone(&state)));
        Self {
            address,
            state,
            serving,
        }
    }

    /// Its address: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A token that may do everything.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// Keeps deleted projects for some days from now on, as newer servers do, or forgets them at once.
    pub fn delay_deletions(&self, delay: bool) {
        self.state.delays_deletions.store(delay, Ordering::SeqCst);
    }

    /// Lets the tokens of a project reach their end.
    ///
    /// # Panics
    /// When there is no such project.
    pub fn expire_tokens(&self, project: u64) {
        let mut site = self.state.site();
        match site.projects.get_mut(&project) {
            Some(project) => project.expire_tokens(),
            None => panic!("there is no project {project}"),
        }
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        let service = service_fn(move |request| {
            let state = Arc::clone(&state);
            async move { Ok::<_, Infallible>(routes::answer(&state, request).await) }
        });
        let connection = async move {
            let _ = Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        };
        #[allow(clippy::disallowed_methods, reason = "ends with its client")]
        drop(tokio::spawn(connection));
    }
}
