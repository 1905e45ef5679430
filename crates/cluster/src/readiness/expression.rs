//! One expression of a readiness rule: compiled within bounds, evaluated within bounds.
//!
//! Expressions are pure, so what is to be bounded is time and memory. Time is the number of nodes times the elements that
//! nested macros go through; memory grows only by joining texts and lists, which nested macros may not do.

use std::collections::HashMap;
use std::sync::Arc;

use cel::common::ast::{EntryExpr, Expr, IdedExpr};
use cel::objects::Key;
use cel::{Context, ExecutionError, Program};
use serde_json::Value;

/// The longest expression, in bytes.
const SOURCE_MAX: usize = 1_000;
/// How deep brackets may be nested, how many prefix operators may stand in a row and how many conditions (`?:`) there may
/// be: the parser is recursive, and must not run out of stack.
const DEPTH_MAX: usize = 16;
/// The stack that the parser gets, in bytes.
const PARSER_STACK: usize = 32 * 1024 * 1024;
/// How deep the parsed expression may be nested, of which every operator and field is a level.
const TREE_DEPTH_MAX: u32 = 64;
/// How deep macros (`all`, `exists`, `exists_one`, `map`, `filter`) may be nested.
const NESTING_MAX: u32 = 3;
/// How deep inside macros texts and lists may be joined.
const JOIN_NESTING_MAX: u32 = 1;
/// The largest object that is looked at, in values.
const VALUES_MAX: usize = 50_000;
/// The most evaluations of nodes.
const STEPS_MAX: u64 = 5_000_000;
/// What expressions can see of an object.
const VARIABLES: [&str; 7] = ["self", "apiVersion", "kind", "metadata", "spec", "status", "data"];
/// The functions of the standard library, without those that depend on the time of day.
const FUNCTIONS: [&str; 14] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "string",
    "int",
    "uint",
    "double",
    "bytes",
    "bool",
    "type",
    "dyn",
    "has",
];

/// What is wrong with an expression, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Line, from 1.
    pub(super) line: usize,
    /// Column, from 1.
    pub(super) column: usize,
    pub(super) message: String,
}

/// What an expression came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Bool(bool),
    Text(String),
    /// The object lacks something that the expression names.
    Absent(String),
    /// It can come to nothing, for this object or any.
    Wrong(String),
}

/// A compiled expression.
pub(super) struct Expression {
    program: Program,
    nodes: u64,
    nesting: u32,
}

/// An object as expressions see it.
pub(super) struct Seen {
    whole: cel::Value,
    parts: Vec<(&'static str, cel::Value)>,
    longest: u64,
    values: usize,
}

impl Expression {
    /// Compiles on a stack that is large enough for whatever the bounds allow.
    pub(super) fn compile(source: &str) -> Result<Self, Problem> {
        let broken = || Problem {
            line: 1,
            column: 1,
            message: "it cannot be read".to_owned(),
        };
        let source = source.to_owned();
        std::thread::Builder::new()
            .stack_size(PARSER_STACK)
            .spawn(move || Self::parse(&source))
            .map_err(|_| broken())?
            .join()
            .unwrap_or_else(|_| Err(broken()))
    }

    fn parse(source: &str) -> Result<Self, Problem> {
        let at_start = |message: String| Problem {
            line: 1,
            column: 1,
            message,
        };
        if source.trim().is_empty() {
            return Err(at_start("expected an expression, found none".to_owned()));
        }
        if source.len() > SOURCE_MAX {
            return Err(at_start(format!(
                "expected at most {SOURCE_MAX} bytes, found {}",
                source.len()
            )));
        }
        if is_too_deep(source) {
            return Err(at_start(format!(
                "brackets, prefixes and conditions may be nested {DEPTH_MAX} deep"
            )));
        }
        let program = Program::compile(source).map_err(|errors| {
            let first = errors.errors.first();
            Problem {
                line: first.map_or(1, |error| usize::try_from(error.pos.0).unwrap_or(1)),
                column: first.map_or(1, |error| usize::try_from(error.pos.1).unwrap_or(1)),
                message: first.map_or_else(|| "it cannot be read".to_owned(), |error| error.msg.clone()),
            }
        })?;
        let mut survey = Survey::default();
        survey.visit(program.expression(), &mut Vec::new(), 0);
        if survey.deepest > TREE_DEPTH_MAX {
            return Err(at_start(format!(
                "an expression may be nested {TREE_DEPTH_MAX} deep"
            )));
        }
        if let Some((id, message)) = survey.problem {
            let offset = program.source_info().offset_for(id).map_or(0, |(start, _)| start);
            let (line, column) = position(source, usize::try_from(offset).unwrap_or(0));
            return Err(Problem {
                line,
                column,
                message,
            });
        }
        Ok(Self {
            program,
            nodes: survey.nodes,
            nesting: survey.nesting,
        })
    }

