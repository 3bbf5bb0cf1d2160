//! Objects of stores at the prompt and through a mount: the real program against a server of its own.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::data;
use crate::range_server::{Answered, RangeServer};
use crate::support::{HEPFS, LONG, Mounted, end_of, hepfs, signal, start, until};
use crate::writer::Writer;

/// A secret of the address.
const SECRET: &str = "q7Zk0mVbT3xW";

/// Rows of a column whose values take 24 MB: an object too large to be fetched whole.
const ROWS: i64 = 3_000_000;

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn error(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).trim_end().to_owned()
}

/// A server with a file of the tests.
fn served(name: &str) -> (RangeServer, String) {
    let server = RangeServer::start();
    server.put(name, fs::read(data(name)).unwrap());
    let url = server.url(name);
    (server, url)
}

#[test]
fn commands_show_of_an_object_what_they_show_of_a_file() {
    let (server, url) = served("seed_11_1.h5");
    let file = data("seed_11_1.h5").display().to_string();
    let folder = tempfile::tempdir().unwrap();
    let output = |name: &str| folder.path().join(name).display().to_string();
    for arguments in [
        vec!["ls", ":my_table"],
        vec!["cat", ":my_table/table.csv"],
        vec!["head", ":my_table"],
        vec!["query", ":my_table", "energy > 5 order by ts limit 3"],
        vec!["check", ""],
        vec!["info", ""],
    ] {
        let [local, remote] = [&file, &url].map(|source| {
            let place = format!("{source}{}", arguments[1]);
            let all =
                [arguments[0], "--cache-folder", "none", &place].into_iter().chain(arguments[2..].iter().copied());
            text(&hepfs(all)).replace(source, "SOURCE")
        });
        assert_eq!(remote, local, "{arguments:?}");
    }
    let (local, remote) = (output("local.parquet"), output("remote.parquet"));
    for (source, output) in [(&file, &local), (&url, &remote)] {
        text(&hepfs(["export", "--cache-folder", "none", &format!("{source}:my_table"), "-o", output]));
    }
    assert_eq!(fs::read(remote).unwrap(), fs::read(local).unwrap());
    // Those that read all values say first what that may take.
    for arguments in [["check", "--cache-folder", "none"], ["prepare", "--cache-folder", &output("cache")]] {
        let done = hepfs(arguments.into_iter().chain([url.as_str()]));
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success() && said.contains(&format!("{url}: fetches up to ")), "{arguments:?}: {said}");
    }
    assert!(server.log().iter().all(|one| one.method == "HEAD" || one.status == 206));
}

#[test]
fn an_object_is_mounted() {
    let (server, url) = served("seed_11_1.h5");
    let mounted = Mounted::new(&[Path::new(&url)], &[]);
    let local = Mounted::new(&[&data("seed_11_1.h5")], &[]);
    assert_eq!(mounted.names("my_table"), local.names("my_table"));
    for name in ["table.csv", "table.parquet", "columns/energy.npy", "where/energy:gt:5/table.ndjson"] {
        let path = Path::new("my_table").join(name);
        assert_eq!(mounted.read(&path), local.read(&path), "{name}");
    }
    let requests = server.log().len();
    let stats = mounted.text(".hepfs/stats");
    assert!(stats.lines().any(|line| line == format!("requests {requests}")), "{requests}: {stats}");
}

/// All files below a folder, with their names as further text.
fn everything_below(folder: &Path, seen: &mut Vec<u8>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        seen.extend(entry.file_name().as_encoded_bytes());
        match entry.path() {
            path if path.is_dir() => everything_below(&path, seen),
            path => seen.extend(fs::read(path).unwrap_or_default()),
        }
    }
}

