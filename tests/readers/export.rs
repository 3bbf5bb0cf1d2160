//! Files that `hepfs export` writes: other software finds in them every value that h5py stored.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::Path;
use std::process::Command;

use super::{checkout, fixtures, script};
use crate::support::{HEPFS, hepfs};

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
        match script("check", wanted.chain([OsStr::new("--rows")]).chain(ROWS.map(OsStr::new))) {
            Ok(said) => print!("{said}"),
            Err(said) => panic!("{reader}:\n{said}"),
        }
    }
}

/// Exports a table of a file with further arguments; what was said on standard error.
fn export(source: &Path, table: &str, out: &Path, more: &[&str]) -> Result<(), String> {
    let place = format!("{}:{table}", source.display());
    let line = ["export", &place, "--cache-folder=none", "-o"].map(OsStr::new);
    let done = hepfs(line.into_iter().chain([out.as_os_str()]).chain(more.iter().map(OsStr::new)));
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
}

#[test]
fn units_and_descriptions_are_where_libraries_look_for_them() {
    let folder = tempfile::tempdir().unwrap();
    for (file, table) in [("units.h5", "t"), ("h5col.h5", "obs"), ("seed_11_1.h5", "my_table")] {
        let source = checkout("tests/data").join(file);
        let out = ["parquet", "arrow"].map(|suffix| folder.path().join(format!("{file}.{suffix}")));
        out.iter().for_each(|out| export(&source, table, out, &[]).unwrap());
        let [parquet, arrow] = out.each_ref().map(|out| out.as_os_str());
        match script("exported", ["notes".as_ref(), source.as_os_str(), table.as_ref(), parquet, arrow]) {
            Ok(said) => print!("{file}: {said}"),
            Err(said) => panic!("{file}: {said}"),
        }
    }
}

/// By texts that are no names of files, numbers and booleans, missing ones too; by so many values that one pass does
/// not hold all of their files open.
#[test]
fn readers_find_every_row_of_partitions() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("t.h5");
    script("exported", ["write".as_ref(), source.as_os_str()]).unwrap_or_else(|said| panic!("{said}"));
    for (by, more) in [("text", &["--memory=256M"][..]), ("few,flag", &[]), ("many", &["--compression=snappy"])] {
        let out = folder.path().join(by);
        export(&source, "t", &out, &[&[format!("--partition-by={by}").as_str()], more].concat()).unwrap();
        let arguments = ["partitions".as_ref(), source.as_os_str(), out.as_os_str(), by.as_ref()];
        match script("exported", arguments) {
            Ok(said) => print!("{said}"),
            Err(said) => panic!("{by}: {said}"),
        }
    }
    // What cannot be parted is said, and leaves nothing.
    let cases: [(&[&str], &str); 6] = [
        (&["--partition-by=tex"], "did you mean \"text\"?"),
        (&["--partition-by=row"], "there are more than 16384"),
        (&["--partition-by=text,text"], "named twice"),
        (&["--partition-by=text", "--columns=text"], "none is left"),
        (&["--partition-by=text", "--format=csv"], "partitions are Parquet files"),
        (&["--partition-by=x", "x is null"], ""),
    ];
    for (more, reason) in cases {
        let out = folder.path().join("none");
        match export(&source, "t", &out, more) {
            Ok(()) => {
                assert_eq!((reason, std::fs::read_dir(&out).unwrap().count()), ("", 0), "{more:?}");
                std::fs::remove_dir(out).unwrap();
            }
            Err(said) => assert!(!reason.is_empty() && said.contains(reason), "{more:?}: {said}"),
        }
    }
    let said = export(&source, "t", &folder.path().join("text"), &["--partition-by=flag"]).unwrap_err();
    assert!(said.contains("a folder that is empty"), "{said}");
    let mut left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["few,flag", "many", "t.h5", "text"]);
}

/// When this process began, as the 22nd field of `proc_pid_stat(5)` says.
fn own_beginning() -> String {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().to_owned()
}

