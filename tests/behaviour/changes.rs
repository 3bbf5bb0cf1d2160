//! Sources that change under a mount: replaced, rewritten, deleted, grown. A read gives one state or the other,
//! never a mixture, and a new open gives the present one.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::data;
use crate::support::{Mounted, until, within};
use crate::writer::Writer;

const ROWS: i64 = 50_000;

/// A file with one column of numbers from `first` on, in many chunks.
fn write(path: &Path, first: i64, rows: i64) {
    let writer = Writer::create(path);
    let values: Vec<i64> = (first..first + rows).collect();
    writer.table("t").column("x", &values, 1000);
    writer.close();
}

fn raw(first: i64, rows: i64) -> Vec<u8> {
    (first..first + rows).flat_map(i64::to_le_bytes).collect()
}

fn txt(first: i64, rows: i64) -> String {
    (first..first + rows).map(|value| format!("{value}\n")).collect()
}

/// File times move in steps of a few milliseconds.
fn next_tick() {
    std::thread::sleep(Duration::from_millis(30));
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> (Self, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("run.h5");
        write(&source, 0, ROWS);
        (Self(folder), source)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Everything of an open file, read anew.
fn read_all(file: &File, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

#[test]
fn a_source_replaced_by_rename_goes_on_for_open_files_and_is_new_for_others() {
    let (folder, source) = Folder::new();
    let mounted = Mounted::new(&[&source], &[]);
    // The kernel has one file in its cache, of the other just the first page.
    assert_eq!(mounted.text("t/columns/x.txt"), txt(0, ROWS));
    let cached = File::open(mounted.join("t/columns/x.txt")).unwrap();
    let barely = File::open(mounted.join("t/columns/x.raw")).unwrap();
    barely.read_exact_at(&mut [0; 8], 0).unwrap();
    write(&folder.path("new.h5"), 70_000, ROWS);
    fs::rename(folder.path("new.h5"), &source).unwrap();
    // At once, before any cache can have been invalidated.
    assert!(mounted.read("t/columns/x.raw") == raw(70_000, ROWS), "a new open sees old bytes");
    assert!(mounted.text("t/columns/x.txt") == txt(70_000, ROWS), "a new open sees old text");
    for _ in 0..3 {
        assert!(read_all(&barely, raw(0, ROWS).len()).unwrap() == raw(0, ROWS));
        assert!(read_all(&cached, txt(0, ROWS).len()).unwrap() == txt(0, ROWS).into_bytes());
        // The watch has invalidated the kernel's caches by now.
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn a_source_renamed_away_before_its_replacement_goes_on_for_open_files() {
    let (folder, source) = Folder::new();
    let mounted = Mounted::new(&[&source], &[]);
    let open = File::open(mounted.join("t/columns/x.raw")).unwrap();
    write(&folder.path("new.h5"), 70_000, ROWS);
    fs::rename(&source, folder.path("old.h5")).unwrap();
    fs::rename(folder.path("new.h5"), &source).unwrap();
    assert!(mounted.read("t/columns/x.raw") == raw(70_000, ROWS));
    assert!(read_all(&open, raw(0, ROWS).len()).unwrap() == raw(0, ROWS));
}

#[test]
fn names_and_sizes_follow_a_replacement_within_a_second() {
    let (folder, source) = Folder::new();
    let mounted = Mounted::new(&[&source], &[]);
    assert_eq!(fs::metadata(mounted.join("t/columns/x.raw")).unwrap().len(), 8 * ROWS as u64);
    assert_eq!(mounted.names("t/columns").len(), 7);
    let kept = fs::metadata(mounted.path()).unwrap().modified().unwrap();
    next_tick();
    write(&folder.path("new.h5"), 0, 10);
    fs::rename(folder.path("new.h5"), &source).unwrap();
    let limit = Duration::from_secs(10);
    within(limit, "the new size shows", || {
        fs::metadata(mounted.join("t/columns/x.raw")).is_ok_and(|metadata| metadata.len() == 80)
    });
    within(limit, "the new time of the root shows", || {
        fs::metadata(mounted.path()).unwrap().modified().unwrap() > kept
    });
    // Another file with other names.
    fs::copy(data("units.h5"), folder.path("new.h5")).unwrap();
    fs::rename(folder.path("new.h5"), &source).unwrap();
    within(limit, "a name that came is found", || mounted.join("t/columns/mass.csv").exists());
    within(limit, "a name that went is gone", || !mounted.join("t/columns/x.csv").exists());
    assert!(!mounted.names("t/columns").contains(&"x.csv".to_owned()));
}

#[test]
fn a_source_rewritten_in_place_is_stale_for_open_files_and_new_for_others() {
    let (folder, source) = Folder::new();
    let mounted = Mounted::new(&[&source], &[]);
    let (expected, new) = (raw(0, ROWS), raw(70_000, ROWS));
    let open = File::open(mounted.join("t/columns/x.raw")).unwrap();
    assert!(read_all(&open, expected.len()).unwrap() == expected);
    let untouched = File::open(mounted.join("t/columns/x.txt")).unwrap();
    write(&folder.path("new.h5"), 70_000, ROWS);
    let bytes = fs::read(folder.path("new.h5")).unwrap();
    next_tick();
    fs::write(&source, &bytes).unwrap();
    assert!(mounted.read("t/columns/x.raw") == new, "a new open sees old bytes");
    let error = untouched.read_at(&mut [0; 8], 4096).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ESTALE));
    // What the kernel had may be served until it is invalidated, as it was.
    until("the open file is stale", || match read_all(&open, expected.len()) {
        Ok(bytes) => {
            assert!(bytes == expected, "a mixture");
            false
        }
        Err(error) => {
            assert_eq!(error.raw_os_error(), Some(libc::ESTALE));
            true
        }
    });
    assert!(mounted.read("t/columns/x.raw") == new);
    assert_eq!(mounted.text("t/columns/x.txt"), txt(70_000, ROWS));
}

#[test]
fn a_file_is_rewritten_again_and_again_under_readers() {
    let (folder, source) = Folder::new();
    let mounted = Mounted::new(&[&source], &[]);
    let states: Vec<Vec<u8>> = [0, 70_000].map(|first| raw(first, ROWS)).to_vec();
    write(&folder.path("other.h5"), 70_000, ROWS);
    let files = [fs::read(&source).unwrap(), fs::read(folder.path("other.h5")).unwrap()];
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut whole = 0;
                    while !over.load(std::sync::atomic::Ordering::Relaxed) {
                        // Half a file is no HDF5 file, a change while reading is an error; bytes are of one state.
                        if let Ok(bytes) = fs::read(mounted.join("t/columns/x.raw")) {
                            assert!(states.contains(&bytes), "a mixture of {} bytes", bytes.len());
                            whole += 1;
                        }
                    }
                    whole
                })
            })
            .collect();
        for round in 0..30 {
            std::thread::sleep(Duration::from_millis(40));
            if round % 3 == 0 {
                fs::write(folder.path("next.h5"), &files[round % 2]).unwrap();
                fs::rename(folder.path("next.h5"), &source).unwrap();
            } else {
                fs::write(&source, &files[round % 2]).unwrap();
            }
        }
        std::thread::sleep(Duration::from_millis(300));
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 0, "a reader never read anything");
        }
    });
    assert!(mounted.read("t/columns/x.raw") == states[1]);
}

