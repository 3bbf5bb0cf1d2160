//! The process behind a mount: how it starts, why it refuses, and that nothing of it is left.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use hepfs::h5::create::{self, FillSetting, Storage};
use hepfs::h5::element::ElementNumber;

use crate::data;
use crate::support::{
    HEPFS, LONG, Mounted, Unmount, clear, copy_program, daemon_of, end_of, family, hepfs, is_mounted, lives, names,
    run, signal, start, until,
};
use crate::writer::Writer;

/// hepfs reads this file without a worker, unless told so.
const BY_WORKER: &[&str] = &["--decode=libhdf5"];

/// Has a worker started, and gives back all processes of a mount.
fn busy(mounted: &Mounted) -> Vec<u32> {
    assert!(mounted.text("t/table.csv").starts_with("mass,"));
    let processes = family(mounted.daemon());
    assert!(processes.len() > 1, "no worker: {processes:?}");
    processes
}

fn gone(processes: &[u32]) {
    until(&format!("{processes:?} end"), || !processes.iter().any(|process| lives(*process)));
}

#[test]
fn a_signal_unmounts_and_leaves_no_process() {
    for number in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let mounted = Mounted::new(&[&data("units.h5")], BY_WORKER);
        let processes = busy(&mounted);
        signal(processes[0], number);
        gone(&processes);
        assert!(!is_mounted(mounted.path()));
        assert_eq!(names(mounted.path()), [""; 0]);
    }
}

#[test]
fn a_signal_ends_also_a_mount_in_use() {
    let mounted = Mounted::new(&[&data("units.h5")], BY_WORKER);
    let processes = busy(&mounted);
    let open = File::open(mounted.join("t/table.csv")).unwrap();
    signal(processes[0], libc::SIGTERM);
    gone(&processes);
    assert!(!is_mounted(mounted.path()));
    drop(open);
}

#[test]
fn umount_ends_every_process() {
    let mounted = Mounted::new(&[&data("units.h5")], BY_WORKER);
    let processes = busy(&mounted);
    let output = hepfs(["umount".as_ref(), mounted.path().as_os_str()]);
    assert!(output.status.success() && output.stderr.is_empty() && output.stdout.is_empty(), "{output:?}");
    assert!(!is_mounted(mounted.path()));
    gone(&processes);
    assert_eq!(mounted.log(), "", "an ordinary life leaves no warning");
    let again = hepfs(["umount".as_ref(), mounted.path().as_os_str()]);
    refused(&again, &[&mounted.path().display().to_string(), "nothing is mounted here"]);
}

#[test]
fn umount_refuses_a_mount_in_use_unless_lazy() {
    let mounted = Mounted::new(&[&data("units.h5")], BY_WORKER);
    let processes = busy(&mounted);
    let open = File::open(mounted.join("t/table.csv")).unwrap();
    let output = hepfs(["umount".as_ref(), mounted.path().as_os_str()]);
    refused(&output, &["in use", "hepfs umount --lazy"]);
    let output = hepfs(["umount".as_ref(), "--lazy".as_ref(), mounted.path().as_os_str()]);
    assert!(output.status.success(), "{output:?}");
    assert!(!is_mounted(mounted.path()));
    drop(open);
    gone(&processes);
}

/// A mount in the foreground.
struct Foreground {
    child: Child,
    folder: tempfile::TempDir,
}

impl Foreground {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mountpoint = folder.path().join("mnt");
        fs::create_dir(&mountpoint).unwrap();
        let mut command = Command::new(HEPFS);
        command.args(["mount", "--foreground"]).arg(data("units.h5")).arg(&mountpoint);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains(&format!("mounted on {}", mountpoint.display())) && line.contains("Ctrl-C"), "{line:?}");
        Self { child, folder }
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        clear(&self.folder.path().join("mnt"));
    }
}

