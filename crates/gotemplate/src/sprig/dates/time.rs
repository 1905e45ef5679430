//! Go's `time.Time` and its zones.

use std::any::Any;
use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::duration::Duration;
use super::layout;
use crate::Error;
use crate::exec::Executor;
use crate::value::{Kind, Object, Returns, Signature, Str, Type, Value};

const DAY: i64 = 86_400;
const NANOS: i64 = 1_000_000_000;
/// Seconds from 0001-01-01 to 1970-01-01.
const YEAR_ONE: i64 = -62_135_596_800;

/// The zones compiled into the program: reading the machine's would make the same chart render differently.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone.
#[derive(Clone, Debug)]
pub(super) enum Zone {
    Utc,
    /// The machine's, which Go tells from others when it prints code.
    Local(Box<Zone>),
    Named(TimeZone),
    Fixed {
        name: String,
        offset: i64,
    },
}

impl Zone {
    /// `time.LoadLocation`
    pub(super) fn load(name: &str) -> Option<Self> {
        if name.is_empty() || name == "UTC" {
            return Some(Self::Utc);
        }
        ZONES.get(name).ok().map(Self::Named)
    }

    /// Offset in seconds and abbreviation at a moment.
    pub(super) fn at(&self, unix: i64) -> (i64, String) {
        match self {
            Self::Utc => (0, "UTC".to_owned()),
            Self::Local(zone) => zone.at(unix),
            Self::Fixed { name, offset } => (*offset, name.clone()),
            Self::Named(zone) => {
                let bounded = unix.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
                let moment = Timestamp::from_second(bounded).unwrap_or(Timestamp::UNIX_EPOCH);
                let info = zone.to_offset_info(moment);
                (i64::from(info.offset().seconds()), info.abbreviation().to_owned())
            }
        }
    }

    /// Go's code for it.
    fn code(&self) -> String {
        let name = match self {
            Self::Utc => return "time.UTC".to_owned(),
            Self::Local(_) => return "time.Local".to_owned(),
            Self::Named(zone) => zone.iana_name().unwrap_or_default(),
            Self::Fixed { name, .. } => name,
        };
        let quoted = layout::quote(name.as_bytes());
        format!("time.Location({quoted})")
    }

    /// The moment that this zone's clocks show as `wall` seconds since 1970.
    pub(super) fn to_unix(&self, wall: i64) -> i64 {
        let (guess, _) = self.at(wall);
        let (offset, _) = self.at(wall.saturating_sub(guess));
        wall.saturating_sub(offset)
    }
}

/// A moment with the zone it is shown in.
#[derive(Clone, Debug)]
pub(super) struct Time {
    seconds: i64,
    nanos: u32,
    zone: Zone,
}

impl PartialEq for Time {
    fn eq(&self, other: &Self) -> bool {
        self.seconds == other.seconds && self.nanos == other.nanos
    }
}

/// A day and a time of day as clocks show them.
pub(super) struct Civil {
    pub(super) year: i64,
    pub(super) month: usize,
    pub(super) day: i64,
    /// From 1.
    pub(super) year_day: i64,
    /// From Sunday = 0.
    pub(super) weekday: usize,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
}

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

