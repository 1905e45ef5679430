//! The flags that say in which order components go, beside what their clusters list.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use evenkeel_component::{Declaration, Declarations};
use evenkeel_fleet::Prerequisites;
use evenkeel_goyaml::{Numbers, from_yaml};

use crate::documents;
use crate::process::Usage;

#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// Components that go before all others where they are listed: groups one after the other, like a,b;c
    #[arg(long, value_name = "GROUPS", env = "EVENKEEL_PREREQUISITES", default_value_t = Prerequisites::default())]
    pub(crate) prerequisites: Prerequisites,
    /// A YAML file with what versions of components depend on: a list of {component, versions, dependsOn}
    #[arg(long, value_name = "FILE", env = "EVENKEEL_DECLARED_DEPENDENCIES")]
    declared_dependencies: Option<PathBuf>,
}

impl Arguments {
    /// What the file declares; nothing when there is none.
    pub(crate) fn declarations(&self) -> anyhow::Result<Declarations> {
        let Some(path) = &self.declared_dependencies else {
            return Ok(Declarations::default());
        };
        let shown = path.display();
        let wrong = |problem: String| Usage(anyhow!("--declared-dependencies {shown}: {problem}"));
        let text = documents::text(path).map_err(|error| wrong(format!("{error:#}")))?;
        let read = from_yaml(text.as_bytes(), Numbers::Exact).map_err(|error| wrong(error.to_string()))?;
        let read = serde_json::Value::try_from(read).map_err(|error| wrong(error.to_string()))?;
        let declared: Vec<Declaration> =
            serde_json::from_value(read).map_err(|error| wrong(error.to_string()))?;
        let declared = Declarations::new(declared);
        Ok(declared.map_err(|error| wrong(error.to_string()))?)
    }
}
