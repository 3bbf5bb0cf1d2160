//! Objects of stores where much goes wrong or much is large: the real program against a server of its own.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use rustix::fs::{SeekFrom, seek};

use crate::data;
use crate::objects::file_of;
use crate::range_server::RangeServer;
use crate::support::{HEPFS, Mounted, family, hepfs, signal, start, until};
use crate::writer::Writer;

/// Rows of a column whose values take 24 MB: an object too large to be fetched whole.
const ROWS: i64 = 3_000_000;

/// A server with a file, whose table `t` has a column `x` of the numbers below [`ROWS`], and its address.
fn served() -> (RangeServer, String) {
    let server = RangeServer::start();
    server.put("a.h5", file_of(&(0..ROWS).collect::<Vec<i64>>()));
    let url = server.url("a.h5");
    (server, url)
}

fn are_numbers(bytes: &[u8]) -> bool {
    bytes.len() == 8 * ROWS as usize
        && bytes.chunks(8).zip(0..).all(|(bytes, number)| bytes == i64::to_le_bytes(number))
}

/// A mount that keeps what it fetches in a folder.
fn mounted(url: &str, cache: &Path) -> Mounted {
    Mounted::new(&[Path::new(url)], &["--cache-folder", cache.to_str().unwrap()])
}

/// Reads all values, and the structures of the file, while nothing is known of it.
fn is_right(mounted: &Mounted) -> bool {
    mounted.names("t").contains(&"table.csv".to_owned()) && are_numbers(&mounted.read("t/columns/x.raw"))
}

/// The entries of objects in a cache folder.
fn entries(cache: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(cache.join("objects")).into_iter().flatten();
    all.map(|entry| entry.unwrap().path()).collect()
}

fn disk_hits(mounted: &Mounted) -> u64 {
    let stats = mounted.text(".hepfs/stats");
    stats.lines().find_map(|line| line.strip_prefix("disk_hits ")).unwrap().parse().unwrap()
}

#[test]
fn two_mounts_share_a_cache_whose_damage_costs_requests_alone() {
    let (_server, url) = served();
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let both = [mounted(&url, &cache), mounted(&url, &cache)];
    thread::scope(|scope| {
        let reads = [&both[0], &both[1]].map(|mounted| scope.spawn(|| is_right(mounted)));
        assert!(reads.into_iter().all(|read| read.join().unwrap()));
    });
    drop(both);
    until("what was fetched is kept", || !entries(&cache).is_empty());
    for (number, entry) in entries(&cache).into_iter().enumerate() {
        let mut bytes = fs::read(&entry).unwrap();
        let middle = bytes.len() / 2;
        match number % 3 {
            0 => bytes[middle] ^= 1,
            1 => bytes.truncate(middle),
            _ => bytes.clear(),
        }
        fs::write(entry, bytes).unwrap();
    }
    let damaged = mounted(&url, &cache);
    assert!(is_right(&damaged) && disk_hits(&damaged) == 0);
    drop(damaged);
    until("it is kept anew", || {
        let again = mounted(&url, &cache);
        is_right(&again) && disk_hits(&again) > 0
    });
}

#[test]
fn what_is_killed_while_it_fetches_leaves_nothing_wrong() {
    let (server, url) = served();
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    // Seconds for all of it.
    server.line(Duration::from_millis(20), Some(8_000_000));
    let first = mounted(&url, &cache);
    let daemon = first.daemon();
    thread::scope(|scope| {
        let read = scope.spawn(|| is_right(&first));
        for _ in 0..8 {
            thread::sleep(Duration::from_millis(100));
            // One may have ended by itself.
            family(daemon)[1..]
                .iter()
                .for_each(|worker| drop(Command::new("kill").args(["-9", &worker.to_string()]).output()));
        }
        assert!(read.join().unwrap());
    });
    let path = first.join("t/columns/x.csv");
    let mut reader = start("cat", [&path]);
    thread::sleep(Duration::from_millis(500));
    signal(daemon, libc::SIGKILL);
    assert!(!reader.wait().unwrap().success());
    drop(first);
    server.line(Duration::ZERO, None);
    for _ in 0..2 {
        assert!(is_right(&mounted(&url, &cache)));
    }
}

