//! The range server for tests, and objects read from it: each fault of a server gives the right bytes or an error.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use hepfs::source::{
    Error, Identity, Interrupt, ObjectStore, ObjectVersion, Opener, RemoteObject, Source, SourceKind, SourceStat, Stamp,
};

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

/// A store that asks for one range after the other, and holds each answer against what it asked for.
#[derive(Debug)]
struct PlainHttp;

#[derive(Debug)]
struct PlainObject {
    url: String,
    tag: String,
    stat: SourceStat,
}

impl PlainHttp {
    fn head(&self, address: &Path) -> io::Result<PlainObject> {
        let url = address.to_str().unwrap().to_owned();
        let answer = ask("HEAD", &url, &[])?;
        if answer.status != 200 {
            return Err(io::Error::other(format!("status {}", answer.status)));
        }
        let tag = answer.headers.get("etag").filter(|tag| tag.starts_with('"')).cloned();
        let tag = tag.ok_or_else(|| io::Error::other("no strong entity tag"))?;
        let size = answer.headers["content-length"].parse().unwrap();
        let identity = Identity::of_object(&url, "", "", &ObjectVersion::Tag(tag.clone()), size);
        let stamp = Stamp { times: [SystemTime::UNIX_EPOCH; 3], mode: 0o444 };
        Ok(PlainObject { url, tag, stat: SourceStat { kind: SourceKind::File, identity, stamp } })
    }
}

impl ObjectStore for PlainHttp {
    fn open(&self, address: &Path, _: &Interrupt) -> Result<Arc<dyn RemoteObject>, Error> {
        let object = self.head(address).map_err(|error| Error::Io { path: address.to_owned(), error })?;
        Ok(Arc::new(object))
    }

    fn stat(&self, address: &Path) -> io::Result<SourceStat> {
        Ok(self.head(address)?.stat)
    }
}

impl RemoteObject for PlainObject {
    fn stat(&self) -> SourceStat {
        self.stat
    }

    fn read_at(&self, offset: u64, out: &mut [u8], interrupt: &Interrupt) -> Result<(), Error> {
        interrupt.check()?;
        let failed = |error| Error::Io { path: self.url.as_str().into(), error };
        let last = offset + out.len() as u64 - 1;
        let range = format!("bytes={offset}-{last}");
        let answer = ask("GET", &self.url, &[("Range", &range), ("If-Match", &self.tag)]).map_err(failed)?;
        if answer.status == 412 {
            return Err(Error::Changed(self.url.as_str().into()));
        }
        let told = format!("bytes {offset}-{last}/{}", self.stat.identity.size);
        let is_as_asked = answer.status == 206
            && answer.headers.get("content-range") == Some(&told)
            && answer.headers.get("etag") == Some(&self.tag)
            && !answer.headers.contains_key("content-encoding")
            && answer.body.len() == out.len();
        if !is_as_asked {
            return Err(failed(io::Error::other(format!("not the answer to {range}: status {}", answer.status))));
        }
        out.copy_from_slice(&answer.body);
        Ok(())
    }
}

/// A server with an object of bytes that differ.
fn served() -> (RangeServer, String, Vec<u8>) {
    let (server, content) = (RangeServer::start(), (0..300_000u32).map(|n| (n * 7 / 5) as u8).collect::<Vec<u8>>());
    server.put("a/b.bin", content.clone());
    let url = server.url("a/b.bin");
    (server, url, content)
}

fn open(url: &str) -> Source {
    Opener::new(Arc::new(PlainHttp)).open(Path::new(url), &Interrupt::new()).unwrap()
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

#[test]
fn no_fault_of_a_server_gives_other_bytes() {
    let (server, url, content) = served();
    let source = open(&url);
    let slow = Fault::Pause(500, Duration::from_millis(100));
    for (fault, is_harmless) in [
        (Fault::Status(500), false),
        (Fault::Status(403), false),
        (Fault::Busy(1), false),
        (Fault::Cut(0), false),
        (Fault::Cut(999), false),
        (slow, true),
        (Fault::Whole, false),
        (Fault::OtherRange, false),
        (Fault::Short, false),
        (Fault::Gzip, false),
        (Fault::OtherTag, false),
        (Fault::WeakTag, false),
        (Fault::NoTag, false),
        (Fault::Redirect(server.url("elsewhere")), false),
    ] {
        server.faults([Some(fault.clone())]);
        let mut bytes = vec![0; 1000];
        let read = source.read_at(70_000, &mut bytes, &Interrupt::new());
        assert_eq!(read.is_ok(), is_harmless, "{fault:?}: {read:?}");
        assert!(read.is_err() || bytes == content[70_000..71_000], "{fault:?}");
        // The next answer is sound.
        source.read_at(70_000, &mut bytes, &Interrupt::new()).unwrap();
        assert!(bytes == content[70_000..71_000], "after {fault:?}");
    }
    server.put("a/b.bin", content.clone());
    let error = source.read_at(0, &mut [0; 8], &Interrupt::new()).unwrap_err();
    assert!(error.is_change(), "{error}");
    for fault in [Fault::WeakTag, Fault::NoTag, Fault::Status(404)] {
        server.faults([Some(fault)]);
        assert!(Opener::new(Arc::new(PlainHttp)).open(Path::new(&url), &Interrupt::new()).is_err());
    }
}

#[test]
fn an_hdf5_file_is_read_over_http() {
    let server = RangeServer::start();
    server.put("units.h5", fs::read(data("units.h5")).unwrap());
    let source = open(&server.url("units.h5"));
    assert_eq!(source.identity().size, fs::metadata(data("units.h5")).unwrap().len());
    let format = hepfs::formats::Format::of(&source, &Interrupt::new()).unwrap();
    assert_eq!(format, Some(hepfs::formats::Format::Hdf5));
    assert_eq!(server.log().len(), 3);
}
