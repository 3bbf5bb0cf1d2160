//! Mounting and its end: signals, `umount`, a killed daemon, ordinary users.
//!
//! A daemon is this test binary, started again with `HEPFS_TOY` saying what to be.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hepfs::fs::Watcher;
use hepfs::fs::mount::{Mount, MountEnd, MountError, MountOptions, StopSignals, unmount};
use hepfs::fs::watch::Watch;

use crate::mounted::{Mounted, clear, is_mounted};
use crate::programs::{LONG, end_of, must, run, signal, until};
use crate::toy::{Manner, directory, file, pattern};

const ROLE: &str = "HEPFS_TOY";

/// A daemon that mounts a toy tree until it is told to stop. No test by itself.
#[test]
#[ignore = "started by other tests"]
fn toy_daemon() {
    let Some(mountpoint) = std::env::var_os(ROLE) else { return };
    let stop = StopSignals::catch().unwrap();
    let root = directory([("f", file("abc", Manner::Plain)), ("big", file(pattern(1 << 20), Manner::Bound))]);
    let mount = Mount::new(root, Path::new(&mountpoint), &MountOptions::default()).unwrap();
    println!("\nmounted");
    let ended = mount.serve_until(&stop, || {}).unwrap();
    println!("\nended {ended:?}");
}

struct Daemon {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    folder: tempfile::TempDir,
}

impl Daemon {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mountpoint = folder.path().join("mnt");
        fs::create_dir(&mountpoint).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "daemon::toy_daemon"])
            .env(ROLE, &mountpoint)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut daemon = Self { child, output, folder };
        daemon.expect("mounted");
        daemon
    }

    fn expect(&mut self, line: &str) {
        let mut seen = String::new();
        loop {
            let start = seen.len();
            assert_ne!(self.output.read_line(&mut seen).unwrap(), 0, "no {line:?} in {seen:?}");
            if seen[start..].trim_end() == line {
                return;
            }
        }
    }

    fn mountpoint(&self) -> std::path::PathBuf {
        self.folder.path().join("mnt")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        clear(&self.mountpoint());
    }
}

/// Unmounts what this test no longer uses. Another test may be starting a program at that moment, which holds a file of
/// this one until it runs.
fn unmount_unused(mountpoint: &Path) {
    until("the mount is in use", || match unmount(mountpoint, false) {
        Ok(()) => true,
        Err(MountError::Busy(_)) => false,
        Err(error) => panic!("{error}"),
    });
}

#[test]
fn a_signal_unmounts_and_ends_the_process() {
    for number in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let mut daemon = Daemon::start();
        assert_eq!(fs::read(daemon.mountpoint().join("f")).unwrap(), b"abc");
        signal(daemon.child.id(), number);
        daemon.expect("ended Unmounted");
        assert!(end_of(&mut daemon.child, LONG).unwrap().success());
        assert!(!is_mounted(&daemon.mountpoint()));
        assert_eq!(fs::read_dir(daemon.mountpoint()).unwrap().count(), 0);
    }
}

#[test]
fn unmounted_from_outside_the_process_ends() {
    for by_helper in [false, true] {
        let mut daemon = Daemon::start();
        let mountpoint = daemon.mountpoint();
        assert_eq!(fs::read(mountpoint.join("f")).unwrap(), b"abc");
        if by_helper {
            let unmounts = || run("fusermount3", ["-u".as_ref(), mountpoint.as_os_str()]).status.success();
            until("the mount is in use", unmounts);
        } else {
            unmount_unused(&mountpoint);
        }
        daemon.expect("ended Outside");
        assert!(end_of(&mut daemon.child, LONG).unwrap().success());
    }
}

#[test]
fn a_busy_mount_says_so_unless_detached() {
    let mut daemon = Daemon::start();
    let mountpoint = daemon.mountpoint();
    let held = fs::File::open(mountpoint.join("f")).unwrap();
    assert!(matches!(unmount(&mountpoint, false), Err(MountError::Busy(_))));
    assert!(is_mounted(&mountpoint));
    unmount(&mountpoint, true).unwrap();
    assert!(!is_mounted(&mountpoint));
    drop(held);
    daemon.expect("ended Outside");
}