#[test]
fn ctrl_c_ends_a_mount_in_the_foreground() {
    let mut mount = Foreground::start();
    let mountpoint = mount.folder.path().join("mnt");
    assert!(fs::read_to_string(mountpoint.join("t/table.csv")).unwrap().starts_with("mass,"));
    let processes = family(mount.child.id());
    signal(mount.child.id(), libc::SIGINT);
    assert!(end_of(&mut mount.child, LONG).unwrap().success());
    gone(&processes);
    assert!(!is_mounted(&mountpoint));
}

#[test]
fn a_killed_daemon_takes_its_workers_along_and_leaves_a_mount_that_can_be_cleared() {
    let mounted = Mounted::new(&[&data("units.h5")], BY_WORKER);
    let processes = busy(&mounted);
    // The kernel keeps this, and goes on answering it for the dead.
    assert!(fs::metadata(mounted.path()).unwrap().is_dir());
    signal(processes[0], libc::SIGKILL);
    gone(&processes);
    assert!(fs::read_dir(mounted.path()).is_err());
    let output = hepfs(["umount".as_ref(), mounted.path().as_os_str()]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert!(!is_mounted(mounted.path()));
    let again = mount(&data("units.h5"), mounted.path());
    assert!(again.status.success(), "{again:?}");
    assert!(mounted.text("t/table.csv").starts_with("mass,"));
}

#[test]
fn a_mount_clears_what_a_killed_one_left() {
    let mounted = Mounted::new(&[&data("units.h5")], &[]);
    let kill = || {
        let daemon = mounted.daemon();
        signal(daemon, libc::SIGKILL);
        until("the daemon's end", || !lives(daemon));
        assert!(fs::read_dir(mounted.path()).is_err());
    };
    kill();
    let output = mount(&data("units.h5"), mounted.path());
    let said = String::from_utf8_lossy(&output.stderr);
    let expected = format!("hepfs: warning: {}: unmounted a hepfs that was killed\n", mounted.path().display());
    assert!(output.status.success() && said == expected, "{said}");
    assert!(mounted.text("t/table.csv").starts_with("mass,"));
    kill();
    let mut command = Command::new(HEPFS);
    command.args(["mount", "--foreground", "--cache-folder=none"]).arg(data("units.h5")).arg(mounted.path());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    assert_eq!(said.next().unwrap().unwrap() + "\n", expected);
    assert!(said.next().unwrap().unwrap().contains("mounted on"));
    assert!(mounted.text("t/table.csv").starts_with("mass,"));
    signal(child.id(), libc::SIGTERM);
    assert!(end_of(&mut child, LONG).unwrap().success());
}

/// A daemon that hangs is not gone.
#[test]
fn a_mount_clears_none_that_lives() {
    let mounted = Mounted::new(&[&data("units.h5")], &[]);
    let daemon = mounted.daemon();
    signal(daemon, libc::SIGSTOP);
    let again = mount(&data("units.h5"), mounted.path());
    signal(daemon, libc::SIGCONT);
    refused(&again, &["mounted here already"]);
    assert!(mounted.text("t/table.csv").starts_with("mass,"));
}

#[test]
fn a_worker_that_is_killed_is_replaced() {
    let mounted = Mounted::new(&[&data("filters.h5")], BY_WORKER);
    assert!(mounted.names("").len() > 1);
    for _ in 0..3 {
        let processes = family(mounted.daemon());
        processes[1..].iter().for_each(|worker| signal(*worker, libc::SIGKILL));
        gone(&processes[1..]);
        for name in mounted.names("").iter().filter(|name| *name != ".hepfs" && !name.contains('.')) {
            assert!(mounted.names(name).contains(&"metadata.json".to_owned()), "{name}");
        }
        assert!(lives(processes[0]));
    }
}

fn mount(source: &Path, mountpoint: &Path) -> Output {
    hepfs(["mount".as_ref(), source.as_os_str(), mountpoint.as_os_str()])
}

/// The program failed with one line on standard error, with all of these words.
fn refused(output: &Output, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("hepfs: ") && said.lines().count() == 1, "not one line: {said:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    for word in words {
        assert!(said.contains(word), "{said:?} does not say {word:?}");
    }
}

