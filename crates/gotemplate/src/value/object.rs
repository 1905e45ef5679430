//! Values with their own type: structs, pointers, times, versions.

use std::any::Any;

use super::types::{Kind, Signature};
use super::{Str, Value};
use crate::{Error, Executor};

/// A value that is neither scalar nor container: a Go struct or pointer with fields, methods and its own printing.
///
/// Objects are immutable from a template; what changes lives in maps.
pub trait Object: Any {
    /// Go's name of the type, such as `*common.Capabilities`.
    fn type_name(&self) -> &'static str;

    /// Go's kind, usually [`Kind::Ptr`] or [`Kind::Struct`].
    fn kind(&self) -> Kind {
        if self.type_name().starts_with('*') {
            Kind::Ptr
        } else {
            Kind::Struct
        }
    }

    /// The exported fields in their order.
    fn fields(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// The fields that `fmt` prints (`{a b}`): those and the unexported ones, in their order.
    fn printed_fields(&self) -> Vec<(&'static str, Value)> {
        self.fields()
    }

    /// The same by the names that JSON and YAML give them.
    fn json_fields(&self) -> Vec<(&'static str, Value)> {
        self.fields()
    }

    /// One exported field.
    fn field(&self, name: &str) -> Option<Value> {
        self.fields()
            .into_iter()
            .find(|(field, _)| *field == name)
            .map(|(_, value)| value)
    }

    /// Whether a field's Go type is `interface {}`, which some error texts show. Usually not.
    fn field_is_interface(&self, _name: &str) -> bool {
        false
    }

    /// The signature of a method, if there is one of this name. Methods win over fields.
    fn method(&self, _name: &str) -> Option<Signature> {
        None
    }

    /// Calls a method that [`Object::method`] named, with arguments checked against its signature.
    fn call(&self, _executor: &mut Executor, name: &str, _args: &[Value]) -> Result<Value, Error> {
        Err(Error::message(format!(
            "{} has no method {name}",
            self.type_name()
        )))
    }

    /// The result of Go's `String()` or `Error()`, if the type has one.
    fn string(&self) -> Option<Str> {
        None
    }

    /// The same of a field that is printed where it lies: `{{ .Field }}` finds the methods of a pointer to it as well,
    /// an argument of a function is a copy that has none.
    fn string_in_place(&self) -> Option<Str> {
        self.string()
    }

    /// The result of Go's `GoString()`, if the type has one: what `%#v` prints.
    fn go_string(&self) -> Option<Str> {
        None
    }

    /// Truth as `if` sees it: false only for objects that are a zero number inside.
    fn truth(&self) -> bool {
        true
    }

    /// The value that JSON and YAML show; none means an object made of the fields.
    fn data(&self) -> Option<Value> {
        None
    }

    /// What `deepCopy` makes of it; none means the object itself, which cannot change.
    fn deep_copy(&self) -> Option<Value> {
        None
    }

    /// Whether two objects are equal under Go's `==` and `reflect.DeepEqual`.
    fn equals(&self, other: &dyn Object) -> bool;

    /// For downcasting.
    fn as_any(&self) -> &dyn Any;
}
