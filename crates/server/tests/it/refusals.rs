//! Bad input: what, where, and what was expected; nothing is changed by it.

use evenkeel_api::Code;
use evenkeel_core::{ConfigurationVersion, Digest};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::world::{World, component, document};

async fn nothing_was_made(world: &World) {
    let page = world.get("/v2/clusters").await.json();
    assert_eq!(page["items"], json!([]));
}

#[tokio::test]
async fn broken_syntax_is_located() {
    let world = World::idle().await;
    let json = "{\n  \"name\": \"c1\",\n  \"components\": [}\n}";
    let answer = world.put("/v2/clusters/c1", "application/json", json).await;
    answer.refuses(Code::Syntax, &["line 3", "column 18"]);
    let yaml = "name: c1\ncomponents:\n- name: web\n   namespace: apps\n";
    let answer = world.put("/v2/clusters/c1", "application/yaml", yaml).await;
    answer.refuses(Code::Syntax, &["line 4"]);
    let answer = world.put("/v2/clusters/c1", "application/json", "").await;
    answer.refuses(Code::Syntax, &["line 1"]);
    let answer = world
        .put("/v2/clusters/c1", "application/yaml", "# nothing\n")
        .await;
    answer.refuses(Code::Syntax, &["no document"]);
    let two = "name: c1\ncomponents: []\n---\nname: c2\ncomponents: []\n";
    let answer = world.put("/v2/clusters/c1", "text/yaml", two).await;
    answer.refuses(Code::Syntax, &["one document", "line 3"]);
    nothing_was_made(&world).await;
}

#[tokio::test]
async fn wrong_fields_are_named_by_their_path() {
    let world = World::idle().await;
    let with = |change: &dyn Fn(&mut Value)| {
        let mut document = document("c1", &[component("web"), component("api")]);
        change(&mut document);
        document
    };
    type Case = (Value, &'static str, &'static str);
    let cases: Vec<Case> = vec![
        (
            with(&|d| d["componets"] = json!([])),
            "componets",
            "unknown field `componets`",
        ),
        (
            with(&|d| d["components"][1]["chart"] = json!("x")),
            "components[1].chart",
            "unknown field `chart`",
        ),
        (
            with(&|d| d["components"][0]["source"] = json!({"git": {}})),
            "components[0].source",
            "unknown variant `git`",
        ),
        (
            with(&|d| d["components"][0]["source"] = json!({"directory": {"paht": "x"}})),
            "components[0].source.directory",
            "paht",
        ),
        (
            with(&|d| d["components"][0]["namespace"] = json!("Not_A_Label")),
            "components[0].namespace",
            "Not_A_Label",
        ),
        (
            with(&|d| d["components"][0]["values"] = json!([{"inline": [1]}])),
            "components[0].values[0]",
            "map",
        ),
        (
            with(&|d| d["components"][0]["onRemove"] = json!("keep")),
            "components[0].onRemove",
            "expected `delete` or `orphan`",
        ),
        (
            with(&|d| d["components"][0]["timeout"] = json!("soon")),
            "components[0].timeout",
            "30s",
        ),
        (with(&|d| d["components"] = json!({})), "components", "sequence"),
        (
            with(&|d| d["kubeconfig"] = json!({"a": 1})),
            "kubeconfig",
            "as text",
        ),
        (
            with(&|d| d["components"][1]["name"] = json!("web")),
            "components[1].name",
            "listed twice",
        ),
        (
            with(&|d| d["components"][1]["dependsOn"] = json!(["wbe"])),
            "components[1].dependsOn[0]",
            "\"wbe\" is not listed",
        ),
        (with(&|d| d["tenant"] = json!("")), "tenant", "1 to"),
    ];
    for (document, path, part) in cases {
        let answer = world.put_c1(&document).await;
        assert_eq!(answer.status.as_u16(), 422, "{path}: {}", answer.text);
        let problem = answer.problem(Code::Invalid);
        let named = problem
            .errors
            .iter()
            .any(|field| field.path.starts_with(path) && field.message.contains(part));
        assert!(named, "{path} with {part:?} is not named: {:?}", problem.errors);
    }
    let missing = world.put_c1(&json!({"components": []})).await;
    missing.refuses(Code::Invalid, &["missing field `name`"]);
    world
        .put_c1(&json!("text"))
        .await
        .refuses(Code::Invalid, &["expected"]);
    nothing_was_made(&world).await;
}

#[tokio::test]
async fn all_wrong_fields_are_told_at_once() {
    let world = World::idle().await;
    let mut wrong = document("c1", &[component("a"), component("b"), component("b")]);
    wrong["components"][0]["dependsOn"] = json!(["b", "x"]);
    wrong["components"][1]["dependsOn"] = json!(["a"]);
    let problem = world
        .put_c1(&wrong)
        .await
        .refuses(Code::Invalid, &["cycle a → b → a"]);
    let paths: Vec<_> = problem.errors.iter().map(|field| field.path.as_str()).collect();
    assert!(
        paths.contains(&"components[2].name") && paths.contains(&"components[0].dependsOn[1]"),
        "{paths:?}"
    );
    nothing_was_made(&world).await;
}

