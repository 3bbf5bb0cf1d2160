//! Software that reads over a network, against `hepfs serve` beside a mount of the same file.

use crate::served::Served;
use crate::support::Mounted;
use crate::{checkout, script};

/// Those that `scripts/setup --tests` brings; `cargo xtask check serve` runs all.
const READERS: [&str; 3] = ["pyarrow S3", "polars S3", "pandas HTTP"];

#[test]
fn other_software_reads_what_is_served_as_from_a_mount() {
    let source = checkout("tests/data/seed_11_1.h5");
    let (mount, served) = (Mounted::new(&[&source], &[]), Served::new(&[&source], &[]));
    let url = format!("http://{}", served.address);
    let place = [mount.path().to_str().unwrap(), &url, &served.secret];
    let said = script("served", place.iter().chain(&READERS)).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(said.lines().count(), READERS.len(), "{said}");
}
