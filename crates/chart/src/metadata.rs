//! `Chart.yaml`: what a chart says about itself and what it depends on.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_goyaml::{Numbers, Value, from_yaml};

use crate::Error;
use crate::decode::{self, Place, names};
use evenkeel_gotemplate::{go_quoted, is_version};

/// The contents of `Chart.yaml`, of either API version.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Metadata {
    /// The chart's name; a sub-chart's values sit under it.
    pub name: String,
    /// Home page.
    pub home: String,
    /// Where its source is.
    pub sources: Vec<String>,
    /// Its version, SemVer 2.
    pub version: String,
    /// One sentence.
    pub description: String,
    /// Keywords.
    pub keywords: Vec<String>,
    /// Who looks after it.
    pub maintainers: Vec<Maintainer>,
    /// Address of an icon.
    pub icon: String,
    /// `v1` or `v2`.
    pub api_version: String,
    /// Unused by Helm since version 3.
    pub condition: String,
    /// Unused by Helm since version 3.
    pub tags: String,
    /// Version of the application inside.
    pub app_version: String,
    /// Its authors advise against using it.
    pub deprecated: bool,
    /// Free texts.
    pub annotations: Option<BTreeMap<String, String>>,
    /// The Kubernetes versions it runs on, a SemVer constraint.
    pub kube_version: String,
    /// Declared dependencies; `None` and an empty list differ in how sub-charts are processed.
    pub dependencies: Option<Vec<Dependency>>,
    /// `application` (the default) or `library`.
    pub kind: String,
}

/// Why a field cannot be read.
enum Fault {
    Type(String),
    /// A list whose items are objects has one that is `null`.
    NullNode(&'static str),
}

impl From<String> for Fault {
    fn from(problem: String) -> Self {
        Fault::Type(problem)
    }
}

/// A person or organisation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Maintainer {
    /// Name.
    pub name: String,
    /// Mail address.
    pub email: String,
    /// Address of a page.
    pub url: String,
}

/// A chart that another chart depends on.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Dependency {
    /// Name of the chart in `charts/`.
    pub name: String,
    /// A version, or a range of them.
    pub version: String,
    /// Where it was fetched from.
    pub repository: String,
    /// Comma-separated paths in the values; the first that holds a boolean decides.
    pub condition: String,
    /// Groups that are switched on and off together by `tags` in the values.
    pub tags: Vec<String>,
    /// The outcome of conditions and tags.
    pub enabled: bool,
    /// Values taken over from the dependency.
    pub import_values: Vec<ImportValues>,
    /// The name to use instead of its own.
    pub alias: String,
}

/// One entry of a dependency's `import-values`.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportValues {
    /// A name below the dependency's `exports`.
    Export(String),
    /// A path in the dependency's values, and where it goes in the parent's.
    Path {
        /// Dotted path in the dependency.
        child: String,
        /// Dotted path in the parent; `.` is its top.
        parent: String,
    },
    /// Anything else: Helm passes over it.
    Ignored,
}

impl Metadata {
    /// Reads a YAML text on top of what is already there: `Chart.yaml` first, `requirements.yaml` after it.
    pub(crate) fn read(&mut self, file: &str, text: &[u8]) -> Result<(), Error> {
        let tree = from_yaml(text, Numbers::Exact).map_err(|e| Error::chart_file(file, e))?;
        self.take(&tree).map_err(|fault| match fault {
            Fault::Type(problem) => Error::chart_file(file, problem),
            Fault::NullNode(list) => {
                Error::Validation(format!("{list} must not contain empty or null nodes"))
            }
        })
    }

