//! Connections to PostgreSQL over TLS: what `sslmode` promises is kept.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_inventory::{Clusters as _, OpenOptions, PostgresOptions, PutCluster, SqlStore};
use evenkeel_realparts::Postgres;
use evenkeel_telemetry::SystemClock;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::fixture::*;

/// How long a start tries to connect.
const SOON: Duration = Duration::from_secs(5);

/// An authority that nobody knows.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server whose certificate is for that name.
fn server_for(name: &str, authority: &CertifiedIssuer<'static, KeyPair>) -> Postgres {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    Postgres::start_encrypted(&certificate.pem(), &key.serialize_pem()).unwrap()
}

/// Opens it as a mothership with these parameters in the URL does, and uses it.
async fn used(server: &Postgres, keys: &Path, parameters: &str) -> Result<(), String> {
    let mut options: PostgresOptions = format!("{}?{parameters}", server.url()).parse().unwrap();
    options.acquire_timeout = SOON;
    let options = OpenOptions::postgres(options, keys);
    // A message has no secret to hide here, and names the server.
    let store = SqlStore::open(options, Arc::new(SystemClock))
        .await
        .map_err(|error| error.to_string())?;
    store
        .put_cluster(PutCluster::new(spec("c1", &["web"])))
        .await
        .unwrap();
    Ok(())
}

#[tokio::test]
async fn the_servers_certificate_is_checked_as_asked() {
    let known = authority();
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    let file = |name: &str, authority: &CertifiedIssuer<'static, KeyPair>| {
        let path = folder.path().join(name);
        std::fs::write(&path, authority.pem()).unwrap();
        path.display().to_string()
    };
    let (known_file, other_file) = (file("known.pem", &known), file("other.pem", &authority()));
    let by = |mode: &str, root: &str| format!("sslmode={mode}&sslrootcert={root}");

    let server = server_for("127.0.0.1", &known);
    used(&server, &keys, &by("verify-full", &known_file))
        .await
        .unwrap();
    used(&server, &keys, "sslmode=require").await.unwrap();
    for (parameters, expected) in [
        ("sslmode=disable".to_owned(), "no encryption"),
        (by("verify-full", &other_file), "certificate"),
        (by("verify-ca", &other_file), "certificate"),
    ] {
        let error = used(&server, &keys, &parameters).await.unwrap_err();
        assert!(error.contains(expected), "{parameters}: {error}");
    }

    let elsewhere = server_for("db.example", &known);
    used(&elsewhere, &keys, &by("verify-ca", &known_file))
        .await
        .unwrap();
    let error = used(&elsewhere, &keys, &by("verify-full", &known_file))
        .await
        .unwrap_err();
    assert!(error.contains("certificate"), "{error}");
}
