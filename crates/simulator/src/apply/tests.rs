use serde_json::json;

use super::typed;
use crate::schema::Schema;

#[test]
fn merged_lists_follow_the_configuration_where_items_are_shared() {
    let schema = Schema::builtin();
    let pod = schema.kind("", "v1", "Pod").unwrap();
    let pod_of = |names: &[&str]| {
        let containers: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"spec": {"containers": containers}})
    };
    for (live, config, expected) in [
        (&["a", "b"][..], &["b", "a"][..], &["b", "a"][..]),
        (&["a", "b"], &["c"], &["a", "b", "c"]),
        (&["a", "b", "c"], &["c", "x"], &["a", "b", "c", "x"]),
        (&["a", "b", "c"], &["x", "a"], &["x", "a", "b", "c"]),
        (&["b"], &["a", "b", "c"], &["a", "b", "c"]),
    ] {
        let merged = typed::merge(&schema, pod.into(), Some(&pod_of(live)), Some(&pod_of(config)));
        assert_eq!(merged, Some(pod_of(expected)), "{live:?} with {config:?}");
    }
}

#[test]
fn removal_takes_emptied_parents_along() {
    use super::field_set::FieldSet;
    let schema = Schema::builtin();
    let map = schema.kind("", "v1", "ConfigMap").unwrap();
    let value = json!({"metadata": {"name": "a", "labels": {"x": "1"}}, "data": {"a": "1"}});
    let gone = FieldSet::of_fields(&["metadata.labels.x", "data.a"]).with_named_fields(&schema, map.into());
    assert!(gone.contains(&[super::path::PathElement::field("data")]));
    assert_eq!(typed::remove_items(&schema, map.into(), &value, &gone), None);
    let gone = FieldSet::of_fields(&["data.a"]);
    let left = typed::remove_items(&schema, map.into(), &value, &gone);
    assert_eq!(
        left,
        Some(json!({"metadata": {"name": "a", "labels": {"x": "1"}}, "data": null}))
    );
}
