//! Credentials that others renew while a cluster is in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use evenkeel_cluster::{Cluster, ConnectOptions, ErrorClass, KubeconfigPolicy, KubeconfigSource};
use evenkeel_core::{ManualClock, Sensitive};
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::traffic::{KUBE_SYSTEM, answer, head_of, serve};
use super::{base64, ca_of, kubeconfig};
use crate::env::{Env, options};

#[derive(Debug)]
struct Newer {
    kubeconfig: Sensitive<String>,
    asked: AtomicUsize,
}

impl KubeconfigSource for Newer {
    fn newest(&self) -> BoxFuture<'_, Option<Sensitive<String>>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Some(self.kubeconfig.clone()) })
    }
}

/// A token that was rotated while work is under way fails nothing.
#[tokio::test]
async fn rotated_credentials_fail_no_pass() {
    let (address, _) = serve(|mut stream, _| async move {
        loop {
            let head = head_of(&mut stream).await;
            if head.is_empty() {
                return;
            }
            if head.to_lowercase().contains("authorization: bearer new") {
                answer(&mut stream, "200 OK", "", KUBE_SYSTEM).await;
            } else {
                answer(&mut stream, "401 Unauthorized", "", "").await;
            }
        }
    })
    .await;
    let server = format!("http://{address}");
    let old = kubeconfig(&server, "", "token: old");
    let newer = |kubeconfig: Sensitive<String>| {
        Arc::new(Newer {
            kubeconfig,
            asked: AtomicUsize::new(0),
        })
    };
    let own = || {
        let mut options = options();
        options.policy = KubeconfigPolicy::Own {
            allow_exec: false,
            base: std::env::temp_dir(),
        };
        options
    };
    let source = newer(kubeconfig(&server, "", "token: new"));
    let client = Cluster::connect_renewable(&old, own(), source.clone())
        .await
        .unwrap();
    // Refused together, they fetch the newer ones once.
    let (a, b) = tokio::join!(client.kubernetes_version(), client.uid());
    assert_eq!(b.unwrap().as_str(), "the-uid");
    assert!(!matches!(a.unwrap_err().class(), ErrorClass::Unauthorized));
    assert_eq!(source.asked.load(Ordering::SeqCst), 1);
    // None that are newer: told as what it is, and asked for once per refusal.
    let source = newer(old.clone());
    let client = Cluster::connect_renewable(&old, own(), source.clone())
        .await
        .unwrap();
    assert_eq!(client.uid().await.unwrap_err().class(), ErrorClass::Unauthorized);
    assert_eq!(source.asked.load(Ordering::SeqCst), 1);
    // Those of another address are not taken.
    let source = newer(kubeconfig("http://127.0.0.1:9", "", "token: new"));
    let client = Cluster::connect_renewable(&old, own(), source).await.unwrap();
    assert_eq!(client.uid().await.unwrap_err().class(), ErrorClass::Unauthorized);
}

/// A credential plugin: a program that prints what it is told to, and keeps count.
#[cfg(unix)]
struct Plugin {
    folder: tempfile::TempDir,
}

#[cfg(unix)]
impl Plugin {
    /// Run by the shell, so that nobody else holds a program open for writing that is being started.
    const SCRIPT: &str =
        "echo run >> runs\necho \"$KUBERNETES_EXEC_INFO\" > asked\ncat printed\ntest ! -e broken\n";

    fn new() -> Self {
        Self {
            folder: evenkeel_testkit::temp_dir(),
        }
    }

    /// The `user` of a kubeconfig that names it.
    fn user(&self) -> String {
        let script = format!("cd {}\n{}", self.folder.path().display(), Self::SCRIPT);
        let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script],
                          "interactiveMode": "Never", "provideClusterInfo": true});
        format!("exec: {exec}")
    }

    fn gives(&self, status: Value) {
        let credential = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status});
        self.prints(&credential.to_string());
    }

    fn prints(&self, text: &str) {
        std::fs::write(self.folder.path().join("printed"), text).unwrap();
    }

    fn break_down(&self) {
        std::fs::write(self.folder.path().join("broken"), "").unwrap();
    }

    fn mend(&self) {
        std::fs::remove_file(self.folder.path().join("broken")).unwrap();
    }

    fn runs(&self) -> usize {
        let runs = std::fs::read_to_string(self.folder.path().join("runs"));
        runs.unwrap_or_default().lines().count()
    }

    /// What it was told by its environment when it ran last.
    fn asked(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.folder.path().join("asked")).unwrap()).unwrap()
    }
}

/// When the clocks of these tests begin.
#[cfg(unix)]
const START: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// Options by which the user's own kubeconfig may run programs.
#[cfg(unix)]
fn allowing(clock: Arc<ManualClock>) -> ConnectOptions {
    let policy = KubeconfigPolicy::Own {
        allow_exec: true,
        base: std::env::temp_dir(),
    };
    ConnectOptions {
        policy,
        clock,
        ..options()
    }
}

