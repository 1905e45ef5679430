//! TLS to a target cluster: a small session cache, and a server certificate that is itself given as the CA.

use std::sync::Arc;

use kube::Config;
use kube::client::ConfigExt as _;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::Error;

/// TLS sessions kept for resumption; a client speaks to one server.
const SESSIONS_KEPT: usize = 2;

/// The TLS settings of `config`.
pub(super) fn client_config(config: &Config) -> Result<ClientConfig, Error> {
    // Fails only when another part of the process has chosen a provider already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let failed = |reason: String| Error::Kubeconfig {
        field: "(certificates)".to_owned(),
        reason,
    };
    let mut tls = config.rustls_client_config().map_err(|error| match error {
        kube::Error::Auth(_) => super::client::credentials_failed(),
        other => failed(format!(
            "the certificates or the key cannot be used: {}",
            kind_of(&other)
        )),
    })?;
    if let Some(given) = config.root_cert.as_ref().filter(|_| !config.accept_invalid_certs) {
        let given: Vec<CertificateDer<'static>> = given.iter().cloned().map(CertificateDer::from).collect();
        let mut roots = RootCertStore::empty();
        for certificate in &given {
            roots.add(certificate.clone()).map_err(|error| {
                failed(format!(
                    "certificate-authority-data holds no usable certificate: {error}"
                ))
            })?;
        }
        let web_pki = WebPkiServerVerifier::builder(Arc::new(roots))
            .build()
            .map_err(|error| failed(format!("certificate-authority-data cannot be used: {error}")))?;
        tls.dangerous()
            .set_certificate_verifier(Arc::new(GivenCertificates { given, web_pki }));
    }
    tls.resumption = Resumption::in_memory_sessions(SESSIONS_KEPT);
    Ok(tls)
}

fn kind_of(error: &kube::Error) -> &'static str {
    match error {
        kube::Error::RustlsTls(kube::client::RustlsTlsError::InvalidPrivateKey(_)) => {
            "the private key does not fit"
        }
        kube::Error::RustlsTls(kube::client::RustlsTlsError::MissingPrivateKey) => "there is no private key",
        kube::Error::RustlsTls(kube::client::RustlsTlsError::MissingCertificate) => {
            "there is no client certificate"
        }
        kube::Error::RustlsTls(kube::client::RustlsTlsError::InvalidIdentityPem(_)) => "they are no PEM",
        kube::Error::RustlsTls(kube::client::RustlsTlsError::AddRootCertificate(_)) => {
            "a CA certificate is malformed"
        }
        _ => "they are malformed",
    }
}

/// Verifies as usual, and accepts besides a server whose very certificate is among those given as CA, as Go's clients
/// (and so kubectl) do. Name and validity still count.
#[derive(Debug)]
struct GivenCertificates {
    given: Vec<CertificateDer<'static>>,
    web_pki: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for GivenCertificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verdict =
            self.web_pki
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match &verdict {
            // webpki looks at the validity before it looks for an issuer, so these errors mean a certificate that is
            // in date: of an issuer that was not given, or of a CA that serves itself.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature | CertificateError::Other(_),
            )) if self.given.iter().any(|given| given == end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            _ => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.web_pki.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.web_pki.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.web_pki.supported_verify_schemes()
    }
}
