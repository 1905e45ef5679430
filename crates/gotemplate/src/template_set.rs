//! Named templates that see each other.

use std::sync::Arc;

use crate::function::NameMap;
use crate::sprig::TemplateRegexes;
use crate::syntax::{Parsed, Tree};

/// A set of named templates: what Go calls associated templates.
///
/// A clone costs one counter and stays apart from the original: `tpl` clones the set and adds the trees of its
/// text. Trees are shared between clones, renders and threads.
#[derive(Clone, Debug)]
pub struct TemplateSet {
    root: Arc<str>,
    layer: Arc<Layer>,
    regexes: TemplateRegexes,
}

#[derive(Debug, Default)]
struct Layer {
    trees: NameMap<Arc<str>, Arc<Tree>>,
    parent: Option<Arc<Layer>>,
}

impl Layer {
    fn get(&self, name: &str) -> Option<&Arc<Tree>> {
        let mut layer = self;
        loop {
            if let Some(tree) = layer.trees.get(name) {
                return Some(tree);
            }
            layer = layer.parent.as_deref()?;
        }
    }
}

impl TemplateSet {
    /// An empty set; `root` names it in errors (`gotpl` in Helm).
    pub fn new(root: &str) -> Self {
        Self {
            root: root.into(),
            layer: Arc::default(),
            regexes: TemplateRegexes::default(),
        }
    }

    /// The name given to [`TemplateSet::new`].
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Adds the trees of a parsed text by Go's rules: a later definition replaces an earlier one, unless it holds
    /// nothing but white space and comments.
    pub fn add(&mut self, parsed: &Parsed) {
        for tree in parsed.trees() {
            if tree.is_empty() && self.layer.get(tree.name()).is_some() {
                continue;
            }
            self.own_layer()
                .trees
                .insert(Arc::clone(tree.shared_name()), Arc::clone(tree));
        }
    }

    /// The regular expressions that the templates have used, in whatever render.
    pub(crate) fn regexes(&self) -> &TemplateRegexes {
        &self.regexes
    }

    fn own_layer(&mut self) -> &mut Layer {
        if Arc::get_mut(&mut self.layer).is_none() {
            let parent = Arc::clone(&self.layer);
            self.layer = Arc::new(Layer {
                trees: NameMap::default(),
                parent: Some(parent),
            });
        }
        Arc::make_mut(&mut self.layer)
    }

    /// The template of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Tree>> {
        self.layer.get(name)
    }

    /// Whether both are the same set, not just equal ones.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.layer, &other.layer)
    }
}

impl Clone for Layer {
    fn clone(&self) -> Self {
        Self {
            trees: self.trees.clone(),
            parent: self.parent.clone(),
        }
    }
}
