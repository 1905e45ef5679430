//! What happens in one schedule: what people ask for and what fails, and then that nothing fails any more.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{ClusterId, ClusterSpec, DeleteMode, Sensitive};
use evenkeel_inventory::{Asked, Clusters as _, Error, PutCluster, Statuses as _};

use super::goal::Wanted;
use super::process::Process;
use super::world::World;

/// How long everything may take to come to be as asked once nothing fails any more: the deadline of a run that hangs, and
/// the longest pauses after it.
const CALM_MAX: u64 = 400_000;
/// And how much longer when a clock was an hour ahead: what it wrote down is only due then.
const CLOCK_MAX: u64 = 3_700_000;
/// How far clocks jump.
const HOUR: i64 = 3_600_000;
/// How long a wrong clock stays so: processes ask the database for its time every 10 s.
const CLOCK_FOLLOWS: u64 = 10_000;

/// A fault that ends.
enum Ending {
    Restart(usize),
    Resume(usize),
    Connect(usize),
    Hurry(usize),
    Follow(usize),
    Answer(ClusterId),
}

/// One schedule.
pub(super) struct Schedule {
    world: Arc<World>,
    processes: Vec<Option<Process>>,
    started: u64,
    wanted: Vec<Wanted>,
    contents: u64,
    endings: Vec<(u64, Ending)>,
}

/// A specification: components `(name, content, dependencies)`.
fn spec(name: &str, components: &[(String, String, Vec<String>)]) -> Option<ClusterSpec> {
    let components: Vec<_> = components
        .iter()
        .map(|(name, content, depends_on)| {
            serde_json::json!({
                "name": name, "source": {"directory": {"path": content}}, "namespace": "apps", "dependsOn": depends_on,
            })
        })
        .collect();
    serde_json::from_value(serde_json::json!({"name": name, "components": components})).ok()
}

impl Schedule {
    pub(super) fn new(world: Arc<World>) -> Self {
        Self {
            world,
            processes: Vec::new(),
            started: 0,
            wanted: Vec::new(),
            contents: 0,
            endings: Vec::new(),
        }
    }

    /// Runs it. Answers what went wrong.
    pub(super) async fn run(mut self) -> Option<String> {
        let ran = self.go().await;
        for process in self.processes.iter_mut().filter_map(Option::take) {
            process.kill(&self.world);
        }
        self.world.network.kill();
        match (ran, self.world.fault()) {
            (_, Some(fault)) => Some(fault),
            (Ok(missing), None) => missing,
            (Err(error), None) => Some(format!("what people ask for was refused: {error}")),
        }
    }

    async fn go(&mut self) -> Result<Option<String>, Error> {
        let world = Arc::clone(&self.world);
        for _ in 0..=world.chance.below(2) {
            self.register().await?;
        }
        for _ in 0..=1 + world.chance.below(2) {
            self.start();
        }
        let events = 4 + world.chance.below(10);
        for _ in 0..events {
            let pause = world.chance.millis(1, 4_000);
            self.let_pass(pause).await;
            self.happens().await?;
            if world.fault().is_some() {
                return Ok(None);
            }
        }
        self.calm_down().await;
        self.wait_for_goal().await
    }

    fn start(&mut self) {
        self.started += 1;
        self.processes
            .push(Some(Process::start(&self.world, self.started)));
    }

    fn content(&mut self) -> String {
        self.contents += 1;
        let is_bad = self.world.chance.percent(3);
        format!("v{}{}", self.contents, if is_bad { "bad" } else { "" })
    }

    /// A new cluster with some components, each of which may need some of those before it.
    async fn register(&mut self) -> Result<(), Error> {
        let name = format!("c{}", self.wanted.len() + 1);
        let count = 1 + self.world.chance.below(4);
        let mut components: Vec<(String, String, Vec<String>)> = Vec::new();
        for number in 0..count {
            let needs = components
                .iter()
                .map(|(name, ..)| name.clone())
                .collect::<Vec<_>>();
            let needs = needs
                .into_iter()
                .filter(|_| self.world.chance.percent(30))
                .collect();
            let content = self.content();
            components.push((
                format!("{name}-{}", char::from(b'a' + u8::try_from(number).unwrap_or(0))),
                content,
                needs,
            ));
        }
        let Some(spec) = spec(&name, &components) else {
            self.world
                .broken("a specification of the simulation is not valid".to_owned());
            return Ok(());
        };
        let mut put = PutCluster::new(spec.clone()).with_kubeconfig(Sensitive::new("kubeconfig".to_owned()));
        put.id = ClusterId::new(name.clone()).ok();
        let id = self.world.people.put_cluster(put).await?.id;
        self.world.note(0, "registered:", id.as_str(), count);
        self.world
            .clusters()
            .insert(id.clone(), super::clusters::ModelCluster::default());
        self.wanted.push(Wanted {
            id,
            spec,
            deleted: false,
        });
        Ok(())
    }

