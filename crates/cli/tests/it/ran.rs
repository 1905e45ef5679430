//! How a command of the built binary ended, and what it printed.

use std::process::Output;

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Checks that standard error says all of `parts`.
    #[track_caller]
    pub(crate) fn says(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(
                self.stderr.contains(part),
                "{part:?} is not said:\n{}",
                self.stderr
            );
        }
        self
    }

    /// Checks that standard output holds all of `parts`.
    #[track_caller]
    pub(crate) fn prints(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(
                self.stdout.contains(part),
                "{part:?} is not printed:\n{}",
                self.stdout
            );
        }
        self
    }

    /// The first line of the tables that begins with `name`, as words.
    #[track_caller]
    pub(crate) fn row(&self, name: &str) -> Vec<&str> {
        let mut lines = self
            .stdout
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = lines.find(|words| words.first() == Some(&name));
        row.unwrap_or_else(|| panic!("no line about {name}:\n{}", self.stdout))
    }
}
