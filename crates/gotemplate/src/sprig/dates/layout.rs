//! Go's time layouts: `2006-01-02` and their like, for printing and parsing.

use super::time::{MONTHS, Time, WEEKDAYS, Zone, days_from_civil, days_in, is_leap};

/// One element of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperPm,
    LowerPm,
    ZoneName,
    Offset {
        z: bool,
        colon: bool,
        minutes: bool,
        seconds: bool,
    },
    /// `.000`: always this many digits.
    Fraction0 {
        digits: usize,
        separator: u8,
    },
    /// `.999`: as many as are needed.
    Fraction9 {
        digits: usize,
        separator: u8,
    },
}

/// The text before the next element, the element, and what follows it.
fn next_element(layout: &[u8]) -> (&[u8], Option<Element>, &[u8]) {
    for start in 0..layout.len() {
        let rest = layout.get(start..).unwrap_or_default();
        if let Some((skip, length, element)) = element_at(rest) {
            let from = start + skip;
            let before = layout.get(..from).unwrap_or_default();
            let after = layout.get(from + length..).unwrap_or_default();
            return (before, Some(element), after);
        }
    }
    (layout, None, &[])
}

/// The element that a layout begins with: bytes to skip before it, its length, and what it is.
fn element_at(rest: &[u8]) -> Option<(usize, usize, Element)> {
    use Element::*;
    let starts = |text: &str| rest.starts_with(text.as_bytes());
    let lower_follows = |at: usize| rest.get(at).is_some_and(u8::is_ascii_lowercase);
    let found = |length: usize, element: Element| Some((0, length, element));
    match rest.first()? {
        b'J' if starts("January") => found(7, LongMonth),
        b'J' if starts("Jan") && !lower_follows(3) => found(3, Month),
        b'M' if starts("Monday") => found(6, LongWeekday),
        b'M' if starts("Mon") && !lower_follows(3) => found(3, Weekday),
        b'M' if starts("MST") => found(3, ZoneName),
        b'0' => match rest.get(1)? {
            b'1' => found(2, ZeroMonth),
            b'2' => found(2, ZeroDay),
            b'3' => found(2, ZeroHour12),
            b'4' => found(2, ZeroMinute),
            b'5' => found(2, ZeroSecond),
            b'6' => found(2, Year),
            b'0' if starts("002") => found(3, ZeroYearDay),
            _ => None,
        },
        b'1' if starts("15") => found(2, Hour),
        b'1' => found(1, NumMonth),
        b'2' if starts("2006") => found(4, LongYear),
        b'2' => found(1, Day),
        b'_' if starts("_2006") => Some((1, 4, LongYear)),
        b'_' if starts("_2") => found(2, UnderDay),
        b'_' if starts("__2") => found(3, UnderYearDay),
        b'3' => found(1, Hour12),
        b'4' => found(1, Minute),
        b'5' => found(1, Second),
        b'P' if starts("PM") => found(2, UpperPm),
        b'p' if starts("pm") => found(2, LowerPm),
        first @ (b'-' | b'Z') => {
            let z = *first == b'Z';
            let tail = rest.get(1..).unwrap_or_default();
            let offset = |text: &str, colon: bool, minutes: bool, seconds: bool| {
                tail.starts_with(text.as_bytes()).then_some((
                    0,
                    text.len() + 1,
                    Offset {
                        z,
                        colon,
                        minutes,
                        seconds,
                    },
                ))
            };
            offset("070000", false, true, true)
                .or_else(|| offset("07:00:00", true, true, true))
                .or_else(|| offset("0700", false, true, false))
                .or_else(|| offset("07:00", true, true, false))
                .or_else(|| offset("07", false, false, false))
        }
        separator @ (b'.' | b',') => {
            let digit = *rest.get(1).filter(|digit| matches!(digit, b'0' | b'9'))?;
            let digits = rest.iter().skip(1).take_while(|byte| **byte == digit).count();
            // Only a fraction is all the same digit.
            if rest.get(1 + digits).is_some_and(u8::is_ascii_digit) {
                return None;
            }
            let separator = *separator;
            let element = if digit == b'0' {
                Fraction0 { digits, separator }
            } else {
                Fraction9 { digits, separator }
            };
            found(1 + digits, element)
        }
        _ => None,
    }
}

