//! What cannot be carried out is refused with a reason, and changes nothing.

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};

use super::site::{Site, exchange, send};

const REPOSITORY: &str = "ssh://git@git.example.org/a/one.git";

async fn send_text(site: &Site, method: &str, path: &str, media_type: &str, text: &str) -> (u16, String) {
    let body = Some((media_type, text.to_owned()));
    let answer = send(&site.router, method, path, Some(&site.token), body).await;
    (answer.status.as_u16(), answer.reason())
}

#[tokio::test]
async fn bodies_that_are_not_understood_are_refused_with_the_place() {
    let site = Site::new("bodies").await;
    site.seed_tenant("t-one", json!({"gitRepoURL": REPOSITORY})).await;
    let json = "application/json";
    let merge = "application/merge-patch+json";
    let repository = format!("\"gitRepo\": {{\"url\": \"{REPOSITORY}\"}}");
    let deep = format!("{}1{}", "{\"a\":".repeat(500), "}".repeat(500));
    for (method, path, media_type, body, expected) in [
        ("POST", "/tenants", json, "", "value is required but missing"),
        ("POST", "/tenants", json, "{", "failed to decode request body"),
        ("POST", "/tenants", json, "[]", "value must be an object"),
        ("POST", "/tenants", json, "null", "value must be an object"),
        ("POST", "/tenants", json, &deep, "failed to decode request body"),
        (
            "POST",
            "/tenants",
            "text/plain",
            "{}",
            "header Content-Type has unexpected value \"text/plain\"",
        ),
        (
            "POST",
            "/tenants",
            "",
            "{}",
            "header Content-Type has unexpected value \"\"",
        ),
        (
            "PATCH",
            "/tenants/t-one",
            json,
            "{}",
            "header Content-Type has unexpected value",
        ),
        (
            "PATCH",
            "/tenants/t-one",
            merge,
            "",
            "value is required but missing",
        ),
        ("PATCH", "/tenants/t-one", merge, "7", "value must be an object"),
        (
            "PATCH",
            "/tenants/t-one",
            merge,
            "{\"id\": \"t-two\"}",
            "an id cannot be changed",
        ),
        (
            "PATCH",
            "/tenants/t-one",
            merge,
            "{\"nonsense\": 1}",
            "unknown field `nonsense`",
        ),
        (
            "PATCH",
            "/tenants/t-one",
            merge,
            "{\"gitRepo\": {\"url\": null}}",
            "GitRepo URL is required",
        ),
        (
            "PATCH",
            "/tenants/t-one",
            merge,
            "{\"gitRepo\": {\"deployKey\": \"a b\"}}",
            "belong to clusters",
        ),
        (
            "PATCH",
            "/tenants/t-one",
            merge,
            "{\"gitRepo\": {\"type\": \"managed\"}}",
            "/gitRepo/type",
        ),
        (
            "POST",
            "/tenants",
            json,
            "{\"displayName\": 7}",
            "Error at \"/displayName\"",
        ),
        (
            "POST",
            "/tenants",
            json,
            "{\"annotations\": {\"a\": 7}}",
            "Error at \"/annotations/a\"",
        ),
        (
            "POST",
            "/tenants",
            json,
            &format!("{{\"id\": \"A B\", {repository}}}"),
            "the id 't-A B' cannot be used",
        ),
        (
            "POST",
            "/tenants",
            json,
            &format!("{{\"id\": \"../x\", {repository}}}"),
            "cannot be used",
        ),
        (
            "POST",
            "/clusters",
            json,
            "{\"tenant\": \"../t-one\"}",
            "'../t-one' is no id",
        ),
        ("POST", "/clusters", json, "{\"tenant\": \"\"}", "'' is no id"),
        (
            "POST",
            "/clusters",
            json,
            "{\"tenant\": null}",
            "property \"tenant\" is missing",
        ),
        (
            "POST",
            "/clusters",
            json,
            "{\"tenant\": \"t-one\", \"facts\": {\"a\": true}}",
            "/facts/a",
        ),
        (
            "POST",
            "/clusters",
            json,
            "{\"tenant\": \"t-one\", \"dynamicFacts\": 1}",
            "/dynamicFacts",
        ),
        (
            "POST",
            "/clusters",
            json,
            "{\"tenant\": \"t-one\", \"gitRepo\": {\"deployKey\": \"x\"}}",
            "Illegal deploy key",
        ),
        (
            "POST",
            "/clusters",
            json,
            "{\"tenant\": \"t-one\", \"compileMeta\": {\"x\": 1}}",
            "there is no such member",
        ),
        (
            "POST",
            "/clusters",
            json,
            "{\"tenant\": \"t-one\", \"compileMeta\": {\"lastCompile\": \"x\"}}",
            "/lastCompile",
        ),
        (
            "PUT",
            "/clusters/plain",
            json,
            "{\"tenant\": \"t-one\"}",
            "the id 'plain' cannot be used",
        ),
        (
            "PUT",
            "/clusters/c-..%2Fx",
            json,
            "{\"tenant\": \"t-one\"}",
            "cannot be used",
        ),
        (
            "POST",
            "/install/steward.json",
            json,
            "{\"tokn\": \"x\"}",
            "unknown field",
        ),
        (
            "POST",
            "/install/steward.json",
            json,
            "{}",
            "Missing or malformed token",
        ),
    ] {
        let (status, reason) = match media_type {
            "" => {
                let request = Request::builder()
                    .method(method)
                    .uri(path)
                    .header(header::AUTHORIZATION, format!("Bearer {}", site.token));
                let answer = exchange(&site.router, request.body(Body::from(body.to_owned())).unwrap()).await;
                (answer.status.as_u16(), answer.reason())
            }
            media_type => send_text(&site, method, path, media_type, body).await,
        };
        assert_eq!(status, 400, "{method} {path} {body}: {reason}");
        assert!(reason.contains(expected), "{method} {path} {body}: {reason}");
    }
    assert_eq!(
        site.call("GET", "/clusters", None).await.assert(200).json(),
        json!([])
    );
    let tenants = site.call("GET", "/tenants/", None).await.assert(200).json();
    assert_eq!(tenants, json!([{"id": "t-one", "gitRepo": {"url": REPOSITORY}}]));
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let site = Site::new("large").await;
    let body = json!({"displayName": "x".repeat(1024 * 1024)}).to_string();
    let (status, reason) = send_text(&site, "POST", "/tenants", "application/json", &body).await;
    assert_eq!(status, 413, "{reason}");
    assert!(reason.contains("larger than 1048576 bytes"), "{reason}");
    // Also one that does not say how large it is.
    let chunks = futures::stream::iter((0..64).map(|_| Ok::<_, std::io::Error>(vec![b' '; 64 * 1024])));
    let request = Request::post("/tenants")
        .header(header::AUTHORIZATION, format!("Bearer {}", site.token))
        .header(header::CONTENT_TYPE, "application/json");
    let answer = exchange(&site.router, request.body(Body::from_stream(chunks)).unwrap()).await;
    answer.assert(413);
}

