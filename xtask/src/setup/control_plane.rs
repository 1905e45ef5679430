//! The control plane: built, unless somebody brings one.

use anyhow::{Context as _, Result};
use evenkeel_realparts::go_part::CONTROL_PLANE;
use evenkeel_realparts::{Cache, ControlPlaneBinaries, control_plane_binaries};

use super::{go, report};

/// Builds the control plane unless it is in the cache, or `KUBEBUILDER_ASSETS` names one.
pub(super) fn prepare(cache: &Cache) -> Result<()> {
    match control_plane_binaries() {
        Ok(ControlPlaneBinaries::Separate(folder)) => {
            report(
                CONTROL_PLANE.title,
                &format!("that of KUBEBUILDER_ASSETS, {}", folder.display()),
            );
            return Ok(());
        }
        Err(error @ evenkeel_realparts::Error::Assets { .. }) => return Err(error.into()),
        Ok(ControlPlaneBinaries::Combined(_)) | Err(_) => {}
    }
    go::prepare(cache, &CONTROL_PLANE).context(
        "KUBEBUILDER_ASSETS may name a folder with etcd, kube-apiserver and kube-controller-manager instead",
    )
}
