//! Links the program so that it starts fast.
//!
//! A Rust program of this size has some 200,000 addresses that the loader puts right before `main`. Written out one by
//! one they are megabytes, which every start reads and keeps in memory; packed they are a hundredth of that. The loader
//! of glibc can read them packed since 2.36, and a program needs a glibc as new as the one that it was linked with, so it
//! is that one which decides.
#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]

use std::env;
use std::path::Path;
use std::process::Command;

/// The script that says which functions lie side by side.
const ORDER: &str = "link-order.ld";
/// The first glibc whose loader reads packed addresses.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if is_native_glibc() && glibc().is_some_and(|version| version >= PACKED_SINCE) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    let order = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join(ORDER);
    if !order.is_file() {
        return;
    }
    println!("cargo:rerun-if-changed={ORDER}");
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if is_native_glibc() && is_release && !is_linker_chosen() {
        println!("cargo:rustc-link-arg-bins=-T{}", order.display());
    }
}

/// Whether somebody chose a linker. Rust's own and GNU's read the script; gold and mold do not.
fn is_linker_chosen() -> bool {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    env::var_os("RUSTC_LINKER").is_some() || ["fuse-ld", "linker"].iter().any(|word| flags.contains(word))
}

/// Whether the program is for the kind of machine that builds it: then it is this glibc that counts. Linkers of other
/// architectures cannot pack.
fn is_native_glibc() -> bool {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    env::var("HOST").ok() == env::var("TARGET").ok()
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64")
}

/// The version of this machine's glibc, such as `glibc 2.36` tells it.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
