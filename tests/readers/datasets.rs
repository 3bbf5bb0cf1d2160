//! Many files are one table: pyarrow, DuckDB, polars and pandas find in `.datasets` the rows that h5py finds in the
//! files, and which file each is of.

use std::ffi::OsStr;

use crate::script;
use crate::support::Mounted;

#[test]
fn readers_find_the_rows_of_many_files_as_one_table() {
    let folder = tempfile::tempdir().unwrap();
    script("datasets.py", [OsStr::new("write"), folder.path().as_os_str()]).unwrap_or_else(|said| panic!("{said}"));
    let mounted = Mounted::new(&[folder.path()], &[]);
    match script("datasets.py", [OsStr::new("check"), folder.path().as_os_str(), mounted.path().as_os_str()]) {
        Ok(said) => print!("{said}"),
        Err(said) => panic!("{said}\nerrors: {}", mounted.text(".hepfs/errors")),
    }
    let findings = mounted.text(".hepfs/findings");
    for said in [
        "it has a column \\\"extra\\\", which most files have not; the file is left out",
        "it has no column \\\"label\\\"; the file is left out",
        "\\\"number\\\" is Utf8, and Int64 elsewhere; the file is left out",
        "\\\"number\\\" is Int32, and is shown as Int64",
        "\\\"number\\\" is UInt32, and is shown as Int64",
    ] {
        assert_eq!(findings.matches(said).count(), 1, "{said}: {findings}");
    }
}
