//! Other software against real mounts: every value that pyarrow, DuckDB, polars, pandas, fastparquet, NumPy and the
//! commands of a shell find must be the one that h5py stored.
//!
//! In `scripts/hepfs_tools/reading`, `fixture.py` writes files and expected values, and `check.py` runs a reader. The
//! Python packages come from `scripts/setup --tests`. `HEPFS_TEST_READER=DuckDB` runs that reader alone. All readers
//! share a mount: bytes that one has read, others find in the page cache, as on a user's machine.

#[path = "../support/served.rs"]
#[allow(dead_code, reason = "`behaviour` uses all of it")]
mod served;
#[path = "../support/mod.rs"]
mod support;

mod arrays;
mod categories;
mod datasets;
mod export;
mod families;
mod frames;
mod images;
mod import;
mod index_build;
mod label_filters;
mod learnt;
mod lengths;
mod lh5;
mod missing_nan;
mod netcdf;
mod pages;
mod push_down;
mod python_module;
mod records;
mod remote;
mod rules;
mod selections;
mod serve;
mod shape;
mod stated;
mod times;
mod trevni;
mod triples;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use sha2::{Digest, Sha256};
use support::{Mounted, run_within};

/// All of a reader's files take some seconds; a busy machine may take much longer.
const LIMIT: Duration = Duration::from_secs(600);

/// The readers that must be there; `scripts/check/readers` knows more.
const READERS: [&str; 22] = [
    "fastparquet",
    "DuckDB",
    "pyarrow dataset",
    "polars",
    "pyarrow memory map",
    "polars Arrow",
    "pyarrow",
    "pyarrow in batches",
    "polars in memory",
    "pandas",
    "pyarrow dataset of Arrow",
    "pyarrow filter of Arrow",
    "RFC 4180",
    "pyarrow csv",
    "DuckDB csv",
    "polars csv",
    "pandas csv",
    "Python json",
    "DuckDB json",
    "polars json",
    "numpy mmap",
    "coreutils",
];

/// Other ways into the code of a reader listed above. They read the long tables of some types only: all of Parquet is
/// rendered anew for each reader.
const OTHER_WAYS: [&str; 6] = [
    "pyarrow",
    "pyarrow in batches",
    "polars in memory",
    "pandas",
    "pyarrow dataset of Arrow",
    "pyarrow filter of Arrow",
];
const FEWER_ROWS: [&str; 9] = ["0", "1", "1000", "65536", "131072", "300001", "big", "pandas3", "pytables"];

/// A path in this checkout.
fn checkout(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The Python that `scripts/setup --tests` made or found to have everything; it finds what the scripts share.
pub fn python() -> Command {
    let own = checkout(".tools/venv/bin/python3");
    let mut command = Command::new(if own.exists() { own } else { "python3".into() });
    command.env("PYTHONPATH", checkout("scripts"));
    command
}

/// Runs a module of `scripts/hepfs_tools/reading` that must succeed; returns its output.
pub fn script<S: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = S>) -> Result<String, String> {
    let mut line = vec!["-m".into(), OsString::from(format!("hepfs_tools.reading.{name}"))];
    line.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
    let output = run_within(LIMIT, python().args(line));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(said) } else { Err(format!("{said}{}", String::from_utf8_lossy(&output.stderr))) }
}

/// The folder of fixtures, written once for each state of the scripts that write it.
pub fn fixtures() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let mut digest = Sha256::new();
        for name in ["reading/fixture.py", "reading/columns.py", "reading/nested.py", "hep001/write.py"] {
            digest.update(std::fs::read(checkout("scripts/hepfs_tools").join(name)).unwrap());
        }
        for name in ["pandas3", "pytables"] {
            digest.update(std::fs::read(checkout("tests/data").join(name).with_extension("h5")).unwrap());
        }
        let hash: String = digest.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readers");
        let folder = parent.join(hash);
        if !folder.join("complete").exists() {
            // Those of older scripts, and what an interrupted run left, are of no more use.
            std::fs::remove_dir_all(&parent).ok();
            script("fixture", [&folder]).unwrap_or_else(|said| panic!("{said}\nrun `scripts/setup --tests` first"));
        }
        folder
    })
}

