//! The programs that apply the chart, as whole processes. None of them waits for anything to become ready.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use evenkeel_realparts as realparts;

/// Who applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// `evenkeel local`.
    Evenkeel,
    /// `helm install`, then `helm upgrade`.
    Helm,
    /// `kubectl apply --server-side`, of what the chart renders to.
    Kubectl,
    /// Flux's apply engine, of the same.
    Flux,
}

/// Whether the chart is new at the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Install,
    /// Once more, with nothing changed.
    Again,
}

impl Program {
    pub(super) const ALL: [Self; 4] = [Self::Evenkeel, Self::Helm, Self::Kubectl, Self::Flux];

    /// What its namespaces begin with.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Evenkeel => "evenkeel",
            Self::Helm => "helm",
            Self::Kubectl => "kubectl",
            Self::Flux => "flux",
        }
    }
}

/// Where everything is.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    ours: PathBuf,
    helm: PathBuf,
    kubectl: PathBuf,
    flux: PathBuf,
    kubeconfig: PathBuf,
    /// Holds the chart, what it renders to, and whatever the programs keep in their home.
    folder: PathBuf,
}

/// The chart's folder below that of the programs.
pub(super) const CHART: &str = "chart";

impl Programs {
    /// All of them, at this cluster.
    pub(super) fn find(kubeconfig: &Path, folder: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            ours: std::env::current_exe().context("the path of this program cannot be found")?,
            helm: realparts::helm()?,
            kubectl: realparts::kubectl()?,
            flux: realparts::flux_ssa()?,
            kubeconfig: kubeconfig.to_owned(),
            folder: folder.to_owned(),
        })
    }

    /// A program that touches nothing outside of the folder, and the cluster.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).env("HOME", &self.folder);
        command.env("KUBECONFIG", &self.kubeconfig);
        for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(variable, self.folder.join("helm"));
        }
        command
    }

    /// `program` applying the chart under this name, in the namespace of this name.
    pub(super) fn apply(&self, program: Program, act: Act, name: &str) -> Command {
        match program {
            Program::Evenkeel => {
                let mut command = self.command(&self.ours);
                command.args(["local", "--wait=false", "--namespace", name, "--component"]);
                command.arg(format!("{name}={CHART}"));
                command
            }
            Program::Helm => {
                let mut command = self.command(&self.helm);
                command.arg(match act {
                    Act::Install => "install",
                    Act::Again => "upgrade",
                });
                command.args([name, CHART, "--namespace", name]);
                command
            }
            Program::Kubectl => {
                let mut command = self.command(&self.kubectl);
                command.args(["apply", "--server-side", "--namespace", name, "--filename"]);
                command.arg(manifests(name));
                command
            }
            Program::Flux => {
                let mut command = self.command(&self.flux);
                command.arg("--kubeconfig").arg(&self.kubeconfig);
                command.args(["--namespace", name, "--name", name]);
                command.arg(manifests(name));
                command
            }
        }
    }

    /// Ours, taking back what it applied under this name.
    pub(super) fn delete(&self, name: &str) -> Command {
        let mut command = self.command(&self.ours);
        command.args(["local", "--delete", "--namespace", name, "--component", name]);
        command
    }

    /// Writes what the chart renders to under this name, for the programs that know no charts.
    pub(super) fn render(&self, name: &str) -> anyhow::Result<()> {
        let mut command = self.command(&self.helm);
        let rendered = run(command.args(["template", name, CHART, "--namespace", name]))?;
        std::fs::write(self.folder.join(manifests(name)), rendered)
            .context("what the chart renders to cannot be written")
    }
}

fn manifests(name: &str) -> String {
    format!("{name}.yaml")
}

/// Runs a program to its end, unmeasured; gives what it printed.
pub(super) fn run(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let program = command.get_program().to_owned();
    let output = command
        .output()
        .with_context(|| format!("{} cannot be started", program.display()))?;
    if !output.status.success() {
        bail!(
            "{} failed: {}",
            program.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(output.stdout)
}
