//! Troubles that a cluster can be told to have.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What goes wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Answered as usual, but later.
    Latency(Duration),
    /// 429 with Retry-After.
    TooManyRequests {
        /// How long the client should wait; whole seconds are sent.
        retry_after: Duration,
    },
    /// 503.
    Unavailable {
        /// Sent as Retry-After.
        retry_after: Option<Duration>,
    },
    /// 500 without a reason.
    InternalError,
    /// 403, as if the token's user had no such right.
    Forbidden,
    /// Never answered; the connection stays open.
    Hang,
    /// The connection is closed without an answer.
    Disconnect,
}

/// Which requests a fault meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultRule {
    /// What happens.
    pub fault: Fault,
    /// Verbs that it happens to (`get`, `list`, `patch`…); empty means all.
    pub verbs: Vec<String>,
    /// Resources that it happens to, as in [`Counts`](crate::Counts); empty means all.
    pub resources: Vec<String>,
    /// How many requests it happens to; `None` means all from now on.
    pub times: Option<u32>,
}

impl FaultRule {
    /// A rule for every request from now on.
    pub fn always(fault: Fault) -> Self {
        Self {
            fault,
            verbs: Vec::new(),
            resources: Vec::new(),
            times: None,
        }
    }

    /// Only for these verbs.
    #[must_use]
    pub fn verbs(mut self, verbs: &[&str]) -> Self {
        self.verbs = verbs.iter().map(|verb| (*verb).to_owned()).collect();
        self
    }

    /// Only for these resources.
    #[must_use]
    pub fn resources(mut self, resources: &[&str]) -> Self {
        self.resources = resources.iter().map(|resource| (*resource).to_owned()).collect();
        self
    }

    /// Only for the next `times` requests that it meets.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    fn meets(&self, verb: &str, resource: &str) -> bool {
        (self.verbs.is_empty() || self.verbs.iter().any(|name| name == verb))
            && (self.resources.is_empty() || self.resources.iter().any(|name| name == resource))
    }
}

/// The faults of one cluster. Rules are tried in the order they were added; the first that meets a request decides.
#[derive(Debug, Default)]
pub struct Faults {
    rules: Mutex<Vec<FaultRule>>,
}

impl Faults {
    /// Adds a rule.
    pub fn add(&self, rule: FaultRule) {
        self.rules
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(rule);
    }

    /// Makes the whole cluster unreachable (connections close without an answer), or reachable again. Other rules stay.
    pub fn unreachable(&self, unreachable: bool) {
        let rule = FaultRule::always(Fault::Disconnect);
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.retain(|known| *known != rule);
        if unreachable {
            rules.insert(0, rule);
        }
    }

    /// Forgets all rules.
    pub fn clear(&self) {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The fault that a request meets; uses up rules that hold for a number of times.
    pub(crate) fn next(&self, verb: &str, resource: &str) -> Option<Fault> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let position = rules
            .iter()
            .position(|rule| rule.meets(verb, resource) && rule.times != Some(0))?;
        let rule = rules.get_mut(position)?;
        let fault = rule.fault.clone();
        if let Some(times) = rule.times.as_mut() {
            *times -= 1;
            if *times == 0 {
                rules.remove(position);
            }
        }
        Some(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_meet_their_requests_and_run_out() {
        let faults = Faults::default();
        faults.add(
            FaultRule::always(Fault::Forbidden)
                .verbs(&["patch"])
                .resources(&["secrets"])
                .times(2),
        );
        assert_eq!(faults.next("get", "secrets"), None);
        assert_eq!(faults.next("patch", "secrets"), Some(Fault::Forbidden));
        assert_eq!(faults.next("patch", "secrets"), Some(Fault::Forbidden));
        assert_eq!(faults.next("patch", "secrets"), None);
    }

    #[test]
    fn unreachable_comes_first_and_goes_again() {
        let faults = Faults::default();
        faults.add(FaultRule::always(Fault::InternalError));
        faults.unreachable(true);
        assert_eq!(faults.next("get", "pods"), Some(Fault::Disconnect));
        faults.unreachable(false);
        assert_eq!(faults.next("get", "pods"), Some(Fault::InternalError));
    }
}
