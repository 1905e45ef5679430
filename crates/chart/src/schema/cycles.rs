//! References that lead back to a schema that is being asked about the very same value, such as `{"$ref": "#"}`. To Helm
//! such a reference is a fault of the value; the validator here takes it for fulfilled. So each is found before the schema
//! is compiled, and replaced by a reference to a schema that nothing fulfills.

use std::collections::{HashMap, VecDeque};

use jsonschema::Draft;
use serde_json::{Map, Value};

/// The keyword that holds what replaces references, and, within, what is told.
pub(super) const KEYWORD: &str = "evenkeel:referenceCycle";

/// Keywords whose schemas are asked about the same value, and those whose are asked about parts of it.
const SAME: [&str; 4] = ["not", "if", "then", "else"];
const SAME_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const SAME_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
const PARTS: [&str; 8] = [
    "additionalProperties",
    "unevaluatedProperties",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "propertyNames",
    "contentSchema",
];
const PARTS_LISTS: [&str; 2] = ["prefixItems", "items"];
const PARTS_MAPS: [&str; 2] = ["properties", "patternProperties"];

/// Replaces the references of `schema` that lead in a circle. `place` is the address that the schema is known by.
pub(super) fn cut(schema: &mut Value, draft: Draft, place: &str) {
    let cuts = Walk::new(schema, draft, place).run();
    if cuts.is_empty() {
        return;
    }
    let base = base(schema, place);
    let mut told = Vec::new();
    for Cut {
        pointer,
        keyword,
        text,
    } in cuts
    {
        let Some(object) = schema.pointer_mut(&pointer).and_then(Value::as_object_mut) else {
            continue;
        };
        object.remove(keyword);
        object.insert(
            "$ref".to_owned(),
            format!("{base}#/{KEYWORD}/{}", told.len()).into(),
        );
        let text = Map::from_iter([(KEYWORD.to_owned(), Value::String(text))]);
        told.push(Value::Object(Map::from_iter([("not".to_owned(), text.into())])));
    }
    if let Some(object) = schema.as_object_mut() {
        object.insert(KEYWORD.to_owned(), Value::Array(told));
    }
}

/// The address that references of the schema are relative to.
fn base(schema: &Value, place: &str) -> String {
    let own = schema.get("$id").or_else(|| schema.get("id"));
    let own = own.and_then(Value::as_str).unwrap_or_default();
    let own = own.split('#').next().unwrap_or_default();
    if own.contains(':') { own } else { place }.to_owned()
}

/// A reference to replace.
struct Cut {
    /// Where the object lies that has it.
    pointer: String,
    keyword: &'static str,
    text: String,
}

/// A schema on the way.
struct Step {
    /// Where it lies.
    pointer: String,
    /// Its place in [`Walk::ways`].
    way: usize,
    /// Where to go from it about the same value.
    next: Vec<Edge>,
}

struct Edge {
    /// How the step is told: `/allOf/0`, `/$ref`.
    segment: String,
    to: String,
    /// The keyword, of a reference.
    reference: Option<&'static str>,
}

/// A walk over all schemas that a value is asked about.
struct Walk<'s> {
    schema: &'s Value,
    draft: Draft,
    base: String,
    anchors: HashMap<String, String>,
    /// How each schema was come to first: by which step from which other one.
    ways: Vec<(Option<usize>, String)>,
    /// Schemas that were begun: the way of those that still are on the way, none for the others.
    seen: HashMap<String, Option<usize>>,
    parts: VecDeque<(String, usize)>,
    cuts: Vec<Cut>,
}

impl<'s> Walk<'s> {
    fn new(schema: &'s Value, draft: Draft, place: &str) -> Self {
        let mut anchors = HashMap::new();
        find_anchors(schema, String::new(), &mut anchors);
        Self {
            schema,
            draft,
            base: base(schema, place),
            anchors,
            ways: vec![(None, String::new())],
            seen: HashMap::new(),
            parts: VecDeque::from([(String::new(), 0)]),
            cuts: Vec::new(),
        }
    }

    fn run(mut self) -> Vec<Cut> {
        while let Some((pointer, way)) = self.parts.pop_front() {
            if !self.seen.contains_key(&pointer) {
                self.about_one_value(pointer, way);
            }
        }
        self.cuts
    }

