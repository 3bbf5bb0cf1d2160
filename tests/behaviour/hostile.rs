//! Files that are wrong, huge, or out to hurt: a mount of each is walked from end to end, with bounded time and memory,
//! and what is right in them reads right.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use hepfs::catalogue::Charset;
use hepfs::h5::create::{self, FillSetting, Storage};
use hepfs::h5::element::{AttributeValue, ElementNumber, ElementType};

use crate::data;
use crate::support::{HEPFS, Mounted, hepfs, lives, run_within, status};
use crate::writer::Writer;

/// The most that one file may take to be read, in any state of the machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes read of each file.
const FIRST: u64 = 1 << 20;

/// Names looked at in one directory: 5,000 columns are as many files as it takes to be slow, and no more telling.
const MOST_NAMES: usize = 150;

/// Depth of directories looked into.
const MOST_DEPTH: usize = 40;

/// The most that a daemon with a cache of 64 MiB may take, in KiB.
const MOST_MEMORY: u64 = 400 << 10;

/// What reading a file's beginning gave.
type Outcomes = HashMap<PathBuf, Result<Vec<u8>, i32>>;

/// Reads the beginning of every file below a folder; sends each path before it starts on it.
fn walk(folder: &Path, depth: usize, started: &Sender<PathBuf>, outcomes: &mut Outcomes) {
    started.send(folder.to_owned()).unwrap();
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) => {
            outcomes.insert(folder.to_owned(), Err(error.raw_os_error().unwrap()));
            return;
        }
    };
    let mut entries: Vec<_> = listed.map(Result::unwrap).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    entries.truncate(MOST_NAMES);
    for entry in entries {
        let path = entry.path();
        started.send(path.clone()).unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && depth < MOST_DEPTH {
            walk(&path, depth + 1, started, outcomes);
        } else if kind.is_file() && !takes_a_long_pass(&path) {
            let outcome = beginning(&path).map_err(|error| error.raw_os_error().unwrap());
            outcomes.insert(path, outcome);
        }
    }
}

/// Whether it is text whose lengths take longer to measure than this test waits; `slow.rs` is about those.
fn takes_a_long_pass(path: &Path) -> bool {
    let is_text = path.extension().is_some_and(|suffix| ["csv", "ndjson", "txt"].iter().any(|text| suffix == *text));
    is_text && fs::metadata(path).is_ok_and(|metadata| metadata.len() > 1 << 30)
}

fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    fs::metadata(path)?;
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::new();
    (&file).take(FIRST).read_to_end(&mut bytes)?;
    // The size is exact once a file is open; live files say nothing of theirs.
    if size > 0 {
        assert_eq!(bytes.len() as u64, size.min(FIRST), "{}", path.display());
        // The end must be where the size says it is.
        file.read_at(&mut [0; 100], size - size.min(100)).map(|count| assert_eq!(count as u64, size.min(100)))?;
    }
    Ok(bytes)
}

/// Walks with a limit on every step.
fn walk_all(root: &Path) -> Outcomes {
    let (started, steps): (Sender<PathBuf>, Receiver<PathBuf>) = mpsc::channel();
    let root = root.to_owned();
    let walker = std::thread::spawn(move || {
        let mut outcomes = Outcomes::new();
        walk(&root, 0, &started, &mut outcomes);
        outcomes
    });
    let mut last = PathBuf::new();
    loop {
        match steps.recv_timeout(PATIENCE) {
            Ok(path) => last = path,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => panic!("{} takes longer than {PATIENCE:?}", last.display()),
        }
    }
    walker.join().unwrap()
}

/// Mounts a hostile file, walks it, and checks that the daemon lives on in bounded memory.
fn survive(name: &str, arguments: &[&str]) -> (Mounted, Outcomes) {
    let mounted = Mounted::new(&[&data(&format!("hostile/{name}.h5"))], arguments);
    let daemon = mounted.daemon();
    let outcomes = walk_all(mounted.path());
    assert!(lives(daemon), "{name}: the daemon died: {}", mounted.log());
    assert!(!mounted.log().contains("panic"), "{name}: {}", mounted.log());
    let peak = status(daemon, "VmHWM:").unwrap();
    assert!(peak < MOST_MEMORY, "{name}: {peak} KiB");
    // Errors are of the kinds that stand for a damaged file.
    for (path, outcome) in &outcomes {
        if let Err(errno) = outcome {
            assert!(matches!(*errno, libc::EIO), "{}: errno {errno}", path.display());
        }
    }
    (mounted, outcomes)
}

/// Neither what is kept nor what is decoded at a time may be large.
const SMALL_CACHE: &[&str] = &["--cache-size", "64M", "--max-chunk", "64M"];

/// Every file of the folder that can be mounted and walked; those that cannot be mounted are in `daemon.rs`.
fn mountable() -> Vec<String> {
    let refused = [
        // Far too long for a walk; they have tests of their own.
        "amplified",
        "attribute_loop",
        "computed_rows",
        "empty",
        "much_by_links",
        "not_hdf5",
        "root_unlistable",
        "signature_only",
        "superblock_nonsense",
        "truncated",
        "truncated_end",
        "truncated_superblock",
        "zeroed_middle",
    ];
    let listed = fs::read_dir(data("hostile")).unwrap();
    let names = listed.map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| !refused.contains(&name.as_str())).collect();
    names.sort();
    names
}

#[test]
fn every_hostile_file_is_walked_to_its_end() {
    let names = mountable();
    assert!(names.len() > 25, "{names:?}");
    let only = std::env::var("HEPFS_TEST_FIXTURE").unwrap_or_default();
    for name in names.iter().filter(|name| name.contains(&only)) {
        let (_, outcomes) = survive(name, SMALL_CACHE);
        assert!(outcomes.len() > 2, "{name}: {:?}", outcomes.keys());
    }
}

#[test]
fn every_hostile_file_at_once() {
    // One mount of them all, and several readers that do not wait for each other.
    let mounted = Mounted::new(&[&data("hostile")], SMALL_CACHE);
    let daemon = mounted.daemon();
    std::thread::scope(|scope| {
        for folder in ["deflate_bomb.h5", "zstd_bomb.h5", "huge_chunks.h5", "corrupt_chunks.h5", "vlen_nowhere.h5"] {
            let path = mounted.join(folder);
            scope.spawn(move || walk_all(&path));
        }
    });
    assert!(lives(daemon));
    let peak = status(daemon, "VmHWM:").unwrap();
    assert!(peak < MOST_MEMORY, "{peak} KiB");
    assert_eq!(mounted.text("version_9.h5/good/columns/x.csv"), "x\n1\n2\n3\n");
}

