//! etcd, and the clusters on it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::supervisor::{Ending, Server};
use crate::{Cluster, ControlPlaneBinaries, Error, binaries};

/// How long any one server may take until it answers, on a machine that is busy with other things. An idle one
/// with two cores needs 0.3 s for etcd and 2 to 4 s for kube-apiserver.
pub(crate) const START_BOUND: Duration = Duration::from_secs(60);

/// Longest name of a cluster; it becomes part of the path of a socket, of which the kernel allows 107 bytes.
const MAX_CLUSTER_NAME: usize = 30;

/// One etcd, on which any number of clusters can be started. Dropping it ends etcd; its clusters end when they are
/// dropped.
#[derive(Debug)]
pub struct ControlPlane {
    binaries: ControlPlaneBinaries,
    instance: PathBuf,
    socket: PathBuf,
    _etcd: Server,
}

impl ControlPlane {
    /// Starts etcd on a socket in a temporary folder and waits until it answers.
    ///
    /// # Errors
    /// When the binaries are missing or etcd does not start.
    pub fn start() -> Result<Self, Error> {
        let binaries = binaries::control_plane_binaries()?;
        let doing = "create a temporary folder for the control plane";
        let instance = tempfile::Builder::new()
            .prefix("ek-cp-")
            .tempdir()
            .map_err(Error::io(doing))?;
        let folder = instance.path().join("etcd");
        std::fs::create_dir(&folder).map_err(Error::io(doing))?;
        let socket = folder.join("socket");
        let endpoint = format!("unix://{}", socket.display());

        let mut command = binaries.command("etcd");
        command.arg("--data-dir").arg(folder.join("data"));
        command.args([
            "--listen-client-urls",
            &endpoint,
            "--advertise-client-urls",
            &endpoint,
        ]);
        command.args(["--listen-peer-urls", "http://127.0.0.1:0"]);
        // The data ends with the process: nothing needs to reach the disk.
        command.args([
            "--unsafe-no-fsync",
            "--quota-backend-bytes",
            "2147483648",
            "--log-level",
            "warn",
        ]);
        let mut etcd = Server::start("etcd", &command, &folder, Ending::Kill, None)?;
        // From here on the watcher of the last server removes it.
        let instance = instance.keep();
        etcd.wait_until("listening", START_BOUND, || Ok(socket.exists()))?;
        Ok(Self {
            binaries,
            instance,
            socket,
            _etcd: etcd,
        })
    }

    /// Starts a new, empty cluster: kube-apiserver and kube-controller-manager, one Node, and stand-ins for kubelet,
    /// volume provisioner and load balancer. Ready means: it answers, and Pods can be created.
    ///
    /// A cluster needs about 400 MB of memory.
    ///
    /// # Errors
    /// When the name is not made of 1 to 30 of `a-z`, `0-9` and `-`, or a server does not start.
    pub fn start_cluster(&self, name: &str) -> Result<Cluster, Error> {
        let is_valid = (1..=MAX_CLUSTER_NAME).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if !is_valid {
            return Err(Error::ClusterName {
                name: name.to_owned(),
            });
        }
        Cluster::start(&self.binaries, &self.instance, &self.socket, name)
    }

    /// Folder of the instance: one folder for etcd, one for each server of each cluster.
    pub fn folder(&self) -> &Path {
        &self.instance
    }
}
