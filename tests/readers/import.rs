//! Files that `hepfs import` writes: h5py reads them, and a mount shows what pyarrow put in.

use std::time::Duration;

use super::{checkout, python};
use crate::support::{HEPFS, run_within};

/// Runs the script; as many tables must be what they were.
fn equal(tables: usize, arguments: &[&str]) {
    let mut check = python();
    check.arg(checkout("scripts/check/import")).args(["--hepfs", HEPFS]).args(arguments);
    let done = run_within(Duration::from_secs(300), &mut check);
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(said.lines().filter(|line| line.ends_with("equal")).count(), tables, "{said}");
}

/// All shapes of some lengths, some of one that passes a chunk; `scripts/check/import` alone has all long ones.
#[test]
fn what_is_imported_is_what_a_mount_shows() {
    equal(18, &["--rows", "0,1,1000"]);
    let shapes = "int16_full,bool,string,string_nul,binary,fixed_binary,duration,dictionary,list_string";
    equal(6, &["--rows", "65537", "--shapes", shapes]);
}

#[test]
fn what_is_appended_is_what_a_mount_shows() {
    equal(6, &["--rows", "1000", "--append"]);
}

/// Orders against Python's stable sort, types against pyarrow's casts, codecs against h5py.
#[test]
fn options_of_an_import_do_what_python_and_pyarrow_do() {
    let mut check = python();
    check.arg(checkout("scripts/check/import-options")).args(["--hepfs", HEPFS, "--rows", "4000"]);
    let done = run_within(Duration::from_secs(300), &mut check);
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(said.lines().filter(|line| line.ends_with("equal")).count(), 47, "{said}");
}