    /// What it comes to for `object`.
    pub(super) fn evaluate(&self, object: &Seen) -> Outcome {
        let steps =
            (0..self.nesting).fold(self.nodes, |steps, _| steps.saturating_mul(object.longest.max(1)));
        if object.values > VALUES_MAX || steps > STEPS_MAX {
            return Outcome::Wrong("the object is too large for the expression".to_owned());
        }
        let mut context = Context::default();
        context.add_variable_from_value("self", object.whole.clone());
        for (name, value) in &object.parts {
            context.add_variable_from_value(*name, value.clone());
        }
        match self.program.execute(&context) {
            Ok(cel::Value::Bool(value)) => Outcome::Bool(value),
            Ok(cel::Value::String(text)) => Outcome::Text(text.to_string()),
            Ok(other) => Outcome::Wrong(format!("it gives a value of type {}", other.type_of())),
            Err(ExecutionError::NoSuchKey(key)) => Outcome::Absent(format!("the object has no field {key}")),
            Err(ExecutionError::UndeclaredReference(name)) => {
                Outcome::Absent(format!("the object has no {name}"))
            }
            Err(ExecutionError::IndexOutOfBounds(_)) => {
                Outcome::Absent("a list is shorter than expected".to_owned())
            }
            // The text of other errors may quote the object, which may be a Secret.
            Err(ExecutionError::NoSuchOverload(_) | ExecutionError::ValuesNotComparable(..)) => {
                Outcome::Wrong("values of these types cannot be combined".to_owned())
            }
            Err(_) => Outcome::Wrong("it cannot be evaluated".to_owned()),
        }
    }
}

impl Seen {
    pub(super) fn of(object: &Value) -> Self {
        let mut seen = Self {
            whole: cel::Value::Null,
            parts: Vec::new(),
            longest: 1,
            values: 0,
        };
        seen.whole = seen.convert(object);
        if let cel::Value::Map(whole) = &seen.whole {
            for name in VARIABLES {
                if let Some(part) = whole.map.get(&Key::String(Arc::new(name.to_owned()))) {
                    seen.parts.push((name, part.clone()));
                }
            }
        }
        seen
    }

    fn convert(&mut self, value: &Value) -> cel::Value {
        self.values += 1;
        match value {
            Value::Null => cel::Value::Null,
            Value::Bool(value) => cel::Value::Bool(*value),
            Value::Number(number) => number.as_i64().map_or_else(
                || cel::Value::Float(number.as_f64().unwrap_or(f64::NAN)),
                cel::Value::Int,
            ),
            Value::String(text) => cel::Value::String(Arc::new(text.clone())),
            Value::Array(items) => {
                self.longest = self.longest.max(items.len() as u64);
                cel::Value::List(Arc::new(items.iter().map(|item| self.convert(item)).collect()))
            }
            Value::Object(fields) => {
                self.longest = self.longest.max(fields.len() as u64);
                let fields: HashMap<Key, cel::Value> = fields
                    .iter()
                    .filter(|(_, value)| !value.is_null())
                    .map(|(key, value)| (Key::String(Arc::new(key.clone())), self.convert(value)))
                    .collect();
                cel::Value::Map(fields.into())
            }
        }
    }
}

/// Counts what an expression costs and finds what it may not say.
#[derive(Default)]
struct Survey {
    nodes: u64,
    nesting: u32,
    level: u32,
    deepest: u32,
    problem: Option<(u64, String)>,
}

impl Survey {
    fn visit<'e>(&mut self, node: &'e IdedExpr, bound: &mut Vec<&'e str>, depth: u32) {
        self.nodes += 1;
        self.nesting = self.nesting.max(depth);
        self.level += 1;
        self.deepest = self.deepest.max(self.level);
        self.parts(node, bound, depth);
        self.level -= 1;
    }

