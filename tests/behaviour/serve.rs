//! `hepfs serve` against clients that send what they like, beside a mount of the same file.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::data;
use crate::range_server::RangeServer;
use crate::served::{Answered, Served};
use crate::support::{HEPFS, Mounted, hepfs, must, until};
use crate::writer::Writer;

/// A name as an address has it.
fn encoded(path: impl AsRef<OsStr>) -> String {
    let mut encoded = String::new();
    for byte in path.as_ref().as_bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' | b'/' => encoded.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => encoded.push(char::from(*byte)),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// The files below a folder, without pages, which have the address of the mount in them.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() && !path.ends_with(".hepfs") && !path.ends_with(".datasets") {
            found.extend(files(&path));
        } else if kind.is_file() && path.extension() != Some(OsStr::new("html")) {
            found.push(path);
        }
    }
    found
}

#[test]
fn files_have_the_bytes_of_a_mount() {
    for name in ["seed_11_1.h5", "names_columns.h5", "links.h5"] {
        let source = data(name);
        let (mount, served) = (Mounted::new(&[&source], &[]), Served::new(&[&source], &[]));
        let files = files(mount.path());
        assert!(files.len() > 3, "{name}: {files:?}");
        for (at, path) in files.iter().enumerate() {
            let (bytes, path) = (fs::read(path).unwrap(), path.strip_prefix(mount.path()).unwrap());
            let url = format!("/{}", encoded(path));
            let path = path.display();
            let whole = served.ask("GET", &url, &[]);
            assert_eq!((whole.status, &whole.body), (200, &bytes), "{name}: {path}");
            assert_eq!(whole.header("content-range"), None);
            if at % 5 > 0 {
                continue;
            }
            let head = served.ask("HEAD", &url, &[]);
            assert_eq!(head.header("content-length"), Some(bytes.len().to_string().as_str()), "{name}: {path}");
            assert!(head.body.is_empty());
            assert_eq!(head.header("etag"), whole.header("etag"));
            // A range somewhere, other ones for each file.
            let from = bytes.len() * (at % 7) / 7;
            let to = (from + 1 + 100 * (at % 8)).min(bytes.len());
            if from < to {
                let part = served.ask("GET", &url, &[&format!("Range: bytes={from}-{}", to - 1)]);
                assert_eq!((part.status, part.body.as_slice()), (206, &bytes[from..to]), "{name}: {path}");
            }
        }
    }
}

#[test]
fn ranges_and_conditions_are_those_of_rfc_9110() {
    let served = Served::new(&[&data("seed_11_1.h5")], &[]);
    let path = "/my_table/table.parquet";
    let whole = served.ask("GET", path, &[]);
    let size = whole.body.len();
    let tag = whole.header("etag").unwrap().to_owned();
    assert!(tag.starts_with('"') && tag.len() == 34, "{tag}");
    assert_eq!(whole.header("accept-ranges"), Some("bytes"));
    let asked = |method: &str, range: &str| served.ask(method, path, &[&format!("Range: {range}")]);
    for method in ["GET", "HEAD"] {
        for (range, from, to) in [
            ("bytes=0-", 0, size),
            (&format!("bytes=0-{}", size - 1), 0, size),
            ("bytes=-4", size - 4, size),
            ("bytes=-99999999", 0, size),
            ("bytes=4-99999999999999999999999999", 4, size),
            ("bytes=0-0", 0, 1),
        ] {
            let answer = asked(method, range);
            assert_eq!(answer.status, 206, "{method} {range}");
            assert_eq!(answer.header("content-range"), Some(&*format!("bytes {from}-{}/{size}", to - 1)), "{range}");
            assert_eq!(answer.header("content-length"), Some(&*(to - from).to_string()), "{range}");
            let body = if method == "GET" { &whole.body[from..to] } else { &[] };
            assert_eq!(answer.body, body, "{range}");
        }
    }
    for range in ["bytes=0-1,4-5", "items=0-1", "bytes=5-4", "bytes=x-", "bytes"] {
        let answer = asked("GET", range);
        assert_eq!((answer.status, answer.header("content-range"), answer.body.len()), (200, None, size), "{range}");
    }
    for range in [&format!("bytes={size}-"), "bytes=-0", "bytes=99999999999999999999-"] {
        let answer = asked("GET", range);
        assert_eq!(
            (answer.status, answer.header("content-range")),
            (416, Some(&*format!("bytes */{size}"))),
            "{range}"
        );
    }
    let modified = whole.header("last-modified").unwrap();
    for (headers, status) in [
        (vec![format!("If-None-Match: {tag}")], 304),
        (vec![format!("If-None-Match: \"other\", W/{tag}")], 304),
        (vec![format!("If-Modified-Since: {modified}")], 304),
        (vec![format!("If-Match: {tag}")], 200),
        (vec!["If-Match: \"other\"".to_owned()], 412),
        (vec!["If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT".to_owned()], 412),
        (vec![format!("If-Range: {tag}"), "Range: bytes=0-3".to_owned()], 206),
        (vec!["If-Range: \"other\"".to_owned(), "Range: bytes=0-3".to_owned()], 200),
    ] {
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let answer = served.ask("GET", path, &headers);
        assert_eq!(answer.status, status, "{headers:?}");
        assert_eq!(answer.header("etag").is_some(), status != 412, "{headers:?}");
    }
    // Live files are of each moment.
    let live = served.ask("GET", "/.hepfs/stats", &["Range: bytes=0-3"]);
    assert_eq!((live.status, live.header("etag"), live.header("cache-control")), (200, None, Some("no-store")));
    assert!(live.body.len() > 4);
}

