//! OCI registries: tokens, pages of tags, digests.

use std::sync::Arc;

use evenkeel_core::Digest;
use evenkeel_source::{Entry, Scope, Secret};
use serde_json::json;

use crate::host::{Answer, Asked, Host};
use crate::world::{World, chart, entry, oci};

const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
/// `me:hunter2`.
const BASIC: &str = "Basic bWU6aHVudGVyMg==";

fn manifest(version: &str) -> Vec<u8> {
    let archive = chart("web", version);
    json!({
        "schemaVersion": 2,
        "config": {"mediaType": CONFIG, "digest": Digest::of("{}").to_string(), "size": 2},
        "layers": [{"mediaType": CONTENT, "digest": Digest::of(&archive).to_string(), "size": archive.len()}],
    })
    .to_string()
    .into_bytes()
}

/// A registry with some versions of `charts/web`, two tags a page.
fn registry(versions: &'static [&'static str]) -> impl Fn(&Asked) -> Answer + Send + Sync + 'static {
    move |asked| {
        let Some(rest) = asked.path.strip_prefix("/v2/charts/web/") else {
            return Answer::status(404);
        };
        if let Some(query) = rest.strip_prefix("tags/list") {
            let last = query
                .split(['?', '&'])
                .find_map(|part| part.strip_prefix("last="));
            let tags: Vec<_> = versions.iter().map(|version| version.replace('+', "_")).collect();
            let from = last.map_or(0, |last| tags.iter().position(|tag| tag == last).unwrap() + 1);
            let page: Vec<_> = tags.iter().skip(from).take(2).cloned().collect();
            let answer = Answer::ok(json!({"name": "charts/web", "tags": page}).to_string());
            return match page.last().filter(|_| from + 2 < tags.len()) {
                Some(last) => answer.header(
                    "link",
                    format!("</v2/charts/web/tags/list?n=2&last={last}>; rel=\"next\""),
                ),
                None => answer,
            };
        }
        for version in versions {
            let (manifest, archive) = (manifest(version), chart("web", version));
            let digest = Digest::of(&manifest).to_string();
            let names = [version.replace('+', "_"), digest.clone()];
            if rest
                .strip_prefix("manifests/")
                .is_some_and(|name| names.iter().any(|own| own == name))
            {
                return Answer::ok(manifest).header("docker-content-digest", digest);
            }
            if rest == format!("blobs/{}", Digest::of(&archive)) {
                return Answer::ok(archive);
            }
        }
        Answer::status(404)
    }
}

/// Who we are at a registry that speaks without TLS.
fn plain(host: &Host, secret: Option<Secret>) -> Entry {
    Entry {
        secret,
        plain_http: true,
        ..Entry::new(Scope::Host {
            host: "127.0.0.1".to_owned(),
            port: Some(host.address.port()),
        })
    }
}

fn me(host: &Host) -> Entry {
    let Entry { secret, .. } = entry(&host.url("/"), "me", "hunter2");
    plain(host, secret)
}

fn reference(host: &Host) -> String {
    format!("oci://{}/charts/web", host.address)
}

/// Public case SRC-01, at a registry.
#[tokio::test]
async fn tags_ranges_and_digests() {
    let host = Host::start(registry(&[
        "1.2.3+up4.5.6",
        "latest",
        "1.2.4+up4.5.6",
        "2.0.0-rc.1",
        "v3.0.0",
    ]));
    let world = World::with(vec![plain(&host, None)]);
    let pinned = Digest::of(manifest("1.2.3+up4.5.6")).to_string();
    for (wanted, version) in [
        (Some("1.2.3+up4.5.6"), "1.2.3+up4.5.6"),
        (Some("1.2.x"), "1.2.4+up4.5.6"),
        (Some(">=1.2.0"), "1.2.4+up4.5.6"),
        (None, "1.2.4+up4.5.6"),
        (Some("1.2.3_up4.5.6"), "1.2.3+up4.5.6"),
        (Some("1.2"), "1.2.4+up4.5.6"),
        (Some(">0-0"), "2.0.0-rc.1"),
        (Some("v3.0.0"), "v3.0.0"),
        (Some(pinned.as_str()), "1.2.3+up4.5.6"),
    ] {
        let found = world.version(&oci(&reference(&host), wanted)).await.unwrap();
        assert_eq!(found, version, "{wanted:?}");
    }
    assert!(host.count("last=") >= 2, "there are three pages of tags");
    let error = world
        .version(&oci(&reference(&host), Some("9.9.9")))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("2.0.0-rc.1, 1.2.4+up4.5.6") && !error.is_transient(),
        "{error}"
    );
}

