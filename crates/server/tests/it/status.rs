//! Waiting for a status to change.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::{World, component, document};

#[tokio::test]
async fn a_held_call_answers_at_a_change() {
    let world = World::idle().await;
    world.put_c1(&document("c1", &[component("web")])).await.json();
    let revision = world.get("/v2/clusters/c1/status").await.json()["revision"].take();
    let revision = revision.as_str().unwrap();
    // Another revision than the known one is answered at once, whatever the wait.
    let answer = world
        .get("/v2/clusters/c1/status?after=other&wait=30s")
        .await
        .json();
    assert_eq!(answer["revision"], revision);

    let path = format!("/v2/clusters/c1/status?after={revision}&wait=30s");
    let started = Instant::now();
    let held = world.get(&path);
    let change = async {
        // Begun after the call is on its way; the change wakes it however the two interleave.
        tokio::task::yield_now().await;
        world
            .put_c1(&document("c1", &[component("web"), component("api")]))
            .await
            .json()
    };
    let (answer, changed) = tokio::join!(held, change);
    assert_eq!(
        (&answer.json()["version"], &changed["version"]),
        (&json!(2), &json!(2))
    );
    assert!(started.elapsed() < Duration::from_secs(20), "it was not woken");
}

#[tokio::test]
async fn a_held_call_answers_after_its_wait() {
    let world = World::idle().await;
    world.put_c1(&document("c1", &[component("web")])).await.json();
    let known = world.get("/v2/clusters/c1/status").await.json();
    let revision = known["revision"].as_str().unwrap();
    let started = Instant::now();
    let answer = world
        .get(&format!("/v2/clusters/c1/status?after={revision}&wait=300ms"))
        .await
        .json();
    assert_eq!(answer["revision"], revision);
    let took = started.elapsed();
    assert!(
        took >= Duration::from_millis(300) && took < Duration::from_secs(10),
        "{took:?}"
    );
}

#[tokio::test]
async fn held_calls_end_with_the_server() {
    let mut world = World::idle().await;
    world.put_c1(&document("c1", &[component("web")])).await.json();
    let known = world.get("/v2/clusters/c1/status").await.json();
    let revision = known["revision"].as_str().unwrap();
    let mut held = TcpStream::connect(world.base.trim_start_matches("http://"))
        .await
        .unwrap();
    let call = format!(
        "GET /v2/clusters/c1/status?after={revision}&wait=30s HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    );
    held.write_all(call.as_bytes()).await.unwrap();
    // Answered, so what came before it has been received too.
    world.get("/healthz").await;
    let started = Instant::now();
    world.stop.cancel();
    world.server.take().unwrap().join().await.unwrap();
    let mut answer = String::new();
    held.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains(revision),
        "{answer}"
    );
    assert!(
        started.elapsed() < Duration::from_secs(4),
        "it was cut off, not answered"
    );
}
