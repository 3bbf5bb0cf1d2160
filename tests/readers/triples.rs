//! Sparse matrices of BIOM and MATLAB as tables of what they store, values of MATLAB by themselves, and particles.

use crate::script;
use crate::support::Mounted;

/// What a script writes is what it finds in a mount.
fn comes_back(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    script(name, ["write".as_ref(), folder.path().as_os_str()]).unwrap();
    let mounted = Mounted::new(&[folder.path()], &[]);
    match script(name, ["check".as_ref(), folder.path().as_os_str(), mounted.path().as_os_str()]) {
        Ok(said) => print!("{said}"),
        Err(said) => panic!("{said}\nerrors: {}", mounted.text(".hepfs/errors")),
    }
}

#[test]
fn triples_make_the_matrix_again() {
    comes_back("triples");
}

#[test]
fn matlab_has_texts_booleans_and_values_without_elements() {
    comes_back("matlab");
}

#[test]
fn booleans_and_names_of_lh5_stand_by_themselves() {
    comes_back("lh5_values");
}

#[test]
fn data_frames_of_r_have_factors_and_logicals() {
    comes_back("h5seurat");
}

#[test]
fn long_doubles_are_the_nearest_numbers() {
    comes_back("long_double");
}

#[test]
fn particles_without_a_group_of_species_are_one() {
    comes_back("openpmd");
}
