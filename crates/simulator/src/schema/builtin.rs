//! Reads `data/types.txt`, the types of the built-in kinds.
//!
//! One line each, written by `data/generate.py`:
//!
//! ```text
//! kind GROUP VERSION KIND TYPE       the type of a kind; group "core" for the legacy group
//! any TYPE                           a type that may be anything
//! type NAME [atomic] [free]          begins a struct; "free" ones take any field
//!  FIELD EXPR FLAGS [d=JSON] [ps=STRATEGY] [mk=KEY]
//! ```
//!
//! `EXPR`: `s` string, `i` int32, `l` int64, `n` number, `b` boolean, `y` base64, `t` time, `u` time with microseconds,
//! `q` quantity, `x` integer or string, `j` anything, `r` anything replaced as one, `@NAME[!]` a struct (`!`: replaced
//! as one here), `[a]E` list replaced as one, `[s]E` set, `[m:KEYS]E` list told apart by keys, `{}E` dictionary, `{a}E`
//! dictionary replaced as one, `{?}` any object. `FLAGS`: `p` pointer, `o` omitempty, `z` omitzero, `!` required (not used).

use serde_json::Value;

use super::{
    Atom, DEDUCED, Field, ListRelation, ListType, MapType, Scalar, Schema, TypeId, TypeRef, UNTYPED,
};

const TYPES: &str = include_str!("../../data/types.txt");

/// Parses the table. A line that cannot be read is a defect of the generated file: the unit tests refuse it.
pub(super) fn load() -> Schema {
    load_types(|_| true)
}

/// A schema with the types of `metadata` alone, to which a custom kind adds its own.
pub(super) fn load_metadata() -> Schema {
    load_types(|name| name.starts_with("meta."))
}

fn load_types(wanted: impl Fn(&str) -> bool) -> Schema {
    let mut schema = Schema::new();
    let mut open: Option<(TypeId, MapType)> = None;
    for line in TYPES.lines() {
        if let Some(field) = line.strip_prefix(' ') {
            if let Some((_, map)) = open.as_mut()
                && let Some((name, field)) = parse_field(&mut schema, field)
            {
                map.fields.insert(name.into(), field);
            }
            continue;
        }
        if let Some((id, map)) = open.take() {
            schema.define(
                id,
                Atom {
                    map: Some(map),
                    ..Atom::default()
                },
            );
        }
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["kind", group, version, kind, name] if wanted(name) => {
                let id = schema.named(name);
                schema.define_kind(if *group == "core" { "" } else { group }, version, kind, id);
            }
            ["any", name] if wanted(name) => {
                let id = schema.named(name);
                schema.define(id, Atom::untyped(DEDUCED, false));
            }
            ["type", name, rest @ ..] if wanted(name) => {
                let id = schema.named(name);
                let map = MapType {
                    atomic: rest.contains(&"atomic"),
                    go_name: name.rsplit('.').next().unwrap_or_default().into(),
                    element: rest.contains(&"free").then_some(DEDUCED.into()),
                    ..MapType::default()
                };
                open = Some((id, map));
            }
            _ => {}
        }
    }
    if let Some((id, map)) = open {
        schema.define(
            id,
            Atom {
                map: Some(map),
                ..Atom::default()
            },
        );
    }
    schema
}

fn parse_field<'a>(schema: &mut Schema, line: &'a str) -> Option<(&'a str, Field)> {
    let mut words = line.split(' ');
    let (name, expr, flags) = (words.next()?, words.next()?, words.next()?);
    let mut field = Field {
        ty: parse_type(schema, expr)?,
        pointer: flags.contains('p'),
        omit_empty: flags.contains('o'),
        omit_zero: flags.contains('z'),
        default: None,
        patch: None,
    };
    for word in words {
        if let Some(json) = word.strip_prefix("d=") {
            field.default = serde_json::from_str::<Value>(json).ok();
        } else if let Some(strategy) = word.strip_prefix("ps=") {
            let patch = field.patch.get_or_insert_default();
            patch.merge = strategy.split(',').any(|s| s == "merge");
            patch.retain_keys = strategy.split(',').any(|s| s == "retainKeys");
        } else if let Some(key) = word.strip_prefix("mk=") {
            field.patch.get_or_insert_default().merge_key = Some(key.into());
        }
    }
    Some((name, field))
}

