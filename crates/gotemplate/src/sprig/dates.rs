//! Dates and durations.

mod duration;
mod layout;
mod time;

use self::duration::Duration;
use self::time::{Time, Zone};
use super::args::{ANY, STR, any, string, text};
use super::cast::float_to_int;
use crate::Error;
use crate::exec::Executor;
use crate::function::{Native, NativeFn};
use crate::strconv::{parse_float, parse_int};
use crate::value::{Object, Type, Value};

/// Go's name of the type of moments.
pub(crate) const TIME_TYPE: &str = "time.Time";
const TIME: Type = Type::Object(TIME_TYPE);

pub(super) static TABLE: &[Native] = &[
    Native::concrete("now", &[], false, now),
    Native::concrete("date", &[STR, ANY], false, date),
    Native::concrete("dateInZone", &[STR, ANY, STR], false, date_in_zone),
    Native::concrete("date_in_zone", &[STR, ANY, STR], false, date_in_zone),
    Native::concrete("htmlDate", &[ANY], false, html_date),
    Native::concrete("htmlDateInZone", &[ANY, STR], false, html_date_in_zone),
    Native::concrete("dateModify", &[STR, TIME], false, date_modify),
    Native::concrete("date_modify", &[STR, TIME], false, date_modify),
    Native::concrete("mustDateModify", &[STR, TIME], false, must_date_modify),
    Native::concrete("must_date_modify", &[STR, TIME], false, must_date_modify),
    Native::concrete("toDate", &[STR, STR], false, to_date),
    Native::concrete("mustToDate", &[STR, STR], false, must_to_date),
    Native::concrete("unixEpoch", &[TIME], false, unix_epoch),
    Native::concrete("ago", &[ANY], false, ago),
    Native::concrete("duration", &[ANY], false, duration),
    Native::concrete("durationRound", &[ANY], false, duration_round),
    Native::concrete("mustToDuration", &[ANY], false, must_to_duration),
    number("durationSeconds", duration_seconds),
    number("durationMilliseconds", duration_milliseconds),
    number("durationMicroseconds", duration_microseconds),
    number("durationNanoseconds", duration_nanoseconds),
    number("durationMinutes", duration_minutes),
    number("durationHours", duration_hours),
    number("durationDays", duration_days),
    number("durationWeeks", duration_weeks),
    Native::concrete("durationRoundTo", &[ANY, ANY], false, duration_round_to),
    Native::concrete("durationTruncateTo", &[ANY, ANY], false, duration_truncate_to),
];

const fn number(name: &'static str, call: NativeFn) -> Native {
    Native::concrete(name, &[ANY], false, call)
}

type Result = std::result::Result<Value, Error>;

const NANOS: i64 = 1_000_000_000;

fn current(executor: &mut Executor) -> Time {
    let now = executor.now();
    let zone = local(executor);
    Time::new(now.seconds, i64::from(now.nanos), zone)
}

fn local(executor: &Executor) -> Zone {
    Zone::Local(Box::new(Zone::load(executor.zone()).unwrap_or(Zone::Utc)))
}

/// A zone by its name; an unknown one is UTC.
fn zone(executor: &Executor, name: &str) -> Zone {
    if name == "Local" {
        local(executor)
    } else {
        Zone::load(name).unwrap_or(Zone::Utc)
    }
}

fn as_time(value: &Value) -> Option<Time> {
    match value {
        Value::Object(object) => object.as_any().downcast_ref::<Time>().cloned(),
        _ => None,
    }
}

fn as_duration(value: &Value) -> Option<Duration> {
    match value {
        Value::Object(object) => object.as_any().downcast_ref::<Duration>().copied(),
        _ => None,
    }
}

/// What Sprig takes for a date: a time or seconds since 1970; for anything else, now.
fn moment(executor: &mut Executor, value: &Value) -> Time {
    use crate::value::IntKind::{Int, Int32, Int64};
    match value {
        Value::Int(Int | Int32 | Int64, seconds) => Time::new(*seconds, 0, local(executor)),
        other => as_time(other).unwrap_or_else(|| current(executor)),
    }
}

fn now(executor: &mut Executor, _: &[Value]) -> Result {
    Ok(Value::object(current(executor)))
}

fn formatted(executor: &mut Executor, layout: &[u8], date: &Value, zone_name: &str) -> Result {
    let time = moment(executor, date);
    let zone = zone(executor, zone_name);
    Ok(Value::from(layout::format(&time.in_zone(zone), layout)))
}

fn date(executor: &mut Executor, args: &[Value]) -> Result {
    formatted(executor, text(args, 0), any(args, 1), "Local")
}

fn date_in_zone(executor: &mut Executor, args: &[Value]) -> Result {
    formatted(executor, text(args, 0), any(args, 1), &string(args, 2).to_text())
}

