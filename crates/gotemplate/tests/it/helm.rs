//! As much of Helm around the engine as the oracle tables need: `include`, `tpl`, `required`, `lookup`, the
//! objects of a small chart, and the rewriting of errors.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use evenkeel_gotemplate::{
    Cause, Closure, Entries, Env, Error, Executor, Frame, FuncMap, Instant, List, ListClass, Map, MapClass,
    Method, Object, Parsed, RandomSource, Returns, Signature, Str, TemplateSet, Type, Value, parse,
};

/// Helm's bound on nested includes of one name.
const MAX_INCLUDES: usize = 1_000;

pub struct Counter(pub u64);

impl RandomSource for Counter {
    fn fill(&mut self, buffer: &mut [u8]) {
        for byte in buffer {
            // A linear congruential generator: repeatable, and even enough.
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *byte = (self.0 >> 56) as u8;
        }
    }
}

pub fn env() -> Env {
    Env::new(
        Instant {
            seconds: 1_764_600_000,
            nanos: 0,
        },
        Box::new(Counter(7)),
    )
}

pub fn functions() -> FuncMap {
    let mut functions = FuncMap::new();
    let included: Rc<RefCell<HashMap<Str, usize>>> = Rc::default();
    let name_and_data = &[Type::Str, Type::Any];
    functions.insert(
        "include",
        Closure::new(
            Signature::fixed(name_and_data, Returns::Concrete),
            move |executor, args| {
                let [Value::Str(name), data] = args else {
                    panic!("checked")
                };
                let depth = included.borrow().get(name).copied().unwrap_or(0);
                if depth > MAX_INCLUDES {
                    return Err(Error::message(format!(
                        "rendering template has a nested reference name: {name}: unable to execute template"
                    )));
                }
                *included.borrow_mut().entry(name.clone()).or_default() += 1;
                let result = executor.include(&name.to_text(), data);
                *included.borrow_mut().entry(name.clone()).or_default() -= 1;
                result.map(Value::Str)
            },
        ),
    );
    functions.insert(
        "tpl",
        Closure::new(
            Signature::fixed(name_and_data, Returns::Concrete),
            |executor, args| {
                let [Value::Str(text), data] = args else {
                    panic!("checked")
                };
                let mut set = executor.templates().clone();
                let functions = Rc::clone(executor.functions());
                let quoted = format!("{:?}", text.to_text());
                let root = set.root().to_owned();
                let parsed =
                    parse(&root, text.as_bytes(), |name| functions.contains(name)).map_err(|error| {
                        Error::from(error).context(format!("cannot parse template {quoted}: "))
                    })?;
                set.add(&parsed);
                let output = executor
                    .execute_tree(&set, parsed.main(), data)
                    .map_err(|error| {
                        error.context(format!("error during tpl function execution for {quoted}: "))
                    })?;
                Ok(Value::from(output.to_text().replace("<no value>", "")))
            },
        ),
    );
    functions.insert(
        "required",
        Closure::new(Signature::fixed(name_and_data, Returns::Interface), |_, args| {
            let [Value::Str(message), value] = args else {
                panic!("checked")
            };
            match value {
                Value::Nil => Err(Error::failure(message.to_text())),
                Value::Str(text) if text.is_empty() => Err(Error::failure(message.to_text())),
                other => Ok(other.clone()),
            }
        }),
    );
    functions.insert(
        "lookup",
        Closure::new(
            Signature::fixed(&[Type::Str, Type::Str, Type::Str, Type::Str], Returns::Concrete),
            |executor, _| {
                executor.taint(evenkeel_gotemplate::Taint::Lookup);
                Ok(Value::Map(Map::any()))
            },
        ),
    );
    functions
}

const NONE: Signature = Signature::fixed(&[], Returns::Concrete);

fn receiver(value: &Value) -> Map {
    value.as_map().expect("a map").clone()
}

