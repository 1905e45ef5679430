//! One cluster: kube-apiserver and kube-controller-manager on a prefix of the shared etcd.

mod kubeconfig;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::audit::{self, AuditLog};
use crate::certificates::{self, Authority};
use crate::control_plane::START_BOUND;
use crate::standin::{Readiness, StandIns};
use crate::supervisor::{Ending, Server};
use crate::{ControlPlaneBinaries, Error, ports};

/// User of the kube-controller-manager, left out of the audit log.
pub(crate) const CONTROLLER_USER: &str = "system:kube-controller-manager";
/// User of the stand-ins, left out of the audit log.
pub(crate) const STANDIN_USER: &str = "evenkeel:stand-in";
/// Kubernetes lets members of this group do everything.
const ADMIN_GROUP: &str = "system:masters";

/// How often a start is tried again because another process took the port first.
const PORT_TRIES: usize = 5;

/// Those controllers that give applied objects their behaviour. No others: each costs memory and requests.
const CONTROLLERS: &str = "namespace-controller,garbage-collector-controller,deployment-controller,\
    replicaset-controller,statefulset-controller,daemonset-controller,job-controller,cronjob-controller,\
    ttl-after-finished-controller,endpoints-controller,endpointslice-controller,disruption-controller,\
    resourcequota-controller,clusterrole-aggregation-controller,serviceaccount-controller,\
    serviceaccount-token-controller,root-ca-certificate-publisher-controller";

/// A running cluster. Dropping it ends its servers; its data stays in etcd until that ends too.
#[derive(Debug)]
pub struct Cluster {
    // Dropped in this order: the stand-ins first, for they would miss the server; the controller manager last, for
    // its folder holds the files of all.
    _stand_ins: StandIns,
    api_server: Mutex<Option<Server>>,
    _controller_manager: Server,
    name: String,
    files: Files,
    authority: Authority,
    launch: Launch,
    kubeconfig: String,
    kubeconfig_file: PathBuf,
    audit: AuditLog,
}

/// What is needed to start the API server, the first time and again.
#[derive(Debug)]
struct Launch {
    binaries: ControlPlaneBinaries,
    etcd: PathBuf,
    name: String,
    port: u16,
}

/// Where a cluster's files lie. Not in the API server's own folder, which goes when that server is stopped.
#[derive(Debug)]
struct Files {
    folder: PathBuf,
}

impl Files {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.path(name);
        std::fs::write(&path, text).map_err(Error::io(format!("write {}", path.display())))?;
        Ok(path)
    }
}

impl Cluster {
    pub(crate) fn start(
        binaries: &ControlPlaneBinaries,
        instance: &Path,
        etcd: &Path,
        name: &str,
    ) -> Result<Self, Error> {
        // The controller manager's folder holds the files of the cluster: it is the one server that is never
        // stopped before the cluster ends.
        let files = Files {
            folder: instance.join(name),
        };
        std::fs::create_dir(&files.folder)
            .map_err(Error::io(format!("create {}", files.folder.display())))?;
        let authority = Authority::new(name)?;
        files.write("ca.crt", &authority.pem())?;
        let server = authority.server()?;
        files.write("server.crt", &server.certificate)?;
        files.write("server.key", &server.key)?;
        let (private, public) = certificates::signing_key()?;
        files.write("accounts.key", &private)?;
        files.write("accounts.pub", &public)?;
        files.write("audit-policy.yaml", &audit::policy())?;

        let mut tries = 0;
        let (launch, api_server) = loop {
            tries += 1;
            let launch = Launch {
                binaries: binaries.clone(),
                etcd: etcd.to_owned(),
                name: name.to_owned(),
                port: ports::free()?,
            };
            match launch.api_server(instance, &files, &authority) {
                Err(Error::Start { last_lines, .. })
                    if last_lines.contains("address already in use") && tries < PORT_TRIES => {}
                result => break (launch, result?),
            }
        };

        let url = launch.url();
        let admin = authority.client("admin", Some(ADMIN_GROUP))?;
        let kubeconfig = kubeconfig::render(name, &url, &authority.pem(), &admin);
        let kubeconfig_file = files.write("admin.kubeconfig", &kubeconfig)?;
        let controller = authority.client(CONTROLLER_USER, Some(ADMIN_GROUP))?;
        files.write(
            "controllers.kubeconfig",
            &kubeconfig::render(name, &url, &authority.pem(), &controller),
        )?;
        let controller_manager = start_controller_manager(binaries, &files, name)?;
        let stand_in = authority.client(STANDIN_USER, Some(ADMIN_GROUP))?;
        let stand_in = kubeconfig::render(name, &url, &authority.pem(), &stand_in);
        let stand_ins = StandIns::start(stand_in, authority.server()?, START_BOUND)?;
        let audit = AuditLog::new(files.path("audit.log"));
        Ok(Self {
            name: name.to_owned(),
            files,
            authority,
            api_server: Mutex::new(Some(api_server)),
            launch,
            kubeconfig,
            kubeconfig_file,
            audit,
            _stand_ins: stand_ins,
            _controller_manager: controller_manager,
        })
    }

    /// Name of the cluster.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// URL of the API server.
    pub fn url(&self) -> String {
        self.launch.url()
    }

