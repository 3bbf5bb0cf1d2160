//! Exports libhdf5's functions from the program, replaces one of them, compresses its debug information, and tells the
//! program the versions of codecs, and an optimised one its commit.
//!
//! Filter plugins call back into the library that loads them (`H5Tget_order`, `H5Pget_chunk`, …) and look for it among
//! the process's dynamic symbols. Ours is linked statically, so without this they find nothing, and fail.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // zig's linker, which packages are linked with, has no such choice: it exports all or nothing.
        let is_zig = std::env::var("RUSTC_LINKER").is_ok_and(|linker| linker.contains("zigcc"));
        let exported = if is_zig { "-rdynamic" } else { "-Wl,--export-dynamic-symbol=H5*" };
        println!("cargo:rustc-link-arg-bins={exported}");
        // See src/h5/worker/driver/space.rs.
        println!("cargo:rustc-link-arg-bins=-Wl,--wrap=H5MF_xfree");
        // A form that the standard library reads for backtraces; of Zstandard it makes nothing.
        if is_release() {
            println!("cargo:rustc-link-arg-bins=-Wl,--compress-debug-sections=zlib");
        }
    }
    // Codecs that do not tell their versions themselves.
    println!("cargo:rerun-if-changed=Cargo.lock");
    let lock = std::fs::read_to_string("Cargo.lock").unwrap_or_default();
    for name in ["libdeflate-sys", "zlib-rs", "libbz2-rs-sys"] {
        let entry = lock.split_once(&format!("name = \"{name}\"\nversion = \""));
        if let Some((version, _)) = entry.and_then(|(_, rest)| rest.split_once('"')) {
            println!("cargo:rustc-env=HEPFS_{}={version}", name.to_uppercase().replace('-', "_"));
        }
    }
    // Everything is compiled anew when the commit changes, so a debug build goes without.
    if is_release() && Path::new(".git").exists() {
        if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
            println!("cargo:rustc-env=HEPFS_COMMIT={commit}");
        }
        // Gets a line whenever HEAD moves.
        if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists()) {
            println!("cargo:rerun-if-changed={log}");
        }
    }
}

fn is_release() -> bool {
    std::env::var("PROFILE").as_deref() == Ok("release")
}

/// Runs git; `None` without a program of that name, or a checkout.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