#[test]
fn a_directory_is_a_page_with_all_names() {
    let source = data("links.h5");
    let (mount, served) = (Mounted::new(&[&source], &[]), Served::new(&[&source], &[]));
    let page = served.ask("GET", "/", &[]);
    let text = page.text();
    let mut links: Vec<&str> = text.split("<a href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    links.sort_unstable();
    let names = mount.names("").into_iter().map(|name| {
        let is_directory = fs::symlink_metadata(mount.join(&name)).unwrap().is_dir();
        encoded(&name) + if is_directory { "/" } else { "" }
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert_eq!(links, names);
    // A browser sees the directory described, and all names as well.
    let shown = served.ask("GET", "/", &["Accept: text/html,*/*"]);
    assert!(shown.text().contains("Made by hepfs"), "{}", shown.text());
    assert!(names.iter().all(|name| shown.text().contains(&format!("<a href=\"{name}\">"))));
    assert_eq!(served.ask("HEAD", "/", &[]).header("content-length"), Some(&*page.body.len().to_string()));
    // A directory has a slash, and links lead to what they stand for.
    let group = names.iter().find(|name| name.ends_with('/') && !name.starts_with('.')).unwrap().trim_end_matches('/');
    let answer = served.ask("GET", &format!("/~{}/{group}", served.secret), &[]);
    let place = format!("/~{}/{group}/", served.secret);
    assert_eq!((answer.status, answer.header("location")), (302, Some(&*place)));
    assert_eq!(served.ask("GET", &place, &[]).status, 200);
}

#[test]
fn a_key_is_needed_and_taken_in_each_form() {
    let source = data("seed_11_1.h5");
    let mut served = Served::new(&[&source], &["--host", "data.example"]);
    let (path, secret) = ("/my_table/metadata.json", served.secret.clone());
    assert_eq!(secret.len(), 40);
    let bytes = served.ask("GET", path, &[]).body;
    let denied = served.ask_without("GET", path, &[]);
    assert_eq!(denied.status, 401);
    assert!(denied.header("www-authenticate").unwrap().starts_with("Basic"));
    let wrong = format!("{}0", &secret[1..]);
    assert_eq!(served.ask_without("GET", &format!("/~{wrong}{path}"), &[]).status, 401);
    assert_eq!(served.ask_without("GET", path, &[&format!("Authorization: Bearer {wrong}")]).status, 401);
    for (user, status) in [(format!("x:{secret}"), "200"), (format!("x:{wrong}"), "401")] {
        let url = format!("http://{}{path}", served.address);
        let curl = ["-s", "-o", "/dev/null", "-w", "%{http_code}", "-u", &user, &url];
        assert_eq!(must("curl", curl), status);
    }
    for path in [format!("/~{secret}{path}"), format!("/%7E{secret}{path}")] {
        assert_eq!(served.ask_without("GET", &path, &[]).body, bytes);
    }
    // The protocols say it in their own words.
    let s3 = served.ask_without("GET", "/hepfs?list-type=2", &[]);
    assert_eq!(s3.status, 403);
    assert!(s3.text().contains("<Code>AccessDenied</Code>"), "{}", s3.text());
    let hdfs = served.ask_without("GET", "/webhdfs/v1/my_table?op=LISTSTATUS", &[]);
    assert_eq!((hdfs.status, hdfs.header("content-type")), (403, None));
    assert!(hdfs.text().contains("AccessControlException"), "{}", hdfs.text());
    assert_eq!(served.ask_without("GET", &format!("/webhdfs/v1/~{secret}/my_table?op=LISTSTATUS"), &[]).status, 200);
    // A page of another name that leads here (DNS rebinding).
    assert_eq!(served.ask("GET", path, &["Host: evil.example"]).status, 421);
    assert_eq!(served.ask("GET", path, &["Host: data.example:80"]).status, 200);
    assert_eq!(served.ask("GET", path, &["Host: localhost"]).status, 200);
    for method in ["PUT", "POST", "DELETE", "PATCH", "PROPFIND", "CONNECT"] {
        let answer = served.ask(method, path, &["Content-Length: 3"]);
        assert!([400, 405].contains(&answer.status), "{method}: {answer:?}");
    }
    assert_eq!(served.ask("OPTIONS", path, &["Origin: https://a.example"]).status, 405);

    let port = served.address.rsplit(':').next().unwrap();
    let file = hepfs::activity::own_folder().unwrap().join(format!("serve-{port}.key"));
    assert_eq!(fs::read_to_string(&file).unwrap().trim(), secret);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(served.stop().success());
    assert!(!file.exists(), "the key goes with the process");
}

#[test]
fn open_is_for_this_computer_alone() {
    let source = data("seed_11_1.h5");
    let refused = |arguments: &[&str]| {
        let output = hepfs([&["serve", "--cache-folder", "none"], arguments, &[source.to_str().unwrap()]].concat());
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&["--listen", "0.0.0.0:0"]).contains("--plain-http"));
    assert!(refused(&["--listen", "0.0.0.0:0", "--plain-http", "--open"]).contains("--open"));
    assert!(refused(&["--bucket", "my_table"]).contains("--bucket"));
    let served = Served::new(&[&source], &["--open", "--cors", "https://shell.example"]);
    let ours = served.ask("GET", "/my_table/metadata.json", &["Origin: https://shell.example"]);
    assert_eq!((ours.status, ours.header("access-control-allow-origin")), (200, Some("https://shell.example")));
    for name in ["Content-Range", "Content-Length", "Accept-Ranges", "ETag"] {
        assert!(ours.header("access-control-expose-headers").unwrap().contains(name));
    }
    let other = served.ask("GET", "/my_table/metadata.json", &["Origin: https://evil.example"]);
    assert_eq!(other.header("access-control-allow-origin"), None);
    let asks = ["Origin: https://shell.example", "Access-Control-Request-Method: GET"];
    let preflight = served.ask("OPTIONS", "/my_table/table.parquet", &asks);
    assert_eq!(preflight.status, 204);
    assert!(preflight.header("access-control-allow-headers").unwrap().contains("range"));
    assert_eq!(served.ask("GET", "/", &["Host: evil.example"]).status, 421);
}

#[test]
fn a_socket_with_a_path_is_for_one_user() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let mut command = Command::new(HEPFS);
    command.args(["serve", "--cache-folder", "none", "--unix"]).args([&socket, &data("seed_11_1.h5")]);
    let mut process = command.spawn().unwrap();
    until("a socket", || socket.exists());
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let curl = ["-sf", "--unix-socket", socket.to_str().unwrap(), "http://any/my_table/metadata.json"];
    let said: Value = serde_json::from_str(&must("curl", curl)).unwrap();
    assert!(said.get("columns").is_some());
    Command::new("kill").arg(process.id().to_string()).status().unwrap();
    assert!(process.wait().unwrap().success());
    assert!(!socket.exists());
}

#[test]
fn a_certificate_encrypts() {
    let folder = tempfile::tempdir().unwrap();
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name).display().to_string());
    must(
        "openssl",
        [
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            &key,
            "-out",
            &certificate,
        ],
    );
    let served =
        Served::new(&[&data("seed_11_1.h5")], &["--tls-cert", &certificate, "--tls-key", &key, "--host", "localhost"]);
    let url = format!("https://{}/~{}/my_table/metadata.json", served.address, served.secret);
    let said: Value = serde_json::from_str(&must("curl", ["-sf", "--cacert", &certificate, &url])).unwrap();
    assert!(said.get("columns").is_some());
    assert!(served.lines[1].contains("USE_SSL true"));
    // Plain HTTP gets nothing, and hurts no other.
    served.send(b"GET / HTTP/1.1\r\n\r\n");
    must("curl", ["-sf", "-o", "/dev/null", "--cacert", &certificate, &url]);
}

