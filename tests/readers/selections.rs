//! Selections of random tables, other ones at each run, against `scripts/selection_fixtures.py`.

#[path = "../support/selections.rs"]
mod check;

use std::process::Command;
use std::time::SystemTime;

use crate::support::run_within;
use crate::{LIMIT, checkout, python};

#[test]
fn selections_of_random_tables_hold_the_rows_that_python_finds() {
    let folder = tempfile::tempdir().unwrap();
    let given = std::env::var("HEPFS_TEST_SEED").ok().map(|seed| seed.parse().unwrap());
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let seed: u64 = given.unwrap_or(now);
    println!("HEPFS_TEST_SEED={seed}");
    let mut script = Command::new(python());
    script.arg(checkout("scripts/selection_fixtures.py")).args(["--seed", &seed.to_string(), "--queries", "30"]);
    let made = run_within(LIMIT, script.arg(folder.path()));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    check::check(folder.path());
}