#[test]
fn no_hostile_text_reaches_a_terminal_raw() {
    for name in fs::read_dir(data("hostile")).unwrap().map(|entry| entry.unwrap().path()) {
        for command in [&["ls", "-l"][..], &["info"]] {
            // What is amplified takes long to measure.
            let command = if name.ends_with("amplified.h5") { &command[..1] } else { command };
            let mut line: Vec<&std::ffi::OsStr> = command.iter().map(std::ffi::OsStr::new).collect();
            line.push(name.as_os_str());
            let output = hepfs(line);
            for text in [&output.stdout, &output.stderr] {
                let text = String::from_utf8_lossy(text);
                let bad = text.chars().find(|c| c.is_control() && *c != '\n');
                assert_eq!(bad, None, "{command:?} {}: {text:?}", name.display());
            }
        }
    }
    // A reason instead of a size.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let writer = Writer::create(&path);
    writer.table("t").column("x\x1b[2J", &[1, 2], 2);
    writer.close();
    let listed = hepfs(["ls", "-l", "--max-chunk=1", &format!("{}:t/columns", path.display())]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("--max-chunk") && !listed.contains('\x1b'), "{listed:?}");
    let (mounted, _) = survive("terminal_escapes", &[]);
    for name in mounted.names("") {
        assert!(!name.contains(|c: char| c < ' ' || c == '\x7f'), "{name:?}");
        let inside =
            hepfs(["ls".into(), format!("{}:{name}/nothing\x1b[2J", data("hostile/terminal_escapes.h5").display())]);
        assert!(!inside.stderr.contains(&0x1b) && !inside.status.success(), "{inside:?}");
    }
    let log = mounted.log() + &mounted.text(".hepfs/errors") + &mounted.text(".hepfs/findings");
    assert!(!log.contains('\x1b'), "{log:?}");
}

/// Overrides, isolates and separators of Unicode: `gpj.exe` would be displayed as `exe.jpg`.
#[test]
fn nothing_that_reorders_a_line_reaches_a_terminal_raw() {
    let odd = "\u{202e}gpj.exe\u{2028}\u{2066}\u{200f}";
    let is_odd = |c: char| odd.contains(c) && !c.is_ascii();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    let writer = Writer::create(&path);
    // The second column is shorter, which is a finding.
    let table = writer.table(&format!("t{odd}"));
    table.column(&format!("x{odd}"), &[1, 2], 2);
    table.column("y", &[1], 1);
    drop(table);
    writer.close();
    let file = path.to_str().unwrap();
    let table = format!("{file}:t{odd}");
    let (columns, absent) = (format!("{table}/columns"), format!("{table}/absent{odd}"));
    for command in [
        &["info", file][..],
        &["info", "--json", &table],
        &["ls", "-l", &columns],
        &["check", file],
        &["check", "--json", file],
        &["cat", &absent],
        &["query", &table, "absent > 1"],
    ] {
        let output = hepfs(command);
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        assert!(!said.contains(is_odd), "{command:?}: {said:?}");
        assert!(said.contains("gpj.exe"), "{command:?}: {said:?}");
        for line in said.lines().filter(|line| line.starts_with('{')) {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(value.to_string().contains('\u{202e}'), "{line}");
        }
    }
    let mounted = Mounted::new(&[&path], &[]);
    let metadata = mounted.text("metadata.json") + &mounted.text(format!("t{odd}/metadata.json"));
    let told = metadata + &mounted.text(".hepfs/findings") + &mounted.text(".hepfs/errors");
    assert!(!told.contains(is_odd) && told.contains("\\u202egpj.exe"), "{told:?}");
}

fn rows(range: std::ops::Range<i64>) -> Vec<u8> {
    range.flat_map(|row| (row * row).to_le_bytes()).collect()
}

/// Made: `/t` with `good`, the numbers 0 to 299, and a column of their squares in chunks of 100 for each of seven
/// filters. Bytes of chunk 1 of each are flipped.
#[test]
fn a_corrupt_chunk_fails_its_own_rows_alone() {
    let (mounted, _) = survive("corrupt_chunks", SMALL_CACHE);
    let good: Vec<u8> = (0..300_i64).flat_map(i64::to_le_bytes).collect();
    assert_eq!(mounted.read("t/columns/good.raw"), good);
    for name in ["gzip", "shuffle_gzip", "fletcher32", "gzip_fletcher32", "zstd", "lz4", "lzf"] {
        // Direct I/O would show the same; here each chunk of 800 bytes is asked for past the page cache's read-ahead.
        let direct = Mounted::new(&[&data("hostile/corrupt_chunks.h5")], &["--direct-io"]);
        let file = File::open(direct.join(format!("t/columns/{name}.raw"))).unwrap();
        let read = |start: i64| {
            let mut bytes = vec![0; 800];
            file.read_exact_at(&mut bytes, 8 * start as u64).map(|()| bytes)
        };
        assert_eq!(read(0).unwrap(), rows(0..100), "{name}: the chunk before");
        assert_eq!(read(200).unwrap(), rows(200..300), "{name}: the chunk behind");
        assert_eq!(read(100).unwrap_err().raw_os_error(), Some(libc::EIO), "{name}");
        let errors = direct.text(".hepfs/errors");
        let chunk =
            errors.split_once(&format!("corrupt_chunks.h5: /t/{name}: chunk 1 (byte ")).map(|(_, reason)| reason);
        assert!(chunk.is_some(), "{name}: {errors}");
        assert_eq!(chunk.unwrap().contains("): fletcher32: checksum is "), name.contains("fletcher32"), "{errors}");
    }
}

/// Made: `/t` with columns of 300 numbers in deflated chunks of 100. The index says of chunk 1 that it begins 3 bytes
/// before the end of the file (`past_end`), at 2^62 (`far`) or at 0 (`at_zero`), or takes 2^32 − 16 (`size_huge`) or 0
/// bytes (`size_zero`).
#[test]
fn chunks_out_of_the_file_fail_their_own_rows_alone() {
    let (mounted, _) = survive("chunk_map_nonsense", SMALL_CACHE);
    let numbers: Vec<u8> = (0..300_i64).flat_map(i64::to_le_bytes).collect();
    assert_eq!(mounted.read("t/columns/good.raw"), numbers);
    let direct = Mounted::new(&[&data("hostile/chunk_map_nonsense.h5")], &["--direct-io"]);
    for name in ["past_end", "far", "at_zero", "size_huge", "size_zero"] {
        let file = File::open(direct.join(format!("t/columns/{name}.raw"))).unwrap();
        assert_eq!(file.read_at(&mut [0; 800], 800).unwrap_err().raw_os_error(), Some(libc::EIO), "{name}");
    }
}

