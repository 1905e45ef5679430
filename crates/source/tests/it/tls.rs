//! Private certificate authorities and client certificates.

use std::sync::Arc;

use evenkeel_source::{Entry, Scope, Tls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::host::{Answer, Host};
use crate::world::{World, chart, index, repository};

/// A certificate authority with a folder for its files.
struct Authority {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { folder, issuer }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Certificate and key, in PEM, for `127.0.0.1`.
    fn issue(&self, usage: ExtendedKeyUsagePurpose) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn server(&self, wants_certificate: bool) -> Arc<ServerConfig> {
        let (certificate, key) = self.issue(ExtendedKeyUsagePurpose::ServerAuth);
        let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let builder = ServerConfig::builder();
        let builder = if wants_certificate {
            let mut roots = RootCertStore::empty();
            roots.add(self.issuer.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        Arc::new(builder.with_single_cert(chain, key).unwrap())
    }

    fn host(&self, wants_certificate: bool) -> Host {
        Host::start_with(Some(self.server(wants_certificate)), |asked| {
            if asked.path.ends_with("index.yaml") {
                Answer::ok(index(&["1.0.0"]))
            } else {
                Answer::ok(chart("web", "1.0.0"))
            }
        })
    }
}

async fn version(host: &Host, tls: Tls) -> Result<String, evenkeel_source::Error> {
    let entry = Entry {
        tls,
        ..Entry::new(Scope::Below(host.url("/").parse().unwrap()))
    };
    World::with(vec![entry])
        .version(&repository(&host.url(""), None))
        .await
}

#[tokio::test]
async fn a_private_authority_has_to_be_given() {
    let authority = Authority::new();
    let host = authority.host(false);
    let error = version(&host, Tls::default()).await.unwrap_err();
    assert!(error.to_string().contains("caFile"), "{error}");
    let own = Tls {
        ca_file: Some(authority.path("ca.pem")),
        ..Tls::default()
    };
    assert_eq!(version(&host, own).await.unwrap(), "1.0.0");
    let stranger = Tls {
        ca_file: Some(Authority::new().path("ca.pem")),
        ..Tls::default()
    };
    // The folder of that authority is gone, which is said with the file's name.
    let error = version(&host, stranger).await.unwrap_err();
    assert!(error.to_string().contains("ca.pem"), "{error}");
    let other = Authority::new();
    let stranger = Tls {
        ca_file: Some(other.path("ca.pem")),
        ..Tls::default()
    };
    assert!(version(&host, stranger).await.is_err());
    let insecure = Tls {
        insecure: true,
        ..Tls::default()
    };
    assert_eq!(version(&host, insecure).await.unwrap(), "1.0.0");
}

#[tokio::test]
async fn a_client_certificate_is_shown() {
    let authority = Authority::new();
    let host = authority.host(true);
    let (certificate, key) = authority.issue(ExtendedKeyUsagePurpose::ClientAuth);
    std::fs::write(authority.path("tls.crt"), certificate).unwrap();
    std::fs::write(authority.path("tls.key"), &key).unwrap();
    let nobody = Tls {
        ca_file: Some(authority.path("ca.pem")),
        ..Tls::default()
    };
    assert!(version(&host, nobody.clone()).await.is_err());
    let me = Tls {
        cert_file: Some(authority.path("tls.crt")),
        key_file: Some(authority.path("tls.key")),
        ..nobody
    };
    assert_eq!(version(&host, me.clone()).await.unwrap(), "1.0.0");
    std::fs::write(authority.path("tls.key"), "no key").unwrap();
    let error = version(&host, me).await.unwrap_err().to_string();
    assert!(error.contains("tls.crt") && !error.contains(&key), "{error}");
}
