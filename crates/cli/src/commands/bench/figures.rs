//! What a bench found.

use std::fmt;

use serde_json::{Map, Value};

use crate::output;

/// All figures of one bench, in the order in which they are shown.
#[derive(Debug, Default)]
pub(super) struct Figures(Vec<Figure>);

#[derive(Debug)]
struct Figure {
    name: &'static str,
    value: Number,
    goal: Option<Goal>,
    meaning: String,
}

/// A figure's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Count(u64),
    Real(f64),
}

/// What a figure should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

impl From<u64> for Number {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Number {
    fn from(real: f64) -> Self {
        Self::Real(real)
    }
}

impl Number {
    fn as_f64(self) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Real(real) => real,
        }
    }

    /// For programs: three digits behind the point are more than any of these figures is exact to.
    fn to_json(self) -> Value {
        match self {
            Self::Count(count) => count.into(),
            Self::Real(real) => ((real * 1_000.0).round() / 1_000.0).into(),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Real(real) if real.abs() < 1.0 => write!(f, "{real:.3}"),
            Self::Real(real) => write!(f, "{real:.1}"),
        }
    }
}

impl Goal {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "≥ {least}"),
            Self::AtMost(most) => write!(f, "≤ {most}"),
        }
    }
}

impl Figures {
    /// Adds a figure that has a goal.
    pub(super) fn goal(
        &mut self,
        name: &'static str,
        value: impl Into<Number>,
        goal: Goal,
        meaning: impl Into<String>,
    ) {
        self.0.push(Figure {
            name,
            value: value.into(),
            goal: Some(goal),
            meaning: meaning.into(),
        });
    }

    /// Adds a figure that is only told.
    pub(super) fn told(&mut self, name: &'static str, value: impl Into<Number>, meaning: impl Into<String>) {
        self.0.push(Figure {
            name,
            value: value.into(),
            goal: None,
            meaning: meaning.into(),
        });
    }

    /// Prints the table, and the line for programs when it is wanted.
    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        output::line(&self.table())?;
        if json {
            output::line(&self.json().to_string())?;
        }
        Ok(())
    }

    fn table(&self) -> String {
        let rows = self.0.iter().map(|figure| {
            let goal = figure.goal.map_or_else(
                || "-".to_owned(),
                |goal| {
                    let met = if goal.is_met(figure.value.as_f64()) {
                        "met"
                    } else {
                        "missed"
                    };
                    format!("{goal} {met}")
                },
            );
            [
                figure.name.to_owned(),
                figure.value.to_string(),
                goal,
                figure.meaning.clone(),
            ]
        });
        output::table(["FIGURE", "VALUE", "GOAL", "MEANING"], rows)
    }

    /// One object; a name with a point in it is a field of an object of its own.
    fn json(&self) -> Value {
        let mut fields = Map::new();
        for figure in &self.0 {
            match figure.name.split_once('.') {
                None => {
                    fields.insert(figure.name.to_owned(), figure.value.to_json());
                }
                Some((group, name)) => {
                    let group = fields.entry(group).or_insert_with(|| Value::Object(Map::new()));
                    if let Value::Object(group) = group {
                        group.insert(name.to_owned(), figure.value.to_json());
                    }
                }
            }
        }
        Value::Object(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_told_twice() {
        let mut figures = Figures::default();
        figures.goal("speed", 12.345_67, Goal::AtLeast(10.0), "how fast");
        figures.goal("requests", 12, Goal::AtMost(11.0), "how many");
        figures.told("ms", 0.25, "how long");
        figures.told("disk.ms", 1, "how long there");
        let expected = serde_json::json!({"speed": 12.346, "requests": 12, "ms": 0.25, "disk": {"ms": 1}});
        assert_eq!(figures.json(), expected);
        let table = figures.table();
        for part in ["12.3", "≥ 10 met", "≤ 11 missed", "0.250", "how long"] {
            assert!(table.contains(part), "{part}: {table}");
        }
    }
}