    fn parts<'e>(&mut self, node: &'e IdedExpr, bound: &mut Vec<&'e str>, depth: u32) {
        match &node.expr {
            Expr::Unspecified | Expr::Literal(_) => {}
            Expr::Ident(name) => {
                let known = name.starts_with('@')
                    || VARIABLES.contains(&name.as_str())
                    || bound.contains(&name.as_str());
                if !known {
                    self.found(
                        node.id,
                        format!("unknown name {name}; expected one of {}", VARIABLES.join(", ")),
                    );
                }
            }
            Expr::Call(call) => {
                let is_operator = !call.func_name.starts_with(|c: char| c.is_ascii_alphabetic());
                if !is_operator && !FUNCTIONS.contains(&call.func_name.as_str()) {
                    self.found(node.id, format!("unknown function {}", call.func_name));
                }
                if call.func_name == "_+_" && depth > JOIN_NESTING_MAX && !collects(&call.args) {
                    self.found(
                        node.id,
                        "nothing may be joined this deep inside macros".to_owned(),
                    );
                }
                for part in call.target.as_deref().into_iter().chain(&call.args) {
                    self.visit(part, bound, depth);
                }
            }
            Expr::Select(select) => self.visit(&select.operand, bound, depth),
            Expr::List(list) => list
                .elements
                .iter()
                .for_each(|element| self.visit(element, bound, depth)),
            Expr::Map(map) => {
                for entry in &map.entries {
                    self.entry(&entry.expr, bound, depth);
                }
            }
            Expr::Struct(fields) => {
                for entry in &fields.entries {
                    self.entry(&entry.expr, bound, depth);
                }
            }
            Expr::Comprehension(macros) => {
                if depth == NESTING_MAX {
                    self.found(node.id, format!("macros may be nested {NESTING_MAX} deep"));
                    return;
                }
                self.visit(&macros.iter_range, bound, depth);
                self.visit(&macros.accu_init, bound, depth);
                let before = bound.len();
                bound.push(&macros.iter_var);
                bound.push(&macros.accu_var);
                bound.extend(macros.iter_var2.as_deref());
                for part in [&macros.loop_cond, &macros.loop_step, &macros.result] {
                    self.visit(part, bound, depth + 1);
                }
                bound.truncate(before);
            }
        }
    }

    fn entry<'e>(&mut self, entry: &'e EntryExpr, bound: &mut Vec<&'e str>, depth: u32) {
        match entry {
            EntryExpr::StructField(field) => self.visit(&field.value, bound, depth),
            EntryExpr::MapEntry(entry) => {
                self.visit(&entry.key, bound, depth);
                self.visit(&entry.value, bound, depth);
            }
        }
    }

    fn found(&mut self, id: u64, message: String) {
        self.problem.get_or_insert((id, message));
    }
}

/// Whether a sum is a macro's own way to collect its result.
fn collects(arguments: &[IdedExpr]) -> bool {
    matches!(arguments.first().map(|first| &first.expr), Some(Expr::Ident(name)) if name.starts_with('@'))
}

/// Whether the text alone shows that it is nested too deep.
fn is_too_deep(source: &str) -> bool {
    let (mut depth, mut prefixes, mut conditions) = (0_usize, 0_usize, 0_usize);
    let mut quote = None;
    let mut escaped = false;
    for c in source.chars() {
        if let Some(open) = quote {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                _ if c == open => quote = None,
                _ => {}
            }
            continue;
        }
        prefixes = match c {
            '!' | '-' => prefixes + 1,
            _ if c.is_whitespace() => prefixes,
            _ => 0,
        };
        match c {
            '"' | '\'' => quote = Some(c),
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '?' => conditions += 1,
            _ => {}
        }
        if depth > DEPTH_MAX || prefixes > DEPTH_MAX || conditions > DEPTH_MAX {
            return true;
        }
    }
    false
}

