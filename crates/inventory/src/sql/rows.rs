//! Between rows and domain types. What does not fit is the error of its row.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use evenkeel_core::{DueReason, Sensitive};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use jiff::Timestamp;
use serde::de::IntoDeserializer as _;
use serde::de::value::Error as ValueError;
use serde::{Deserialize, Serialize};

use crate::Error;

/// A moment in the database's unit.
pub(crate) fn millis(at: Timestamp) -> i64 {
    at.as_millisecond()
}

/// A duration in the database's unit.
pub(crate) fn span(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A moment from the database's unit.
pub(crate) fn moment(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap_or(if millis < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    })
}

/// A number of ours in the database's type.
pub(crate) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of the database in ours, where it cannot be negative.
pub(crate) fn uint(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The lane of a reason: its place in order of urgency.
pub(crate) fn lane(reason: DueReason) -> i64 {
    match reason {
        DueReason::Deletion => 0,
        DueReason::Change => 1,
        DueReason::Drift => 2,
        DueReason::Retry => 3,
        DueReason::Periodic => 4,
    }
}

/// The reason of a lane.
pub(crate) fn reason_of_lane(lane: i64) -> Option<DueReason> {
    use DueReason::{Change, Deletion, Drift, Periodic, Retry};
    [Deletion, Change, Drift, Retry, Periodic]
        .into_iter()
        .find(|reason| self::lane(*reason) == lane)
}

/// An enum of the domain from its name on the wire.
pub(crate) fn named<'de, T: Deserialize<'de>>(name: &'de str) -> Result<T, ValueError> {
    T::deserialize(name.into_deserializer())
}

/// Deflated JSON.
pub(crate) fn deflate<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    let failed = |source: std::io::Error| Error::Database {
        doing: "compressing a value",
        transient: false,
        source: Box::new(source),
    };
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    serde_json::to_writer(&mut encoder, value).map_err(|error| failed(error.into()))?;
    encoder.finish().map_err(failed)
}

/// What [`deflate`] made, of at most `max` bytes of JSON.
pub(crate) fn inflate<T: for<'de> Deserialize<'de>>(bytes: &[u8], max: usize) -> Result<T, &'static str> {
    let mut json = Vec::new();
    DeflateDecoder::new(bytes)
        .take(max as u64 + 1)
        .read_to_end(&mut json)
        .map_err(|_| "it is not compressed data")?;
    if json.len() > max {
        return Err("it is larger than its bound");
    }
    serde_json::from_slice(&json).map_err(|_| "it is not the expected JSON")
}

/// Deflated bytes.
pub(crate) fn deflate_bytes(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// What [`deflate_bytes`] made, of at most `max` bytes.
pub(crate) fn inflate_bytes(bytes: &[u8], max: usize) -> Result<Sensitive<Vec<u8>>, &'static str> {
    let mut plain = Vec::new();
    let read = DeflateDecoder::new(bytes)
        .take(max as u64 + 1)
        .read_to_end(&mut plain);
    let plain = Sensitive::new(plain);
    match read {
        Err(_) => Err("it is not compressed data"),
        Ok(length) if length > max => Err("it is larger than its bound"),
        Ok(_) => Ok(plain),
    }
}

/// A list of texts, as one parameter.
pub(crate) fn list<T: ToString>(texts: impl IntoIterator<Item = T>) -> Vec<String> {
    texts.into_iter().map(|text| text.to_string()).collect()
}

/// Whether a text holds a NUL, which PostgreSQL does not keep.
pub(super) fn has_nul(text: &str) -> bool {
    text.contains('\0')
}

/// Refuses a text that only one of the databases could keep.
pub(crate) fn refuse_nul(what: &'static str, text: &str) -> Result<(), Error> {
    match has_nul(text) {
        true => Err(Error::NulCharacter { what }),
        false => Ok(()),
    }
}
