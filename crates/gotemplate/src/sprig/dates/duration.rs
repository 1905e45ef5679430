//! Go's `time.Duration`.

use std::any::Any;
use std::fmt;

use crate::Error;
use crate::exec::Executor;
use crate::value::{Kind, Object, Returns, Signature, Str, Type, Value};

/// Nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Duration(pub(super) i64);

const TOP: u64 = 1 << 63;

impl Duration {
    /// `time.ParseDuration`
    pub(super) fn parse(source: &[u8]) -> Result<Self, String> {
        let shown = || super::layout::quote(source);
        let invalid = || format!("time: invalid duration {}", shown());
        let (negative, mut rest) = match source {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, source),
        };
        if rest == b"0" {
            return Ok(Self(0));
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total: u64 = 0;
        while let Some(first) = rest.first() {
            if !(*first == b'.' || first.is_ascii_digit()) {
                return Err(invalid());
            }
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (whole, tail) = rest.split_at(digits);
            let mut value: u64 = 0;
            for byte in whole {
                value = value
                    .checked_mul(10)
                    .and_then(|value| value.checked_add(u64::from(byte - b'0')))
                    .filter(|value| *value <= TOP)
                    .ok_or_else(invalid)?;
            }
            rest = tail;
            let (mut fraction, mut scale): (u64, f64) = (0, 1.0);
            let mut fraction_digits = 0;
            if let [b'.', tail @ ..] = rest {
                fraction_digits = tail.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let (digits, tail) = tail.split_at(fraction_digits);
                for byte in digits {
                    // Digits beyond 63 bits make no difference.
                    let Some(next) = fraction
                        .checked_mul(10)
                        .and_then(|f| f.checked_add(u64::from(byte - b'0')))
                    else {
                        break;
                    };
                    if next > TOP {
                        break;
                    }
                    fraction = next;
                    scale *= 10.0;
                }
                rest = tail;
            }
            if whole.is_empty() && fraction_digits == 0 {
                return Err(invalid());
            }
            let letters = rest
                .iter()
                .take_while(|byte| !(**byte == b'.' || byte.is_ascii_digit()))
                .count();
            let (name, tail) = rest.split_at(letters);
            rest = tail;
            if name.is_empty() {
                return Err(format!("time: missing unit in duration {}", shown()));
            }
            let unit: u64 = match name {
                b"ns" => 1,
                b"us" => 1_000,
                _ if name == "µs".as_bytes() || name == "μs".as_bytes() => 1_000,
                b"ms" => 1_000_000,
                b"s" => 1_000_000_000,
                b"m" => 60_000_000_000,
                b"h" => 3_600_000_000_000,
                _ => {
                    let unit = super::layout::quote(name);
                    return Err(format!("time: unknown unit {unit} in duration {}", shown()));
                }
            };
            if value > TOP / unit {
                return Err(invalid());
            }
            value *= unit;
            if fraction > 0 {
                value += (fraction as f64 * (unit as f64 / scale)) as u64;
                if value > TOP {
                    return Err(invalid());
                }
            }
            total = total
                .checked_add(value)
                .filter(|total| *total <= TOP)
                .ok_or_else(invalid)?;
        }
        if negative {
            return Ok(Self(0i64.wrapping_sub_unsigned(total)));
        }
        i64::try_from(total).map(Self).map_err(|_| invalid())
    }

    /// Rounds to the nearest multiple, half away from zero.
    pub(super) fn round(self, unit: Self) -> Self {
        if unit.0 <= 0 {
            return self;
        }
        let rest = (self.0 % unit.0).abs();
        let less_than_half = (rest as u64) * 2 < unit.0 as u64;
        let rounded = match (self.0 < 0, less_than_half) {
            (true, true) => self.0.checked_add(rest),
            (true, false) => self.0.checked_sub(unit.0).and_then(|d| d.checked_add(rest)),
            (false, true) => self.0.checked_sub(rest),
            (false, false) => self.0.checked_sub(rest).and_then(|d| d.checked_add(unit.0)),
        };
        Self(rounded.unwrap_or(if self.0 < 0 { i64::MIN } else { i64::MAX }))
    }

    /// Cuts to a multiple.
    pub(super) fn truncate(self, unit: Self) -> Self {
        if unit.0 <= 0 {
            self
        } else {
            Self(self.0 - self.0 % unit.0)
        }
    }

    /// As a number of units, the whole ones exact.
    pub(super) fn in_units(self, unit: i64) -> f64 {
        (self.0 / unit) as f64 + (self.0 % unit) as f64 / unit as f64
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        if nanos == 0 {
            return f.write_str("0s");
        }
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let fraction = |number: u64, digits: usize| {
            let scale = 10u64.pow(digits as u32);
            let (whole, rest) = (number / scale, number % scale);
            let text = format!("{whole}.{rest:0digits$}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        match nanos {
            0..1_000 => return write!(f, "{nanos}ns"),
            1_000..1_000_000 => return write!(f, "{}µs", fraction(nanos, 3)),
            1_000_000..1_000_000_000 => return write!(f, "{}ms", fraction(nanos, 6)),
            _ => {}
        }
        let minutes = nanos / 60_000_000_000;
        if minutes >= 60 {
            write!(f, "{}h", minutes / 60)?;
        }
        if minutes > 0 {
            write!(f, "{}m", minutes % 60)?;
        }
        write!(f, "{}s", fraction(nanos % 60_000_000_000, 9))
    }
}

const DURATION: Type = Type::Object("time.Duration");

impl Object for Duration {
    fn type_name(&self) -> &'static str {
        DURATION.name()
    }

    fn kind(&self) -> Kind {
        Kind::Int64
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Hours" | "Minutes" | "Seconds" | "Milliseconds" | "Microseconds" | "Nanoseconds" | "String"
            | "Abs" => Some(Signature::fixed(&[], Returns::Concrete)),
            "Round" | "Truncate" => Some(Signature::fixed(&[DURATION], Returns::Concrete)),
            _ => None,
        }
    }

    fn call(&self, _: &mut Executor, name: &str, args: &[Value]) -> Result<Value, Error> {
        let unit = args.first().and_then(super::as_duration).unwrap_or(Self(0));
        Ok(match name {
            "Hours" => Value::Float(self.in_units(3_600_000_000_000)),
            "Minutes" => Value::Float(self.in_units(60_000_000_000)),
            "Seconds" => Value::Float(self.in_units(1_000_000_000)),
            "Milliseconds" => Value::int64(self.0 / 1_000_000),
            "Microseconds" => Value::int64(self.0 / 1_000),
            "Nanoseconds" => Value::int64(self.0),
            "Abs" => Value::object(Self(self.0.saturating_abs())),
            "Round" => Value::object(self.round(unit)),
            "Truncate" => Value::object(self.truncate(unit)),
            _ => Value::from(self.to_string()),
        })
    }

    fn string(&self) -> Option<Str> {
        Some(self.to_string().into())
    }

    fn data(&self) -> Option<Value> {
        Some(Value::int64(self.0))
    }

    fn truth(&self) -> bool {
        self.0 != 0
    }

    fn equals(&self, other: &dyn Object) -> bool {
        super::same(self, other)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
