//! Slow opens: the text of a table whose exact size takes long to measure.

use std::ops::{Deref, DerefMut};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{LONG, Mounted, end_of, must, signal, start, status};
use crate::writer::Writer;

/// A table whose text takes minutes to measure, in a file of a few kilobytes.
fn endless(path: &Path) {
    let writer = Writer::create(path);
    let table = writer.table("t");
    for name in ["a", "b", "c", "d"] {
        table.never_written(name, 400_000_000_000, 1 << 16);
    }
    writer.table("small").column("x", &[1, 2, 3], 3);
    // Large enough that its text takes a pass of its own.
    writer.table("some").column("x", &(0..2_000_000).collect::<Vec<_>>(), 100_000);
    drop(table);
    writer.close();
}

fn mounted() -> (tempfile::TempDir, Mounted) {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("run.h5");
    endless(&source);
    let mounted = Mounted::new(&[&source], &[]);
    (folder, mounted)
}

/// A process that ends with the test: a daemon outlives its mount as long as a reader waits.
struct Reader(Child);

impl Deref for Reader {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Reader {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A reader that waits for its open.
fn waiting(path: &Path) -> Reader {
    let mut reader = Reader(start("head", [path]));
    assert_eq!(end_of(&mut reader, Duration::from_millis(700)), None, "the table is not large enough for this test");
    reader
}

/// Everything else answers.
fn others_answer(mounted: &Mounted) {
    assert_eq!(must("ls", [mounted.path()]), "index.html\nmetadata.json\nsmall\nsome\nt\n");
    must("ls", ["-lR".as_ref(), mounted.path().as_os_str()]);
    assert_eq!(must("cat", [mounted.join("small/table.csv")]), "x\n1\n2\n3\n");
    assert_eq!(must("head", ["-n".into(), "2".into(), mounted.join("t/head.csv")]), "a,b,c,d\n0,0,0,0\n");
}

#[test]
fn a_signal_ends_a_slow_open() {
    let (_folder, mounted) = mounted();
    for number in [libc::SIGINT, libc::SIGTERM, libc::SIGKILL] {
        let took = (0..5).map(|_| {
            let mut reader = waiting(&mounted.join("t/table.csv"));
            let begin = Instant::now();
            signal(reader.id(), number);
            let ended = end_of(&mut reader, LONG).expect("still waits after the signal");
            assert_eq!(ended.signal(), Some(number));
            begin.elapsed()
        });
        // The promise is a second; a busy machine may need several attempts to show it.
        assert!(took.into_iter().any(|took| took < Duration::from_secs(1)), "signal {number} takes over a second");
        others_answer(&mounted);
    }
}

#[test]
fn two_slow_opens_leave_the_mount_alive_and_work_ends_with_the_last_who_waits() {
    let (_folder, mounted) = mounted();
    let mut readers = [
        waiting(&mounted.join("t/table.csv")),
        waiting(&mounted.join("t/table.ndjson")),
        waiting(&mounted.join("t/columns/a.csv")),
    ];
    others_answer(&mounted);
    let listed = passes(&mounted);
    let mut titles: Vec<_> = listed.iter().map(|pass| pass["title"].as_str().unwrap()).collect();
    titles.sort_unstable();
    assert_eq!(titles, ["t/columns/a.csv", "t/table.csv", "t/table.ndjson"]);
    for pass in listed {
        assert_eq!((pass["doing"].as_str(), pass["unit"].as_str()), (Some("sizing"), Some("blocks")), "{pass}");
        assert!(pass["source"].as_str().unwrap().ends_with("/run.h5"), "{pass}");
        assert!(pass["done"].as_u64() < pass["all"].as_u64() && pass["seconds"].as_f64() >= Some(0.7), "{pass}");
    }
    for reader in &mut readers {
        assert_eq!(reader.try_wait().unwrap(), None);
        signal(reader.id(), libc::SIGKILL);
        assert_eq!(end_of(reader, LONG).unwrap().signal(), Some(libc::SIGKILL));
    }
    // Without a waiting reader the work stops, and with it the use of the processor.
    let daemon = mounted.daemon();
    let begin = Instant::now();
    loop {
        let before = ticks(daemon);
        std::thread::sleep(Duration::from_millis(500));
        if ticks(daemon) - before <= 5 {
            break;
        }
        assert!(begin.elapsed() < LONG, "the pass goes on although no reader waits");
    }
    others_answer(&mounted);
    assert_eq!(passes(&mounted), [Value::Null; 0]);
}

/// The lines of `.hepfs/passes` about passes of this mount.
fn passes(mounted: &Mounted) -> Vec<Value> {
    let mut lines = all_passes(mounted);
    lines.retain(|line| line["pid"] == mounted.daemon());
    lines
}

/// The lines of `.hepfs/passes`.
fn all_passes(mounted: &Mounted) -> Vec<Value> {
    mounted.text(".hepfs/passes").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_mount_lists_passes_of_others_of_its_user() {
    let ((_folder, slow), (_other, looked_at)) = (mounted(), mounted());
    let mut reader = waiting(&slow.join("t/table.csv"));
    let listed = |lines: Vec<Value>| lines.into_iter().find(|line| line["pid"] == slow.daemon());
    crate::support::until("the pass is listed", || listed(all_passes(&looked_at)).is_some());
    let line = listed(all_passes(&looked_at)).unwrap();
    let mountpoint = slow.join("").to_string_lossy().trim_end_matches('/').to_owned();
    assert_eq!((&line["command"], &line["mountpoint"]), (&"mount".into(), &mountpoint.into()), "{line}");
    assert_eq!((&line["title"], &line["doing"]), (&"t/table.csv".into(), &"sizing".into()), "{line}");
    signal(reader.id(), libc::SIGKILL);
    reader.wait().unwrap();
}

/// Processor time of a process so far, in hundredths of a second.
fn ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn an_endless_pass_does_not_hold_up_a_short_one() {
    let (_folder, mounted) = mounted();
    let mut readers = [waiting(&mounted.join("t/table.csv")), waiting(&mounted.join("t/columns/a.csv"))];
    let length = must("wc", ["-l".into(), mounted.join("some/table.csv")]);
    assert!(length.starts_with("2000001 "), "{length}");
    for reader in &mut readers {
        assert_eq!(reader.try_wait().unwrap(), None, "not an endless pass");
        signal(reader.id(), libc::SIGKILL);
        reader.wait().unwrap();
    }
}

#[test]
fn a_daemon_with_slow_opens_can_be_ended() {
    let (_folder, mounted) = mounted();
    let mut reader = waiting(&mounted.join("t/table.csv"));
    let daemon = mounted.daemon();
    signal(daemon, libc::SIGTERM);
    assert!(end_of(&mut reader, LONG).is_some(), "the reader still waits");
    crate::support::until("the daemon ends", || status(daemon, "PPid:").is_none());
}

#[test]
fn sizes_of_an_endless_table_cost_nothing() {
    let (_folder, mounted) = mounted();
    // 400 billion rows of 8 bytes.
    let sizes =
        must("stat", ["-c".into(), "%s %n".into(), mounted.join("t/columns/a.raw"), mounted.join("t/head.csv")]);
    assert!(sizes.starts_with("3200000000000 "), "{sizes}");
    let peak = status(mounted.daemon(), "VmHWM:").unwrap();
    assert!(peak < 400 << 10, "{peak} KiB");
}
