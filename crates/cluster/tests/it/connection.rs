//! K5: the connection to a cluster is our own: clusters that do not answer, or not as they should, are behind a proxy, or
//! change their credentials.

mod credentials;
mod traffic;

use std::sync::Arc;
use std::time::Duration;

use evenkeel_cluster::{Cluster, Error, ErrorClass, KubeconfigPolicy, Limits, Verb};
use evenkeel_core::{GroupVersionKind, Sensitive};
use evenkeel_testkit::TestCluster;
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::component::Component;
use crate::documents::config_map;
use crate::env::{Env, Ground, WAIT, connect, options, owner};

fn kubeconfig(server: &str, cluster: &str, user: &str) -> Sensitive<String> {
    Sensitive::new(format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: '{server}', {cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\ncurrent-context: c\n"
    ))
}

async fn cluster(kubeconfig: &Sensitive<String>, limits: Limits) -> Cluster {
    let mut options = options();
    options.policy = KubeconfigPolicy::Own {
        allow_exec: false,
        base: std::env::temp_dir(),
    };
    options.limits = limits;
    Cluster::connect(kubeconfig, options).await.unwrap()
}

fn real(env: &Env) -> &'static TestCluster {
    match env.ground {
        Ground::Real(real) => real,
        _ => panic!("a real cluster is needed"),
    }
}

fn kubeconfig_of(env: &Env) -> &'static str {
    real(env).kubeconfig()
}

/// The `certificate-authority-data` of a kubeconfig.
fn ca_of(kubeconfig: &str) -> &str {
    let after = kubeconfig.split("certificate-authority-data:").nth(1);
    let data = after.and_then(|after| after.split_whitespace().next());
    data.unwrap().trim_matches('"')
}

#[tokio::test]
async fn nothing_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let cluster = cluster(
        &kubeconfig(&format!("https://{address}"), "", "token: s3ntinel"),
        Limits::default(),
    )
    .await;
    let error = cluster.uid().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unreachable, "{error}");
    let text = format!("{error} {error:?}");
    assert!(
        text.contains(&address.to_string()) && !text.contains("s3ntinel"),
        "{text}"
    );
}

#[tokio::test]
async fn somebody_listens_and_says_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = Limits {
        connect_timeout: Duration::from_millis(300),
        read_timeout: Duration::from_millis(600),
        ..Limits::default()
    };
    // The handshake hangs.
    let secure = cluster(&kubeconfig(&format!("https://{address}"), "", ""), limits).await;
    let error = secure.uid().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unreachable, "{error}");
    assert!(
        error.to_string().contains("no connection within 300ms"),
        "{error}"
    );
    // The answer hangs.
    let plain = cluster(&kubeconfig(&format!("http://{address}"), "", ""), limits).await;
    let error = plain.uid().await.unwrap_err();
    assert!(
        matches!(error, Error::Timeout { after, .. } if after == Duration::from_millis(600)),
        "{error}"
    );
}

/// A server that gives every request the same answer.
async fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    #[allow(clippy::disallowed_methods, reason = "ends with the test's runtime")]
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn a_busy_or_broken_server_is_told_apart() {
    for (answer, class) in [
        (
            "HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n",
            ErrorClass::RateLimited(Duration::from_secs(7)),
        ),
        (
            "HTTP/1.1 503 Service Unavailable\r\nretry-after: 3\r\ncontent-length: 0\r\n\r\n",
            ErrorClass::RateLimited(Duration::from_secs(3)),
        ),
        (
            "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n",
            ErrorClass::Transient,
        ),
        (
            "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n",
            ErrorClass::Transient,
        ),
        (
            "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n",
            ErrorClass::Unauthorized,
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n<html/>",
            ErrorClass::Transient,
        ),
        ("SSH-2.0-OpenSSH_9.2\r\n", ErrorClass::Unreachable),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\ncut",
            ErrorClass::Unreachable,
        ),
    ] {
        let cluster = cluster(&kubeconfig(&answering(answer).await, "", ""), Limits::default()).await;
        let error = cluster.uid().await.unwrap_err();
        assert_eq!(error.class(), class, "{answer:?}: {error}");
        assert_eq!(cluster.requests().total(), 1, "no retry of its own");
    }
}

