//! Selections of random tables, other ones at each run, against `scripts/fixtures/selection.py`.

#[path = "../support/selections.rs"]
mod check;

use std::time::SystemTime;

use crate::support::{Mounted, must, run_within};
use crate::{LIMIT, checkout, python};

#[test]
fn selections_of_random_tables_hold_the_rows_that_python_finds() {
    let folder = tempfile::tempdir().unwrap();
    let given = std::env::var("HEPFS_TEST_SEED").ok().map(|seed| seed.parse().unwrap());
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let seed: u64 = given.unwrap_or(now);
    println!("HEPFS_TEST_SEED={seed}");
    let mut script = python();
    script.args(["-m", "fixtures.selection", "--seed", &seed.to_string(), "--queries", "30"]);
    let made = run_within(LIMIT, script.arg(folder.path()));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    check::check(folder.path());
}

/// By DuckDB and Python, also once selections were looked up.
#[test]
fn a_glob_of_every_directory_finds_each_table_once() {
    let mounted = Mounted::new(&[&checkout("tests/data/selections.h5")], &[]);
    assert!(!mounted.read("t3/where/color/eq/red/table.parquet").is_empty());
    let script = "import duckdb, glob, sys\n\
                  root = sys.argv[1] + '/**/table.parquet'\n\
                  for path in glob.glob(root, recursive=True): print('glob', path)\n\
                  for path, in duckdb.sql(f\"from glob('{root}')\").fetchall(): print('duckdb', path)";
    let found = run_within(LIMIT, python().args(["-c", script]).arg(mounted.path()));
    let found = String::from_utf8(found.stdout).unwrap();
    let tables = must("find", [mounted.path().as_os_str(), "-name".as_ref(), "table.parquet".as_ref()]);
    for program in ["glob", "duckdb"] {
        let mut found: Vec<&str> =
            found.lines().filter_map(|line| line.strip_prefix(program)?.strip_prefix(' ')).collect();
        let mut tables: Vec<&str> = tables.lines().collect();
        found.sort_unstable();
        tables.sort_unstable();
        assert!(found == tables && tables.len() > 5, "{program}: {found:?}, not {tables:?}");
    }
    assert_eq!(mounted.text(".hepfs/errors"), "");
}