/// A plugin is asked anew before what it gave expires (KEP-541, `expirationTimestamp`): no request is refused for it. As long
/// as it fails the old credentials serve on, and it is not run for each request.
#[cfg(unix)]
#[tokio::test]
async fn a_plugins_token_is_renewed_before_it_expires() {
    let env = Env::real("plugin").await;
    let namespace = env.namespace("accounts").await;
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    let token = async |name: &str| {
        env.make(&accounts, &json!({"metadata": {"name": name}})).await;
        let request = json!({"spec": {"expirationSeconds": 3600}});
        let given = env.make(&format!("{accounts}/{name}/token"), &request).await;
        given["status"]["token"].clone()
    };
    let (first, second) = (token("first").await, token("second").await);
    let clock = Arc::new(ManualClock::new(START));
    let expiring = |token: &Value, minutes: i64| json!({"token": token, "expirationTimestamp": (START + SignedDuration::from_mins(minutes)).to_string()});
    let plugin = Plugin::new();
    plugin.gives(expiring(&first, 10));
    let server = env.cluster.server();
    let settings = format!(
        "certificate-authority-data: {}",
        ca_of(super::kubeconfig_of(&env))
    );
    let kubeconfig = kubeconfig(server, &settings, &plugin.user());
    let client = Cluster::connect(&kubeconfig, allowing(Arc::clone(&clock)))
        .await
        .unwrap();
    let asked = plugin.asked();
    assert_eq!(asked["spec"]["interactive"], false, "{asked}");
    assert_eq!(asked["spec"]["cluster"]["server"], server, "{asked}");
    // Who asks is told by the refusal: neither may see the namespace.
    let whoami = async || client.uid().await.unwrap_err().to_string();
    assert!(whoami().await.contains("system:serviceaccount:") && whoami().await.contains(":first"));
    assert_eq!(plugin.runs(), 1);

    plugin.gives(expiring(&second, 30));
    clock.advance(SignedDuration::from_secs(8 * 60 + 59));
    assert!(whoami().await.contains(":first"), "too early");
    plugin.break_down();
    clock.advance(SignedDuration::from_secs(2));
    assert!(whoami().await.contains(":first"), "the old one is good still");
    assert!(whoami().await.contains(":first"));
    assert_eq!(plugin.runs(), 2, "not for each request");
    plugin.mend();
    clock.advance(SignedDuration::from_secs(10));
    let (a, b) = tokio::join!(whoami(), whoami());
    assert!(a.contains(":second") && b.contains(":second"), "{a} {b}");
    assert_eq!(plugin.runs(), 3, "once for both");
    // Each request was sent once: nothing was refused for its credentials.
    assert_eq!(client.requests().total(), 7);
}

/// Plugins print YAML, too: client-go reads both.
#[cfg(unix)]
#[tokio::test]
async fn a_plugin_may_print_yaml() {
    let (address, _) = serve(|mut stream, _| async move {
        loop {
            let head = head_of(&mut stream).await.to_lowercase();
            match head.contains("authorization: bearer of-yaml\r") {
                _ if head.is_empty() => return,
                true => answer(&mut stream, "200 OK", "", KUBE_SYSTEM).await,
                false => answer(&mut stream, "401 Unauthorized", "", "").await,
            }
        }
    })
    .await;
    let plugin = Plugin::new();
    plugin.prints(
        "apiVersion: client.authentication.k8s.io/v1\nkind: ExecCredential\nstatus:\n  token: of-yaml\n  \
         expirationTimestamp: 2026-01-01T01:00:00Z\n",
    );
    let kubeconfig = kubeconfig(&format!("http://{address}"), "", &plugin.user());
    let clock = Arc::new(ManualClock::new(START));
    let client = Cluster::connect(&kubeconfig, allowing(Arc::clone(&clock)))
        .await
        .unwrap();
    assert_eq!(client.uid().await.unwrap().as_str(), "the-uid");
    clock.advance(SignedDuration::from_mins(60));
    client.kubernetes_version().await.unwrap_err();
    assert_eq!(plugin.runs(), 2, "renewed when it says that it expires");
}

