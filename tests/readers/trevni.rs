//! Random Trevni files through a real mount, against what was written: `scripts/check/trevni`.

use crate::support::{HEPFS, run_within};
use crate::{LIMIT, checkout, python};

/// The seeds are fixed; the script goes on for as long as one likes.
#[test]
fn random_files_are_what_was_written() {
    let mut script = python();
    script.arg(checkout("scripts/check/trevni")).args(["--seed", "1", "--count", "12", "--hepfs", HEPFS]);
    let done = run_within(LIMIT, &mut script);
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success() && said.contains("12 seeds, 0 wrong"), "{said}");
}