/// Chunks that fail, of an array of the numbers from 1 on, four a chunk; in others the values are right. Expected are
/// the numbers that `scripts/fixtures/hostile.py` wrote; which chunks it spoilt, it says.
fn lost_chunks(direct: &Mounted, path: &str, chunks: usize) -> Vec<usize> {
    let number = |at: usize| (at as i32 + 1).to_le_bytes();
    let file = File::open(direct.join(path)).unwrap();
    let is_lost = |chunk: &usize| {
        let mut bytes = [0; 16];
        match file.read_at(&mut bytes, 16 * *chunk as u64) {
            Ok(count) => {
                let expected: Vec<u8> = (4 * chunk..4 * chunk + 4).flat_map(number).collect();
                assert_eq!(bytes[..count], expected, "{path}: chunk {chunk}");
                false
            }
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(libc::EIO), "{path}");
                true
            }
        }
    };
    (0..chunks).filter(is_lost).collect()
}

/// Made: `/cells/obsm` has 400 hard links to one data frame of 1,500 columns; `/levels` is a pandas index of 1,000
/// levels, all one dataset; the 20,000 rows of `/texts` have one label of 64 KiB in two levels; `/struct` has 40 links
/// to one MATLAB cell column of 60,000 references to one letter.
///
/// What a table is made of may be linked to very often: it is read as far as it has room, and the rest is told.
#[test]
fn what_is_linked_very_often_has_a_bound() {
    let mounted = Mounted::new(&[&data("hostile/much_by_links.h5")], SMALL_CACHE);
    for table in ["cells/obsm", "levels", "texts", "struct"] {
        assert!(mounted.text(format!("{table}/metadata.json")).contains("\"columns\""), "{table}");
    }
    let findings = mounted.text(".hepfs/findings");
    for (path, found) in [
        ("/cells/obsm/m043", "more than 65536 members"),
        ("/levels", "axis0: more than 1048576 labels of levels"),
        ("/texts", "axis0: labels of more than 67108864 bytes"),
    ] {
        let told = |line: &&str| line.contains(&format!("\"path\":\"{path}\"")) && line.contains(found);
        assert!(findings.lines().any(|line| told(&line)), "{path}: {findings}");
    }
    assert!(!findings.contains("/cells/obsm/m042\"") && !findings.contains("/struct"), "{findings}");
    let peak = status(mounted.daemon(), "VmHWM:").unwrap();
    assert!(peak < MOST_MEMORY, "{peak} KiB");
}

/// What is there to be found only when values are read; how long it takes follows from what is stored.
#[test]
fn check_reads_every_value() {
    let check = |name: &str, more: &[&str]| {
        let file = data(&format!("hostile/{name}.h5")).display().to_string();
        let output = hepfs(["check", &file, "--cache-folder=none", "--cache-size=8M"].iter().chain(more));
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, said) = check("corrupt_chunks", &[]);
    let broken: Vec<&str> =
        said.lines().filter(|line| line.contains(" rows cannot be read, the first is row ")).collect();
    // The second chunk of 100 rows of seven columns is damaged.
    assert!(code == Some(2) && broken.len() == 7, "{said}");
    assert!(broken.iter().all(|line| line.contains(": FAILED: 100 rows") && line.contains("row 100: ")), "{said}");
    let (code, said) = check("corrupt_chunks", &["--quick"]);
    assert!(code == Some(0) && !said.contains("cannot be read"), "{said}");

    let (code, said) = check("bad_values", &[]);
    assert_eq!(code, Some(1), "{said}");
    for rule in ["a boolean is 0 or 1", "an enumeration code has a name"] {
        let line = said.lines().find(|line| line.contains(rule));
        assert!(line.is_some_and(|line| line.contains(" rows, the first is row ")), "{rule}: {said}");
    }
    // 2^62 rows are claimed, of which none is stored.
    let (code, said) = check("rows_2_62", &[]);
    assert!(code == Some(2) && said.contains("pass 2^63 bytes"), "{said}");
    // 2^40 rows follow from a few numbers.
    let (code, said) = check("computed_rows", &[]);
    assert!(code == Some(0) && said.contains("7 tables, 0 errors"), "{said}");
}

/// What a mount and `hepfs check` say of the chunk indexes of a file with damaged ones.
fn said_of_indexes(direct: &Mounted, source: &Path) -> [String; 2] {
    let check = hepfs(["check".as_ref(), source.as_os_str()]);
    assert_ne!(check.status.code(), Some(0));
    [direct.text(".hepfs/findings"), String::from_utf8(check.stdout).unwrap()]
}

fn names_index(said: &str, path: &str) -> bool {
    said.lines().any(|line| line.contains(path) && line.contains("a chunk index lists"))
}

