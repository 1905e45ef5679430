//! A double of the part of GitLab that the operator speaks to: no real GitLab can be had in a test.
//!
//! It keeps state and enforces what GitLab documents of version 4 of its REST interface: authentication, pages of at most 100
//! with `x-next-page`, paths escaped as one segment, read-only archived projects, redirects from former paths, one project at a
//! place, commits that
//! happen whole or not at all and are refused over a file that changed, unique keys, values that can be masked, tokens that
//! are shown once and live a year at most. Whoever breaks a rule gets GitLab's status and GitLab's words.

mod commits;
mod members;
mod projects;
mod routes;
mod wire;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use projects::Project;
use serde_json::Value;

use crate::double::Double;

/// What its clients must show.
const TOKEN: &str = "glpat-of-the-double";

/// A GitLab on the loopback interface, without TLS; ends when dropped.
#[derive(Debug)]
pub struct GitLab {
    double: Double,
    state: Arc<State>,
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

impl GitLab {
    /// Starts one without groups, on the calling runtime.
    ///
    /// # Panics
    /// When no port can be had.
    pub async fn start() -> Self {
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let answering = move |request| {
            let state = Arc::clone(&shared);
            async move { routes::answer(&state, request).await }
        };
        Self {
            double: Double::start("the double of GitLab", answering).await,
            state,
        }
    }

    /// Its address: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.double.address())
    }

    /// A token that may do everything.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// All projects by path, with what is in them: description, whether archived, deploy keys by title, files of the default
    /// branch, variables by key, and names of the access tokens that are good.
    pub fn projects(&self) -> Value {
        let site = self.state.site();
        let shown = site.projects.values();
        shown
            .map(|project| (project.full_path(), project.contents()))
            .collect()
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