    fn take(&mut self, tree: &Value) -> Result<(), Fault> {
        let Some(map) = decode::object(tree, "v2.Metadata")? else {
            return Ok(());
        };
        for (key, value) in map {
            match FIELDS
                .iter()
                .find(|field| names(key, field))
                .copied()
                .unwrap_or_default()
            {
                "name" => decode::text(value, &mut self.name, Place("name"))?,
                "home" => decode::text(value, &mut self.home, Place("home"))?,
                "sources" => decode::texts(value, &mut self.sources, Place("sources"))?,
                "version" => decode::text(value, &mut self.version, Place("version"))?,
                "description" => decode::text(value, &mut self.description, Place("description"))?,
                "keywords" => decode::texts(value, &mut self.keywords, Place("keywords"))?,
                "maintainers" => self.maintainers = Maintainer::read_list(value)?,
                "icon" => decode::text(value, &mut self.icon, Place("icon"))?,
                "apiVersion" => decode::text(value, &mut self.api_version, Place("apiVersion"))?,
                "condition" => decode::text(value, &mut self.condition, Place("condition"))?,
                "tags" => decode::text(value, &mut self.tags, Place("tags"))?,
                "appVersion" => decode::text(value, &mut self.app_version, Place("appVersion"))?,
                "deprecated" => decode::flag(value, &mut self.deprecated, Place("deprecated"))?,
                "annotations" => decode::text_map(value, &mut self.annotations, Place("annotations"))?,
                "kubeVersion" => decode::text(value, &mut self.kube_version, Place("kubeVersion"))?,
                "dependencies" => self.dependencies = Dependency::read_list(value)?,
                "type" => decode::text(value, &mut self.kind, Place("type"))?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks what Helm checks at loading, and cleans the texts of control characters as Helm does.
    pub(crate) fn validate(&mut self) -> Result<(), Error> {
        for text in [
            &mut self.name,
            &mut self.description,
            &mut self.home,
            &mut self.icon,
            &mut self.condition,
            &mut self.tags,
            &mut self.app_version,
            &mut self.kube_version,
        ] {
            sanitize(text);
        }
        self.sources
            .iter_mut()
            .chain(&mut self.keywords)
            .for_each(sanitize);

        let refuse = |problem: String| Err(Error::Validation(problem));
        if self.api_version.is_empty() {
            return refuse("chart.metadata.apiVersion is required".to_owned());
        }
        if self.name.is_empty() {
            return refuse("chart.metadata.name is required".to_owned());
        }
        if self.name == "." || self.name == ".." {
            return refuse(format!(
                "chart.metadata.name {} is not allowed",
                go_quoted(&self.name)
            ));
        }
        if self.name.contains('/') {
            return refuse(format!(
                "chart.metadata.name {} is invalid",
                go_quoted(&self.name)
            ));
        }
        if self.version.is_empty() {
            return refuse("chart.metadata.version is required".to_owned());
        }
        if !is_version(&self.version) {
            return refuse(format!(
                "chart.metadata.version {} is invalid",
                go_quoted(&self.version)
            ));
        }
        if !matches!(self.kind.as_str(), "" | "application" | "library") {
            return refuse("chart.metadata.type must be application or library".to_owned());
        }
        for maintainer in &mut self.maintainers {
            [&mut maintainer.name, &mut maintainer.email, &mut maintainer.url]
                .into_iter()
                .for_each(sanitize);
        }
        let mut seen = BTreeSet::new();
        for dependency in self.dependencies.iter_mut().flatten() {
            dependency.validate()?;
            let key = if dependency.alias.is_empty() {
                &dependency.name
            } else {
                &dependency.alias
            };
            if !seen.insert(key.clone()) {
                return refuse(format!(
                    "more than one dependency with name or alias {}",
                    go_quoted(key)
                ));
            }
        }
        Ok(())
    }

    /// A library chart gives named templates to others and renders nothing itself.
    pub fn is_library(&self) -> bool {
        self.kind.eq_ignore_ascii_case("library")
    }
}

const FIELDS: [&str; 17] = [
    "name",
    "home",
    "sources",
    "version",
    "description",
    "keywords",
    "maintainers",
    "icon",
    "apiVersion",
    "condition",
    "tags",
    "appVersion",
    "deprecated",
    "annotations",
    "kubeVersion",
    "dependencies",
    "type",
];

impl Maintainer {
    fn read_list(value: &Value) -> Result<Vec<Self>, Fault> {
        let items = decode::list(value, Place("maintainers"), "[]*v2.Maintainer")?;
        let mut all = Vec::new();
        for item in items.unwrap_or_default() {
            let Some(map) = decode::object(item, "v2.Maintainer")? else {
                return Err(Fault::NullNode("maintainers"));
            };
            let mut one = Maintainer::default();
            for (key, value) in map {
                if names(key, "name") {
                    decode::text(value, &mut one.name, Place("name"))?;
                } else if names(key, "email") {
                    decode::text(value, &mut one.email, Place("email"))?;
                } else if names(key, "url") {
                    decode::text(value, &mut one.url, Place("url"))?;
                }
            }
            all.push(one);
        }
        Ok(all)
    }
}

impl Dependency {
    fn read_list(value: &Value) -> Result<Option<Vec<Self>>, Fault> {
        let place = Place("dependencies");
        let Some(items) = decode::list(value, place, "[]*v2.Dependency")? else {
            return Ok(None);
        };
        items
            .iter()
            .map(Self::read)
            .collect::<Result<Vec<_>, _>>()
            .map(Some)
    }

    fn read(value: &Value) -> Result<Self, Fault> {
        let mut one = Dependency::default();
        let Some(map) = decode::object(value, "v2.Dependency")? else {
            return Err(Fault::NullNode("dependencies"));
        };
        for (key, value) in map {
            if names(key, "name") {
                decode::text(value, &mut one.name, Place("name"))?;
            } else if names(key, "version") {
                decode::text(value, &mut one.version, Place("version"))?;
            } else if names(key, "repository") {
                decode::text(value, &mut one.repository, Place("repository"))?;
            } else if names(key, "condition") {
                decode::text(value, &mut one.condition, Place("condition"))?;
            } else if names(key, "tags") {
                decode::texts(value, &mut one.tags, Place("tags"))?;
            } else if names(key, "enabled") {
                decode::flag(value, &mut one.enabled, Place("enabled"))?;
            } else if names(key, "alias") {
                decode::text(value, &mut one.alias, Place("alias"))?;
            } else if names(key, "import-values") {
                let items = decode::list(value, Place("import-values"), "[]interface {}")?;
                one.import_values = items.unwrap_or_default().iter().map(ImportValues::read).collect();
            }
        }
        Ok(one)
    }

    fn validate(&mut self) -> Result<(), Error> {
        [
            &mut self.name,
            &mut self.version,
            &mut self.repository,
            &mut self.condition,
        ]
        .into_iter()
        .chain(&mut self.tags)
        .for_each(sanitize);
        if !self
            .alias
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        {
            let problem = format!(
                "dependency {} has disallowed characters in the alias",
                go_quoted(&self.name)
            );
            return Err(Error::Validation(problem));
        }
        Ok(())
    }
}

impl ImportValues {
    fn read(value: &Value) -> Self {
        let path = |value: Option<&Value>| match value {
            Some(Value::String(s)) => s.clone(),
            Some(Value::Bool(b)) => b.to_string(),
            Some(Value::Int(i)) => i.to_string(),
            _ => "<nil>".to_owned(),
        };
        match value {
            Value::String(s) => ImportValues::Export(s.clone()),
            Value::Map(map) => ImportValues::Path {
                child: path(map.get("child")),
                parent: path(map.get("parent")),
            },
            _ => ImportValues::Ignored,
        }
    }
}

/// Blanks of all kinds become spaces, what cannot be printed goes.
fn sanitize(text: &mut String) {
    if text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return;
    }
    *text = text
        .chars()
        .filter_map(|c| match c {
            c if c.is_whitespace() => Some(' '),
            c if c.is_control() => None,
            // Soft hyphen and the invisible format characters.
            '\u{ad}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' => None,
            c => Some(c),
        })
        .collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Metadata, String> {
        let mut metadata = Metadata::default();
        metadata
            .read("Chart.yaml", text.as_bytes())
            .map_err(|e| e.to_string())?;
        metadata.validate().map_err(|e| e.to_string())?;
        Ok(metadata)
    }

    #[test]
    fn scalars_become_texts_and_names_ignore_case() {
        let metadata = read("apiVersion: v2\nname: a\nVersion: 1.0\nappversion: 1.10\n").unwrap();
        assert_eq!(
            (metadata.version.as_str(), metadata.app_version.as_str()),
            ("1", "1.1")
        );
    }

    #[test]
    fn faults_are_named() {
        for (text, problem) in [
            (
                "name: a\nversion: 1.0.0\n",
                "validation: chart.metadata.apiVersion is required",
            ),
            (
                "apiVersion: v2\nversion: 1.0.0\n",
                "validation: chart.metadata.name is required",
            ),
            (
                "apiVersion: v2\nname: a/b\nversion: 1.0.0\n",
                "validation: chart.metadata.name \"a/b\" is invalid",
            ),
            (
                "apiVersion: v2\nname: a\nversion: one\n",
                "validation: chart.metadata.version \"one\" is invalid",
            ),
            (
                "apiVersion: v2\nname: a\nversion: 1.0.0\ntype: x\n",
                "validation: chart.metadata.type must be application or library",
            ),
            (
                "apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies:\n- name: b\n- name: c\n  alias: b\n",
                "validation: more than one dependency with name or alias \"b\"",
            ),
            (
                "apiVersion: v2\nname: [a]\nversion: 1.0.0\n",
                "cannot load Chart.yaml: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go struct field .name of \
                 type string",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), problem);
        }
    }
}
