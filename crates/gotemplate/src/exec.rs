//! Executes parsed templates.

mod call;
mod eval;
mod walk;

pub(crate) use walk::printable_copy;

use std::rc::Rc;
use std::sync::Arc;

use crate::env::{Env, Instant, Limit, Limits, MissingKey, Taint, Taints};
use crate::function::FuncMap;
use crate::keys::KeyMaker;
use crate::sprig::RenderRegexes;
use crate::template_set::TemplateSet;
use crate::value::{Str, Type, Value};
use crate::{Cause, Error, Tree};

/// Stack to leave when templates nest, and the size of the next piece.
const RED_ZONE: usize = 256 << 10;
const STACK: usize = 4 << 20;
/// Passes through `range` and calls of templates between two looks at the deadline.
const DEADLINE_STEPS: usize = 1_024;

/// A value as the evaluator sees it: Go's `reflect.Value`.
///
/// A field of a `map[string]interface {}` is an interface until a pipeline ends; error texts and the treatment of
/// nil depend on it. A nil that is no interface is "no value at all".
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub(crate) value: Value,
    pub(crate) interface: bool,
}

impl Operand {
    pub(crate) const INVALID: Self = Self {
        value: Value::Nil,
        interface: false,
    };

    pub(crate) const fn concrete(value: Value) -> Self {
        Self {
            value,
            interface: false,
        }
    }

    pub(crate) const fn interface(value: Value) -> Self {
        Self {
            value,
            interface: true,
        }
    }

    /// An element of a container with this element type.
    pub(crate) const fn element(value: Value, of: Type) -> Self {
        Self {
            value,
            interface: matches!(of, Type::Any),
        }
    }

    /// No value at all, not even a nil interface.
    pub(crate) const fn is_invalid(&self) -> bool {
        self.value.is_nil() && !self.interface
    }

    /// The static type that error texts name.
    pub(crate) fn static_type(&self) -> &'static str {
        if self.interface {
            Type::Any.name()
        } else {
            self.value.type_name()
        }
    }

    /// Digs the value out of an interface, as the end of a pipeline does.
    pub(crate) fn unwrapped(self) -> Self {
        Self::concrete(self.value)
    }
}

/// Runs templates: one executor for all files of one render.
///
/// Functions get the executor back as `&mut`, so that `include` and `tpl` can run templates inside templates. What
/// is counted against [`Limits`] adds up over all executions of the executor.
pub struct Executor {
    env: Env,
    functions: Rc<FuncMap>,
    current: Rc<TemplateSet>,
    depth: usize,
    output: usize,
    work: usize,
    iterations: usize,
    steps: usize,
    taints: Taints,
    regexes: RenderRegexes,
    spare_args: Vec<Vec<Value>>,
}

impl Executor {
    /// An executor with nothing used up.
    pub fn new(env: Env, functions: Rc<FuncMap>) -> Self {
        Self {
            env,
            functions,
            current: Rc::new(TemplateSet::new("")),
            depth: 0,
            output: 0,
            work: 0,
            iterations: 0,
            steps: 0,
            taints: Taints::default(),
            regexes: RenderRegexes::default(),
            spare_args: Vec::new(),
        }
    }

    /// The compiled expression, of this render or of all renders of its templates; or Go's reason why there is none.
    pub(crate) fn regex(&mut self, source: &Str) -> Result<Rc<regex::bytes::Regex>, Arc<str>> {
        self.regexes.get(source, self.current.regexes())
    }

    /// Executes the template of this name and returns its output.
    ///
    /// # Errors
    /// An unknown name, anything the template fails at, or a passed limit.
    pub fn execute(&mut self, set: &TemplateSet, name: &str, data: &Value) -> Result<Str, Error> {
        match set.get(name) {
            Some(tree) => self.execute_tree(set, tree, data),
            None => Err(Error::new(Cause::NoTemplate {
                name: name.to_owned(),
                root: set.root().to_owned(),
            })),
        }
    }

    /// Executes a tree with the templates of this set in sight. `tpl` needs this: the text it parsed may be empty
    /// and so not have replaced a template of the same name.
    ///
    /// # Errors
    /// As [`Executor::execute`].
    pub fn execute_tree(&mut self, set: &TemplateSet, tree: &Tree, data: &Value) -> Result<Str, Error> {
        let outer = if self.current.same(set) {
            None
        } else {
            Some(std::mem::replace(&mut self.current, Rc::new(set.clone())))
        };
        let result = self.run(tree, data);
        if let Some(outer) = outer {
            self.current = outer;
        }
        result
    }

