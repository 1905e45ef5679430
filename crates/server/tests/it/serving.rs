//! What holds for every request: ids, hosts, headers, probes, time.

use std::time::Duration;

use evenkeel_api::Code;
use evenkeel_server::{Error, Server};
use reqwest::{Method, StatusCode};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::world::{World, component, document};

#[tokio::test]
async fn a_sane_request_id_is_echoed_and_logged() {
    let world = World::idle().await;
    let body = document("c1", &[component("web")]);
    let put = world.request(Method::PUT, "/v2/clusters/c1").json(&body);
    let answer = world.send(put.header("x-request-id", "broker/2026:42")).await;
    assert_eq!(answer.headers["x-request-id"], "broker/2026:42");
    let lines = world.lines_of("broker/2026:42");
    for message in ["accepted", "answered"] {
        assert!(
            lines.iter().any(|line| line["message"] == message),
            "{message}: {lines:?}"
        );
    }
    let path = world
        .request(Method::GET, "/v2/clusters/nobody")
        .header("x-request-id", "r-9");
    assert_eq!(
        world
            .send(path)
            .await
            .problem(Code::NotFound)
            .request_id
            .as_deref(),
        Some("r-9")
    );
}

#[tokio::test]
async fn an_odd_request_id_is_replaced() {
    let world = World::idle().await;
    let long = "x".repeat(129);
    let mut seen = std::collections::BTreeSet::new();
    for odd in ["", "a b", "\"level\":\"error\"", "a\u{e9}", &long] {
        let request = world
            .request(Method::GET, "/v2/clusters")
            .header("x-request-id", odd.as_bytes());
        let answer = world.send(request).await;
        let id = answer.headers["x-request-id"].to_str().unwrap().to_owned();
        assert_eq!(id.len(), 36, "{id}");
        assert!(seen.insert(id), "each has its own");
    }
}

#[tokio::test]
async fn requests_of_other_sites_are_refused() {
    let world = World::idle().await;
    let asked = async |header: &str, value: &str| {
        let request = world.request(Method::GET, "/v2/clusters").header(header, value);
        world.send(request).await
    };
    for (header, value) in [
        ("host", "evil.example"),
        ("host", "localhost.evil.example:8640"),
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("origin", "https://10.0.0.1"),
    ] {
        asked(header, value).await.refuses(Code::Elsewhere, &[value]);
    }
    for (header, value) in [
        ("host", "localhost:1"),
        ("host", "[::1]:1"),
        ("origin", "http://127.0.0.1:8640"),
    ] {
        assert_eq!(
            asked(header, value).await.status,
            StatusCode::OK,
            "{header}: {value}"
        );
    }
    // Nor are other sites told that they may.
    let preflight = world
        .request(Method::OPTIONS, "/v2/clusters")
        .header("origin", "http://localhost:1");
    let answer = world.send(preflight).await;
    assert!(
        !answer.headers.contains_key("access-control-allow-origin"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn answers_are_not_cached_or_guessed() {
    let world = World::idle().await;
    for path in ["/v2/clusters", "/v2/nothing", "/healthz", "/metrics"] {
        let answer = world.get(path).await;
        assert_eq!(answer.headers["cache-control"], "no-store", "{path}");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff", "{path}");
    }
}

#[tokio::test]
async fn probes_and_metrics_answer() {
    let world = World::idle().await;
    for path in ["/healthz", "/readyz"] {
        let answer = world.get(path).await;
        assert_eq!((answer.status, answer.text.as_str()), (StatusCode::OK, "ok\n"));
    }
    let clusters = async |state: &str| {
        let answer = world.get("/metrics").await;
        assert_eq!(
            answer.headers["content-type"],
            evenkeel_fleet::METRICS_CONTENT_TYPE
        );
        let line = format!("clusters{{state=\"{state}\"}} ");
        let value = answer
            .text
            .lines()
            .find_map(|text| Some(text.split_once(&line)?.1.to_owned()));
        value
            .unwrap_or_else(|| panic!("no {line}: {}", answer.text))
            .parse::<f64>()
            .unwrap()
    };
    assert_eq!((clusters("pending").await, clusters("ready").await), (0.0, 0.0));
    world.put_c1(&document("c1", &[])).await.json();
    assert_eq!((clusters("pending").await, clusters("ready").await), (1.0, 0.0));
}

#[tokio::test]
async fn only_loopback_is_listened_on() {
    for address in ["0.0.0.0:0", "192.0.2.1:80", "[::]:0"] {
        let refused = Server::bind(address.parse().unwrap()).await.unwrap_err();
        assert!(matches!(refused, Error::NotLoopback(_)), "{refused}");
        assert!(refused.to_string().contains("127.0.0.1"), "{refused}");
    }
    let first = Server::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let taken = Server::bind(first.address()).await.unwrap_err();
    assert!(
        taken.to_string().contains(&first.address().to_string()),
        "{taken}"
    );
}

#[tokio::test]
async fn a_caller_that_never_finishes_does_not_hold_up_the_end() {
    let mut world = World::idle().await;
    let mut stuck = TcpStream::connect(world.base.trim_start_matches("http://"))
        .await
        .unwrap();
    stuck.write_all(b"PUT /v2/clusters/c1 HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{").await.unwrap();
    // Answered, so the other connection has been accepted too.
    world.get("/healthz").await;
    world.stop.cancel();
    let server = world.server.take().unwrap();
    tokio::time::timeout(Duration::from_secs(20), server.join())
        .await
        .unwrap()
        .unwrap();
}
