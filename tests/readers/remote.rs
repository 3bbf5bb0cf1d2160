//! Files on a network: how many requests and bytes a mount takes, beside what they may be.

use std::path::Path;

use crate::support::run_within;
use crate::{LIMIT, checkout, python};

/// The files are made here; the server answers late, as a network does.
#[test]
fn requests_and_bytes_stay_within_their_limits() {
    let hepfs = Path::new(env!("CARGO_BIN_EXE_hepfs"));
    let mut line = python();
    line.arg(checkout("scripts/bench/remote")).arg("--hepfs").arg(hepfs).args(["--sample", "--check"]);
    let output = run_within(LIMIT, &mut line);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.lines().filter(|line| line.starts_with("hepfs: ")).count() == 10, "{said}");
}
