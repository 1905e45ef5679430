//! Formats that Helm's validator knows in every draft up to 7, and the one here does not.

/// Whether a text has a format.
type Check = fn(&str) -> bool;

/// Names and checks.
pub(super) const FORMATS: [(&str, Check); 3] = [
    ("duration", is_duration),
    ("semver", is_semver),
    ("uuid", is_uuid),
];

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// ISO 8601, as RFC 3339 takes it over: `P1Y2M3DT4H5M6S` or `P7W`.
fn is_duration(text: &str) -> bool {
    let Some(text) = text.strip_prefix('P').filter(|text| !text.is_empty()) else {
        return false;
    };
    if let Some(weeks) = text.strip_suffix('W') {
        return is_number(weeks);
    }
    let mut parts = text.split('T');
    let is_date = parts.next().is_some_and(|date| are_units(date, "YMD"));
    let is_time = parts
        .next()
        .is_none_or(|time| !time.is_empty() && are_units(time, "HMS"));
    is_date && is_time && parts.next().is_none()
}

fn are_units(text: &str, mut units: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let Some(unit) = after.chars().next().filter(|_| !number.is_empty()) else {
            return false;
        };
        let Some((_, later)) = units.split_once(unit) else {
            return false;
        };
        units = later;
        rest = after.get(unit.len_utf8()..).unwrap_or_default();
    }
    true
}

/// Semantic versioning 2.0.
fn is_semver(text: &str) -> bool {
    let is_identifier = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let has_zero = |text: &str| is_number(text) && text.len() > 1 && text.starts_with('0');
    let (text, build) = text
        .split_once('+')
        .map_or((text, None), |(text, build)| (text, Some(build)));
    let (core, release) = text
        .split_once('-')
        .map_or((text, None), |(core, release)| (core, Some(release)));
    let numbers: Vec<_> = core.split('.').collect();
    numbers.len() == 3
        && numbers
            .iter()
            .all(|number| is_number(number) && !has_zero(number))
        && release.is_none_or(|release| {
            release
                .split('.')
                .all(|part| is_identifier(part) && !has_zero(part))
        })
        && build.is_none_or(|build| build.split('.').all(is_identifier))
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<_> = text.split('-').collect();
    let lengths = [8, 4, 4, 4, 12];
    groups.len() == lengths.len()
        && groups.iter().zip(lengths).all(|(group, length)| {
            group.len() == length && group.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for good in ["P1Y", "P1Y2M3DT4H5M6S", "PT1H", "P7W", "P1D", "P10M"] {
            assert!(is_duration(good), "{good}");
        }
        for bad in [
            "", "P", "1D", "PT", "P1", "P1H", "P1M1Y", "P1DT", "PW", "P1W2D", "PT1HT1M", "P1.5D",
        ] {
            assert!(!is_duration(bad), "{bad}");
        }
    }

    #[test]
    fn versions_and_identifiers() {
        for good in ["1.0.0", "1.2.3-a.1+b.01", "0.0.0--"] {
            assert!(is_semver(good), "{good}");
        }
        for bad in [
            "1.0",
            "v1.0.0",
            "01.0.0",
            "1.0.0-01",
            "1.0.0-",
            "1.0.0+",
            "1.0.0-a..b",
            "x",
        ] {
            assert!(!is_semver(bad), "{bad}");
        }
        assert!(is_uuid("123e4567-e89b-12d3-a456-42661417400F"));
        assert!(
            !is_uuid("123e4567e89b12d3a45642661417400F") && !is_uuid("123e4567-e89b-12d3-a456-42661417400g")
        );
    }
}
