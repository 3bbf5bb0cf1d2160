//! Files that `hepfs import` writes: h5py reads them, and a mount shows what pyarrow put in.

use std::process::Command;
use std::time::Duration;

use super::{checkout, python};
use crate::support::{HEPFS, run_within};

/// All shapes of some lengths; `scripts/check-import` alone has the long ones.
#[test]
fn what_is_imported_is_what_a_mount_shows() {
    let mut check = Command::new(python());
    check.arg(checkout("scripts/check-import")).args(["--hepfs", HEPFS, "--rows", "0,1,1000"]);
    let done = run_within(Duration::from_secs(300), &mut check);
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(said.lines().filter(|line| line.ends_with("equal")).count(), 18, "{said}");
}

/// Orders against Python's stable sort, types against pyarrow's casts, codecs against h5py.
#[test]
fn options_of_an_import_do_what_python_and_pyarrow_do() {
    let mut check = Command::new(python());
    check.arg(checkout("scripts/check-import-options")).args(["--hepfs", HEPFS, "--rows", "4000"]);
    let done = run_within(Duration::from_secs(300), &mut check);
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(said.lines().filter(|line| line.ends_with("equal")).count(), 41, "{said}");
}