#[tokio::test]
async fn names_reach_no_other_path_of_the_server() {
    let site = Site::new("names").await;
    for name in [
        "..%2Fsecrets",
        "c-a%2Fstatus",
        "c-a%3Fx=y",
        "%2e%2e",
        "A",
        &"a".repeat(300),
    ] {
        for method in ["GET", "DELETE"] {
            let answer = site.call(method, &format!("/clusters/{name}"), None).await;
            answer.assert(404);
            assert!(answer.reason().ends_with("not found"), "{}", answer.reason());
        }
        let answer = site
            .call("PATCH", &format!("/tenants/{name}"), Some(json!({})))
            .await;
        answer.assert(404);
    }
    site.call("GET", "/clusters/%ff", None).await.assert(400);
}

/// B30, and that what our own rights could do is open to nobody.
#[tokio::test]
async fn b30_a_caller_without_a_usable_token_is_asked_for_one() {
    let site = Site::new("b30").await;
    let token = site.token.clone();
    let attempt = async |values: Vec<String>| {
        let mut request = Request::get("/tenants");
        for value in &values {
            request = request.header(header::AUTHORIZATION, value);
        }
        let answer = exchange(&site.router, request.body(Body::empty()).unwrap()).await;
        let asked = answer.headers.get(header::WWW_AUTHENTICATE).cloned();
        assert_eq!(asked.is_some(), answer.status == 401, "{values:?}");
        answer.status.as_u16()
    };
    for scheme in ["Bearer", "bearer", "BEARER"] {
        assert_eq!(attempt(vec![format!("{scheme} {token}")]).await, 200, "{scheme}");
    }
    for odd in [
        "",
        "Bearer",
        "Bearer ",
        "Basic dTpw",
        "Token x",
        "Bearer a b",
        "Bearer \u{1}",
        &token,
    ] {
        let value = odd.to_owned();
        if axum::http::HeaderValue::from_str(odd).is_ok() {
            assert_eq!(attempt(vec![value]).await, 401, "{odd}");
        }
    }
    let two = vec![format!("Bearer {token}"), "Bearer other".to_owned()];
    assert_eq!(attempt(two).await, 401);
    for (method, path) in [
        ("POST", "/tenants"),
        ("GET", "/inventory"),
        ("PUT", "/clusters/c-a"),
        ("DELETE", "/tenants/t-a"),
    ] {
        let answer = send(&site.router, method, path, None, None).await;
        answer.assert(401);
        let answer = send(&site.router, method, path, Some("garbage"), None).await;
        assert!(
            [400, 401, 501].contains(&answer.status.as_u16()),
            "{method} {path}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn whether_a_tenant_exists_is_told_only_to_whom_may_make_a_cluster() {
    let site = Site::new("tenants").await;
    let nobody = site.caller("nobody", json!([])).await;
    let rules = json!([{"apiGroups": ["syn.tools"], "resources": ["clusters"], "verbs": ["create"]}]);
    let maker = site.caller("maker", rules).await;
    site.seed_tenant("t-one", json!({})).await;
    let make = async |token: &str, tenant: &str| {
        let body = json!({"id": format!("c-{tenant}"), "tenant": tenant}).to_string();
        let body = Some(("application/json", body));
        send(&site.router, "POST", "/clusters", Some(token), body).await
    };
    let (there, missing) = (make(&nobody, "t-one").await, make(&nobody, "t-two").await);
    assert_eq!(there.assert(403).reason(), missing.assert(403).reason());
    make("garbage", "t-two").await.assert(401);
    make(&maker, "t-one").await.assert(201);
    let answer = make(&maker, "t-two").await;
    assert!(answer.assert(400).reason().contains("'t-two' does not exist"));
    assert_eq!(site.call("GET", "/clusters/c-t-two", None).await.status, 404);
}

#[tokio::test]
async fn what_the_server_refuses_is_passed_on() {
    let site = Site::new("passed").await;
    site.seed_tenant("t-one", json!({})).await;
    let cluster = |tenant: &str| json!({"id": "c-one", "tenant": tenant});
    site.call("POST", "/clusters", Some(cluster("t-one")))
        .await
        .assert(201);
    let answer = site.call("PUT", "/clusters/c-one", Some(cluster("t-two"))).await;
    answer.assert(422);
    assert!(
        answer
            .reason()
            .contains("the tenant of a cluster cannot be changed"),
        "{}",
        answer.reason()
    );
    let answer = site
        .call("PATCH", "/clusters/c-one", Some(json!({"tenant": "t-two"})))
        .await;
    answer.assert(400);
    // Lists can be had by tenant also before any label is there.
    let of = async |tenant: &str| -> Value {
        let path = format!("/clusters?tenant={tenant}&other=x");
        site.call("GET", &path, None).await.assert(200).json()
    };
    assert_eq!(of("t-one").await[0]["id"], "c-one");
    assert_eq!(of("t-two").await, json!([]));
    for (method, allowed) in [("DELETE", "GET"), ("PATCH", "POST")] {
        let answer = site.call(method, "/clusters", Some(json!({}))).await;
        let allow = answer.assert(405).headers["allow"].to_str().unwrap().to_owned();
        assert!(allow.contains(allowed), "{allow}");
    }
}
