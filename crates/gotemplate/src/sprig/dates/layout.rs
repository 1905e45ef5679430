//! Go's time layouts: `2006-01-02` and their like, for printing and parsing.

mod parse;

pub(super) use parse::parse;

use super::time::{MONTHS, Time, WEEKDAYS};

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
