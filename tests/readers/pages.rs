//! The page of a table, parsed by another program.

use std::ffi::OsStr;

use crate::script;
use crate::support::HEPFS;

#[test]
fn pictures_of_a_page_show_what_numpy_counts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kinds.h5");
    let run = |arguments: &[&OsStr]| script("pages", arguments).unwrap_or_else(|said| panic!("{said}"));
    run(&["write".as_ref(), file.as_ref()]);
    run(&["numbers".as_ref(), file.as_ref(), HEPFS.as_ref()]);
}

#[test]
fn names_of_a_hostile_file_are_found_again_on_its_pages() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hostile.h5");
    let arguments: [&OsStr; 3] = ["hostile".as_ref(), file.as_ref(), HEPFS.as_ref()];
    script("pages", arguments).unwrap_or_else(|said| panic!("{said}"));
}
