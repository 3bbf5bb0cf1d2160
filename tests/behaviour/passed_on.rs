//! Splicing stored bytes from the source to readers: right to the bit, only while no writer can change them, and never
//! in a writer's way.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::Mounted;
use crate::writer::Writer;

const ROWS: i64 = 300_000;

/// What shows the stored bytes of columns, with something before, between or behind them.
const FILES: [&str; 6] =
    ["columns/x.raw", "columns/x.npy", "columns/y.npy", "columns/x.parquet", "table.parquet", "table.arrow"];

/// A file with a column in many chunks and one in a single one.
fn write(path: &Path) {
    let writer = Writer::create(path);
    let table = writer.table("t");
    for (name, chunk) in [("x", 20_000), ("y", ROWS as u64)] {
        table.column(name, &(0..ROWS).collect::<Vec<i64>>(), chunk);
    }
    drop(table);
    writer.close();
}

fn raw() -> Vec<u8> {
    (0..ROWS).flat_map(i64::to_le_bytes).collect()
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (written, source) = (folder.path().join("written.h5"), folder.path().join("run.h5"));
    write(&written);
    // A program that another test started at that moment may have inherited libhdf5's descriptor, and could write.
    fs::copy(written, &source).unwrap();
    (folder, source)
}

/// A file in requests of `length` bytes, of which the first ends in the midst of one.
fn read_by(path: &Path, length: usize) -> Vec<u8> {
    let file = File::open(path).unwrap();
    let mut bytes = vec![0; file.metadata().unwrap().size() as usize];
    let mut at = 0;
    while at < bytes.len() {
        let count = if at == 0 { length / 3 } else { length }.min(bytes.len() - at);
        file.read_exact_at(&mut bytes[at..at + count], at as u64).unwrap();
        at += count;
    }
    bytes
}

