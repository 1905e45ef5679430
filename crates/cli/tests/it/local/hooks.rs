//! `--no-hooks`: a chart without what it wants done around an installation.

use super::fixture::{Env, PLAIN, real, simulated};
use super::{PoisonError, REAL};

/// What an installation and each upgrade make first.
const HOOK: (&str, &str) = (
    "templates/hook.yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: before\n  annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}\n",
);

#[test]
fn leaves_hooks_out_on_a_simulated_cluster() {
    leaves_hooks_out(&simulated());
}

#[test]
fn leaves_hooks_out_on_a_real_cluster() {
    let _one = REAL.lock().unwrap_or_else(PoisonError::into_inner);
    leaves_hooks_out(&real());
}

/// K34: hooks are run, or ignored when told so.
fn leaves_hooks_out(env: &Env) {
    env.chart("hooked", &[PLAIN, &[HOOK]].concat());
    let with = |more: &[&str]| {
        let components = ["--namespace", "hooked", "--component", "hooked=./hooked"];
        env.local(&[&components, more].concat())
    };
    let exists = |name: &str| env.target.get("v1", "ConfigMap", "hooked", name).is_some();
    with(&["--no-hooks"]).exits(0);
    assert!(exists("hooked") && !exists("before"));
    // Nothing has changed but that: hooks belong to an installation or an upgrade, and there is none.
    let changed = ["--set", "hooked.a=2"];
    with(&[&changed[..], &["--no-hooks"]].concat()).exits(0);
    assert!(!exists("before"));
    with(&["--set", "hooked.a=3"]).exits(0);
    assert!(exists("before"), "an upgrade runs them");
    with(&["--delete"]).exits(0);
    assert!(!exists("hooked"));
}
