//! Columns of times: other software finds the instants that NumPy makes of what h5py stored.

use crate::script;

#[test]
fn readers_find_instants() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [std::path::Path::new(env!("CARGO_BIN_EXE_hepfs")), folder.path()];
    match script("times", arguments) {
        Ok(said) => print!("{said}"),
        Err(said) => panic!("{said}"),
    }
}