fn passed_on(mounted: &Mounted) -> u64 {
    let stats = mounted.text(".hepfs/stats");
    let line = stats.lines().find(|line| line.starts_with("bytes_passed_on ")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Requests of 4 KiB are never passed on: what they show is what the program itself makes.
#[test]
fn files_are_the_same_however_their_bytes_come() {
    let (_folder, source) = folder();
    for arguments in [&[][..], &["--direct-io"]] {
        let mounted = Mounted::new(&[&source], arguments);
        let whole = Mounted::new(&[&source], arguments);
        let expected: Vec<_> = FILES.iter().map(|name| read_by(&mounted.join("t").join(name), 4096)).collect();
        assert!(arguments.is_empty() || passed_on(&mounted) == 0);
        for (name, bytes) in FILES.iter().zip(&expected) {
            // Each row group and each batch has a multiple of 65,536 rows, or is the last.
            for part in raw().chunks(65_536 * 8) {
                let at = bytes.windows(32).position(|window| window == &part[..32]).expect(name);
                assert!(bytes[at..].starts_with(part), "{name}");
            }
        }
        assert!(expected[0] == raw());
        for length in [70_001, 300_000, 1 << 20, 3 << 20] {
            for (name, expected) in FILES.iter().zip(&expected) {
                let before = passed_on(&whole);
                assert!(read_by(&whole.join("t").join(name), length) == *expected, "{name} by {length} bytes");
                let passed = passed_on(&whole) - before;
                // What the page cache has is not asked for again.
                let is_asked = !arguments.is_empty() || name.ends_with("parquet");
                assert!(!is_asked || passed > ROWS as u64 * 8 / 2, "{passed} bytes of {name} by {length}");
                assert!(passed <= expected.len() as u64, "{passed} bytes of {name} by {length}");
            }
        }
    }
}

#[test]
fn nothing_is_passed_on_while_somebody_may_write() {
    let (_folder, source) = folder();
    let mounted = Mounted::new(&[&source], &["--direct-io"]);
    let writer = OpenOptions::new().write(true).open(&source).unwrap();
    let expected: Vec<_> = FILES.iter().map(|name| read_by(&mounted.join("t").join(name), 1 << 20)).collect();
    assert!(expected[0] == raw());
    assert_eq!(passed_on(&mounted), 0);
    drop(writer);
    for (name, expected) in FILES.iter().zip(&expected) {
        assert!(read_by(&mounted.join("t").join(name), 1 << 20) == *expected, "{name}");
    }
    assert!(passed_on(&mounted) > ROWS as u64 * 8 * 3);
}

/// There is room for one chunk at a time: a request that held one while it waited for the next would wait for ever.
#[test]
fn requests_that_meet_two_chunks_hold_one() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("run.h5");
    let writer = Writer::create(&source);
    // Checksums are the filter.
    writer.table("t").filtered("x", &(0..ROWS).collect::<Vec<i64>>(), 90_001, 3);
    writer.close();
    let mounted = Mounted::new(&[&source], &["--direct-io", "--cache-size", "1M"]);
    for name in ["columns/x.raw", "columns/x.parquet", "table.arrow"] {
        let path = mounted.join("t").join(name);
        let expected = read_by(&path, 4096);
        thread::scope(|scope| {
            for length in [300_000, 500_000, 700_001, 1 << 20] {
                let (path, expected) = (&path, &expected);
                scope.spawn(move || assert!(read_by(path, length) == *expected, "{name} by {length} bytes"));
            }
        });
        assert!(name != "columns/x.raw" || expected == raw());
    }
}

/// A writer overwrites the bytes of `y` in place again and again, under readers that opened the file before.
#[test]
fn a_writer_is_let_in_at_once_and_nobody_sees_a_mixture() {
    let (_folder, source) = folder();
    let bytes = fs::read(&source).unwrap();
    let expected = raw();
    // `y` lies in one run.
    let start = bytes.windows(4096).rposition(|window| window == &expected[..4096]).unwrap();
    assert!(bytes[start..start + expected.len()] == expected);
    let mounted = Mounted::new(&[&source], &["--direct-io"]);
    // No reader opens the file while it is being written: its times would be those of the next state.
    let (changing, over) = (RwLock::new(()), AtomicBool::new(false));
    let read = |buffer: &mut [u8]| {
        let file = {
            let _unchanged = changing.read().unwrap();
            let file = File::open(mounted.join("t/columns/y.raw"))?;
            file.read_exact_at(&mut [0; 8], 0)?;
            file
        };
        file.read_exact_at(buffer, 0)
    };
    thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let (mut whole, mut buffer) = (0, vec![0; expected.len()]);
                    while !over.load(Ordering::Relaxed) {
                        // A change while reading is an error.
                        if read(&mut buffer).is_ok() {
                            let one = buffer.iter().all(|byte| *byte == buffer[0]);
                            assert!(one || buffer == expected, "a mixture");
                            whole += 1;
                        }
                    }
                    whole
                })
            })
            .collect();
        let mut longest = Duration::ZERO;
        for round in 0..100_u8 {
            thread::sleep(Duration::from_millis(20));
            let _one = changing.write().unwrap();
            let asked = Instant::now();
            let writer = OpenOptions::new().write(true).open(&source).unwrap();
            longest = longest.max(asked.elapsed());
            writer.write_all_at(&vec![round; expected.len()], start as u64).unwrap();
        }
        over.store(true, Ordering::Relaxed);
        let whole: Vec<i32> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        assert!(whole.iter().all(|whole| *whole > 0), "a reader never read anything: {whole:?}");
        // The kernel takes a lease away from who does not give it back after 45 s.
        assert!(longest < Duration::from_secs(5), "a writer waited {longest:?}");
    });
    assert!(passed_on(&mounted) > 0);
    assert!(mounted.read("t/columns/y.raw").iter().all(|byte| *byte == 99));
}

/// PyTables keeps a text of pandas in the one row of a chunk of 1 MiB.
#[test]
fn of_a_chunk_with_room_for_more_only_what_is_there_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("few.h5");
    let writer = Writer::create(&path);
    writer.table("t").column("few", &[7, 8, 9], 1 << 17);
    writer.close();
    let mounted = Mounted::new(&[&path], &["--cache-folder", "none"]);
    assert_eq!(mounted.text("t/columns/few.csv"), "few\n7\n8\n9\n");
    let stats = mounted.text(".hepfs/stats");
    let count =
        |name: &str| stats.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok()).unwrap();
    assert!((24..1000).contains(&count("bytes_read")), "{stats}");
    assert_eq!(count("cache_misses"), 0, "{stats}");
}