#[test]
fn a_second_mount_over_the_first_is_refused() {
    let mounted = Mounted::new(&[&data("units.h5")], &[]);
    let output = mount(&data("layouts.h5"), mounted.path());
    refused(&output, &[&mounted.path().display().to_string(), "mounted here already", "hepfs umount"]);
    assert!(mounted.text("t/table.csv").starts_with("mass,"));
}

#[test]
fn what_cannot_be_mounted_is_named_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mountpoint = folder.path().join("mnt");
    fs::create_dir(&mountpoint).unwrap();
    let empty = folder.path().join("an empty folder");
    fs::create_dir(&empty).unwrap();
    fs::write(empty.join("notes.txt"), "no HDF5 here").unwrap();
    let pipe = folder.path().join("pipe.h5");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let cases = [
        (folder.path().join("missing.h5"), "No such file"),
        (data("hostile/not_hdf5.h5"), "not an HDF5 file"),
        (data("hostile/empty.h5"), "empty"),
        (data("hostile/truncated.h5"), "truncated"),
        (data("hostile/truncated_end.h5"), "truncated"),
        (data("hostile/truncated_superblock.h5"), "cannot be read as HDF5"),
        (data("hostile/signature_only.h5"), "cannot be read as HDF5"),
        (data("hostile/superblock_nonsense.h5"), "superblock version"),
        (data("hostile/zeroed_middle.h5"), "cannot be read as HDF5"),
        (data("hostile/root_unlistable.h5"), "cannot be read as HDF5"),
        (empty, "no HDF5 file"),
        (pipe, "not a regular file"),
        (folder.path().join("new\n\x1b[31mname.h5"), "No such file"),
    ];
    for (source, reason) in cases {
        let name = source.file_name().unwrap().to_string_lossy().replace('\n', "\\n").replace('\x1b', "\\u{1b}");
        for foreground in [false, true] {
            let mut command: Vec<&std::ffi::OsStr> = vec!["mount".as_ref(), source.as_os_str(), mountpoint.as_os_str()];
            if foreground {
                command.push("--foreground".as_ref());
            }
            refused(&hepfs(command), &[&name, reason]);
            assert!(!is_mounted(&mountpoint), "{name}");
        }
        if name != "an empty folder" {
            refused(&hepfs(["info".as_ref(), source.as_os_str()]), &[&name, reason]);
            refused(&hepfs(["ls".as_ref(), source.as_os_str()]), &[&name, reason]);
        }
    }
    let good = data("units.h5");
    let nowhere = folder.path().join("nowhere");
    refused(&mount(&good, &nowhere), &[&nowhere.display().to_string(), "No such file"]);
    refused(&mount(&good, &good), &["not a directory"]);
    let plugins = format!("--plugins={}", nowhere.display());
    let output = hepfs(["mount".as_ref(), plugins.as_ref(), good.as_os_str(), mountpoint.as_os_str()]);
    refused(&output, &["--plugins", &nowhere.display().to_string()]);
}

/// A shell in a mount namespace without /dev/fuse; `$0` is the program, `$1` a folder.
fn without_fuse(script: &str, folder: &Path) -> Output {
    let hide = "set -e; mkdir \"$1/dev\"; mount --rbind /dev \"$1/dev\"; mount -t tmpfs toy /dev; touch /dev/null; \
                mount --bind \"$1/dev/null\" /dev/null; set +e; cd \"$1\"; ";
    let root = rustix::process::geteuid().is_root();
    let arguments = ["--mount", "--propagation", "private"].into_iter().chain((!root).then_some("--map-root-user"));
    let script = format!("{hide}{script}");
    let arguments = arguments.chain(["sh", "-c", &script, HEPFS]).map(std::ffi::OsStr::new);
    run("unshare", arguments.chain([folder.as_os_str()]))
}