#[tokio::test]
async fn the_real_server_refuses_wrong_credentials_and_missing_rights() {
    let env = Env::real("refuses").await;
    let good = kubeconfig_of(&env);
    assert_eq!(
        env.cluster.uid().await.unwrap(),
        connect(good).await.uid().await.unwrap(),
        "one cluster, one identity"
    );
    let nobody = connect(&real(&env).kubeconfig_for("nobody", None).unwrap()).await;
    let error = nobody.uid().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Forbidden, "{error}");
    assert!(error.to_string().contains("nobody"), "{error}");
    assert_eq!(
        nobody.check(&owner(), &[]).await.unwrap_err().class(),
        ErrorClass::Forbidden
    );
    let server = env.cluster.server();
    let ca = ca_of(good);
    let wrong = kubeconfig(
        server,
        &format!("certificate-authority-data: {ca}"),
        "token: s3ntinel",
    );
    let cluster = Cluster::connect(&wrong, options()).await.unwrap();
    let error = cluster.uid().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unauthorized, "{error}");
    assert!(!format!("{error} {error:?} {cluster:?}").contains("s3ntinel"));
    // The server cannot prove who it is without its CA.
    let cluster = Cluster::connect(&kubeconfig(server, "", "token: s3ntinel"), options())
        .await
        .unwrap();
    let error = cluster.uid().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unreachable, "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn discovery_is_read_once_in_two_requests() {
    let env = Env::real("discovery").await;
    let (a, b) = tokio::join!(env.cluster.discovery(), env.cluster.discovery());
    assert!(Arc::ptr_eq(&a.unwrap(), &b.unwrap()));
    assert_eq!(env.cluster.requests().of(Verb::Get), 2);
    assert!(env.cluster.kubernetes_version().await.unwrap().starts_with("v1."));
}

/// DEL-04 and DEL-06: that an API does not answer says nothing of its objects, and stops nobody else.
///
/// On a cluster of its own: what it breaks would be in everybody's way.
#[tokio::test]
async fn a_broken_api_stops_only_its_own_kinds_and_a_cluster_is_left_clean() {
    let env = Env::real_alone("broken_api").await;
    let component = Component::new(&env);
    let documents = [config_map("a", "k", "1")];
    component.run(&documents).await.unwrap();
    env.make(
        "/apis/apiregistration.k8s.io/v1/apiservices",
        &json!({"metadata": {"name": "v1.broken.example"}, "spec": {
            "group": "broken.example", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": {"namespace": "default", "name": "nobody"}, "insecureSkipTLSVerify": true}}),
    )
    .await;
    let fresh = connect(kubeconfig_of(&env)).await;
    evenkeel_testkit::eventually("discovery to tell of the broken API", async || {
        let discovery = connect(kubeconfig_of(&env)).await.discovery().await.unwrap();
        if discovery.all_unavailable().next().is_some() {
            Ok(())
        } else {
            Err("not yet")
        }
    })
    .await;
    let target = fresh.component(&owner(), component.target.name());
    assert!(target.record().await.unwrap().is_some());
    let gone = GroupVersionKind::from_api_version("broken.example/v1", "Thing");
    let error = fresh.resource(&gone).await.unwrap_err();
    assert!(
        matches!(&error, Error::ApiUnavailable { group } if group == "broken.example/v1"),
        "{error}"
    );
    assert_eq!(error.class(), ErrorClass::Transient);
    // Other kinds are not concerned.
    let env = Env {
        cluster: fresh,
        ..env
    };
    let component = Component::new(&env);
    component.run(&[config_map("a", "k", "2")]).await.unwrap();
    // Whether the namespace is empty cannot be told now, so it stays.
    let deletion = component.delete().await.unwrap();
    assert!(deletion.complete);
    assert!(
        deletion.kept[0].reason.contains("cannot be told"),
        "{:?}",
        deletion.kept
    );
    env.must(&component.namespace_path()).await;

    // A namespace that somebody deletes meanwhile cannot go; why is told, in the time that was given.
    let blocked = Component::named(&env, "blocked");
    blocked.run(&[config_map("b", "k", "1")]).await.unwrap();
    env.remove(&blocked.namespace_path()).await;
    env.until("the namespace to be stuck", &blocked.namespace_path(), |live| {
        live["status"]["conditions"].as_array().is_some_and(|conditions| {
            conditions.iter().any(|condition| {
                condition["type"] == "NamespaceDeletionDiscoveryFailure" && condition["status"] == "True"
            })
        })
    })
    .await;
    let options = evenkeel_cluster::DeleteOptions {
        timeout: Duration::from_secs(3),
        ..Default::default()
    };
    let error = blocked.delete_with(options).await.unwrap_err();
    assert!(matches!(error, Error::Stuck(_)), "{error}");
    assert!(error.to_string().contains("broken.example"), "{error}");

    env.remove("/apis/apiregistration.k8s.io/v1/apiservices/v1.broken.example")
        .await;
    assert!(blocked.delete().await.unwrap().complete);
    evenkeel_testkit::eventually("discovery to forget it", async || {
        let discovery = connect(kubeconfig_of(&env)).await.discovery().await.unwrap();
        if discovery.all_unavailable().next().is_none() {
            Ok(())
        } else {
            Err("not yet")
        }
    })
    .await;
    // The last component is gone: nothing of us stays, the namespace that was kept included.
    let now = connect(kubeconfig_of(&env)).await;
    now.leave(&owner(), &component.attempt(), WAIT).await.unwrap();
    assert!(env.get(&component.namespace_path()).await.is_none());
    assert!(env.get("/api/v1/namespaces/evenkeel-system").await.is_none());
}

/// A TLS server with the certificate `chain`; gives every client one answer.
async fn tls_server(certificate: &rcgen::Certificate, key: &KeyPair) -> std::net::SocketAddr {
    let _ = rustls_provider();
    let config = tokio_rustls::rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            key.serialize_der().try_into().unwrap(),
        )
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    #[allow(clippy::disallowed_methods, reason = "ends with the test's runtime")]
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                let mut buffer = [0; 4096];
                let _ = stream.read(&mut buffer).await;
                let body = r#"{"metadata": {"name": "kube-system", "uid": "the-uid"}}"#;
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        }
    });
    address
}

