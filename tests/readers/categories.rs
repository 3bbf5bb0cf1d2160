//! Categories keep their labels, in their order, in what is exported and what is asked: by pandas, polars and DuckDB.

use std::ffi::OsStr;

use crate::support::HEPFS;
use crate::{checkout, script};

#[test]
fn categories_are_whole_and_in_their_order() {
    run("order", &[]);
}

/// What `pandas.read_hdf` gives of the fixtures, as far as pandas keeps it in a Parquet file of its own.
#[test]
fn exported_frames_are_those_of_pandas() {
    run("frames", &[checkout("tests/data/pandas3.frames.json").as_os_str()]);
}

fn run(what: &str, more: &[&OsStr]) {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [what.as_ref(), HEPFS.as_ref(), folder.path().as_os_str()];
    match script("categories", arguments.into_iter().chain(more.iter().copied())) {
        Ok(said) => print!("{said}"),
        Err(said) => panic!("{said}"),
    }
}