    /// Follows everything that is asked about one value, depth first.
    fn about_one_value(&mut self, pointer: String, way: usize) {
        let mut stack = vec![self.begin(pointer, way)];
        while let Some(step) = stack.last_mut() {
            let Some(edge) = step.next.pop() else {
                self.seen.insert(step.pointer.clone(), None);
                stack.pop();
                continue;
            };
            match (self.seen.get(&edge.to), edge.reference) {
                (Some(Some(earlier)), Some(keyword)) => {
                    let text = format!(
                        "both {}{} and {} resolve to {:?} causing reference cycle",
                        self.told(step.way),
                        edge.segment,
                        self.told(*earlier),
                        format!("{}#{}", self.base, edge.to)
                    );
                    self.cuts.push(Cut {
                        pointer: step.pointer.clone(),
                        keyword,
                        text,
                    });
                }
                (Some(_), _) => {}
                (None, _) => {
                    self.ways.push((Some(step.way), edge.segment));
                    let way = self.ways.len() - 1;
                    let next = self.begin(edge.to, way);
                    stack.push(next);
                }
            }
        }
    }

    /// The keywords that led somewhere.
    fn told(&self, way: usize) -> String {
        let mut segments = Vec::new();
        let mut at = Some(way);
        while let Some((from, segment)) = at.and_then(|at| self.ways.get(at)) {
            segments.push(segment.as_str());
            at = *from;
        }
        segments.reverse();
        segments.concat()
    }

    fn begin(&mut self, pointer: String, way: usize) -> Step {
        self.seen.insert(pointer.clone(), Some(way));
        let mut next = Vec::new();
        if let Some(Value::Object(object)) = self.schema.pointer(&pointer)
            && (pointer.is_empty() || !is_resource(object))
        {
            self.edges(object, &pointer, way, &mut next);
        }
        // The last is taken first.
        next.reverse();
        Step { pointer, way, next }
    }

    fn edges(&mut self, object: &Map<String, Value>, pointer: &str, way: usize, next: &mut Vec<Edge>) {
        let references = match self.draft {
            Draft::Draft201909 => &["$ref", "$recursiveRef"][..],
            Draft::Draft4 | Draft::Draft6 | Draft::Draft7 => &["$ref"],
            _ => &["$ref", "$dynamicRef"],
        };
        for keyword in references {
            let target = object.get(*keyword).and_then(Value::as_str);
            if let Some(to) = target.and_then(|text| self.resolve(text)) {
                next.push(Edge {
                    segment: format!("/{keyword}"),
                    to,
                    reference: Some(keyword),
                });
            }
        }
        let is_alone = matches!(self.draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7);
        if is_alone && object.contains_key("$ref") {
            return;
        }
        for (keyword, value) in object {
            let name = keyword.as_str();
            let mut same = |segment: String| {
                next.push(Edge {
                    to: format!("{pointer}{segment}"),
                    segment,
                    reference: None,
                });
            };
            match value {
                Value::Object(_) if SAME.contains(&name) => same(format!("/{name}")),
                Value::Array(items) if SAME_LISTS.contains(&name) => {
                    for index in 0..items.len() {
                        same(format!("/{name}/{index}"));
                    }
                }
                Value::Object(map) if SAME_MAPS.contains(&name) => {
                    for key in map.keys() {
                        same(format!("/{name}/{}", escaped(key)));
                    }
                }
                Value::Object(_) if PARTS.contains(&name) => self.part(pointer, way, format!("/{name}")),
                Value::Array(items) if PARTS_LISTS.contains(&name) => {
                    for index in 0..items.len() {
                        self.part(pointer, way, format!("/{name}/{index}"));
                    }
                }
                Value::Object(map) if PARTS_MAPS.contains(&name) => {
                    for key in map.keys() {
                        self.part(pointer, way, format!("/{name}/{}", escaped(key)));
                    }
                }
                _ => {}
            }
        }
    }

    fn part(&mut self, pointer: &str, way: usize, segment: String) {
        let to = format!("{pointer}{segment}");
        self.ways.push((Some(way), segment));
        self.parts.push_back((to, self.ways.len() - 1));
    }

    /// Where a reference leads within this schema.
    fn resolve(&self, reference: &str) -> Option<String> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if !address.is_empty() && address != self.base {
            return None;
        }
        let fragment = unescaped(fragment)?;
        let pointer = if fragment.is_empty() || fragment.starts_with('/') {
            fragment
        } else {
            self.anchors.get(&fragment)?.clone()
        };
        self.schema.pointer(&pointer).is_some().then_some(pointer)
    }
}