/// Made: `/t` with columns of 1 to 40 in chunks of 4, whose B-tree lists a chunk at another's position (`twice`,
/// `twice_plain`), at row 4,000 (`astray`), with 0 bytes (`nothing`, `nothing_plain`) or at 2^40 (`beyond`); `sound` is
/// whole. The tree of `/circle`, 1 to 400, leads to one leaf twice.
#[test]
fn a_damaged_chunk_index_is_an_error_of_its_rows_and_a_finding() {
    survive("chunk_index_damaged", SMALL_CACHE);
    let source = data("hostile/chunk_index_damaged.h5");
    let direct = Mounted::new(&[&source], &["--direct-io"]);
    let spoilt: [(&str, &[usize]); 7] = [
        ("sound", &[]),
        ("twice", &[2, 3]),
        ("twice_plain", &[2, 3]),
        // h5py reads both as never written: a search for the second ends at the key of the first.
        ("astray", &[3, 4]),
        ("nothing", &[3]),
        ("nothing_plain", &[3]),
        ("beyond", &[3]),
    ];
    for (name, bad) in spoilt {
        assert_eq!(lost_chunks(&direct, &format!("t/columns/{name}.raw"), 10), bad, "{name}");
    }
    // Its first leaf is listed twice, the second never, and nothing is listed behind both that was before.
    let lost = lost_chunks(&direct, "circle.raw", 100);
    assert!(lost.len() >= 32 && lost[0] >= 32 && lost.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{lost:?}");
    for said in said_of_indexes(&direct, &source) {
        for (name, bad) in spoilt {
            assert_eq!(names_index(&said, &format!("/t/{name}")), !bad.is_empty(), "{name}: {said}");
        }
        assert!(names_index(&said, "/circle"), "{said}");
    }
}

/// Made: `/t/x` is 1 to 40 in chunks of 4; the last key of its B-tree is patched to zeros.
///
/// By h5py, the script that wrote the file says so: a search finds all chunks of `x` but the last.
#[test]
fn a_chunk_that_is_listed_and_not_found_is_an_error_of_its_rows_and_a_finding() {
    let source = data("hostile/chunk_keys_contradict.h5");
    let direct = Mounted::new(&[&source], &["--direct-io"]);
    assert_eq!(lost_chunks(&direct, "t/columns/x.raw", 10), [9]);
    for said in said_of_indexes(&direct, &source) {
        assert!(names_index(&said, "/t/x"), "{said}");
    }
}

/// Made: for each kind, datasets of 1 to 40 in chunks of 4, whose index has for chunk 3 the entry of chunk 2 (`twice`),
/// 0 bytes (`nothing`) or an address past the end (`beyond`), or a block past the end (`nowhere`).
///
/// Fixed arrays, extensible arrays and trees of version 2, whose checksums are right.
#[test]
fn damaged_chunk_indexes_of_newer_kinds_are_errors_of_their_rows_and_findings() {
    survive("chunk_index_latest", SMALL_CACHE);
    let source = data("hostile/chunk_index_latest.h5");
    let direct = Mounted::new(&[&source], &["--direct-io"]);
    let mut damaged = Vec::new();
    for kind in ["fixed", "growing", "tree"] {
        let place = |what: &str| match kind {
            "tree" => (format!("/tree_{what}"), format!("tree_{what}.raw")),
            _ => (format!("/t/{kind}_{what}"), format!("t/columns/{kind}_{what}.raw")),
        };
        let common: [(&str, &[usize]); 6] = [
            ("sound", &[]),
            ("twice", &[2, 3]),
            ("twice_plain", &[2, 3]),
            ("nothing", &[3]),
            ("beyond", &[3]),
            ("beyond_plain", &[3]),
        ];
        for (what, bad) in common {
            let (path, file) = place(what);
            assert_eq!(lost_chunks(&direct, &file, 10), bad, "{path}");
            damaged.extend((!bad.is_empty()).then_some(path));
        }
        // A block that is not there, and more entries than there can be. What libhdf5 listed before it failed stays.
        let own: &[&str] = match kind {
            "fixed" => &["nowhere", "claims"],
            "growing" => &["nowhere"],
            _ => &["nowhere", "claims"],
        };
        for what in own {
            let (path, file) = place(what);
            let first = if kind == "growing" { 4 } else { 0 };
            assert_eq!(lost_chunks(&direct, &file, 10), (first..10).collect::<Vec<_>>(), "{path}");
            damaged.push(path);
        }
    }
    assert_eq!(lost_chunks(&direct, "tree_astray.raw", 10), [3]);
    // The first four are listed without a block; of two blocks that are one, neither is believed, nor what follows.
    assert_eq!(lost_chunks(&direct, "growing_same.raw", 100), (4..100).collect::<Vec<_>>());
    for name in ["tree_same", "tree_itself"] {
        let lost = lost_chunks(&direct, &format!("{name}.raw"), 100);
        assert!(lost[0] >= 32 && lost == (lost[0]..100).collect::<Vec<_>>(), "{name}: {lost:?}");
    }
    // Of two pages of 1,024 entries and the rest, the second is damaged.
    let page = File::open(direct.join("fixed_page.raw")).unwrap();
    let mut bytes = [0; 1024];
    page.read_exact_at(&mut bytes, 0).unwrap();
    assert!(bytes.iter().enumerate().all(|(at, byte)| usize::from(*byte) == at % 100));
    assert_eq!(page.read_at(&mut bytes, 1024).unwrap_err().raw_os_error(), Some(libc::EIO));
    damaged.extend(["/tree_astray", "/growing_same", "/tree_same", "/tree_itself"].map(String::from));
    damaged.push("/fixed_page".into());
    for said in said_of_indexes(&direct, &source) {
        for path in &damaged {
            assert!(names_index(&said, path), "{path}: {said}");
        }
        assert!(
            !["fixed", "growing", "tree"].iter().any(|kind| names_index(&said, &format!("{kind}_sound"))),
            "{said}"
        );
    }
}

/// Made: tables of HEP001 with one column `x`, whose `VERSION` is 1.0 in `/good`, 9.0 in `/nine`, 1.99 in `/minor`, and
/// `2.0`, `one`, empty, too long, a number or absent in others.
#[test]
fn a_table_of_an_unknown_version_is_shown_as_a_group_with_a_finding() {
    let (mounted, _) = survive("version_9", &[]);
    let files = ["x.arrow", "x.csv", "x.ndjson", "x.npy", "x.parquet", "x.raw", "x.txt"];
    assert_eq!(mounted.names("nine"), [&["index.html", "metadata.json"][..], &files].concat());
    let metadata: serde_json::Value = serde_json::from_slice(&mounted.read("nine/metadata.json")).unwrap();
    assert_eq!(metadata["kind"], "group");
    assert!(metadata["findings"][0]["found"].as_str().unwrap().contains("9.0"), "{metadata}");
    assert_eq!(mounted.text("good/columns/x.csv"), "x\n1\n2\n3\n");
    assert_eq!(mounted.text("minor/columns/x.csv"), "x\n1\n");
    assert!(mounted.text(".hepfs/findings").contains("9.0"));
}

/// Made: `/t` with booleans 0, 1, 2, −1 (`boolean`), codes 0, 1, 2, −2 and 0, 2^63, 2^64 − 1, 1 of the two labels a, b
/// (`codes`, `wide`), and 1, 2, 3, −1 of an enumeration of ONE = 1, TWO = 2 (`unnamed`).
#[test]
fn what_has_no_meaning_is_missing_and_counted() {
    let (mounted, _) = survive("bad_values", &[]);
    assert_eq!(mounted.text("t/columns/boolean.txt"), "false\ntrue\n\n\n");
    assert_eq!(mounted.text("t/columns/codes.txt"), "a\nb\n\n\n");
    assert_eq!(mounted.text("t/columns/wide.txt"), "a\n\n\nb\n");
    assert_eq!(mounted.text("t/columns/unnamed.txt"), "ONE\nTWO\n3\n-1\n");
    let findings = mounted.text(".hepfs/findings");
    let counted = |path: &str| {
        let line = findings.lines().find(|line| line.contains(&format!("\"{path}\"")) && line.contains("first_row"));
        let line = line.unwrap_or_else(|| panic!("no {path} in {findings}"));
        let finding: serde_json::Value = serde_json::from_str(line).unwrap();
        (finding["rows"].as_u64().unwrap(), finding["first_row"].as_u64().unwrap())
    };
    assert_eq!(counted("/t/boolean"), (2, 2));
    assert_eq!(counted("/t/codes"), (2, 2));
    assert_eq!(counted("/t/wide"), (2, 1));
}

/// Made: a table `/good`, and three whose references (labels, search indexes, row labels) are null, point beyond the
/// file (`outside`) or at byte 123 (`nonsense`); the attributes of `/wrong_types` have other types.
#[test]
fn dangling_references_are_findings() {
    let (mounted, _) = survive("dangling_references", &[]);
    assert_eq!(mounted.text("good/columns/x.csv"), "x\n1\n2\n3\n");
    for table in ["null", "outside", "nonsense", "wrong_types"] {
        assert_eq!(mounted.text(format!("{table}/columns/x.csv")), "x\n0\n1\n0\n", "{table}");
        let metadata: serde_json::Value =
            serde_json::from_slice(&mounted.read(format!("{table}/metadata.json"))).unwrap();
        assert!(!metadata["findings"].as_array().unwrap().is_empty(), "{table}: {metadata}");
    }
}

/// Made: 416 rows of three references (object, region, standard). All are good in rows 0 and 415 and null in row 1;
/// rows 2 to 14 have one that is broken, the others random bytes.
#[test]
fn broken_references_inside_elements_are_missing_alone() {
    let (mounted, _) = survive("broken_references", &[]);
    let parse = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let rows: Vec<_> = mounted.text("t/columns/compound.ndjson").lines().map(parse).collect();
    assert_eq!(rows.len(), 416);
    for (n, row) in rows.iter().enumerate() {
        let mut expected = serde_json::json!({
            "n": n, "object": "/image", "region": "/image[1:3,2:5]", "standard": "/image@units"
        });
        match n {
            1 | 15..415 => {
                expected = serde_json::json!({ "n": n, "object": null, "region": null, "standard": null });
            }
            2..5 => expected["object"] = serde_json::Value::Null,
            5..8 => expected["region"] = serde_json::Value::Null,
            8..11 => expected["region"] = "/image[?]".into(),
            11..15 => expected["standard"] = serde_json::Value::Null,
            _ => {}
        }
        assert_eq!(row["compound"], expected, "row {n}");
    }
    let sequences = mounted.text("t/columns/sequence.ndjson");
    assert_eq!(parse(sequences.lines().next().unwrap())["sequence"], serde_json::json!(["/image", null, "/image"]));
    assert_eq!(mounted.read("t/columns/compound.raw").len(), 416 * 42);
}

/// Made: `/t` with columns `a` to `e` of 5, 0, 7, 5, 1 rows, a `matrix` of 5 × 2, a scalar and a dataset without
/// extent.
#[test]
fn columns_of_unequal_length_are_shown_alone() {
    let (mounted, _) = survive("unequal_columns", &[]);
    assert_eq!(mounted.text("t/table.csv"), "a,d\n0,0\n1,1\n2,2\n3,3\n4,4\n");
    assert_eq!(mounted.text("t/columns/c.txt").lines().count(), 7);
    assert_eq!(mounted.text("t/columns/b.csv"), "b\n");
    assert!(mounted.names("t").contains(&"matrix.npy".to_owned()));
}

#[test]
fn a_bomb_is_an_error_and_its_neighbours_are_read() {
    for name in ["deflate_bomb", "zstd_bomb"] {
        let (mounted, outcomes) = survive(name, SMALL_CACHE);
        let overlong = &outcomes[&mounted.join("t/columns/overlong.raw")];
        assert_eq!(*overlong, Err(libc::EIO), "{name}: a stream longer than its chunk");
        let huge = &outcomes[&mounted.join("t/columns/gigabyte.raw")];
        assert_eq!(*huge, Err(libc::EIO), "{name}: a chunk larger than --max-chunk");
        assert_eq!(fs::metadata(mounted.join("t/columns/gigabyte.raw")).unwrap().len(), 1 << 30);
        let errors = mounted.text(".hepfs/errors");
        assert!(errors.contains("/t/gigabyte") && errors.contains("--max-chunk"), "{errors}");
    }
}

/// Made: `/t/gigabyte` is one deflated chunk of 1 GiB of zeros, 1 MiB as stored.
#[test]
fn a_chunk_larger_than_the_cache_is_read_one_at_a_time() {
    let mounted = Mounted::new(&[&data("hostile/deflate_bomb.h5")], &["--cache-size=64M"]);
    let path = mounted.join("t/columns/gigabyte.raw");
    std::thread::scope(|scope| {
        for reader in 0..4 {
            let path = &path;
            scope.spawn(move || {
                let mut bytes = vec![1; 4096];
                File::open(path).unwrap().read_exact_at(&mut bytes, reader << 26).unwrap();
                assert_eq!(bytes, [0; 4096]);
            });
        }
    });
    let peak = status(mounted.daemon(), "VmHWM:").unwrap();
    assert!(peak < (1 << 20) + MOST_MEMORY, "{peak} KiB");
}

/// Made: `/t` with columns of 2^62 rows, none of which was ever written: chunked and contiguous, of 1 and 8 bytes, of
/// variable length.
#[test]
fn two_to_the_62_rows_are_listed_and_read_at_both_ends() {
    let (mounted, _) = survive("rows_2_62", SMALL_CACHE);
    let file = File::open(mounted.join("t/columns/u1.raw")).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 1 << 62);
    assert_eq!(file.read_at(&mut [1; 10], (1 << 62) - 10).unwrap(), 10);
    let metadata = mounted.text("t/metadata.json");
    assert!(metadata.contains("pass 2^63 bytes"), "{metadata}");
    for absent in ["table.parquet", "table.arrow"] {
        assert!(metadata.contains(&format!("\"{absent}\"")), "why there is no {absent}: {metadata}");
    }
}

