//! One control plane with one cluster for all tests of this binary.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use evenkeel_realparts::{Cluster, ControlPlane};

/// For what takes milliseconds on an idle machine and longer on a busy one.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

pub(crate) fn cluster() -> &'static Cluster {
    static SHARED: OnceLock<(ControlPlane, Cluster)> = OnceLock::new();
    let (_, cluster) = SHARED.get_or_init(|| {
        let control_plane = ControlPlane::start().unwrap();
        let cluster = control_plane.start_cluster("shared").unwrap();
        (control_plane, cluster)
    });
    cluster
}

pub(crate) fn kubectl(cluster: &Cluster, arguments: &[&str]) -> Output {
    Command::new(evenkeel_realparts::kubectl().unwrap())
        .env("KUBECONFIG", cluster.kubeconfig_file())
        .args(arguments)
        .output()
        .unwrap()
}

/// What kubectl prints; panics if it fails.
pub(crate) fn ask(cluster: &Cluster, arguments: &[&str]) -> String {
    let output = kubectl(cluster, arguments);
    assert!(
        output.status.success(),
        "kubectl {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Applies a manifest into a new namespace.
pub(crate) fn apply(cluster: &Cluster, namespace: &str, manifest: &str) {
    let file: PathBuf = tempfile_with(manifest);
    ask(cluster, &["create", "namespace", namespace]);
    ask(
        cluster,
        &[
            "apply",
            "--server-side",
            "-n",
            namespace,
            "-f",
            file.to_str().unwrap(),
        ],
    );
    std::fs::remove_file(file).unwrap();
}

fn tempfile_with(text: &str) -> PathBuf {
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file.into_temp_path().keep().unwrap()
}

/// Waits until kubectl prints `expected`.
pub(crate) fn expect(cluster: &Cluster, arguments: &[&str], expected: &str) {
    let started = Instant::now();
    loop {
        let output = kubectl(cluster, arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        if text.trim() == expected {
            return;
        }
        assert!(
            started.elapsed() < BOUND,
            "kubectl {arguments:?} printed {text:?} {}, not {expected:?}",
            String::from_utf8_lossy(&output.stderr)
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}
