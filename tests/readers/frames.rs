//! Frames of pandas come back through Parquet and Arrow as they went into the HDF5 file.

use crate::support::Mounted;
use crate::{checkout, script};

#[test]
fn frames_have_their_names_and_types_again() {
    let mounted = Mounted::new(&[&checkout("tests/data/pandas3_names.h5")], &[]);
    let expected = checkout("tests/data/pandas3_names.frames.json");
    match script("frames.py", [expected.as_os_str(), mounted.path().as_os_str()]) {
        Ok(said) => print!("{said}"),
        Err(said) => panic!("{said}\nerrors: {}", mounted.text(".hepfs/errors")),
    }
}
