//! A verified bitmap makes Bloom filters of labels: they rule out labels that h5py does not find, and readers count as
//! many rows of a label as h5py.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use crate::script;
use crate::support::{HEPFS, Mounted, must};

#[test]
fn filters_rule_out_what_does_not_occur() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("run.h5");
    script("label_filters", [OsStr::new("write"), source.as_os_str()]).unwrap_or_else(|said| panic!("{said}"));
    let place = format!("{}:t", source.display());
    must(
        HEPFS,
        ["index", "build", &place, "--column", "byte,wide,big,twice", "--kind", "bitmap", "--cache-folder=none"],
    );
    // A file that has just been written may be written again within the same tick of its times.
    std::thread::sleep(Duration::from_millis(200));
    let cache = format!("--cache-folder={}", folder.path().join("cache").display());
    let unknown = lengths(&source, &[&cache, "--indexes=ignore"], "without");
    must(HEPFS, [OsStr::new("index"), OsStr::new("verify"), source.as_os_str(), OsStr::new(&cache)]);
    assert_eq!(lengths(&source, &[&cache], "with"), unknown);
    assert_eq!(lengths(&source, &[&cache, "--indexes=ignore"], "without"), unknown);
    assert_eq!(lengths(&source, &[&cache, "--parquet-stats=off"], "without"), unknown);
}

/// Bytes of the Parquet files of the table and of a column; checks their filters, and the answers of readers.
fn lengths(source: &Path, arguments: &[&str], filters: &str) -> [u64; 2] {
    let mounted = Mounted::new(&[source], arguments);
    let paths = ["t/table.parquet", "t/columns/wide.parquet"].map(|path| mounted.join(path));
    let check = [OsStr::new("check"), source.as_os_str(), paths[0].as_os_str(), OsStr::new(filters)];
    script("label_filters", check).unwrap_or_else(|said| panic!("{arguments:?}: {said}"));
    paths.map(|path| path.metadata().unwrap().len())
}
