//! Sets of field paths and their algebra, with the FieldsV1 text form.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::path::PathElement;
use crate::schema::{Schema, TypeRef, View};

/// A set of field paths, kept as a tree. Membership of a path says nothing of the paths below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    nodes: BTreeMap<PathElement, Node>,
}

/// What a set holds at and below one path element; never empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Node {
    member: bool,
    children: FieldSet,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

impl FieldSet {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A set of plain field paths, written with dots: `["status", "metadata.name"]`.
    pub(crate) fn of_fields(paths: &[&str]) -> Self {
        let mut set = Self::new();
        for path in paths {
            let path: Vec<PathElement> = path.split('.').map(PathElement::field).collect();
            set.insert(&path);
        }
        set
    }

    /// Adds a path; the empty path (the whole object) is not tracked.
    pub(crate) fn insert(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => self.nodes.entry(last.clone()).or_default().member = true,
            [first, rest @ ..] => self.nodes.entry(first.clone()).or_default().children.insert(rest),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether the path itself is in the set.
    pub(crate) fn contains(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has_member(last),
            [first, rest @ ..] => self
                .nodes
                .get(first)
                .is_some_and(|node| node.children.contains(rest)),
        }
    }

    /// Whether the one-element path is in the set.
    pub(crate) fn has_member(&self, element: &PathElement) -> bool {
        self.nodes.get(element).is_some_and(|node| node.member)
    }

    /// The set below one element, if it has any.
    pub(crate) fn below(&self, element: &PathElement) -> Option<&FieldSet> {
        self.nodes
            .get(element)
            .map(|node| &node.children)
            .filter(|children| !children.is_empty())
    }

    /// Elements at this level with their membership and the sets below them.
    pub(crate) fn elements(&self) -> impl Iterator<Item = (&PathElement, bool, &FieldSet)> {
        self.nodes
            .iter()
            .map(|(element, node)| (element, node.member, &node.children))
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut nodes = self.nodes.clone();
        for (element, theirs) in &other.nodes {
            let node = nodes.entry(element.clone()).or_default();
            node.member |= theirs.member;
            node.children = node.children.union(&theirs.children);
        }
        Self { nodes }
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        self.combine(|element, ours| {
            let theirs = other.nodes.get(element)?;
            Some(Node {
                member: ours.member && theirs.member,
                children: ours.children.intersection(&theirs.children),
            })
        })
    }

