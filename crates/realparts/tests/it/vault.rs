//! Vault, as the operator uses it.

use evenkeel_realparts::{Error, Vault};
use reqwest::Method;
use serde_json::{Value, json};

#[test]
fn it_keeps_secrets_in_versions_and_has_the_kubernetes_login() {
    let vault = Vault::start().unwrap();
    let body = json!({ "data": { "token": "one" } });
    let written = vault.call(Method::POST, "secret/data/a", &body).unwrap();
    assert_eq!(written["data"]["version"], 1);
    let read = vault.call(Method::GET, "secret/data/a", &Value::Null).unwrap();
    assert_eq!(read["data"]["data"], json!({ "token": "one" }));
    let login = json!({ "type": "kubernetes" });
    vault.call(Method::POST, "sys/auth/kubernetes", &login).unwrap();
    let error = vault
        .call(Method::GET, "secret/data/b", &Value::Null)
        .unwrap_err();
    assert!(
        matches!(
            error,
            Error::Refused {
                server: "Vault",
                status: 404,
                ..
            }
        ),
        "{error}"
    );
    assert!(vault.log().is_file());
}
