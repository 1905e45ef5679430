//! The functions that belong to the chart engine: `include`, `tpl`, `required`, `fail`, `lookup`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use evenkeel_gotemplate::{
    Closure, Error, Executor, FuncMap, Map, Parsed, Returns, Signature, Str, Taint, Type, Value, go_quoted,
    parse,
};
use evenkeel_goyaml as goyaml;

use super::{World, find, without_no_value};

/// How often one template may be inside itself through `include`.
const MAX_INCLUDES: usize = 1000;
/// The most texts of `tpl` that one render keeps parsed.
const MAX_PARSED: usize = 1024;

/// Functions of ours; some of them hide one of the template library.
const OWN: [&str; 6] = ["include", "tpl", "required", "fail", "lookup", "getHostByName"];

/// Does a template know this name?
pub(crate) fn is_function(name: &str) -> bool {
    OWN.contains(&name) || FuncMap::new().contains(name)
}

/// All functions for one render.
pub(super) fn map(world: World) -> FuncMap {
    const TEXT_AND_ANY: &[Type] = &[Type::Str, Type::Any];
    let World { lookup, hosts } = world;
    let mut functions = FuncMap::new();
    let concrete = |params| Signature::fixed(params, Returns::Concrete);

    let includes = RefCell::new(HashMap::new());
    functions.insert(
        "include",
        Closure::new(concrete(TEXT_AND_ANY), move |executor, args| match args {
            [Value::Str(name), data] => include(executor, &includes, &name.to_text(), data),
            _ => wrong_arguments("include"),
        }),
    );
    let parsed = ParsedTexts::default();
    functions.insert(
        "tpl",
        Closure::new(concrete(TEXT_AND_ANY), move |executor, args| match args {
            [Value::Str(text), data] => tpl(executor, &parsed, text, data),
            _ => wrong_arguments("tpl"),
        }),
    );
    functions.insert(
        "required",
        Closure::new(
            Signature::fixed(TEXT_AND_ANY, Returns::Interface),
            |_, args| match args {
                [Value::Str(complaint), Value::Nil] => Err(Error::failure(complaint.to_text())),
                [Value::Str(complaint), Value::Str(value)] if value.is_empty() => {
                    Err(Error::failure(complaint.to_text()))
                }
                [_, value] => Ok(value.clone()),
                _ => wrong_arguments("required"),
            },
        ),
    );
    functions.insert(
        "fail",
        Closure::new(concrete(&[Type::Str]), |_, args| match args {
            [Value::Str(complaint)] => Err(Error::failure(complaint.to_text())),
            _ => wrong_arguments("fail"),
        }),
    );
    functions.insert(
        "lookup",
        Closure::new(
            concrete(&[Type::Str, Type::Str, Type::Str, Type::Str]),
            move |executor, args| match args {
                [
                    Value::Str(api_version),
                    Value::Str(kind),
                    Value::Str(namespace),
                    Value::Str(name),
                ] => {
                    executor.taint(Taint::Lookup);
                    let Some(lookup) = &lookup else {
                        return Ok(Value::Map(Map::any()));
                    };
                    let found = lookup
                        .lookup(
                            &api_version.to_text(),
                            &kind.to_text(),
                            &namespace.to_text(),
                            &name.to_text(),
                        )
                        .map_err(Error::message)?;
                    let found = found.map(goyaml::Value::from);
                    Ok(found.as_ref().map_or_else(|| Value::Map(Map::any()), Value::from))
                }
                _ => wrong_arguments("lookup"),
            },
        ),
    );
    functions.insert(
        "getHostByName",
        Closure::new(concrete(&[Type::Str]), move |executor, args| {
            match (args, &hosts) {
                ([Value::Str(_)], None) => Ok(Value::Str(Str::EMPTY)),
                ([Value::Str(name)], Some(hosts)) => {
                    executor.taint(Taint::Lookup);
                    let name = name.to_text();
                    let address = hosts(&name)
                        .ok_or_else(|| Error::message(format!("no such host: {}", go_quoted(&name))))?;
                    Ok(Value::from(address.as_str()))
                }
                _ => wrong_arguments("getHostByName"),
            }
        }),
    );
    functions
}

/// The executor has checked the arguments against the signature; this cannot happen.
fn wrong_arguments(name: &str) -> Result<Value, Error> {
    Err(Error::message(format!("wrong arguments for {name}")))
}

fn include(
    executor: &mut Executor,
    running: &RefCell<HashMap<String, usize>>,
    name: &str,
    data: &Value,
) -> Result<Value, Error> {
    {
        let mut running = running.borrow_mut();
        match running.get_mut(name) {
            Some(count) if *count > MAX_INCLUDES => {
                return Err(Error::message(format!(
                    "rendering template has a nested reference name: {name}: unable to execute template"
                )));
            }
            Some(count) => *count += 1,
            None => {
                running.insert(name.to_owned(), 1);
            }
        }
    }
    let text = executor.include(name, data);
    if let Some(count) = running.borrow_mut().get_mut(name) {
        *count -= 1;
    }
    text.map(Value::Str)
}

/// Texts of `tpl` that were parsed before; charts give it the same text again and again.
#[derive(Default)]
struct ParsedTexts(RefCell<HashMap<Str, Rc<Parsed>>>);

impl ParsedTexts {
    fn get(&self, root: &str, text: &Str) -> Result<Rc<Parsed>, Error> {
        if let Some(parsed) = self.0.borrow().get(text) {
            return Ok(Rc::clone(parsed));
        }
        let parsed = Rc::new(parse(root, text.as_bytes(), is_function)?);
        let mut known = self.0.borrow_mut();
        if known.len() >= MAX_PARSED {
            known.clear();
        }
        known.insert(text.clone(), Rc::clone(&parsed));
        Ok(parsed)
    }
}

fn tpl(executor: &mut Executor, parsed: &ParsedTexts, text: &Str, data: &Value) -> Result<Value, Error> {
    // Without an action the text stands for itself; nearly all texts given to `tpl` are such.
    if find(text.as_bytes(), b"{{").is_none() {
        return Ok(Value::from(without_no_value(text.as_bytes())));
    }
    let parsed = parsed
        .get(executor.templates().root(), text)
        .map_err(|error| error.context(format!("cannot parse template {}: ", go_quoted(text.as_bytes()))))?;
    // Definitions inside the text are seen by it and what it includes, and by nobody else.
    let mut set = executor.templates().clone();
    set.add(&parsed);
    let out = executor
        .execute_tree(&set, parsed.main(), data)
        .map_err(|error| {
            error.context(format!(
                "error during tpl function execution for {}: ",
                go_quoted(text.as_bytes())
            ))
        })?;
    Ok(Value::from(without_no_value(out.as_bytes())))
}
