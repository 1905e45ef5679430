//! Bounds on renders, as flags of the commands that render for clusters.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use evenkeel_chart::Limits;
use evenkeel_component::RenderLimits;
use evenkeel_core::HumanDuration;

/// Bounds on the render of one component. Passing one fails that component, with the template and the bound told.
#[derive(Debug, Args)]
#[command(next_help_heading = "Bounds on the render of one component")]
#[group(skip)]
pub(crate) struct Arguments {
    /// How long it may take
    #[arg(long, value_name = "DURATION", env = "EVENKEEL_RENDER_TIME", hide_env = true, default_value_t = HumanDuration(RenderLimits::default().time))]
    render_time: HumanDuration,
    /// How much its templates may print
    #[arg(long, value_name = "SIZE", env = "EVENKEEL_RENDER_OUTPUT", hide_env = true, default_value_t = Size(Limits::default().output_bytes))]
    render_output: Size,
    /// How much text its functions may make on the way, whether it is printed or not
    #[arg(long, value_name = "SIZE", env = "EVENKEEL_RENDER_WORK", hide_env = true, default_value_t = Size(Limits::default().work_bytes))]
    render_work: Size,
    /// How often its loops may go round
    #[arg(long, value_name = "COUNT", env = "EVENKEEL_RENDER_ITERATIONS", hide_env = true, default_value_t = Limits::default().iterations)]
    render_iterations: usize,
    /// How deep its templates may call each other
    #[arg(long, value_name = "COUNT", env = "EVENKEEL_RENDER_DEPTH", hide_env = true, default_value_t = Depth(Limits::default().call_depth))]
    render_depth: Depth<20_000>,
    /// How deep its lists and mappings may nest
    #[arg(long, value_name = "COUNT", env = "EVENKEEL_RENDER_NESTING", hide_env = true, default_value_t = Depth(Limits::default().value_depth))]
    render_nesting: Depth<2_000>,
}

impl Arguments {
    /// The bounds that were given, and the defaults of the rest.
    pub(crate) fn limits(&self) -> RenderLimits {
        RenderLimits {
            engine: Limits {
                call_depth: self.render_depth.0,
                output_bytes: self.render_output.0,
                work_bytes: self.render_work.0,
                iterations: self.render_iterations,
                value_depth: self.render_nesting.0,
            },
            time: self.render_time.0,
        }
    }
}

/// A number of bytes, written as Kubernetes does: `64Mi`, `1Gi`, `5000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size(usize);

/// Units from large to small.
const UNITS: [(&str, usize); 3] = [("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unit = UNITS
            .iter()
            .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
        let (number, factor) = unit.unwrap_or((text, 1));
        let number: Option<usize> = number.parse().ok();
        let size = number.and_then(|number| number.checked_mul(factor));
        size.map(Self)
            .ok_or_else(|| "expected a number of bytes such as 64Mi, 1Gi or 5000".to_owned())
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |(_, factor): &&(&str, usize)| self.0 > 0 && self.0.is_multiple_of(*factor);
        match UNITS.iter().find(whole) {
            Some((unit, factor)) => write!(f, "{}{unit}", self.0 / factor),
            None => write!(f, "{}", self.0),
        }
    }
}

/// How deep something may nest: as every level takes stack, at most `MAX` levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Depth<const MAX: usize>(usize);

impl<const MAX: usize> FromStr for Depth<MAX> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let depth = text.parse().ok().filter(|depth| (1..=MAX).contains(depth));
        depth
            .map(Self)
            .ok_or_else(|| format!("expected a number from 1 to {MAX}"))
    }
}

impl<const MAX: usize> fmt::Display for Depth<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_with_units() {
        for (text, bytes) in [("5000", 5_000), ("64Mi", 64 << 20), ("1Gi", 1 << 30), ("0", 0)] {
            assert_eq!(Size::from_str(text), Ok(Size(bytes)));
            assert_eq!(Size(bytes).to_string(), text);
        }
        for wrong in ["", "Mi", "64M", "-1", "99999999999999Gi"] {
            assert!(Size::from_str(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn depths_have_an_end() {
        assert_eq!(Depth::<10>::from_str("10"), Ok(Depth(10)));
        for wrong in ["0", "11", "x"] {
            assert!(Depth::<10>::from_str(wrong).is_err(), "{wrong}");
        }
    }
}