/// What a daemon may take with a cache of 64 MiB, in KiB: 256 MiB more.
const MOST_BESIDE: u64 = (64 + 256) << 10;

/// All rows of `amplified` lead to this text of 1 MiB.
fn amplified_text() -> String {
    "hepfs, \n".repeat(1 << 17)
}

/// The size of an open file, and 100 bytes from an offset on.
fn size_and_bytes(path: &Path, offset: u64) -> io::Result<(u64, Vec<u8>)> {
    let file = File::open(path)?;
    let mut bytes = vec![0; 100];
    let count = file.read_at(&mut bytes, offset)?;
    bytes.truncate(count);
    Ok((file.metadata()?.len(), bytes))
}

/// Made: datasets of 100,000 rows (texts, sequences, compounds of five texts, sequences of 1,000 texts) whose
/// descriptors all point to one heap object of 1 MiB.
#[test]
fn rows_that_lead_to_one_object_are_measured_and_shown_in_little_memory() {
    let mounted = Mounted::new(&[&data("hostile/amplified.h5")], &["--cache-size", "64M"]);
    let daemon = mounted.daemon();
    let text = amplified_text();
    let (rows, json) = (100_000_u64, serde_json::to_string(&text).unwrap());
    let line = text.replace('\n', "\\n") + "\n";
    let quoted = format!("\"{text}\"\n");
    let list = {
        // The same bytes as numbers.
        let numbers: Vec<String> =
            text.as_bytes().chunks_exact(4).map(|n| i32::from_le_bytes(n.try_into().unwrap()).to_string()).collect();
        format!("[{}]\n", numbers.join(","))
    };
    // Name, text before the rows, the text of each row, how many rows.
    let expected = [
        ("s.txt", "", line.clone(), rows),
        ("s.csv", "s\n", quoted.clone(), rows),
        ("s.raw", "", format!("{text}\0"), rows),
        ("s.ndjson", "", format!("{{\"s\":{json}}}\n"), rows),
        ("t/columns/s.txt", "", line.clone(), rows),
        ("t/columns/q.txt", "", list, rows),
        ("t/where/n:eq:3/columns/s.txt", "", line.clone(), rows / 7 + 1),
        ("t/where/s:prefix:hepfs/columns/s.csv", "s\n", quoted, rows),
    ];
    // All at once, the last rows of each as well.
    std::thread::scope(|scope| {
        for (name, header, row, rows) in &expected {
            let path = mounted.join(name);
            scope.spawn(move || {
                let (header_bytes, width) = (header.len() as u64, row.len() as u64);
                for at in [0, rows / 2, rows - 1] {
                    let (size, bytes) = size_and_bytes(&path, header_bytes + at * width)
                        .unwrap_or_else(|error| panic!("{name}: {error}"));
                    assert_eq!(
                        (size, bytes.as_slice()),
                        (header_bytes + rows * width, &row.as_bytes()[..100]),
                        "{name}"
                    );
                }
            });
        }
    });
    // Sizes that lengths make follow from descriptors, however much these lead to: measured by values, each of these
    // took half a minute and more. No batch of the lists fits into an Arrow file.
    let began = Instant::now();
    for (name, magic) in [("table.arrow", "ARROW1"), ("table.parquet", "PAR1")] {
        let (size, bytes) = size_and_bytes(&mounted.join("t/where/n:eq:3").join(name), 0).unwrap();
        assert!(size > (rows / 7 + 1) * (2 << 20) && bytes.starts_with(magic.as_bytes()), "{name}: {size}");
    }
    assert!(size_and_bytes(&mounted.join("lists/columns/l.arrow"), 0).is_err());
    // Four of them in a field of each row.
    let row = format!("{{\"a\":[{json},{json},{json},{json}]}}\n");
    let (size, bytes) = size_and_bytes(&mounted.join("pair/columns/a.ndjson"), (rows - 1) * row.len() as u64).unwrap();
    assert_eq!((size, bytes.as_slice()), (rows * row.len() as u64, &row.as_bytes()[..100]));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let (size, shown) = size_and_bytes(&mounted.join("t/head.csv"), 0).unwrap();
    assert!(size > 1000 << 20 && shown.starts_with(b"n,q,s\n0,\"["), "{size}: {shown:?}");
    // A value that is too much alone is an error, of it alone.
    for name in ["nested.csv", "scalar.txt"] {
        assert_eq!(size_and_bytes(&mounted.join(name), 0).unwrap_err().raw_os_error(), Some(libc::EIO), "{name}");
    }
    assert!(mounted.text(".hepfs/errors").contains("--max-chunk"));
    let attributes: serde_json::Value = serde_json::from_str(&mounted.text("metadata.json")).unwrap();
    assert!(attributes.to_string().contains("the contents of its values"), "{attributes}");
    let peak = status(daemon, "VmHWM:").unwrap();
    assert!(peak < MOST_BESIDE, "{peak} KiB");
}

