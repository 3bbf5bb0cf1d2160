//! The range server for tests, and objects read from it: each fault of a server gives the right bytes or an error.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use futures_util::StreamExt;
use hepfs::remote::{RangeClient, RemoteOptions, RemoteStores, runtime};
use hepfs::source::{Error, Interrupt, ObjectStore, Opener, SourceKind};
use hepfs::store::Budget;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::data;
use crate::range_server::{Answered, Fault, RangeServer};

/// An answer of a server: status, headers by names in small letters, body.
struct Answer {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// Asks once, on a connection of its own.
fn ask(method: &str, url: &str, headers: &[(&str, &str)]) -> io::Result<Answer> {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut socket = TcpStream::connect(host)?;
    socket.set_read_timeout(Some(Duration::from_secs(20)))?;
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    write!(socket, "{method} /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n")?;
    let mut reader = BufReader::new(socket);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let status =
        lines.first().and_then(|line| line.split(' ').nth(1)?.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    let headers = lines.iter().skip(1).filter_map(|line| line.split_once(": "));
    let headers: BTreeMap<_, _> = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok());
    let mut body = Vec::new();
    match length {
        _ if method == "HEAD" => {}
        Some(length) => {
            body.resize(length, 0);
            reader.read_exact(&mut body)?;
        }
        None => drop(reader.read_to_end(&mut body)?),
    }
    Ok(Answer { status, headers, body })
}

/// A server with an object of bytes that differ.
fn served() -> (RangeServer, String, Vec<u8>) {
    let (server, content) = (RangeServer::start(), (0..300_000u32).map(|n| (n * 7 / 5) as u8).collect::<Vec<u8>>());
    server.put("a/b.bin", content.clone());
    let url = server.url("a/b.bin");
    (server, url, content)
}

/// Stores that ask this server for buckets.
fn stores_at(server: &RangeServer) -> RemoteStores {
    RemoteStores::new(RemoteOptions { endpoint: Some(server.endpoint()), ..options() }, &budget()).unwrap()
}

fn options() -> RemoteOptions {
    RemoteOptions { network_deadline: Duration::from_secs(20), anonymous: true, ..Default::default() }
}

fn budget() -> Budget {
    Budget::new(64 << 20)
}

/// An object of a web server, opened.
fn open(url: &str) -> Arc<dyn RangeClient> {
    let store = RemoteStores::new(options(), &budget()).unwrap();
    store.client(Path::new(url), &Interrupt::new()).unwrap().0
}

fn read_until(object: &dyn RangeClient, range: Range<u64>, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
    let mut pieces = object.get(range);
    let gather = async {
        let mut found = Vec::new();
        while let Some(piece) = pieces.next().await {
            found.extend_from_slice(&piece?);
        }
        Ok(found)
    };
    runtime::wait(&runtime::handle().unwrap(), gather, interrupt)?
}

fn read(object: &dyn RangeClient, range: Range<u64>) -> Result<Vec<u8>, Error> {
    read_until(object, range, &Interrupt::new())
}

#[test]
fn ranges_come_with_the_tag_of_their_version() {
    let (server, url, content) = served();
    let whole = ask("GET", &url, &[]).unwrap();
    assert!(whole.status == 200 && whole.body == content && whole.headers["etag"] == "\"1\"");
    for (range, expected) in [
        ("bytes=0-0", 0..1),
        ("bytes=299990-400000", 299_990..300_000),
        ("bytes=1000-", 1000..300_000),
        ("bytes=-5", 299_995..300_000),
    ] {
        let part = ask("GET", &url, &[("Range", range), ("If-Match", "\"1\"")]).unwrap();
        let told = format!("bytes {}-{}/300000", expected.start, expected.end - 1);
        assert!(part.status == 206 && part.headers["content-range"] == told, "{range}: {:?}", part.headers);
        assert!(part.body == content[expected], "{range}");
    }
    assert_eq!(ask("GET", &url, &[("Range", "bytes=300000-300001")]).unwrap().status, 416);
    assert_eq!(ask("GET", &server.url("none"), &[]).unwrap().status, 404);
    server.put("a/b.bin", &b"other"[..]);
    assert_eq!(ask("GET", &url, &[("Range", "bytes=0-0"), ("If-Match", "\"1\"")]).unwrap().status, 412);
    let head = ask("HEAD", &url, &[]).unwrap();
    assert!(head.headers["etag"] == "\"2\"" && head.headers["content-length"] == "5" && head.body.is_empty());
    let log = server.log();
    assert_eq!(log.iter().map(|one| one.status).collect::<Vec<_>>(), [200, 206, 206, 206, 206, 416, 404, 412, 200]);
    let first = Answered {
        method: "GET".into(),
        key: "a/b.bin".into(),
        range: Some(0..1),
        authorization: None,
        status: 206,
        bytes: 1,
    };
    assert!(log[1] == first && server.log().is_empty(), "{:?}", log[1]);
}

#[test]
fn the_line_has_delay_and_bandwidth() {
    let (server, url, content) = served();
    let timed = |requests: usize| {
        let begun = Instant::now();
        thread::scope(|scope| {
            for _ in 0..requests {
                scope.spawn(|| assert!(ask("GET", &url, &[]).unwrap().body == content));
            }
        });
        begun.elapsed()
    };
    server.line(Duration::from_millis(200), None);
    // Side by side, all wait once.
    let together = timed(8);
    assert!((200..1500).contains(&together.as_millis()) && server.most_in_flight() == 8, "{together:?}");
    // Both share 1 MB a second.
    server.line(Duration::ZERO, Some(1_000_000));
    let together = timed(2);
    assert!((590..3000).contains(&together.as_millis()), "{together:?}");
}

/// What a read of a part is to give after a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Bytes,
    Refused,
    Changed,
}

