//! Takes up what changes in the key ring, and encrypts again what older keys have encrypted (K17).

use std::sync::Arc;
use std::time::Duration;

use evenkeel_inventory::{Error, KEYS_REFRESH, KeyAgreement, Reencrypted, reencrypt_all};
use evenkeel_telemetry::CancellationToken;

use crate::fleet::Inner;
use crate::requests::warn_of;

/// The pause after a pass that found nothing it could not do: what calls under way still write under the old key is found
/// by the next one.
const CLEAN_PAUSE: Duration = Duration::from_secs(60);
/// The pause before values that could not be encrypted again are looked at once more: nobody mends them soon.
const UNREADABLE_PAUSE: Duration = Duration::from_secs(60 * 60);

/// Keeps to the ring. Every process does: what one has done the others find done.
///
/// # Errors
/// None: a ring that cannot be read leaves the keys in use.
pub(crate) async fn serve(
    inner: Arc<Inner>,
    stop: CancellationToken,
) -> Result<(), std::convert::Infallible> {
    let mut said = None;
    let mut not_before = inner.clock.now();
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(KEYS_REFRESH) => {}
        }
        match inner.store.refresh_keys().await {
            Ok(agreement) => {
                if said.as_ref() != Some(&agreement) {
                    tell(&agreement);
                    // A key that has just taken another's place is reason enough to look again.
                    not_before = inner.clock.now();
                }
                if agreement.leftovers && not_before <= inner.clock.now() {
                    not_before = match encrypt_again(&inner, &stop).await {
                        Ok(pass) if pass.unreadable > 0 => {
                            crate::pause::after(inner.clock.now(), UNREADABLE_PAUSE)
                        }
                        Ok(pass) if pass.is_clean() => crate::pause::after(inner.clock.now(), CLEAN_PAUSE),
                        Ok(_) => inner.clock.now(),
                        Err(error) => {
                            tracing::warn!(%error, "values under an older key are encrypted again later");
                            inner.clock.now()
                        }
                    };
                }
                said = Some(agreement);
            }
            Err(error) if error.is_transient() => tracing::debug!(%error, "the key ring is compared later"),
            Err(error) => tracing::error!(%error, "the key ring cannot be taken up; the keys in use stay so"),
        }
    }
}

fn tell(agreement: &KeyAgreement) {
    if let Some(wanted) = agreement.wanted {
        let waiting_for = agreement.waiting_for.join(", ");
        tracing::info!(key = %wanted, waiting_for, "a key becomes active once these processes hold it");
    }
}

/// One pass, which ends with the process.
async fn encrypt_again(inner: &Inner, stop: &CancellationToken) -> Result<Reencrypted, Error> {
    let pass = reencrypt_all(&*inner.store, inner.clock.now(), |_| !stop.is_cancelled()).await?;
    if pass.changed > 0 {
        tracing::info!(values = pass.changed, "encrypted again under the active key");
    }
    warn_of(&pass.named);
    Ok(pass)
}
