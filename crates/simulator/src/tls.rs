//! The simulator's own certificate authority and server certificate.

use std::net::IpAddr;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::error::Error;

/// A certificate authority, and what a listener needs.
pub(crate) struct Identity {
    /// PEM of the authority's certificate.
    pub(crate) ca_certificate: String,
    pub(crate) server: Arc<ServerConfig>,
}

/// Makes a new authority and a certificate for `address`, `127.0.0.1` and `localhost`.
pub(crate) fn make(address: IpAddr) -> Result<Identity, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Certificate(error.to_string());
    let ca_key = KeyPair::generate().map_err(|error| failed(&error))?;
    let mut ca = CertificateParams::default();
    ca.distinguished_name
        .push(DnType::CommonName, "evenkeel-simulator");
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let ca_certificate = ca.self_signed(&ca_key).map_err(|error| failed(&error))?;
    let issuer = Issuer::new(ca, ca_key);

    let server_key = KeyPair::generate().map_err(|error| failed(&error))?;
    let names = vec!["localhost".to_owned(), "kubernetes.default.svc".to_owned()];
    let mut server = CertificateParams::new(names).map_err(|error| failed(&error))?;
    server
        .distinguished_name
        .push(DnType::CommonName, "kube-apiserver");
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    for ip in [address, IpAddr::from([127, 0, 0, 1])] {
        server.subject_alt_names.push(SanType::IpAddress(ip));
    }
    let certificate = server
        .signed_by(&server_key, &issuer)
        .map_err(|error| failed(&error))?;

    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(server_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .map_err(|error| failed(&error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Identity {
        ca_certificate: ca_certificate.pem(),
        server: Arc::new(config),
    })
}
