//! The texts of a schema's faults, in Helm's form.
//!
//! Text that a value holds is not shown, which Helm does: it may be secret. The validator does not tell which items of a
//! list fail a `contains`, nor which property it is that requires another.

use std::fmt::Write as _;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use super::cycles;

/// One line for each fault of `root`, those within another indented, `most` in all.
pub(super) fn lines(errors: &[&ValidationError<'_>], root: &Value, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    match (Reader { root }).schema(errors, 0, "") {
        // The whole schema's own faults stand side by side.
        Some(Fault {
            kind: Kind::Group,
            within,
            ..
        }) => {
            for fault in &within {
                fault.print(0, most, &mut lines);
            }
        }
        Some(fault) => fault.print(0, most, &mut lines),
        None => {}
    }
    lines
}

/// A fault with those that it is made of.
struct Fault<'e> {
    /// The value that it is about.
    place: &'e str,
    kind: Kind,
    within: Vec<Fault<'e>>,
}

enum Kind {
    /// What a keyword says.
    Keyword(String),
    /// Several faults of one schema.
    Group,
    /// Several faults of a schema that is referred to.
    Reference,
}

impl Fault<'_> {
    fn print(&self, depth: usize, most: usize, lines: &mut Vec<String>) {
        if lines.len() >= most {
            return;
        }
        let text = match &self.kind {
            Kind::Keyword(text) => text,
            Kind::Group | Kind::Reference => "validation failed",
        };
        lines.push(format!("{}- at '{}': {text}", "  ".repeat(depth), self.place));
        for fault in &self.within {
            fault.print(depth + 1, most, lines);
        }
    }
}

/// Makes the tree of faults of the validator's list.
struct Reader<'r> {
    root: &'r Value,
}

impl Reader<'_> {
    /// The faults of one schema, whose keywords begin behind byte `from` of each, about the value at `place`.
    fn schema<'e>(
        &self,
        errors: &[&'e ValidationError<'_>],
        from: usize,
        place: &'e str,
    ) -> Option<Fault<'e>> {
        let mut done = vec![false; errors.len()];
        let mut faults = Vec::new();
        for (index, error) in errors.iter().enumerate() {
            if done.get(index).copied().unwrap_or(true) {
                continue;
            }
            let step = Step::of(error, from, place);
            let mut together = vec![*error];
            for (later, other) in errors.iter().enumerate().skip(index + 1) {
                let is_same = match (&step, &Step::of(other, from, place)) {
                    (Some(one), Some(other)) => one == other,
                    (None, None) => is_one_required(error, other),
                    _ => false,
                };
                if is_same {
                    together.push(other);
                    if let Some(done) = done.get_mut(later) {
                        *done = true;
                    }
                }
            }
            match step {
                Some(step) if step.keyword == "allOf" => faults.push(Fault {
                    place,
                    kind: Kind::Keyword("'allOf' failed".to_owned()),
                    within: self.all_of(&together, step.end, place),
                }),
                Some(step) => {
                    let mut fault = self.schema(&together, step.end, step.place);
                    if let Some(fault) = &mut fault
                        && matches!(fault.kind, Kind::Group)
                        && step.keyword.ends_with("ef")
                    {
                        // A reference takes over the faults of a group, wherever in the value that lies.
                        fault.kind = Kind::Reference;
                        fault.place = place;
                    }
                    faults.extend(fault);
                }
                None => faults.push(self.keyword(error, &together)),
            }
        }
        if faults.len() > 1 {
            return Some(Fault {
                place,
                kind: Kind::Group,
                within: faults,
            });
        }
        faults.pop()
    }

    /// The faults of the schemas in an `allOf` that ends at byte `end`, each schema's together.
    fn all_of<'e>(&self, errors: &[&'e ValidationError<'_>], end: usize, place: &'e str) -> Vec<Fault<'e>> {
        let mut schemas: Vec<(&str, Vec<&ValidationError<'_>>)> = Vec::new();
        for error in errors {
            let index = segment(error.evaluation_path().as_str(), end);
            match schemas.iter_mut().find(|(other, _)| *other == index) {
                Some((_, together)) => together.push(error),
                None => schemas.push((index, vec![error])),
            }
        }
        schemas
            .into_iter()
            .filter_map(|(index, together)| self.schema(&together, end + 1 + index.len(), place))
            .collect()
    }

    fn keyword<'e>(&self, error: &'e ValidationError<'_>, together: &[&ValidationError<'_>]) -> Fault<'e> {
        let place = error.instance_path().as_str();
        let keywords = error.evaluation_path().as_str();
        let within = match error.kind() {
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                context
                    .iter()
                    .filter_map(|errors| {
                        let errors: Vec<_> = errors.iter().collect();
                        // Behind the number of the schema.
                        let path = errors.first()?.evaluation_path().as_str();
                        let from = match path.strip_prefix(keywords) {
                            Some(_) => keywords.len() + 1 + segment(path, keywords.len()).len(),
                            None => 0,
                        };
                        self.schema(&errors, from, place)
                    })
                    .collect()
            }
            ValidationErrorKind::PropertyNames { error } => vec![Fault {
                place: "",
                kind: Kind::Keyword(text(error, &[error], self.root)),
                within: Vec::new(),
            }],
            _ => Vec::new(),
        };
        Fault {
            place,
            kind: Kind::Keyword(text(error, together, self.root)),
            within,
        }
    }
}

