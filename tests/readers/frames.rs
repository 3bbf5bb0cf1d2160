//! Frames of pandas and AnnData come back through Parquet and Arrow as they went into the HDF5 file.

use std::path::Path;

use crate::support::Mounted;
use crate::{checkout, script};

#[test]
fn frames_have_their_names_and_types_again() {
    compare("tests/data/pandas3_names.h5", &checkout("tests/data/pandas3_names.frames.json"));
}

#[test]
fn masked_integers_and_booleans_stay_such() {
    let folder = tempfile::tempdir().unwrap();
    let expected = folder.path().join("expected.json");
    // As `anndata.read_h5ad` gives them; the frame has other columns, too.
    std::fs::write(&expected, r#"{"/obs": {"labels": ["barcode"], "of": {"count": "Int32", "passed": "boolean"}}}"#)
        .unwrap();
    compare("tests/data/anndata.h5", &expected);
}

fn compare(file: &str, expected: &Path) {
    let mounted = Mounted::new(&[&checkout(file)], &[]);
    match script("frames", [expected.as_os_str(), mounted.path().as_os_str()]) {
        Ok(said) => print!("{said}"),
        Err(said) => panic!("{said}\nerrors: {}", mounted.text(".hepfs/errors")),
    }
}
