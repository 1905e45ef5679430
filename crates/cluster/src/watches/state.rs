//! What the watches over one cluster have seen since it was last checked.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

use evenkeel_core::ObjectRef;
use tokio::time::Instant;

use super::table::{Asked, Chosen, KindTable, Table};
use super::{Alarm, Baseline};
use crate::live::{LiveObject, LiveObjects};
use crate::mark::{Departure, Version, place};
use crate::{Difference, ReadinessRules, readiness};

/// An object that departs again within this time after it was last told is fought over.
const FOUGHT_WITHIN: Duration = Duration::from_secs(10 * 60);
/// So often in a row it is told at once.
const AT_ONCE: u32 = 3;
/// The first delay after that; it doubles each time.
const DELAY_FIRST: Duration = Duration::from_secs(1);
/// The longest delay.
const DELAY_LONGEST: Duration = Duration::from_secs(5 * 60);
/// What departs further this soon after it was told is not told again.
const TOLD_ONCE_WITHIN: Duration = Duration::from_secs(2);
/// How many objects are remembered as fought over; when there are more, all are forgotten.
const FOUGHT_MAX: usize = 1_000;

/// An object by kind and place.
pub(super) type Key = (u32, u64);

/// What is known of the cluster.
#[derive(Debug)]
pub(super) struct State {
    pub(super) table: Table,
    /// What is not as it was found.
    departed: HashMap<Key, Departed>,
    /// What was written since it was found ready, and is to be judged again.
    doubts: HashMap<Key, Doubt>,
    /// How often an object departed lately.
    fought: HashMap<Key, (u32, Instant)>,
    /// Whether something became ready again that had not been.
    recovered: bool,
    next_id: u32,
    /// Numbers the checks that were taken for what is right.
    pub(super) check: u64,
}

/// Why something is not as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Why {
    Differs(Difference),
    NotReady,
    /// A record of ours: somebody works on the component.
    Parent(ObjectRef),
}

#[derive(Debug)]
struct Departed {
    why: Why,
    /// The version that showed it.
    version: Version,
    tell_at: Instant,
    told: Option<Instant>,
}

/// An object whose readiness is in doubt.
#[derive(Clone, Debug)]
pub(super) struct Doubt {
    pub(super) object: ObjectRef,
    pub(super) uid: String,
    pub(super) version: Version,
    pub(super) rules: ReadinessRules,
}

/// What somebody has to be woken for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    pub(super) alarm: bool,
    pub(super) doubt: bool,
}

impl State {
    pub(super) fn new(baseline: Baseline) -> Self {
        let next_id = u32::try_from(baseline.table.kinds.len()).unwrap_or(u32::MAX);
        Self {
            table: baseline.table,
            departed: HashMap::new(),
            doubts: HashMap::new(),
            fought: HashMap::new(),
            recovered: false,
            next_id,
            check: 0,
        }
    }

    /// Whether every watch is open and nothing is known that would not be found by a check.
    pub(super) fn is_calm(&self) -> bool {
        self.departed.is_empty() && self.doubts.is_empty() && self.table.kinds.iter().all(|kind| kind.open)
    }

    /// Takes another check for what is right. What an event has shown since is newer than it, and stays.
    pub(super) fn renew(&mut self, baseline: Baseline) {
        let mut table = baseline.table;
        let selectors: Vec<String> = table
            .kinds
            .iter()
            .map(|kind| table.selector(&kind.chosen))
            .collect();
        for (kind, selector) in table.kinds.iter_mut().zip(selectors) {
            let same = self.table.kinds.iter().find(|known| {
                known.resource == kind.resource
                    && known.namespace() == kind.namespace()
                    && self.table.selector(&known.chosen) == selector
            });
            match same {
                Some(known) => {
                    kind.id = known.id;
                    kind.open = known.open;
                    if kind.position.is_empty() {
                        kind.position.clone_from(&known.position);
                    }
                }
                None => {
                    kind.id = self.next_id;
                    self.next_id = self.next_id.wrapping_add(1);
                }
            }
        }
        self.table = table;
        let table = &self.table;
        let is_newer = |key: &Key, version: Version| {
            let newer_than = |known: Version| known != version && known.is_at_most(version);
            table.kind(key.0).is_some_and(|kind| match kind.chosen {
                // Listed by itself: each record has its own version.
                Chosen::Parents => kind
                    .find(key.1)
                    .is_some_and(|tracked| newer_than(tracked.mark.version)),
                Chosen::Members(_) | Chosen::Shared(_) => newer_than(kind.known_up_to),
            })
        };
        self.departed
            .retain(|key, departed| is_newer(key, departed.version));
        self.doubts.retain(|key, doubt| is_newer(key, doubt.version));
        self.recovered = false;
        self.check = self.check.wrapping_add(1);
        self.untell();
    }

