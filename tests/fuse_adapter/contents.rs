//! Reading: every byte, at every offset, also of files whose size is a bound until they are opened.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hepfs::fs::mount::MountOptions;

use crate::mounted::Mounted;
use crate::programs::must;
use crate::toy::{Manner, directory, file, pattern};

/// No multiple of a page, more than one read-ahead.
const LENGTH: usize = 3_000_001;

#[test]
fn bytes_come_as_they_are_at_every_offset() {
    for direct_io in [false, true] {
        let bytes = pattern(LENGTH);
        let root = directory([("a", file(bytes.clone(), Manner::Plain)), ("empty", file("", Manner::Plain))]);
        let mounted = Mounted::with(root, &MountOptions { direct_io, ..MountOptions::default() });
        assert_eq!(fs::metadata(mounted.path("a")).unwrap().len(), LENGTH as u64);
        let a = File::open(mounted.path("a")).unwrap();
        for (offset, length) in [(0, 1), (4095, 2), (131_071, 131_074), (2_999_999, 2), (1, LENGTH - 1)] {
            let mut out = vec![0; length];
            a.read_exact_at(&mut out, offset as u64).unwrap();
            assert!(out == bytes[offset..offset + length], "{length} bytes at {offset}, direct_io {direct_io}");
        }
        assert_eq!(a.read_at(&mut [0; 10], LENGTH as u64).unwrap(), 0);
        assert_eq!(a.read_at(&mut [0; 10], 1 << 40).unwrap(), 0);
        assert_eq!(a.read_at(&mut [0; 10], LENGTH as u64 - 3).unwrap(), 3);
        assert!(fs::read(mounted.path("a")).unwrap() == bytes);
        assert_eq!(fs::read(mounted.path("empty")).unwrap(), b"");
        assert!(maps(&a, &bytes));
    }
}

/// Whether the file's bytes through mmap(2), with the length that fstat(2) says, are these.
fn maps(file: &File, bytes: &[u8]) -> bool {
    maps_with(file, libc::MADV_NORMAL, bytes)
}

/// In a process of its own: who waits for a page may hold its process's memory map, which those who answer need too.
fn maps_with(file: &File, advice: i32, bytes: &[u8]) -> bool {
    let length = file.metadata().unwrap().len() as usize;
    assert_eq!(length, bytes.len());
    // SAFETY: the child makes system calls and compares memory, no more; the mapping ends with it.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let at = libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0);
            let is_mapped = at != libc::MAP_FAILED && libc::madvise(at, length, advice) == 0;
            libc::_exit(i32::from(!(is_mapped && libc::memcmp(at, bytes.as_ptr().cast(), length) == 0)));
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
    }
}

