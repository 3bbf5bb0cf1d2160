//! Datasets that are tables by themselves: other software finds in `NAME.csv`, `NAME.parquet` and `NAME.arrow` what
//! h5py stored, missing values as nulls.

use crate::support::Mounted;
use crate::{checkout, script};

#[test]
fn readers_find_the_values_of_every_array() {
    let source = checkout("tests/data/arrays.h5");
    let mounted = Mounted::new(&[&source], &[]);
    match script("arrays", [source.as_path(), mounted.path()]) {
        Ok(said) => print!("{said}"),
        Err(said) => panic!("{said}\nerrors: {}", mounted.text(".hepfs/errors")),
    }
}
