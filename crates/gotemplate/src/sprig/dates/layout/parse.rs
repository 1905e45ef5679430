//! Reads times by a layout.

use super::super::time::{MONTHS, Time, WEEKDAYS, Zone, days_from_civil, days_in, is_leap};
use super::{Element, next_element, quote};

/// A value that does not fit, or a number out of range.
enum Refusal {
    Bad,
    Range(&'static str),
}

type Parsed<T> = Result<T, Refusal>;

fn take<'v>(value: &mut &'v [u8], count: usize) -> Parsed<&'v [u8]> {
    let (head, tail) = value.split_at_checked(count).ok_or(Refusal::Bad)?;
    *value = tail;
    Ok(head)
}

fn digits_to_int(digits: &[u8]) -> Parsed<i64> {
    let mut number: i64 = 0;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return Err(Refusal::Bad);
        }
        number = number * 10 + i64::from(byte - b'0');
    }
    Ok(number)
}

/// One or two digits, or exactly two.
fn two_digits(value: &mut &[u8], fixed: bool) -> Parsed<i64> {
    let second = value.get(1).is_some_and(u8::is_ascii_digit);
    if !value.first().is_some_and(u8::is_ascii_digit) || (fixed && !second) {
        return Err(Refusal::Bad);
    }
    digits_to_int(take(value, if second { 2 } else { 1 })?)
}

fn three_digits(value: &mut &[u8], fixed: bool) -> Parsed<i64> {
    let count = value
        .iter()
        .take(3)
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if count == 0 || (fixed && count != 3) {
        return Err(Refusal::Bad);
    }
    digits_to_int(take(value, count)?)
}

/// Index of the name that the value begins with, letter case aside.
fn lookup(value: &mut &[u8], names: &[&str], length: Option<usize>) -> Parsed<usize> {
    for (index, name) in names.iter().enumerate() {
        let name = length
            .and_then(|length| name.get(..length))
            .unwrap_or(name)
            .as_bytes();
        if value
            .get(..name.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(name))
        {
            take(value, name.len())?;
            return Ok(index);
        }
    }
    Err(Refusal::Bad)
}

/// The separator and digits of a fraction of a second.
fn nanoseconds(text: &[u8]) -> Parsed<i64> {
    let text = text.get(..10).unwrap_or(text);
    match text.split_first() {
        Some((b'.' | b',', digits)) => {
            let number = digits_to_int(digits)?;
            Ok(number * 10i64.pow(9u32.saturating_sub(digits.len() as u32)))
        }
        _ => Err(Refusal::Bad),
    }
}

/// What has been read of a time.
#[derive(Default)]
struct Fields {
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    year_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanos: i64,
    pm: bool,
    am: bool,
    utc: bool,
    offset: Option<i64>,
    zone_name: Option<Vec<u8>>,
}