#[tokio::test]
async fn a_tag_that_has_not_moved_costs_one_head() {
    let host = Host::start(registry(&["1.0.0"]));
    let world = World::with(vec![plain(&host, None)]);
    let source = oci(&reference(&host), Some("1.0.0"));
    let first = world.chart(&source).await.unwrap();
    world.later();
    host.forget();
    assert!(Arc::ptr_eq(&first, &world.chart(&source).await.unwrap()));
    let asked: Vec<_> = host.asked().into_iter().map(|asked| asked.method).collect();
    assert_eq!(asked, ["HEAD"]);
    // What is named by its digest never moves.
    let pinned = oci(
        &reference(&host),
        Some(&Digest::of(manifest("1.0.0")).to_string()),
    );
    world.chart(&pinned).await.unwrap();
    world.later();
    host.forget();
    world.chart(&pinned).await.unwrap();
    assert!(host.asked().is_empty());
}

#[tokio::test]
async fn name_and_password_by_basic() {
    let charts = registry(&["1.0.0"]);
    let host = Host::start(move |asked| match asked.header("authorization") {
        Some(BASIC) => charts(asked),
        _ => Answer::status(401).header("www-authenticate", "Basic realm=\"charts\""),
    });
    let world = World::with(vec![me(&host)]);
    assert_eq!(
        world.version(&oci(&reference(&host), None)).await.unwrap(),
        "1.0.0"
    );
    let refused = host
        .asked()
        .iter()
        .filter(|asked| asked.header("authorization").is_none())
        .count();
    assert_eq!(refused, 1, "it is asked for once");
    let error = World::with(vec![plain(&host, None)])
        .version(&oci(&reference(&host), None))
        .await
        .unwrap_err();
    assert!(
        error.is_forbidden() && error.to_string().contains(&host.address.to_string()),
        "{error}"
    );
}

/// A token service, and a registry that believes it.
fn with_tokens() -> (Host, Host) {
    let service = Host::start(|asked| {
        let by_password = asked.header("authorization") == Some(BASIC)
            && asked.path.contains("service=charts.example")
            && asked.path.contains("scope=repository%3Acharts%2Fweb%3Apull");
        let by_token = asked.method == "POST" && asked.body.contains("refresh_token=long-lived");
        if by_password || by_token {
            Answer::ok(json!({"token": "t0ken", "expires_in": 300}).to_string())
        } else {
            Answer::status(401)
        }
    });
    let realm = service.other_url("/token");
    let charts = registry(&["1.0.0"]);
    let blobs = Host::start(registry(&["1.0.0"]));
    let registry = Host::start(move |asked| {
        if asked.header("authorization") != Some("Bearer t0ken") {
            let challenge = format!(
                "Bearer realm=\"{realm}\",service=\"charts.example\",scope=\"repository:charts/web:pull\""
            );
            return Answer::status(401).header("www-authenticate", challenge);
        }
        if asked.path.contains("/blobs/") {
            return Answer::redirect(blobs.url(&asked.path));
        }
        charts(asked)
    });
    (service, registry)
}

#[tokio::test]
async fn tokens_are_got_by_password_or_by_a_long_lived_one_and_kept() {
    for secret in [None, Some(Secret::IdentityToken("long-lived".to_owned().into()))] {
        let (service, host) = with_tokens();
        let entry = secret.map_or_else(|| me(&host), |secret| plain(&host, Some(secret)));
        let world = World::with(vec![entry]);
        for version in [None, Some("1.0.0"), Some("1.x")] {
            assert_eq!(
                world.version(&oci(&reference(&host), version)).await.unwrap(),
                "1.0.0"
            );
        }
        assert_eq!(service.asked().len(), 1, "one token is enough");
    }
    let (_, host) = with_tokens();
    let given = plain(&host, Some(Secret::RegistryToken("t0ken".to_owned().into())));
    assert_eq!(
        World::with(vec![given])
            .version(&oci(&reference(&host), None))
            .await
            .unwrap(),
        "1.0.0"
    );
    let (_, host) = with_tokens();
    let error = World::with(vec![plain(&host, None)])
        .version(&oci(&reference(&host), None))
        .await
        .unwrap_err();
    assert!(error.is_forbidden(), "{error}");
}

