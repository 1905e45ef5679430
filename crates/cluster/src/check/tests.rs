//! What metadata alone tells.

use serde_json::json;

use super::*;
use crate::fingerprint::Fingerprint;

fn entry() -> RecordedObject {
    let fields = json!({"f:data": {"f:a": {}}});
    RecordedObject {
        group: String::new(),
        kind: "ConfigMap".into(),
        namespace: Some("shop".into()),
        name: "c".into(),
        uid: "u".into(),
        content: None,
        fixed: None,
        owned: Some(Fingerprint::of(&fields)),
        resource_version: "7".into(),
        kept: false,
        done: false,
    }
}

fn live(uid: &str, version: &str, fields: &Value) -> LiveObject {
    let body = json!({"metadata": {"name": "c", "namespace": "shop", "uid": uid, "resourceVersion": version, "managedFields": [
        {"manager": "evenkeel", "operation": "Apply", "fieldsV1": fields},
    ]}});
    LiveObject::read(body.to_string().as_bytes(), "test").expect("read")
}

#[test]
fn metadata_tells_what_differs() {
    let fields = json!({"f:data": {"f:a": {}}});
    let found = |live: Option<&LiveObject>| differs(&entry(), live);
    assert_eq!(
        found(Some(&live("u", "7", &json!({})))),
        None,
        "an equal version needs no other look"
    );
    assert_eq!(
        found(Some(&live("u", "8", &fields))),
        None,
        "what others own is not drift"
    );
    assert_eq!(
        found(Some(&live("u", "8", &json!({})))),
        Some(Difference::Changed(entry().object()))
    );
    assert_eq!(
        found(Some(&live("v", "8", &fields))),
        Some(Difference::Replaced(entry().object()))
    );
    assert_eq!(found(None), Some(Difference::Missing(entry().object())));
    let kept = RecordedObject {
        kept: true,
        ..entry()
    };
    assert_eq!(differs(&kept, None), None, "what is only kept may go");
    let done = RecordedObject {
        done: true,
        ..entry()
    };
    assert_eq!(
        differs(&done, None),
        None,
        "a Job that removed itself is not run again"
    );
}