pub(super) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(super) fn days_in(month: i64, year: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the proleptic Gregorian calendar.
pub(super) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Bound on seconds: some 30 billion years either way, where nothing overflows.
const MAX_SECONDS: i64 = 1 << 60;

impl Time {
    pub(super) fn new(seconds: i64, nanos: i64, zone: Zone) -> Self {
        let seconds = seconds
            .saturating_add(nanos.div_euclid(NANOS))
            .clamp(-MAX_SECONDS, MAX_SECONDS);
        Self {
            seconds,
            nanos: nanos.rem_euclid(NANOS) as u32,
            zone,
        }
    }

    /// Go's zero time.
    pub(super) const fn zero() -> Self {
        Self {
            seconds: YEAR_ONE,
            nanos: 0,
            zone: Zone::Utc,
        }
    }

    pub(super) const fn unix(&self) -> i64 {
        self.seconds
    }

    pub(super) const fn nanos(&self) -> u32 {
        self.nanos
    }

    pub(super) fn in_zone(&self, zone: Zone) -> Self {
        Self { zone, ..*self }
    }

    /// Whether it is shown in a zone of this name that is none of the database.
    pub(super) fn is_in(&self, zone: &str) -> bool {
        matches!(&self.zone, Zone::Fixed { name, .. } if name == zone)
    }

    pub(super) fn add(&self, duration: Duration) -> Self {
        let nanos = i64::from(self.nanos) + duration.0 % NANOS;
        Self::new(
            self.seconds.saturating_add(duration.0 / NANOS),
            nanos,
            self.zone.clone(),
        )
    }

    /// `t.Sub(u)`, saturating.
    pub(super) fn since(&self, earlier: &Self) -> Duration {
        let nanos = (i128::from(self.seconds) - i128::from(earlier.seconds)) * i128::from(NANOS)
            + i128::from(self.nanos)
            - i128::from(earlier.nanos);
        Duration(nanos.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    }

    /// Offset of the zone in seconds, and its abbreviation.
    pub(super) fn offset(&self) -> (i64, String) {
        self.zone.at(self.seconds)
    }

    pub(super) fn civil(&self) -> Civil {
        let wall = self.seconds + self.offset().0;
        let days = wall.div_euclid(DAY);
        let second = wall.rem_euclid(DAY);
        let (year, month, day) = civil_from_days(days);
        Civil {
            year,
            month: month as usize,
            day,
            year_day: days - days_from_civil(year, 1, 1) + 1,
            weekday: (days + 4).rem_euclid(7) as usize,
            hour: second / 3_600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }

    fn is_zero(&self) -> bool {
        self.seconds == YEAR_ONE && self.nanos == 0
    }

    /// `t.AddDate`: overflowing days and months carry over.
    fn add_date(&self, years: i64, months: i64, days: i64) -> Self {
        let civil = self.civil();
        let limit = 1 << 40;
        let month = civil.month as i64 - 1 + months.clamp(-limit, limit);
        let year = civil.year + years.clamp(-limit, limit) + month.div_euclid(12);
        let day =
            days_from_civil(year, month.rem_euclid(12) + 1, 1) + civil.day - 1 + days.clamp(-limit, limit);
        let wall = day * DAY + civil.hour * 3_600 + civil.minute * 60 + civil.second;
        Self::new(self.zone.to_unix(wall), i64::from(self.nanos), self.zone.clone())
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = layout::format(self, b"2006-01-02 15:04:05.999999999 -0700 MST");
        f.write_str(&crate::value::lossy(&text))
    }
}

const NONE: Signature = Signature::fixed(&[], Returns::Concrete);
const ONE_TIME: Signature = Signature::fixed(&[Type::Object("time.Time")], Returns::Concrete);
const ONE_DURATION: Signature = Signature::fixed(&[Type::Object("time.Duration")], Returns::Concrete);
const ONE_TEXT: Signature = Signature::fixed(&[Type::Str], Returns::Concrete);
const THREE_INTS: Signature = Signature::fixed(&[Type::INT, Type::INT, Type::INT], Returns::Concrete);

impl Object for Time {
    fn type_name(&self) -> &'static str {
        super::TIME_TYPE
    }

    fn method(&self, name: &str) -> Option<Signature> {
        Some(match name {
            "Year" | "Month" | "Day" | "Hour" | "Minute" | "Second" | "Nanosecond" | "YearDay"
            | "Weekday" | "Unix" | "UnixMilli" | "UnixMicro" | "UnixNano" | "UTC" | "IsZero" | "String" => {
                NONE
            }
            "Format" => ONE_TEXT,
            "Before" | "After" | "Equal" | "Compare" | "Sub" => ONE_TIME,
            "Add" | "Round" | "Truncate" => ONE_DURATION,
            "AddDate" => THREE_INTS,
            _ => return None,
        })
    }

    fn call(&self, _: &mut Executor, name: &str, args: &[Value]) -> Result<Value, Error> {
        let civil = self.civil();
        let other = args.first().and_then(super::as_time).unwrap_or_else(Self::zero);
        let duration = args.first().and_then(super::as_duration).unwrap_or(Duration(0));
        let int = |index: usize| match args.get(index) {
            Some(Value::Int(_, int)) => *int,
            _ => 0,
        };
        let order = (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos));
        let nanos = i128::from(self.seconds) * i128::from(NANOS) + i128::from(self.nanos);
        Ok(match name {
            "Year" => Value::int(civil.year),
            "Month" => Value::object(Named::Month(civil.month)),
            "Day" => Value::int(civil.day),
            "Hour" => Value::int(civil.hour),
            "Minute" => Value::int(civil.minute),
            "Second" => Value::int(civil.second),
            "Nanosecond" => Value::int(i64::from(self.nanos)),
            "YearDay" => Value::int(civil.year_day),
            "Weekday" => Value::object(Named::Weekday(civil.weekday)),
            "Unix" => Value::int64(self.seconds),
            "UnixMilli" => Value::int64(nanos.div_euclid(1_000_000) as i64),
            "UnixMicro" => Value::int64(nanos.div_euclid(1_000) as i64),
            "UnixNano" => Value::int64(nanos as i64),
            "UTC" => Value::object(self.in_zone(Zone::Utc)),
            "IsZero" => Value::Bool(self.is_zero()),
            "Format" => {
                let wanted = args
                    .first()
                    .and_then(Value::as_str)
                    .map_or(&[][..], Str::as_bytes);
                Value::from(layout::format(self, wanted))
            }
            "Before" => Value::Bool(order.is_lt()),
            "After" => Value::Bool(order.is_gt()),
            "Equal" => Value::Bool(order.is_eq()),
            "Compare" => Value::int(order as i64),
            "Sub" => Value::object(self.since(&other)),
            "Add" => Value::object(self.add(duration)),
            "AddDate" => Value::object(self.add_date(int(0), int(1), int(2))),
            "Round" | "Truncate" => {
                // Multiples count from the zero time.
                let since_zero = nanos - i128::from(YEAR_ONE) * i128::from(NANOS);
                let unit = i128::from(duration.0.max(1));
                let rest = since_zero.rem_euclid(unit);
                let up = name == "Round" && rest * 2 >= unit;
                let change = if up { unit - rest } else { -rest };
                Value::object(self.add(Duration(change as i64)))
            }
            _ => Value::from(self.to_string()),
        })
    }

    fn string(&self) -> Option<Str> {
        Some(self.to_string().into())
    }

    fn go_string(&self) -> Option<Str> {
        let civil = self.civil();
        let month = civil.month.checked_sub(1).and_then(|index| MONTHS.get(index));
        let code = format!(
            "time.Date({}, time.{}, {}, {}, {}, {}, {}, {})",
            civil.year,
            month.copied().unwrap_or_default(),
            civil.day,
            civil.hour,
            civil.minute,
            civil.second,
            self.nanos,
            self.zone.code()
        );
        Some(code.into())
    }

    fn data(&self) -> Option<Value> {
        Some(Value::from(layout::format(
            self,
            b"2006-01-02T15:04:05.999999999Z07:00",
        )))
    }

    fn equals(&self, other: &dyn Object) -> bool {
        super::same(self, other)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// `time.Month` and `time.Weekday`: integers that print as names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Month(usize),
    Weekday(usize),
}

impl Object for Named {
    fn type_name(&self) -> &'static str {
        match self {
            Self::Month(_) => "time.Month",
            Self::Weekday(_) => "time.Weekday",
        }
    }

    fn kind(&self) -> Kind {
        Kind::Int
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "String").then_some(NONE)
    }

    fn call(&self, _: &mut Executor, _: &str, _: &[Value]) -> Result<Value, Error> {
        Ok(Value::Str(self.string().unwrap_or_default()))
    }

    fn string(&self) -> Option<Str> {
        let name = match self {
            Self::Month(month) => month.checked_sub(1).and_then(|index| MONTHS.get(index)),
            Self::Weekday(weekday) => WEEKDAYS.get(*weekday),
        };
        name.map(|name| Str::from(*name))
    }

    fn data(&self) -> Option<Value> {
        let (Self::Month(number) | Self::Weekday(number)) = self;
        Some(Value::int(*number as i64))
    }

    fn truth(&self) -> bool {
        !matches!(self, Self::Weekday(0))
    }

    fn equals(&self, other: &dyn Object) -> bool {
        super::same(self, other)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
