//! A certificate authority per cluster, for its server and its clients.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use crate::Error;

/// Names and addresses by which the API server may be called: ours, and those that Pods would use.
const SERVER_NAMES: [&str; 5] = [
    "127.0.0.1",
    "localhost",
    "10.0.0.1",
    "kubernetes.default.svc",
    "kubernetes",
];

/// Signs the certificates of one cluster, so that one cluster's credentials are refused by the others.
#[derive(Debug)]
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its private key, both PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(cluster: &str) -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, format!("{cluster} authority"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        Ok(Self { issuer })
    }

    /// The authority's own certificate.
    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub(crate) fn server(&self) -> Result<Identity, Error> {
        let names: Vec<String> = SERVER_NAMES.map(str::to_owned).to_vec();
        let params = CertificateParams::new(names)?;
        self.issue(
            params,
            "kube-apiserver",
            None,
            ExtendedKeyUsagePurpose::ServerAuth,
        )
    }

    /// Kubernetes takes the common name for the user and the organisation for the group.
    pub(crate) fn client(&self, user: &str, group: Option<&str>) -> Result<Identity, Error> {
        self.issue(
            CertificateParams::default(),
            user,
            group,
            ExtendedKeyUsagePurpose::ClientAuth,
        )
    }

    fn issue(
        &self,
        mut params: CertificateParams,
        name: &str,
        organisation: Option<&str>,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<Identity, Error> {
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        if let Some(organisation) = organisation {
            params
                .distinguished_name
                .push(DnType::OrganizationName, organisation);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

/// A key pair with which service account tokens are signed: private and public key, both PEM.
pub(crate) fn signing_key() -> Result<(String, String), Error> {
    let key = KeyPair::generate()?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}
