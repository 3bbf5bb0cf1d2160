//! Files that `hepfs export` writes: other software finds in them every value that h5py stored.

use std::ffi::OsStr;

use super::{fixtures, script};
use crate::support::hepfs;

/// Tables of so many rows; those with files of single columns beside them are read through mounts alone.
const ROWS: [&str; 7] = ["0", "1", "65536", "131072", "300001", "big", "pytables"];

#[test]
fn readers_find_every_value_of_what_is_exported() {
    let (fixtures, folder) = (fixtures(), tempfile::tempdir().unwrap());
    for entry in std::fs::read_dir(fixtures).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some((file, table)) = name.strip_suffix(".arrow").and_then(|name| name.split_once('.')) else { continue };
        if !ROWS.contains(&file.trim_start_matches("rows_")) {
            continue;
        }
        let out = folder.path().join(format!("{file}.h5")).join(table);
        std::fs::create_dir_all(&out).unwrap();
        let source = format!("{}:{table}", fixtures.join(format!("{file}.h5")).display());
        let out = out.join("table.parquet").into_os_string();
        let line = ["export", &source, "--cache-folder=none", "-o"].map(OsStr::new);
        let done = hepfs(line.into_iter().chain([out.as_os_str()]));
        assert!(done.status.success(), "{source}: {}", String::from_utf8_lossy(&done.stderr));
    }
    for reader in ["pyarrow", "DuckDB", "polars"] {
        let paths = [OsStr::new("--fixtures"), fixtures.as_os_str(), OsStr::new("--mount"), folder.path().as_os_str()];
        let wanted = [OsStr::new("--reader"), OsStr::new(reader)].into_iter().chain(paths);
        match script("check.py", wanted.chain([OsStr::new("--rows")]).chain(ROWS.map(OsStr::new))) {
            Ok(said) => print!("{said}"),
            Err(said) => panic!("{reader}:\n{said}"),
        }
    }
}