    /// How a kind is asked for; none when it is watched no longer.
    pub(super) fn asked(&self, id: u32) -> Option<Asked> {
        let kind = self.table.kind(id)?;
        Some(Asked {
            resource: kind.resource.clone(),
            namespace: kind.namespace(),
            selector: self.table.selector(&kind.chosen),
        })
    }

    /// From which version on a watch that has come to `at` goes on: later, when a check has seen more. Whatever it shows
    /// then is new.
    pub(super) fn resume(&mut self, id: u32, at: &mut String) {
        let Some(kind) = self.table.kind_mut(id) else {
            return;
        };
        if Version::of(at).is_at_most(kind.known_up_to) {
            *at = kind.position.to_string();
        }
        kind.known_up_to = Version::NONE;
    }

    pub(super) fn set_open(&mut self, id: u32, open: bool) {
        if let Some(kind) = self.table.kind_mut(id) {
            kind.open = open;
        }
    }

    /// An object as an event showed it, or the last that was seen of it. `vouched` says whether its readiness at this
    /// version is known to be good.
    pub(super) fn saw(
        &mut self,
        id: u32,
        live: &LiveObject,
        gone: bool,
        vouched: impl Fn(&ReadinessRules) -> bool,
    ) -> News {
        let version = Version::of(&live.resource_version);
        let place = place_of(live);
        let is_old = self.table.kind(id).is_some_and(|kind| {
            let newest = kind
                .find(place)
                .map_or(kind.known_up_to, |tracked| tracked.mark.version);
            version.is_at_most(kind.known_up_to) || version != newest && version.is_at_most(newest)
        });
        if is_old {
            return News::default();
        }
        self.take(id, live, gone, vouched)
    }

    /// An object as it is now.
    fn take(
        &mut self,
        id: u32,
        live: &LiveObject,
        gone: bool,
        vouched: impl Fn(&ReadinessRules) -> bool,
    ) -> News {
        let Some(index) = self.table.kinds.iter().position(|kind| kind.id == id) else {
            return News::default();
        };
        let Some(kind) = self.table.kinds.get(index) else {
            return News::default();
        };
        let version = Version::of(&live.resource_version);
        let place = place_of(live);
        let key = (id, place);
        let Some(tracked) = kind.find(place).copied() else {
            if gone {
                self.departed.remove(&key);
            } else if self.table.minds(kind, live) {
                let object = live.reference(&kind.resource.kind.group_kind());
                let why = match kind.chosen {
                    Chosen::Parents => Why::Parent(object),
                    _ => Why::Differs(Difference::LeftOver(object)),
                };
                return self.depart(key, why, version, Some(live));
            }
            return News::default();
        };
        if let Some(departure) = tracked.mark.departs((!gone).then_some(live)) {
            let why = why(kind, departure, live);
            return self.depart(key, why, version, Some(live));
        }
        let doubt = self.doubt(kind, key, live, tracked.mark.component, vouched);
        let unready = self
            .departed
            .get(&key)
            .is_some_and(|known| known.why == Why::NotReady);
        if !unready {
            self.departed.remove(&key);
        }
        // A change by others that is no drift is remembered here, and written nowhere.
        let written = tracked.mark.version != version && !gone;
        if written
            && let Some(known) = self
                .table
                .kinds
                .get_mut(index)
                .and_then(|kind| kind.find_mut(place))
        {
            known.mark.version = version;
        }
        match doubt {
            Some(doubt) if written && !tracked.mark.is_kept() => {
                self.doubts.insert(key, doubt);
                News {
                    doubt: true,
                    ..News::default()
                }
            }
            _ => News::default(),
        }
    }

