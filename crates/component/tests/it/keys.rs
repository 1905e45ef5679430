//! Charts that make keys and certificates, with the system's randomness. That the engine writes what Helm writes is
//! tested with the engine; here the keys are real, and signatures must hold.

use std::collections::HashMap;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ECDSA_P521_SHA512_ASN1, ED25519,
    RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey, VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evenkeel_chart::{
    Capabilities, Chart, Instant, KeyMaker as _, PrintOptions, PrivateKey, RandomSource, Release,
    RenderOptions, Rendered, render,
};
use evenkeel_component::SystemKeys;
use serde::Deserialize;
use x509_parser::asn1_rs::Any;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// 2027-01-15T08:00:00Z
const NOW: i64 = 1_800_000_000;
const DAY: i64 = 86_400;

struct SystemRandom;

impl RandomSource for SystemRandom {
    fn fill(&mut self, buffer: &mut [u8]) {
        aws_lc_rs::rand::fill(buffer).unwrap();
    }
}

fn try_run(template: &str) -> Result<Rendered, evenkeel_chart::Error> {
    let values = serde_json::from_str::<serde_json::Value>(include_str!("../data/keys.json")).unwrap();
    let chart = Chart::from_files([
        (
            "Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 1.0.0\n".to_owned(),
        ),
        ("values.yaml", format!("keys: {values}\n")),
        ("templates/a.yaml", template.to_owned()),
    ])
    .unwrap();
    let now = Instant {
        seconds: NOW,
        nanos: 0,
    };
    let mut options = RenderOptions::new(now, Box::new(SystemRandom));
    options.keys = Some(Box::new(SystemKeys));
    render(
        &chart,
        &evenkeel_goyaml::Value::Null,
        &Release::install("r", "ns"),
        &Capabilities::default(),
        options,
    )
}