#[tokio::test]
async fn names_must_agree_and_be_names() {
    let world = World::idle().await;
    let answer = world
        .put(
            "/v2/clusters/c2",
            "application/json",
            document("c1", &[]).to_string(),
        )
        .await;
    answer.refuses(Code::Invalid, &["c1", "c2", "the same"]);
    for path in [
        "/v2/clusters/Not_A_Name",
        "/v2/clusters/c1%2Fx",
        "/v2/clusters/-c",
        "/v2/reconciliations/none",
    ] {
        world.get(path).await.problem(Code::Parameter);
    }
    world
        .get("/v2/clusters/c1/configurations/two")
        .await
        .refuses(Code::Parameter, &["two"]);
    nothing_was_made(&world).await;
}

#[tokio::test]
async fn only_known_content_types_are_read() {
    let world = World::idle().await;
    let body = document("c1", &[]).to_string();
    world
        .put("/v2/clusters/c1", "text/plain", body.clone())
        .await
        .refuses(Code::MediaType, &["text/plain", "application/yaml"]);
    let request = world.request(Method::PUT, "/v2/clusters/c1").body(body);
    world
        .send(request)
        .await
        .refuses(Code::MediaType, &["application/json"]);
    nothing_was_made(&world).await;
}

#[tokio::test]
async fn large_bodies_are_refused() {
    let world = World::idle().await;
    let large = " ".repeat(4 * 1024 * 1024 + 1);
    world
        .put("/v2/clusters/c1", "application/json", large)
        .await
        .problem(Code::TooLarge);
    // Of unknown length, cut off while it is read.
    let chunks = (0..100).map(|_| Ok::<_, std::io::Error>(vec![b' '; 256 * 1024]));
    let body = reqwest::Body::wrap_stream(futures::stream::iter(chunks));
    let request = world
        .request(Method::PUT, "/v2/clusters/c1")
        .header(CONTENT_TYPE, "application/json")
        .body(body);
    match request.send().await {
        Ok(response) => assert_eq!(response.status().as_u16(), 413),
        // The server closes the connection on a caller that goes on sending.
        Err(error) => assert!(error.is_request(), "{error}"),
    }
    let archive = world
        .request(Method::POST, "/v2/archives")
        .body(vec![0; evenkeel_api::ARCHIVE_SIZE_MAX + 1]);
    world.send(archive).await.problem(Code::TooLarge);
}

