//! The OpenAPI document: what it says is what is served.

use serde_json::{Value, json};

use super::site::{Site, send};

fn document() -> Value {
    let text = include_str!("../../../../../openapi/lieutenant.json");
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn every_path_and_method_of_the_document_is_served_and_no_other() {
    let site = Site::new("document").await;
    let served = site
        .call_as(None, "GET", "/openapi.json")
        .await
        .assert(200)
        .json();
    assert_eq!(served, document());
    let docs = site.call_as(None, "GET", "/docs").await;
    assert!(docs.assert(200).text.contains("/openapi.json"));
    for (path, item) in document()["paths"].as_object().unwrap() {
        let real = path.replace("{id}", "t-none");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let operation = item.get(method.to_lowercase());
            let answer = send(&site.router, method, &real, None, None).await;
            let is_served =
                answer.status != 405 && answer.text != r#"{"reason":"no matching operation was found"}"#;
            assert_eq!(is_served, operation.is_some(), "{method} {path}: {answer:?}");
            let is_open = operation.is_some_and(|operation| operation.get("security") == Some(&json!([])));
            assert_eq!(
                answer.status == 401,
                operation.is_some() && !is_open,
                "{method} {path}: {answer:?}"
            );
        }
    }
}

/// The recorded answers, and those that ours give, are what the document says.
#[test]
fn recorded_answers_are_what_the_document_says() {
    let calls: Vec<Value> = serde_json::from_str(include_str!("../../data/lieutenant/calls.json")).unwrap();
    let mut checked = 0;
    for call in &calls {
        let path = call["path"].as_str().unwrap().split('?').next().unwrap();
        let id = |path: &str| {
            let parts: Vec<&str> = path.split('/').collect();
            match parts.as_slice() {
                ["", kind @ ("tenants" | "clusters"), _] => format!("/{kind}/{{id}}"),
                ["", kind @ ("tenants" | "clusters"), _, rest] => format!("/{kind}/{{id}}/{rest}"),
                _ => path.to_owned(),
            }
        };
        let method = call["method"].as_str().unwrap().to_lowercase();
        let status = call["status"].as_u64().unwrap();
        let document = document();
        let response = &document["paths"][id(path)][&method]["responses"][status.to_string()];
        let schema = match response["content"].get("application/json") {
            Some(content) => content["schema"].clone(),
            None if status >= 400 => json!({"$ref": "#/components/schemas/Reason"}),
            None => continue,
        };
        let mut root = document.clone();
        root.as_object_mut()
            .unwrap()
            .insert("allOf".to_owned(), json!([schema]));
        let validator = jsonschema::validator_for(&root).unwrap();
        let answer = &call["answer"];
        let errors: Vec<String> = validator
            .iter_errors(answer)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{}: {errors:?}", call["name"]);
        checked += 1;
    }
    assert!(checked > 35, "{checked}");
}