/// The one document of a chart with this template, as data.
fn run<T: for<'de> Deserialize<'de>>(template: &str) -> T {
    let rendered = try_run(template).unwrap();
    let text = String::from_utf8(rendered.print(&PrintOptions::default())).unwrap();
    let json = text.split_once("a.yaml\n").unwrap().1;
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Pair {
    cert: String,
    key: String,
}

fn bytes_of(pem: &str) -> Vec<u8> {
    let lines = pem.lines().filter(|line| !line.starts_with("-----"));
    STANDARD.decode(lines.collect::<String>()).unwrap()
}

/// Checks a certificate's signature.
fn verify(certificate: &str, signer: &str) {
    let (der, signer) = (bytes_of(certificate), bytes_of(signer));
    let certificate = X509Certificate::from_der(&der).unwrap().1;
    let signer = X509Certificate::from_der(&signer).unwrap().1;
    let algorithm: &'static dyn VerificationAlgorithm =
        match certificate.signature_algorithm.algorithm.to_id_string().as_str() {
            "1.2.840.113549.1.1.11" => &RSA_PKCS1_2048_8192_SHA256,
            "1.2.840.10045.4.3.2" => &ECDSA_P256_SHA256_ASN1,
            "1.2.840.10045.4.3.3" => &ECDSA_P384_SHA384_ASN1,
            "1.2.840.10045.4.3.4" => &ECDSA_P521_SHA512_ASN1,
            "1.3.101.112" => &ED25519,
            other => panic!("{other}"),
        };
    UnparsedPublicKey::new(algorithm, &*signer.public_key().subject_public_key.data)
        .verify(
            certificate.tbs_certificate.as_ref(),
            &certificate.signature_value.data,
        )
        .unwrap();
    assert_eq!(
        certificate.issuer().as_raw(),
        signer.subject().as_raw(),
        "the issuer is the signer"
    );
}

#[test]
fn a_chart_makes_its_own_authority_and_certificate() {
    let pairs: HashMap<String, Pair> = run(r#"
{{- $ca := genCA "my-ca" 3650 }}
{{- dict "ca" $ca "web" (genSignedCert "web" (list "10.0.0.1" "::1") (list "web" "web.ns.svc") 30 $ca) | toJson }}
"#);
    let (ca, web) = (&pairs["ca"], &pairs["web"]);
    verify(&ca.cert, &ca.cert);
    verify(&web.cert, &ca.cert);

    let der = bytes_of(&web.cert);
    let certificate = X509Certificate::from_der(&der).unwrap().1;
    assert_eq!(certificate.subject().to_string(), "CN=web");
    assert_eq!(certificate.issuer().to_string(), "CN=my-ca");
    assert_eq!(certificate.validity().not_before.timestamp(), NOW);
    assert_eq!(certificate.validity().not_after.timestamp(), NOW + 30 * DAY);
    assert!(!certificate.is_ca());
    let names = certificate.subject_alternative_name().unwrap().unwrap();
    assert_eq!(names.value.general_names.len(), 4);
    let usage = certificate.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.server_auth && usage.client_auth);

    let public = SystemKeys
        .public_key(&PrivateKey::Rsa(bytes_of(&web.key)))
        .unwrap();
    assert_eq!(*certificate.public_key().subject_public_key.data, *public);
    let der = bytes_of(&ca.cert);
    let authority = X509Certificate::from_der(&der).unwrap().1;
    assert!(authority.is_ca());
    assert!(authority.key_usage().unwrap().unwrap().value.key_cert_sign());
    assert_ne!(authority.raw_serial(), certificate.raw_serial());
}

#[test]
fn a_chart_that_makes_certificates_is_marked() {
    let rendered = try_run("a: {{ (genCA \"x\" 1).Cert | quote }}\n").unwrap();
    assert!(rendered.taints.random && rendered.taints.time);
    assert!(!rendered.taints.lookup);
}

#[test]
fn each_kind_of_key_signs() {
    for name in ["rsa", "rsa_in_pkcs8", "p256_in_pkcs8", "p384", "p521", "ed25519"] {
        let pairs: HashMap<String, Pair> = run(&format!(
            "{{{{ $key := .Values.keys.{name} }}}}{{{{ $ca := genCAWithKey \"ca\" 1 $key }}}}\
             {{{{ dict \"ca\" $ca \"self\" (genSelfSignedCertWithKey \"x\" nil nil 1 $key) \
             \"leaf\" (genSignedCertWithKey \"x\" nil nil 1 $ca (genPrivateKey \"ecdsa\")) | toJson }}}}"
        ));
        verify(&pairs["ca"].cert, &pairs["ca"].cert);
        verify(&pairs["self"].cert, &pairs["self"].cert);
        verify(&pairs["leaf"].cert, &pairs["ca"].cert);
        assert!(pairs["leaf"].key.starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
    }
}

#[test]
fn private_keys_are_of_the_kind_asked_for() {
    let keys: HashMap<String, String> = run(
        "{{ dict \"rsa\" (genPrivateKey \"rsa\") \"none\" (genPrivateKey \"\") \"dsa\" (genPrivateKey \"dsa\") \
             \"ed\" (genPrivateKey \"ed25519\") \"ec\" (genPrivateKey \"ecdsa\") | toJson }}",
    );
    for name in ["rsa", "none"] {
        assert!(keys[name].starts_with("-----BEGIN RSA PRIVATE KEY-----\n"));
        let key = PrivateKey::Rsa(bytes_of(&keys[name]));
        assert_eq!(SystemKeys.sign(&key, b"message").unwrap().len(), 512);
    }
    assert_ne!(keys["rsa"], keys["none"]);
    assert!(keys["ed"].starts_with("-----BEGIN PRIVATE KEY-----\n"));
    assert_eq!(bytes_of(&keys["ed"]).len(), 48);
    assert!(keys["ec"].starts_with("-----BEGIN EC PRIVATE KEY-----\n"));

    assert!(keys["dsa"].starts_with("-----BEGIN DSA PRIVATE KEY-----\n"));
    let der = bytes_of(&keys["dsa"]);
    let mut rest = Any::from_der(&der).unwrap().1.data;
    let mut numbers = Vec::new();
    while !rest.is_empty() {
        let (after, number) = Any::from_der(rest).unwrap();
        // The zero in front only says that the number is not negative; the crate would count it.
        let digits = number.data.strip_prefix(&[0]).unwrap_or(number.data);
        numbers.push(dsa::BoxedUint::from_be_slice_vartime(digits));
        rest = after;
    }
    assert_eq!(numbers.len(), 6);
    // These refuse what does not belong together.
    let number = |index: usize| numbers[index].clone();
    let components = dsa::Components::from_components(number(1), number(2), number(3)).unwrap();
    let public = dsa::VerifyingKey::from_components(components, number(4)).unwrap();
    assert!(dsa::SigningKey::from_components(public, number(5)).is_ok());
}

#[test]
fn unsound_keys_are_refused() {
    let error = |template: &str| try_run(template).unwrap_err().to_string();
    let refused = error("a: {{ genCAWithKey \"x\" 1 .Values.keys.broken }}\n");
    assert!(
        refused.contains("error calling genCAWithKey: parsing private key: the key is not valid: "),
        "{refused}"
    );
    let refused =
        error("a: {{ buildCustomCert ((genCA \"x\" 1).Cert | b64enc) (.Values.keys.broken | b64enc) }}\n");
    assert!(
        refused.contains("error calling buildCustomCert: error parsing private key: the key is not valid: "),
        "{refused}"
    );
    // Helm can sign with this curve; here it is only passed through.
    let refused = error("a: {{ genCAWithKey \"x\" 1 .Values.keys.p224 }}\n");
    assert!(refused.contains("P-224 keys are not supported here"), "{refused}");
    let pair: Pair =
        run("{{ buildCustomCert ((genCA \"x\" 1).Cert | b64enc) (.Values.keys.p224 | b64enc) | toJson }}");
    assert!(pair.key.starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
}