/// Made: `/row` is one row of 100 texts whose descriptors all point to one heap object of 1 MiB.
#[test]
fn a_value_is_as_large_as_the_option_allows() {
    let row = |options| {
        let mounted = Mounted::new(&[&data("hostile/amplified.h5")], options);
        let read = size_and_bytes(&mounted.join("row.ndjson"), 0);
        (read.map_err(|error| error.raw_os_error()), mounted.text(".hepfs/errors"))
    };
    let (refused, errors) = row(&["--cache-size", "64M"]);
    assert_eq!(refused, Err(Some(libc::EIO)));
    assert!(errors.contains("(--max-chunk)"), "{errors}");
    // A hundred texts in a row.
    let text = serde_json::to_string(&amplified_text()).unwrap();
    let expected = 100 * (text.len() as u64 + 1) + "[]".len() as u64;
    let (shown, errors) = row(&["--cache-size", "64M", "--max-chunk", "256M"]);
    let (size, bytes) = shown.unwrap_or_else(|code| panic!("{code:?}: {errors}"));
    assert_eq!((size, bytes), (expected, format!("[{}", &text[..99]).into_bytes()));
}

/// Made: every other list of `/lists/l`, a list column of 100,000 rows, spans all of its 2^20 values; the texts of the
/// other datasets all point to one heap object of 1 MiB.
#[test]
fn work_ends_with_the_reader_of_an_amplified_file() {
    let mounted = Mounted::new(&[&data("hostile/amplified.h5")], &["--cache-size", "64M"]);
    // A batch of 8 GB is refused before its nulls are counted.
    let began = Instant::now();
    assert_eq!(beginning(&mounted.join("lists/columns/l.arrow")).unwrap_err().raw_os_error(), Some(libc::EIO));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let daemon = mounted.daemon();
    for name in ["s.txt", "t/table.ndjson", "t/where/n:gt:0/table.csv", "pair/table.ndjson"] {
        let mut reader =
            std::process::Command::new("cat").arg(mounted.join(name)).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(2));
        reader.kill().unwrap();
        reader.wait().unwrap();
        std::thread::sleep(Duration::from_secs(1));
        let before = ticks(daemon);
        std::thread::sleep(Duration::from_secs(1));
        let after = ticks(daemon);
        assert!(after - before < 20, "{name}: {} ticks in a second", after - before);
    }
    let peak = status(daemon, "VmHWM:").unwrap();
    assert!(peak < MOST_BESIDE, "{peak} KiB");
}

