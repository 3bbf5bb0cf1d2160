//! netCDF-4: other software finds in a mount what xarray makes of the same files.

use std::ffi::OsStr;

use crate::support::{HEPFS, Mounted};
use crate::{checkout, script};

#[test]
fn readers_find_what_xarray_makes_of_variables() {
    let files = ["netcdf", "netcdf_random"].map(|name| checkout("tests/data").join(name));
    let sources = files.each_ref().map(|file| file.with_extension("h5"));
    let mounted = Mounted::new(&sources.each_ref().map(|source| source.as_path()), &[]);
    let expected = files.map(|file| file.with_extension("expected.json").into_os_string());
    match script("netcdf", [mounted.path().as_os_str().to_owned()].into_iter().chain(expected)) {
        Ok(said) => print!("{said}"),
        Err(said) => panic!("{said}\nerrors: {}", mounted.text(".hepfs/errors")),
    }
}

/// Runs a script that mounts by itself.
fn runs(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    match script(name, [OsStr::new(HEPFS), folder.path().as_os_str()]) {
        Ok(said) => print!("{said}"),
        Err(said) => panic!("{said}"),
    }
}

#[test]
fn what_lies_outside_of_valid_ranges_is_found() {
    runs("netcdf_ranges");
}

#[test]
fn packed_numbers_by_their_codes_are_what_numpy_computes() {
    runs("netcdf_codes");
}

#[test]
fn grids_are_tables_for_who_asks() {
    runs("netcdf_grids");
}
