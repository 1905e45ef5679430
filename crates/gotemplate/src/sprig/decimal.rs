//! Exact decimals for `addf`, `mulf` and their like: 0.1 + 0.2 is 0.3.

use num_bigint::{BigInt, Sign};

use crate::Error;

/// Digits after the point that a division keeps.
const DIVISION_PRECISION: i64 = 16;

/// `value × 10^exponent`
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    value: BigInt,
    exponent: i64,
}

fn power_of_ten(exponent: i64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(exponent.max(0)).unwrap_or(u32::MAX))
}

impl Decimal {
    /// The shortest decimal that reads back as the same float.
    pub(super) fn from_float(float: f64) -> Result<Self, Error> {
        if !float.is_finite() {
            let shown = crate::fmt::format_float(float, b'g', None);
            return Err(Error::message(format!("Cannot create a Decimal from {shown}")));
        }
        let text = format!("{float:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let value = format!("{whole}{fraction}").parse().unwrap_or_default();
        let exponent: i64 = exponent.parse().unwrap_or(0);
        Ok(Self {
            value,
            exponent: exponent - fraction.len() as i64,
        })
    }

    pub(super) fn to_float(&self) -> f64 {
        // Parsing rounds to the nearest float.
        format!("{}e{}", self.value, self.exponent).parse().unwrap_or(0.0)
    }

    fn aligned(a: &Self, b: &Self) -> (BigInt, BigInt, i64) {
        let exponent = a.exponent.min(b.exponent);
        let scale = |decimal: &Self| &decimal.value * power_of_ten(decimal.exponent - exponent);
        (scale(a), scale(b), exponent)
    }

    pub(super) fn add(self, other: Self) -> Result<Self, Error> {
        let (a, b, exponent) = Self::aligned(&self, &other);
        Ok(Self {
            value: a + b,
            exponent,
        })
    }

    pub(super) fn sub(self, other: Self) -> Result<Self, Error> {
        let (a, b, exponent) = Self::aligned(&self, &other);
        Ok(Self {
            value: a - b,
            exponent,
        })
    }

    pub(super) fn mul(self, other: Self) -> Result<Self, Error> {
        Ok(Self {
            value: self.value * other.value,
            exponent: self.exponent + other.exponent,
        })
    }

    /// Division to 16 digits after the point, half away from zero.
    pub(super) fn div(self, other: Self) -> Result<Self, Error> {
        if other.value.sign() == Sign::NoSign {
            return Err(Error::message("decimal division by 0"));
        }
        let shift = self.exponent - other.exponent + DIVISION_PRECISION;
        let (numerator, denominator) = if shift < 0 {
            (self.value, other.value * power_of_ten(-shift))
        } else {
            (self.value * power_of_ten(shift), other.value)
        };
        let mut quotient = &numerator / &denominator;
        let remainder = &numerator % &denominator;
        if remainder.magnitude() * 2u32 >= *denominator.magnitude() {
            let negative = (numerator.sign() == Sign::Minus) != (denominator.sign() == Sign::Minus);
            quotient += if negative { -1 } else { 1 };
        }
        Ok(Self {
            value: quotient,
            exponent: -DIVISION_PRECISION,
        })
    }
}
