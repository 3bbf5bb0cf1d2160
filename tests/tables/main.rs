//! Committed files, shown by real mounts and asked by the library, held against what other software says of them.

#[path = "../support/selections.rs"]
mod check;
#[path = "../support/mod.rs"]
mod support;

mod anndata;
mod arrays;
mod compound;
mod every_file;
mod families;
mod fixtures;
mod hostile_groups;
mod lh5;
mod netcdf;
mod search_indexes;
mod selections;
mod shape;
mod times;
mod trevni;
mod versions;

use std::path::{Path, PathBuf};

/// A committed test file.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}
