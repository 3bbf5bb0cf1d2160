//! Random groups against the rule written a second time, and series of groups as one table: `scripts/check/shape`.

use crate::support::{HEPFS, Mounted, run_within};
use crate::{LIMIT, checkout, python, script};

/// The seeds are fixed; the script goes on for as long as one likes.
#[test]
fn groups_are_tables_where_the_rule_says_so() {
    let mut script = python();
    script.arg(checkout("scripts/check/shape")).args(["--seed", "1", "--count", "8", "--hepfs", HEPFS]);
    let done = run_within(LIMIT, &mut script);
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success() && said.contains("8 files, 0 wrong"), "{said}");
}

/// A column of durations in the table of each frame is one in the table of all.
#[test]
fn the_table_of_several_frames_has_the_types_of_each() {
    let folder = tempfile::tempdir().unwrap();
    let pandas = checkout("tests/data/pandas3.h5");
    script("siblings", ["write".as_ref(), folder.path().as_os_str(), pandas.as_os_str()]).unwrap();
    let mounted = Mounted::new(&[folder.path()], &[]);
    script("siblings", ["check".as_ref(), folder.path().as_os_str(), mounted.path().as_os_str()])
        .unwrap_or_else(|said| panic!("{said}"));
}
