//! Fill values that attributes state, in tables of any kind.

use serde_json::Value;

use crate::support::{Mounted, hepfs};
use crate::{checkout, script};

#[test]
fn stated_fill_values_mean_missing_in_tables_of_any_kind() {
    let folder = tempfile::tempdir().unwrap();
    let pandas = checkout("tests/data/pandas2.h5");
    script("stated", ["write".as_ref(), folder.path().as_os_str(), pandas.as_os_str()]).unwrap();
    let mounted = Mounted::new(&[folder.path()], &[]);
    match script("stated", ["check".as_ref(), folder.path().as_os_str(), mounted.path().as_os_str()]) {
        Ok(said) => print!("{said}"),
        Err(said) => panic!("{said}\nerrors: {}", mounted.text(".hepfs/errors")),
    }
}

/// A fill value that is no value of the data is told, and how many values equal it once it is rounded.
#[test]
fn what_no_value_can_be_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let pandas = checkout("tests/data/pandas2.h5");
    script("stated", ["write".as_ref(), folder.path().as_os_str(), pandas.as_os_str()]).unwrap();
    let file = folder.path().join("types.h5").display().to_string();
    let told = |more: &[&str]| -> Vec<(String, String, Option<u64>, Option<u64>)> {
        let output = hepfs(["check", "--json", "--cache-folder", "none", &file].iter().chain(more));
        let lines = String::from_utf8(output.stdout).unwrap();
        let findings = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let of_fills = findings.filter(|finding| finding["id"] == "values/fill-value");
        let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
        let of = |finding: Value| {
            let number = |key: &str| finding[key].as_u64();
            (text(&finding, "path"), text(&finding, "found"), number("rows"), number("first_row"))
        };
        let mut told: Vec<_> = of_fills.map(of).collect();
        told.sort();
        told
    };
    let float = "_FillValue is 1e20 of type Float64, which no Float32 is: nothing equals it";
    let whole = "_FillValue is 2.5 of type Float64, which no Int32 is: nothing equals it";
    let rounded =
        "20 rows equal it once it is rounded to 1.0000000200408773e20, and are shown as that; the first is row 1";
    let broken = "10 rows equal it once it is rounded to 2, and are shown as that; the first is row 2";
    let mut expected = Vec::new();
    for (kind, is_field) in [("compound", true), ("hep001", false), ("shape", false)] {
        let mut add = |name: &str, found: &str, rows: Option<(u64, u64)>| {
            let (path, found) = match is_field {
                true => (format!("/{kind}"), format!("{name}: {found}")),
                false => (format!("/{kind}/{name}"), found.to_owned()),
            };
            expected.push((path, found, rows.map(|rows| rows.0), rows.map(|rows| rows.1)));
        };
        add("broken", broken, Some((10, 2)));
        add("broken", whole, None);
        add("rounded", rounded, Some((20, 1)));
        add("rounded", float, None);
        add("two", "_FillValue has 2 values", None);
    }
    expected.sort();
    assert_eq!(told(&[]), expected);
    // No value is read.
    expected.retain(|(_, _, rows, _)| rows.is_none());
    assert_eq!(told(&["--quick"]), expected);
    // A mount shows it as well.
    let mounted = Mounted::new(&[folder.path()], &[]);
    let findings = mounted.text("types.h5/hep001/metadata.json");
    assert!(findings.contains(float) && !findings.contains("once it is rounded"), "{findings}");
}

/// Values that a mask hides, of arrays item by item; units and descriptions of the lines of YAML beside the table.
#[test]
fn masked_tables_of_astropy_are_what_astropy_reads() {
    let mounted = Mounted::new(&[&checkout("tests/data/astropy.h5")], &[]);
    let read = checkout("tests/data/astropy.read.json");
    script("stated", ["astropy".as_ref(), read.as_os_str(), mounted.path().as_os_str()])
        .unwrap_or_else(|said| panic!("{said}\nerrors: {}", mounted.text(".hepfs/errors")));
}
