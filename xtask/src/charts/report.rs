//! What the comparison found, for people and for programs.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use similar::TextDiff;

use super::case::Case;
use super::comparison::{Class, Verdict};
use super::discovery::ChartPath;
use super::engine::{Engines, Pair};
use super::fault::Fault;

/// Up to so many charts each has a line of its own; beyond, each repository.
const LINES_PER_CHART: usize = 60;

/// Bytes of one shown line.
const LINE_BYTES: usize = 220;

/// A case that was rendered and judged.
pub(super) struct Finished {
    case: String,
    class: Class,
    /// How to repeat it by hand.
    commands: [String; 2],
    /// What differs; empty for the classes that need no eye.
    difference: String,
    theirs: Duration,
    ours: Duration,
}

impl Finished {
    /// Keeps what the report needs.
    pub(super) fn new(
        engines: &Engines,
        chart: &ChartPath,
        case: Case,
        pair: &Pair,
        verdict: Verdict,
    ) -> Self {
        let runs = u32::try_from(pair.theirs.len()).unwrap_or(u32::MAX).max(1);
        Self {
            class: verdict.class,
            commands: engines.commands(chart, &case),
            case: case.name,
            difference: match verdict.class {
                Class::Different | Class::OtherWording => difference(pair),
                Class::Equal | Class::Masked | Class::SameError => String::new(),
            },
            theirs: pair.theirs.iter().map(|outcome| outcome.cpu).sum::<Duration>() / runs,
            ours: pair.ours.cpu,
        }
    }
}

fn difference(pair: &Pair) -> String {
    let ours = &pair.ours;
    let same = pair.theirs.iter().find(|theirs| theirs.success == ours.success);
    match same.or_else(|| pair.theirs.first()) {
        Some(theirs) if theirs.success && ours.success => {
            let theirs = String::from_utf8_lossy(&theirs.output);
            let ours = String::from_utf8_lossy(&ours.output);
            TextDiff::from_lines(theirs.as_ref(), ours.as_ref())
                .unified_diff()
                .context_radius(2)
                .header("helm", "evenkeel")
                .to_string()
        }
        Some(theirs) => format!(
            "helm:     {}\nevenkeel: {}",
            spoken(theirs.success, &theirs.errors),
            spoken(ours.success, &ours.errors)
        ),
        None => String::new(),
    }
}

fn spoken(success: bool, errors: &str) -> String {
    if success {
        return "no error".to_owned();
    }
    Fault::read(errors).text().to_owned()
}

/// All that was found.
pub(super) struct Report {
    charts: usize,
    /// By name of the chart; with each its repository.
    cases: BTreeMap<String, (String, Vec<Finished>)>,
}

impl Report {
    /// An empty report about so many charts.
    pub(super) fn new(charts: usize) -> Self {
        Self {
            charts,
            cases: BTreeMap::new(),
        }
    }

    /// Adds a chart, and says how far we are.
    pub(super) fn add(&mut self, chart: &ChartPath, cases: Vec<Finished>) {
        let different = cases.iter().filter(|case| case.class == Class::Different).count();
        if different > 0 {
            println!(
                "{}: {different} of {} runs are different",
                chart.name(),
                cases.len()
            );
        }
        self.cases
            .insert(chart.name().to_owned(), (chart.repository().to_owned(), cases));
        if self.cases.len().is_multiple_of(100) {
            println!("{} of {} charts", self.cases.len(), self.charts);
        }
    }

    fn all(&self) -> impl Iterator<Item = (&str, &Finished)> {
        self.cases
            .iter()
            .flat_map(|(chart, (_, cases))| cases.iter().map(move |case| (chart.as_str(), case)))
    }

    /// Cases of that class.
    pub(super) fn count(&self, class: Class) -> usize {
        self.all().filter(|(_, case)| case.class == class).count()
    }

    /// Cases.
    pub(super) fn runs(&self) -> usize {
        self.all().count()
    }

