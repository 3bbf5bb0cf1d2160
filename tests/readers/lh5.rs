//! Random tables of LEGEND HDF5 through a real mount, against what was written: `scripts/check/lh5`.

use crate::support::{HEPFS, run_within};
use crate::{LIMIT, checkout, python};

/// The seeds are fixed; the script goes on for as long as one likes, and with legend-lh5io where that is installed.
#[test]
fn random_tables_are_what_was_written() {
    let mut script = python();
    script.arg(checkout("scripts/check/lh5")).args(["--seed", "1", "--count", "6", "--hepfs", HEPFS]);
    let done = run_within(LIMIT, &mut script);
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success() && said.contains("6 seeds, 0 wrong"), "{said}");
}