#[test]
fn hostile_requests_are_refused_and_hurt_no_other() {
    let served = Served::new(&[&data("seed_11_1.h5")], &["--open"]);
    let host = format!("Host: {}", served.address);
    let status = |bytes: &[u8]| Answered::parse(&served.send(bytes)).status;
    for path in ["/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/my_table/%00", "/my_table%2F..%2F..", "/%zz"] {
        assert_eq!(served.ask("GET", path, &[]).status, 400, "{path}");
        assert_eq!(served.ask("GET", &format!("/hepfs{path}"), &[]).status, 400, "{path}");
    }
    for path in
        ["/~", "//", "/my_table//table.csv", "/my_table/table.csv/", "/my_table/table.csv/x", "/%FF%FE", "/hepfs//"]
    {
        assert_eq!(served.ask("GET", path, &[]).status, 404, "{path}");
    }
    assert!([400, 414, 431].contains(&served.ask("GET", &format!("/{}", "a".repeat(60_000)), &[]).status));
    let long = format!("X: {}", "a".repeat(1 << 20));
    assert_eq!(status(format!("GET / HTTP/1.1\r\n{host}\r\n{long}\r\n\r\n").as_bytes()), 431);
    let many = "X: a\r\n".repeat(1000);
    assert_eq!(status(format!("GET / HTTP/1.1\r\n{host}\r\n{many}\r\n").as_bytes()), 431);
    for bytes in [&b"\0\0\0\0\r\n\r\n"[..], b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\nA\r\n\r\n"] {
        assert_eq!(status(bytes), 400, "{bytes:?}");
    }
    for authorization in [
        "AWS4-HMAC-SHA256",
        "AWS4-HMAC-SHA256 Credential=,SignedHeaders=,Signature=",
        "AWS4-HMAC-SHA256 Credential=hepfs/20260101/x/s3/aws4_request,SignedHeaders=host,Signature=zz",
    ] {
        let served = Served::new(&[&data("seed_11_1.h5")], &[]);
        let headers = [&*format!("Authorization: {authorization}"), "x-amz-date: 20260101T000000Z"];
        assert_eq!(served.ask_without("GET", "/hepfs/x", &headers).status, 403, "{authorization}");
    }
    // Clients that wait, with half a request or none, keep no other from an answer.
    let idle: Vec<TcpStream> = (0..200)
        .map(|at| {
            let mut stream = TcpStream::connect(&served.address).unwrap();
            stream.write_all(if at % 2 == 0 { b"GET / HT" } else { b"" }).unwrap();
            stream
        })
        .collect();
    // So do clients that ask and read nothing.
    let deaf: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(&served.address).unwrap();
            stream.write_all(format!("GET /my_table/table.csv HTTP/1.1\r\n{host}\r\n\r\n").as_bytes()).unwrap();
            stream
        })
        .collect();
    let begun = Instant::now();
    assert_eq!(served.ask("GET", "/my_table/table.csv", &[]).status, 200);
    assert!(begun.elapsed() < Duration::from_secs(20));
    drop((idle, deaf));
}

