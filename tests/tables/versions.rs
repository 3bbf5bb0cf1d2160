//! A HEP001 table in the versions of a file that `versioned-hdf5` wrote, whose library sets fill values by itself.

use std::fs;

use serde_json::Value;

use crate::data;
use crate::support::Mounted;

/// What h5py reads: `x` 0, 1, 2 and 0, 1, 2.5, 0; `n` 0, −1, 7 and 0, −1, 7, 0; `marked` has the user's own fill, −9.
#[test]
fn zeros_of_a_version_are_values() {
    let mounted = Mounted::new(&[&data("versioned_table.h5")], &[]);
    let read =
        |version: &str| fs::read_to_string(mounted.join(format!("_version_data/versions/{version}/t/table.csv")));
    assert_eq!(read("r0").unwrap(), "x,n,marked\n0.0,0,0\n1.0,-1,\n2.0,7,3\n");
    assert_eq!(read("r1").unwrap(), "x,n,marked\n0.0,0,0\n1.0,-1,\n2.5,7,3\n0.0,0,4\n");
    let metadata = fs::read(mounted.join("_version_data/versions/r1/t/metadata.json")).unwrap();
    let metadata: Value = serde_json::from_slice(&metadata).unwrap();
    let findings = metadata["findings"].as_array().unwrap();
    let found: Vec<&str> = findings.iter().filter_map(|finding| finding["path"].as_str()).collect();
    // Once a column.
    assert_eq!(found, ["/_version_data/versions/r1/t/n", "/_version_data/versions/r1/t/x"]);
    assert!(findings.iter().all(|finding| finding["rule"].as_str().unwrap().starts_with("Versioned HDF5")));
    let nullable = |name: &str| {
        let columns = metadata["columns"].as_array().unwrap();
        columns.iter().find(|column| column["name"] == name).unwrap()["nullable"] == true
    };
    assert_eq!(["x", "n", "marked"].map(nullable), [false, false, true]);
}