    /// Paths of this set that are not in the other.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        self.combine(|element, ours| match other.nodes.get(element) {
            None => Some(ours.clone()),
            Some(theirs) => Some(Node {
                member: ours.member && !theirs.member,
                children: ours.children.difference(&theirs.children),
            }),
        })
    }

    /// Like [`Self::difference`], but a path in the other set also takes all that is below it.
    pub(crate) fn recursive_difference(&self, other: &Self) -> Self {
        self.combine(|element, ours| match other.nodes.get(element) {
            None => Some(ours.clone()),
            Some(theirs) if theirs.member => None,
            Some(theirs) => Some(Node {
                member: ours.member,
                children: ours.children.recursive_difference(&theirs.children),
            }),
        })
    }

    fn combine(&self, mut keep: impl FnMut(&PathElement, &Node) -> Option<Node>) -> Self {
        let nodes = self
            .nodes
            .iter()
            .filter_map(|(element, node)| {
                keep(element, node)
                    .filter(|node| !node.is_empty())
                    .map(|node| (element.clone(), node))
            })
            .collect();
        Self { nodes }
    }

    /// Makes every declared struct field that has members below it a member too, so that removing all of its fields
    /// removes the struct itself.
    pub(crate) fn with_named_fields(&self, schema: &Schema, ty: TypeRef) -> Self {
        let view_map = schema.view(ty, None);
        let list_value = Value::Array(Vec::new());
        let view_list = schema.view(ty, Some(&list_value));
        let nodes = self
            .nodes
            .iter()
            .map(|(element, node)| {
                let (declared, below) = match (element, view_map, view_list) {
                    (PathElement::Field(name), View::Map(map, _), _) => {
                        (map.fields.contains_key(name), map.field_type(name))
                    }
                    (PathElement::Field(_), _, _) => (false, None),
                    (_, _, View::List(list)) => (false, Some(list.element)),
                    _ => (false, None),
                };
                let children = match below {
                    Some(below) => node.children.with_named_fields(schema, below),
                    None => node.children.clone(),
                };
                let member = node.member || (declared && !node.children.is_empty());
                (element.clone(), Node { member, children })
            })
            .collect();
        Self { nodes }
    }

    /// All paths, members of a level before what is below them, in the order the API server lists conflicts.
    pub(crate) fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, out: &mut Vec<Vec<PathElement>>) {
        for (element, node) in &self.nodes {
            if node.member {
                let mut path = prefix.clone();
                path.push(element.clone());
                out.push(path);
            }
        }
        for (element, node) in &self.nodes {
            prefix.push(element.clone());
            node.children.collect_paths(prefix, out);
            prefix.pop();
        }
    }

    /// The FieldsV1 form.
    pub(crate) fn to_fields_v1(&self) -> Value {
        let mut object = Map::new();
        for (element, node) in &self.nodes {
            let mut below = match node.children.to_fields_v1() {
                Value::Object(below) => below,
                _ => Map::new(),
            };
            if node.member && !node.children.is_empty() {
                below.insert(".".into(), Value::Object(Map::new()));
            }
            object.insert(element.to_fields_v1(), Value::Object(below));
        }
        Value::Object(object)
    }

    /// Reads the FieldsV1 form; the error says which key cannot be read.
    pub(crate) fn from_fields_v1(value: &Value) -> Result<Self, String> {
        let object = value.as_object().ok_or("fieldsV1 must be an object")?;
        let mut nodes = BTreeMap::new();
        for (key, below) in object {
            if key == "." {
                continue;
            }
            let element = PathElement::from_fields_v1(key)?;
            let children = Self::from_fields_v1(below)?;
            let member = children.is_empty() || below.get(".").is_some();
            nodes.insert(element, Node { member, children });
        }
        Ok(Self { nodes })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::path::Key;
    use super::*;

    fn element() -> impl Strategy<Value = PathElement> {
        prop_oneof![
            "[a-c]".prop_map(|name| PathElement::field(&name)),
            (0..3i64).prop_map(|n| PathElement::Keys([("port".into(), Key::Number(n.into()))].into())),
            "[x-z]".prop_map(|name| PathElement::Item(Key::String(name.as_str().into()))),
        ]
    }

    fn set() -> impl Strategy<Value = FieldSet> {
        prop::collection::vec(prop::collection::vec(element(), 1..4), 0..12).prop_map(|paths| {
            let mut set = FieldSet::new();
            for path in paths {
                set.insert(&path);
            }
            set
        })
    }

    proptest! {
        #[test]
        fn union_is_commutative_associative_and_idempotent(a in set(), b in set(), c in set()) {
            prop_assert_eq!(a.union(&b), b.union(&a));
            prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
            prop_assert_eq!(a.union(&a), a);
        }

        #[test]
        fn intersection_is_commutative_associative_and_idempotent(a in set(), b in set(), c in set()) {
            prop_assert_eq!(a.intersection(&b), b.intersection(&a));
            prop_assert_eq!(a.intersection(&b).intersection(&c), a.intersection(&b.intersection(&c)));
            prop_assert_eq!(a.intersection(&a), a);
        }

        #[test]
        fn membership_follows_the_operations(a in set(), b in set()) {
            for path in a.union(&b).paths() {
                prop_assert!(a.contains(&path) || b.contains(&path));
                prop_assert_eq!(a.intersection(&b).contains(&path), a.contains(&path) && b.contains(&path));
                prop_assert_eq!(a.difference(&b).contains(&path), a.contains(&path) && !b.contains(&path));
            }
        }

        #[test]
        fn difference_and_intersection_partition_a_set(a in set(), b in set()) {
            prop_assert_eq!(&a.difference(&b).union(&a.intersection(&b)), &a);
            prop_assert!(a.difference(&b).intersection(&b).is_empty());
            prop_assert!(a.difference(&a).is_empty());
        }

        #[test]
        fn absorption_and_distribution_hold(a in set(), b in set(), c in set()) {
            prop_assert_eq!(&a.union(&a.intersection(&b)), &a);
            prop_assert_eq!(&a.intersection(&a.union(&b)), &a);
            prop_assert_eq!(a.intersection(&b.union(&c)), a.intersection(&b).union(&a.intersection(&c)));
        }

        #[test]
        fn recursive_difference_leaves_nothing_at_or_below_a_removed_path(a in set(), b in set()) {
            let rest = a.recursive_difference(&b);
            for path in rest.paths() {
                prop_assert!(a.contains(&path));
                for length in 1..=path.len() {
                    prop_assert!(!b.contains(&path[..length]));
                }
            }
        }

        #[test]
        fn fields_v1_round_trips(a in set()) {
            prop_assert_eq!(FieldSet::from_fields_v1(&a.to_fields_v1()).unwrap(), a);
        }
    }

    #[test]
    fn fields_v1_marks_members_that_have_members_below_with_a_dot() {
        let mut set = FieldSet::of_fields(&["spec.replicas"]);
        let item = PathElement::Keys([("name".into(), Key::String("a".into()))].into());
        set.insert(&[PathElement::field("list"), item.clone()]);
        set.insert(&[PathElement::field("list"), item, PathElement::field("image")]);
        let expected =
            json!({"f:list": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}}, "f:spec": {"f:replicas": {}}});
        assert_eq!(set.to_fields_v1(), expected);
    }

    #[test]
    fn paths_list_members_of_a_level_first() {
        let set = FieldSet::of_fields(&["a.b.c", "a.z"]);
        let texts: Vec<String> = set
            .paths()
            .iter()
            .map(|path| super::super::path::path_text(path))
            .collect();
        assert_eq!(texts, [".a.z", ".a.b.c"]);
    }
}
