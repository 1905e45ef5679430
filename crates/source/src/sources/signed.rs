//! Charts that must be signed: checked before they are parsed, and again when their keys change.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use evenkeel_core::{Digest, SourceRef};
use jiff::Timestamp;

use super::Sources;
use crate::helm::provenance::{signed_by, verify};
use crate::remote::{Provenance, RemoteSource, Resolution};
use crate::signatures::Keys;
use crate::{Cache, Error, Remote, Signatures};

/// How many accepted signatures are remembered.
const ACCEPTED_KEPT: usize = 4096;
/// How long one is: keys expire.
const ACCEPTED_FOR: Duration = Duration::from_secs(10 * 60);

/// The rules about signatures, and what was accepted by them.
#[derive(Debug)]
pub(super) struct Signed {
    rules: Arc<Signatures>,
    accepted: Cache<Digest, Timestamp>,
}

impl Signed {
    pub(super) fn new(rules: Arc<Signatures>) -> Self {
        Self {
            rules,
            accepted: Cache::new(ACCEPTED_KEPT),
        }
    }
}

impl Sources {
    /// The keys that a source must be signed by; none when it needs no signature.
    ///
    /// # Errors
    /// [`Error::Unsigned`] when it is not to be used at all.
    pub(super) fn keys(&self, source: &SourceRef) -> Result<Option<Arc<Keys>>, Error> {
        match &self.signed {
            Some(signed) => signed.rules.keys(source),
            None => Ok(None),
        }
    }

    /// Refuses a chart that none of `keys` signed. Costs no request while it was accepted lately.
    ///
    /// # Errors
    /// [`Error::Signature`]; what asking a host that is down fails with.
    pub(super) async fn check_signature(
        &self,
        remote: &Remote,
        source: &RemoteSource,
        resolution: &Resolution,
        keys: &Arc<Keys>,
    ) -> Result<(), Error> {
        let Some(signed) = &self.signed else {
            return Ok(());
        };
        let parts = [source.key(), &resolution.digest, &keys.digest];
        let key = Digest::of_parts(parts.map(|part| part.as_bytes()));
        let now = self.clock.now();
        let is_recent = |since: &Timestamp| {
            Duration::try_from(now.duration_since(*since)).is_ok_and(|age| age < ACCEPTED_FOR)
        };
        if signed.accepted.get(&key).is_some_and(|since| is_recent(&since)) {
            return Ok(());
        }
        let archive = remote.archive(source, resolution).await?;
        if let Some(known) = remote.known_provenance(source, resolution).await
            && self.judge(&archive, &known, keys, now).await?.is_ok()
        {
            signed.accept(key, now);
            return Ok(());
        }
        // None is known, or one that does not hold: there may be a better one by now.
        let refused = |file: String, problem: String| Error::Signature {
            chart: format!("{source} ({})", resolution.version),
            file,
            keyring: keys.path.clone(),
            problem,
        };
        let fetched = remote.fetch_provenance_of(source, resolution, &archive).await;
        let found = fetched.map_err(|(place, error)| match error {
            error if error.is_transient() => error,
            error => refused(place, format!("its signature cannot be obtained: {error}")),
        })?;
        match self.judge(&archive, &found, keys, now).await? {
            Ok(()) => {
                signed.accept(key, now);
                Ok(())
            }
            Err(problem) => {
                let by = signed_by(&found.text).map(|keys| format!(" (signed by key {keys})"));
                let problem = format!(
                    "its signature is not accepted: {problem}{}",
                    by.unwrap_or_default()
                );
                Err(refused(found.place, problem))
            }
        }
    }

    /// Why a signature does not hold, if so.
    async fn judge(
        &self,
        archive: &Bytes,
        provenance: &Provenance,
        keys: &Arc<Keys>,
        now: Timestamp,
    ) -> Result<Result<(), String>, Error> {
        let name = provenance.archive.clone();
        let (archive, provenance, keys) = (archive.clone(), provenance.clone(), Arc::clone(keys));
        self.blocking(name, move || {
            let judged = verify(
                &archive,
                &provenance.archive,
                &provenance.text,
                &keys.keyring,
                now.as_second(),
            );
            Ok(judged.map_err(|error| error.to_string()))
        })
        .await
    }
}

impl Signed {
    fn accept(&self, key: Digest, now: Timestamp) {
        self.accepted.remove(&key);
        self.accepted.insert(key, Arc::new(now));
    }
}
