//! Rendering: values in, documents out.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use evenkeel_gotemplate::{
    Env, Executor, FuncMap, Instant, KeyMaker, Limits, MissingKey, RandomSource, TemplateSet, Value, parse,
};
use evenkeel_goyaml as goyaml;

use crate::capabilities::Capabilities;
use crate::chart::{Chart, ChartFile};
use crate::dependencies::{Node, check_present, enable};
use crate::manifest;
use crate::post_render::{self, PostRenderer};
use crate::release::Release;
use crate::rendered::Rendered;
use crate::values::coalesce::{Nulls, coalesce_plain};
use crate::variant::Variant;
use crate::{Error, SchemaReader, schema};
use evenkeel_gotemplate::version_satisfies;

mod capabilities;
pub(crate) mod errors;
mod files;
pub(crate) mod functions;
mod scope;
mod values;

#[cfg(test)]
mod tests;

/// Stack to have before a render starts, and the size of a new one when there is less.
const RED_ZONE: usize = 1 << 20;
const STACK: usize = 8 << 20;

/// The text that Helm removes from everything a template file or `tpl` prints.
const NO_VALUE: &[u8] = b"<no value>";

/// Answers `lookup` from a live cluster.
pub trait Lookup: Send + Sync {
    /// The object of this name, or with an empty name the list of all; `None` when it does not exist. An empty
    /// namespace means all namespaces. The error's text is shown to the user.
    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<serde_json::Value>, String>;
}

/// Finds an address of a host; none when the host is not known.
pub type Hosts = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// All that a render may see beside chart, values, release and capabilities, and its bounds.
pub struct RenderOptions {
    /// Bounds on output, depth and work.
    pub limits: Limits,
    /// The time that `now` gives.
    pub now: Instant,
    /// The local time zone by its IANA name.
    pub zone: String,
    /// Randomness for passwords.
    pub random: Box<dyn RandomSource>,
    /// Private keys for charts that make certificates; without a maker they do not render.
    pub keys: Option<Box<dyn KeyMaker>>,
    /// The cluster that `lookup` asks; without one it finds nothing, as in `helm template`.
    pub lookup: Option<Arc<dyn Lookup>>,
    /// The name service that `getHostByName` asks; without one it finds nothing, as in `helm template`.
    pub hosts: Option<Hosts>,
    /// Asked now and then; true stops the render.
    pub deadline: Option<Box<dyn Fn() -> bool>>,
    /// Reads schemas that a `values.schema.json` refers to by their addresses; without it such a reference is a fault. A
    /// chart's schema is compiled once, with the reader of the render that needs it first.
    pub schemas: Option<SchemaReader>,
    /// Do not check values against `values.schema.json`.
    pub skip_schema_validation: bool,
    /// Sees all documents before they are sorted, and may change them.
    pub post_renderer: Option<PostRenderer>,
}

impl RenderOptions {
    /// Default bounds, UTC, nobody to make keys, not connected.
    pub fn new(now: Instant, random: Box<dyn RandomSource>) -> Self {
        Self {
            limits: Limits::default(),
            now,
            zone: "UTC".to_owned(),
            random,
            keys: None,
            lookup: None,
            hosts: None,
            deadline: None,
            schemas: None,
            skip_schema_validation: false,
            post_renderer: None,
        }
    }

    fn into_env(self) -> (Env, World) {
        let mut env = Env::new(self.now, self.random);
        env.zone = self.zone;
        env.limits = self.limits;
        env.keys = self.keys;
        env.deadline = self.deadline;
        env.missing_key = MissingKey::Zero;
        let world = World {
            lookup: self.lookup,
            hosts: self.hosts,
        };
        (env, world)
    }
}

/// What functions may ask of the world outside.
struct World {
    lookup: Option<Arc<dyn Lookup>>,
    hosts: Option<Hosts>,
}

