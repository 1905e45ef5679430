//! The parts of a render that many renders share: which sub-charts take part, with parsed templates.
//!
//! A chart has one variant per set of enabled sub-charts, so a fleet that renders one chart with ten thousand sets of
//! values parses its templates once or twice.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_gotemplate::{TemplateSet, parse};

use crate::Error;
use crate::dependencies::{Node, import_values};
use crate::render::errors::parse_error;
use crate::render::functions::is_function;

/// The most variants of one chart that are kept.
const MAX_VARIANTS: usize = 16;

/// One set of enabled sub-charts.
#[derive(Debug)]
pub(crate) struct Variant {
    /// The chart tree, values imported.
    pub(crate) root: Node,
    /// All templates, parsed.
    pub(crate) set: TemplateSet,
    /// Templates in the order they run: deepest path first, then by name, backwards.
    pub(crate) order: Vec<Renderable>,
    /// What importing values had to say.
    pub(crate) warnings: Vec<String>,
}

/// A template file in its place.
#[derive(Debug)]
pub(crate) struct Renderable {
    /// `chart/charts/sub/templates/file.yaml`
    pub(crate) name: String,
    /// `chart/charts/sub/templates`
    pub(crate) base_path: String,
    /// Which chart it belongs to: number in a walk of the tree, parents before children.
    pub(crate) chart: usize,
    /// Files whose name starts with `_` only define.
    pub(crate) is_partial: bool,
}

/// Variants by signature, oldest first.
#[derive(Debug, Default)]
pub(crate) struct VariantCache(Mutex<VecDeque<(String, Arc<Variant>)>>);

impl VariantCache {
    /// The variant for this tree, made when it is new.
    pub(crate) fn get(&self, root: Node) -> Result<Arc<Variant>, Error> {
        let signature = root.signature();
        if let Some(known) = self.find(&signature) {
            return Ok(known);
        }
        let made = Arc::new(Variant::new(root)?);
        let mut variants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if variants.len() >= MAX_VARIANTS {
            variants.pop_front();
        }
        variants.push_back((signature, Arc::clone(&made)));
        Ok(made)
    }

    fn find(&self, signature: &str) -> Option<Arc<Variant>> {
        let variants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        variants
            .iter()
            .find(|(known, _)| known == signature)
            .map(|(_, variant)| Arc::clone(variant))
    }
}

impl Variant {
    fn new(mut root: Node) -> Result<Self, Error> {
        let mut warnings = Vec::new();
        import_values(&mut root, &mut warnings)?;

        let mut found = Vec::new();
        let mut number = 0;
        collect(&root, &root.name, &mut number, &mut found);
        // Helm's order of parsing and running: the reverse of (number of slashes, name).
        let key = |name: &str| (name.matches('/').count(), name.to_owned());
        found.sort_by_cached_key(|(renderable, _)| std::cmp::Reverse(key(&renderable.name)));

        let mut set = TemplateSet::new("gotpl");
        let mut order = Vec::with_capacity(found.len());
        for (renderable, text) in found {
            let parsed = parse(&renderable.name, Arc::clone(text), is_function)
                .map_err(|error| parse_error(&renderable.name, &error))?;
            set.add(&parsed);
            order.push(renderable);
        }
        Ok(Self {
            root,
            set,
            order,
            warnings,
        })
    }
}

fn collect<'n>(node: &'n Node, path: &str, number: &mut usize, found: &mut Vec<(Renderable, &'n Arc<[u8]>)>) {
    let chart = *number;
    *number += 1;
    for child in &node.children {
        collect(child, &format!("{path}/charts/{}", child.name), number, found);
    }
    let base_path = format!("{path}/templates");
    for file in &node.chart.templates {
        let is_partial = file
            .path
            .rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with('_'));
        // A library chart only lends its definitions.
        if node.chart.metadata.is_library() && !is_partial {
            continue;
        }
        let renderable = Renderable {
            name: format!("{path}/{}", file.path),
            base_path: base_path.clone(),
            chart,
            is_partial,
        };
        found.push((renderable, &file.data));
    }
}