#[test]
fn a_full_disk_costs_requests_alone() {
    let (_server, url) = served();
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    fs::create_dir(&cache).unwrap();
    // A file system of 40 KiB, which no other process sees.
    let script = "cache=$1; shift; mount -t tmpfs -o size=40k,mode=700 full \"$cache\" || exit 77; \
                  \"$0\" \"$@\" --cache-folder \"$cache\"; code=$?; ls -A \"$cache\" >&2; exit $code";
    let is_root = rustix::process::geteuid().is_root();
    let own = ["--mount", "--propagation", "private"].into_iter().chain((!is_root).then_some("--map-root-user"));
    let place = format!("{url}:t/columns/x.raw");
    let line = own.chain(["sh", "-c", script, HEPFS, cache.to_str().unwrap(), "cat", &place]);
    let done = Command::new("unshare").args(line).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    // Some systems let ordinary users mount nothing.
    let has_none = !is_root && done.stdout.is_empty();
    assert!(has_none || done.status.success() && are_numbers(&done.stdout) && said.contains("objects"), "{said}");
}

#[test]
fn a_hundred_objects_of_one_prefix_are_opened_side_by_side() {
    let server = RangeServer::start();
    for number in 0..100 {
        server.put(&format!("bucket/runs/{number:02}.h5"), fs::read(data("seed_11_1.h5")).unwrap());
    }
    let options = ["--endpoint", &server.endpoint(), "--anonymous", "--region", "us-east-1", "--cache-folder", "none"];
    server.line(Duration::from_millis(30), None);
    let query = ["query", "--table", "my_table"].into_iter().chain(options);
    let output = hepfs(query.chain(["s3://bucket/runs/*.h5", "row_id >= 0"]));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Each has 500, as h5py says; and a line of names.
    assert_eq!(output.stdout.split(|byte| *byte == b'\n').count(), 100 * 500 + 2);
    let log = server.log();
    let lists = log.iter().filter(|one| one.range.is_none()).count();
    assert!(lists == 1 && log.len() <= 1 + 100 * 2, "{lists} of {}", log.len());
    assert!(server.most_in_flight() >= 4, "{}", server.most_in_flight());
}

/// The pieces of a file that are no holes.
fn pieces(file: &Path) -> Vec<(u64, Bytes)> {
    let (file, mut pieces, mut at) = (fs::File::open(file).unwrap(), Vec::new(), 0);
    while let Ok(begin) = seek(&file, SeekFrom::Data(at)) {
        at = seek(&file, SeekFrom::Hole(begin)).unwrap();
        let mut piece = vec![0; (at - begin) as usize];
        file.read_exact_at(&mut piece, begin).unwrap();
        pieces.push((begin, piece.into()));
    }
    pieces
}

#[test]
fn an_object_of_3_tb_is_read_where_it_is_wanted() {
    const HOLLOW: u64 = 375_000_000_000;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.h5");
    let writer = Writer::create(&file);
    writer.table("wide").hollow("big", HOLLOW);
    writer.table("t").column("x", &(0..ROWS).collect::<Vec<i64>>(), 20_000);
    writer.close();
    let server = RangeServer::start();
    server.put_sparse("a.h5", fs::metadata(&file).unwrap().len(), pieces(&file));
    let mounted = Mounted::new(&[Path::new(&server.url("a.h5"))], &[]);
    assert!(mounted.names("").ends_with(&["t".to_owned(), "wide".to_owned()]), "{:?}", mounted.names(""));
    let big = fs::File::open(mounted.join("wide/columns/big.raw")).unwrap();
    assert_eq!(big.metadata().unwrap().len(), 8 * HOLLOW);
    for at in [0, 4 * HOLLOW, 8 * HOLLOW - 4096] {
        let mut part = [1; 4096];
        big.read_exact_at(&mut part, at).unwrap();
        assert_eq!(part, [0; 4096]);
    }
    assert!(are_numbers(&mounted.read("t/columns/x.raw")));
    let log = server.log();
    let bytes: u64 = log.iter().map(|one| one.bytes).sum();
    assert!(log.len() < 200 && bytes < 40 << 20, "{} requests, {bytes} bytes", log.len());
}
