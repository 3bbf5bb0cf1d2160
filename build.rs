//! Exports libhdf5's functions from the program.
//!
//! Filter plugins call back into the library that loads them (`H5Tget_order`, `H5Pget_chunk`, …) and look for it among
//! the process's dynamic symbols. Ours is linked statically, so without this they find nothing, and fail.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=H5*");
    }
}
