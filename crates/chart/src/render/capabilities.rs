//! `.Capabilities`, with the Go types that templates can see.

use std::any::Any;

use evenkeel_gotemplate::{
    Error, Executor, Kind, List, ListClass, Method, Object, Returns, Signature, Str, Type, Value, deep_equal,
};

use crate::capabilities::{Capabilities, KubeVersion};

/// The Helm version whose output this engine gives; charts read it.
const HELM: [(&str, &str, &str); 5] = [
    ("Version", "version", "v4.3.1"),
    (
        "GitCommit",
        "git_commit",
        "c0d08d0d6d9424d4a14febb5e8a3e51b0dd00dff",
    ),
    ("GitTreeState", "git_tree_state", "clean"),
    ("GoVersion", "go_version", "go1.27.2"),
    ("KubeClientVersion", "kube_client_version", "v1.37"),
];

/// `common.VersionSet`
static VERSION_SET: ListClass = ListClass {
    name: "common.VersionSet",
    elem: Type::Str,
    named: true,
    methods: &[Method {
        name: "Has",
        signature: Signature::fixed(&[Type::Str], Returns::Concrete),
        call: has,
    }],
};

fn has(_: &mut Executor, receiver: &Value, args: &[Value]) -> Result<Value, Error> {
    let (Some(versions), Some(Value::Str(wanted))) = (receiver.as_list(), args.first()) else {
        return Err(Error::message("wrong arguments for Has"));
    };
    let found = versions.with(|versions| versions.iter().any(|version| version.as_str() == Some(wanted)));
    Ok(Value::Bool(found))
}

/// `.Capabilities`
pub(super) fn capabilities_value(capabilities: &Capabilities) -> Value {
    let versions = capabilities
        .api_versions
        .iter()
        .map(|version| Value::from(version.as_str()));
    Value::object(CapabilitiesObject {
        kube_version: Value::object(KubeVersionObject(capabilities.kube_version.clone())),
        api_versions: Value::List(List::new(&VERSION_SET, versions.collect())),
    })
}

/// `*common.Capabilities`
struct CapabilitiesObject {
    kube_version: Value,
    api_versions: Value,
}

impl Object for CapabilitiesObject {
    fn type_name(&self) -> &'static str {
        "*common.Capabilities"
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("KubeVersion", self.kube_version.clone()),
            ("APIVersions", self.api_versions.clone()),
            ("HelmVersion", Value::object(HelmVersionObject)),
        ]
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "KubeVersion" => Some(self.kube_version.clone()),
            "APIVersions" => Some(self.api_versions.clone()),
            "HelmVersion" => Some(Value::object(HelmVersionObject)),
            _ => None,
        }
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.as_any().downcast_ref::<Self>().is_some_and(|other| {
            deep_equal(&self.kube_version, &other.kube_version)
                && deep_equal(&self.api_versions, &other.api_versions)
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// `common.KubeVersion`
struct KubeVersionObject(KubeVersion);

impl Object for KubeVersionObject {
    fn type_name(&self) -> &'static str {
        "common.KubeVersion"
    }

    fn kind(&self) -> Kind {
        Kind::Struct
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("Version", self.0.version.as_str().into()),
            ("Major", self.0.major.as_str().into()),
            ("Minor", self.0.minor.as_str().into()),
        ]
    }

    fn printed_fields(&self) -> Vec<(&'static str, Value)> {
        let mut fields = self.fields();
        fields.insert(1, ("normalizedVersion", self.0.normalized.as_str().into()));
        fields
    }

    fn method(&self, name: &str) -> Option<Signature> {
        matches!(name, "GitVersion" | "String").then_some(Signature::fixed(&[], Returns::Concrete))
    }

    fn call(&self, _: &mut Executor, name: &str, _: &[Value]) -> Result<Value, Error> {
        Ok(Value::from(if name == "String" {
            self.0.normalized.as_str()
        } else {
            self.0.version.as_str()
        }))
    }

    fn string_in_place(&self) -> Option<Str> {
        Some(self.0.normalized.as_str().into())
    }

    /// A copy leaves out what is not exported.
    fn deep_copy(&self) -> Option<Value> {
        let mut copy = self.0.clone();
        copy.normalized.clear();
        Some(Value::object(Self(copy)))
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other
            .as_any()
            .downcast_ref::<Self>()
            .is_some_and(|other| self.0 == other.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// `version.BuildInfo`
struct HelmVersionObject;

impl Object for HelmVersionObject {
    fn type_name(&self) -> &'static str {
        "version.BuildInfo"
    }

    fn kind(&self) -> Kind {
        Kind::Struct
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        HELM.iter()
            .map(|(field, _, value)| (*field, (*value).into()))
            .collect()
    }

    fn json_fields(&self) -> Vec<(&'static str, Value)> {
        HELM.iter()
            .map(|(_, name, value)| (*name, (*value).into()))
            .collect()
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.as_any().is::<Self>()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