    /// Lets time pass, and faults end on the way.
    async fn let_pass(&mut self, time: Duration) {
        let until = self.world.millis() + u64::try_from(time.as_millis()).unwrap_or(0);
        loop {
            let now = self.world.millis();
            let next = self
                .endings
                .iter()
                .map(|(at, _)| *at)
                .min()
                .filter(|at| *at <= until);
            let wait = next.unwrap_or(until).saturating_sub(now);
            tokio::time::sleep(Duration::from_millis(wait)).await;
            let now = self.world.millis();
            let (due, later) = std::mem::take(&mut self.endings)
                .into_iter()
                .partition(|(at, _)| *at <= now);
            self.endings = later;
            let due: Vec<(u64, Ending)> = due;
            for (_, ending) in due {
                self.ends(ending);
            }
            if now >= until {
                return;
            }
        }
    }

    fn ends(&mut self, ending: Ending) {
        let name = match &ending {
            Ending::Restart(_) => "a process starts anew",
            Ending::Resume(_) => "a process goes on",
            Ending::Connect(_) => "the database can be reached",
            Ending::Hurry(_) => "the database is fast",
            Ending::Follow(_) => "a clock is right",
            Ending::Answer(_) => "a cluster answers",
        };
        self.world.note(0, name, "", 0);
        match ending {
            Ending::Restart(place) => {
                self.started += 1;
                let process = Process::start(&self.world, self.started);
                if let Some(slot) = self.processes.get_mut(place) {
                    *slot = Some(process);
                }
            }
            Ending::Resume(place) => self.at(place, |process| process.link.pause(false)),
            Ending::Connect(place) => self.at(place, |process| process.link.cut(false)),
            Ending::Hurry(place) => self.at(place, |process| process.link.slow_down(Duration::ZERO)),
            Ending::Follow(place) => self.at(place, |process| process.clock.be_off_by(0)),
            Ending::Answer(id) => {
                if let Some(cluster) = self.world.clusters().get_mut(&id) {
                    cluster.unreachable = false;
                }
            }
        }
    }

    /// Does something to a process, if it lives.
    fn at(&self, place: usize, act: impl FnOnce(&Process)) {
        if let Some(process) = self.processes.get(place).and_then(Option::as_ref) {
            act(process);
        }
    }

    fn later(&mut self, most: u64, ending: Ending) {
        let at = self.world.millis() + 500 + self.world.chance.below(most);
        self.endings.push((at, ending));
    }

    /// Something happens.
    async fn happens(&mut self) -> Result<(), Error> {
        let world = Arc::clone(&self.world);
        let place = world.chance.place(self.processes.len());
        match world.chance.below(20) {
            0..=6 => self.change().await?,
            7 => self.delete().await?,
            8 => self.ask().await?,
            9..=11 => {
                if let Some(process) = self.processes.get_mut(place).and_then(Option::take) {
                    process.kill(&world);
                    self.later(20_000, Ending::Restart(place));
                }
            }
            12 | 13 => self.fails(place, "is paused", 40_000, Ending::Resume(place), |process| {
                process.link.pause(true);
            }),
            14 | 15 => self.fails(place, "is cut off", 40_000, Ending::Connect(place), |process| {
                process.link.cut(true);
            }),
            16 => self.fails(
                place,
                "has a slow database",
                20_000,
                Ending::Hurry(place),
                |process| {
                    process.link.slow_down(Duration::from_secs(2));
                },
            ),
            17 => {
                world.clocks_are_wrong();
                let off = if world.chance.percent(50) { HOUR } else { -HOUR };
                self.fails(
                    place,
                    "has a wrong clock",
                    CLOCK_FOLLOWS,
                    Ending::Follow(place),
                    |process| {
                        process.clock.be_off_by(off);
                    },
                );
            }
            18 => self.drift(),
            _ => {
                let wanted = self.wanted.get(world.chance.place(self.wanted.len()));
                if let Some(id) = wanted.map(|wanted| wanted.id.clone()) {
                    world.note(0, "does not answer:", id.as_str(), 0);
                    if let Some(cluster) = world.clusters().get_mut(&id) {
                        cluster.unreachable = true;
                    }
                    self.later(60_000, Ending::Answer(id));
                }
            }
        }
        Ok(())
    }