#[test]
fn the_secrets_of_an_address_appear_nowhere() {
    let (server, url) = served("seed_11_1.h5");
    let query = format!("X-Amz-Signature={SECRET}&n=1");
    server.demand(&query);
    let signed = format!("{url}?{query}");
    assert!(error(&hepfs(["ls", &url])).contains("403"));
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let options = ["-vv", "--revalidate", "0", "--cache-folder", cache.to_str().unwrap()];
    let mounted = Mounted::new(&[Path::new(&signed)], &options);
    let text_of = mounted.text("my_table/table.csv");
    assert_eq!(text_of, text(&hepfs(["cat", &format!("{}:my_table/table.csv", data("seed_11_1.h5").display())])));
    // A new version, and one that cannot be opened, so that errors are told.
    server.put("seed_11_1.h5", &b"no HDF5 file"[..]);
    fs::read(mounted.join("my_table/table.ndjson")).unwrap_err();
    let mut seen = fs::read("/proc/mounts").unwrap();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        seen.extend(fs::read(process.path().join("cmdline")).unwrap_or_default());
    }
    for name in mounted.names(".hepfs") {
        seen.extend(mounted.read(Path::new(".hepfs").join(name)));
    }
    for options in [&["-v"][..], &["--json"], &["--metrics"]] {
        seen.extend(hepfs(["status"].iter().chain(options)).stdout);
    }
    for arguments in [["info", "--json"], ["ls", "-v"], ["check", "--json"]] {
        let output = hepfs(arguments.iter().copied().chain([signed.as_str()]));
        seen.extend([output.stdout, output.stderr].concat());
    }
    seen.extend(mounted.log().into_bytes());
    drop(mounted);
    everything_below(&cache, &mut seen);
    let seen = String::from_utf8_lossy(&seen);
    assert!(seen.contains(&url) && seen.len() > 1000);
    for part in [SECRET, "X-Amz-Signature"] {
        assert!(!seen.contains(part), "…{}…", &seen[seen.find(part).unwrap().saturating_sub(200)..][..400]);
    }
}

/// A file with a table `t`, whose column `x` has these values in chunks, as they are.
pub fn file_of(values: &[i64]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.h5");
    let writer = Writer::create(&file);
    let table = writer.table("t");
    table.column("x", values, 20_000);
    drop(table);
    writer.close();
    fs::read(&file).unwrap()
}

#[test]
fn a_replaced_object_is_stale_and_then_opened_anew() {
    let [old, new] = [1, 2].map(|first| (0..ROWS).map(|row| row * 3 + first).collect::<Vec<i64>>());
    let server = RangeServer::start();
    server.put("a.h5", file_of(&old));
    let mounted = Mounted::new(&[Path::new(&server.url("a.h5"))], &["--revalidate", "0", "--ahead", "0"]);
    let path = mounted.join("t/columns/x.raw");
    let open = fs::File::open(&path).unwrap();
    let mut part = [0; 4096];
    open.read_exact_at(&mut part, 0).unwrap();
    assert!(part.chunks(8).zip(&old).all(|(bytes, value)| bytes == value.to_le_bytes()));
    server.put("a.h5", file_of(&new));
    // What the store has no longer is no mixture with what it has.
    let error = open.read_exact_at(&mut part, 4 * ROWS as u64).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ESTALE), "{error}");
    let found = fs::read(&path).unwrap();
    assert!(
        found.chunks(8).zip(&new).all(|(bytes, value)| bytes == value.to_le_bytes()) && found.len() == 8 * new.len()
    );
    // Whatever the kernel has of the old version goes.
    until("the old pages go", || {
        open.read_exact_at(&mut part, 0).is_err_and(|error| error.raw_os_error() == Some(libc::ESTALE))
    });
}

/// The place of these values in a file where they are stored as they are.
fn place_of(values: &[i64], bytes: &[u8]) -> usize {
    let pattern: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    bytes.windows(pattern.len()).position(|window| window == pattern).unwrap()
}

