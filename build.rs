//! Exports libhdf5's functions from the program, replaces one of them, and compresses its debug information.
//!
//! Filter plugins call back into the library that loads them (`H5Tget_order`, `H5Pget_chunk`, …) and look for it among
//! the process's dynamic symbols. Ours is linked statically, so without this they find nothing, and fail.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=H5*");
        // See src/h5/worker/driver/space.rs.
        println!("cargo:rustc-link-arg-bins=-Wl,--wrap=H5MF_xfree");
        // A form that the standard library reads for backtraces; of Zstandard it makes nothing.
        if std::env::var("PROFILE").as_deref() == Ok("release") {
            println!("cargo:rustc-link-arg-bins=-Wl,--compress-debug-sections=zlib");
        }
    }
}