#[test]
fn a_signal_ends_also_a_daemon_in_use() {
    let mut daemon = Daemon::start();
    let held = fs::File::open(daemon.mountpoint().join("f")).unwrap();
    signal(daemon.child.id(), libc::SIGTERM);
    daemon.expect("ended Detached");
    assert!(end_of(&mut daemon.child, LONG).unwrap().success());
    assert!(!is_mounted(&daemon.mountpoint()));
    drop(held);
}

#[test]
fn a_killed_daemon_leaves_a_mount_that_the_next_one_clears() {
    let mut daemon = Daemon::start();
    let mountpoint = daemon.mountpoint();
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    assert_eq!(fs::metadata(&mountpoint).unwrap_err().raw_os_error(), Some(libc::ENOTCONN));
    let root = directory([("f", file("abc", Manner::Plain))]);
    let mount = Mount::new(root, &mountpoint, &MountOptions::default()).unwrap();
    assert_eq!(fs::read(mountpoint.join("f")).unwrap(), b"abc");
    assert_eq!(mount.unmount().unwrap(), MountEnd::Unmounted);
    assert!(matches!(unmount(&mountpoint, false), Err(MountError::NotMounted(_))));
}

#[test]
fn no_second_mount_over_the_first() {
    let mounted = Mounted::new(directory([("f", file("abc", Manner::Plain))]));
    let refused = Mount::new(directory::<&str>([]), &mounted.root(), &MountOptions::default()).err().unwrap();
    assert!(matches!(refused, MountError::AlreadyMounted(_)), "{refused}");
    assert_eq!(fs::read(mounted.path("f")).unwrap(), b"abc");
}

#[test]
fn dropping_a_mount_unmounts_it() {
    let mut mounted = Mounted::new(directory([("f", file("abc", Manner::Plain))]));
    assert!(is_mounted(&mounted.root()));
    drop(mounted.take());
    assert!(!is_mounted(&mounted.root()));
}

#[test]
fn root_raises_the_read_ahead() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mounted = Mounted::new(directory([("f", file("abc", Manner::Plain))]));
    let (major, minor) = mounted.mount().device().unwrap();
    let setting = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
    if Path::new(&setting).exists() {
        assert_eq!(fs::read_to_string(setting).unwrap(), "256\n");
    }
}

/// What an ordinary user does; started as one by the test below.
#[test]
#[ignore = "started by other tests"]
fn toy_user() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    assert!(!rustix::process::geteuid().is_root());
    let bytes = pattern(2_000_003);
    let tree = || directory([("f", file("abc", Manner::Plain)), ("big", file(bytes.clone(), Manner::Bound))]);
    let mut mounted = Mounted::new(tree());
    let root = mounted.root();
    assert!(fs::read(mounted.path("big")).unwrap() == bytes);
    assert_eq!(must("tail", ["-c".into(), "3".into(), mounted.path("f")]), b"abc");
    assert!(matches!(unmount(Path::new("/proc"), false), Err(MountError::NotOurs { .. })));
    // In use: refused, then detached.
    let held = fs::File::open(mounted.path("f")).unwrap();
    assert!(matches!(unmount(&root, false), Err(MountError::Busy(_))));
    assert_eq!(mounted.take().unmount().unwrap(), MountEnd::Detached);
    drop(held);
    assert!(!is_mounted(&root));
    // Not in use.
    let mut mounted = Mounted::new(tree());
    assert_eq!(fs::read(mounted.path("f")).unwrap(), b"abc");
    assert_eq!(mounted.take().unmount().unwrap(), MountEnd::Unmounted);
    // From outside, by the helper.
    let mut mounted = Mounted::new(tree());
    assert_eq!(fs::read(mounted.path("f")).unwrap(), b"abc");
    unmount_unused(&mounted.root());
    assert_eq!(mounted.take().wait(), MountEnd::Outside);
    // --allow-other needs the administrator's leave.
    let folder = tempfile::tempdir().unwrap();
    let options = MountOptions { allow_other: true, ..MountOptions::default() };
    match Mount::new(tree(), folder.path(), &options) {
        Err(error) => assert!(matches!(error, MountError::AllowOtherRefused), "{error}"),
        Ok(mount) => drop(mount),
    }
    // The daemon of an ordinary user.
    let mut daemon = Daemon::start();
    assert_eq!(fs::read(daemon.mountpoint().join("f")).unwrap(), b"abc");
    signal(daemon.child.id(), libc::SIGTERM);
    daemon.expect("ended Unmounted");
    assert!(end_of(&mut daemon.child, LONG).unwrap().success());
    let mut daemon = Daemon::start();
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    let mount = Mount::new(tree(), &daemon.mountpoint(), &MountOptions::default()).unwrap();
    assert_eq!(fs::read(daemon.mountpoint().join("f")).unwrap(), b"abc");
    assert_eq!(mount.unmount().unwrap(), MountEnd::Unmounted);
    println!("\nuser done");
}