/// As Arrow does with all column chunks of a Parquet file. The kernel would read 256 KiB of each range, for nobody.
#[test]
fn ranges_that_are_announced_are_not_read_and_mappings_are() {
    let (bytes, read) = (pattern(LENGTH), Arc::new(AtomicU64::new(0)));
    let root = directory([("a", file(bytes.clone(), Manner::Stretches(read.clone())))]);
    let mounted = Mounted::new(root);
    let announce = |file: &File| {
        for offset in (0..LENGTH - 1).step_by(300_000) {
            // SAFETY: a system call on an open file.
            let refused =
                unsafe { libc::posix_fadvise(file.as_raw_fd(), offset as i64, 300_000, libc::POSIX_FADV_WILLNEED) };
            assert_eq!(refused, 0);
        }
    };
    let a = File::open(mounted.path("a")).unwrap();
    announce(&a);
    let mut end = [0; 10];
    a.read_exact_at(&mut end, LENGTH as u64 - 10).unwrap();
    announce(&a);
    // Answers to what was announced come before the next, and all of them before a page of a mapping.
    let mut whole = vec![0; LENGTH];
    a.read_exact_at(&mut whole, 0).unwrap();
    assert!(whole == bytes);
    assert_eq!(read.load(Ordering::SeqCst), LENGTH as u64 + 10);
    // Another file descriptor that read before, and what was announced of it, is mapped all the same, twice.
    let b = File::open(mounted.path("a")).unwrap();
    b.read_exact_at(&mut end, 0).unwrap();
    announce(&b);
    assert!(maps(&b, &bytes) && maps(&b, &bytes));
    assert!(maps(&a, &bytes));
    // And what was announced of one and is mapped by another, which was open before or is opened later.
    let other = File::open(mounted.path("a")).unwrap();
    announce(&other);
    assert!(maps_with(&a, libc::MADV_RANDOM, &bytes));
    drop((a, b, other));
    let b = File::open(mounted.path("a")).unwrap();
    announce(&b);
    drop(b);
    let b = File::open(mounted.path("a")).unwrap();
    assert!(maps_with(&b, libc::MADV_RANDOM, &bytes));
    // So is one that is only mapped, with read-ahead and without, and one that is spliced.
    let c = File::open(mounted.path("a")).unwrap();
    announce(&c);
    assert!(maps(&c, &bytes));
    let d = File::open(mounted.path("a")).unwrap();
    assert!(maps_with(&d, libc::MADV_RANDOM, &bytes));
    assert!(maps(&File::open(mounted.path("a")).unwrap(), &bytes));
    let (e, mut copy) = (File::open(mounted.path("a")).unwrap(), tempfile::tempfile().unwrap());
    announce(&e);
    let mut at = 0;
    while at < LENGTH as i64 {
        // SAFETY: a system call on open files; it writes to `at` alone.
        let sent = unsafe { libc::sendfile(copy.as_raw_fd(), e.as_raw_fd(), &raw mut at, LENGTH) };
        assert!(sent > 0, "{}", std::io::Error::last_os_error());
    }
    let mut sent = Vec::new();
    copy.seek(SeekFrom::Start(0)).unwrap();
    copy.read_to_end(&mut sent).unwrap();
    assert!(sent == bytes);
    b.read_exact_at(&mut whole, 0).unwrap();
    assert!(whole == bytes);
}

/// Every way of reading gets a file of its own, because an open makes the size exact for good.
#[test]
fn a_bound_at_stat_is_exact_once_open() {
    for length in [0, 1, 4096, 70_000, LENGTH] {
        let bytes = pattern(length);
        let ways = ["cat", "wc", "tail", "cp", "dd", "tar", "mmap", "read", "seek"];
        let root = directory(ways.map(|way| (way, file(bytes.clone(), Manner::Bound))));
        let mounted = Mounted::new(root);
        let path = |way: &str| {
            let path = mounted.path(way);
            let shown = fs::metadata(&path).unwrap();
            assert_eq!(shown.len(), 3 * length as u64 + 100_000, "{way}: not a bound before the open");
            assert!(shown.blocks() * 512 >= shown.len());
            path
        };
        assert!(must("cat", [path("cat")]) == bytes, "cat of {length}");
        let counted = must("wc", ["-c".into(), path("wc")]);
        assert!(counted.starts_with(format!("{length} ").as_bytes()), "wc of {length}: {counted:?}");
        let tail = must("tail", ["-c".into(), "10".into(), path("tail")]);
        assert_eq!(tail, bytes[length.saturating_sub(10)..], "tail of {length}");

        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        must("cp", [path("cp"), copy.clone()]);
        assert!(fs::read(&copy).unwrap() == bytes, "cp of {length}");
        let input = format!("if={}", path("dd").display());
        assert!(must("dd", [input.as_str(), "bs=64k", "status=none"]) == bytes, "dd of {length}");
        path("tar");
        let archive = must("tar", ["-C".into(), mounted.root(), "-cf".into(), "-".into(), "tar".into()]);
        fs::write(&copy, archive).unwrap();
        assert!(must("tar", ["-xOf".into(), copy.clone()]) == bytes, "tar of {length}");
        path("mmap");
        let opened = File::open(mounted.path("mmap")).unwrap();
        // Nothing can be mapped of an empty file.
        assert!(length == 0 || maps(&opened, &bytes), "mmap of {length}");
        path("read");
        let mut opened = File::open(mounted.path("read")).unwrap();
        assert_eq!(opened.metadata().unwrap().len(), length as u64);
        let mut all = Vec::new();
        opened.read_to_end(&mut all).unwrap();
        assert!(all == bytes);
        path("seek");
        let mut opened = File::open(mounted.path("seek")).unwrap();
        assert_eq!(opened.seek(SeekFrom::End(0)).unwrap(), length as u64);
        for way in ways {
            assert_eq!(fs::metadata(mounted.path(way)).unwrap().len(), length as u64, "{way} after the open");
        }
    }
}