/// What is wrong with a plugin is told without what it printed, which may hold a token.
#[cfg(unix)]
#[tokio::test]
async fn a_faulty_plugin_is_told_of_without_its_output() {
    let plugin = Plugin::new();
    let wrap = |rest: &str| {
        format!(r#"{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"{rest}}}"#)
    };
    let connect = async |user: &str| {
        let kubeconfig = kubeconfig("https://127.0.0.1:9", "", user);
        let clock = Arc::new(ManualClock::new(START));
        Cluster::connect(&kubeconfig, allowing(clock))
            .await
            .unwrap_err()
            .to_string()
    };
    for (printed, expected) in [
        ("hunter2".to_owned(), "no ExecCredential"),
        ("token: [hunter2".to_owned(), "no ExecCredential"),
        (wrap(""), "without a status"),
        (
            wrap(r#", "status": {"token": ""}"#),
            "neither a token nor a client certificate",
        ),
        (wrap(r#", "status": {"clientKeyData": "hunter2"}"#), "only one of"),
        (
            wrap(r#", "status": {"token": "hunter2"}"#).replace("/v1\"", "/v1beta1\""),
            "v1beta1 where the kubeconfig says",
        ),
        (
            r#"{"apiVersion": "v1", "kind": "Secret", "data": {"token": "hunter2"}}"#.to_owned(),
            "no ExecCredential of",
        ),
    ] {
        plugin.prints(&printed);
        let error = connect(&plugin.user()).await;
        assert!(
            error.contains("credential plugin sh") && error.contains(expected),
            "{error}"
        );
        assert!(!error.contains("hunter2"), "{error}");
    }
    plugin.gives(json!({"token": "hunter2"}));
    plugin.break_down();
    let error = connect(&plugin.user()).await;
    assert!(error.contains("exit status: 1"), "{error}");
    let missing = "exec: {apiVersion: client.authentication.k8s.io/v1, command: /nowhere/plugin, interactiveMode: Never, \
                   installHint: get it from example.com}";
    let error = connect(missing).await;
    assert!(
        error.contains("/nowhere/plugin is not there") && error.contains("get it from example.com"),
        "{error}"
    );
    let bare = "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}";
    let error = connect(bare).await;
    assert!(error.contains("exec.command"), "{error}");
}

/// KUB-02: the client certificate of a credential plugin is used, and when the server no longer takes it, the plugin is asked
/// for another one and new connections are made, within the same call.
#[cfg(unix)]
#[tokio::test]
async fn a_plugins_certificate_is_used_and_renewed() {
    use rcgen::{CertifiedIssuer, IsCa};
    use tokio_rustls::rustls::RootCertStore;
    use tokio_rustls::rustls::server::WebPkiClientVerifier;

    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let issue = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()])
            .unwrap()
            .signed_by(&key, &ca)
            .unwrap();
        (certificate, key)
    };
    let (server, server_key) = issue("127.0.0.1");
    let (old, newer) = (issue("old"), issue("newer"));

    let _ = super::rustls_provider();
    let mut roots = RootCertStore::empty();
    roots.add(ca.der().clone()).unwrap();
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
    let config = tokio_rustls::rustls::ServerConfig::builder()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![server.der().clone()],
            server_key.serialize_der().try_into().unwrap(),
        )
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let accepted = newer.0.der().clone();
    let refused = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&refused);
    let (address, _) = serve(move |stream, _| {
        let (acceptor, accepted, counted) = (acceptor.clone(), accepted.clone(), Arc::clone(&counted));
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                return;
            };
            let shown = stream.get_ref().1.peer_certificates().unwrap()[0].clone();
            let mut buffer = [0; 4096];
            while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                let (status, body) = if shown == accepted {
                    ("200 OK", KUBE_SYSTEM)
                } else {
                    counted.fetch_add(1, Ordering::SeqCst);
                    ("401 Unauthorized", "")
                };
                let text = format!(
                    "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                if stream.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    })
    .await;

    let plugin = Plugin::new();
    let give = |(certificate, key): &(rcgen::Certificate, KeyPair)| {
        plugin.gives(
            json!({"clientCertificateData": certificate.pem(), "clientKeyData": key.serialize_pem(),
                            "expirationTimestamp": "2099-01-01T00:00:00Z"}),
        );
    };
    give(&old);
    let settings = format!("certificate-authority-data: {}", base64(ca.pem().as_bytes()));
    let kubeconfig = kubeconfig(&format!("https://{address}"), &settings, &plugin.user());
    let options = allowing(Arc::new(ManualClock::new(START)));
    // The kubeconfig stays the same; what its plugin gives does not.
    let source = Arc::new(Newer {
        kubeconfig: kubeconfig.clone(),
        asked: AtomicUsize::new(0),
    });
    let client = Cluster::connect_renewable(&kubeconfig, options, source)
        .await
        .unwrap();
    give(&newer);
    assert_eq!(client.uid().await.unwrap().as_str(), "the-uid");
    assert_eq!(
        refused.load(Ordering::SeqCst),
        1,
        "the old certificate was shown once"
    );
    client.kubernetes_version().await.unwrap_err();
    assert_eq!(
        refused.load(Ordering::SeqCst),
        1,
        "and on no connection afterwards"
    );
}