/// `t.Format(layout)`
pub(super) fn format(time: &Time, layout: &[u8]) -> Vec<u8> {
    let civil = time.civil();
    let (offset, zone) = time.offset();
    let month = civil
        .month
        .checked_sub(1)
        .and_then(|index| MONTHS.get(index))
        .copied()
        .unwrap_or_default();
    let weekday = WEEKDAYS.get(civil.weekday).copied().unwrap_or_default();
    let short = |name: &'static str| name.get(..3).unwrap_or(name).to_owned();
    let hour12 = if civil.hour % 12 == 0 { 12 } else { civil.hour % 12 };
    let mut out = Vec::with_capacity(layout.len() + 16);
    let mut rest = layout;
    loop {
        let (before, element, after) = next_element(rest);
        out.extend_from_slice(before);
        let Some(element) = element else { return out };
        rest = after;
        let text = match element {
            Element::LongMonth => month.to_owned(),
            Element::Month => short(month),
            Element::NumMonth => civil.month.to_string(),
            Element::ZeroMonth => format!("{:02}", civil.month),
            Element::LongWeekday => weekday.to_owned(),
            Element::Weekday => short(weekday),
            Element::Day => civil.day.to_string(),
            Element::UnderDay => format!("{:2}", civil.day),
            Element::ZeroDay => format!("{:02}", civil.day),
            Element::UnderYearDay => format!("{:3}", civil.year_day),
            Element::ZeroYearDay => format!("{:03}", civil.year_day),
            Element::Hour => format!("{:02}", civil.hour),
            Element::Hour12 => hour12.to_string(),
            Element::ZeroHour12 => format!("{hour12:02}"),
            Element::Minute => civil.minute.to_string(),
            Element::ZeroMinute => format!("{:02}", civil.minute),
            Element::Second => civil.second.to_string(),
            Element::ZeroSecond => format!("{:02}", civil.second),
            Element::LongYear if civil.year < 0 => format!("-{:04}", civil.year.unsigned_abs()),
            Element::LongYear => format!("{:04}", civil.year),
            Element::Year => format!("{:02}", civil.year.unsigned_abs() % 100),
            Element::UpperPm => if civil.hour >= 12 { "PM" } else { "AM" }.to_owned(),
            Element::LowerPm => if civil.hour >= 12 { "pm" } else { "am" }.to_owned(),
            Element::ZoneName if zone.is_empty() => offset_text(offset, false, true, false),
            Element::ZoneName => zone.clone(),
            Element::Offset { z: true, .. } if offset == 0 => "Z".to_owned(),
            Element::Offset {
                colon,
                minutes,
                seconds,
                ..
            } => offset_text(offset, colon, minutes, seconds),
            Element::Fraction0 { digits, separator } => fraction(time.nanos(), digits, separator, false),
            Element::Fraction9 { digits, separator } => fraction(time.nanos(), digits, separator, true),
        };
        out.extend_from_slice(text.as_bytes());
    }
}

fn offset_text(offset: i64, colon: bool, minutes: bool, seconds: bool) -> String {
    let zone = offset / 60;
    let sign = if zone < 0 { '-' } else { '+' };
    let zone = zone.unsigned_abs();
    let colon = if colon { ":" } else { "" };
    let mut text = format!("{sign}{:02}", zone / 60);
    if minutes {
        text.push_str(&format!("{colon}{:02}", zone % 60));
    }
    if seconds {
        text.push_str(&format!("{colon}{:02}", offset.unsigned_abs() % 60));
    }
    text
}

fn fraction(nanos: u32, digits: usize, separator: u8, trim: bool) -> String {
    let all = format!("{nanos:09}");
    let mut shown = all.get(..digits.min(9)).unwrap_or_default().to_owned();
    if trim {
        shown.truncate(shown.trim_end_matches('0').len());
        if shown.is_empty() {
            return shown;
        }
    } else {
        shown.extend(std::iter::repeat_n('0', digits.saturating_sub(9)));
    }
    format!("{}{shown}", char::from(separator))
}

/// The `time` package's quoting: like `%q`, but everything outside printable ASCII as bytes.
pub(super) fn quote(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for byte in text {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(*byte));
            }
            b' '..=0x7f => out.push(char::from(*byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

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
pub(super) fn parse(layout: &[u8], text: &[u8], local: &Zone) -> Result<Time, String> {
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