#[test]
fn where_nothing_can_be_mounted_it_is_said_what_needs_no_mount() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    if without_fuse("exit 7", at).status.code() != Some(7) {
        assert!(!rustix::process::geteuid().is_root());
        // Some systems let ordinary users hide nothing.
        return;
    }
    fs::create_dir(at.join("mnt")).unwrap();
    for name in ["run.h5", "it's a run.h5"] {
        fs::copy(data("units.h5"), at.join(name)).unwrap();
    }
    for (name, word) in [("run.h5", "run.h5"), ("it's a run.h5", "it'\\''s a run.h5'")] {
        fs::remove_dir(at.join("dev")).ok();
        let output = without_fuse(&format!("\"$0\" mount \"{name}\" mnt"), at);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        refused(&output, &["/dev/fuse does not exist", "hepfs info ", word, "query, export and cat"]);
        // The line can be typed.
        let line = said.split('`').find(|part| part.starts_with("hepfs info ")).unwrap();
        let line = line.replacen("hepfs", HEPFS, 1);
        let output = run("sh", ["-c", &line]);
        assert!(output.status.success() && output.stdout.starts_with("group /\n└─ table t: ".as_bytes()), "{output:?}");
    }
    // A mount point that is none is another matter.
    fs::remove_dir(at.join("dev")).unwrap();
    let output = without_fuse("\"$0\" mount run.h5 nowhere", at);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("hepfs info"), "{output:?}");
    fs::remove_dir(at.join("dev")).unwrap();
    let output = without_fuse("\"$0\" demo sample --rows=20000", at);
    let [said, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success() && errors.contains("/dev/fuse does not exist"), "{said}{errors}");
    for words in ["table run_042: 20 000 rows", "\nevent_id,", " MeV\n", "0000000 ", "The sample stays: hepfs info "] {
        assert!(said.contains(words), "no {words:?}: {said}{errors}");
    }
}

/// Mounts from a shell with a limit; what the program wrote.
fn mount_within(limit: &str, source: &Path, mountpoint: &Path) -> Output {
    let line = format!("ulimit {limit} && exec \"$@\"");
    let arguments = ["-c", &line, "sh", HEPFS, "mount", "--cache-folder", "none"].map(std::ffi::OsStr::new);
    run("sh", arguments.into_iter().chain([source.as_os_str(), mountpoint.as_os_str()]))
}