    /// A kubeconfig of an administrator, complete in itself: certificates and key are in it.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// The same in a file, for `kubectl` and `helm`. It exists as long as the cluster.
    pub fn kubeconfig_file(&self) -> &Path {
        &self.kubeconfig_file
    }

    /// A kubeconfig of any other user, with the rights that RBAC gives to it and its group: none at first.
    ///
    /// # Errors
    /// When the certificate cannot be made.
    pub fn kubeconfig_for(&self, user: &str, group: Option<&str>) -> Result<String, Error> {
        let identity = self.authority.client(user, group)?;
        Ok(kubeconfig::render(
            &self.name,
            &self.url(),
            &self.authority.pem(),
            &identity,
        ))
    }

    /// What the API server was asked.
    pub fn audit(&self) -> &AuditLog {
        &self.audit
    }

    /// Kills the API server, as a crashed or unreachable one. The data stays; nothing listens on the port.
    pub fn stop_api_server(&self) {
        drop(
            self.api_server
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }

    /// Starts the API server again, on the same port and data, and waits until it answers. Does nothing while it
    /// runs.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start_api_server(&self) -> Result<(), Error> {
        let mut api_server = self.api_server.lock().unwrap_or_else(PoisonError::into_inner);
        if api_server.is_none() {
            let instance = self.files.folder.parent().unwrap_or(&self.files.folder);
            *api_server = Some(self.launch.api_server(instance, &self.files, &self.authority)?);
        }
        Ok(())
    }
}

impl Launch {
    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Starts a kube-apiserver and waits until it says that it is ready.
    fn api_server(&self, instance: &Path, files: &Files, authority: &Authority) -> Result<Server, Error> {
        static STARTS: AtomicUsize = AtomicUsize::new(0);
        let number = STARTS.fetch_add(1, Ordering::Relaxed);
        let folder = instance.join(format!("{}-api-{number}", self.name));
        std::fs::create_dir(&folder).map_err(Error::io(format!("create {}", folder.display())))?;
        let mut server = Server::start(
            "kube-apiserver",
            &self.command(files, &folder),
            &folder,
            Ending::Kill,
            None,
        )?;
        let probe = authority.client(STANDIN_USER, Some(ADMIN_GROUP))?;
        let probe = kubeconfig::render(&self.name, &self.url(), &authority.pem(), &probe);
        let readiness = Readiness::of(probe)?;
        server.wait_until("ready", START_BOUND, || Ok(readiness.is_ready()))?;
        Ok(server)
    }

    fn command(&self, files: &Files, folder: &Path) -> Command {
        let mut command = self.binaries.command("kube-apiserver");
        let mut flag = |name: &str, value: &dyn std::fmt::Display| {
            command.arg(format!("--{name}={value}"));
        };
        flag("etcd-servers", &format_args!("unix://{}", self.etcd.display()));
        flag("etcd-prefix", &format_args!("/{}", self.name));
        flag("bind-address", &"127.0.0.1");
        flag("advertise-address", &"127.0.0.1");
        flag("secure-port", &self.port);
        flag("cert-dir", &folder.display());
        flag("tls-cert-file", &files.path("server.crt").display());
        flag("tls-private-key-file", &files.path("server.key").display());
        flag("client-ca-file", &files.path("ca.crt").display());
        flag("service-account-issuer", &self.url());
        flag("service-account-key-file", &files.path("accounts.pub").display());
        flag(
            "service-account-signing-key-file",
            &files.path("accounts.key").display(),
        );
        flag("service-cluster-ip-range", &"10.0.0.0/16");
        flag("authorization-mode", &"RBAC");
        flag("allow-privileged", &true);
        flag("endpoint-reconciler-type", &"none");
        // Both want controllers that watch over real nodes and volumes.
        flag(
            "disable-admission-plugins",
            &"TaintNodesByCondition,StorageObjectInUseProtection",
        );
        flag("shutdown-delay-duration", &"0s");
        flag("event-ttl", &"10m");
        flag("audit-policy-file", &files.path("audit-policy.yaml").display());
        flag("audit-log-path", &files.path("audit.log").display());
        // Never rotated: offsets into the file must stay true.
        flag("audit-log-maxsize", &100_000);
        command
    }
}

fn start_controller_manager(
    binaries: &ControlPlaneBinaries,
    files: &Files,
    name: &str,
) -> Result<Server, Error> {
    let mut command = binaries.command("kube-controller-manager");
    let mut flag = |name: &str, value: &dyn std::fmt::Display| {
        command.arg(format!("--{name}={value}"));
    };
    flag("kubeconfig", &files.path("controllers.kubeconfig").display());
    flag("cluster-name", &name);
    flag("leader-elect", &false);
    flag("secure-port", &0);
    flag("use-service-account-credentials", &false);
    flag(
        "service-account-private-key-file",
        &files.path("accounts.key").display(),
    );
    flag("root-ca-file", &files.path("ca.crt").display());
    flag("kube-api-qps", &200);
    flag("kube-api-burst", &400);
    flag("controllers", &CONTROLLERS);
    Server::start(
        "kube-controller-manager",
        &command,
        &files.folder,
        Ending::Kill,
        None,
    )
}
