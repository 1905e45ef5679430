//! `.helmignore`: which files of a chart directory are not part of the chart.

use crate::Error;
use crate::path_match::path_match;

/// The rules of one `.helmignore`, in order.
///
/// A directory reader asks [`IgnoreRules::ignores`] for each entry and does not descend into an ignored directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoreRules {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    pattern: String,
    scope: Scope,
    negated: bool,
    directories_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// The pattern has a slash: it is compared with the whole path.
    Path,
    /// It has none: only with the last part.
    Name,
}

impl IgnoreRules {
    /// The name of the file that holds the rules, at the top of the chart.
    pub const FILE: &str = ".helmignore";

    /// The rules that hold without any file: dot files below `templates/` are no templates.
    pub fn defaults() -> Self {
        let mut rules = Self::default();
        // A constant of ours; it parses.
        let _ = rules.add("templates/.?*");
        rules
    }

    /// Reads a `.helmignore`; the default rules come after its own.
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        let mut rules = Self::default();
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        for (index, line) in String::from_utf8_lossy(text).lines().enumerate() {
            rules
                .add(line)
                .map_err(|problem| Error::Ignore(format!("line {}: {problem}", index + 1)))?;
        }
        rules.rules.extend(Self::defaults().rules);
        Ok(rules)
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if line.contains("**") {
            return Err("double-star (**) syntax is not supported".to_owned());
        }
        path_match(line, "abc").map_err(|e| e.to_string())?;

        let (negated, pattern) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let (directories_only, pattern) = pattern
            .strip_suffix('/')
            .map_or((false, pattern), |rest| (true, rest));
        let (scope, pattern) = match pattern.strip_prefix('/') {
            Some(rest) => (Scope::Path, rest),
            None if pattern.contains('/') => (Scope::Path, pattern),
            None => (Scope::Name, pattern),
        };
        self.rules.push(Rule {
            pattern: pattern.to_owned(),
            scope,
            negated,
            directories_only,
        });
        Ok(())
    }

    /// Is this entry left out? `path` is relative to the chart, with `/` between its parts.
    pub fn ignores(&self, path: &str, is_directory: bool) -> bool {
        if matches!(path, "" | "." | "./") {
            return false;
        }
        for rule in &self.rules {
            let outside = rule.directories_only && !is_directory;
            // Helm's reading of a negated rule: whatever does not match it is left out.
            if rule.negated {
                if outside || !rule.matches(path) {
                    return true;
                }
            } else if !outside && rule.matches(path) {
                return true;
            }
        }
        false
    }
}

impl Rule {
    fn matches(&self, path: &str) -> bool {
        let subject = match self.scope {
            Scope::Path => path,
            Scope::Name => path.rsplit('/').next().unwrap_or(path),
        };
        path_match(&self.pattern, subject).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helms_own_cases() {
        for (rules, path, is_directory, expected) in [
            ("helm.txt", "helm.txt", false, true),
            ("helm.*", "helm.txt", false, true),
            ("helm.*", "rudder.txt", false, false),
            ("*.txt", "tiller.txt", false, true),
            ("cargo/a.txt", "cargo/a.txt", false, true),
            ("cargo/*.txt", "cargo/a.txt", false, true),
            ("/a.txt", "a.txt", false, true),
            ("/a.txt", "cargo/a.txt", false, false),
            ("a.txt", "cargo/a.txt", false, true),
            ("cargo/", "cargo", true, true),
            ("cargo/", "cargo", false, false),
            ("!helm.txt", "helm.txt", false, false),
            ("!helm.txt", "tiller.txt", false, true),
            ("!cargo/", "mast", true, true),
            ("# comment\n\n *.md \r\n", "README.md", false, true),
            ("", "templates/.dotfile", false, true),
            ("", "templates/x.yaml", false, false),
            ("", ".helmignore", false, false),
        ] {
            let parsed = IgnoreRules::parse(rules.as_bytes()).unwrap();
            assert_eq!(parsed.ignores(path, is_directory), expected, "{rules:?} {path}");
        }
    }

    #[test]
    fn faults_name_the_line() {
        let error = IgnoreRules::parse(b"a\n**/b\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            ".helmignore: line 2: double-star (**) syntax is not supported"
        );
        assert!(IgnoreRules::parse(b"a[\n").is_err());
    }
}