impl std::fmt::Debug for RenderOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RenderOptions")
            .field("limits", &self.limits)
            .field("now", &self.now)
            .field("zone", &self.zone)
            .field("makes_keys", &self.keys.is_some())
            .field("connected", &self.lookup.is_some())
            .field("skip_schema_validation", &self.skip_schema_validation)
            .field("post_rendered", &self.post_renderer.is_some())
            .finish_non_exhaustive()
    }
}

impl Chart {
    /// Parses the templates that a render with these values needs, so that the first one takes no longer than the next.
    ///
    /// # Errors
    /// What is wrong with the chart whatever is rendered: templates that cannot be parsed, dependencies that are missing.
    pub fn prepare(&self, values: &goyaml::Value) -> Result<(), Error> {
        stacker::maybe_grow(RED_ZONE, STACK, || {
            let empty = goyaml::Map::new();
            check_present(&self.root)?;
            let enabled = enable(&self.root, user_values(values, &empty)?, &mut Vec::new())?;
            self.variants.get(enabled).map(drop)
        })
    }
}

/// Renders a chart as Helm 4.3.1 does. `values` are what the user gives, a mapping or `Null`; the chart's defaults
/// are laid under them. Same input, same bytes, unless [`Rendered::taints`] says otherwise.
///
/// # Errors
/// Whatever stops Helm, with its text; a passed limit; a schema that the values break. One broken document fails the
/// whole render.
pub fn render(
    chart: &Chart,
    values: &goyaml::Value,
    release: &Release,
    capabilities: &Capabilities,
    options: RenderOptions,
) -> Result<Rendered, Error> {
    stacker::maybe_grow(RED_ZONE, STACK, || {
        run(chart, values, release, capabilities, options)
    })
}

fn run(
    chart: &Chart,
    values: &goyaml::Value,
    release: &Release,
    capabilities: &Capabilities,
    mut options: RenderOptions,
) -> Result<Rendered, Error> {
    let post_renderer = options.post_renderer.take();
    let empty = goyaml::Map::new();
    let user = user_values(values, &empty)?;
    let metadata = chart.metadata();
    if !matches!(metadata.kind.as_str(), "" | "application") {
        return Err(Error::NotInstallable(metadata.kind.clone()));
    }
    check_present(&chart.root)?;

    let mut warnings = Vec::new();
    let variant = chart.variants.get(enable(&chart.root, user, &mut warnings)?)?;
    // Both passes see the same values; what the first had to say, the second says again.
    warnings.clear();
    warnings.extend_from_slice(&variant.warnings);
    let values = coalesce_plain(&variant.root, user, Nulls::Delete, &mut warnings)?;
    if !options.skip_schema_validation {
        schema::check(&variant.root, &values, options.schemas.as_ref())?;
    }
    if !metadata.kube_version.is_empty()
        && !version_satisfies(&metadata.kube_version, &capabilities.kube_version.normalized)
    {
        return Err(Error::KubeVersion {
            constraint: metadata.kube_version.clone(),
            version: capabilities.kube_version.version.clone(),
        });
    }

    let scopes = scope::build(&variant.root, values, release, capabilities);
    let (env, world) = options.into_env();
    let mut executor = Executor::new(env, Rc::new(functions::map(world)));
    let files = execute(&variant, &scopes, &mut executor)?;
    gather(&variant, files, &executor, warnings, post_renderer)
}

fn user_values<'v>(values: &'v goyaml::Value, empty: &'v goyaml::Map) -> Result<&'v goyaml::Map, Error> {
    match values {
        goyaml::Value::Map(map) => Ok(map),
        goyaml::Value::Null => Ok(empty),
        _ => Err(Error::ValuesNotAMapping),
    }
}

/// A template file's name and output.
type Output<'v> = (Cow<'v, str>, Vec<u8>);

/// Runs all template files in Helm's order.
fn execute<'v>(
    variant: &'v Variant,
    scopes: &[evenkeel_gotemplate::Map],
    executor: &mut Executor,
) -> Result<Vec<Output<'v>>, Error> {
    let mut files = Vec::with_capacity(variant.order.len());
    for template in variant.order.iter().filter(|template| !template.is_partial) {
        let Some(scope) = scopes.get(template.chart) else {
            return Err(Error::Internal(format!("no values for {}", template.name)));
        };
        scope.insert("Template", scope::template(&template.name, &template.base_path));
        let text = executor
            .execute(&variant.set, &template.name, &Value::Map(scope.clone()))
            .map_err(|error| errors::execution_error(&template.name, &error))?;
        files.push((
            Cow::Borrowed(template.name.as_str()),
            without_no_value(text.as_bytes()),
        ));
    }
    Ok(files)
}

