//! Tables of random compounds through a real mount, against what NumPy says of their bytes: `scripts/check/records`.

use crate::support::{HEPFS, run_within};
use crate::{LIMIT, checkout, python};

/// The seeds are fixed; the script goes on for as long as one likes.
#[test]
fn random_compounds_are_what_numpy_says() {
    let mut script = python();
    script.arg(checkout("scripts/check/records")).args(["--seed", "8", "--count", "6", "--hepfs", HEPFS]);
    let done = run_within(LIMIT, &mut script);
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success() && said.contains("6 seeds"), "{said}");
}