#[tokio::test]
async fn parameters_are_checked() {
    let world = World::idle().await;
    world.put_c1(&document("c1", &[])).await.json();
    for (path, part) in [
        ("/v2/clusters?state=fine", "fine"),
        ("/v2/clusters?sate=ready", "sate"),
        ("/v2/clusters?limit=many", "limit"),
        ("/v2/clusters?label=prod", "key=value"),
        ("/v2/clusters?component=Web!", "Web!"),
        ("/v2/clusters/c1/status?after=x&wait=long", "long"),
        ("/v2/clusters/c1/status?wiat=3s", "wiat"),
    ] {
        world.get(path).await.refuses(Code::Parameter, &[part]);
    }
    let wrong = world.request(Method::DELETE, "/v2/clusters/c1?mode=erase");
    world
        .send(wrong)
        .await
        .refuses(Code::Parameter, &["erase", "uninstall"]);
    let rollback = world.request(Method::POST, "/v2/clusters/c1/rollback");
    world
        .send(rollback.json(&json!({"to": "one"})))
        .await
        .names(Code::Invalid, "to", "one");
    assert!(
        world.get("/v2/clusters/c1").await.status.is_success(),
        "nothing was deleted"
    );
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let world = World::idle().await;
    for path in [
        "",
        "/status",
        "/configurations",
        "/configurations/1",
        "/reconciliations",
    ] {
        world
            .get(&format!("/v2/clusters/c9{path}"))
            .await
            .refuses(Code::NotFound, &["c9"]);
    }
    for (method, path) in [
        (Method::DELETE, ""),
        (Method::POST, "/reconcile"),
        (Method::POST, "/confirm-identity"),
    ] {
        let request = world.request(method, &format!("/v2/clusters/c9{path}"));
        world.send(request).await.refuses(Code::NotFound, &["c9"]);
    }
    let run = "c9--00000000-0000-7000-8000-000000000001";
    world
        .get(&format!("/v2/reconciliations/{run}"))
        .await
        .refuses(Code::NotFound, &[run]);
    world.put_c1(&document("c1", &[])).await.json();
    world
        .get("/v2/clusters/c1/configurations/7")
        .await
        .problem(Code::NotFound);
    let rollback = world.request(Method::POST, "/v2/clusters/c1/rollback");
    world
        .send(rollback.json(&json!({"to": 7})))
        .await
        .refuses(Code::Conflict, &["c1", "7", "no such version"]);
    let rollback = world.request(Method::POST, "/v2/clusters/c1/rollback");
    world
        .send(rollback.json(&json!({"to": ConfigurationVersion(1)})))
        .await
        .refuses(Code::Conflict, &["newest"]);
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems_too() {
    let world = World::idle().await;
    for path in [
        "/",
        "/v2",
        "/v2/cluster",
        "/v2/clusters/",
        "/v3/clusters",
        "/v2/clusters/c1/logs",
    ] {
        world.get(path).await.refuses(Code::Route, &[path]);
    }
    let answer = world.send(world.request(Method::PATCH, "/v2/clusters/c1")).await;
    answer.refuses(Code::Method, &["PATCH", "/v2/clusters/c1"]);
    let allowed = answer.headers["allow"].to_str().unwrap();
    assert!(
        ["GET", "PUT", "DELETE"]
            .iter()
            .all(|method| allowed.contains(method)),
        "{allowed}"
    );
    world
        .send(world.request(Method::DELETE, "/v2/archives"))
        .await
        .problem(Code::Method);
}

#[tokio::test]
async fn kubeconfigs_that_reach_out_are_refused() {
    let world = World::idle().await;
    let kubeconfig = |cluster: &str, user: &str| {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:1', {cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
        )
    };
    let refused = [
        (
            kubeconfig(
                "",
                "exec: {command: aws, apiVersion: client.authentication.k8s.io/v1}",
            ),
            "users[0].user.exec",
        ),
        (
            kubeconfig("certificate-authority: /etc/ca.crt", "token: t"),
            "clusters[0].cluster.certificate-authority",
        ),
        (
            kubeconfig("", "client-certificate: /a, client-key-data: aa"),
            "users[0].user.client-certificate",
        ),
        (kubeconfig("", "tokenFile: /var/token"), "users[0].user.tokenFile"),
        (
            kubeconfig("", "auth-provider: {name: gcp}"),
            "users[0].user.auth-provider",
        ),
    ];
    world.put_c1(&document("c1", &[])).await.json();
    for (kubeconfig, field) in refused {
        let answer = world
            .put(
                "/v2/clusters/c1/kubeconfig",
                "application/yaml",
                kubeconfig.clone(),
            )
            .await;
        answer.refuses(Code::Kubeconfig, &[field]);
        let mut document = document("c1", &[component("web")]);
        document["kubeconfig"] = json!(kubeconfig);
        world.put_c1(&document).await.refuses(Code::Kubeconfig, &[field]);
    }
    world
        .put("/v2/clusters/c1/kubeconfig", "application/yaml", "{")
        .await
        .problem(Code::Kubeconfig);
    world
        .put("/v2/clusters/c1/kubeconfig", "application/yaml", "")
        .await
        .problem(Code::Kubeconfig);
    let binary = world
        .request(Method::PUT, "/v2/clusters/c1/kubeconfig")
        .body(vec![0xff, 0xfe]);
    world.send(binary).await.refuses(Code::Syntax, &["UTF-8"]);
    let got = world.get("/v2/clusters/c1").await.json();
    assert_eq!(
        (&got["hasKubeconfig"], &got["version"]),
        (&json!(false), &json!(1))
    );
}

#[tokio::test]
async fn sources_must_be_ours_to_read() {
    let world = World::idle().await;
    let directory = |path: &str| {
        let mut document = document("c1", &[component("web"), component("api")]);
        document["components"][1]["source"] = json!({"directory": {"path": path}});
        document
    };
    let outside = world.folder.path().join("outside");
    crate::world::write_chart(&outside);
    std::os::unix::fs::symlink(&outside, world.folder.path().join("root/link")).unwrap();
    for path in [
        "../outside",
        "/etc",
        "plain/../../outside",
        "link",
        "missing",
        "plain/Chart.yaml",
    ] {
        let answer = world.put_c1(&directory(path)).await;
        answer.names(Code::Source, "components[1].source.directory", "");
    }
    let digest = Digest::of("nothing like it");
    let mut unknown = document("c1", &[component("web")]);
    unknown["components"][0]["source"] = json!({"archive": {"digest": digest}});
    world
        .put_c1(&unknown)
        .await
        .refuses(Code::Source, &["web", &digest.to_string(), "upload"]);
    unknown["components"][0]["source"] = json!({"archive": {"digest": "sha256:12"}});
    world.put_c1(&unknown).await.refuses(
        Code::Invalid,
        &["components[0].source.archive.digest", "64 hexadecimal"],
    );
    nothing_was_made(&world).await;

    let closed = World::without_root().await;
    let answer = closed.put_c1(&directory("plain")).await;
    answer.names(Code::Source, "components[0].source.directory", "--source-root");
    answer.names(Code::Source, "components[1].source.directory", "--source-root");
}