    /// Prints everything for people.
    pub(super) fn print(&self, diff_lines: usize, slower_than: f64) {
        self.print_table();
        for class in [Class::OtherWording, Class::Different] {
            for (chart, case) in self.all().filter(|(_, case)| case.class == class) {
                println!("\n{}: {chart}, {}", class.name(), case.case);
                for command in &case.commands {
                    println!("  {command}");
                }
                println!("{}", shortened(&case.difference, diff_lines));
            }
        }
        self.print_speed(slower_than);
        println!("\n{} charts, {} runs", self.cases.len(), self.runs());
        for class in Class::ALL {
            println!("{:>8}  {}", self.count(class), class.name());
        }
    }

    fn print_table(&self) {
        let mut rows: BTreeMap<&str, (usize, [usize; Class::ALL.len()])> = BTreeMap::new();
        for (chart, (repository, cases)) in &self.cases {
            let name = if self.cases.len() > LINES_PER_CHART {
                repository
            } else {
                chart
            };
            let row = rows.entry(name).or_default();
            row.0 += 1;
            for case in cases {
                let counted = Class::ALL
                    .iter()
                    .zip(&mut row.1)
                    .find(|(class, _)| **class == case.class);
                if let Some((_, count)) = counted {
                    *count += 1;
                }
            }
        }
        let width = rows.keys().map(|name| name.len()).max().unwrap_or(0);
        print!("\n{:width$}  charts", "");
        for class in Class::ALL {
            print!("  {}", class.name());
        }
        println!();
        for (name, (charts, counts)) in rows {
            print!("{name:width$}  {charts:>6}");
            for (class, count) in Class::ALL.iter().zip(counts) {
                print!("  {count:>0$}", class.name().len());
            }
            println!();
        }
    }

    fn print_speed(&self, slower_than: f64) {
        let mut ratios: Vec<(f64, &str, &Finished)> = self
            .all()
            .filter(|(_, case)| matches!(case.class, Class::Equal | Class::Masked))
            .map(|(chart, case)| {
                (
                    case.theirs.as_secs_f64() / case.ours.as_secs_f64().max(1e-4),
                    chart,
                    case,
                )
            })
            .collect();
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some((median, _, _)) = ratios.get(ratios.len() / 2) else {
            return;
        };
        println!("\nprocessor time of helm over that of evenkeel: median {median:.1}");
        for (ratio, chart, case) in ratios.iter().take_while(|(ratio, _, _)| *ratio < slower_than) {
            println!(
                "  {ratio:.1}: {} ms over {} ms, {chart}, {}",
                case.theirs.as_millis(),
                case.ours.as_millis(),
                case.case
            );
        }
    }

    /// The counts for programs.
    pub(super) fn json(&self) -> String {
        json!({
            "charts": self.cases.len(),
            "runs": self.runs(),
            "equal": self.count(Class::Equal),
            "masked_equal": self.count(Class::Masked),
            "same_error_class": self.count(Class::SameError) + self.count(Class::OtherWording),
            "other_wording": self.count(Class::OtherWording),
            "different": self.count(Class::Different),
        })
        .to_string()
    }
}

/// The first lines, each cut.
fn shortened(text: &str, most: usize) -> String {
    let mut lines: Vec<String> = text
        .lines()
        .take(most)
        .map(|line| match line.char_indices().nth(LINE_BYTES) {
            Some((end, _)) => format!("  {}…", line.get(..end).unwrap_or(line)),
            None => format!("  {line}"),
        })
        .collect();
    let more = text.lines().count().saturating_sub(most);
    if more > 0 {
        lines.push(format!("  … and {more} lines more"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_shortened() {
        assert_eq!(shortened("a\nb\nc\n", 2), "  a\n  b\n  … and 1 lines more");
        assert!(shortened(&"x".repeat(1000), 2).len() < 300);
    }

    #[test]
    fn counts_are_printed_for_programs() {
        let finished = |class| Finished {
            case: "default".to_owned(),
            class,
            commands: [String::new(), String::new()],
            difference: String::new(),
            theirs: Duration::from_millis(80),
            ours: Duration::from_millis(5),
        };
        let mut report = Report::new(1);
        report.cases.insert(
            "a".to_owned(),
            (String::new(), Class::ALL.map(finished).into_iter().collect()),
        );
        let counts: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(
            counts,
            json!({"charts": 1, "runs": 5, "equal": 1, "masked_equal": 1, "same_error_class": 2, "other_wording": 1, "different": 1})
        );
    }
}