/// Sorts outputs into notes, manifests and hooks, and adds the definitions.
fn gather(
    variant: &Variant,
    mut files: Vec<Output<'_>>,
    executor: &Executor,
    mut warnings: Vec<String>,
    post_renderer: Option<PostRenderer>,
) -> Result<Rendered, Error> {
    let own_notes = format!("{}/templates/NOTES.txt", variant.root.name);
    let mut notes = None;
    files.retain(|(name, text)| {
        if *name == *own_notes {
            notes = Some(String::from_utf8_lossy(text).into_owned());
        }
        !name.ends_with("NOTES.txt")
    });
    files.sort_by(|(a, _), (b, _)| a.cmp(b));
    if let Some(post_renderer) = post_renderer {
        let changed = post_render::run(by_name(&files), post_renderer)?;
        files = changed
            .into_iter()
            .map(|(name, text)| (Cow::Owned(name), text))
            .collect();
    }
    let sorted =
        manifest::sort(by_name(&files), &mut warnings).map_err(|error| with_outputs(error, &files))?;
    let mut crds = Vec::new();
    collect_crds(&variant.root, &variant.root.name, &mut crds);
    Ok(Rendered {
        manifests: sorted.manifests,
        hooks: sorted.hooks,
        crds,
        notes,
        taints: executor.taints(),
        warnings,
    })
}

fn by_name<'f>(files: &'f [Output<'_>]) -> impl Iterator<Item = (&'f str, &'f [u8])> {
    files.iter().map(|(name, text)| (name.as_ref(), text.as_slice()))
}

/// Adds what all templates printed, without what printed nothing.
fn with_outputs(mut error: Error, files: &[Output<'_>]) -> Error {
    if let Error::Manifest { outputs, .. } = &mut error {
        let printed = files.iter().filter(|(_, text)| !text.trim_ascii().is_empty());
        outputs.extend(printed.map(|(name, text)| ChartFile {
            path: name.clone().into_owned(),
            data: text.as_slice().into(),
        }));
    }
    error
}

fn collect_crds(node: &Node, path: &str, into: &mut Vec<ChartFile>) {
    into.extend(node.chart.crds().map(|file| ChartFile {
        path: format!("{path}/{}", file.path),
        data: Arc::clone(&file.data),
    }));
    for child in &node.children {
        collect_crds(child, &format!("{path}/charts/{}", child.name), into);
    }
}

/// Removes every `<no value>`.
fn without_no_value(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = find(rest, NO_VALUE) {
        out.extend_from_slice(rest.get(..at).unwrap_or_default());
        rest = rest.get(at + NO_VALUE.len()..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    let first = pattern.first()?;
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.iter().position(|byte| byte == first)?;
        if text.get(at..)?.starts_with(pattern) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// Renders the text of `--name-template`: no values, only functions.
pub fn name_from_template(text: &str, options: RenderOptions) -> Result<String, Error> {
    const NAME: &str = "name-template";
    let refuse = |problem: String| Error::TemplateExecution {
        message: problem,
        file: NAME.to_owned(),
    };
    let functions = FuncMap::new();
    let parsed = parse(NAME, text.as_bytes(), |name: &str| functions.contains(name))
        .map_err(|e| refuse(e.to_string()))?;
    let mut set = TemplateSet::new(NAME);
    set.add(&parsed);
    let (env, _) = options.into_env();
    let mut executor = Executor::new(env, Rc::new(functions));
    let text = executor
        .execute_tree(&set, parsed.main(), &Value::Nil)
        .map_err(|e| refuse(e.to_string()))?;
    Ok(text.to_text())
}
