//! One way to render one chart.

use std::path::PathBuf;

/// Name of the release in every case.
const RELEASE: &str = "try";

/// A set of values and further flags. Both engines get the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Case {
    /// What it is called in the report and in file names.
    pub(super) name: String,
    /// A file of values besides the chart's own.
    pub(super) values: Option<PathBuf>,
    /// Further flags.
    pub(super) flags: Vec<String>,
}

impl Case {
    /// The arguments of `template` for a chart at that path.
    pub(super) fn arguments(&self, chart: &str) -> Vec<String> {
        let mut arguments = vec!["template".to_owned(), RELEASE.to_owned(), chart.to_owned()];
        if let Some(values) = &self.values {
            arguments.extend(["-f".to_owned(), values.display().to_string()]);
        }
        arguments.extend(self.flags.iter().cloned());
        arguments
    }
}