/// The script that wrote the file has a hundred thousand labels lead to one text of a megabyte.
#[test]
fn what_very_many_rows_lead_to_is_checked_once() {
    let source = data("hostile/amplified.h5");
    let mut command = Command::new(HEPFS);
    command.arg("check").arg(&source).args(["--json", "--cache-folder", "none", "--cache-size", "64M"]);
    let output = run_within(PATIENCE, &mut command);
    let said = String::from_utf8_lossy(&output.stdout);
    let same = said.lines().find(|line| line.contains("/labels/names") && line.contains("99999"));
    assert!(same.is_some(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// What is decoded of texts and of wide rows is counted, though nothing of it was ever written, and serves again.
#[test]
fn rows_that_were_never_written_are_measured_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("claimed.h5");
    let rows = 1 << 40;
    let written: Result<(), create::Error> = create::file(&path, |root| {
        let text = ElementType::Text { charset: Charset::Ascii, size: 32_000, is_terminated: false };
        root.dataset("texts", &text, &Storage::chunked(&[rows], &[rows], &[1]), &FillSetting::Unset)?;
        let wide = Storage::chunked(&[rows, 500], &[rows, 500], &[1, 500]);
        root.dataset("wide", &f64::ELEMENT, &wide, &FillSetting::Unset)?;
        Ok(())
    });
    written.unwrap();
    // Of a larger cache, what is freed stays with the process.
    let mounted = Mounted::new(&[&path], &["--cache-size", "256M"]);
    for name in ["texts.txt", "wide.csv"] {
        let mut reader = Command::new("cat").arg(mounted.join(name)).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(10));
        reader.kill().unwrap();
        reader.wait().unwrap();
        let peak = status(mounted.daemon(), "VmHWM:").unwrap();
        assert!(peak < 200 << 10, "{name}: {peak} KiB");
    }
}

/// Hundredths of a second that a process has computed.
fn ticks(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

/// Made: `/contiguous`, `/chunked`, `/scalar` and `/t/x` of arrays of 1,000 × 1,000 × 1,000 bytes, never written;
/// `/t/n` is 1, 2, 3.
#[test]
fn elements_of_a_gigabyte_are_errors_of_their_text_alone() {
    let mounted = Mounted::new(&[&data("hostile/gigabyte_elements.h5")], &["--cache-size", "64M"]);
    let daemon = mounted.daemon();
    for name in
        ["contiguous.csv", "chunked.ndjson", "scalar.txt", "t/head.csv", "t/table.csv", "t/where/n:gt:1/table.csv"]
    {
        let outcome = size_and_bytes(&mounted.join(name), 0);
        assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::EIO), "{name}");
    }
    assert_eq!(mounted.text("t/where/n:gt:1/columns/n.txt"), "2\n3\n");
    for name in ["contiguous.raw", "chunked.raw", "t/columns/x.raw"] {
        assert_eq!(size_and_bytes(&mounted.join(name), 2_999_999_950).unwrap(), (3_000_000_000, vec![0; 50]), "{name}");
    }
    let (size, bytes) = size_and_bytes(&mounted.join("t/where/n:gt:1/columns/x.raw"), 1_999_999_900).unwrap();
    assert_eq!((size, bytes), (2_000_000_000, vec![0; 100]));
    assert!(mounted.text(".hepfs/errors").contains("row 0 takes 1000000000 bytes"));
    let peak = status(daemon, "VmHWM:").unwrap();
    assert!(peak < MOST_BESIDE, "{peak} KiB");
}

/// Made: `/t/gigabyte` is one deflated chunk of 1 GiB of zeros, 1 MiB as stored.
#[test]
fn memory_that_the_system_refuses_fails_its_request_alone() {
    // Chunks of 1 GiB are decoded beside the cache.
    let mounted = Mounted::new(&[&data("hostile/deflate_bomb.h5")], &["--cache-size", "64M"]);
    let daemon = mounted.daemon();
    // Threads that read are there, each with an arena of its own; there is room for a few more, not for the chunk.
    size_and_bytes(&mounted.join("t/columns/gigabyte.raw"), 0).unwrap();
    let limit = (status(daemon, "VmSize:").unwrap() << 10) + (768 << 20);
    limit_address_space(daemon, limit);
    let read = || size_and_bytes(&mounted.join("t/columns/gigabyte.raw"), 600 << 20);
    assert_eq!(read().unwrap_err().raw_os_error(), Some(libc::ENOMEM), "{}", mounted.log());
    assert!(mounted.text(".hepfs/errors").contains("no memory"));
    assert!(lives(daemon));
    limit_address_space(daemon, u64::MAX);
    assert_eq!(read().unwrap().1, vec![0; 100]);
}

/// Sets the soft limit.
fn limit_address_space(process: u32, bytes: u64) {
    let soft = if bytes == u64::MAX { "unlimited".to_owned() } else { bytes.to_string() };
    let mut prlimit = std::process::Command::new("prlimit");
    let done = prlimit.args([format!("--pid={process}"), format!("--as={soft}:")]).status().unwrap();
    assert!(done.success());
}

/// A few of the files that `scripts/hostile` spoils, the same at each run; the script says what is measured.
#[test]
fn a_sample_of_spoilt_files_keeps_the_limits() {
    let mut script = Command::new("python3");
    script.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/hostile"));
    script.args(["--hepfs", HEPFS, "--count", "12", "--seed", "7", "--seconds", "60"]);
    script.args(["--only", "seed_11", "layouts", "scales", "types_strings", "chunk_indexes", "group_kinds"]);
    let output = run_within(Duration::from_secs(300), &mut script);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("12 files, "), "{said}");
}

/// A table of this many columns, and a group of as many arrays.
fn write_wide(path: &Path, count: usize) -> Result<(), create::Error> {
    create::file(path, |root| {
        let table = root.group("t")?;
        table.attribute("CLASS", &AttributeValue::ascii("COLUMN_TABLE"))?;
        table.attribute("VERSION", &AttributeValue::ascii("1.0"))?;
        let arrays = root.group("arrays")?;
        for at in 0..count {
            for group in [&table, &arrays] {
                let storage = Storage::contiguous(&[10]);
                let dataset = group.dataset(&format!("c{at:05}"), &f64::ELEMENT, &storage, &FillSetting::Unset)?;
                dataset.node().attribute("units", &AttributeValue::ascii("m"))?;
            }
        }
        Ok(())
    })
}