impl Fields {
    /// Reads one element; `after` is the layout behind it.
    fn read(&mut self, element: Element, value: &mut &[u8], after: &[u8]) -> Parsed<()> {
        let ranged = |number: i64, low: i64, high: i64, name: &'static str| {
            if (low..=high).contains(&number) {
                Ok(number)
            } else {
                Err(Refusal::Range(name))
            }
        };
        match element {
            Element::Year => {
                let year = digits_to_int(take(value, 2)?)?;
                self.year = if year >= 69 { year + 1900 } else { year + 2000 };
            }
            Element::LongYear => {
                if value.len() < 4 || !value.first().is_some_and(u8::is_ascii_digit) {
                    return Err(Refusal::Bad);
                }
                self.year = digits_to_int(take(value, 4)?)?;
            }
            Element::Month => self.month = Some(lookup(value, &MONTHS, Some(3))? as i64 + 1),
            Element::LongMonth => self.month = Some(lookup(value, &MONTHS, None)? as i64 + 1),
            Element::NumMonth | Element::ZeroMonth => {
                let month = two_digits(value, element == Element::ZeroMonth)?;
                self.month = Some(ranged(month, 1, 12, "month")?);
            }
            Element::Weekday => {
                lookup(value, &WEEKDAYS, Some(3))?;
            }
            Element::LongWeekday => {
                lookup(value, &WEEKDAYS, None)?;
            }
            Element::Day | Element::UnderDay | Element::ZeroDay => {
                if element == Element::UnderDay && value.first() == Some(&b' ') {
                    take(value, 1)?;
                }
                self.day = Some(two_digits(value, element == Element::ZeroDay)?);
            }
            Element::UnderYearDay | Element::ZeroYearDay => {
                for _ in 0..2 {
                    if element == Element::UnderYearDay && value.first() == Some(&b' ') {
                        take(value, 1)?;
                    }
                }
                self.year_day = Some(three_digits(value, element == Element::ZeroYearDay)?);
            }
            Element::Hour => self.hour = ranged(two_digits(value, false)?, 0, 23, "hour")?,
            Element::Hour12 | Element::ZeroHour12 => {
                self.hour = ranged(two_digits(value, element == Element::ZeroHour12)?, 0, 12, "hour")?;
            }
            Element::Minute | Element::ZeroMinute => {
                self.minute = ranged(
                    two_digits(value, element == Element::ZeroMinute)?,
                    0,
                    59,
                    "minute",
                )?;
            }
            Element::Second | Element::ZeroSecond => {
                self.second = ranged(
                    two_digits(value, element == Element::ZeroSecond)?,
                    0,
                    59,
                    "second",
                )?;
                self.implied_fraction(value, after)?;
            }
            Element::UpperPm => match take(value, 2)? {
                b"PM" => self.pm = true,
                b"AM" => self.am = true,
                _ => return Err(Refusal::Bad),
            },
            Element::LowerPm => match take(value, 2)? {
                b"pm" => self.pm = true,
                b"am" => self.am = true,
                _ => return Err(Refusal::Bad),
            },
            Element::Offset { z: true, .. } if value.first() == Some(&b'Z') => {
                take(value, 1)?;
                self.utc = true;
            }
            Element::Offset {
                colon,
                minutes,
                seconds,
                ..
            } => self.offset(value, colon, minutes, seconds)?,
            Element::ZoneName if value.starts_with(b"UTC") => {
                take(value, 3)?;
                self.utc = true;
            }
            Element::ZoneName => {
                let length = zone_name_length(value).ok_or(Refusal::Bad)?;
                self.zone_name = Some(take(value, length)?.to_vec());
            }
            Element::Fraction0 { digits, .. } => self.nanos = nanoseconds(take(value, 1 + digits)?)?,
            Element::Fraction9 { .. } => {
                if matches!(value, [b'.' | b',', b'0'..=b'9', ..]) {
                    let digits = value
                        .iter()
                        .skip(1)
                        .take_while(|byte| byte.is_ascii_digit())
                        .count();
                    self.nanos = nanoseconds(take(value, 1 + digits)?)?;
                }
            }
        }
        Ok(())
    }

    /// A fraction after the seconds is read even where the layout has none.
    fn implied_fraction(&mut self, value: &mut &[u8], after: &[u8]) -> Parsed<()> {
        if !matches!(value, [b'.' | b',', b'0'..=b'9', ..]) {
            return Ok(());
        }
        if let (_, Some(Element::Fraction0 { .. } | Element::Fraction9 { .. }), _) = next_element(after) {
            return Ok(());
        }
        let digits = value
            .iter()
            .skip(1)
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        self.nanos = nanoseconds(take(value, 1 + digits)?)?;
        Ok(())
    }

    fn offset(&mut self, value: &mut &[u8], colon: bool, minutes: bool, seconds: bool) -> Parsed<()> {
        let sign = match take(value, 1)? {
            b"+" => 1,
            b"-" => -1,
            _ => return Err(Refusal::Bad),
        };
        let mut part = |wanted: bool, first: bool| -> Parsed<i64> {
            if !wanted {
                return Ok(0);
            }
            if colon && !first && take(value, 1)? != b":" {
                return Err(Refusal::Bad);
            }
            digits_to_int(take(value, 2)?)
        };
        let (hours, mins, secs) = (part(true, true)?, part(minutes, false)?, part(seconds, false)?);
        if hours > 24 {
            return Err(Refusal::Range("time zone offset hour"));
        }
        if mins > 60 {
            return Err(Refusal::Range("time zone offset minute"));
        }
        if secs > 60 {
            return Err(Refusal::Range("time zone offset second"));
        }
        self.offset = Some(sign * ((hours * 60 + mins) * 60 + secs));
        Ok(())
    }
}

/// Length of an abbreviation such as `CET` at the start of a text.
fn zone_name_length(value: &[u8]) -> Option<usize> {
    if value.len() < 3 {
        return None;
    }
    if value.starts_with(b"ChST") || value.starts_with(b"MeST") {
        return Some(4);
    }
    let signed_offset = |text: &[u8]| -> usize {
        let digits = text
            .iter()
            .skip(1)
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let number = text
            .get(1..=digits)
            .and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u64>().ok());
        match (text.first(), number) {
            (Some(b'+' | b'-'), Some(0..=23)) => 1 + digits,
            _ => 0,
        }
    };
    if let Some(rest) = value.strip_prefix(b"GMT") {
        return Some(3 + signed_offset(rest));
    }
    if matches!(value.first(), Some(b'+' | b'-')) {
        return Some(signed_offset(value)).filter(|length| *length > 0);
    }
    match value
        .iter()
        .take(6)
        .take_while(|byte| byte.is_ascii_uppercase())
        .count()
    {
        5 if value.get(4) == Some(&b'T') => Some(5),
        4 if value.get(3) == Some(&b'T') || value.starts_with(b"WITA") => Some(4),
        3 => Some(3),
        _ => None,
    }
}