#[test]
fn a_signal_lets_answers_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.h5");
    let values: Vec<i64> = (0..3_000_000).collect();
    let writer = Writer::create(&file);
    writer.table("t").column("x", &values, 100_000);
    writer.close();
    let mut served = Served::new(&[&file], &["--open"]);
    let path = "/t/columns/x.raw";
    let size = 8 * values.len();
    let mut slow = TcpStream::connect(&served.address).unwrap();
    slow.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
    let mut first = vec![0; 100_000];
    slow.read_exact(&mut first).unwrap();
    Command::new("kill").arg(served.id().to_string()).status().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(TcpStream::connect(&served.address).is_err(), "it listens no more");
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).unwrap();
    let answer = Answered::parse(&[first, rest].concat());
    assert_eq!((answer.status, answer.body.len()), (200, size));
    assert!(served.wait().success());
}

#[test]
fn keys_are_in_order_and_no_list_begins_a_pass() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "a.b", "a-b", "b+c"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::copy(data("seed_11_1.h5"), folder.path().join(name).join("x.h5")).unwrap();
    }
    let served = Served::new(&[folder.path()], &["--open"]);
    let texts = |answer: &Answered, tag: &str| -> Vec<String> {
        let (begin, end) = (format!("<{tag}>"), format!("</{tag}>"));
        let all = answer.text();
        all.split(&begin).skip(1).map(|rest| rest.split(&end).next().unwrap().to_owned()).collect()
    };
    let listed = |query: &str| served.ask("GET", &format!("/hepfs?list-type=2&{query}"), &[]);
    let all = texts(&listed(""), "Key");
    let mut sorted = all.clone();
    sorted.sort();
    assert_eq!(all, sorted);
    let first = |prefix: &str| all.iter().position(|key| key.starts_with(prefix)).unwrap();
    assert!(first("a-b/") < first("a.b/") && first("a.b/") < first("a/"));
    assert!(all.contains(&"a/x.h5/my_table/table.parquet".to_owned()));
    // A text is listed once its size is known, and answers before.
    let csv = "a/x.h5/my_table/table.csv".to_owned();
    assert!(!all.contains(&csv));
    assert_eq!(served.ask("HEAD", &format!("/hepfs/{csv}"), &[]).status, 200);
    assert!(texts(&listed(""), "Key").contains(&csv));
    // Pages of any size, of both versions, make the same list.
    let all = texts(&listed(""), "Key");
    for most in [1, 7] {
        let (mut second, mut token) = (Vec::new(), String::new());
        loop {
            let page = listed(&format!("max-keys={most}&continuation-token={token}"));
            second.extend(texts(&page, "Key"));
            match texts(&page, "NextContinuationToken").pop() {
                Some(next) => token = next,
                None => break,
            }
        }
        assert_eq!(second, all);
        let (mut first, mut marker) = (Vec::new(), String::new());
        loop {
            let page = served.ask("GET", &format!("/hepfs?max-keys={most}&marker={}", encoded(&marker)), &[]);
            first.extend(texts(&page, "Key"));
            match texts(&page, "NextMarker").pop() {
                Some(next) => marker = next,
                None => break,
            }
        }
        assert_eq!(first, all);
    }
    let folders = listed("delimiter=/");
    let folders: Vec<String> = texts(&folders, "Prefix").into_iter().filter(|prefix| prefix.len() < 5).collect();
    assert_eq!(folders, ["", "a-b/", "a.b/", "a/", "b+c/"]);
    assert_eq!(texts(&listed("delimiter=/&start-after=a.b/"), "Prefix").iter().filter(|one| one.len() == 2).count(), 1);
    let inner = listed("prefix=b%2Bc/x.h5/my_table/columns/e&delimiter=.&encoding-type=url");
    assert_eq!(texts(&inner, "Prefix"), ["b%2Bc/x.h5/my_table/columns/e", "b%2Bc/x.h5/my_table/columns/energy."]);
    assert!(texts(&listed("max-keys=0"), "IsTruncated") == ["false"]);
    for wrong in ["max-keys=-1", "max-keys=x", "continuation-token=zz", "encoding-type=x"] {
        assert_eq!(listed(wrong).status, 400, "{wrong}");
    }
    for (path, status) in
        [("/other?list-type=2", 404), ("/hepfs/a", 404), ("/hepfs/a/", 404), ("/hepfs/a/x.h5?acl", 501)]
    {
        // S3 knows a request by its bucket or its signature.
        let signed = ["Authorization: AWS4-HMAC-SHA256 x"];
        assert_eq!(served.ask("GET", path, &signed).status, status, "{path}");
    }
}

