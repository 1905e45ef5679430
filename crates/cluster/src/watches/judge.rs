//! Readiness of what was written: judged again, one GET each, once it is quiet for a moment.

use std::sync::Arc;

use evenkeel_core::ObjectRef;
use futures::stream::StreamExt as _;
use tokio::time::sleep;

use super::DriftWatch;
use super::follow::Never;
use super::state::{Doubt, Key};
use crate::concurrent::as_they_come;
use crate::{Error, Resource};

/// How many objects are judged before others may have a turn.
const AT_ONCE: usize = 64;

impl DriftWatch {
    /// Judges what is in doubt, for ever.
    pub(super) async fn judge_doubts(&self) -> Never {
        loop {
            self.shared.doubts.notified().await;
            loop {
                sleep(self.shared.options.judge_after).await;
                let doubts = self.state().doubts(AT_ONCE);
                if doubts.is_empty() {
                    break;
                }
                self.judge_all(doubts).await;
            }
        }
    }

    async fn judge_all(&self, doubts: Vec<(Key, Doubt)>) {
        let with_resource: Vec<(Key, Doubt, Arc<Resource>)> = {
            let state = self.state();
            doubts
                .into_iter()
                .filter_map(|(key, doubt)| Some((key, doubt, state.resource(key)?)))
                .collect()
        };
        let at_once = self.cluster().limits().in_flight;
        let judged: Vec<(Key, Doubt, Result<bool, Error>)> =
            as_they_come(with_resource, at_once, |(key, doubt, resource)| {
                Box::pin(async move {
                    let ready = self.is_ready(&resource, &doubt.object, &doubt).await;
                    (key, doubt, ready)
                })
            })
            .collect()
            .await;
        for (key, doubt, ready) in judged {
            // What cannot be asked for is not known to be ready: a check has to see.
            let ready = ready.unwrap_or_else(|error| {
                tracing::debug!(%error, object = %doubt.object, "readiness cannot be judged");
                false
            });
            let news = self.state().judged(key, &doubt, ready);
            self.tell(news);
        }
    }

    async fn is_ready(
        &self,
        resource: &Arc<Resource>,
        object: &ObjectRef,
        doubt: &Doubt,
    ) -> Result<bool, Error> {
        let unready = self
            .cluster()
            .judge_object(&doubt.rules, resource, object, &doubt.uid)
            .await?;
        Ok(unready.is_none())
    }
}
