//! The Python module of the wheel, with pandas, polars and DuckDB behind it: `scripts/check/python-module`.

use crate::support::{HEPFS, run_within};
use crate::{LIMIT, checkout, python};

#[test]
fn the_python_module_mounts_exports_and_clears_up() {
    let mut script = python();
    script.arg(checkout("scripts/check/python-module")).args(["--hepfs", HEPFS]);
    let done = run_within(LIMIT, &mut script);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    // Without namespaces, one test cannot hide /dev/fuse.
    print!("{said}");
}