    /// The readiness that is in doubt when an object of a kind with a rule was written.
    fn doubt(
        &self,
        kind: &KindTable,
        key: Key,
        live: &LiveObject,
        component: u16,
        vouched: impl Fn(&ReadinessRules) -> bool,
    ) -> Option<Doubt> {
        if !matches!(kind.chosen, Chosen::Members(_)) || live.ignores_readiness() {
            return None;
        }
        let group_kind = kind.resource.kind.group_kind();
        let rules = &self.table.found.get(usize::from(component))?.rules;
        let has_rule = readiness::has_rule(&group_kind, kind.resource.has_status)
            || rules.covers(&group_kind, &live.name);
        // Known to be unready: any write may have changed that.
        let unready = self
            .departed
            .get(&key)
            .is_some_and(|known| known.why == Why::NotReady);
        (has_rule && (unready || !vouched(rules))).then(|| Doubt {
            object: live.reference(&group_kind),
            uid: live.uid.clone(),
            version: Version::of(&live.resource_version),
            rules: rules.clone(),
        })
    }

    /// A whole kind as it was listed, when the server could not say what happened since.
    pub(super) fn listed(
        &mut self,
        id: u32,
        listed: &LiveObjects,
        vouched: impl Fn(&LiveObject, &ReadinessRules) -> bool,
    ) -> News {
        let mut news = News::default();
        let Some(kind) = self.table.kind_mut(id) else {
            return news;
        };
        kind.known_up_to = Version::NONE;
        let mut missing: HashMap<u64, ()> = kind.objects.iter().map(|tracked| (tracked.place, ())).collect();
        let departed: Vec<Key> = self.departed.keys().filter(|key| key.0 == id).copied().collect();
        let mut there: Vec<u64> = Vec::with_capacity(listed.len());
        for live in listed.values() {
            let place = place_of(live);
            missing.remove(&place);
            there.push(place);
            let seen = self.take(id, live, false, |rules| vouched(live, rules));
            news.alarm |= seen.alarm;
            news.doubt |= seen.doubt;
        }
        there.sort_unstable();
        for key in departed {
            let known = self.table.kind(id).and_then(|kind| kind.find(key.1)).is_some();
            if !known && there.binary_search(&key.1).is_err() {
                self.departed.remove(&key);
            }
        }
        for place in missing.into_keys() {
            let Some(kind) = self.table.kind(id) else { continue };
            let Some(departure) = kind.find(place).and_then(|tracked| tracked.mark.departs(None)) else {
                continue;
            };
            // Its name is not remembered, only that there was one.
            let object = ObjectRef {
                group: kind.resource.kind.group.clone(),
                kind: kind.resource.kind.kind.clone(),
                namespace: kind.namespace().map(str::to_owned),
                name: "(one of them)".to_owned(),
            };
            let why = match kind.chosen {
                Chosen::Parents => Why::Parent(object),
                _ => Why::Differs(departure.of(object)),
            };
            news.alarm |= self.depart((id, place), why, Version::NONE, None).alarm;
        }
        news
    }

    /// The whole kind is no longer served, or may not be watched any more.
    pub(super) fn is_lost(&mut self, id: u32) -> News {
        self.listed(id, &LiveObjects::new(), |_, _| true)
    }

    fn depart(&mut self, key: Key, why: Why, version: Version, live: Option<&LiveObject>) -> News {
        let now = Instant::now();
        let known = self.departed.get(&key);
        // Not told yet, or just now: whoever looks sees this, too.
        let is_old_news = known.is_some_and(|known| {
            matches!(known.why, Why::NotReady) == matches!(why, Why::NotReady)
                && known
                    .told
                    .is_none_or(|told| now.duration_since(told) < TOLD_ONCE_WITHIN)
        });
        if let Some(known) = self.departed.get_mut(&key).filter(|_| is_old_news) {
            known.why = why;
            known.version = version;
            return News::default();
        }
        let delay = match why {
            Why::Differs(_) => self.delay(key, now, &why, live),
            Why::NotReady | Why::Parent(_) => Duration::ZERO,
        };
        self.departed.insert(
            key,
            Departed {
                why,
                version,
                tell_at: now + delay,
                told: None,
            },
        );
        News {
            alarm: true,
            ..News::default()
        }
    }

    /// How long an object that departed so often is not told.
    fn delay(&mut self, key: Key, now: Instant, why: &Why, live: Option<&LiveObject>) -> Duration {
        if self.fought.len() >= FOUGHT_MAX && !self.fought.contains_key(&key) {
            self.fought.clear();
        }
        let (times, last) = self.fought.entry(key).or_insert((0, now));
        if now.duration_since(*last) > FOUGHT_WITHIN {
            *times = 0;
        }
        *times = times.saturating_add(1);
        *last = now;
        let beyond = times.saturating_sub(AT_ONCE);
        if beyond == 0 {
            return Duration::ZERO;
        }
        let delay = DELAY_FIRST
            .saturating_mul(2_u32.saturating_pow(beyond - 1))
            .min(DELAY_LONGEST);
        if beyond == 1 {
            let by = live
                .map(LiveObject::other_managers)
                .unwrap_or_default()
                .join(", ");
            if let Why::Differs(difference) = why {
                tracing::warn!(%difference, by, "an object is changed each time it is put right: it is put right later from now on");
            }
        }
        delay
    }