/// Runs `toy_user` as "nobody", in a mount namespace where /dev/fuse is open to all, as it is on an ordinary system.
#[test]
fn an_ordinary_user_mounts_through_the_helper() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    // The build folder may be closed to other users.
    let binary = folder.path().join("toy");
    fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    fs::set_permissions(&binary, PermissionsExt::from_mode(0o755)).unwrap();
    let test = "\"$0\" --ignored --exact --nocapture daemon::toy_user";
    let script = if rustix::process::geteuid().is_root() {
        format!(
            "set -e; mkdir \"$1/dev\"; mount -t tmpfs -o mode=755 toy \"$1/dev\"; mknod -m 666 \"$1/dev/fuse\" c 10 229; \
             mount --bind \"$1/dev/fuse\" /dev/fuse; export TMPDIR=\"$1\"; \
             exec setpriv --reuid 65534 --regid 65534 --clear-groups {test}"
        )
    } else {
        format!("exec {test}")
    };
    let mut command = Command::new(if rustix::process::geteuid().is_root() { "unshare" } else { "env" });
    if rustix::process::geteuid().is_root() {
        command.args(["--mount", "--propagation", "private"]);
    }
    let output =
        command.args(["sh", "-c", &script]).arg(&binary).arg(folder.path()).env(ROLE, "user").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("\nuser done\n"), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_watch_tells_of_rewrites_and_replacements() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    fs::write(&path, "1").unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let watch = Watch::new(move |path: &Path| drop(sender.send(path.to_owned()))).unwrap();
    watch.add_file(&path).unwrap();
    watch.add_folder(folder.path()).unwrap();
    let told = |what: &str, expected: &Path| {
        loop {
            let seen = receiver.recv_timeout(LONG).unwrap_or_else(|_| panic!("not told: {what}"));
            if seen == expected {
                break;
            }
        }
        // One change may be told twice; the next question is about the next change.
        while receiver.recv_timeout(Duration::from_millis(300)).is_ok() {}
    };
    for round in 0..3 {
        fs::write(&path, "22").unwrap();
        told("rewritten in place", &path);
        let other = folder.path().join("other");
        fs::write(&other, format!("round {round}")).unwrap();
        told("a name came", folder.path());
        fs::rename(&other, &path).unwrap();
        told("replaced", &path);
    }
    fs::remove_file(&path).unwrap();
    told("deleted", &path);
    fs::write(&path, "4").unwrap();
    told("made again", &path);
    fs::write(&path, "5").unwrap();
    told("rewritten after it was made again", &path);
    drop(watch);
    until("the watch's thread ends", || receiver.try_recv() == Err(std::sync::mpsc::TryRecvError::Disconnected));
}

#[test]
fn reading_a_watched_file_is_no_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    fs::write(&path, "1").unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let watch = Watch::new(move |path: &Path| drop(sender.send(path.to_owned()))).unwrap();
    watch.add_file(&path).unwrap();
    for _ in 0..10 {
        assert_eq!(run("cat", [&path]).stdout, b"1");
    }
    fs::write(folder.path().join("neighbour"), "x").unwrap();
    assert!(receiver.recv_timeout(Duration::from_millis(500)).is_err());
}