const HTML: &[u8] = b"2006-01-02";

fn html_date(executor: &mut Executor, args: &[Value]) -> Result {
    formatted(executor, HTML, any(args, 0), "Local")
}

fn html_date_in_zone(executor: &mut Executor, args: &[Value]) -> Result {
    formatted(executor, HTML, any(args, 0), &string(args, 1).to_text())
}

fn date_modify(_: &mut Executor, args: &[Value]) -> Result {
    let time = as_time(any(args, 1)).unwrap_or_else(Time::zero);
    Ok(Value::object(match Duration::parse(text(args, 0)) {
        Ok(duration) => time.add(duration),
        Err(_) => time,
    }))
}

fn must_date_modify(_: &mut Executor, args: &[Value]) -> Result {
    let time = as_time(any(args, 1)).unwrap_or_else(Time::zero);
    Ok(Value::object(
        time.add(Duration::parse(text(args, 0)).map_err(Error::message)?),
    ))
}

fn to_date(executor: &mut Executor, args: &[Value]) -> Result {
    let zone = local(executor);
    Ok(Value::object(
        layout::parse(text(args, 0), text(args, 1), &zone).unwrap_or_else(|_| Time::zero()),
    ))
}

fn must_to_date(executor: &mut Executor, args: &[Value]) -> Result {
    let zone = local(executor);
    layout::parse(text(args, 0), text(args, 1), &zone)
        .map(Value::object)
        .map_err(Error::message)
}

fn unix_epoch(_: &mut Executor, args: &[Value]) -> Result {
    let time = as_time(any(args, 0)).unwrap_or_else(Time::zero);
    Ok(Value::from(time.unix().to_string()))
}

fn ago(executor: &mut Executor, args: &[Value]) -> Result {
    let time = moment(executor, any(args, 0));
    let passed = current(executor).since(&time);
    Ok(Value::from(passed.round(Duration(NANOS)).to_string()))
}

fn duration(_: &mut Executor, args: &[Value]) -> Result {
    let seconds = match any(args, 0) {
        Value::Str(text) => parse_int(text.as_bytes(), 10).unwrap_or(0),
        Value::Int(crate::value::IntKind::Int64, seconds) => *seconds,
        _ => 0,
    };
    Ok(Value::from(Duration(seconds.wrapping_mul(NANOS)).to_string()))
}

fn duration_round(executor: &mut Executor, args: &[Value]) -> Result {
    let nanos = match any(args, 0) {
        Value::Str(text) => Duration::parse(text.as_bytes()).map_or(0, |duration| duration.0),
        Value::Int(crate::value::IntKind::Int64, nanos) => *nanos,
        other => match as_time(other) {
            Some(time) => current(executor).since(&time).0,
            None => 0,
        },
    };
    let nanos = nanos.unsigned_abs();
    const HOUR: u64 = 3_600 * NANOS as u64;
    let units = [
        (HOUR * 24 * 365, "y"),
        (HOUR * 24 * 30, "mo"),
        (HOUR * 24, "d"),
        (HOUR, "h"),
        (HOUR / 60, "m"),
        (NANOS as u64, "s"),
    ];
    let unit = units.iter().find(|(unit, _)| nanos > *unit);
    Ok(Value::from(unit.map_or_else(
        || "0s".to_owned(),
        |(unit, name)| format!("{}{name}", nanos / unit),
    )))
}

fn seconds_to_duration(seconds: f64) -> std::result::Result<Duration, String> {
    let shown = || crate::fmt::format_float(seconds, b'g', None);
    if !seconds.is_finite() {
        return Err(format!("invalid duration seconds: {}", shown()));
    }
    let limit = i64::MAX as f64 / 1e9;
    if seconds > limit || seconds < i64::MIN as f64 / 1e9 {
        return Err(format!("duration seconds overflow: {}", shown()));
    }
    Ok(Duration(float_to_int(seconds * 1e9)))
}

/// Helm's reading of a duration: `1h30m`, seconds as number or text, or a duration.
fn any_duration(value: &Value) -> std::result::Result<Duration, String> {
    let whole = |seconds: i64| {
        seconds
            .checked_mul(NANOS)
            .map(Duration)
            .ok_or_else(|| format!("duration seconds overflow: {seconds}"))
    };
    match value {
        Value::Nil => Err("invalid duration".to_owned()),
        Value::Str(text) => {
            let trimmed = crate::unicode::trim_space(text.as_bytes());
            if trimmed.is_empty() {
                return Err("empty duration".to_owned());
            }
            if let Ok(duration) = Duration::parse(trimmed) {
                return Ok(duration);
            }
            match parse_float(trimmed) {
                Ok(seconds) => seconds_to_duration(seconds),
                Err(_) => Err(format!(
                    "could not parse duration {}",
                    crate::fmt::quote::bytes(text.as_bytes())
                )),
            }
        }
        Value::Int(_, seconds) => whole(*seconds),
        Value::Uint(_, seconds) => match i64::try_from(*seconds) {
            Ok(seconds) => whole(seconds),
            Err(_) => Err(format!("duration seconds overflow: {seconds}")),
        },
        Value::Float(seconds) => seconds_to_duration(*seconds),
        other => as_duration(other).ok_or_else(|| format!("unsupported duration type {}", other.type_name())),
    }
}

