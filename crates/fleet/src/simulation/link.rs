//! The way between a process and its database, and the gate that keeps a paused process from doing anything.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_inventory::{self as inventory, Link};
use tokio::sync::Notify;

use super::world::World;

/// How long a call takes each way when all is well, in milliseconds.
const WAY: u64 = 3;
/// How long a call waits for a database that is not to be reached.
const UNREACHABLE_AFTER: u64 = 2_000;

/// One process's way out.
pub(super) struct ProcessLink {
    world: Arc<World>,
    process: u64,
    cut: AtomicBool,
    slow_millis: AtomicU64,
    paused: AtomicBool,
    /// Lets go on who waits for the end of a pause, in the order in which they came: a watch would do so in any.
    resumed: Notify,
}

impl ProcessLink {
    pub(super) fn new(world: Arc<World>, process: u64) -> Self {
        Self {
            world,
            process,
            cut: AtomicBool::new(false),
            slow_millis: AtomicU64::new(0),
            paused: AtomicBool::new(false),
            resumed: Notify::new(),
        }
    }

    /// Cuts the process off from its database, or ends that.
    pub(super) fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
    }

    /// Makes each call take longer.
    pub(super) fn slow_down(&self, by: Duration) {
        self.slow_millis
            .store(u64::try_from(by.as_millis()).unwrap_or(0), Ordering::Relaxed);
    }

    /// Stops the process where it is, or lets it go on.
    pub(super) fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
        if !paused {
            self.resumed.notify_waiters();
        }
    }

    /// Returns once the process is not paused.
    pub(super) async fn gate(&self) {
        loop {
            let resumed = self.resumed.notified();
            if !self.paused.load(Ordering::Relaxed) {
                return;
            }
            resumed.await;
        }
    }

    async fn way(&self) -> Result<(), inventory::Error> {
        self.gate().await;
        let world = &self.world;
        if self.cut.load(Ordering::Relaxed) {
            tokio::time::sleep(world.chance.millis(1, UNREACHABLE_AFTER)).await;
            self.gate().await;
            return Err(unreachable());
        }
        let slow = self.slow_millis.load(Ordering::Relaxed);
        tokio::time::sleep(world.chance.millis(0, WAY + slow)).await;
        self.gate().await;
        match self.cut.load(Ordering::Relaxed) || world.strikes(1) {
            true => Err(unreachable()),
            false => Ok(()),
        }
    }
}

fn unreachable() -> inventory::Error {
    inventory::Error::Database {
        doing: "calling the database",
        transient: true,
        source: Box::new(io::Error::from(io::ErrorKind::ConnectionReset)),
    }
}

#[async_trait]
impl Link for ProcessLink {
    async fn there(&self, call: &'static str) -> Result<(), inventory::Error> {
        let way = self.way().await;
        if way.is_err() {
            self.world.note(self.process, "cannot call", call, 0);
        }
        way
    }

    async fn back(&self, call: &'static str) -> Result<(), inventory::Error> {
        let way = self.way().await;
        let what = if way.is_err() {
            "loses the answer of"
        } else {
            "calls"
        };
        self.world.note(self.process, what, call, 0);
        way
    }

    fn hears(&self) -> bool {
        !self.cut.load(Ordering::Relaxed)
    }

    fn wrote(&self, call: &'static str, broken: Option<String>) {
        self.world.note(self.process, "writes by", call, 0);
        if let Some(broken) = broken {
            self.world
                .broken(format!("after {call} of process {}: {broken}", self.process));
        }
    }
}