fn parse_type(schema: &mut Schema, expr: &str) -> Option<TypeRef> {
    let scalar = |schema: &mut Schema, scalar: Scalar| {
        // One atom for each scalar keeps the table small.
        let id = schema.named(match scalar {
            Scalar::String => "=string",
            Scalar::Int32 => "=int32",
            Scalar::Int64 => "=int64",
            Scalar::Number => "=number",
            Scalar::Boolean => "=boolean",
            Scalar::Bytes => "=bytes",
            Scalar::Time => "=time",
            Scalar::MicroTime => "=microtime",
            Scalar::Quantity => "=quantity",
            Scalar::IntOrString => "=intorstring",
            Scalar::Untyped => "=untyped",
        });
        schema.define(
            id,
            Atom {
                scalar: Some(scalar),
                ..Atom::default()
            },
        );
        Some(TypeRef::from(id))
    };
    match expr {
        "s" => return scalar(schema, Scalar::String),
        "i" => return scalar(schema, Scalar::Int32),
        "l" => return scalar(schema, Scalar::Int64),
        "n" => return scalar(schema, Scalar::Number),
        "b" => return scalar(schema, Scalar::Boolean),
        "y" => return scalar(schema, Scalar::Bytes),
        "t" => return scalar(schema, Scalar::Time),
        "u" => return scalar(schema, Scalar::MicroTime),
        "q" => return scalar(schema, Scalar::Quantity),
        "x" => return scalar(schema, Scalar::IntOrString),
        "j" | "{?}" => return Some(DEDUCED.into()),
        "r" => return Some(UNTYPED.into()),
        _ => {}
    }
    if let Some(name) = expr.strip_prefix('@') {
        let atomic = name.ends_with('!');
        let id = schema.named(name.trim_end_matches('!'));
        return Some(TypeRef { id, atomic });
    }
    if let Some(rest) = expr.strip_prefix('[') {
        let (mark, element) = rest.split_once(']')?;
        let relation = match mark {
            "a" => ListRelation::Atomic,
            "s" => ListRelation::Set,
            keys => ListRelation::Map(keys.strip_prefix("m:")?.split(',').map(Into::into).collect()),
        };
        let element = parse_type(schema, element)?;
        return Some(
            schema
                .add(Atom {
                    list: Some(ListType { element, relation }),
                    ..Atom::default()
                })
                .into(),
        );
    }
    let (mark, element) = expr.strip_prefix('{')?.split_once('}')?;
    let element = Some(parse_type(schema, element)?);
    let map = MapType {
        element,
        atomic: mark == "a",
        ..MapType::default()
    };
    Some(
        schema
            .add(Atom {
                map: Some(map),
                ..Atom::default()
            })
            .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::View;

    #[test]
    fn every_line_of_the_table_is_understood() {
        let mut schema = Schema::new();
        let mut fields = 0;
        for line in TYPES.lines().filter(|line| !line.starts_with('#')) {
            match line.strip_prefix(' ') {
                Some(field) => {
                    assert!(parse_field(&mut schema, field).is_some(), "cannot read {line:?}");
                    fields += 1;
                }
                None => assert!(
                    ["kind ", "any ", "type "]
                        .iter()
                        .any(|word| line.starts_with(word)),
                    "cannot read {line:?}"
                ),
            }
        }
        assert!(fields > 2000, "only {fields} fields");
    }

    #[test]
    fn every_named_type_is_defined() {
        let schema = Schema::builtin();
        for (name, id) in &schema.names {
            let atom = schema.atom(*id);
            assert!(
                atom.scalar.is_some() || atom.list.is_some() || atom.map.is_some(),
                "{name} is not defined"
            );
        }
    }

    #[test]
    fn container_ports_are_told_apart_by_port_and_protocol() {
        let schema = Schema::builtin();
        let pod = schema.kind("", "v1", "Pod").unwrap();
        let mut ty = TypeRef::from(pod);
        for step in ["spec", "containers", "*", "ports"] {
            let list = Value::Array(Vec::new());
            ty = match schema.view(ty, (step == "*").then_some(&list)) {
                View::Map(map, _) => map.field_type(step).unwrap(),
                View::List(list) => list.element,
                other => panic!("{step}: {other:?}"),
            };
        }
        let View::List(list) = schema.view(ty, None) else {
            panic!("no list")
        };
        assert_eq!(
            list.relation,
            ListRelation::Map(["containerPort".into(), "protocol".into()].into())
        );
        let View::Map(port, _) = schema.view(list.element, None) else {
            panic!("no map")
        };
        assert_eq!(
            port.fields.get("protocol").unwrap().default,
            Some(Value::from("TCP"))
        );
    }

    #[test]
    fn selectors_are_replaced_as_one() {
        let schema = Schema::builtin();
        let deployment = schema.kind("apps", "v1", "Deployment").unwrap();
        let View::Map(map, _) = schema.view(deployment.into(), None) else {
            panic!()
        };
        let View::Map(spec, _) = schema.view(map.field_type("spec").unwrap(), None) else {
            panic!()
        };
        let View::Map(_, atomic) = schema.view(spec.field_type("selector").unwrap(), None) else {
            panic!()
        };
        assert!(atomic);
    }
}