    fn fails(&mut self, place: usize, what: &str, most: u64, ending: Ending, fail: impl FnOnce(&Process)) {
        if let Some(process) = self.processes.get(place).and_then(Option::as_ref) {
            self.world.note(process.number, what, "", 0);
            fail(process);
            self.later(most, ending);
        }
    }

    /// A person changes a configuration: contents, or which components there are.
    async fn change(&mut self) -> Result<(), Error> {
        let place = self.world.chance.place(self.wanted.len());
        let (content, kind) = (self.content(), self.world.chance.below(10));
        let Some(wanted) = self.wanted.get_mut(place).filter(|wanted| !wanted.deleted) else {
            return Ok(());
        };
        let mut new = wanted.spec.clone();
        let at = self.world.chance.place(new.components.len());
        match kind {
            0 | 1 if new.components.len() > 1 => {
                let gone = new.components.remove(at).name;
                for component in &mut new.components {
                    component.depends_on.retain(|name| *name != gone);
                }
            }
            2 => {
                let taken: BTreeSet<String> =
                    new.components.iter().map(|spec| spec.name.to_string()).collect();
                let names = (b'a'..=b'f').map(|letter| format!("{}-{}", wanted.id, char::from(letter)));
                let name = names.into_iter().find(|name| !taken.contains(name));
                let template = new.components.first().cloned();
                if let (Some(name), Some(mut component)) = (name.and_then(|name| name.parse().ok()), template)
                {
                    component.name = name;
                    component.source = evenkeel_core::SourceRef::Directory { path: content };
                    component.depends_on = Vec::new();
                    new.components.push(component);
                }
            }
            _ => {
                if let Some(component) = new.components.get_mut(at) {
                    component.source = evenkeel_core::SourceRef::Directory { path: content };
                }
            }
        }
        let put = PutCluster {
            id: Some(wanted.id.clone()),
            ..PutCluster::new(new.clone())
        };
        let outcome = self.world.people.put_cluster(put).await?;
        wanted.spec = new;
        self.world
            .note(0, "changed:", wanted.id.as_str(), outcome.version.0);
        Ok(())
    }

    async fn delete(&mut self) -> Result<(), Error> {
        let place = self.world.chance.place(self.wanted.len());
        if let Some(wanted) = self.wanted.get_mut(place).filter(|wanted| !wanted.deleted) {
            self.world.note(0, "to be deleted:", wanted.id.as_str(), 0);
            self.world
                .people
                .request_deletion(&wanted.id, DeleteMode::Uninstall)
                .await?;
            wanted.deleted = true;
        }
        Ok(())
    }

    async fn ask(&mut self) -> Result<(), Error> {
        let place = self.world.chance.place(self.wanted.len());
        if let Some(wanted) = self.wanted.get(place).filter(|wanted| !wanted.deleted) {
            let at = self.world.chance.place(wanted.spec.components.len());
            let named = wanted.spec.components.get(at).map(|spec| spec.name.clone());
            let asked = Asked {
                force: self.world.chance.percent(50),
                components: named.into_iter().collect(),
            };
            self.world.note(0, "asked for:", wanted.id.as_str(), 0);
            self.world.people.ask(&wanted.id, asked).await?;
        }
        Ok(())
    }

    /// Somebody deletes an object that is ours.
    fn drift(&self) {
        let place = self.world.chance.place(self.wanted.len());
        if let Some(wanted) = self.wanted.get(place) {
            self.world
                .note(0, "somebody deletes an object at", wanted.id.as_str(), 0);
            if let Some(cluster) = self.world.clusters().get_mut(&wanted.id) {
                for applied in cluster.components.values_mut() {
                    applied.objects.pop_first();
                }
            }
        }
    }

    /// All faults end, and none begins any more.
    async fn calm_down(&mut self) {
        self.world.calm_down();
        self.world.note(0, "nothing fails any more", "", 0);
        for (_, ending) in std::mem::take(&mut self.endings) {
            self.ends(ending);
        }
    }

    async fn wait_for_goal(&mut self) -> Result<Option<String>, Error> {
        let extra = if self.world.clocks_were_right() {
            0
        } else {
            CLOCK_MAX
        };
        let limit = self.world.millis() + CALM_MAX + extra;
        let mut pause = 500;
        loop {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            if self.world.fault().is_some() {
                return Ok(None);
            }
            let mut missing = None;
            for wanted in &self.wanted {
                missing = wanted.missing(&self.world).await?;
                if missing.is_some() {
                    break;
                }
            }
            if missing.is_none() {
                return Ok(None);
            }
            if self.world.millis() >= limit {
                return Ok(missing.map(|missing| format!("though nothing fails any more: {missing}")));
            }
            pause = (pause * 2).min(5_000);
        }
    }
}