/// Faults, and what a read gives after each.
fn faults(server: &RangeServer) -> Vec<(Fault, Outcome)> {
    let slow = Fault::Pause(500, Duration::from_millis(100));
    vec![
        (Fault::Status(500), Outcome::Bytes),
        (Fault::Status(403), Outcome::Refused),
        (Fault::Status(412), Outcome::Changed),
        // A version that was there is gone.
        (Fault::Status(404), Outcome::Changed),
        (Fault::Busy(0), Outcome::Bytes),
        (Fault::Cut(0), Outcome::Bytes),
        (Fault::Cut(999), Outcome::Bytes),
        (slow, Outcome::Bytes),
        (Fault::Whole, Outcome::Refused),
        (Fault::OtherRange, Outcome::Refused),
        (Fault::Short, Outcome::Refused),
        (Fault::Long, Outcome::Refused),
        (Fault::Gzip, Outcome::Refused),
        (Fault::OtherTag, Outcome::Changed),
        (Fault::WeakTag, Outcome::Refused),
        (Fault::NoTag, Outcome::Refused),
        (Fault::Expired, Outcome::Refused),
        (Fault::Redirect(server.url("a/b.bin")), Outcome::Bytes),
        (Fault::Redirect(server.url("elsewhere")), Outcome::Changed),
    ]
}

fn check(read: &Result<Vec<u8>, Error>, expected: &[u8], outcome: Outcome, words: &str) {
    let found = match read {
        Ok(bytes) => {
            assert!(bytes == expected, "{words}: other bytes");
            Outcome::Bytes
        }
        Err(error) if error.is_change() => Outcome::Changed,
        Err(_) => Outcome::Refused,
    };
    assert_eq!(found, outcome, "{words}: {read:?}");
}