    /// Whether some component is being worked on, as far as its record shows: its objects are judged by whoever does that.
    fn is_worked_on(&self) -> bool {
        self.departed
            .values()
            .any(|departed| matches!(departed.why, Why::Parent(_)))
    }

    /// At most `most` objects whose readiness is to be judged now.
    pub(super) fn doubts(&self, most: usize) -> Vec<(Key, Doubt)> {
        if self.is_worked_on() {
            return Vec::new();
        }
        self.doubts
            .iter()
            .take(most)
            .map(|(key, doubt)| (*key, doubt.clone()))
            .collect()
    }

    /// The verdict on an object whose readiness was in doubt: whether it is ready; none when it could not be asked for.
    pub(super) fn judged(&mut self, key: Key, doubt: &Doubt, ready: bool) -> News {
        let same = |known: &Doubt| known.version == doubt.version;
        if !self.doubts.get(&key).is_some_and(same) {
            // Written again meanwhile, or found by a check.
            return News::default();
        }
        self.doubts.remove(&key);
        let known_unready = self
            .departed
            .get(&key)
            .is_some_and(|known| known.why == Why::NotReady);
        match (ready, known_unready) {
            (true, true) => {
                self.departed.remove(&key);
                self.recovered = true;
                News {
                    alarm: true,
                    ..News::default()
                }
            }
            (false, false) if !self.departed.contains_key(&key) => {
                self.depart(key, Why::NotReady, doubt.version, None)
            }
            _ => News::default(),
        }
    }

    /// The resource of a kind, to ask for one of its objects.
    pub(super) fn resource(&self, key: Key) -> Option<std::sync::Arc<crate::Resource>> {
        self.table.kind(key.0).map(|kind| kind.resource.clone())
    }

    /// What is to be told now; else when something will be, if that is known.
    pub(super) fn take_alarm(&mut self) -> Result<Alarm, Option<Instant>> {
        let now = Instant::now();
        let mut alarm = Alarm {
            departures: Vec::new(),
            count: 0,
            readiness: std::mem::take(&mut self.recovered),
            check: self.check,
        };
        let mut any = alarm.readiness;
        let mut next: Option<Instant> = None;
        for departed in self
            .departed
            .values_mut()
            .filter(|departed| departed.told.is_none())
        {
            if departed.tell_at > now {
                next = Some(next.map_or(departed.tell_at, |next| next.min(departed.tell_at)));
                continue;
            }
            departed.told = Some(now);
            any = true;
            let difference = match &departed.why {
                Why::Differs(difference) => difference.clone(),
                Why::Parent(object) => Difference::Changed(object.clone()),
                Why::NotReady => {
                    alarm.readiness = true;
                    continue;
                }
            };
            alarm.count += 1;
            if alarm.departures.len() < Alarm::TOLD_MAX {
                alarm.departures.push(difference);
            }
        }
        if any { Ok(alarm) } else { Err(next) }
    }

    /// Everything that departs is to be told again.
    pub(super) fn untell(&mut self) {
        for departed in self.departed.values_mut() {
            departed.told = None;
        }
    }

    /// How many bytes it takes on the heap.
    pub(super) fn bytes(&self) -> usize {
        let departed = self.departed.capacity() * (size_of::<Key>() + size_of::<Departed>());
        let doubts = self.doubts.capacity() * (size_of::<Key>() + size_of::<Doubt>());
        let fought = self.fought.capacity() * size_of::<(Key, (u32, Instant))>();
        self.table.heap_bytes() + departed + doubts + fought
    }
}

fn place_of(live: &LiveObject) -> u64 {
    place(
        live.namespace.as_deref().filter(|name| !name.is_empty()),
        &live.name,
    )
}

fn why(kind: &KindTable, departure: Departure, live: &LiveObject) -> Why {
    let object = live.reference(&kind.resource.kind.group_kind());
    match kind.chosen {
        Chosen::Parents => Why::Parent(object),
        Chosen::Members(_) | Chosen::Shared(_) => Why::Differs(departure.of(object)),
    }
}
