//! Sources that must be signed: nothing unsigned comes through, and what is refused is told with file, key and cause.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use evenkeel_core::{Digest, SourceRef};
use evenkeel_source::{Entry, Error, Scope, Signatures};
use serde_json::json;

use crate::host::{Answer, Asked, Host};
use crate::world::{World, chart, oci};

const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";
/// The key that signed `ed25519.prov`.
const KEY: &str = "3BF3849CF313D634";

fn data(path: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/provenance");
    fs::read(folder.join(path)).unwrap()
}

fn signed() -> Vec<u8> {
    data("signed-1.0.0.tgz")
}

/// A repository of `signed` in two versions; the second one is the first by another name, as an attacker would offer it.
/// Signatures lie beside archives if there are any.
fn repository(signature: Option<&'static str>) -> impl Fn(&Asked) -> Answer + Send + Sync + 'static {
    move |asked| match asked.path.rsplit('/').next().unwrap_or_default() {
        "index.yaml" => Answer::ok(
            "apiVersion: v1\nentries:\n  signed:\n  - {name: signed, version: 1.0.0, urls: [signed-1.0.0.tgz]}\n\
             \x20 - {name: signed, version: 2.0.0, urls: [signed-1.0.0.tgz]}\n",
        ),
        "signed-1.0.0.tgz" => Answer::ok(signed()),
        "signed-1.0.0.tgz.prov" => match signature {
            Some(name) => Answer::ok(data(&format!("signatures/{name}.prov"))),
            None => Answer::status(404),
        },
        _ => Answer::status(404),
    }
}

fn source(host: &Host, version: &str) -> SourceRef {
    SourceRef::Repository {
        repository: host.url("/charts").parse().unwrap(),
        chart: "signed".parse().unwrap(),
        version: Some(version.parse().unwrap()),
    }
}

/// The rules of a test, with keys in `team.asc`.
struct Rules(tempfile::TempDir);

impl Rules {
    fn new(host: &Host, unlisted: &str, keys: &str) -> Self {
        let rules = Self(tempfile::tempdir().unwrap());
        rules.trust(keys);
        let text = format!(
            "unlisted: {unlisted}\nsigned:\n- url: http://{}/\n  keyring: team.asc\n",
            host.address
        );
        fs::write(rules.0.path().join("signatures.yaml"), text).unwrap();
        rules
    }

    fn trust(&self, keys: &str) {
        fs::write(self.0.path().join("team.asc"), data(&format!("keys/{keys}.asc"))).unwrap();
    }

    fn open(&self) -> Arc<Signatures> {
        Arc::new(Signatures::open(self.0.path().join("signatures.yaml")).unwrap())
    }

    fn world(&self) -> World {
        World::new().signed(self.open())
    }
}

fn refusal(error: &Error) -> String {
    assert!(!error.is_transient(), "{error}");
    error.to_string()
}

#[tokio::test]
async fn a_signed_chart_is_used_and_asks_for_its_signature_once() {
    let host = Host::start(repository(Some("ed25519")));
    let rules = Rules::new(&host, "refused", "ed25519");
    let world = rules.world();
    let source = source(&host, "1.0.0");
    assert_eq!(world.version(&source).await.unwrap(), "1.0.0");
    assert_eq!(host.count(".prov"), 1);
    host.forget();
    world.chart(&source).await.unwrap();
    assert!(host.asked().is_empty());
    // Another process finds the signature where it finds the archive, also while the host is down.
    host.now(|_| Answer::status(503));
    let other = world.again().signed(rules.open());
    assert_eq!(other.version(&source).await.unwrap(), "1.0.0");
    assert_eq!(host.count(".prov"), 0);
}

#[tokio::test]
async fn what_is_not_signed_by_these_keys_is_refused_with_file_key_and_cause() {
    for (signature, keys, words) in [
        (None, "ed25519", vec!["cannot be obtained", "404"]),
        (
            Some("ed25519"),
            "rsa",
            vec!["signature made by unknown entity", KEY],
        ),
        (
            Some("revoked"),
            "revoked",
            vec!["signature made by revoked key", "signed by key"],
        ),
        (Some("expired"), "expired", vec!["key expired", "signed by key"]),
    ] {
        let host = Host::start(repository(signature));
        let rules = Rules::new(&host, "refused", keys);
        let world = rules.world();
        let error = world.chart(&source(&host, "1.0.0")).await.unwrap_err();
        let text = refusal(&error);
        let place = host.url("/charts/signed-1.0.0.tgz.prov");
        for word in
            words
                .into_iter()
                .chain([place.as_str(), "team.asc", "chart \"signed\" version \"1.0.0\""])
        {
            assert!(text.contains(word), "{signature:?}: {word:?} is not in: {text}");
        }
    }
}

/// An archive that was signed once must not pass for another version.
#[tokio::test]
async fn an_older_version_does_not_pass_for_a_newer_one() {
    let host = Host::start(repository(Some("ed25519")));
    let world = Rules::new(&host, "refused", "ed25519").world();
    assert_eq!(world.version(&source(&host, "1.0.0")).await.unwrap(), "1.0.0");
    let text = refusal(&world.chart(&source(&host, "2.0.0")).await.unwrap_err());
    assert!(
        text.contains("provenance does not contain a SHA for a file named \"signed-2.0.0.tgz\""),
        "{text}"
    );
}

#[tokio::test]
async fn a_chart_in_use_is_refused_once_its_key_is_no_longer_trusted() {
    let host = Host::start(repository(Some("ed25519")));
    let rules = Rules::new(&host, "refused", "ed25519");
    let world = rules.world();
    let source = source(&host, "1.0.0");
    world.chart(&source).await.unwrap();
    rules.trust("rsa");
    let text = refusal(&world.chart(&source).await.unwrap_err());
    assert!(text.contains(KEY), "{text}");
    // Signed anew by the other key: the signature that is known is not the last word.
    host.now(repository(Some("rsa")));
    assert_eq!(world.version(&source).await.unwrap(), "1.0.0");
    // A keyring that has become unreadable changes nothing.
    fs::remove_file(rules.0.path().join("team.asc")).unwrap();
    assert_eq!(world.version(&source).await.unwrap(), "1.0.0");
}

#[tokio::test]
async fn a_host_that_is_down_is_asked_again_later() {
    let up = repository(Some("ed25519"));
    let host = Host::start(move |asked| match asked.path.ends_with(".prov") {
        true => Answer::status(503),
        false => up(asked),
    });
    let world = Rules::new(&host, "refused", "ed25519").world();
    let error = world.chart(&source(&host, "1.0.0")).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    host.now(repository(Some("ed25519")));
    assert_eq!(world.version(&source(&host, "1.0.0")).await.unwrap(), "1.0.0");
}

#[tokio::test]
async fn what_nobody_signs_for_is_used_or_refused_as_the_rules_say() {
    let host = Host::start(repository(None));
    let other = Host::start(repository(None));
    let unlisted = source(&other, "1.0.0");
    let archive = SourceRef::Archive {
        digest: Digest::of("archive"),
    };
    let world = Rules::new(&host, "allowed", "ed25519").world();
    assert_eq!(world.version(&unlisted).await.unwrap(), "1.0.0");
    assert!(world.sources.check(&archive).is_ok());
    let world = Rules::new(&host, "refused", "ed25519").world();
    other.forget();
    for source in [&unlisted, &archive] {
        for error in [
            world.sources.check(source).unwrap_err(),
            world.chart(source).await.unwrap_err(),
            world.sources.content(source, None).await.unwrap_err(),
        ] {
            let text = refusal(&error);
            assert!(text.contains("allows only what is signed"), "{text}");
        }
    }
    assert!(
        other.asked().is_empty(),
        "nothing is asked for what is refused anyway"
    );
}

/// A registry of `signed`, with a signature in a layer if there is one; the tag `2.0.0` is the first version again.
fn registry(signature: Option<&'static str>) -> impl Fn(&Asked) -> Answer + Send + Sync + 'static {
    move |asked| {
        let archive = signed();
        let provenance = signature.map(|name| data(&format!("signatures/{name}.prov")));
        let layer = |kind: &str, content: &[u8]| json!({"mediaType": kind, "digest": Digest::of(content).to_string(), "size": content.len()});
        let mut layers = vec![layer(CONTENT, &archive)];
        layers.extend(provenance.as_ref().map(|text| layer(PROVENANCE, text)));
        let manifest = json!({
            "schemaVersion": 2,
            "config": {"mediaType": CONFIG, "digest": Digest::of("{}").to_string(), "size": 2},
            "layers": layers,
        })
        .to_string();
        let digest = Digest::of(&manifest).to_string();
        let name = asked.path.rsplit('/').next().unwrap_or_default();
        if asked.path.contains("/manifests/") && (["1.0.0", "2.0.0"].contains(&name) || name == digest) {
            return Answer::ok(manifest).header("docker-content-digest", digest);
        }
        if asked.path.ends_with("/tags/list") {
            return Answer::ok(json!({"name": "charts/signed", "tags": ["1.0.0", "2.0.0"]}).to_string());
        }
        let blobs = [Some(archive), provenance];
        let found = blobs
            .into_iter()
            .flatten()
            .find(|blob| name == Digest::of(blob).to_string());
        found.map_or_else(|| Answer::status(404), Answer::ok)
    }
}

#[tokio::test]
async fn signatures_of_registries_are_layers_of_their_charts() {
    let plain = |host: &Host| {
        vec![Entry {
            plain_http: true,
            ..Entry::new(Scope::Host {
                host: "127.0.0.1".to_owned(),
                port: Some(host.address.port()),
            })
        }]
    };
    let host = Host::start(registry(Some("ed25519")));
    let rules = Rules::new(&host, "refused", "ed25519");
    let world = World::with(plain(&host)).signed(rules.open());
    let reference = format!("oci://{}/charts/signed", host.address);
    assert_eq!(
        world.version(&oci(&reference, Some("1.0.0"))).await.unwrap(),
        "1.0.0"
    );
    let text = refusal(&world.chart(&oci(&reference, Some("2.0.0"))).await.unwrap_err());
    assert!(
        text.contains("signed-2.0.0.tgz") && text.contains(":2.0.0.prov"),
        "{text}"
    );

    let host = Host::start(registry(None));
    let world = World::with(plain(&host)).signed(Rules::new(&host, "refused", "ed25519").open());
    let reference = format!("oci://{}/charts/signed", host.address);
    let text = refusal(&world.chart(&oci(&reference, Some("1.0.0"))).await.unwrap_err());
    assert!(text.contains("no layer with a signature"), "{text}");
}

/// Archives without any rule come through as before.
#[tokio::test]
async fn without_rules_nothing_is_asked_for() {
    let host = Host::start(|asked| match asked.path.rsplit('/').next().unwrap_or_default() {
        "index.yaml" => Answer::ok(crate::world::index(&["1.0.0"])),
        _ => Answer::ok(chart("web", "1.0.0")),
    });
    let source = crate::world::repository(&host.url(""), None);
    assert_eq!(World::new().version(&source).await.unwrap(), "1.0.0");
    assert_eq!(host.count(".prov"), 0);
}