/// Lines that say `# not tested` are not.
#[test]
fn the_commands_of_the_page_on_serving_work() {
    let folder = tempfile::tempdir().unwrap();
    must(HEPFS, ["demo", "--rows", "2000", folder.path().join("sample").to_str().unwrap()]);
    let served = Served::new(&[&folder.path().join("sample/sample.h5")], &[]);
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide/serving.md")).unwrap();
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines: Vec<&str> = blocks.flat_map(str::lines).filter(|line| !line.contains("# not tested")).collect();
    assert!(lines.len() >= 4, "{lines:?}");
    for line in lines {
        let line = line.replace("127.0.0.1:9000", &served.address).replace("KEY", &served.secret);
        assert!(!must("sh", ["-ec", &line]).is_empty(), "{line}");
    }
}

#[test]
fn a_long_pass_goes_on_without_its_client() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.h5");
    let values: Vec<i64> = (0..3_000_000).map(|row| row * 0x9e37).collect();
    let writer = Writer::create(&file);
    writer.table("t").column("x", &values, 100_000);
    writer.close();
    let store = RangeServer::start();
    store.put("a.h5", fs::read(&file).unwrap());
    let served = Served::new(&[Path::new(&store.url("a.h5"))], &["--open", "--ahead", "0"]);
    assert_eq!(served.ask("HEAD", "/t/columns/x.raw", &[]).status, 200);
    // The 24 MB of values take half a minute.
    store.line(Duration::from_millis(1), Some(800_000));
    let begun = Instant::now();
    let answer = served.ask("HEAD", "/t/table.csv", &[]);
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("10")), "{:?}", begun.elapsed());
    assert!(begun.elapsed() > Duration::from_secs(19));
    until("the end of the pass", || served.ask("HEAD", "/t/table.csv", &[]).status == 200);
    assert!(begun.elapsed() < Duration::from_secs(50), "the pass began anew: {:?}", begun.elapsed());
}

#[test]
fn a_file_that_changes_is_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.h5");
    fs::copy(data("seed_11_1.h5"), &file).unwrap();
    let served = Served::new(&[&file], &["--open"]);
    let path = "/my_table/table.csv";
    let before = served.ask("GET", path, &[]);
    let tag = before.header("etag").unwrap().to_owned();
    assert_eq!(served.ask("GET", path, &[&format!("If-Match: {tag}")]).status, 200);
    let next = folder.path().join("b.h5");
    fs::copy(data("seed_11_2.h5"), &next).unwrap();
    fs::rename(&next, &file).unwrap();
    let mount = Mounted::new(&[Path::new(&file)], &[]);
    let after = served.ask("GET", path, &[]);
    assert_eq!(after.body, mount.read("my_table/table.csv"));
    assert_ne!(after.header("etag"), Some(tag.as_str()));
    assert_eq!(served.ask("GET", path, &[&format!("If-Match: {tag}")]).status, 412);
    fs::remove_file(&file).unwrap();
    // As in a mount, where it is a stale file handle.
    let gone = served.ask("GET", path, &[]);
    assert_eq!((gone.status, gone.header("retry-after")), (503, Some("2")));
}
