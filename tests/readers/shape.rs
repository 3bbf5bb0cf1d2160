//! Random groups against the rule written a second time, and series of groups as one table: `scripts/check-shape`.

use std::process::Command;

use crate::support::{HEPFS, run_within};
use crate::{LIMIT, checkout, python};

/// The seeds are fixed; the script goes on for as long as one likes.
#[test]
fn groups_are_tables_where_the_rule_says_so() {
    let mut script = Command::new(python());
    script.arg(checkout("scripts/check-shape")).args(["--seed", "1", "--count", "8", "--hepfs", HEPFS]);
    let done = run_within(LIMIT, &mut script);
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success() && said.contains("8 files, 0 wrong"), "{said}");
}