/// Whether a schema has an address of its own, which its references are relative to.
fn is_resource(object: &Map<String, Value>) -> bool {
    let own = object.get("$id").or_else(|| object.get("id"));
    own.and_then(Value::as_str)
        .is_some_and(|own| !own.starts_with('#'))
}

fn find_anchors(value: &Value, pointer: String, into: &mut HashMap<String, String>) {
    match value {
        Value::Object(object) => {
            for keyword in ["$anchor", "$dynamicAnchor", "$id", "id"] {
                let name = object.get(keyword).and_then(Value::as_str);
                let name = match keyword {
                    "$id" | "id" => name.and_then(|name| name.strip_prefix('#')),
                    _ => name,
                };
                if let Some(name) = name {
                    into.entry(name.to_owned()).or_insert_with(|| pointer.clone());
                }
            }
            for (key, value) in object {
                find_anchors(value, format!("{pointer}/{}", escaped(key)), into);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                find_anchors(item, format!("{pointer}/{index}"), into);
            }
        }
        _ => {}
    }
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Undoes the escapes of an address.
fn unescaped(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'%' {
            let (digits, after) = rest.split_first_chunk::<2>()?;
            let digits = std::str::from_utf8(digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PLACE: &str = "file:///values.schema.json";

    fn told(schema: Value, draft: Draft) -> Vec<String> {
        let mut cuts = Walk::new(&schema, draft, PLACE).run();
        cuts.sort_by(|a, b| a.text.cmp(&b.text));
        cuts.into_iter()
            .map(|cut| {
                cut.text
                    .replace(" causing reference cycle", "")
                    .replace(PLACE, "")
            })
            .collect()
    }

    #[test]
    fn references_to_what_is_asked_already_are_found() {
        let newest = Draft::Draft202012;
        assert_eq!(
            told(json!({"$ref": "#"}), newest),
            ["both /$ref and  resolve to \"#\""]
        );
        assert_eq!(
            told(json!({"allOf": [true, {"$ref": "#"}]}), newest),
            ["both /allOf/1/$ref and  resolve to \"#\""]
        );
        let two = json!({
            "properties": {"x": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"$ref": "#b"}, "b": {"$anchor": "b", "$ref": "#/$defs/%61"}},
        });
        assert_eq!(
            told(two, newest),
            ["both /properties/x/$ref/$ref/$ref and /properties/x/$ref resolve to \"#/$defs/a\""]
        );
        assert_eq!(told(json!({"$dynamicRef": "#"}), newest).len(), 1);
        assert_eq!(told(json!({"$recursiveRef": "#"}), Draft::Draft201909).len(), 1);
        assert_eq!(told(json!({"$recursiveRef": "#"}), newest).len(), 0);
    }

    #[test]
    fn what_goes_on_with_a_part_of_the_value_may_come_back() {
        let tree = json!({
            "properties": {"a": {"$ref": "#"}, "b/c": {"items": {"$ref": "#/$defs/d"}}},
            "$defs": {"d": {"anyOf": [{"type": "string"}, {"additionalProperties": {"$ref": "#/$defs/d"}}]}},
        });
        assert!(told(tree, Draft::Draft202012).is_empty());
        // Beside a reference nothing counts in older drafts, and what nobody refers to is not asked.
        let aside = json!({"definitions": {"a": {"$ref": "#/definitions/a"}}});
        assert!(told(aside, Draft::Draft7).is_empty());
        let beside = json!({"$ref": "#/definitions/a", "allOf": [{"$ref": "#"}], "definitions": {"a": {}}});
        assert!(told(beside.clone(), Draft::Draft7).is_empty());
        assert_eq!(told(beside, Draft::Draft202012).len(), 1);
    }

    #[test]
    fn long_chains_take_neither_stack_nor_much_memory() {
        let mut definitions: Map<String, Value> = (0..20_000)
            .map(|index| {
                (
                    format!("d{index}"),
                    json!({"$ref": format!("#/$defs/d{}", index + 1)}),
                )
            })
            .collect();
        definitions.insert("d20000".to_owned(), json!({}));
        let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
        assert!(told(schema, Draft::Draft202012).is_empty());
    }
}