#[test]
fn a_deleted_source_goes_on_for_open_files_and_comes_back() {
    let (_folder, source) = Folder::new();
    let mounted = Mounted::new(&[&source], &[]);
    let open = File::open(mounted.join("t/columns/x.raw")).unwrap();
    open.read_exact_at(&mut [0; 8], 0).unwrap();
    fs::remove_file(&source).unwrap();
    // The mount point is there: "no such file" of it would be no reason.
    assert_eq!(fs::read(mounted.join("t/columns/x.raw")).unwrap_err().raw_os_error(), Some(libc::ESTALE));
    assert_eq!(fs::read_dir(mounted.path()).unwrap_err().raw_os_error(), Some(libc::ESTALE));
    assert!(read_all(&open, raw(0, ROWS).len()).unwrap() == raw(0, ROWS));
    assert!(fs::metadata(mounted.path()).unwrap().is_dir());
    let errors = mounted.text(".hepfs/errors");
    assert!(errors.contains("run.h5") && errors.contains("No such file"), "{errors:?}");
    write(&source, 5, ROWS);
    assert!(mounted.read("t/columns/x.raw") == raw(5, ROWS));
    assert!(mounted.names("").contains(&"t".to_owned()));
}

#[test]
fn a_source_that_is_no_longer_hdf5_says_so_and_recovers() {
    let (_folder, source) = Folder::new();
    let mounted = Mounted::new(&[&source], &[]);
    assert_eq!(mounted.names("t").len(), 10);
    next_tick();
    fs::write(&source, "now it is text").unwrap();
    assert_eq!(fs::read(mounted.join("t/table.csv")).unwrap_err().raw_os_error(), Some(libc::EIO));
    assert!(mounted.text(".hepfs/errors").contains("run.h5: not an HDF5 file"), "{}", mounted.text(".hepfs/errors"));
    next_tick();
    write(&source, 5, 10);
    assert_eq!(mounted.text("t/columns/x.txt"), txt(5, 10));
}