static VALUES: MapClass = MapClass {
    name: "common.Values",
    elem: Type::Any,
    named: true,
    methods: &[
        Method {
            name: "AsMap",
            signature: NONE,
            call: |_, values, _| {
                Ok(Value::Map(
                    receiver(values).with_class(&evenkeel_gotemplate::MAP_ANY),
                ))
            },
        },
        Method {
            name: "YAML",
            signature: NONE,
            call: |executor, values, _| {
                Ok(Value::from(evenkeel_goyaml::to_yaml(
                    &values.to_data(executor.limits())?,
                )))
            },
        },
    ],
};

static FILES: MapClass = MapClass {
    name: "engine.files",
    elem: Type::Bytes,
    named: true,
    methods: &[
        Method {
            name: "Get",
            signature: Signature::fixed(&[Type::Str], Returns::Concrete),
            call: |_, _, _| Ok(Value::from("")),
        },
        Method {
            name: "Glob",
            signature: Signature::fixed(&[Type::Str], Returns::Concrete),
            call: |_, files, _| Ok(files.clone()),
        },
        Method {
            name: "Lines",
            signature: Signature::fixed(&[Type::Str], Returns::Concrete),
            call: |_, _, _| Ok(Value::List(List::strings([]))),
        },
        Method {
            name: "AsConfig",
            signature: NONE,
            call: |_, _, _| Ok(Value::from("{}")),
        },
    ],
};

static VERSION_SET: ListClass = ListClass {
    name: "common.VersionSet",
    elem: Type::Str,
    named: true,
    methods: &[Method {
        name: "Has",
        signature: Signature::fixed(&[Type::Str], Returns::Concrete),
        call: |_, set, args| {
            let [Value::Str(wanted)] = args else {
                panic!("checked")
            };
            let set = set.as_list().expect("a list");
            Ok(Value::Bool(set.with(|items| {
                items.iter().any(|item| item.as_str() == Some(wanted))
            })))
        },
    }],
};