/// Datasets beside each other, each of ten numbers and with an attribute.
fn write_siblings(path: &Path, count: usize) -> Result<(), create::Error> {
    create::file(path, |root| {
        let group = root.group("g")?;
        for at in 0..count {
            let storage = Storage::contiguous(&[10]);
            let dataset = group.dataset(&format!("c{at:05}"), &f64::ELEMENT, &storage, &FillSetting::Unset)?;
            dataset.node().attribute("units", &AttributeValue::ascii("m"))?;
        }
        Ok(())
    })
}

/// Variables of netCDF on one dimension, which they tell by its number.
fn write_variables(path: &Path, count: usize) -> Result<(), create::Error> {
    create::file(path, |root| {
        let storage = Storage::contiguous(&[2]);
        let scale = root.dataset("x", &f64::ELEMENT, &storage, &FillSetting::Unset)?;
        scale.node().attribute("CLASS", &AttributeValue::ascii("DIMENSION_SCALE"))?;
        scale.node().attribute("_Netcdf4Dimid", &AttributeValue::number(0_i64))?;
        for at in 0..count {
            let variable = root.dataset(&format!("v{at:06}"), &f64::ELEMENT, &storage, &FillSetting::Unset)?;
            variable.node().attribute("DIMENSION_LIST", &AttributeValue::ascii(""))?;
            variable.node().attribute("_Netcdf4Coordinates", &AttributeValue::numbers(&[0_i64]))?;
        }
        Ok(())
    })
}

/// A table opens each of its columns.
#[test]
fn very_many_variables_on_a_dimension_are_a_finding() {
    let folder = tempfile::tempdir().unwrap();
    for (name, count) in [("few.nc", 3), ("many.nc", (1 << 17) + 1)] {
        write_variables(&folder.path().join(name), count).unwrap();
    }
    let mounted = Mounted::new(&[folder.path()], &["--cache-size", "64M"]);
    assert!(mounted.join("few.nc/table.csv").exists());
    let before = status(mounted.daemon(), "VmHWM:").unwrap();
    assert!(!mounted.join("many.nc/table.csv").exists());
    assert_eq!(mounted.text("many.nc/v131072.csv"), "v131072\n0.0\n0.0\n");
    let grown = status(mounted.daemon(), "VmHWM:").unwrap() - before;
    assert!(grown < 160 << 10, "{grown} KiB");
    let found = mounted.text(".hepfs/findings");
    assert!(found.contains("netcdf/columns") && found.contains("131073 variables lie on x"), "{found}");
}

/// The peak while they are listed is a KiB for each at most, names told and all.
#[test]
fn datasets_beside_each_other_take_little_memory() {
    const COUNT: usize = 60_000;
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("siblings.h5");
    write_siblings(&source, COUNT).unwrap();
    let mounted = Mounted::new(&[&source], &["--cache-size", "64M"]);
    let before = status(mounted.daemon(), "VmHWM:").unwrap();
    let names: BTreeSet<_> = fs::read_dir(mounted.join("g")).unwrap().map(|name| name.unwrap().file_name()).collect();
    assert_eq!(names.len(), 7 * COUNT + 2);
    assert!(names.contains(OsStr::new("c00000.csv")) && names.contains(OsStr::new("c59999.txt")));
    let grown = status(mounted.daemon(), "VmHWM:").unwrap() - before;
    assert!(grown < COUNT as u64, "{grown} KiB");
    // What is said of all of them takes little beside its text.
    let text = fs::metadata(mounted.join("g/metadata.json")).unwrap().len() >> 10;
    let grown = status(mounted.daemon(), "VmHWM:").unwrap() - before;
    assert!(grown < 6 * text, "{grown} KiB for {text} KiB of text");
    assert_eq!(mounted.text("g/c31999.csv"), format!("c31999\n{}", "0.0\n".repeat(10)));
}

/// A name that the kernel knows costs its number, its size and its place in the directory, once none of the files that
/// were used last has to go for it.
#[test]
fn very_many_files_are_looked_at_in_little_memory() {
    const COUNT: usize = 6_000;
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("siblings.h5");
    write_siblings(&source, COUNT).unwrap();
    let mounted = Mounted::new(&[&source], &["--cache-size", "64M"]);
    let suffixes = [".arrow", ".csv", ".ndjson", ".npy", ".parquet", ".raw", ".txt"];
    let names = |of: std::ops::Range<usize>| {
        of.flat_map(|at| suffixes.map(|suffix| mounted.join(format!("g/c{at:05}{suffix}"))))
    };
    let look = |of| names(of).map(|name| fs::metadata(name).unwrap().len()).collect::<Vec<u64>>();
    let used = || status(mounted.daemon(), "VmRSS:").unwrap();
    // One that is open stays, whatever else is looked at.
    let open = fs::File::open(mounted.join("g/c00000.csv")).unwrap();
    let first = look(0..COUNT / 3);
    let before = used();
    let sizes = [first, look(COUNT / 3..COUNT)].concat();
    let grown = (used() - before) << 10;
    let each = grown / (sizes.len() as u64 * 2 / 3);
    assert!(each < 500, "{each} bytes for each name");
    assert_eq!(std::io::read_to_string(open).unwrap(), format!("c00000\n{}", "0.0\n".repeat(10)));
    // What was forgotten is made again as it was.
    for (name, size) in names(0..COUNT).zip(sizes).step_by(997) {
        let bytes = fs::read(&name).unwrap();
        assert_eq!(bytes.len() as u64, size, "{}", name.display());
        assert_eq!(fs::metadata(&name).unwrap().len(), size, "{}", name.display());
    }
}

/// Of what a listing has of each member, a name and a few numbers stay: see `docs/dev/performance.md` for 100,000.
#[test]
fn very_many_datasets_are_listed_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("wide.h5");
    write_wide(&source, 20_000).unwrap();
    let mounted = Mounted::new(&[&source], &["--cache-size", "64M"]);
    let before = status(mounted.daemon(), "VmHWM:").unwrap();
    // The names of a table are those of none of its columns.
    assert_eq!(fs::read_dir(mounted.join("t")).unwrap().count(), 10);
    let grown = status(mounted.daemon(), "VmHWM:").unwrap() - before;
    assert!(grown < 64 << 10, "{grown} KiB");
    // 20,000 columns and 20,000 arrays have seven files each.
    assert_eq!(fs::read_dir(mounted.join("t/columns")).unwrap().count(), 140_000);
    assert_eq!(fs::read_dir(mounted.join("arrays")).unwrap().count(), 140_002);
    let grown = status(mounted.daemon(), "VmHWM:").unwrap() - before;
    assert!(grown < 160 << 10, "{grown} KiB");
}