#[test]
fn the_target_of_a_symbolic_link_is_watched() {
    let (folder, source) = Folder::new();
    let link = folder.path("latest.h5");
    std::os::unix::fs::symlink("run.h5", &link).unwrap();
    let mounted = Mounted::new(&[&link], &[]);
    assert!(mounted.read("t/columns/x.raw") == raw(0, ROWS));
    write(&folder.path("other.h5"), 7, ROWS);
    std::os::unix::fs::symlink("other.h5", folder.path("link")).unwrap();
    fs::rename(folder.path("link"), &link).unwrap();
    assert!(mounted.read("t/columns/x.raw") == raw(7, ROWS));
    next_tick();
    write(&folder.path("other.h5"), 9, 10);
    within(Duration::from_secs(10), "the new size shows", || {
        fs::metadata(mounted.join("t/columns/x.raw")).is_ok_and(|metadata| metadata.len() == 80)
    });
    drop(source);
}

#[test]
fn a_file_that_grows_under_swmr_is_served_as_it_was_opened() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("run.h5");
    let writer = Writer::create(&source);
    let table = writer.table("t");
    // The last chunk is half full, and will be written again where it is.
    let values: Vec<i64> = (0..1050).collect();
    let mut column = table.column("x", &values, 100);
    drop(table);
    writer.flush();
    writer.start_swmr();
    let mounted = Mounted::new(&[&source], &[]);
    let open = File::open(mounted.join("t/columns/x.raw")).unwrap();
    assert_eq!(mounted.text("t/columns/x.txt"), txt(0, 1050));
    for round in 0..5 {
        let first = 1050 + round * 500;
        let more: Vec<i64> = (first..first + 500).collect();
        column.append(&more);
        writer.flush();
        assert!(read_all(&open, 8400).unwrap() == raw(0, 1050), "the open file, round {round}");
        assert!(mounted.read("t/columns/x.raw") == raw(0, 1050), "opened anew, round {round}");
        assert_eq!(mounted.text("t/columns/x.csv"), format!("x\n{}", txt(0, 1050)), "round {round}");
        // Long enough for the watch to tell.
        std::thread::sleep(Duration::from_millis(250));
        assert_eq!(fs::metadata(mounted.join("t/columns/x.raw")).unwrap().len(), 8400);
    }
    drop(mounted);
    let again = Mounted::new(&[&source], &[]);
    assert_eq!(again.text("t/columns/x.txt"), txt(0, 3550));
    drop(column);
    writer.close();
}

/// How often the paths of sources were looked at while `work` went on: the least of several times, each with names of
/// its own. A request that takes long looks again, and any may on a machine that is busy.
fn looks(mounted: &Mounted, work: impl Fn(usize)) -> u64 {
    let now = || {
        let stats = mounted.text(".hepfs/stats");
        let line = stats.lines().find_map(|line| line.strip_prefix("source_looks "));
        line.unwrap().parse::<u64>().unwrap()
    };
    let during = |at| {
        let before = now();
        work(at);
        now() - before
    };
    (0..8).map(during).min().unwrap()
}

#[test]
fn a_request_looks_at_its_source_once() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("run.h5");
    let writer = Writer::create(&source);
    for table in 0..9 {
        let table = writer.table(&format!("t{table}"));
        for column in 0..20 {
            table.column(&format!("x{column}"), &[1, 2, 3], 1000);
        }
    }
    writer.close();
    let mounted = Mounted::new(&[&source], &[]);
    assert_eq!(mounted.text("t8/columns/x0.txt"), "1\n2\n3\n");

    // Two lookups, an open and a read.
    let opened = looks(&mounted, |at| {
        fs::metadata(mounted.join(format!("t8/columns/x{at}.raw"))).unwrap();
        let file = File::open(mounted.join(format!("t8/columns/x{at}.csv"))).unwrap();
        file.read_exact_at(&mut [0; 4], 0).unwrap();
    });
    assert!((3..=4).contains(&opened), "{opened} looks for two lookups, an open and a read");

    // Two lookups, an open and the pieces of a listing.
    let listed = looks(&mounted, |at| {
        assert!(fs::read_dir(mounted.join(format!("t{at}/columns"))).unwrap().count() >= 100);
    });
    assert!((3..=10).contains(&listed), "{listed} looks for a listing");
}
