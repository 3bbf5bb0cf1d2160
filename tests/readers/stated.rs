//! Fill values that attributes state, in tables of any kind.

use crate::support::Mounted;
use crate::{checkout, script};

#[test]
fn stated_fill_values_mean_missing_in_tables_of_any_kind() {
    let folder = tempfile::tempdir().unwrap();
    let pandas = checkout("tests/data/pandas2.h5");
    script("stated.py", ["write".as_ref(), folder.path().as_os_str(), pandas.as_os_str()]).unwrap();
    let mounted = Mounted::new(&[folder.path()], &[]);
    match script("stated.py", ["check".as_ref(), folder.path().as_os_str(), mounted.path().as_os_str()]) {
        Ok(said) => print!("{said}"),
        Err(said) => panic!("{said}\nerrors: {}", mounted.text(".hepfs/errors")),
    }
}
