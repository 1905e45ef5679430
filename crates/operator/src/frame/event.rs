//! Events: told when what people see of an object changes, and only then.

use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Resource, ResourceExt as _};
use tracing::debug;

use super::ORPHAN;
use super::condition::{DELETION_BLOCKED, READY};
use crate::resources::{Condition, ConditionStatus};

/// How much of a message an event takes.
const NOTE_BYTES: usize = 1000;

/// Tells events.
pub(crate) struct Events(Recorder);

impl Events {
    pub(crate) fn new(client: Client, controller: &str) -> Self {
        let reporter = Reporter {
            controller: controller.to_owned(),
            instance: None,
        };
        Self(Recorder::new(client, reporter))
    }

    /// Tells that an object was let go although what is outside could not be looked after.
    pub(crate) async fn orphaned<K: Resource<DynamicType = ()>>(&self, object: &K) {
        let event = Event {
            type_: EventType::Warning,
            reason: "Orphaned".to_owned(),
            note: Some(format!(
                "the annotation {ORPHAN} let it go: what is outside stays as it is"
            )),
            action: "Release".to_owned(),
            secondary: None,
        };
        self.publish(object, event).await;
    }

    async fn publish<K: Resource<DynamicType = ()>>(&self, object: &K, event: Event) {
        if let Err(error) = self.0.publish(&event, &object.object_ref(&())).await {
            debug!(object = object.name_any(), %error, "an event cannot be told");
        }
    }

    /// Tells what changed from one set of conditions to the next. An event that cannot be told stops nothing.
    pub(crate) async fn transitions<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        before: &[Condition],
        after: &[Condition],
    ) {
        for condition in after {
            let was = before
                .iter()
                .find(|earlier| earlier.kind == condition.kind)
                .map(|earlier| earlier.status);
            if was == Some(condition.status) {
                continue;
            }
            let Some(type_) = weight(condition, was) else {
                continue;
            };
            let mut note = format!("{} is {:?}", condition.kind, condition.status);
            if !condition.message.is_empty() {
                note.push_str(": ");
                note.push_str(&condition.message);
            }
            note.truncate(note.floor_char_boundary(NOTE_BYTES));
            let event = Event {
                type_,
                reason: format!("{}{}", condition.kind, condition.reason),
                note: Some(note),
                action: "Reconcile".to_owned(),
                secondary: None,
            };
            self.publish(object, event).await;
        }
    }
}

/// Whether a transition is an event, and of which type.
fn weight(condition: &Condition, was: Option<ConditionStatus>) -> Option<EventType> {
    let is_bad = match condition.kind.as_str() {
        DELETION_BLOCKED => condition.status == ConditionStatus::True,
        READY if condition.reason == "Deleting" => return Some(EventType::Normal),
        _ => condition.status == ConditionStatus::False,
    };
    if is_bad {
        return Some(EventType::Warning);
    }
    // That all is well is told of the whole, and of a part that was not.
    let is_good = condition.kind == READY && condition.status == ConditionStatus::True;
    (is_good || was == Some(ConditionStatus::False) && condition.status == ConditionStatus::True)
        .then_some(EventType::Normal)
}