/// Whether both are missing properties of one `required`.
fn is_one_required(one: &ValidationError<'_>, other: &ValidationError<'_>) -> bool {
    let is_required =
        |error: &ValidationError<'_>| matches!(error.kind(), ValidationErrorKind::Required { .. });
    is_required(one)
        && is_required(other)
        && one.instance_path() == other.instance_path()
        && one.evaluation_path() == other.evaluation_path()
}

/// The step from a schema to one within it, on the way to a fault.
#[derive(PartialEq)]
struct Step<'e> {
    keyword: &'e str,
    /// What follows a keyword that has several schemas; not for `allOf`, which takes all of them together.
    name: Option<&'e str>,
    /// Byte behind it.
    end: usize,
    /// The value that the schema within is about.
    place: &'e str,
}

impl<'e> Step<'e> {
    /// The first step behind byte `from`; none if the fault is that of a keyword there.
    fn of(error: &'e ValidationError<'_>, from: usize, place: &str) -> Option<Self> {
        let path = error.evaluation_path().as_str();
        let keyword = segment(path, from);
        let mut end = from + 1 + keyword.len();
        let (is_named, descends) = match keyword {
            "properties" | "patternProperties" => (true, true),
            "prefixItems" => (true, true),
            "items" => (segment(path, end).bytes().all(|byte| byte.is_ascii_digit()), true),
            "additionalProperties" | "unevaluatedProperties" | "additionalItems" | "unevaluatedItems" => {
                (false, true)
            }
            "dependentSchemas" | "dependencies" => (true, false),
            "$ref" | "$dynamicRef" | "$recursiveRef" | "if" | "then" | "else" | "allOf" => (false, false),
            _ => return None,
        };
        let mut name = None;
        if is_named && end < path.len() {
            let segment = segment(path, end);
            end += 1 + segment.len();
            name = Some(segment);
        }
        if end >= path.len() {
            return None;
        }
        let full = error.instance_path().as_str();
        let within = if descends {
            place.len() + 1 + segment(full, place.len()).len()
        } else {
            place.len()
        };
        Some(Self {
            keyword,
            name,
            end,
            place: full.get(..within).unwrap_or(full),
        })
    }
}

/// The part of a JSON pointer that begins with the `/` at byte `from`.
fn segment(pointer: &str, from: usize) -> &str {
    let rest = pointer.get(from + 1..).unwrap_or_default();
    rest.split('/').next().unwrap_or_default()
}

