//! NaN in data frames is a missing value, as it is to the software that wrote them.

use std::ffi::OsStr;

use crate::support::{HEPFS, Mounted};
use crate::{checkout, script};

#[test]
fn nan_of_data_frames_is_missing_to_every_reader() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&OsStr], mounted: &Mounted| match script("missing_nan", arguments) {
        Ok(_) => {}
        Err(said) => panic!("{said}\nerrors: {}", mounted.text(".hepfs/errors")),
    };
    script("missing_nan", ["write".as_ref(), folder.path().as_os_str()]).unwrap();
    let mounted = Mounted::new(&[folder.path()], &[]);
    run(&["check".as_ref(), folder.path().as_ref(), mounted.path().as_ref(), HEPFS.as_ref()], &mounted);
    let (null, value) =
        (Mounted::new(&[folder.path()], &["--nan", "null"]), Mounted::new(&[folder.path()], &["--nan=value"]));
    run(&["kinds".as_ref(), folder.path().as_ref(), null.path().as_ref(), value.path().as_ref()], &null);
}

#[test]
fn pages_with_and_without_nan_are_right_however_values_are_stored() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pages.h5");
    script("missing_nan", ["pages".as_ref(), file.as_os_str()]).unwrap();
    // The second has room for few pages, and makes them again.
    for options in [&[][..], &["--cache-size=8M"]] {
        let mounted = Mounted::new(&[&file], options);
        let arguments = ["read".as_ref(), file.as_os_str(), mounted.path().as_os_str()];
        script("missing_nan", arguments).unwrap_or_else(|said| panic!("{said}"));
    }
}

#[test]
fn columns_of_frames_have_as_many_nulls_as_pandas_finds() {
    let mounted = Mounted::new(&[&checkout("tests/data/pandas3.h5")], &[]);
    let expected = checkout("tests/data/pandas3.expected.json");
    let arguments = ["frames".as_ref(), expected.as_os_str(), mounted.path().as_os_str()];
    script("missing_nan", arguments).unwrap_or_else(|said| panic!("{said}"));
}
