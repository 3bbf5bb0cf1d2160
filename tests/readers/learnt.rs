//! Reading a column in full teaches its statistics: the next mount shows them in its Parquet footers, and pyarrow finds
//! there what NumPy finds among the values that h5py reads.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use crate::script;
use crate::support::Mounted;

/// Stored in one run, so that nothing is decoded.
const UNFILTERED: &str = "plain";

#[test]
fn whatever_file_of_a_column_is_read_its_footer_is_true() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("run.h5");
    let said = script("learnt", [OsStr::new("write"), source.as_os_str()]).unwrap_or_else(|said| panic!("{said}"));
    let columns: Vec<&str> = said.lines().collect();
    // A file that has just been written may be written again within the same tick of its times.
    std::thread::sleep(Duration::from_millis(200));
    for (view, unknown) in [
        ("raw", &[UNFILTERED][..]),
        ("npy", &[UNFILTERED]),
        ("arrow", &[UNFILTERED]),
        ("parquet", &[UNFILTERED]),
        ("csv", &[]),
    ] {
        let cache = format!("--cache-folder={}", folder.path().join(view).display());
        let mounted = Mounted::new(&[&source], &[&cache]);
        check(&source, &mounted, &columns, view);
        for column in &columns {
            mounted.read(format!("t/columns/{column}.{view}"));
        }
        drop(mounted);
        check(&source, &Mounted::new(&[&source], &[&cache]), unknown, view);
    }
}

fn check(source: &Path, mounted: &Mounted, unknown: &[&str], view: &str) {
    let columns = mounted.join("t/columns");
    let arguments = [OsStr::new("check"), source.as_os_str(), columns.as_os_str(), OsStr::new("--unknown")];
    let arguments = arguments.into_iter().chain(unknown.iter().map(OsStr::new));
    script("learnt", arguments).unwrap_or_else(|said| panic!("after reading .{view}: {said}"));
}