#[test]
fn every_reader_finds_every_value() {
    let fixtures = fixtures();
    let mounted = Mounted::new(&[fixtures], &[]);
    let only = std::env::var("HEPFS_TEST_READER").ok();
    let wanted = READERS.iter().filter(|reader| only.as_ref().is_none_or(|only| only == *reader));
    let queue = Mutex::new(wanted.collect::<Vec<_>>().into_iter());
    let wrong = Mutex::new(Vec::new());
    let check = || {
        loop {
            let Some(reader) = queue.lock().unwrap().next() else { return };
            let paths = [("--fixtures", fixtures), ("--mount", mounted.path())];
            let mut arguments = vec![OsStr::new("--reader"), OsStr::new(reader)];
            arguments.extend(paths.iter().flat_map(|(name, path)| [OsStr::new(name), path.as_os_str()]));
            if OTHER_WAYS.contains(reader) && only.is_none() {
                arguments.push(OsStr::new("--rows"));
                arguments.extend(FEWER_ROWS.map(OsStr::new));
            }
            match script("check", arguments) {
                Ok(said) => print!("{said}"),
                Err(said) => wrong.lock().unwrap().push(format!("{reader}:\n{said}")),
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(check);
        check();
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}\nerrors: {}", wrong.join("\n"), mounted.text(".hepfs/errors"));
}

/// Of every file in `tests/data`, damaged ones included, as far as they can be read.
#[test]
fn metadata_follows_its_schema() {
    let check = |folder: &Path| {
        let output = run_within(LIMIT, python().arg(checkout("scripts/check/schema")).arg(folder));
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.success(), said)
    };
    let mounted = Mounted::new(&[&checkout("tests/data")], &[]);
    let (right, said) = check(mounted.path());
    assert!(right && said.contains(" metadata.json checked, 0 wrong"), "{said}");
    let count = |name: &str| {
        let words: Vec<&str> = said.split_whitespace().collect();
        let number = words.windows(2).find(|words| words[1].trim_end_matches(',') == name).map(|words| words[0]);
        number.and_then(|number| number.parse::<u32>().ok()).unwrap_or(0)
    };
    assert!(count("metadata.json") > 1000 && count("indexes.json") > 300, "{said}");
    // What does not follow it is found.
    let folder = tempfile::tempdir().unwrap();
    for (name, key) in [("metadata.json", "rows"), ("indexes.json", "schema")] {
        let mut wrong: serde_json::Value = serde_json::from_slice(&mounted.read(format!("units.h5/t/{name}"))).unwrap();
        wrong[key] = "many".into();
        std::fs::write(folder.path().join(name), wrong.to_string()).unwrap();
    }
    let (right, said) = check(folder.path());
    assert!(!right && said.contains("2 wrong"), "{said}");
}

/// Both documents of `hepfs status`: of a mount that was read, held and had errors, of one that is left over, and of
/// one that is stopped.
#[test]
fn status_follows_its_schema_and_prometheus_reads_its_metrics() {
    let read = Mounted::new(&[&checkout("tests/data/units.h5"), &checkout("tests/data/hostile")], &[]);
    let open = std::fs::File::open(read.join("units.h5/t/table.csv")).unwrap();
    assert!(read.text("units.h5/t/table.csv").starts_with("mass,"));
    assert!(!read.names("hostile").is_empty());
    let [killed, stopped] = [(); 2].map(|()| Mounted::new(&[&checkout("tests/data/units.h5")], &[]));
    support::signal(killed.daemon(), libc::SIGKILL);
    support::signal(stopped.daemon(), libc::SIGSTOP);
    let folder = tempfile::tempdir().unwrap();
    let [document, metrics] = [("status.json", "--json"), ("hepfs.prom", "--metrics")].map(|(name, option)| {
        let output = support::hepfs(["status", "-v", option]);
        assert!(output.status.success(), "{output:?}");
        let path = folder.path().join(name);
        std::fs::write(&path, output.stdout).unwrap();
        path
    });
    support::signal(stopped.daemon(), libc::SIGCONT);
    let check = |document: &Path| {
        let mut command = python();
        command.arg(checkout("scripts/check/status")).args([document, metrics.as_path()]);
        let output = run_within(LIMIT, command.args([&read, &killed, &stopped].map(Mounted::path)));
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.success(), said)
    };
    let (right, said) = check(&document);
    assert!(right && said.contains(" samples checked, 0 wrong"), "{said}");
    let mut wrong: serde_json::Value = serde_json::from_slice(&std::fs::read(&document).unwrap()).unwrap();
    let states: Vec<&str> =
        wrong["mounts"].as_array().unwrap().iter().filter_map(|one| one["state"].as_str()).collect();
    assert!(["answers", "silent", "gone"].iter().all(|state| states.contains(state)), "{states:?}");
    // What does not follow it is found.
    wrong["mounts"][0]["uid"] = "root".into();
    std::fs::write(&document, wrong.to_string()).unwrap();
    let (right, said) = check(&document);
    assert!(!right && said.contains("uid"), "{said}");
    drop(open);
}
