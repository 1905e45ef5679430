//! What an answer says of how often its system wants to be called.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// How long to wait after a refusal for too many requests that names no time.
const DEFAULT_PAUSE: Duration = Duration::from_secs(30);

/// How long to wait at most, whatever the other side wants.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// How long the other side wants to be left alone: by `Retry-After`, in seconds or as a date, or by GitLab's `RateLimit-Reset`.
pub(crate) fn pause(headers: &HeaderMap, now: Timestamp) -> Duration {
    let seconds = |text: &str| text.parse().ok().map(Duration::from_secs);
    let date = |text: &str| {
        let at = DateTimeParser::new().parse_timestamp(text).ok()?;
        Some(until(at, now))
    };
    text(headers, RETRY_AFTER.as_str())
        .and_then(|text| seconds(text).or_else(|| date(text)))
        .or_else(|| reset(headers).map(|at| until(at, now)))
        .unwrap_or(DEFAULT_PAUSE)
        .min(PAUSE_MAX)
}

/// Until when no call is left, if an answer says so: GitLab's `RateLimit-Remaining` and `RateLimit-Reset`.
pub(crate) fn exhausted_until(headers: &HeaderMap, now: Timestamp) -> Option<Timestamp> {
    let remaining: u64 = text(headers, "ratelimit-remaining")?.parse().ok()?;
    let at = reset(headers).filter(|at| *at > now)?;
    let most = now.checked_add(PAUSE_MAX).unwrap_or(Timestamp::MAX);
    (remaining == 0).then_some(at.min(most))
}

fn reset(headers: &HeaderMap) -> Option<Timestamp> {
    Timestamp::from_second(text(headers, "ratelimit-reset")?.parse().ok()?).ok()
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    Some(headers.get(name)?.to_str().ok()?.trim())
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = all
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        pairs.collect()
    }

    #[test]
    fn a_pause_is_read_however_it_is_written() {
        let now: Timestamp = "2015-10-21T07:27:30Z".parse().unwrap();
        for (given, seconds) in [
            (headers(&[("retry-after", "7")]), 7),
            (headers(&[("retry-after", " 7 ")]), 7),
            (headers(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]), 30),
            (headers(&[("retry-after", "Wed, 21 Oct 2015 07:00:00 GMT")]), 0),
            (headers(&[("retry-after", "99999999")]), 3600),
            (headers(&[("retry-after", "soon")]), 30),
            (headers(&[("ratelimit-reset", "1445412460")]), 10),
            (
                headers(&[("retry-after", "3"), ("ratelimit-reset", "1445412460")]),
                3,
            ),
            (headers(&[]), 30),
        ] {
            assert_eq!(pause(&given, now).as_secs(), seconds, "{given:?}");
        }
    }

    #[test]
    fn the_last_call_of_a_period_is_known() {
        let now: Timestamp = "2015-10-21T07:27:30Z".parse().unwrap();
        let reset = ("ratelimit-reset", "1445412460");
        let at = exhausted_until(&headers(&[("ratelimit-remaining", "0"), reset]), now);
        assert_eq!(at, Some(now + jiff::SignedDuration::from_secs(10)));
        for given in [
            headers(&[("ratelimit-remaining", "1"), reset]),
            headers(&[("ratelimit-remaining", "0")]),
            headers(&[("ratelimit-remaining", "0"), ("ratelimit-reset", "1445412440")]),
            headers(&[reset]),
        ] {
            assert_eq!(exhausted_until(&given, now), None, "{given:?}");
        }
    }
}
