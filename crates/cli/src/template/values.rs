//! The user's values: the flags that give them, and reading what they name.

use std::fs;
use std::io::{self, Read as _};

use anyhow::anyhow;
use evenkeel_chart::{ValueSources, ValuesFile};
use evenkeel_source::{Helm, io_cause};

use super::flags::Fields;
use crate::charts;

/// Values from files and from the command line.
#[derive(Debug, clap::Args)]
pub(super) struct Values {
    /// Values files or http(s) addresses of them, later ones win (`-` is the standard input)
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    files: Vec<Fields>,
    /// Set values: `key=value,list[0]=value,…`
    #[arg(long, value_name = "VALUES")]
    set: Vec<String>,
    /// Set text values
    #[arg(long, value_name = "VALUES")]
    set_string: Vec<String>,
    /// Set JSON values: `key=json` or a JSON object
    #[arg(long, value_name = "VALUES")]
    set_json: Vec<String>,
    /// Set values from files: `key=path`
    #[arg(long, value_name = "VALUES")]
    set_file: Vec<String>,
    /// Set one text value; commas, braces and backslashes mean nothing
    #[arg(long, value_name = "VALUE")]
    set_literal: Vec<String>,
}

impl Values {
    /// Lays all of them over each other, in Helm's order.
    pub(super) fn merge(&self) -> anyhow::Result<evenkeel_goyaml::Value> {
        let files = self.files.iter().flat_map(|fields| &fields.0);
        let files = files.map(|name| {
            Ok(ValuesFile {
                name: name.clone(),
                text: read(name)?,
            })
        });
        let sources = ValueSources {
            files: files.collect::<anyhow::Result<_>>()?,
            json: self.set_json.clone(),
            typed: self.set.clone(),
            text: self.set_string.clone(),
            file: self.set_file.clone(),
            literal: self.set_literal.clone(),
        };
        Ok(sources.merge(|path| read(path).map_err(|error| format!("{error:#}")))?)
    }
}

/// A file, what lies at an address, or the standard input for `-`.
fn read(path: &str) -> anyhow::Result<Vec<u8>> {
    if path.trim() == "-" {
        let mut text = Vec::new();
        io::stdin().lock().read_to_end(&mut text)?;
        return Ok(text);
    }
    if Helm::are_values_elsewhere(path)? {
        return charts::fetch_text(path);
    }
    fs::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => anyhow!("read {path}: {}", io_cause(&error)),
        _ => anyhow!("open {path}: {}", io_cause(&error)),
    })
}
