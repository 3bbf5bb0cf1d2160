//! Search indexes that hepfs builds, checked against the specification by h5py and NumPy; and files whose writer died,
//! as h5py finds them.

use std::ffi::OsStr;
use std::path::Path;

use crate::script;
use crate::support::{HEPFS, hepfs};

const COLUMNS: [&str; 12] =
    ["ts", "energy", "nan_fill", "code", "big", "name", "long_name", "hit", "kind", "opaque", "run", "half"];
const KINDS: [(&str, &str); 4] =
    [("minmax", "CHUNK_MINMAX"), ("sorted", "SORTED_ROWS"), ("bitmap", "BITMAP"), ("bloom", "CHUNK_BLOOM")];

#[test]
fn indexes_are_what_the_rules_say() {
    let folder = tempfile::tempdir().unwrap();
    script("index_build", [OsStr::new("make"), folder.path().as_os_str()]).unwrap();
    // Every column and kind in one file, two columns in the others.
    for (name, columns) in [
        ("old", &COLUMNS[..]),
        ("latest", &COLUMNS[1..7]),
        ("tail", &COLUMNS[1..9]),
        ("april", &COLUMNS[1..7]),
        ("empty", &COLUMNS[5..7]),
    ] {
        let path = folder.path().join(name).with_extension("h5");
        let place = format!("{}:run", path.display());
        let columns_given = columns.join(",");
        let built = hepfs(
            ["index", "build", &place, "--column", &columns_given, "--kind", "minmax,sorted,bitmap,bloom"]
                .into_iter()
                .chain(["--cache-folder", "none"])
                .map(OsStr::new),
        );
        assert!(built.status.success(), "{name}: {}", String::from_utf8_lossy(&built.stderr));
        let pairs = columns.iter().flat_map(|column| KINDS.map(|(_, kind)| [kind, *column])).flatten();
        let arguments = [path.to_str().unwrap(), "run"].into_iter().chain(pairs);
        script("check_indexes", arguments).unwrap_or_else(|said| panic!("{name}: {said}"));
    }
}

#[test]
fn a_writer_that_dies_leaves_a_whole_file() {
    if !cfg!(debug_assertions) {
        // An optimised program cannot be told to die.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let arguments = [OsStr::new("crash"), OsStr::new(HEPFS), Path::as_os_str(folder.path())];
    print!("{}", script("index_build", arguments).unwrap_or_else(|said| panic!("{said}")));
}
