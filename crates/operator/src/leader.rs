//! Who of several processes works: whoever holds a Lease. The predecessor uses the same one, so that old and new never run
//! together.

mod fence;

use std::time::Duration;

use evenkeel_core::Clock;
use evenkeel_steps::{Failure, FailureClass};
use evenkeel_telemetry::CancellationToken;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use serde_json::json;
use tokio::time::Instant;
use tracing::{info, warn};

pub(crate) use fence::Fence;

use crate::Error;
use crate::frame::Access;

/// Name of the Lease.
const LEASE: &str = "9b76ddd4.syn.tools";

/// How long a holder that gives no sign of life keeps it.
const DURATION: Duration = Duration::from_secs(15);

/// How long we go on without having renewed it: less, so that we have stopped before another one begins.
const RENEW_WITHIN: Duration = Duration::from_secs(10);

/// How often it is renewed, or looked at.
const PERIOD: Duration = Duration::from_secs(2);

/// A candidate for the Lease.
pub(crate) struct Candidate {
    access: Access,
    namespace: String,
    identity: String,
    clock: std::sync::Arc<dyn Clock>,
    fence: Fence,
    /// The last sign of life of another holder, and when we saw it: clocks of different machines are not compared.
    seen: Option<(String, Instant)>,
}

impl Candidate {
    pub(crate) fn new(
        access: Access,
        namespace: String,
        identity: String,
        clock: std::sync::Arc<dyn Clock>,
    ) -> Self {
        Self {
            access,
            namespace,
            identity,
            clock,
            fence: Fence::default(),
            seen: None,
        }
    }

    /// What those ask who work while the Lease is ours.
    pub(crate) fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// Waits until the Lease is ours. False if `token` was cancelled before.
    pub(crate) async fn win(&mut self, token: &CancellationToken) -> bool {
        loop {
            let began = Instant::now();
            match self.try_hold().await {
                Ok(true) => {
                    self.fence.hold_until(began + RENEW_WITHIN);
                    info!(namespace = self.namespace, lease = LEASE, "we lead");
                    return true;
                }
                Ok(false) => {}
                Err(failure) => warn!(%failure, "the lease cannot be had"),
            }
            if sleep(token).await {
                return false;
            }
        }
    }

    /// Keeps the Lease until `token` is cancelled.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] when it could not be renewed in time: another one may hold it.
    pub(crate) async fn hold(&mut self, token: &CancellationToken) -> Result<(), Error> {
        let mut renewed = Instant::now();
        while !sleep(token).await {
            let began = Instant::now();
            let left = RENEW_WITHIN.saturating_sub(renewed.elapsed());
            match tokio::time::timeout(left, self.try_hold()).await {
                Ok(Ok(true)) => {
                    renewed = began;
                    self.fence.hold_until(began + RENEW_WITHIN);
                }
                Ok(Ok(false)) => {
                    return Err(Error::LeaseLost { lease: LEASE });
                }
                Ok(Err(failure)) => warn!(%failure, "the lease cannot be renewed"),
                Err(_) => return Err(Error::LeaseLost { lease: LEASE }),
            }
        }
        Ok(())
    }

    /// Gives the Lease back, so that the next one need not wait.
    pub(crate) async fn release(&self) {
        let released = async {
            let Some(lease) = self.access.find::<Lease>(&self.namespace, LEASE).await? else {
                return Ok(());
            };
            if holder(&lease) != Some(&self.identity) {
                return Ok(());
            }
            let fields = json!({
                "metadata": { "resourceVersion": lease.resource_version() },
                "spec": { "holderIdentity": "", "leaseDurationSeconds": 1 },
            });
            self.access
                .merge::<Lease>(&self.namespace, LEASE, &fields)
                .await
                .map(drop)
        };
        if let Err::<(), Failure>(failure) = released.await {
            warn!(%failure, "the lease cannot be given back");
        }
    }

    /// Takes or renews the Lease if that may be. Whether it is ours now.
    async fn try_hold(&mut self) -> Result<bool, Failure> {
        let lease = self.access.find::<Lease>(&self.namespace, LEASE).await?;
        let now = MicroTime(self.clock.now());
        let Some(lease) = lease else {
            let lease = Lease {
                metadata: ObjectMeta {
                    name: Some(LEASE.to_owned()),
                    namespace: Some(self.namespace.clone()),
                    ..ObjectMeta::default()
                },
                spec: Some(LeaseSpec {
                    holder_identity: Some(self.identity.clone()),
                    lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
                    acquire_time: Some(now.clone()),
                    renew_time: Some(now),
                    lease_transitions: Some(0),
                    ..LeaseSpec::default()
                }),
            };
            return faster(self.access.create(&self.namespace, &lease).await);
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let is_ours = holder(&lease) == Some(&self.identity);
        if !is_ours && holder(&lease).is_some_and(|holder| !holder.is_empty()) && !self.is_over(&lease, &spec)
        {
            return Ok(false);
        }
        let mut fields = json!({
            "metadata": { "resourceVersion": lease.resource_version() },
            "spec": {
                "holderIdentity": self.identity, "leaseDurationSeconds": DURATION.as_secs(), "renewTime": now,
            },
        });
        if !is_ours {
            fields["spec"]["acquireTime"] = json!(now);
            fields["spec"]["leaseTransitions"] =
                json!(spec.lease_transitions.unwrap_or_default().saturating_add(1));
        }
        faster(self.access.merge::<Lease>(&self.namespace, LEASE, &fields).await)
    }

    /// Whether another holder has given no sign of life for as long as it said it would.
    fn is_over(&mut self, lease: &Lease, spec: &LeaseSpec) -> bool {
        let sign = lease.resource_version().unwrap_or_default();
        let seconds = spec
            .lease_duration_seconds
            .and_then(|seconds| u64::try_from(seconds).ok());
        let duration = seconds.map_or(DURATION, Duration::from_secs);
        match &self.seen {
            Some((known, since)) if *known == sign => since.elapsed() >= duration,
            _ => {
                self.seen = Some((sign, Instant::now()));
                false
            }
        }
    }
}

fn holder(lease: &Lease) -> Option<&String> {
    lease.spec.as_ref()?.holder_identity.as_ref()
}

/// Another candidate may have been faster: that is no error.
fn faster<T>(written: Result<T, Failure>) -> Result<bool, Failure> {
    match written {
        Ok(_) => Ok(true),
        Err(failure) if failure.class() == FailureClass::Conflict => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// Waits for the next look. Whether `token` was cancelled.
async fn sleep(token: &CancellationToken) -> bool {
    tokio::time::timeout(PERIOD, token.cancelled()).await.is_ok()
}