/// A folder for a mount point, and one with copies of a file.
fn copies(count: usize) -> (tempfile::TempDir, [PathBuf; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let places = ["mnt", "files"].map(|name| folder.path().join(name));
    places.iter().for_each(|path| fs::create_dir(path).unwrap());
    for at in 0..count {
        fs::copy(data("units.h5"), places[1].join(format!("{at}.h5"))).unwrap();
    }
    (folder, places)
}

/// Of more files than descriptors some are read, and of the others it is said why they are not.
#[test]
fn few_descriptors_are_enough_or_named() {
    let (_folder, [mountpoint, files]) = copies(80);
    let _unmount = Unmount(mountpoint.clone());
    let one = mount_within("-n 64", &data("units.h5"), &mountpoint);
    assert!(one.status.success(), "{}", String::from_utf8_lossy(&one.stderr));
    let expected = fs::read(mountpoint.join("t/table.csv")).unwrap();
    assert!(expected.starts_with(b"mass,"));
    clear(&mountpoint);
    assert!(mount_within("-n 64", &files, &mountpoint).status.success());
    // A survey closes what it has seen.
    let parts = fs::read_dir(mountpoint.join(".datasets/t")).unwrap();
    assert_eq!(parts.count(), 80);
    let table = |at: usize| fs::read(mountpoint.join(format!("{at}.h5/t/table.csv")));
    let (read, failed): (Vec<_>, Vec<_>) = (0..80).map(table).partition(Result::is_ok);
    assert!(read.len() >= 20 && read.into_iter().all(|table| table.unwrap() == expected));
    let errors = fs::read_to_string(mountpoint.join(".hepfs/errors")).unwrap();
    assert!(failed.is_empty() || errors.contains("`ulimit -n` is too small"), "{errors}");
}

/// Files that were looked at close before descriptors run out: the kernel is asked to forget their names.
#[test]
fn more_files_than_descriptors_are_read_one_after_the_other() {
    let (_folder, [mountpoint, files]) = copies(400);
    let _unmount = Unmount(mountpoint.clone());
    assert!(mount_within("-n 256", &files, &mountpoint).status.success());
    let parts: Vec<_> =
        fs::read_dir(mountpoint.join(".datasets/t")).unwrap().map(|part| part.unwrap().path()).collect();
    assert_eq!(parts.len(), 400);
    // As a shell looks for `*/t/table.parquet`.
    assert!((0..400).all(|at| mountpoint.join(format!("{at}.h5/t/table.parquet")).exists()));
    let tables = (0..400).map(|at| mountpoint.join(format!("{at}.h5/t/table.parquet")));
    for table in tables.chain(parts.iter().map(|part| part.join("part-0.parquet"))) {
        assert!(fs::read(&table).unwrap_or_else(|error| panic!("{}: {error}", table.display())).ends_with(b"PAR1"));
    }
    assert_eq!(fs::read_to_string(mountpoint.join(".hepfs/errors")).unwrap(), "");
}

/// An address space of 3 GB is enough, and of one that has no room for threads it is said how much there must be.
#[test]
fn a_small_address_space_is_enough_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let mountpoint = folder.path().join("mnt");
    let _unmount = Unmount(mountpoint.clone());
    fs::create_dir(&mountpoint).unwrap();
    let expected = Mounted::new(&[&data("units.h5")], &[]).read("t/table.csv");
    let output = mount_within("-v 3000000", &data("units.h5"), &mountpoint);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read(mountpoint.join("t/table.csv")).unwrap(), expected);
    clear(&mountpoint);
    for kib in [300_000, 150_000] {
        refused(&mount_within(&format!("-v {kib}"), &data("units.h5"), &mountpoint), &["`ulimit -v`", "too small"]);
        assert!(!is_mounted(&mountpoint));
    }
}

#[test]
fn a_file_that_somebody_writes_without_swmr_is_refused_until_it_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("run.h5");
    let writer = Writer::create(&source);
    writer.table("t").column("x", &[1, 2, 3], 3);
    writer.flush();
    let (_mount, output) = Mounted::try_new(&[&source], &[]);
    refused(&output, &["run.h5", "open for writing"]);
    // Reading takes no lock that would keep the writer from its work.
    writer.table("u").column("y", &[4], 1);
    writer.close();
    let mounted = Mounted::new(&[&source], &[]);
    assert_eq!(mounted.text("u/table.csv"), "y\n4\n");
}

/// An update of the program replaces the file that a mount was started from.
#[test]
fn workers_are_of_the_program_that_mounted() {
    let folder = tempfile::tempdir().unwrap();
    let (files, program) = (folder.path().join("files"), folder.path().join("hepfs"));
    let mountpoint = folder.path().join("mnt");
    [&files, &mountpoint].iter().for_each(|folder| fs::create_dir(folder).unwrap());
    copy_program(&program);
    for name in ["a.h5", "b.h5"] {
        fs::copy(data("units.h5"), files.join(name)).unwrap();
    }
    let _unmount = Unmount(mountpoint.clone());
    let mount = ["mount", "--foreground", "--cache-folder=none"].map(OsStr::new);
    let mut child =
        start(program.to_str().unwrap(), mount.into_iter().chain([files.as_os_str(), mountpoint.as_os_str()]));
    until("the mount", || is_mounted(&mountpoint));
    let table = |name: &str| fs::read_to_string(mountpoint.join(name).join("t/table.csv"));
    fs::remove_file(&program).unwrap();
    assert!(table("a.h5").unwrap().starts_with("mass,"));
    fs::write(&program, "another version").unwrap();
    assert_eq!(table("b.h5").unwrap(), table("a.h5").unwrap());
    signal(child.id(), libc::SIGTERM);
    assert!(end_of(&mut child, LONG).is_some());
}

