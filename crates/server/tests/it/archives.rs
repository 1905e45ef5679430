//! Uploaded charts, used by their digest.

use evenkeel_api::Code;
use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::world::{World, component, document, simulated};

fn packed(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive
            .append_data(&mut header, path, content.as_bytes())
            .unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

#[tokio::test]
async fn an_uploaded_chart_is_used_by_its_digest() {
    // Archives need no source root.
    let world = World::without_root().await;
    world.fleet.start();
    let (simulator, cluster) = simulated("c1").await;
    let chart = packed(&[
        ("up/Chart.yaml", "apiVersion: v2\nname: up\nversion: 1.0.0\n"),
        (
            "up/templates/c.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-uploaded}\n",
        ),
    ]);
    let upload = || world.send(world.request(Method::POST, "/v2/archives").body(chart.clone()));
    let first = upload().await;
    assert_eq!(first.status, StatusCode::CREATED);
    let first = first.json();
    assert_eq!(first["size"], chart.len());
    assert_eq!(first, upload().await.json(), "the same bytes have the same name");

    let mut document = document("c1", &[component("web")]);
    document["kubeconfig"] = json!(cluster.kubeconfig());
    document["components"][0]["source"] = json!({"archive": {"digest": first["digest"]}});
    world.put_c1(&document).await.json();
    world.until_ready("c1").await;
    assert!(
        cluster
            .get("v1", "ConfigMap", "apps", "web-uploaded")
            .unwrap()
            .is_some()
    );
    simulator.stop().await;
}

#[tokio::test]
async fn what_is_no_chart_is_not_kept() {
    let world = World::without_root().await;
    let upload = |body: Vec<u8>| world.send(world.request(Method::POST, "/v2/archives").body(body));
    upload(b"not gzip".to_vec())
        .await
        .names(Code::Source, "archive", "");
    upload(Vec::new()).await.names(Code::Source, "archive", "");
    upload(packed(&[("x/readme", "no chart")]))
        .await
        .names(Code::Source, "archive", "Chart.yaml");
    let whole = packed(&[("up/Chart.yaml", "apiVersion: v2\nname: up\nversion: 1.0.0\n")]);
    upload(whole[..whole.len() / 2].to_vec())
        .await
        .names(Code::Source, "archive", "");
}
