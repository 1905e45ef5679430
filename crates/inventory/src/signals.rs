//! "Something changed", inside the process: whoever waits for work starts within microseconds and never polls.

use tokio::sync::watch;

/// What may have changed. A signal says only "look again": it carries nothing and may come once for many changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// A cluster became due, or its due time changed.
    ClusterDue,
    /// An operation may be claimable.
    OperationReady,
    /// A running operation was asked to stop.
    OperationStop,
    /// An operation reached a final state.
    OperationSettled,
    /// A cluster's record, configuration or status changed.
    ClusterChanged,
    /// A setting was set or taken back.
    SettingChanged,
    /// A process began, begins to end, or has ended.
    InstancesChanged,
}

impl Signal {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::ClusterDue,
        Self::OperationReady,
        Self::OperationStop,
        Self::OperationSettled,
        Self::ClusterChanged,
        Self::SettingChanged,
        Self::InstancesChanged,
    ];
}

/// The signals of one store. Sent only after the transaction that caused them was committed.
#[derive(Debug)]
pub struct Signals {
    due: watch::Sender<u64>,
    ready: watch::Sender<u64>,
    stop: watch::Sender<u64>,
    settled: watch::Sender<u64>,
    changed: watch::Sender<u64>,
    setting: watch::Sender<u64>,
    instances: watch::Sender<u64>,
}

impl Default for Signals {
    fn default() -> Self {
        let sender = || watch::Sender::new(0);
        Self {
            due: sender(),
            ready: sender(),
            stop: sender(),
            settled: sender(),
            changed: sender(),
            setting: sender(),
            instances: sender(),
        }
    }
}

impl Signals {
    fn sender(&self, signal: Signal) -> &watch::Sender<u64> {
        match signal {
            Signal::ClusterDue => &self.due,
            Signal::OperationReady => &self.ready,
            Signal::OperationStop => &self.stop,
            Signal::OperationSettled => &self.settled,
            Signal::ClusterChanged => &self.changed,
            Signal::SettingChanged => &self.setting,
            Signal::InstancesChanged => &self.instances,
        }
    }

    /// Listens to one kind. Changes before this call are not seen: subscribe first, then look.
    pub fn subscribe(&self, signal: Signal) -> Subscription {
        Subscription(self.sender(signal).subscribe())
    }

    /// Says that `signal` may have happened. Stores call it; tests may.
    pub fn send(&self, signal: Signal) {
        self.sender(signal)
            .send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// One listener of one kind of signal.
#[derive(Clone, Debug)]
pub struct Subscription(watch::Receiver<u64>);

impl Subscription {
    /// Waits until the signal came at least once since the last call; many come as one. Cancel safe.
    ///
    /// Returns `false` when the store is gone and no signal will ever come again.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn many_signals_arrive_as_one() {
        let signals = Signals::default();
        for kind in Signal::ALL {
            let mut subscription = signals.subscribe(kind);
            signals.send(kind);
            signals.send(kind);
            assert!(subscription.changed().await);
            assert!(
                !subscription.0.has_changed().expect("the sender lives"),
                "{kind:?}"
            );
        }
        let mut subscription = signals.subscribe(Signal::ClusterDue);
        drop(signals);
        assert!(!subscription.changed().await);
    }
}
