//! Reads `data/resources.txt`, the built-in resources.
//!
//! One line each, written by `data/generate.py`; `-` stands for nothing:
//!
//! ```text
//! version GROUP VERSION
//! resource PLURAL SINGULAR KIND SCOPE VERBS SHORTNAMES CATEGORIES STORAGEVERSIONHASH
//! sub NAME GROUP/VERSION/KIND VERBS
//! ```

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::{Group, Resource, ResourceId, Subresource, Version};
use crate::schema::Schema;

const RESOURCES: &str = include_str!("../../data/resources.txt");
/// Ids from here on belong to custom resources.
pub(crate) const FIRST_CUSTOM_ID: u32 = 10_000;

/// The built-in resources, in discovery order.
#[derive(Debug)]
pub(crate) struct Builtin {
    pub(super) resources: Vec<Arc<Resource>>,
    pub(super) groups: Vec<Group>,
    index: HashMap<String, HashMap<String, usize>>,
    ids: HashMap<ResourceId, usize>,
}

impl Builtin {
    pub(super) fn load() -> Arc<Self> {
        static BUILTIN: LazyLock<Arc<Builtin>> = LazyLock::new(|| Arc::new(parse(RESOURCES)));
        BUILTIN.clone()
    }

    pub(super) fn find(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources.get(*self.index.get(group)?.get(plural)?)
    }

    pub(super) fn by_id(&self, id: ResourceId) -> Option<&Arc<Resource>> {
        self.resources.get(*self.ids.get(&id)?)
    }
}

fn words(text: &str) -> Vec<String> {
    if text == "-" {
        Vec::new()
    } else {
        text.split(',').map(str::to_owned).collect()
    }
}

fn optional(text: &str) -> Option<String> {
    (text != "-").then(|| text.to_owned())
}

fn parse(table: &str) -> Builtin {
    let schema = Schema::builtin();
    let mut groups: Vec<Group> = Vec::new();
    let mut resources: Vec<Resource> = Vec::new();
    let (mut group, mut version) = ("", "");
    // Positions of the resource and version of the last resource line.
    let mut last: Option<(usize, usize)> = None;
    for line in table.lines() {
        let parts: Vec<&str> = line.split(' ').collect();
        match parts.as_slice() {
            ["version", name, number] => {
                (group, version) = (if *name == "core" { "" } else { name }, number);
                match groups.iter_mut().find(|known| known.name == group) {
                    Some(known) => known.versions.push(version.to_owned()),
                    None => groups.push(Group {
                        name: group.to_owned(),
                        versions: vec![version.to_owned()],
                    }),
                }
            }
            [
                "resource",
                plural,
                singular,
                kind,
                scope,
                verbs,
                short_names,
                categories,
                hash,
            ] => {
                let entry = Version {
                    name: version.to_owned(),
                    served: true,
                    verbs: words(verbs),
                    storage_hash: optional(hash).unwrap_or_default(),
                    subresources: Vec::new(),
                    schema: schema.clone(),
                    ty: schema.kind(group, version, kind),
                    custom: None,
                };
                let known = resources
                    .iter_mut()
                    .enumerate()
                    .find(|(_, r)| r.group == group && r.plural == *plural);
                if let Some((position, known)) = known {
                    last = Some((position, known.versions.len()));
                    known.versions.push(entry);
                    continue;
                }
                last = Some((resources.len(), 0));
                // Both event groups show the same objects.
                let shared = resources
                    .iter()
                    .find(|known| group == "events.k8s.io" && known.plural == *plural);
                let id = shared
                    .map(|known| known.id)
                    .unwrap_or_else(|| ResourceId(u32::try_from(resources.len()).unwrap_or(0)));
                resources.push(Resource {
                    id,
                    group: group.to_owned(),
                    plural: (*plural).to_owned(),
                    singular: optional(singular).unwrap_or_default(),
                    kind: (*kind).to_owned(),
                    list_kind: format!("{kind}List"),
                    namespaced: *scope == "Namespaced",
                    short_names: words(short_names),
                    categories: words(categories),
                    versions: vec![entry],
                    storage: 0,
                });
            }
            ["sub", name, kind, verbs] => {
                let mut gvk = kind.splitn(3, '/');
                let (sub_group, sub_version) = (gvk.next().and_then(optional), gvk.next().and_then(optional));
                let subresource = Subresource {
                    name: (*name).to_owned(),
                    group: sub_group,
                    version: sub_version,
                    kind: gvk.next().unwrap_or_default().to_owned(),
                    verbs: words(verbs),
                };
                if let Some(entry) = last.and_then(|(r, v)| resources.get_mut(r)?.versions.get_mut(v)) {
                    entry.subresources.push(subresource);
                }
            }
            _ => {}
        }
    }
    let resources: Vec<Arc<Resource>> = resources.into_iter().map(Arc::new).collect();
    let mut index: HashMap<String, HashMap<String, usize>> = HashMap::new();
    let mut ids = HashMap::new();
    for (position, resource) in resources.iter().enumerate() {
        index
            .entry(resource.group.clone())
            .or_default()
            .insert(resource.plural.clone(), position);
        ids.entry(resource.id).or_insert(position);
    }
    Builtin {
        resources,
        groups,
        index,
        ids,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_whole() {
        let builtin = Builtin::load();
        assert_eq!(builtin.groups.len(), 22, "groups");
        let lines = RESOURCES
            .lines()
            .filter(|line| line.starts_with("resource "))
            .count();
        let versions: usize = builtin
            .resources
            .iter()
            .map(|resource| resource.versions.len())
            .sum();
        assert_eq!(versions, lines);
        let subs = RESOURCES.lines().filter(|line| line.starts_with("sub ")).count();
        let all = builtin.resources.iter().flat_map(|resource| &resource.versions);
        assert_eq!(all.map(|version| version.subresources.len()).sum::<usize>(), subs);
    }

    #[test]
    fn every_stored_kind_has_a_type() {
        for resource in &Builtin::load().resources {
            for version in resource
                .versions
                .iter()
                .filter(|version| version.verbs.iter().any(|verb| verb == "list"))
            {
                assert!(version.ty.is_some(), "{} {}", resource.plural, version.name);
            }
        }
    }

    #[test]
    fn scale_belongs_to_autoscaling() {
        let builtin = Builtin::load();
        let deployments = builtin.find("apps", "deployments").unwrap();
        let scale = deployments.versions[0].subresource("scale").unwrap();
        assert_eq!(
            (scale.group.as_deref(), scale.version.as_deref()),
            (Some("autoscaling"), Some("v1"))
        );
        assert!(deployments.has_status() && deployments.has_generation());
    }

    #[test]
    fn autoscalers_prefer_version_two() {
        let builtin = Builtin::load();
        let autoscalers = builtin.find("autoscaling", "horizontalpodautoscalers").unwrap();
        let names: Vec<&str> = autoscalers
            .versions
            .iter()
            .map(|version| version.name.as_str())
            .collect();
        assert_eq!(names, ["v2", "v1"]);
    }
}
