//! `hepfs status` and `hepfs umount`: what is mounted, by whom, for whom it goes on.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::data;
use crate::support::{LONG, copy_program, end_of, lives, marked, run_within, signal, until};

/// A folder with the program, a file `run.h5` that all may read, a runtime folder for each user, and a mark in the
/// environment of all that is started.
struct Bench {
    folder: tempfile::TempDir,
    /// Namespaces that were made, each by its process.
    namespaces: Vec<Child>,
}

/// In a mount namespace where /dev/fuse is open to all: makes the file `ready`, and waits.
const NAMESPACE: &str = r#"
mkdir -p "$1/dev"
mount -t tmpfs -o mode=755 toy "$1/dev"
mknod -m 666 "$1/dev/fuse" c 10 229
mount --bind "$1/dev/fuse" /dev/fuse
touch "$1/ready"
exec sleep 1000
"#;

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bench = Self { folder, namespaces: Vec::new() };
        fs::set_permissions(bench.at(""), PermissionsExt::from_mode(0o777)).unwrap();
        fs::copy(data("units.h5"), bench.at("run.h5")).unwrap();
        fs::set_permissions(bench.at("run.h5"), PermissionsExt::from_mode(0o644)).unwrap();
        copy_program(&bench.at("hepfs"));
        bench
    }

    fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The runtime folder of this user. Others have none, as those who do not log in.
    fn runtime(&self) -> PathBuf {
        let path = self.at("runtime");
        if fs::create_dir(&path).is_ok() {
            fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        }
        path
    }

    /// A namespace of its own; its number here.
    fn namespace(&mut self) -> usize {
        let _ = fs::remove_file(self.at("ready"));
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-ec", NAMESPACE, "sh"]).arg(self.at(""));
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        self.namespaces.push(child);
        until("a namespace", || self.at("ready").exists());
        self.namespaces.len() - 1
    }

    /// A program of a user, in a namespace of the bench; `None`: of this user, here.
    fn command(&self, user: Option<(u32, usize)>, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("env");
        if let Some((_, namespace)) = user {
            let process = self.namespaces[namespace].id().to_string();
            command.args(["nsenter", "--mount", "--target", &process]);
        }
        if let Some((id, _)) = user.filter(|(id, _)| *id != 0) {
            let id = id.to_string();
            command.args(["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"]);
        }
        // Root's own folders are closed to others.
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin").current_dir("/");
        command.env("MARK", self.folder.path()).env("TMPDIR", self.at("")).env_remove("XDG_RUNTIME_DIR");
        if user.is_none() {
            command.env("XDG_RUNTIME_DIR", self.runtime());
        }
        command.env("HOME", self.at("")).env_remove("XDG_STATE_HOME").env_remove("XDG_CACHE_HOME");
        command.arg(program.as_ref()).stdin(Stdio::null());
        command
    }

    /// The program under test.
    fn hepfs(&self, arguments: &[&str]) -> Output {
        run_within(LONG, self.command(None, self.at("hepfs")).args(arguments))
    }

    fn mount(&self, user: Option<(u32, usize)>, name: &str) {
        let mountpoint = self.at(name);
        fs::create_dir(&mountpoint).unwrap();
        if let Some((id, _)) = user {
            std::os::unix::fs::chown(&mountpoint, Some(id), Some(id)).unwrap();
        }
        let mut command = self.command(user, self.at("hepfs"));
        command.args(["mount", "--cache-folder", "none", "--log-file", "/dev/null"]).arg(self.at("run.h5"));
        let output = run_within(LONG, command.arg(&mountpoint));
        assert!(output.status.success(), "{output:?}");
    }

    /// The document of `status --json`.
    fn status(&self, arguments: &[&str]) -> Value {
        let output = self.hepfs(&[&["status", "--json"], arguments].concat());
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let mut document: Value = serde_json::from_slice(&output.stdout).unwrap();
        // Other tests mount as well, and root sees all.
        for kind in ["mounts", "commands"] {
            let own = |entry: &Value| entry.to_string().contains(self.folder.path().to_str().unwrap());
            document[kind].as_array_mut().unwrap().retain(own);
        }
        document
    }

    /// The lines of the table that are about this folder, without the heading.
    fn table(&self, arguments: &[&str]) -> Vec<String> {
        let output = self.hepfs(&[&["status"], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter(|line| line.contains(self.folder.path().to_str().unwrap())).map(str::to_owned).collect()
    }

    /// The process that serves a mount, as it says itself.
    fn daemon(&self, name: &str) -> u32 {
        let document = self.status(&[]);
        let mountpoint = self.at(name);
        let its = document["mounts"]
            .as_array()
            .unwrap()
            .iter()
            .find(|entry| entry["mountpoint"] == *mountpoint.to_str().unwrap());
        its.unwrap_or_else(|| panic!("no {name}: {document}"))["pid"].as_u64().unwrap() as u32
    }

    /// The sockets of this user.
    fn sockets(&self) -> Vec<String> {
        let folder = self.runtime().join("hepfs");
        crate::support::names(&folder)
    }

    /// The living processes that carry the mark.
    fn left(&self) -> Vec<u32> {
        marked(&format!("MARK={}", self.folder.path().display()))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let left = self.left().into_iter().map(|process| process.to_string());
        Command::new("kill").arg("-9").args(left).stderr(Stdio::null()).status().ok();
        // Takes away what they left in the folders of users without a runtime folder.
        self.hepfs(&["status"]);
        for user in ["1", "65534"].iter().filter(|_| !self.namespaces.is_empty()) {
            fs::remove_dir(format!("/tmp/hepfs-{user}")).ok();
        }
        for namespace in &mut self.namespaces {
            namespace.kill().ok();
            namespace.wait().ok();
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let ours = mounts
            .lines()
            .filter_map(|line| line.split(' ').nth(4))
            .filter(|path| path.starts_with(self.folder.path().to_str().unwrap()));
        for path in ours {
            Command::new("umount").args(["--lazy", path]).status().ok();
        }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn twenty_mounts_of_three_users_in_four_namespaces_are_listed_one_of_them_hanging() {
    if !is_root() {
        return eprintln!("skipped: root sees the mounts of others");
    }
    let mut bench = Bench::new();
    let users = [0, 1, 65534];
    let mut mounted = Vec::new();
    // Two here; three namespaces with six each.
    for name in ["here-1", "here-2"] {
        bench.mount(None, name);
        mounted.push((name.to_owned(), 0));
    }
    for namespace in 0..3 {
        assert_eq!(bench.namespace(), namespace);
        for (at, user) in users.iter().chain(&users).enumerate() {
            let name = format!("mnt-{namespace}-{at}");
            bench.mount(Some((*user, namespace)), &name);
            mounted.push((name, *user));
        }
    }
    assert_eq!(mounted.len(), 20);
    let read = fs::read(bench.at("here-2/t/table.csv")).unwrap();
    let hanging = bench.daemon("here-1");
    signal(hanging, libc::SIGSTOP);
    let started = Instant::now();
    let document = bench.status(&[]);
    let took = started.elapsed();
    let table = bench.table(&[]);
    signal(hanging, libc::SIGCONT);
    println!("{took:?}\n{}", table.join("\n"));
    assert!((Duration::from_secs(1)..Duration::from_secs(8)).contains(&took), "{took:?}");

    let mounts = document["mounts"].as_array().unwrap();
    assert_eq!(mounts.len(), 20, "{document:#}");
    let mut namespaces = std::collections::BTreeSet::new();
    for (name, user) in &mounted {
        let path = bench.at(name);
        let its = mounts.iter().find(|entry| entry["mountpoint"] == *path.to_str().unwrap()).unwrap();
        assert_eq!(its["uid"], *user, "{its:#}");
        let state = if name == "here-1" { "silent" } else { "answers" };
        assert_eq!((&its["state"], &its["detached"]), (&state.into(), &false.into()), "{its:#}");
        namespaces.insert(its["namespace"].as_u64());
        if name == "here-1" {
            assert_eq!(its["pid"], hanging);
            assert!(its["report"].is_null());
        } else {
            assert_eq!(its["report"]["sources"][0], *bench.at("run.h5").to_str().unwrap());
            let served = its["report"]["bytes_served"].as_u64().unwrap();
            assert_eq!(served >= read.len() as u64, name == "here-2", "{its:#}");
        }
    }
    assert_eq!(namespaces.len(), 4);
    assert_eq!(table.len(), 20);
    let silent: Vec<&String> = table.iter().filter(|line| line.contains("does not answer")).collect();
    assert_eq!(silent.len(), 1);
    assert!(
        silent[0].contains("here-1") && silent[0].ends_with(&format!("(process {hanging}, stopped)")),
        "{silent:?}"
    );

    // A user sees own mounts alone.
    let mut command = bench.command(Some((1, 0)), bench.at("hepfs"));
    let output = run_within(LONG, command.args(["status", "--json"]));
    let own: Value = serde_json::from_slice(&output.stdout).unwrap();
    let own = own["mounts"].as_array().unwrap();
    assert!(own.len() == 6 && own.iter().all(|entry| entry["uid"] == 1), "{own:#?}");
}

#[test]
fn a_mount_tells_what_it_serves_and_who_holds_it() {
    let bench = Bench::new();
    bench.mount(None, "mnt");
    let mountpoint = bench.at("mnt").to_str().unwrap().to_owned();
    let before = bench.table(&[]);
    assert!(before.len() == 1 && before[0].contains("run.h5") && before[0].contains("0 bytes"), "{before:?}");
    let mut open = File::open(bench.at("mnt/t/table.csv")).unwrap();
    let mut read = Vec::new();
    open.read_to_end(&mut read).unwrap();
    // The shell completes mount points.
    for command in ["status", "umount"] {
        let before = format!("hepfs {command} {}", bench.at("").display());
        let output = bench.hepfs(&["complete", "fish", "--", &before, "", ""]);
        assert_eq!(text(&output.stdout).lines().collect::<Vec<_>>(), [&mountpoint], "{output:?}");
    }
    // A second mount is another line.
    bench.mount(None, "other");
    let document = bench.status(&["-v", &mountpoint]);
    let mounts = document["mounts"].as_array().unwrap();
    assert_eq!(mounts.len(), 1, "{document:#}");
    let report = &mounts[0]["report"];
    assert_eq!(report["bytes_served"], read.len());
    assert_eq!(report["pid"], bench.daemon("mnt"));
    assert!(report["seconds_idle"].as_f64().unwrap() < 60.0);
    let of_kind =
        |kind: &str| report["requests"].as_array().unwrap().iter().find(|one| one["kind"] == kind).unwrap().clone();
    assert!(of_kind("open")["count"].as_u64().unwrap() >= 1 && of_kind("lookup")["count"].as_u64().unwrap() >= 2);
    let reads = of_kind("read");
    assert!(
        reads["count"].as_u64().unwrap() >= 1 && reads["median"].as_f64() <= reads["percentile_99"].as_f64(),
        "{reads}"
    );
    let holders = mounts[0]["holders"].as_array().unwrap();
    let held =
        holders.iter().find(|holder| holder["pid"] == std::process::id()).unwrap_or_else(|| panic!("{holders:?}"));
    assert_eq!(held["path"], format!("{mountpoint}/t/table.csv"));
    // As text.
    let output = bench.hepfs(&["status", "-v", &mountpoint]);
    let said = text(&output.stdout);
    for part in ["MOUNTED ON", "requests", "read ", "held by", "table.csv", " decoded; "] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("/other"), "{said}");
    drop(open);
    assert_eq!(bench.status(&["-v", &mountpoint])["mounts"][0]["holders"], Value::Array(Vec::new()));
}

#[test]
fn what_is_no_mount_of_hepfs_is_said() {
    let bench = Bench::new();
    for (path, words) in [
        ("/proc", "is proc, not hepfs"),
        ("/", "not hepfs"),
        (bench.at("").to_str().unwrap(), "nothing is mounted here"),
        ("/no such path", "No such file"),
    ] {
        let output = bench.hepfs(&["status", path]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(text(&output.stderr).contains(words) && output.stdout.is_empty(), "{output:?}");
    }
    assert_eq!(bench.hepfs(&["status", "--json", "--metrics"]).status.code(), Some(2));
}

#[test]
fn a_killed_daemon_leaves_a_line_and_no_socket() {
    let bench = Bench::new();
    bench.mount(None, "a b");
    let daemon = bench.daemon("a b");
    assert_eq!(bench.sockets().len(), 1);
    signal(daemon, libc::SIGKILL);
    until("it is gone", || !lives(daemon));
    let document = bench.status(&[]);
    assert_eq!(document["mounts"][0]["state"], "gone", "{document:#}");
    assert!(document["mounts"][0]["pid"].is_null());
    assert_eq!(bench.sockets(), [""; 0], "a stale socket stays");
    let table = bench.table(&[]);
    let path = bench.at("a b").display().to_string();
    assert!(
        table[0].contains("(daemon gone)") && table[0].ends_with(&format!("hepfs umount '{path}' clears it")),
        "{table:?}"
    );
    // The command that asks has its path among its arguments, and is not taken for the daemon.
    let said = text(&bench.hepfs(&["status", &path]).stdout);
    assert!(said.contains("(daemon gone)"), "{said}");
    let output = bench.hepfs(&["umount", &path]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(bench.table(&[]), [""; 0]);
}

#[test]
fn twenty_that_hang_take_one_second_together() {
    let bench = Bench::new();
    bench.mount(None, "mnt");
    let folder = bench.runtime().join("hepfs");
    // They accept, and never answer; the last takes no call.
    let listeners: Vec<UnixListener> =
        (0..20).map(|at| UnixListener::bind(folder.join(format!("{}--{at}", 900_000_000 + at))).unwrap()).collect();
    let full: Vec<Option<UnixStream>> = fill(&folder.join("900000019--19"));
    let started = Instant::now();
    let output = bench.hepfs(&["status", "--json"]);
    let took = started.elapsed();
    assert!((Duration::from_secs(1)..Duration::from_secs(5)).contains(&took), "{took:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let silent = document["commands"].as_array().unwrap().iter().filter(|entry| entry["state"] == "silent");
    assert_eq!(silent.filter(|entry| entry["pid"].as_u64() >= Some(900_000_000)).count(), 20);
    assert_eq!(bench.status(&[])["mounts"][0]["state"], "answers");
    drop((listeners, full));
    // Now they refuse, and are taken away.
    bench.status(&[]);
    assert_eq!(bench.sockets().len(), 1);
}

/// Fills the queue of a socket that accepts none.
fn fill(path: &Path) -> Vec<Option<UnixStream>> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
    let address = SocketAddrUnix::new(path).unwrap();
    let mut streams = Vec::new();
    loop {
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
        if connect(&socket, &address).is_err() {
            return streams;
        }
        streams.push(Some(UnixStream::from(socket)));
    }
}

#[test]
fn a_socket_that_lies_harms_nobody() {
    let bench = Bench::new();
    bench.mount(None, "mnt");
    let folder = bench.runtime().join("hepfs");
    let unmounted = bench.at("").display().to_string();
    let answers: [Vec<u8>; 4] = [
        b"no JSON".to_vec(),
        b"{\"mountpoint\": \"/evil\\u001b[2J\\nx\", \"seconds\": 1e308, \
            \"bytes_served\": 18446744073709551615, \"uid\": 12345, \"counters\": {\"errors\": 1}}"
            .to_vec(),
        vec![b'['; 8 << 20],
        // Wider than a width in a format may be, of a mount that is none.
        serde_json::to_vec(&serde_json::json!({"mountpoint": unmounted, "sources": ["x".repeat(70_000)]})).unwrap(),
    ];
    for (at, answer) in answers.into_iter().enumerate() {
        let listener = UnixListener::bind(folder.join(format!("{}--{at}", 900_000_100 + at))).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                use std::io::Write;
                stream.unwrap().write_all(&answer).ok();
            }
        });
    }
    let output = bench.hepfs(&["status"]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(said.contains(r"/evil\u{1b}[2J\nx") && !said.contains('\x1b'), "{said}");
    for process in [900_000_100, 900_000_102] {
        assert!(said.contains(&format!("(process {process})")), "{said}");
    }
    assert!(!said.contains("12345") && !said.contains(&"x".repeat(5_000)), "{said}");
    let output = bench.hepfs(&["status", &unmounted]);
    assert!(output.status.code() == Some(1) && text(&output.stderr).contains("nothing is mounted here"), "{output:?}");
    let metrics = text(&bench.hepfs(&["status", "--metrics"]).stdout);
    assert_eq!(metrics.matches("# TYPE hepfs_errors_total ").count(), 1, "{metrics}");
    assert!(metrics.contains("mount=\"/evil") && !metrics.contains('\x1b'), "{metrics}");
    // Others may not enter the folder; one that is open to others is not used.
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
    let said = text(&bench.hepfs(&["status"]).stdout);
    assert!(!said.contains("/evil"), "{said}");
    let line = said.lines().find(|line| line.contains(bench.folder.path().to_str().unwrap())).unwrap().to_owned();
    assert!(line.contains("does not answer (process "), "{line}");
}

#[test]
fn a_long_command_and_a_job_are_listed() {
    let bench = Bench::new();
    let mut run = bench.command(None, bench.at("hepfs"));
    run.args(["run", "--cache-folder", "none"]).arg(bench.at("run.h5")).args([
        "--",
        "sh",
        "-c",
        "cat \"$HEPFS_MOUNT/t/table.csv\"; exec sleep 1000",
    ]);
    let mut run = run.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(run.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("mass"), "{line}");
    // It writes more than a pipe takes, and nobody reads.
    fs::copy(data("hostile/columns_5000.h5"), bench.at("columns.h5")).unwrap();
    let mut info = bench.command(None, bench.at("hepfs"));
    let mut info = info.args(["info", "--all"]).arg(bench.at("columns.h5")).stdout(Stdio::piped()).spawn().unwrap();
    let job = run.id();
    let mut document = Value::Null;
    until("the command is listed", || {
        document = bench.status(&[]);
        !document["commands"].as_array().unwrap().is_empty()
    });
    let command = &document["commands"][0];
    assert_eq!((&command["pid"], &command["report"]["command"]), (&info.id().into(), &"info".into()), "{command:#}");
    assert!(command["report"]["seconds"].as_f64().unwrap() >= 1.0);
    let mount = document["mounts"].as_array().unwrap().iter().find(|entry| entry["report"]["job"] == job).unwrap();
    assert_eq!(mount["report"]["command"], "run");
    assert!(mount["report"]["bytes_served"].as_u64() > Some(0) && mount["namespace"].is_u64(), "{mount:#}");
    let said = text(&bench.hepfs(&["status"]).stdout);
    let line =
        said.lines().find(|line| line.starts_with(&format!("(job {job}, run)"))).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains("run.h5"), "{line}");
    assert!(said.contains(&format!("(process {}, info)", info.id())), "{said}");
    info.kill().unwrap();
    info.wait().unwrap();
    signal(run.id(), libc::SIGTERM);
    end_of(&mut run, LONG).unwrap();
}

#[test]
fn a_lost_runtime_folder_or_none_is_no_reason_to_fail() {
    let bench = Bench::new();
    // Neither can be used.
    let mut command = bench.command(None, bench.at("hepfs"));
    fs::write(bench.at("file"), "").unwrap();
    fs::create_dir(bench.at("mnt")).unwrap();
    command.env("XDG_RUNTIME_DIR", bench.at("file")).args(["mount", "--log-file", "/dev/null"]);
    let output = run_within(LONG, command.arg(bench.at("run.h5")).arg(bench.at("mnt")));
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let table = bench.table(&[]);
    assert!(table.len() == 1 && table[0].contains("run.h5"), "{table:?}");
    // The folder of another one goes, as at logout.
    bench.mount(None, "other");
    let folder = bench.runtime().join("hepfs");
    // The mount answers before its socket is there.
    let is_shown =
        |socket: std::io::Result<fs::DirEntry>| !socket.unwrap().file_name().as_encoded_bytes().starts_with(b".");
    until("the socket is there", || fs::read_dir(&folder).is_ok_and(|mut sockets| sockets.any(is_shown)));
    fs::remove_dir_all(&folder).unwrap();
    assert!(fs::read_to_string(bench.at("other/t/table.csv")).unwrap().starts_with("mass,"));
    let table = bench.table(&[]);
    let line = table.iter().find(|line| line.contains("/other ")).unwrap_or_else(|| panic!("{table:?}"));
    assert!(line.contains("run.h5") && line.contains("does not answer (process "), "{line}");
}

#[test]
fn watch_writes_anew_until_ctrl_c() {
    let bench = Bench::new();
    bench.mount(None, "mnt");
    let mut command = Command::new("env");
    command.arg("--default-signal=INT").arg(bench.at("hepfs")).args(["status", "--watch"]);
    command.env("XDG_RUNTIME_DIR", bench.runtime()).env("MARK", bench.folder.path());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let seen = lines.filter(|line| line.contains(bench.folder.path().to_str().unwrap())).take(2).count();
    assert_eq!(seen, 2);
    signal(child.id(), libc::SIGINT);
    // Or the closed output ends it.
    assert!(end_of(&mut child, LONG).is_some());
}

#[test]
fn metrics_are_counted_by_mount_and_kind() {
    let bench = Bench::new();
    bench.mount(None, "a\"b");
    let read = fs::read(bench.at("a\"b/t/table.csv")).unwrap();
    let output = bench.hepfs(&["status", "--metrics"]);
    let said = text(&output.stdout);
    let mount = bench.at("a\"b").display().to_string().replace('"', "\\\"");
    let value = |sample: &str| -> f64 {
        let line = said
            .lines()
            .find(|line| line.starts_with(&format!("{sample} ")))
            .unwrap_or_else(|| panic!("{sample}: {said}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert_eq!(value(&format!("hepfs_up{{mount=\"{mount}\"}}")), 1.0);
    assert_eq!(value(&format!("hepfs_served_bytes_total{{mount=\"{mount}\"}}")), read.len() as f64);
    assert!(value(&format!("hepfs_requests_total{{mount=\"{mount}\",kind=\"read\"}}")) >= 1.0);
    assert!(said.contains("# TYPE hepfs_requests_total counter\n") && said.contains("# HELP hepfs_requests_total "));
}

#[test]
fn umount_names_who_holds_the_mount() {
    let mut bench = Bench::new();
    bench.mount(None, "mnt");
    let path = bench.at("mnt").display().to_string();
    let open = File::open(bench.at("mnt/t/table.csv")).unwrap();
    let own = std::process::id();
    let output = bench.hepfs(&["umount", &path]);
    let said = text(&output.stderr);
    assert!(
        output.status.code() == Some(1)
            && said.contains("In use by ")
            && said.contains(&format!("({own}: {path}/t/table.csv)")),
        "{said}"
    );
    let mut inside = Command::new("sleep").arg("1000").current_dir(bench.at("mnt/t")).spawn().unwrap();
    drop(open);
    let said = text(&bench.hepfs(&["umount", &path]).stderr);
    assert!(said.contains(&format!("sleep ({}: its folder)", inside.id())), "{said}");
    inside.kill().unwrap();
    inside.wait().unwrap();

    // Detached, it goes on for an open file, and ends with it.
    let open = File::open(bench.at("mnt/t/table.csv")).unwrap();
    let daemon = bench.daemon("mnt");
    let output = bench.hepfs(&["umount", "--lazy", &path]);
    let said = text(&output.stderr);
    assert!(output.status.success() && said.contains(&format!("its process ({daemon}) goes on for ")), "{said}");
    assert!(said.contains(&format!("({own}: ")), "{said}");
    let table = bench.table(&[]);
    assert!(table.len() == 1 && table[0].starts_with(&format!("{path} (unmounted)")), "{table:?}");
    assert_eq!(bench.hepfs(&["status", &path]).status.code(), Some(1));
    drop(open);
    until("it ends", || !lives(daemon));
    if !is_root() {
        return eprintln!("skipped: other namespaces");
    }

    // Another namespace has it; --wait waits for that.
    bench.mount(None, "more");
    let path = bench.at("more").display().to_string();
    let daemon = bench.daemon("more");
    let namespace = bench.namespace();
    let its = bench.namespaces[namespace].id();
    let mut command = bench.command(None, bench.at("hepfs"));
    let mut waiting = command.args(["umount", "--wait", &path]).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut stderr = BufReader::new(waiting.stderr.take().unwrap());
    stderr.read_line(&mut said).unwrap();
    assert!(
        said.contains(&format!("its process ({daemon}) goes on for sleep ({its}: another mount namespace)")),
        "{said}"
    );
    assert!(said.contains("waiting for it to end"), "{said}");
    std::thread::sleep(Duration::from_millis(300));
    assert!(waiting.try_wait().unwrap().is_none() && lives(daemon));
    bench.namespaces[namespace].kill().unwrap();
    assert!(end_of(&mut waiting, LONG).unwrap().success());
    assert!(!lives(daemon));
}

#[test]
fn umount_ends_a_mount_whose_daemon_hangs() {
    let bench = Bench::new();
    bench.mount(None, "mnt");
    let daemon = bench.daemon("mnt");
    signal(daemon, libc::SIGSTOP);
    let path = bench.at("mnt").display().to_string();
    let started = Instant::now();
    let output = bench.hepfs(&["umount", &path]);
    signal(daemon, libc::SIGCONT);
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stderr).contains("has not ended; nothing is seen that holds it"), "{output:?}");
    assert!(started.elapsed() < Duration::from_secs(20));
    until("it ends", || !lives(daemon));
}