    /// Executes a template of the current set, from inside a function: what `include` does.
    ///
    /// # Errors
    /// As [`Executor::execute`].
    pub fn include(&mut self, name: &str, data: &Value) -> Result<Str, Error> {
        let set = Rc::clone(&self.current);
        match set.get(name) {
            Some(tree) => self.run(tree, data),
            None => Err(Error::new(Cause::NoTemplate {
                name: name.to_owned(),
                root: set.root().to_owned(),
            })),
        }
    }

    /// The templates in sight: those of the execution that called the running function.
    pub fn templates(&self) -> &TemplateSet {
        &self.current
    }

    /// The functions that templates may call.
    pub fn functions(&self) -> &Rc<FuncMap> {
        &self.functions
    }

    /// The current time; the render is marked.
    pub fn now(&mut self) -> Instant {
        self.taint(Taint::Time);
        self.env.now
    }

    /// Name of the local time zone.
    pub fn zone(&self) -> &str {
        &self.env.zone
    }

    /// Fills the buffer with random bytes; the render is marked.
    pub fn random(&mut self, buffer: &mut [u8]) {
        self.taint(Taint::Random);
        self.env.random.fill(buffer);
    }

    /// The maker of private keys; what it makes marks the render.
    ///
    /// # Errors
    /// When the render was started without one.
    pub(crate) fn keys(&mut self) -> Result<&mut dyn KeyMaker, Error> {
        match self.env.keys.as_deref_mut() {
            Some(keys) => Ok(keys),
            None => Err(Error::message(
                "no private keys can be made or used in this render",
            )),
        }
    }

    /// Asked before work that takes milliseconds, however few steps it counts.
    pub(crate) fn check_deadline(&self) -> Result<(), Error> {
        match &self.env.deadline {
            Some(passed) if passed() => Err(Error::limit(Limit::Deadline)),
            _ => Ok(()),
        }
    }

    /// Marks the render.
    pub fn taint(&mut self, taint: Taint) {
        self.taints.add(taint);
    }

    /// What the render has used beside its inputs so far.
    pub const fn taints(&self) -> Taints {
        self.taints
    }

    /// The bounds.
    pub const fn limits(&self) -> &Limits {
        &self.env.limits
    }

    pub(crate) const fn missing_key(&self) -> MissingKey {
        self.env.missing_key
    }

    /// Accounts for text a function made.
    ///
    /// # Errors
    /// When the bound is passed. Functions whose result can be much larger than their arguments ask before they
    /// make it.
    pub fn charge(&mut self, bytes: usize) -> Result<(), Error> {
        self.work = self.work.saturating_add(bytes);
        if self.work > self.env.limits.work_bytes {
            return Err(Error::limit(Limit::WorkBytes(self.env.limits.work_bytes)));
        }
        Ok(())
    }

    pub(crate) fn count_iteration(&mut self) -> Result<(), Error> {
        self.iterations += 1;
        if self.iterations > self.env.limits.iterations {
            return Err(Error::limit(Limit::Iterations(self.env.limits.iterations)));
        }
        self.step()
    }

    /// One step of work: looks at the deadline now and then.
    fn step(&mut self) -> Result<(), Error> {
        self.steps += 1;
        if self.steps.is_multiple_of(DEADLINE_STEPS) {
            return self.check_deadline();
        }
        Ok(())
    }

    pub(crate) fn take_args(&mut self) -> Vec<Value> {
        self.spare_args.pop().unwrap_or_default()
    }

    pub(crate) fn give_args(&mut self, mut args: Vec<Value>) {
        args.clear();
        self.spare_args.push(args);
    }

    fn enter(&mut self) -> Result<(), Error> {
        if self.depth >= self.env.limits.call_depth {
            return Err(Error::limit(Limit::CallDepth(self.env.limits.call_depth)));
        }
        self.depth += 1;
        self.step()
    }

    fn run(&mut self, tree: &Tree, data: &Value) -> Result<Str, Error> {
        self.enter()?;
        let set = Rc::clone(&self.current);
        let mut out = Vec::new();
        let result = stacker::maybe_grow(RED_ZONE, STACK, || {
            walk::State::new(self, &set, tree, data.clone(), &mut out).run()
        });
        self.depth -= 1;
        result?;
        // Text that `include` returns is written again by its caller; only what stays is output.
        if self.depth == 0 {
            self.output = self.output.saturating_add(out.len());
        } else {
            self.charge(out.len())?;
        }
        Ok(Str::from(out))
    }

    /// Whether this much unfinished output is still allowed.
    pub(crate) fn check_output(&self, written: usize) -> Result<(), Error> {
        if self.output.saturating_add(written) > self.env.limits.output_bytes {
            return Err(Error::limit(Limit::OutputBytes(self.env.limits.output_bytes)));
        }
        Ok(())
    }
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor")
            .field("env", &self.env)
            .field("taints", &self.taints)
            .finish_non_exhaustive()
    }
}
