//! `hepfs import`: nothing is lost where the disk is full, a file cannot be written or is in use, or an input changes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::import::{import, lines, names, parquet, refused, succeeded};
use crate::support::{HEPFS, LONG, Mounted, end_of, hepfs, run_within, until};

/// A folder and the paths of files in it.
fn scratch() -> (tempfile::TempDir, impl Fn(&str) -> String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    (folder, move |name: &str| path.join(name).to_str().unwrap().to_owned())
}

/// The table at a place, as CSV.
fn shown(place: &str) -> String {
    let csv = format!("{}.csv", place.replace(':', "-"));
    succeeded(&hepfs(["export", place, "--cache-folder", "none", "-o", &csv]));
    let text = fs::read_to_string(&csv).unwrap();
    fs::remove_file(csv).unwrap();
    text
}

/// There is no rehearsal in an optimised program.
#[cfg(debug_assertions)]
#[test]
fn a_disk_that_is_full_leaves_what_was() {
    let (folder, at) = scratch();
    parquet(Path::new(&at("a.parquet")), 1000, 3000);
    parquet(Path::new(&at("b.parquet")), 4000, 2000);
    let (base, out) = (at("base.h5"), at("out.h5"));
    succeeded(&import(&[&at("a.parquet"), &base, "--chunk-rows", "1000"]));
    let place = format!("{out}:table");
    let before = lines(1000, 3000);
    for mode in ["create", "append", "replace"] {
        let after = if mode == "append" { lines(1000, 5000) } else { lines(4000, 2000) };
        let (mut failed, mut told) = (0, 0);
        // From which write on there is no room.
        for full in (0..).step_by(3) {
            fs::remove_file(&out).ok();
            if mode != "create" {
                fs::copy(&base, &out).unwrap();
            }
            let mut command = Command::new(HEPFS);
            command.args(["import", &at("b.parquet"), &out, "--mode", mode, "--chunk-rows", "500"]);
            let said = run_within(LONG, command.env("HEPFS_REHEARSED_FULL", full.to_string()));
            if said.status.success() {
                assert!(shown(&place) == after, "{mode} {full}");
                break;
            }
            failed += 1;
            refused(&said, &["/out.h5: ", "No space left on device"]);
            let reason = String::from_utf8_lossy(&said.stderr);
            assert!(!reason.contains("hepfs-import"), "{reason}");
            told += usize::from(reason.contains(" bytes were written"));
            if mode == "create" {
                assert_eq!(names(folder.path()), ["a.parquet", "b.parquet", "base.h5"], "{full}");
            } else {
                let found = shown(&place);
                assert!(found == before || found == after, "{mode} {full}: {found:.200}");
                assert_eq!(names(folder.path()), ["a.parquet", "b.parquet", "base.h5", "out.h5"], "{full}");
            }
        }
        assert!(failed > 3 && told > 0, "{mode}: {failed}, {told}");
    }
}

/// Runs an import without the right of the superuser to write everywhere.
fn mortal(arguments: &[&str]) -> Output {
    let mut command = match rustix::process::geteuid().is_root() {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--bounding-set", "-dac_override", HEPFS]);
            command
        }
        false => Command::new(HEPFS),
    };
    run_within(LONG, command.arg("import").args(arguments))
}

#[test]
fn what_cannot_be_written_or_is_in_use_is_left_alone() {
    let (folder, at) = scratch();
    parquet(Path::new(&at("a.parquet")), 0, 300);
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let (out, new) = (at("inner/out.h5"), at("inner/new.h5"));
    succeeded(&import(&[&at("a.parquet"), &out]));
    let before = fs::read(&out).unwrap();
    let mode = |path: &str, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let unchanged = || {
        assert_eq!(fs::read(&out).unwrap(), before);
        assert_eq!(names(&inner), ["out.h5"]);
    };
    // A file.
    mode(&out, 0o444);
    refused(&mortal(&[&at("a.parquet"), &out, "--mode", "append"]), &["out.h5", "Permission denied"]);
    unchanged();
    mode(&out, 0o644);
    // A folder: neither a new file nor a journal can be made in it.
    mode(inner.to_str().unwrap(), 0o555);
    refused(&mortal(&[&at("a.parquet"), &new]), &["new.h5", "Permission denied"]);
    refused(&mortal(&[&at("a.parquet"), &out, "--mode", "append"]), &["out.h5", "Permission denied"]);
    refused(&mortal(&[&at("a.parquet"), &format!("{out}:other")]), &["out.h5", "Permission denied"]);
    mode(inner.to_str().unwrap(), 0o755);
    unchanged();
    // One that is not there.
    refused(&import(&[&at("a.parquet"), &at("none/new.h5")]), &["none/new.h5: there is no folder "]);
    // What h5py does for reading, and what another writer does.
    for lock in [rustix::fs::FlockOperation::LockShared, rustix::fs::FlockOperation::LockExclusive] {
        let file = fs::File::open(&out).unwrap();
        rustix::fs::flock(&file, lock).unwrap();
        for mode in ["append", "replace"] {
            refused(&import(&[&at("a.parquet"), &out, "--mode", mode]), &["out.h5", "another program has this file"]);
        }
        unchanged();
    }
    succeeded(&import(&[&at("a.parquet"), &out, "--mode", "replace"]));
}