#[test]
fn no_fault_of_a_server_gives_other_bytes() {
    let (server, url, content) = served();
    server.put("bucket/a/b.bin", content.clone());
    let in_bucket = stores_at(&server);
    let in_bucket = in_bucket.client(Path::new("s3://bucket/a/b.bin"), &Interrupt::new()).unwrap().0;
    let on_web = open(&url);
    for (fault, outcome) in faults(&server) {
        for (object, is_bucket) in [(&on_web, false), (&in_bucket, true)] {
            // A signed request to a bucket leads nowhere else.
            let outcome = match &fault {
                Fault::Redirect(_) if is_bucket => Outcome::Refused,
                _ => outcome,
            };
            server.faults([Some(fault.clone())]);
            let words = format!("{fault:?} {is_bucket}");
            check(&read(&**object, 70_000..71_000), &content[70_000..71_000], outcome, &words);
            check(
                &read(&**object, 70_000..71_000),
                &content[70_000..71_000],
                Outcome::Bytes,
                &format!("after {words}"),
            );
        }
    }
    server.put("a/b.bin", content.clone());
    let error = read(&*on_web, 0..8).unwrap_err();
    assert!(error.is_change(), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    /// Each of several faults in a row, at any byte of any range, gives the bytes of the file or an error.
    #[test]
    fn faults_in_a_row_give_no_other_bytes(
        chosen in vec((0..19usize, 0..3000usize), 0..5),
        start in 0..299_000u64,
        length in 1..3000u64,
        is_bucket: bool,
    ) {
        let (server, url, content) = served();
        server.put("bucket/a/b.bin", content.clone());
        let store = stores_at(&server);
        let address = if is_bucket { "s3://bucket/a/b.bin" } else { &url };
        let object = store.client(Path::new(address), &Interrupt::new()).unwrap().0;
        let range = start..(start + length).min(300_000);
        let known = faults(&server);
        server.faults(chosen.iter().map(|(kind, at)| {
            Some(if let Fault::Cut(_) = known[*kind].0 { Fault::Cut(*at) } else { known[*kind].0.clone() })
        }));
        let found = read(&*object, range.clone());
        let expected = &content[range.start as usize..range.end as usize];
        prop_assert!(found.as_ref().map_or(true, |bytes| bytes == expected), "{:?}: other bytes", chosen);
        let are_harmless = chosen.iter().all(|(kind, _)| known[*kind].1 == Outcome::Bytes);
        prop_assert!(found.is_ok() || !are_harmless || is_bucket, "{:?}: {:?}", chosen, found);
    }
}

#[test]
fn only_the_rest_of_a_cut_answer_is_asked_for_again() {
    let (server, url, content) = served();
    let object = open(&url);
    server.log();
    // The last is whole when it breaks, so that nothing is left.
    server.faults([Some(Fault::Cut(300)), Some(Fault::Cut(0)), Some(Fault::Cut(200)), Some(Fault::Cut(500))]);
    assert!(read(&*object, 1000..2000).unwrap() == content[1000..2000]);
    let asked: Vec<_> = server.log().into_iter().map(|one| one.range.unwrap()).collect();
    assert_eq!(asked, [1000..2000, 1300..2000, 1300..2000, 1500..2000]);
}

#[test]
fn errors_name_host_status_and_code() {
    let (server, url, _) = served();
    let object = open(&url);
    let host = server.endpoint().replace("http://", "");
    let busy = (0..20).map(|_| Some(Fault::Busy(30)));
    for (faults, said) in [
        (vec![Some(Fault::Expired)], "403 Forbidden (ExpiredToken)"),
        (vec![Some(Fault::Status(410))], "changed since it was opened"),
        (busy.collect(), "503 Service Unavailable"),
        (vec![Some(Fault::Gzip)], "sends it encoded (gzip), not as stored"),
        (
            vec![Some(Fault::Whole)],
            "answers a request for a range with the whole object (200 in place of 206), so parts cannot be read",
        ),
    ] {
        let is_change = said.starts_with("changed");
        server.faults(faults);
        let error = read(&*object, 0..10).unwrap_err().to_string();
        let expected = if is_change { format!("{url}: {said}") } else { format!("{url}: {host}: {said}") };
        assert_eq!(error, expected);
        // What is left of them.
        server.no_faults();
    }
    let missing =
        RemoteStores::new(options(), &budget()).unwrap().client(Path::new(&server.url("none")), &Interrupt::new());
    assert_eq!(missing.unwrap_err().to_string(), format!("{}: {host}: 404 Not Found", server.url("none")));
}

#[test]
fn a_silent_server_is_asked_on_another_connection_then_given_up() {
    let (server, url, content) = served();
    let store =
        RemoteStores::new(RemoteOptions { network_deadline: Duration::from_secs(1), ..options() }, &budget()).unwrap();
    let object = store.client(Path::new(&url), &Interrupt::new()).unwrap().0;
    let silent = |after| Some(Fault::Pause(after, Duration::from_secs(30)));
    server.faults([silent(100)]);
    assert!(read(&*object, 0..1000).unwrap() == content[..1000]);
    server.faults([silent(100), silent(0), silent(0), silent(0)]);
    let begun = Instant::now();
    let error = read(&*object, 0..1000).unwrap_err();
    assert!(error.to_string().contains("no answer for 1.0 s"), "{error}");
    assert!((900..5000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
    // The time that a reader takes between two pieces is not the server's.
    server.no_faults();
    server.faults([Some(Fault::Pause(1000, Duration::from_secs(2)))]);
    let mut pieces = object.get(0..5000);
    let slowly = async {
        let mut found = pieces.next().await.unwrap().unwrap().to_vec();
        tokio::time::sleep(Duration::from_millis(1200)).await;
        while let Some(piece) = pieces.next().await {
            found.extend_from_slice(&piece.unwrap());
        }
        found
    };
    let found = runtime::wait(&runtime::handle().unwrap(), slowly, &Interrupt::new()).unwrap();
    assert!(found == content[..5000]);
    // A reader that goes ends its wait at once.
    server.no_faults();
    server.faults([silent(0)]);
    let object = open(&url);
    let interrupt = Interrupt::new();
    server.faults([silent(0)]);
    thread::scope(|scope| {
        let reader = scope.spawn(|| read_until(&*object, 0..1000, &interrupt));
        thread::sleep(Duration::from_millis(200));
        let raised = Instant::now();
        interrupt.raise();
        assert!(matches!(reader.join().unwrap(), Err(Error::Interrupted(_))));
        assert!(raised.elapsed() < Duration::from_millis(200), "{:?}", raised.elapsed());
    });
}

#[test]
fn redirects_lead_to_signed_addresses_and_take_no_secret_along() {
    let (first, other) = (RangeServer::start(), RangeServer::start());
    let content: Vec<u8> = (0..5000u32).map(|n| (n * 11 / 7) as u8).collect();
    other.put("signed.bin", content.clone());
    let shown = first.url("file.bin");
    let whole = shown.replace("http://", "http://user:hidden@") + "?token=hidden";
    let signed = [(shown.clone().into(), whole)].into();
    let store = RemoteStores::new(RemoteOptions { signed, ..options() }, &budget()).unwrap();
    let redirect = |from: &RangeServer, to: &str| from.faults([Some(Fault::Redirect(to.to_owned()))]);
    let target = other.url("signed.bin?signature=hidden");
    redirect(&first, &target);
    let object = store.client(Path::new(&shown), &Interrupt::new()).unwrap().0;
    // Now the target is known.
    assert!(read(&*object, 0..100).unwrap() == content[..100]);
    // Its signature expires: the first address leads to another.
    other.faults([Some(Fault::Expired)]);
    redirect(&first, &target);
    assert!(read(&*object, 100..200).unwrap() == content[100..200]);
    let (first_log, other_log) = (first.log(), other.log());
    // `printf user:hidden | base64`
    let user = Some("Basic dXNlcjpoaWRkZW4=".to_owned());
    assert!(first_log.len() == 2 && first_log.iter().all(|one| one.authorization == user), "{first_log:?}");
    assert!(other_log.len() == 4 && other_log.iter().all(|one| one.authorization.is_none()), "{other_log:?}");
    // Again and again.
    other.faults([Some(Fault::Expired)]);
    first.faults((0..6).map(|_| Some(Fault::Redirect(first.url("file.bin")))));
    let error = read(&*object, 0..10).unwrap_err().to_string();
    assert!(error.ends_with("redirects more than 5 times") && !error.contains("hidden"), "{error}");
    redirect(&first, "http://store.example/file.bin?signature=hidden");
    let error = read(&*object, 0..10).unwrap_err().to_string();
    assert!(error.contains("http://store.example can be read") && !error.contains("hidden"), "{error}");
    assert!(!format!("{store:?} {object:?}").contains("hidden"));
}

#[test]
fn a_whole_address_is_asked_and_not_shown() {
    let (server, url, content) = served();
    server.demand("signature=hidden&x=%20");
    let whole = format!("{url}?signature=hidden&x=%20");
    let store =
        RemoteStores::new(RemoteOptions { signed: [(url.clone().into(), whole)].into(), ..options() }, &budget())
            .unwrap();
    let object = store.client(Path::new(&url), &Interrupt::new()).unwrap().0;
    assert!(read(&*object, 1..9).unwrap() == content[1..9]);
    server.demand("signature=another");
    let error = read(&*object, 1..9).unwrap_err();
    assert!(error.to_string().ends_with(": 403 Forbidden"), "{error}");
    assert!(!format!("{error:?} {object:?}").contains("hidden"));
    for endpoint in ["no address", "https://user:hidden@h.example", "https://h.example?hidden", "http://h.example"] {
        let refused = RemoteStores::new(RemoteOptions { endpoint: Some(endpoint.to_owned()), ..options() }, &budget())
            .unwrap_err();
        assert!(!refused.to_string().contains("hidden"), "{refused}");
    }
}

#[test]
fn a_version_must_be_told_unless_times_are_trusted() {
    let (server, url, content) = served();
    for (fault, said) in [(Fault::WeakTag, "tells a weak entity tag"), (Fault::NoTag, "tells no entity tag")] {
        let doubtful = || server.faults((0..2).map(|_| Some(fault.clone())));
        doubtful();
        let error = RemoteStores::new(options(), &budget())
            .unwrap()
            .client(Path::new(&url), &Interrupt::new())
            .unwrap_err()
            .to_string();
        assert!(error.contains(said) && error.contains("--trust-mtime"), "{error}");
        server.no_faults();
        doubtful();
        let trusting = RemoteStores::new(RemoteOptions { trust_mtime: true, ..options() }, &budget()).unwrap();
        let (object, stat) = trusting.client(Path::new(&url), &Interrupt::new()).unwrap();
        assert!(read(&*object, 5..50).unwrap() == content[5..50]);
        // `date -d "Sat, 28 Nov 2026 10:00:00 GMT" +%s`
        assert_eq!(stat.stamp.times[0], SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_860_000));
    }
}

#[test]
fn the_number_of_a_version_stands_for_a_tag() {
    let (server, url, content) = served();
    server.put("bucket/a/b.bin", content.clone());
    for address in [url.as_str(), "s3://bucket/a/b.bin"] {
        let options = RemoteOptions { endpoint: Some(server.endpoint()), ..options() };
        let store = RemoteStores::new(options, &budget()).unwrap();
        server.faults(["7", "7", "8"].map(|number| Some(Fault::Version(number))));
        let object = store.client(Path::new(address), &Interrupt::new()).unwrap().0;
        assert!(read(&*object, 5..50).unwrap() == content[5..50]);
        let error = read(&*object, 5..50).unwrap_err();
        assert!(error.is_change(), "{error}");
    }
}

#[test]
fn a_look_serves_for_a_while() {
    let (server, url, content) = served();
    let store =
        RemoteStores::new(RemoteOptions { revalidate: Duration::from_millis(600), ..options() }, &budget()).unwrap();
    let address = Path::new(&url);
    let first = store.stat(address).unwrap().identity;
    for _ in 0..5 {
        assert_eq!(store.stat(address).unwrap().identity, first);
    }
    let object = store.client(address, &Interrupt::new()).unwrap().0;
    assert_eq!(server.log().len(), 1);
    server.put("a/b.bin", content[1..].to_vec());
    assert_eq!(store.stat(address).unwrap().identity, first);
    thread::sleep(Duration::from_millis(700));
    let second = store.stat(address).unwrap().identity;
    assert!(second != first && second.size == 299_999);
    // A reader meets another version before it is time to look again.
    let fresh = store.client(address, &Interrupt::new()).unwrap().0;
    server.put("a/b.bin", content.clone());
    assert!(read(&*fresh, 0..10).unwrap_err().is_change() && read(&*object, 0..10).unwrap_err().is_change());
    assert_eq!(store.stat(address).unwrap().identity.size, 300_000);
    // A server without an answer has lost nothing; one that knows better has.
    thread::sleep(Duration::from_millis(700));
    server.faults((0..4).map(|_| Some(Fault::Status(503))));
    assert_eq!(store.stat(address).unwrap().identity.size, 300_000);
    server.no_faults();
    thread::sleep(Duration::from_millis(700));
    server.faults([Some(Fault::Status(404))]);
    let begun = Instant::now();
    // After a look that failed, requests do not wait for the next.
    let error = loop {
        match store.stat(address) {
            Ok(_) => assert!(begun.elapsed() < Duration::from_secs(20)),
            Err(error) => break error,
        }
        thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    thread::sleep(Duration::from_millis(700));
    assert_eq!(store.stat(address).unwrap().identity.size, 300_000);
    // At a silent server only the first waits.
    thread::sleep(Duration::from_millis(700));
    server.line(Duration::from_secs(30), None);
    let begun = Instant::now();
    store.stat(address).unwrap();
    assert!((1900..8000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
    let begun = Instant::now();
    for _ in 0..3 {
        thread::sleep(Duration::from_millis(700));
        assert_eq!(store.stat(address).unwrap().identity.size, 300_000);
    }
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

#[test]
fn a_list_tells_sizes_and_versions() {
    let server = RangeServer::start();
    for number in 0..10_000 {
        server.put(&format!("bucket/runs/{number:04}.h5"), vec![7; number % 90 + 1]);
    }
    server.put("bucket/runs/more/x y&z.h5", &b"abc"[..]);
    server.put("bucket/other.h5", &b"abc"[..]);
    let store = stores_at(&server);
    let folder = Path::new("s3://bucket/runs/");
    assert!(store.stat(folder).unwrap().kind == SourceKind::Folder && server.log().is_empty());
    let listed = store.list(folder, &Interrupt::new()).unwrap();
    assert!(listed.len() == 10_001 && server.log().len() == 11);
    assert!(listed[17].name == "0017.h5" && listed[17].stat.unwrap().identity.size == 18);
    assert!(listed[10_000].name == "more" && listed[10_000].stat.unwrap().kind == SourceKind::Folder);
    // All that the list says serves on.
    store.list(folder, &Interrupt::new()).unwrap();
    let address = Path::new("s3://bucket/runs/0017.h5");
    assert_eq!(store.stat(address).unwrap().identity, listed[17].stat.unwrap().identity);
    let object = store.client(address, &Interrupt::new()).unwrap().0;
    assert_eq!(read(&*object, 3..8).unwrap(), [7; 5]);
    let log = server.log();
    assert!(log.len() == 1 && log[0].range == Some(3..8), "{log:?}");
    // HEAD says the same.
    let other = stores_at(&server);
    assert_eq!(other.stat(address).unwrap().identity, listed[17].stat.unwrap().identity);
    assert_eq!(server.log()[0].method, "HEAD");
    // What has not changed is the same list, also after another look.
    let options = RemoteOptions { endpoint: Some(server.endpoint()), revalidate: Duration::ZERO, ..options() };
    let always = RemoteStores::new(options, &budget()).unwrap();
    let list = || always.list(Path::new("s3://bucket/runs/more/"), &Interrupt::new()).unwrap();
    let (first, again) = (list(), list());
    assert!(Arc::ptr_eq(&first, &again) && server.log().len() == 2);
    server.put("bucket/runs/more/x y&z.h5", &b"abcd"[..]);
    assert!(!Arc::ptr_eq(&first, &list()));
    let odd = other.list(Path::new("s3://bucket/runs/more/"), &Interrupt::new()).unwrap();
    assert!(odd.len() == 1 && odd[0].name == "x y&z.h5", "{odd:?}");
    assert!(other.list(Path::new("s3://bucket/none/"), &Interrupt::new()).unwrap().is_empty());
    let web = other.list(Path::new(&server.url("runs/")), &Interrupt::new()).unwrap_err().to_string();
    assert!(web.ends_with("web servers have no lists: name the objects themselves"), "{web}");
}

/// Keys in a folder `runs/` that no path can name, and their names there.
const UNNAMABLE: [(&str, &str); 5] = [
    ("runs//b.h5", "/"),
    ("runs/./b.h5", "./"),
    ("runs/..", ".."),
    ("runs/a\0.h5", "a\0.h5"),
    ("runs/b\u{7f}.h5", "b\u{7f}.h5"),
];

#[test]
fn a_key_that_no_path_can_name_leaves_its_neighbours() {
    let server = RangeServer::start();
    let long = format!("{}.h5", "n".repeat(300));
    for key in UNNAMABLE.iter().map(|(key, _)| *key).chain(["runs/a.h5", "runs/c.h5", &format!("runs/{long}")]) {
        server.put(&format!("bucket/{key}"), &b"abc"[..]);
    }
    let store = stores_at(&server);
    let listed = store.list(Path::new("s3://bucket/runs/"), &Interrupt::new()).unwrap();
    let (named, unnamable): (Vec<_>, Vec<_>) = listed.iter().partition(|member| member.stat.is_some());
    assert_eq!(
        named.iter().map(|member| &member.name[..]).collect::<Vec<_>>(),
        [&b"a.h5"[..], b"c.h5", long.as_bytes()]
    );
    let unnamable: BTreeSet<_> = unnamable.iter().map(|member| member.name.to_string()).collect();
    assert_eq!(unnamable, UNNAMABLE.map(|(_, name)| name.to_owned()).into());
    let object = store.client(Path::new(&format!("s3://bucket/runs/{long}")), &Interrupt::new()).unwrap().0;
    assert_eq!(read(&*object, 0..3).unwrap(), b"abc");
}

#[test]
fn a_list_without_an_end_is_given_up() {
    let server = RangeServer::start();
    server.put("bucket/runs/a.h5", &b"abc"[..]);
    let store = stores_at(&server);
    let folder = Path::new("s3://bucket/runs/");
    server.faults((0..1000).map(|_| Some(Fault::EmptyPage)));
    let error = store.list(folder, &Interrupt::new()).unwrap_err().to_string();
    assert!(error.ends_with(": sent 101 pages of a list without an entry"), "{error}");
    assert_eq!(server.log().len(), 101);
    // Some are no harm.
    server.no_faults();
    server.faults((0..50).map(|_| Some(Fault::EmptyPage)));
    assert_eq!(store.list(folder, &Interrupt::new()).unwrap().len(), 1);
}

#[test]
fn a_bucket_in_another_region_is_found() {
    let server = RangeServer::start();
    server.put("bucket/a.h5", &b"abc"[..]);
    let store = stores_at(&server);
    server.faults([Some(Fault::Elsewhere("eu-west-1"))]);
    let object = store.client(Path::new("s3://bucket/a.h5"), &Interrupt::new()).unwrap().0;
    assert_eq!(read(&*object, 0..3).unwrap(), b"abc");
}

#[test]
fn other_providers_are_asked_in_their_ways() {
    let server = RangeServer::start();
    server.put("bucket/runs/a b.h5", &b"abcdef"[..]);
    let store = stores_at(&server);
    let addresses = ["s3://bucket/runs/a b.h5", "gs://bucket/runs/a b.h5", "az://bucket@account/runs/a b.h5"];
    let identities: BTreeSet<_> = addresses
        .map(|address| {
            let (object, stat) = store.client(Path::new(address), &Interrupt::new()).unwrap();
            assert_eq!(read(&*object, 2..5).unwrap(), b"cde", "{address}");
            format!("{:?}", stat.identity)
        })
        .into();
    assert_eq!(identities.len(), 3);
    let listed = store.list(Path::new("gs://bucket/runs/"), &Interrupt::new()).unwrap();
    assert!(listed.len() == 1 && listed[0].name == "a b.h5" && listed[0].stat.unwrap().identity.size == 6);
}

#[test]
fn an_hdf5_file_is_read_over_http() {
    let server = RangeServer::start();
    server.put("units.h5", fs::read(data("units.h5")).unwrap());
    let opener = Opener::new(Arc::new(RemoteStores::new(options(), &budget()).unwrap()));
    let source = opener.open(Path::new(&server.url("units.h5")), &Interrupt::new()).unwrap();
    assert_eq!(source.identity().size, fs::metadata(data("units.h5")).unwrap().len());
    let format = hepfs::formats::Format::of(&source, &Interrupt::new()).unwrap();
    assert_eq!(format, Some(hepfs::formats::Format::Hdf5));
    assert!(server.log().len() <= 3);
}
