//! Jobs run pods until enough have succeeded, or too many failed.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{is_deleting, is_true, key_of, pod_from_template, set_condition};
use crate::clock::{format_seconds, parse_seconds};
use crate::json::{at, number, remove, set, text};
use crate::object::Key;
use crate::state::{State, random_suffix};
use crate::status::ApiError;
use crate::work::Item;

impl State {
    pub(super) fn reconcile_job(&mut self, key: &Key, now: Instant) -> Result<(), ApiError> {
        let Some((_, job)) = self.read("batch", "jobs", key) else {
            return Ok(());
        };
        if is_deleting(&job) {
            return Ok(());
        }
        if is_true(&job, "Complete") || is_true(&job, "Failed") {
            return self.expire_job(key, &job, now);
        }
        let uid = text(&job, &["metadata", "uid"]).to_owned();
        let suspended = at(&job, &["spec", "suspend"]).and_then(Value::as_bool) == Some(true);
        let pods = self.owned("", "pods", &key.namespace, &uid);
        let in_phase = |phase: &str| {
            pods.iter()
                .filter(|pod| text(pod, &["status", "phase"]) == phase)
                .count()
        };
        let (succeeded, failed) = (in_phase("Succeeded"), in_phase("Failed"));
        let active: Vec<&Value> = pods
            .iter()
            .filter(|pod| !super::is_finished(pod) && !is_deleting(pod))
            .collect();
        let parallelism = usize::try_from(number(&job, &["spec", "parallelism"]).unwrap_or(1)).unwrap_or(1);
        let completions = number(&job, &["spec", "completions"]).and_then(|n| usize::try_from(n).ok());
        let limit = usize::try_from(number(&job, &["spec", "backoffLimit"]).unwrap_or(6)).unwrap_or(6);
        let time = format_seconds(self.now_seconds());
        if suspended {
            for pod in &active {
                self.remove_object("", "pods", &key_of(pod))?;
            }
            return self.write_status("batch", "jobs", key, |job| {
                set_condition(job, &time, "Suspended", "True", "JobSuspended", "Job suspended");
                remove(job, &["status", "startTime"]);
                remove(job, &["status", "active"]);
            });
        }
        let begun = parse_seconds(text(&job, &["status", "startTime"])).unwrap_or_else(|| self.now_seconds());
        let too_late = match number(&job, &["spec", "activeDeadlineSeconds"]) {
            None => false,
            Some(deadline) => {
                let left = begun + deadline - self.now_seconds();
                if left > 0 {
                    let wait = Duration::from_secs(u64::try_from(left).unwrap_or(1));
                    self.work.push_at(now + wait, Item::Job(key.clone()));
                }
                left <= 0
            }
        };
        // Without a number of completions one success is enough, once nothing runs any more.
        let done = match completions {
            Some(wanted) => succeeded >= wanted,
            None => succeeded > 0 && active.is_empty(),
        };
        let verdict = if done {
            Some((
                "Complete",
                "CompletionsReached",
                "Reached expected number of succeeded pods",
            ))
        } else if failed > limit {
            Some((
                "Failed",
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit",
            ))
        } else if too_late {
            Some((
                "Failed",
                "DeadlineExceeded",
                "Job was active longer than specified deadline",
            ))
        } else {
            None
        };
        let mut running = active.len();
        match verdict {
            Some(_) => {
                for pod in &active {
                    self.remove_object("", "pods", &key_of(pod))?;
                }
                running = 0;
            }
            None => {
                let left = completions.map_or(parallelism, |wanted| wanted.saturating_sub(succeeded));
                let left = if completions.is_none() && succeeded > 0 {
                    0
                } else {
                    left
                };
                for _ in active.len()..parallelism.min(left) {
                    let mut pod = pod_from_template(&job, "batch/v1", "Job", &[]);
                    set(
                        &mut pod,
                        &["metadata", "name"],
                        format!("{}-{}", key.name, random_suffix()),
                    );
                    set(&mut pod, &["metadata", "generateName"], format!("{}-", key.name));
                    self.seed("", "pods", &key.namespace, pod);
                    running += 1;
                }
            }
        }
        let ready = active.iter().filter(|pod| is_true(pod, "Ready")).count();
        self.write_status("batch", "jobs", key, |job| {
            crate::json::set_missing(job, &["status", "startTime"], time.as_str());
            crate::json::set_missing(job, &["status", "uncountedTerminatedPods"], json!({}));
            for (field, count) in [
                ("active", running),
                ("ready", ready),
                ("succeeded", succeeded),
                ("failed", failed),
            ] {
                set(job, &["status", field], count);
            }
            if is_true(job, "Suspended") {
                set_condition(job, &time, "Suspended", "False", "JobResumed", "Job resumed");
            }
            if let Some((kind, reason, message)) = verdict {
                let first = if kind == "Complete" {
                    "SuccessCriteriaMet"
                } else {
                    "FailureTarget"
                };
                set_condition(job, &time, first, "True", reason, message);
                set_condition(job, &time, kind, "True", reason, message);
                for condition in crate::json::items_mut(job, &["status", "conditions"]) {
                    crate::json::set_missing(condition, &["lastProbeTime"], time.as_str());
                }
                set(job, &["status", "ready"], 0);
                if kind == "Complete" {
                    set(job, &["status", "completionTime"], time.as_str());
                }
            }
        })
    }

    /// Removes a finished job when its time to live is over.
    fn expire_job(&mut self, key: &Key, job: &Value, now: Instant) -> Result<(), ApiError> {
        let Some(ttl) = number(job, &["spec", "ttlSecondsAfterFinished"]) else {
            return Ok(());
        };
        let finished = crate::json::items(job, &["status", "conditions"])
            .iter()
            .filter(|condition| ["Complete", "Failed"].contains(&text(condition, &["type"])))
            .find_map(|condition| parse_seconds(text(condition, &["lastTransitionTime"])));
        let left = finished.unwrap_or(0) + ttl - self.now_seconds();
        if left > 0 {
            self.work.push_at(
                now + Duration::from_secs(u64::try_from(left).unwrap_or(1)),
                Item::Job(key.clone()),
            );
            return Ok(());
        }
        self.remove_object("batch", "jobs", key)
    }
}
