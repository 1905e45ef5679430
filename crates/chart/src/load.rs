//! Sorting the files of a chart into what they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_goyaml::{Numbers, from_yaml};

use crate::Error;
use crate::chart::{ChartFile, LoadedChart};
use crate::metadata::Metadata;
use crate::schema::Schema;
use crate::values::load_values;

pub(crate) mod archive;

/// How deep charts may sit inside charts.
const MAX_NESTING: usize = 32;

/// Drops a leading byte order mark.
pub(crate) fn strip_byte_order_mark(data: &mut Vec<u8>) {
    if data.starts_with(b"\xef\xbb\xbf") {
        data.drain(..3);
    }
}

/// Loads one chart and, below it, its sub-charts. `files` is sorted by path.
pub(crate) fn load(
    files: Vec<ChartFile>,
    depth: usize,
    warnings: &mut Vec<String>,
) -> Result<LoadedChart, Error> {
    if depth > MAX_NESTING {
        return Err(Error::Archive(format!(
            "charts are nested deeper than {MAX_NESTING} levels"
        )));
    }
    let mut metadata = read_chart_file(&files)?;
    let mut chart = Parts::default();

    for file in files {
        match file.path.as_str() {
            "Chart.yaml" => {}
            "Chart.lock" | "requirements.lock" => {
                from_yaml(&file.data, Numbers::Exact).map_err(|e| Error::chart_file(&file.path, e))?;
                if file.path == "requirements.lock" {
                    chart.keep_if_v1(file, metadata.as_ref(), warnings);
                }
            }
            "values.yaml" => {
                chart.values =
                    load_values(&file.data).map_err(|problem| Error::chart_file("values.yaml", problem))?;
            }
            "values.schema.json" => chart.schema = Some(file.data),
            "requirements.yaml" => {
                metadata
                    .get_or_insert_default()
                    .read("requirements.yaml", &file.data)?;
                chart.keep_if_v1(file, metadata.as_ref(), warnings);
            }
            path if path.starts_with("templates/") => chart.templates.push(file),
            path => match path.strip_prefix("charts/") {
                Some(inner) if !path.ends_with(".prov") => {
                    let entry = inner.split('/').next().unwrap_or(inner).to_owned();
                    let path = inner.to_owned();
                    chart.subcharts.entry(entry).or_default().push(ChartFile {
                        path,
                        data: file.data,
                    });
                }
                _ => chart.files.push(file),
            },
        }
    }

    let mut metadata = metadata.ok_or(Error::NoChartFile)?;
    metadata.validate()?;
    let mut dependencies = Vec::new();
    for (entry, files) in chart.subcharts {
        // Names that start so are kept aside by packagers and editors.
        if entry.starts_with(['_', '.']) {
            continue;
        }
        let loaded = load_entry(&entry, files, depth, warnings).map_err(|problem| Error::Subchart {
            name: entry,
            parent: metadata.name.clone(),
            problem: Box::new(problem),
        })?;
        dependencies.push(Arc::new(loaded));
    }
    Ok(LoadedChart {
        metadata,
        values: Arc::new(chart.values),
        schema: chart.schema.map(Schema::new),
        templates: chart.templates,
        files: Arc::new(chart.files),
        dependencies,
    })
}

#[derive(Default)]
struct Parts {
    values: evenkeel_goyaml::Map,
    schema: Option<Arc<[u8]>>,
    templates: Vec<ChartFile>,
    files: Vec<ChartFile>,
    subcharts: BTreeMap<String, Vec<ChartFile>>,
}

impl Parts {
    /// `requirements.*` belong to charts of API version 1; there templates may read them.
    fn keep_if_v1(&mut self, file: ChartFile, metadata: Option<&Metadata>, warnings: &mut Vec<String>) {
        if metadata.is_some_and(|metadata| metadata.api_version == "v1") {
            self.files.push(file);
        } else {
            let place = if file.path.ends_with(".lock") {
                "Chart.lock"
            } else {
                "Chart.yaml"
            };
            warnings.push(format!(
                "{}: dependencies are handled in {place} since apiVersion \"v2\"; please move them there",
                file.path
            ));
        }
    }
}

fn read_chart_file(files: &[ChartFile]) -> Result<Option<Metadata>, Error> {
    let Some(file) = files.iter().find(|file| file.path == "Chart.yaml") else {
        return Ok(None);
    };
    let mut metadata = Metadata::default();
    metadata.read("Chart.yaml", &file.data)?;
    if metadata.api_version.is_empty() {
        // Charts of Helm 2 did not have to say so.
        "v1".clone_into(&mut metadata.api_version);
    }
    Ok(Some(metadata))
}

fn load_entry(
    entry: &str,
    files: Vec<ChartFile>,
    depth: usize,
    warnings: &mut Vec<String>,
) -> Result<LoadedChart, Error> {
    if entry.ends_with(".tgz") {
        let Some(file) = files.into_iter().find(|file| file.path == entry) else {
            return Err(Error::Archive(format!("expected {entry} to be a file")));
        };
        let inner = archive::unpack(&file.data)?.into_iter();
        let inner = inner.map(|(path, data)| ChartFile {
            path,
            data: data.into(),
        });
        return load(inner.collect(), depth + 1, warnings);
    }
    let inner = files
        .into_iter()
        .filter_map(|file| {
            let (_, path) = file.path.split_once('/')?;
            Some(ChartFile {
                path: path.to_owned(),
                data: file.data,
            })
        })
        .collect();
    load(inner, depth + 1, warnings)
}

#[cfg(test)]
mod tests;