/// A disk that is full, and `kill -9`.
#[test]
fn an_export_that_fails_or_is_killed_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("t.h5");
    script("exported", ["write".as_ref(), source.as_os_str()]).unwrap_or_else(|said| panic!("{said}"));
    let (place, out) = (format!("{}:t", source.display()), folder.path().join("out"));
    let file = out.join("t.parquet");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(&file, "old").unwrap();
    let names = || std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    let parted = out.join("parts");
    let commands = [vec!["-o", file.to_str().unwrap()], vec!["--partition-by=few", "-o", parted.to_str().unwrap()]];
    for more in &commands {
        // What the folder shows meanwhile is another file system, of 100 KiB, which nobody else sees.
        let script = "out=$1; shift; mount -t tmpfs -o size=100k full \"$out\" && printf old >\"$out/t.parquet\" || exit; \
                      \"$0\" \"$@\"; code=$?; ls -A \"$out\"; cat \"$out/t.parquet\"; exit $code";
        let is_root = rustix::process::geteuid().is_root();
        let own = ["--mount", "--propagation", "private"].into_iter().chain((!is_root).then_some("--map-root-user"));
        let line =
            own.chain(["sh", "-c", script, HEPFS, out.to_str().unwrap(), "export", &place, "--cache-folder=none"]);
        let done = Command::new("unshare").args(line).args(more).output().unwrap();
        let [listed, said] = [&done.stdout, &done.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        if listed.is_empty() && !is_root {
            // Some systems let ordinary users mount nothing.
            continue;
        }
        assert!(done.status.code() == Some(1) && said.contains("No space left on device"), "{more:?}: {said}");
        assert_eq!(listed, "t.parquet\nold", "{more:?}: {said}");
        let written: Vec<&str> = said.split(": ").filter(|part| part.ends_with(" bytes were written")).collect();
        assert!(said.contains(&format!("-o {}: ", more.last().unwrap())) && written.len() == 1, "{more:?}: {said}");
    }
    for more in &commands {
        let line = ["export", &place, "--cache-folder=none", "--compression=zstd:22"];
        let mut killed = Command::new(HEPFS).args(line).args(more).spawn().unwrap();
        let partial = || names().into_iter().find(|name| name.as_encoded_bytes().starts_with(b"."));
        while partial().is_none() {
            assert!(killed.try_wait().unwrap().is_none(), "it ended before it was killed");
        }
        killed.kill().unwrap();
        killed.wait().unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"old");
        // The name of what it left tells host, process, and when that began.
        let left = partial().expect("what it wrote is gone").into_string().unwrap();
        let (of_host, began) = left.rsplit_once('-').unwrap();
        let (host, process) = of_host.rsplit_once('-').unwrap();
        assert_eq!(process, killed.id().to_string());
        let others = [
            format!("{}-elsewhere-{process}-{began}", host.split_at(host.find(".hepfs").unwrap() + 6).0),
            format!("{of_host}-1"),
            format!("{host}-{}-{}", std::process::id(), own_beginning()),
        ];
        let [_, locked, _] = others.each_ref().map(|name| File::create_new(out.join(name)).unwrap());
        locked.try_lock().unwrap();
        let done = Command::new(HEPFS).args(["export", &place, "--cache-folder=none"]).args(more).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && said.contains(&format!("{left} is removed")), "{said}");
        let kept: BTreeSet<_> = names().into_iter().filter(|name| name.as_encoded_bytes().starts_with(b".")).collect();
        assert_eq!(kept, BTreeSet::from(others.each_ref().map(OsString::from)));
        others.iter().for_each(|name| std::fs::remove_file(out.join(name)).unwrap());
        std::fs::write(&file, "old").unwrap();
        std::fs::remove_dir_all(&parted).ok();
    }
    export(&source, "t", &file, &[]).unwrap();
    assert_ne!(std::fs::read(&file).unwrap(), b"old");
    assert_eq!(names().len(), 1);
}