fn text(error: &ValidationError<'_>, together: &[&ValidationError<'_>], root: &Value) -> String {
    let instance = error.instance().as_ref();
    let length = count(match instance {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    });
    let bounds = |keyword: &str, limit: &Value| match instance {
        Value::Number(_) => format!("{keyword}: got {}, want {}", number(instance), number(limit)),
        _ => format!("{keyword}: want {}", number(limit)),
    };
    let lengths =
        |keyword: &str, limit: u64| format!("{keyword}: got {length}, want {}", grouped(&limit.to_string()));
    match error.kind() {
        ValidationErrorKind::Required { .. } => missing(error, together),
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            format!("additional properties {} not allowed", names(unexpected))
        }
        ValidationErrorKind::FalseSchema
            if error
                .evaluation_path()
                .as_str()
                .ends_with("/additionalProperties") =>
        {
            let unexpected: Vec<String> = root
                .pointer(error.instance_path().as_str())
                .and_then(Value::as_object)
                .map(|fields| fields.keys().cloned().collect())
                .unwrap_or_default();
            format!("additional properties {} not allowed", names(&unexpected))
        }
        ValidationErrorKind::FalseSchema => "false schema".to_owned(),
        ValidationErrorKind::AdditionalItems { limit } => {
            let items = instance.as_array().map_or(0, Vec::len);
            format!(
                "last {} additionalItem(s) not allowed",
                count(items.saturating_sub(*limit))
            )
        }
        ValidationErrorKind::Type { kind } => format!("got {}, want {}", type_of(instance), wanted(kind)),
        ValidationErrorKind::Enum { options } => match options.as_array().map(Vec::as_slice) {
            Some([one]) if is_scalar(one) => format!("value must be {}", shown(one)),
            Some(options) if options.iter().all(is_scalar) => {
                let options: Vec<String> = options.iter().map(shown).collect();
                format!("value must be one of {}", options.join(", "))
            }
            _ => "'enum' failed".to_owned(),
        },
        ValidationErrorKind::Constant { expected_value } if is_scalar(expected_value) => {
            format!("value must be {}", shown(expected_value))
        }
        ValidationErrorKind::Constant { .. } => "'const' failed".to_owned(),
        ValidationErrorKind::MinLength { limit } => lengths("minLength", *limit),
        ValidationErrorKind::MaxLength { limit } => lengths("maxLength", *limit),
        ValidationErrorKind::MinItems { limit } => lengths("minItems", *limit),
        ValidationErrorKind::MaxItems { limit } => lengths("maxItems", *limit),
        ValidationErrorKind::MinProperties { limit } => lengths("minProperties", *limit),
        ValidationErrorKind::MaxProperties { limit } => lengths("maxProperties", *limit),
        ValidationErrorKind::Minimum { limit } => bounds("minimum", limit),
        ValidationErrorKind::Maximum { limit } => bounds("maximum", limit),
        ValidationErrorKind::ExclusiveMinimum { limit } => bounds("exclusiveMinimum", limit),
        ValidationErrorKind::ExclusiveMaximum { limit } => bounds("exclusiveMaximum", limit),
        ValidationErrorKind::MultipleOf { multiple_of } => bounds("multipleOf", &Value::from(*multiple_of)),
        ValidationErrorKind::Pattern { pattern } => {
            format!("value does not match pattern {}", quoted(pattern))
        }
        ValidationErrorKind::UniqueItems => match duplicates(instance) {
            Some((one, other)) => format!("items at {} and {} are equal", count(one), count(other)),
            None => "items are equal".to_owned(),
        },
        ValidationErrorKind::AnyOf { .. } => "'anyOf' failed".to_owned(),
        ValidationErrorKind::OneOfNotValid { .. } => "'oneOf' failed, none matched".to_owned(),
        ValidationErrorKind::OneOfMultipleValid { context } => {
            let matched: Vec<String> = context
                .iter()
                .enumerate()
                .filter(|(_, errors)| errors.is_empty())
                .map(|(index, _)| index.to_string())
                .take(2)
                .collect();
            format!("'oneOf' failed, subschemas {} matched", matched.join(", "))
        }
        ValidationErrorKind::Not { schema } => match schema.get(cycles::KEYWORD).and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => "'not' failed".to_owned(),
        },
        ValidationErrorKind::Contains => "no items match contains schema".to_owned(),
        ValidationErrorKind::PropertyNames { error } => {
            let name = error.instance().as_str().unwrap_or_default();
            format!("invalid propertyName {}", quoted(name))
        }
        _ => error.masked().to_string(),
    }
}

fn missing(error: &ValidationError<'_>, together: &[&ValidationError<'_>]) -> String {
    let missing: Vec<String> = together
        .iter()
        .filter_map(|error| match error.kind() {
            ValidationErrorKind::Required { property } => property.as_str().map(quoted),
            _ => None,
        })
        .collect();
    let keyword = error.evaluation_path().as_str().rsplit('/').next();
    if matches!(keyword, Some("dependencies" | "dependentRequired")) {
        return format!("properties {} required, if others exist", missing.join(", "));
    }
    let what = if missing.len() == 1 {
        "property"
    } else {
        "properties"
    };
    format!("missing {what} {}", missing.join(", "))
}

fn names(names: &[String]) -> String {
    let mut names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    names.sort();
    names.join(", ")
}

/// Go's quoted text, in single quotes.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for c in text.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ => out.push(c),
        }
    }
    out.push('\'');
    out
}

fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_))
}

/// A scalar of a schema.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// A number as English writes it in text, with powers of ten beyond six digits.
fn number(value: &Value) -> String {
    let Some(number) = value.as_f64() else {
        return value.to_string();
    };
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&power) || number == 0.0 {
        return grouped(&number.to_string());
    }
    let mut text = format!("{digits}×10");
    if power < 0 {
        text.push('⁻');
    }
    for digit in format!("{:02}", power.abs()).chars() {
        text.push(match digit {
            '0' => '⁰',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            '4' => '⁴',
            '5' => '⁵',
            '6' => '⁶',
            '7' => '⁷',
            '8' => '⁸',
            _ => '⁹',
        });
    }
    text
}

fn count(number: usize) -> String {
    grouped(&number.to_string())
}

/// A decimal number with its thousands apart.
fn grouped(number: &str) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) = number
        .split_once('.')
        .map_or((number, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut text = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(fraction) = fraction {
        // Writing into a string cannot fail.
        let _ = write!(text, ".{fraction}");
    }
    text
}

/// The first two items that are equal.
fn duplicates(value: &Value) -> Option<(usize, usize)> {
    let items = value.as_array()?;
    items.iter().enumerate().find_map(|(later, item)| {
        let earlier = items.iter().take(later).position(|other| other == item)?;
        Some((earlier, later))
    })
}

/// The types in the order in which Helm lists them.
const TYPES: [&str; 7] = [
    "null", "boolean", "number", "integer", "string", "array", "object",
];

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn wanted(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(set) => {
            let mut names: Vec<String> = set.iter().map(|one| one.to_string()).collect();
            names.sort_by_key(|name| TYPES.iter().position(|known| known == name));
            names.join(" or ")
        }
    }
}

#[cfg(test)]
mod tests;