#[test]
fn nothing_but_reading_reads_values() {
    let values: Vec<i64> = (0..ROWS).map(|row| row * 0x9e37 + 1).collect();
    let bytes = file_of(&values);
    let begin = place_of(&values[..64], &bytes) as u64;
    let end = begin + 8 * ROWS as u64;
    let server = RangeServer::start();
    server.put("a.h5", bytes);
    let fetched = |log: &[Answered]| {
        let ranges = log.iter().filter_map(|one| one.range.clone());
        ranges.map(|range| range.end.min(end).saturating_sub(range.start.max(begin))).sum::<u64>()
    };
    let mounted = Mounted::new(&[Path::new(&server.url("a.h5"))], &["--ahead", "0"]);
    mounted.found(&["-printf", "%p %s %t\n"]);
    for name in ["table.parquet", "table.arrow", "columns/x.npy", "columns/x.parquet", "columns/x.raw"] {
        let opened = fs::File::open(mounted.join("t").join(name)).unwrap();
        assert!(opened.metadata().unwrap().len() > 0);
    }
    mounted.text("t/metadata.json");
    // Blocks of metadata may reach into what lies beside them.
    let quiet = fetched(&server.log());
    assert!(quiet < 256 << 10, "{quiet}");
    // A part of a column fetches a part.
    let mut part = vec![0; 80_000];
    fs::File::open(mounted.join("t/columns/x.raw")).unwrap().read_exact(&mut part).unwrap();
    assert!(part.chunks(8).zip(&values).all(|(bytes, value)| bytes == value.to_le_bytes()));
    let read = fetched(&server.log());
    assert!(read >= 80_000 - quiet, "{read}");
    // An error names the server and its answer.
    server.demand("a query that no address has");
    let last = fs::File::open(mounted.join("t/columns/x.raw")).unwrap();
    let error = last.read_exact_at(&mut part, 8 * ROWS as u64 - 80_000).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EIO), "{error}");
    let (said, endpoint) = (mounted.text(".hepfs/errors"), server.endpoint());
    let host = endpoint.strip_prefix("http://").unwrap();
    assert!(said.contains(&format!("{host}: 403 Forbidden")), "{said}");
}

#[test]
fn a_folder_of_a_bucket_takes_one_request() {
    let server = RangeServer::start();
    for (key, file) in [("runs/a.h5", "seed_11_1.h5"), ("runs/b.h5", "seed_11_2.h5"), ("runs/deep/c.h5", "units.h5")] {
        server.put(&format!("bucket/{key}"), fs::read(data(file)).unwrap());
    }
    server.put("bucket/runs/notes.txt", &b"no HDF5 file"[..]);
    let options = ["--endpoint", &server.endpoint(), "--anonymous", "--region", "us-east-1"];
    let mounted = Mounted::new(&[Path::new("s3://bucket/runs/")], &options);
    assert_eq!(mounted.names(""), [".datasets", ".hepfs", "a.h5", "b.h5", "deep"]);
    let asked = server.log();
    assert!(asked.len() == 1 && asked[0].method == "GET", "{asked:?}");
    let local = |name: &str| text(&hepfs(["cat", &format!("{}:my_table/table.csv", data(name).display())]));
    assert_eq!(mounted.text("a.h5/my_table/table.csv"), local("seed_11_1.h5"));
    let query = ["query", "--table", "my_table"].into_iter().chain(options);
    let rows = text(&hepfs(query.chain(["s3://bucket/runs/*.h5", "file = 'b.h5' limit 3"])));
    assert_eq!(rows.lines().count(), 4, "{rows}");
    assert!(server.log().iter().all(|one| one.method == "GET"));
}