/// A file whose root takes a second and more to list.
fn long_to_list(folder: &Path) -> PathBuf {
    let path = folder.join("long.h5");
    create::file::<create::Error>(&path, |root| {
        root.dataset("data", &f64::ELEMENT, &Storage::contiguous(&[1]), &FillSetting::Unset)?;
        (0..60_000).try_for_each(|at| root.soft_link(&format!("link{at:05}"), "/data"))
    })
    .unwrap();
    path
}

/// Waits for the processes below this one, of which the last is a worker, and stops that: it hangs from now on.
fn with_hung_worker(process: u32, count: usize) -> Vec<u32> {
    // The process that workers are copies of has their command line.
    let is_worker =
        |id: &u32| fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.contains("\0hdf5-worker\0"));
    until("a worker", || family(process).get(count - 1).is_some_and(is_worker));
    // It asks the kernel to end with its parent when it begins.
    std::thread::sleep(Duration::from_millis(200));
    let processes = family(process);
    processes.iter().filter(|id| is_worker(id)).for_each(|worker| signal(*worker, libc::SIGSTOP));
    processes
}

/// Less than a hung request takes to be given up.
const SOON: Duration = Duration::from_secs(2);

#[test]
fn a_signal_ends_a_mount_that_does_not_answer_yet() {
    let folder = tempfile::tempdir().unwrap();
    let (source, mountpoint) = (long_to_list(folder.path()), folder.path().join("mnt"));
    fs::create_dir(&mountpoint).unwrap();
    let _unmount = Unmount(mountpoint.clone());
    for number in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let places = [source.as_os_str(), mountpoint.as_os_str()];
        let arguments = ["mount", "--foreground", "--cache-folder=none"].map(OsStr::new);
        let mut child = start(HEPFS, arguments.into_iter().chain(places));
        let processes = with_hung_worker(child.id(), 3);
        let began = Instant::now();
        signal(child.id(), number);
        assert!(!end_of(&mut child, LONG).expect("still lists").success());
        gone(&processes);
        assert!(began.elapsed() < SOON && !is_mounted(&mountpoint), "signal {number}: {:?}", began.elapsed());
    }
}

#[test]
fn a_background_process_ends_with_whoever_waits_for_its_mount() {
    let folder = tempfile::tempdir().unwrap();
    let (source, mountpoint) = (long_to_list(folder.path()), folder.path().join("mnt"));
    fs::create_dir(&mountpoint).unwrap();
    let _unmount = Unmount(mountpoint.clone());
    let log = format!("--log-file={}", folder.path().join("log").display());
    for number in [libc::SIGINT, libc::SIGKILL] {
        let places = [source.as_os_str(), mountpoint.as_os_str()];
        let arguments = ["mount", "--cache-folder=none", &log].map(OsStr::new);
        let mut child = start(HEPFS, arguments.into_iter().chain(places));
        let processes = with_hung_worker(child.id(), 4);
        let began = Instant::now();
        signal(child.id(), number);
        assert!(!end_of(&mut child, LONG).unwrap().success());
        gone(&processes);
        assert!(began.elapsed() < SOON && !is_mounted(&mountpoint), "signal {number}: {:?}", began.elapsed());
    }
}