struct Fields(&'static str, Option<&'static str>, Vec<(&'static str, Value)>);

impl Object for Fields {
    fn type_name(&self) -> &'static str {
        self.0
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        self.2.clone()
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (self.1.is_some() && name == "GitVersion").then_some(NONE)
    }

    fn call(&self, _: &mut Executor, _: &str, _: &[Value]) -> Result<Value, Error> {
        Ok(Value::from(self.1.unwrap_or_default()))
    }

    fn string(&self) -> Option<Str> {
        self.1.map(Str::from)
    }

    fn equals(&self, _: &dyn Object) -> bool {
        false
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn map(entries: Vec<(&str, Value)>) -> Value {
    Value::Map(
        entries
            .into_iter()
            .map(|(key, value)| (Str::from(key), value))
            .collect(),
    )
}

fn json(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(flag) => Value::Bool(*flag),
        serde_json::Value::Number(number) => Value::Float(number.as_f64().unwrap()),
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(items) => Value::List(items.iter().map(json).collect()),
        serde_json::Value::Object(entries) => Value::Map(
            entries
                .iter()
                .map(|(key, value)| (Str::from(key.as_str()), json(value)))
                .collect(),
        ),
    }
}

/// The values and objects of the chart behind the tables.
pub fn data(values: &serde_json::Value) -> Value {
    let Value::Map(values) = json(values) else {
        panic!("values are an object")
    };
    let empty_list = || Value::List(List::any(Vec::new()));
    let texts = |keys: &[&'static str]| keys.iter().map(|key| (*key, Value::from(""))).collect::<Vec<_>>();
    let mut chart = vec![
        ("APIVersion", Value::from("v2")),
        ("Annotations", Value::Map(Map::nil(&evenkeel_gotemplate::MAP_STR))),
        ("Dependencies", empty_list()),
        ("Deprecated", Value::Bool(false)),
        ("IsRoot", Value::Bool(true)),
        ("Keywords", empty_list()),
        ("Maintainers", empty_list()),
        ("Name", Value::from("ex")),
        ("Sources", empty_list()),
        ("Version", Value::from("0.1.0")),
    ];
    chart.extend(texts(&[
        "AppVersion",
        "Condition",
        "Description",
        "Home",
        "Icon",
        "KubeVersion",
        "Tags",
        "Type",
    ]));
    let kube = Fields(
        "common.KubeVersion",
        Some("v1.37.0"),
        vec![
            ("Version", "v1.37.0".into()),
            ("Major", "1".into()),
            ("Minor", "37".into()),
        ],
    );
    let helm = Fields("version.BuildInfo", None, vec![("Version", "v4.3.1".into())]);
    let mut versions: Vec<Value> = vec!["apps/v1".into(), "policy/v1beta1".into(), "v1".into()];
    versions.resize(57, "x/v1".into());
    let capabilities = Fields(
        "*common.Capabilities",
        None,
        vec![
            ("KubeVersion", Value::object(kube)),
            ("APIVersions", Value::List(List::new(&VERSION_SET, versions))),
            ("HelmVersion", Value::object(helm)),
        ],
    );
    map(vec![
        ("Values", Value::Map(values.with_class(&VALUES))),
        ("Chart", map(chart)),
        (
            "Release",
            map(vec![
                ("Name", "r".into()),
                ("Namespace", "default".into()),
                ("Revision", Value::int(1)),
                ("IsInstall", true.into()),
                ("IsUpgrade", false.into()),
                ("Service", "Helm".into()),
            ]),
        ),
        ("Capabilities", Value::object(capabilities)),
        ("Files", Value::Map(Map::new(&FILES, Entries::new()))),
        ("Subcharts", map(vec![])),
        (
            "Template",
            map(vec![
                ("Name", "ex/templates/a.yaml".into()),
                ("BasePath", "ex/templates".into()),
            ]),
        ),
    ])
}

/// Renders the files of a set in Helm's way: the last one is the manifest, the others are partials.
pub fn render(files: &[(&str, &str)], data: &Value) -> Result<String, String> {
    render_in(env(), files, data)
}

/// The same with what the render may see of the outside.
pub fn render_in(env: Env, files: &[(&str, &str)], data: &Value) -> Result<String, String> {
    let functions = functions();
    let mut set = TemplateSet::new("gotpl");
    for (name, text) in files {
        let parsed: Parsed =
            parse(name, text.as_bytes(), |name| functions.contains(name)).map_err(|error| {
                let text = error.to_string();
                let tokens: Vec<&str> = text.split(": ").collect();
                format!("parse error at ({}): {}", tokens[1], tokens[tokens.len() - 1])
            })?;
        set.add(&parsed);
    }
    let mut executor = Executor::new(env, Rc::new(functions));
    let (main, _) = files.last().expect("a manifest");
    match executor.execute(&set, main, data) {
        Ok(output) => Ok(output.to_text().replace("<no value>", "")),
        Err(error) => Err(rewritten(&error)),
    }
}

/// Helm 4's rewriting of execution errors.
pub fn rewritten(error: &Error) -> String {
    if let Cause::Failure(message) = error.cause() {
        return format!(
            "execution error at ({}): {message}",
            error.location().unwrap_or_default()
        );
    }
    let mut levels: Vec<String> = Vec::new();
    for text in error.texts() {
        let Some(level) = level(&text) else {
            return error.to_string();
        };
        if levels.last() != Some(&level) {
            levels.push(level);
        }
    }
    assert!(error.frames().any(|frame| matches!(frame, Frame::Action { .. })));
    levels.concat().trim().to_owned()
}

fn level(text: &str) -> Option<String> {
    let rest = text.strip_prefix("template: ")?;
    if rest.starts_with("no template ") {
        return Some(format!("{text}\n"));
    }
    let cut = |message: &str| message.split(" template:").next().unwrap_or_default().to_owned();
    if let Some((location, after)) = rest.split_once(": executing ") {
        let (function, after) = after.strip_prefix('"')?.split_once('"')?;
        let (node, message) = after.strip_prefix(" at <")?.split_once(">: ")?;
        return Some(format!(
            "{location}\n  executing \"{function}\" at <{node}>:\n    {}\n",
            cut(message)
        ));
    }
    let (location, message) = rest.rsplit_once(": ")?;
    Some(format!("{location}\n  {}\n", cut(message)))
}