#[test]
fn keys_that_no_path_can_name_are_left_out_and_said() {
    let server = RangeServer::start();
    let long = format!("{}.h5", "n".repeat(300));
    for key in ["a.h5", "/b.h5", "../b.h5", "c\0.h5", &long] {
        server.put(&format!("bucket/runs/{key}"), fs::read(data("seed_11_1.h5")).unwrap());
    }
    let options = ["--endpoint", &server.endpoint(), "--anonymous", "--region", "us-east-1"];
    let mounted = Mounted::new(&[Path::new("s3://bucket/runs/")], &options);
    // Long names are cut to what the kernel takes, as those of groups.
    let [_, _, first, second] = &mounted.names("")[..] else { panic!("{:?}", mounted.names("")) };
    assert!(first == "a.h5" && second.starts_with("nnn") && second.len() == 240, "{second}");
    for name in [first, second] {
        assert!(mounted.names(name).contains(&"my_table".to_owned()), "{name}");
    }
    let said = "s3://bucket/runs/: `../` and 2 more: not shown, for no path can have an empty part, `.`, `..` or";
    let errors = mounted.text(".hepfs/errors");
    assert_eq!(errors.matches(said).count(), 1, "{errors}");
    for command in ["ls", "info"] {
        let output = hepfs([command].into_iter().chain(options).chain(["s3://bucket/runs/"]));
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text(&output).contains("a.h5") && error.matches(said).count() == 1, "{command}: {error}");
    }
    // Also where nothing is left.
    let output = hepfs(["ls"].into_iter().chain(options).chain(["s3://bucket/runs/c*"]));
    assert!(error(&output).contains(": not shown, for no path can have"), "{}", error(&output));
}

#[test]
fn what_goes_wrong_is_said_in_one_line() {
    let (server, url) = served("seed_11_1.h5");
    let host = url.strip_prefix("http://").unwrap().split('/').next().unwrap();
    for (address, said) in [
        (server.url("none.h5"), "404"),
        ("http://hepfs.invalid/a.h5".to_owned(), "--plain-http"),
        ("https://hepfs.invalid/a.h5".to_owned(), "hepfs.invalid"),
        (server.url("runs/"), "web servers have no lists"),
    ] {
        let error = error(&hepfs(["ls", &address]));
        assert!(error.contains(said) && error.lines().count() == 1, "{error}");
    }
    assert!(error(&hepfs(["ls", &server.url("none.h5")])).contains(host));
}

/// Paths that look like addresses are given as `./s3://…`.
#[test]
fn a_path_beats_an_address_with_a_point() {
    let folder = tempfile::tempdir().unwrap();
    let below: PathBuf = folder.path().join("https:/host");
    fs::create_dir_all(&below).unwrap();
    fs::copy(data("seed_11_1.h5"), below.join("a.h5")).unwrap();
    let source = format!("{}/./https://host/a.h5", folder.path().display());
    assert!(text(&hepfs(["ls", "--cache-folder", "none", &source])).contains("my_table"));
}

/// A mount of an object with a table `t`, whose column `x` has [`ROWS`] values, with further arguments.
fn mounted_table(server: &RangeServer, arguments: &[&str]) -> Mounted {
    server.put("a.h5", file_of(&(0..ROWS).map(|row| row * 0x9e37 + 1).collect::<Vec<i64>>()));
    let mounted = Mounted::new(&[Path::new(&server.url("a.h5"))], &[arguments, &["--ahead", "0"]].concat());
    for name in ["x.raw", "x.npy", "x.csv"] {
        assert!(mounted.join("t/columns").join(name).metadata().unwrap().len() > 0);
    }
    mounted
}

/// The kernel reads ahead, and asks again for each page that did not come.
#[test]
fn a_read_gives_up_after_one_deadline() {
    let server = RangeServer::start();
    let mounted = mounted_table(&server, &["--network-deadline", "2"]);
    let file = fs::File::open(mounted.join("t/columns/x.raw")).unwrap();
    server.line(Duration::from_secs(60), None);
    for length in [100, 1 << 20] {
        let begun = Instant::now();
        let error = file.read_exact_at(&mut vec![0; length], 8 << 20).unwrap_err();
        let took = begun.elapsed().as_millis();
        assert!(
            error.raw_os_error() == Some(libc::EIO) && (1900..3000).contains(&took),
            "{length}: {error}, {took} ms"
        );
        // What was given up is asked for again soon.
        thread::sleep(Duration::from_millis(1100));
    }
    server.line(Duration::ZERO, None);
    file.read_exact_at(&mut [0; 100], 8 << 20).unwrap();
}

