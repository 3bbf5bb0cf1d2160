//! Lengths of texts and lists that are found without the values: what other software reads, and that sizes are final.

use crate::script;
use crate::support::Mounted;

#[test]
fn sizes_stand_and_values_are_those_of_h5py() {
    check("lengths");
}

#[test]
fn texts_of_fixed_width_are_those_of_h5py_whatever_their_bytes() {
    check("fixed_texts");
}

fn check(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("lengths.h5");
    script(name, ["write".as_ref(), source.as_os_str()]).unwrap_or_else(|said| panic!("{said}"));
    let mounted = Mounted::new(&[&source], &[]);
    match script(name, ["check".as_ref(), source.as_os_str(), mounted.path().as_os_str()]) {
        Ok(said) => print!("{said}"),
        Err(said) => panic!("{said}\nerrors: {}", mounted.text(".hepfs/errors")),
    }
}