/// Skips the literal text of a layout; a run of spaces stands for any run of spaces.
fn skip<'v>(mut value: &'v [u8], mut prefix: &[u8]) -> Result<&'v [u8], &'v [u8]> {
    while let Some((wanted, tail)) = prefix.split_first() {
        if *wanted == b' ' {
            if value.first().is_some_and(|byte| *byte != b' ') {
                return Err(value);
            }
            let spaces = |text: &[u8]| text.iter().take_while(|byte| **byte == b' ').count();
            prefix = prefix.get(spaces(prefix)..).unwrap_or_default();
            value = value.get(spaces(value)..).unwrap_or_default();
            continue;
        }
        if value.first() != Some(wanted) {
            return Err(value);
        }
        prefix = tail;
        value = value.get(1..).unwrap_or_default();
    }
    Ok(value)
}

/// `time.ParseInLocation(layout, text, local)`
///
/// # Errors
/// Go's text of what does not fit.
pub(in super::super) fn parse(layout: &[u8], text: &[u8], local: &Zone) -> Result<Time, String> {
    let failed = |message: &str| format!("parsing time {}{message}", quote(text));
    let mismatch = |element: &[u8], value: &[u8]| {
        failed(&format!(
            " as {}: cannot parse {} as {}",
            quote(layout),
            quote(value),
            quote(element)
        ))
    };
    let mut fields = Fields::default();
    let mut rest = layout;
    let mut value = text;
    loop {
        let (before, element, after) = next_element(rest);
        value = skip(value, before).map_err(|value| mismatch(before, value))?;
        let Some(element) = element else {
            if !value.is_empty() {
                return Err(failed(&format!(": extra text: {}", quote(value))));
            }
            break;
        };
        let shown = rest
            .get(before.len()..rest.len() - after.len())
            .unwrap_or_default();
        let hold = value;
        rest = after;
        match fields.read(element, &mut value, after) {
            Ok(()) => {}
            Err(Refusal::Bad) => return Err(mismatch(shown, hold)),
            Err(Refusal::Range(what)) => return Err(failed(&format!(": {what} out of range"))),
        }
    }
    if fields.pm && fields.hour < 12 {
        fields.hour += 12;
    } else if fields.am && fields.hour == 12 {
        fields.hour = 0;
    }
    let (month, day) = month_and_day(&fields).map_err(failed)?;
    if day < 1 || day > days_in(month, fields.year) {
        return Err(failed(": day out of range"));
    }
    let days = days_from_civil(fields.year, month, day);
    let wall = days * 86_400 + fields.hour * 3_600 + fields.minute * 60 + fields.second;
    let at = |unix: i64, zone: Zone| Time::new(unix, fields.nanos, zone);
    if fields.utc {
        return Ok(at(wall, Zone::Utc));
    }
    let name = fields.zone_name.as_deref().map(crate::value::lossy);
    if let Some(offset) = fields.offset {
        let unix = wall - offset;
        let (local_offset, abbreviation) = local.at(unix);
        if local_offset == offset && name.as_ref().is_none_or(|name| *name == abbreviation) {
            return Ok(at(unix, local.clone()));
        }
        return Ok(at(
            unix,
            Zone::Fixed {
                name: name.unwrap_or_default(),
                offset,
            },
        ));
    }
    if let Some(name) = name {
        let unix = local.to_unix(wall);
        if local.at(unix).1 == name {
            return Ok(at(unix, local.clone()));
        }
        // An abbreviation that is not the local zone's says nothing about the offset, unless it is GMT+n.
        let hours: i64 = name
            .strip_prefix("GMT")
            .and_then(|hours| hours.parse().ok())
            .unwrap_or(0);
        let offset = hours * 3_600;
        return Ok(at(wall - offset, Zone::Fixed { name, offset }));
    }
    Ok(at(local.to_unix(wall), local.clone()))
}

fn month_and_day(fields: &Fields) -> Result<(i64, i64), &'static str> {
    let Some(year_day) = fields.year_day else {
        return Ok((fields.month.unwrap_or(1), fields.day.unwrap_or(1)));
    };
    let length = if is_leap(fields.year) { 366 } else { 365 };
    if !(1..=length).contains(&year_day) {
        return Err(": day-of-year out of range");
    }
    let (mut month, mut day) = (1, year_day);
    while day > days_in(month, fields.year) {
        day -= days_in(month, fields.year);
        month += 1;
    }
    if fields.month.is_some_and(|known| known != month) {
        return Err(": day-of-year does not match month");
    }
    if fields.day.is_some_and(|known| known != day) {
        return Err(": day-of-year does not match day");
    }
    Ok((month, day))
}