/// Ends a command by Ctrl-C while it waits; how long it took to end.
fn interrupted<S: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = S>) -> Duration {
    let mut child = start(program, arguments);
    thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "it waits for nothing");
    let begun = Instant::now();
    signal(child.id(), libc::SIGINT);
    // 130, or the signal itself.
    let ended = end_of(&mut child, LONG).unwrap();
    assert!(ended.code().is_none_or(|code| code == 130), "{ended}");
    begun.elapsed()
}

/// Whether it takes 200 ms at most, at least once: other tests run beside.
fn is_prompt(mut take: impl FnMut() -> Duration) -> bool {
    (0..5).any(|_| take() < Duration::from_millis(200))
}

#[test]
fn ctrl_c_ends_what_waits_for_a_silent_server() {
    let folder = tempfile::tempdir().unwrap();
    let [mountpoint, output] = ["mnt", "a.parquet"].map(|name| folder.path().join(name).display().to_string());
    fs::create_dir(&mountpoint).unwrap();
    let server = RangeServer::start();
    let mounted = mounted_table(&server, &["--revalidate", "1"]);
    server.line(Duration::from_secs(60), None);
    let (url, cache) = (server.url("a.h5"), folder.path().join("cache").display().to_string());
    for arguments in [
        vec!["ls", &url],
        vec!["info", &url],
        vec!["check", &url],
        vec!["prepare", &url],
        vec!["query", &format!("{url}:t"), "x > 5"],
        vec!["query", "--table", "t", &url, &server.url("b.h5"), "x > 5"],
        vec!["export", &format!("{url}:t"), "-o", &output],
        vec!["mount", &url, &mountpoint],
    ] {
        let all = [&arguments[..1], &["--cache-folder", &cache], &arguments[1..]].concat();
        let is_prompt = is_prompt(|| interrupted(HEPFS, &all));
        assert!(is_prompt, "{arguments:?}");
    }
    for name in ["x.raw", "x.npy", "x.csv"] {
        let is_prompt = is_prompt(|| {
            // Time to look for another version.
            thread::sleep(Duration::from_secs(1));
            interrupted("cat", [mounted.join("t/columns").join(name)])
        });
        assert!(is_prompt, "{name}");
    }
    server.line(Duration::ZERO, None);
}

#[test]
fn an_unusable_cache_folder_is_warned_of_once() {
    let (_server, url) = served("seed_11_1.h5");
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    fs::write(&cache, "no folder").unwrap();
    let (place, output) = Mounted::try_new(&[Path::new(&url)], &["--cache-folder", cache.to_str().unwrap()]);
    let mountpoint = place.path().join("mnt");
    fs::read(mountpoint.join("my_table/table.csv")).unwrap();
    // The last is written at the end.
    assert!(hepfs(["umount".as_ref(), mountpoint.as_os_str()]).status.success());
    let log = fs::read_to_string(place.path().join("log")).unwrap();
    assert_eq!(log.matches("the cache folder").count(), 1, "{log}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.matches("the cache folder").count() == 1, "{said}");
}

#[test]
fn search_indexes_of_objects_rest() {
    let (_server, url) = served("search_indexes.h5");
    let verdicts = |mounted: &Mounted| -> Vec<String> {
        let lines = mounted.text(".hepfs/indexes");
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["table"] == "/july/label").map(|line| line["verdict"].to_string()).collect()
    };
    for (options, verified) in [(&[][..], false), (&["--verify"], true)] {
        let mounted = Mounted::new(&[Path::new(&url)], options);
        mounted.read("july/label/where/v:eq:muon/columns/row.csv");
        if verified {
            until("indexes are verified", || verdicts(&mounted).iter().any(|verdict| verdict == "\"verified\""));
        } else {
            thread::sleep(Duration::from_millis(500));
            assert!(verdicts(&mounted).iter().all(|verdict| verdict == "\"unknown\""), "{:?}", verdicts(&mounted));
        }
    }
}