fn rustls_provider() -> Result<(), Arc<tokio_rustls::rustls::crypto::CryptoProvider>> {
    tokio_rustls::rustls::crypto::aws_lc_rs::default_provider().install_default()
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// KUB-04: as kubectl, with text around it and Windows line ends, and with the name to verify.
#[tokio::test]
async fn a_server_certificate_may_be_given_as_its_own_ca() {
    let names = vec!["127.0.0.1".to_owned(), "api.example".to_owned()];
    let self_signed_key = KeyPair::generate().unwrap();
    let self_signed = CertificateParams::new(names.clone())
        .unwrap()
        .self_signed(&self_signed_key)
        .unwrap();
    let mut ca_params = CertificateParams::new(vec![]).unwrap();
    ca_params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca_params, KeyPair::generate().unwrap()).unwrap();
    let issued_key = KeyPair::generate().unwrap();
    let issued = CertificateParams::new(names.clone())
        .unwrap()
        .signed_by(&issued_key, &ca)
        .unwrap();
    let mut own_ca_params = CertificateParams::new(names).unwrap();
    own_ca_params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let own_ca_key = KeyPair::generate().unwrap();
    let own_ca = own_ca_params.self_signed(&own_ca_key).unwrap();

    for (certificate, key, given, accepted) in [
        (&self_signed, &self_signed_key, self_signed.pem(), true),
        (&issued, &issued_key, ca.pem(), true),
        // The leaf itself, as kubectl takes it; two with text around them and Windows line ends.
        (&issued, &issued_key, issued.pem(), true),
        (
            &issued,
            &issued_key,
            format!(
                "the CAs:\r\n{}\r\n{}",
                self_signed.pem().replace('\n', "\r\n"),
                ca.pem()
            ),
            true,
        ),
        (&own_ca, &own_ca_key, own_ca.pem(), true),
        (&issued, &issued_key, self_signed.pem(), false),
    ] {
        let address = tls_server(certificate, key).await;
        let data = format!("certificate-authority-data: {}", base64(given.as_bytes()));
        let found = cluster(
            &kubeconfig(&format!("https://{address}"), &data, ""),
            Limits::default(),
        )
        .await;
        let uid = found.uid().await.map(|uid| uid.to_string());
        assert_eq!(uid.is_ok(), accepted, "{uid:?} {given}");
        // A name that the certificate does not have is refused, whoever vouches for it.
        let named = format!("{data}, tls-server-name: other.example");
        let wrong = cluster(
            &kubeconfig(&format!("https://{address}"), &named, ""),
            Limits::default(),
        )
        .await;
        assert_eq!(wrong.uid().await.unwrap_err().class(), ErrorClass::Unreachable);
        if accepted {
            let named = format!("{data}, tls-server-name: api.example");
            let right = cluster(
                &kubeconfig(&format!("https://{address}"), &named, ""),
                Limits::default(),
            )
            .await;
            assert_eq!(right.uid().await.unwrap().as_str(), "the-uid");
        }
    }
}