#[tokio::test]
async fn a_blob_on_another_host_is_asked_for_without_the_token() {
    let blobs = Host::start(registry(&["1.0.0"]));
    let target = blobs.clone();
    let charts = registry(&["1.0.0"]);
    let host = Host::start(move |asked| {
        if asked.header("authorization") != Some(BASIC) {
            return Answer::status(401).header("www-authenticate", "Basic");
        }
        if asked.path.contains("/blobs/") {
            return Answer::redirect(target.url(&asked.path));
        }
        charts(asked)
    });
    World::with(vec![me(&host)])
        .version(&oci(&reference(&host), None))
        .await
        .unwrap();
    let asked = blobs.asked();
    assert_eq!((asked.len(), asked[0].header("authorization")), (1, None));
}

#[tokio::test]
async fn a_program_that_keeps_credentials_is_not_run() {
    let host = Host::start(|_| Answer::status(401).header("www-authenticate", "Basic"));
    let helper = Secret::Helper {
        program: "docker-credential-pass".to_owned(),
        file: "/home/me/config.json".into(),
    };
    let error = World::with(vec![plain(&host, Some(helper.clone()))])
        .version(&oci(&reference(&host), None))
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("docker-credential-pass") && text.contains("config.json"),
        "{text}"
    );
    // A public chart needs nobody's credentials.
    host.now(registry(&["1.0.0"]));
    let world = World::with(vec![plain(&host, Some(helper))]);
    assert_eq!(
        world.version(&oci(&reference(&host), None)).await.unwrap(),
        "1.0.0"
    );
}

#[tokio::test]
async fn what_does_not_have_its_digest_is_refused() {
    let good = registry(&["1.0.0"]);
    for (part, body) in [
        ("/manifests/", manifest("6.6.6")),
        ("/blobs/", chart("web", "6.6.6")),
    ] {
        let host = Host::start(registry(&["1.0.0"]));
        let wrong = body.clone();
        let inner = registry(&["1.0.0"]);
        host.now(move |asked| {
            let answer = inner(asked);
            if asked.path.contains(part) {
                return Answer {
                    body: wrong.clone(),
                    ..answer
                };
            }
            answer
        });
        let pinned = Digest::of(manifest("1.0.0")).to_string();
        for version in [None, Some(pinned.as_str())] {
            let error = World::with(vec![plain(&host, None)])
                .version(&oci(&reference(&host), version))
                .await
                .unwrap_err();
            assert!(error.to_string().contains("was promised"), "{part}: {error}");
        }
    }
    drop(good);
}

#[tokio::test]
async fn other_artifacts_and_missing_repositories_are_named() {
    let image = json!({"config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": "x"}, "layers": []});
    let host = Host::start(move |asked| {
        if asked.path.contains("/manifests/") {
            Answer::ok(image.to_string())
        } else {
            Answer::status(404)
        }
    });
    let world = World::with(vec![plain(&host, None)]);
    let error = world
        .version(&oci(&reference(&host), Some("1.0.0")))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("it is no Helm chart"), "{error}");
    let error = world.version(&oci(&reference(&host), None)).await.unwrap_err();
    assert!(
        !error.is_transient() && error.to_string().contains("/v2/charts/web/tags/list"),
        "{error}"
    );
}

#[tokio::test]
async fn pages_of_tags_end_and_stay_on_the_host() {
    let host = Host::start(|asked| {
        Answer::ok(r#"{"tags": ["1.0.0"]}"#).header("link", format!("<{}>; rel=\"next\"", asked.path))
    });
    let world = World::with(vec![plain(&host, None)]);
    let error = world.version(&oci(&reference(&host), None)).await.unwrap_err();
    assert!(error.to_string().contains("pages of tags"), "{error}");
    assert_eq!(host.asked().len(), 200);
    host.now(|_| Answer::ok(r#"{"tags": []}"#).header("link", "<http://localhost:1/x>; rel=next"));
    let error = World::with(vec![plain(&host, None)])
        .version(&oci(&reference(&host), None))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("another host"), "{error}");
}