#[test]
fn an_input_that_changes_while_it_is_read_makes_no_table() {
    let (folder, at) = scratch();
    let (source, out) = (at("a.parquet"), at("out.h5"));
    let partial = folder.path().join(".out.h5.hepfs-import");
    // The new file is there as soon as the inputs are open.
    let changed = |change: &dyn Fn()| {
        parquet(Path::new(&source), 0, 1_500_000);
        let mut command = Command::new(HEPFS);
        let command = command.args(["import", &source, &out]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        until("it reads", || partial.exists());
        change();
        let status = end_of(&mut child, LONG).unwrap();
        let said = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
        (status.success(), said)
    };
    let open = || fs::File::options().write(true).open(&source).unwrap();
    let truncate = || open().set_len(100_000).unwrap();
    let append =
        || std::io::Write::write_all(&mut fs::File::options().append(true).open(&source).unwrap(), b"x").unwrap();
    let rewrite = || parquet(Path::new(&source), 7, 1_500_000);
    for change in [&truncate as &dyn Fn(), &append, &rewrite] {
        let (succeeded, said) = changed(change);
        assert!(!succeeded && said.contains("a.parquet: it changed during the import"), "{said}");
        assert_eq!(names(folder.path()), ["a.parquet"]);
    }
    // Another file of its name is another file.
    parquet(Path::new(&at("b.parquet")), 9, 1000);
    let (succeeded, said) = changed(&|| fs::rename(at("b.parquet"), &source).unwrap());
    assert!(succeeded, "{said}");
    assert!(shown(&format!("{out}:table")) == lines(0, 1_500_000));
}

#[test]
fn a_mount_shows_the_old_rows_or_the_new_ones_while_they_are_appended() {
    let (_folder, at) = scratch();
    let out = at("out.h5");
    parquet(Path::new(&at("0.parquet")), 0, 3000);
    succeeded(&import(&[&at("0.parquet"), &out]));
    let states: Vec<String> = (0..8).map(|more| lines(0, 3000 + 500 * more)).collect();
    let mounted = Mounted::new(&[Path::new(&out)], &[]);
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut last, mut met) = (0, 0);
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                // What is read while the file changes may be an error, but nothing else.
                let Ok(text) = fs::read_to_string(mounted.join("table/table.csv")) else { continue };
                let state = states.iter().position(|state| *state == text);
                let state = state.unwrap_or_else(|| panic!("{}", &text[..text.len().min(200)]));
                assert!(state >= last, "{state} after {last}");
                met += usize::from(state > last);
                last = state;
            }
            met
        });
        for more in 0..7 {
            let name = at(&format!("{more}.parquet"));
            parquet(Path::new(&name), 3000 + 500 * more, 500);
            succeeded(&import(&[&name, &out, "--mode", "append"]));
        }
        until("the mount shows all", || mounted.text("table/table.csv") == states[7]);
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
}

#[test]
fn appends_and_one_import_are_the_same_rows() {
    let (_folder, at) = scratch();
    // Texts of one length: those of the first rows are what there is room for.
    let parts = [(100_000, 70_000), (170_000, 1), (170_001, 65_000)];
    let names: Vec<String> = (0..3).map(|part| at(&format!("{part}.parquet"))).collect();
    for (name, (first, rows)) in names.iter().zip(parts) {
        parquet(Path::new(name), first, rows);
    }
    let (one, several) = (at("one.h5"), at("several.h5"));
    succeeded(&import(&[&names[0], &names[1], &names[2], &one]));
    for name in &names {
        succeeded(&import(&[name, &several, "--mode", "append"]));
    }
    let mounts = [&one, &several].map(|path| Mounted::new(&[Path::new(path)], &[]));
    for file in ["table/table.csv", "table/table.ndjson", "table/columns/n.npy", "table/columns/t.txt"] {
        let [a, b] = [0, 1].map(|at| mounts[at].read(file));
        assert!(a == b && !a.is_empty(), "{file}");
    }
}