/// Ctrl-C while a mount is being made leaves none.
#[test]
fn an_interrupted_mount_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mountpoint = folder.path().join("mnt");
    fs::create_dir(&mountpoint).unwrap();
    let _unmount = Unmount(mountpoint.clone());
    for pause in [0, 20, 40, 80, 160, 320] {
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", HEPFS, "mount", "--cache-folder=none"]);
        let mut child = command.arg(data("units.h5")).arg(&mountpoint).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(pause));
        signal(child.id(), libc::SIGINT);
        let status = end_of(&mut child, LONG).unwrap();
        if status.success() {
            assert!(fs::read_dir(&mountpoint).unwrap().count() > 0);
            assert!(hepfs(["umount".as_ref(), mountpoint.as_os_str()]).status.success());
        }
        until("no process", || daemon_of(&mountpoint).is_none());
        assert!(!is_mounted(&mountpoint), "after {pause} ms: {status}");
    }
}

#[test]
fn a_daemon_whose_mount_is_gone_waits_for_no_worker() {
    let mounted = Mounted::new(&[&data("h5_basic.h5")], &[]);
    assert_eq!(mounted.read("chunked.raw").len(), 140);
    assert_eq!(mounted.read("contiguous.raw").len(), 48);
    let processes = with_hung_worker(mounted.daemon(), 3);
    // Elements in compact storage are read by the worker.
    let mut readers = ["compact.raw", "compact.npy"].map(|name| start("cat", [mounted.join(name)]));
    std::thread::sleep(Duration::from_millis(300));
    for reader in &mut readers {
        assert_eq!(reader.try_wait().unwrap(), None, "the worker answers");
        signal(reader.id(), libc::SIGKILL);
        assert!(end_of(reader, LONG).is_some());
    }
    let began = Instant::now();
    assert!(hepfs(["umount".as_ref(), "--lazy".as_ref(), mounted.path().as_os_str()]).status.success());
    gone(&processes);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn a_mount_that_would_hide_its_source_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("run.h5");
    fs::copy(data("units.h5"), &source).unwrap();
    refused(&mount(&source, folder.path()), &["run.h5", "would be hidden"]);
}

#[test]
fn a_mount_that_was_ended_leaves_the_next_one_alone() {
    let first = Mounted::new(&[&data("units.h5")], &[]);
    let daemon = first.daemon();
    // It learns of its end only when another hepfs is mounted in its place.
    signal(daemon, libc::SIGSTOP);
    assert!(hepfs(["umount".as_ref(), first.path().as_os_str()]).status.success());
    let next = hepfs([
        "mount".as_ref(),
        "--cache-folder=none".as_ref(),
        data("units.h5").as_os_str(),
        first.path().as_os_str(),
    ]);
    signal(daemon, libc::SIGCONT);
    assert!(next.status.success(), "{}", String::from_utf8_lossy(&next.stderr));
    until("the first daemon's end", || !lives(daemon));
    assert!(first.join(".hepfs/stats").exists(), "the next mount is gone");
}

/// A folder in which nobody, not even root, can make anything.
const UNMAKEABLE: &str = "/proc/hepfs";