fn must_to_duration(_: &mut Executor, args: &[Value]) -> Result {
    any_duration(any(args, 0))
        .map(Value::object)
        .map_err(Error::message)
}

fn lenient(args: &[Value]) -> Duration {
    any_duration(any(args, 0)).unwrap_or(Duration(0))
}

fn duration_seconds(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Float(lenient(args).in_units(NANOS)))
}

fn duration_milliseconds(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::int64(lenient(args).0 / 1_000_000))
}

fn duration_microseconds(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::int64(lenient(args).0 / 1_000))
}

fn duration_nanoseconds(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::int64(lenient(args).0))
}

fn duration_minutes(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Float(lenient(args).in_units(60 * NANOS)))
}

fn duration_hours(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Float(lenient(args).in_units(3_600 * NANOS)))
}

fn duration_days(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Float(lenient(args).in_units(3_600 * NANOS) / 24.0))
}

fn duration_weeks(_: &mut Executor, args: &[Value]) -> Result {
    Ok(Value::Float(lenient(args).in_units(3_600 * NANOS) / 24.0 / 7.0))
}

/// Both durations of a rounding; without a valid unit the first stays as it is.
fn rounded(args: &[Value], round: impl FnOnce(Duration, Duration) -> Duration) -> Result {
    let Ok(duration) = any_duration(any(args, 0)) else {
        return Ok(Value::object(Duration(0)));
    };
    Ok(Value::object(match any_duration(any(args, 1)) {
        Ok(unit) => round(duration, unit),
        Err(_) => duration,
    }))
}

fn duration_round_to(_: &mut Executor, args: &[Value]) -> Result {
    rounded(args, Duration::round)
}

fn duration_truncate_to(_: &mut Executor, args: &[Value]) -> Result {
    rounded(args, Duration::truncate)
}

/// Two objects of one type compared by their own equality.
fn same<T: 'static + PartialEq>(value: &T, other: &dyn Object) -> bool {
    other
        .as_any()
        .downcast_ref::<T>()
        .is_some_and(|other| value == other)
}

/// Dates and times of TOML that name no zone: how they are written, and what the library calls the zone that they get,
/// which is as far from UTC as this place is now.
const ZONELESS: [(&[u8], &str); 3] = [
    (b"2006-01-02T15:04:05.999999999", "datetime-local"),
    (HTML, "date-local"),
    (b"15:04:05.999999999", "time-local"),
];
/// How a moment is written in TOML.
const MOMENT: &[u8] = b"2006-01-02T15:04:05.999999999Z07:00";

/// A date or time of a TOML document.
pub(super) fn from_toml(executor: &mut Executor, source: &str) -> Value {
    let source = source.as_bytes();
    if let Ok(time) = layout::parse(MOMENT, source, &local(executor)) {
        return Value::object(time);
    }
    let mut offset = None;
    for (layout, name) in ZONELESS {
        let zone = Zone::Fixed {
            name: name.to_owned(),
            offset: *offset.get_or_insert_with(|| offset_now(executor)),
        };
        if let Ok(time) = layout::parse(layout, source, &zone) {
            return Value::object(time);
        }
    }
    Value::from(String::from_utf8_lossy(source).into_owned())
}

/// How far this place is from UTC now, in seconds. Where that does not depend on the day, the render is not marked.
fn offset_now(executor: &mut Executor) -> i64 {
    match Zone::load(executor.zone()) {
        None | Some(Zone::Utc) => 0,
        Some(zone) => zone.at(executor.now().seconds).0,
    }
}

/// A time as the library writes it in TOML: what had no zone gets none again, but is put to UTC first.
pub(super) fn to_toml(object: &dyn Object) -> Option<Vec<u8>> {
    let time = object.as_any().downcast_ref::<Time>()?;
    let zoneless = ZONELESS.iter().find(|(_, name)| time.is_in(name));
    Some(match zoneless {
        Some((layout, _)) => layout::format(&time.in_zone(Zone::Utc), layout),
        None => layout::format(time, MOMENT),
    })
}

/// A moment in UTC for certificates: its year, and `YYYYMMDDhhmmssZ`.
pub(super) fn utc_digits(seconds: i64) -> (i64, Vec<u8>) {
    let time = Time::new(seconds, 0, Zone::Utc);
    (time.civil().year, layout::format(&time, b"20060102150405Z"))
}