#[test]
fn many_readers_at_once_see_the_same() {
    let bytes = pattern(LENGTH);
    let mounted = Mounted::new(directory([("a", file(bytes.clone(), Manner::Bound))]));
    std::thread::scope(|scope| {
        for reader in 0..16_usize {
            let (bytes, path) = (&bytes, mounted.path("a"));
            scope.spawn(move || {
                let a = File::open(path).unwrap();
                for step in 0..40 {
                    let offset = (reader * 7_919 + step * 104_729) % LENGTH;
                    let mut out = vec![0; 50_000.min(LENGTH - offset)];
                    a.read_exact_at(&mut out, offset as u64).unwrap();
                    assert!(out == bytes[offset..offset + out.len()]);
                }
            });
        }
    });
}

#[test]
fn a_live_file_is_made_anew_at_each_open() {
    let opens = Arc::new(AtomicU64::new(0));
    let mounted = Mounted::new(directory([("stats", file("", Manner::Live(opens)))]));
    let path = mounted.path("stats");
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), "opened 1 times\n");
    assert_eq!(must("cat", [&path]), b"opened 2 times\n");
    let mut opened = File::open(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "opened 4 times\n");
    // A handle shows what was there when it was opened, however it is read.
    let mut byte = [0; 4];
    opened.read_exact(&mut byte).unwrap();
    let mut rest = String::new();
    opened.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "ed 3 times\n");
    assert_eq!(opened.read_at(&mut byte, 1000).unwrap(), 0);
}

#[test]
fn a_short_answer_is_an_error_and_no_end_of_file() {
    let mounted = Mounted::new(directory([("a", file(pattern(1000), Manner::Short))]));
    assert_eq!(fs::read(mounted.path("a")).unwrap_err().raw_os_error(), Some(libc::EIO));
}

#[test]
fn a_damaged_file_can_be_listed_but_not_opened() {
    let mounted = Mounted::new(directory([("a", file("abc", Manner::Damaged)), ("b", file("b", Manner::Plain))]));
    assert!(fs::metadata(mounted.path("a")).unwrap().len() >= 3);
    assert_eq!(fs::read(mounted.path("a")).unwrap_err().raw_os_error(), Some(libc::EIO));
    assert_eq!(fs::read(mounted.path("b")).unwrap(), b"b");
}

#[test]
fn holes_polls_and_controls_are_those_of_a_plain_file() {
    let mounted = Mounted::new(directory([("a", file(pattern(10_000), Manner::Plain))]));
    let script = "import os, select, sys; f = open(sys.argv[1], 'rb'); fd = f.fileno(); \
                  print(f.isatty(), os.lseek(fd, 0, os.SEEK_HOLE), os.lseek(fd, 5, os.SEEK_DATA), \
                  select.select([fd], [], [], 5)[0] == [fd])";
    let said = must("python3", ["-c".into(), script.into(), mounted.path("a").into_os_string()]);
    assert_eq!(String::from_utf8(said).unwrap(), "False 10000 5 True\n");
}

/// `mawk` opens and reads, and never asks for the size. The kernel must have the exact one all the same: where it takes
/// answers past the end before the one that ends the file, it believes that the file ends there, and shows zeros.
#[test]
fn whoever_never_asks_for_the_size_meets_the_end_all_the_same() {
    let bytes = pattern(LENGTH);
    let mounted = Mounted::new(directory([("a", file(bytes.clone(), Manner::LateEnd))]));
    assert!(fs::metadata(mounted.path("a")).unwrap().len() > 2 * LENGTH as u64, "not a bound before the open");
    let mut a = File::open(mounted.path("a")).unwrap();
    let mut read = Vec::new();
    let mut piece = [0; 4095];
    loop {
        match a.read(&mut piece).unwrap() {
            0 => break,
            count => read.extend_from_slice(&piece[..count]),
        }
    }
    assert_eq!(read.len(), LENGTH);
    assert!(read == bytes);
}