/// Line and column of a character, both from 1.
fn position(source: &str, offset: usize) -> (usize, usize) {
    let before: String = source.chars().take(offset).collect();
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn evaluate(source: &str, object: &Value) -> Outcome {
        Expression::compile(source)
            .expect(source)
            .evaluate(&Seen::of(object))
    }

    fn refused(source: &str) -> Problem {
        match Expression::compile(source) {
            Ok(_) => panic!("{source} is accepted"),
            Err(problem) => problem,
        }
    }

    #[test]
    fn expressions_see_the_object_and_its_parts() {
        let object = json!({"metadata": {"generation": 3}, "spec": {"n": 2}, "status": {"observedGeneration": 3, "state": "Ready",
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "False"}]}});
        for (source, value) in [
            ("self.status.state == 'Ready'", true),
            ("status.observedGeneration >= metadata.generation", true),
            (
                "status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
                true,
            ),
            (
                "status.conditions.filter(e, e.type == 'Synced').all(e, e.status == 'True')",
                false,
            ),
            ("has(status.missing) && status.missing", false),
            ("spec.n + 1 == 3", true),
            (
                "size(status.conditions) == 2 && status.state.matches('^Re.*y$')",
                true,
            ),
        ] {
            assert_eq!(evaluate(source, &object), Outcome::Bool(value), "{source}");
        }
        assert_eq!(
            evaluate("status.conditions.map(c, c.type + '=' + c.status)[1]", &object),
            Outcome::Text("Synced=False".to_owned())
        );
    }

    #[test]
    fn what_is_not_there_is_no_error() {
        let object = json!({"metadata": {}, "spec": {}});
        for source in [
            "status.state == 'Ready'",
            "self.status.state == 'Ready'",
            "self.spec.list[0] == 1",
        ] {
            assert!(
                matches!(evaluate(source, &object), Outcome::Absent(_)),
                "{source}: {:?}",
                evaluate(source, &object)
            );
        }
        assert!(matches!(
            evaluate("metadata + 1 == 2", &object),
            Outcome::Wrong(_)
        ));
        assert!(matches!(evaluate("size(metadata)", &object), Outcome::Wrong(_)));
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_place() {
        let problem = refused("status.state == ");
        assert_eq!(problem.line, 1, "{problem:?}");
        let problem = refused("status.ready\n  && sttaus.ready");
        assert_eq!((problem.line, problem.column), (2, 6), "{problem:?}");
        assert!(problem.message.contains("sttaus"), "{problem:?}");
        assert!(
            refused("status.x.lowerAscii() == 'a'")
                .message
                .contains("lowerAscii")
        );
        assert!(refused("").message.contains("found none"));
        assert!(refused(&"a".repeat(SOURCE_MAX + 1)).message.contains("at most"));
    }

    #[test]
    fn cost_is_bounded() {
        let nested = "spec.l.all(a, spec.l.all(b, spec.l.all(c, spec.l.all(d, true))))";
        assert!(refused(nested).message.contains("nested"));
        assert!(
            refused("spec.l.map(a, spec.l.map(b, a + b + a)) == []")
                .message
                .contains("joined")
        );
        let items: Vec<u32> = (0..20_000).collect();
        let object = json!({"spec": {"l": items}});
        assert!(matches!(
            evaluate("spec.l.all(a, spec.l.all(b, a != b))", &object),
            Outcome::Wrong(_)
        ));
        assert_eq!(evaluate("spec.l.exists(a, a == 7)", &object), Outcome::Bool(true));
        // None of these may end the process.
        let brackets = |count: usize| format!("{}true{}", "(".repeat(count), ")".repeat(count));
        let conditions = |count: usize| format!("{}true", "true ? true : ".repeat(count));
        for (source, accepted) in [
            (brackets(DEPTH_MAX), true),
            (brackets(400), false),
            ("[".repeat(999), false),
            ("!".repeat(999), false),
            (format!("{}true", "!".repeat(DEPTH_MAX)), true),
            (conditions(DEPTH_MAX), true),
            (conditions(60), false),
            (format!("self{}", ".a".repeat(450)), false),
            (format!("1{} == 1", "+1".repeat(450)), false),
            (format!("'{}' == 'x'", "(".repeat(400)), true),
            (format!("true{}", " && true".repeat(100)), true),
        ] {
            let compiled = Expression::compile(&source);
            assert_eq!(compiled.is_ok(), accepted, "{source}");
            if let Ok(expression) = compiled {
                assert!(
                    matches!(expression.evaluate(&Seen::of(&object)), Outcome::Bool(_)),
                    "{source}"
                );
            }
        }
    }
}
