//! Random tables of NWB, 10x Genomics, Loom, NeXus and vaex through a real mount, against what was written:
//! `scripts/check/families`.

use crate::support::{HEPFS, run_within};
use crate::{LIMIT, checkout, python};

/// The seeds are fixed; the script goes on for as long as one likes, and over a corpus of files by others.
#[test]
fn random_tables_are_what_was_written() {
    let mut script = python();
    script.arg(checkout("scripts/check/families")).args(["--seed", "1", "--count", "3", "--hepfs", HEPFS]);
    let done = run_within(LIMIT, &mut script);
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success() && said.contains("3 seeds, 0 wrong"), "{said}");
}