#[test]
fn warnings_of_a_background_mount_reach_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let mountpoint = folder.path().join("mnt");
    fs::create_dir(&mountpoint).unwrap();
    fs::write(mountpoint.join("hidden"), "").unwrap();
    let _unmount = Unmount(mountpoint.clone());
    let run = |arguments: &[&str]| {
        let source = data("units.h5");
        let places = [source.as_os_str(), mountpoint.as_os_str()];
        let output = hepfs(["mount"].iter().chain(arguments).map(AsRef::as_ref).chain(places));
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    // Without a log and without a cache folder there is a mount all the same.
    let (mounted, said) = run(&["--log-file", &format!("{UNMAKEABLE}/log"), "--cache-folder", UNMAKEABLE]);
    assert!(mounted && is_mounted(&mountpoint), "{said}");
    assert!(fs::read_to_string(mountpoint.join("t/table.csv")).unwrap().starts_with("mass,"));
    let lines: Vec<&str> = said.lines().map(|line| line.strip_prefix("hepfs: warning: ").expect(line)).collect();
    for words in [["log file", "goes on without a log"], ["cache folder", UNMAKEABLE], ["mnt", "is not empty"]] {
        let count = lines.iter().filter(|line| words.iter().all(|word| line.contains(word))).count();
        assert_eq!(count, 1, "{words:?}: {said}");
    }
    assert_eq!(lines.len(), 3, "{said}");
    // Who may write to it may put entries there.
    assert!(hepfs(["umount".as_ref(), mountpoint.as_os_str()]).status.success());
    let cache = folder.path().join("cache");
    fs::create_dir(&cache).unwrap();
    fs::set_permissions(&cache, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let log = folder.path().join("log").display().to_string();
    let (mounted, said) = run(&["--log-file", &log, "--cache-folder", cache.to_str().unwrap()]);
    assert!(mounted && said.contains("others may write to it") && !said.contains("log file"), "{said}");
    assert!(fs::read_to_string(log).unwrap().contains("others may write to it"));
}

#[test]
fn a_mount_says_what_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let [sample, mountpoint] = ["sample.h5", "mnt"].map(|name| folder.path().join(name));
    fs::copy(data("units.h5"), &sample).unwrap();
    let shown = sample.display().to_string();
    refused(&hepfs(["mount", &shown]), &["SOURCE and MOUNTPOINT"]);
    refused(&mount(&sample, &mountpoint), &["No such file or directory", &format!("`mkdir {}`", mountpoint.display())]);
    fs::create_dir(&mountpoint).unwrap();
    refused(&mount(format!("{shown}:t").as_ref(), &mountpoint), &["whole files", &shown]);
    refused(&mount(&folder.path().join("smaple.h5"), &mountpoint), &["did you mean \"sample.h5\"?"]);
    // One that is no mount keeps no other from its end.
    let mounted = Mounted::new(&[&sample], &[]);
    refused(
        &hepfs(["umount".as_ref(), mountpoint.as_os_str(), mounted.path().as_os_str()]),
        &["nothing is mounted here"],
    );
    assert!(!is_mounted(mounted.path()));
}

#[test]
fn a_second_demo_in_a_folder_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let demo = || hepfs(["demo".as_ref(), folder.path().as_os_str(), "--rows=1000".as_ref()]);
    let first = demo();
    assert!(first.status.success() && first.stderr.is_empty(), "{first:?}");
    let said = String::from_utf8(first.stdout).unwrap();
    for step in ["duckdb.sql(", "mnt/run_042/where/energy:gt:", "values.txt", "hepfs query ", ".datasets/run_042"] {
        assert!(said.contains(step), "{step}: {said}");
    }
    for found in ["\nwhere/label:eq:electron\n", "\nfile,event_id,energy\n", "\nevent_id,energy,label\n"] {
        assert!(said.contains(found), "{found}: {said}");
    }
    let [sample, mountpoint] = ["sample.h5", "mnt"].map(|name| folder.path().join(name));
    let mount = format!("hepfs mount {} {}", sample.display(), mountpoint.display());
    refused(&demo(), &["an earlier demo", &mount]);
    fs::remove_file(sample).unwrap();
    refused(&demo(), &["new or empty"]);
}

/// The system may end any process where memory is short.
#[test]
fn workers_are_copies_of_a_process_that_may_be_lost() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.h5", "b.h5"] {
        fs::copy(data("units.h5"), folder.path().join(name)).unwrap();
    }
    let mounted = Mounted::new(&[folder.path()], &["--cache-folder=none", "--decode=libhdf5"]);
    mounted.names("a.h5");
    let processes = family(mounted.daemon());
    // The daemon, the process that is copied, its copy.
    assert_eq!(processes.len(), 3);
    let copied = processes.iter().filter(|id| **id != mounted.daemon()).min().unwrap();
    signal(*copied, libc::SIGKILL);
    assert_eq!(mounted.names("b.h5"), mounted.names("a.h5"));
    assert_eq!(mounted.text(".hepfs/errors"), "");
}
