//! Sparse matrices of BIOM and MATLAB as tables of what they store.

use crate::script;
use crate::support::Mounted;

#[test]
fn triples_make_the_matrix_again() {
    let folder = tempfile::tempdir().unwrap();
    script("triples.py", ["write".as_ref(), folder.path().as_os_str()]).unwrap();
    let mounted = Mounted::new(&[folder.path()], &[]);
    match script("triples.py", ["check".as_ref(), folder.path().as_os_str(), mounted.path().as_os_str()]) {
        Ok(said) => print!("{said}"),
        Err(said) => panic!("{said}\nerrors: {}", mounted.text(".hepfs/errors")),
    }
}
