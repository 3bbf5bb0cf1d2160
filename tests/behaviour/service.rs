//! A mount as a service: conf files, what the service manager hears, lines for the journal. The tests are the manager.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::data;
use crate::support::{HEPFS, LONG, clear, daemon_of, end_of, family, is_mounted, names, run, signal, until};

/// A folder with a mount point and a conf file for it.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// Writes the conf file, with further lines.
    fn new(lines: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Self { folder };
        fs::create_dir(place.mountpoint()).unwrap();
        let (source, mountpoint) = (data("units.h5"), place.mountpoint());
        let places = format!("# A test\nsource = {}\nmountpoint={}\n", source.display(), mountpoint.display());
        fs::write(place.conf(), format!("{places}cache_folder=none\n{lines}")).unwrap();
        place
    }

    fn mountpoint(&self) -> PathBuf {
        self.folder.path().join("mnt")
    }

    fn conf(&self) -> PathBuf {
        self.folder.path().join("run.conf")
    }

    /// The program that mounts in the foreground, as a service.
    fn service(&self) -> Command {
        let mut command = Command::new(HEPFS);
        command.args(["mount", "--foreground", "--config"]).arg(self.conf()).stdin(Stdio::null()).stderr(Stdio::null());
        command
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        clear(&self.mountpoint());
    }
}

/// A process that is killed in the end.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn a_conf_file_says_what_to_mount() {
    let place = Place::new("formats=csv:parquet\nxattrs=none\n");
    let home = place.folder.path().join("home");
    let folder = home.join(".config/hepfs");
    fs::create_dir_all(&folder).unwrap();
    fs::copy(place.conf(), folder.join("run.conf")).unwrap();
    let mut command = Command::new(HEPFS);
    command.args(["mount", "--config", "run", "--formats", "npy"]).env("HOME", &home).env_remove("XDG_CONFIG_HOME");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let shown = names(&place.mountpoint().join("t/columns"));
    assert!(shown.iter().all(|name| name.ends_with(".npy")) && !shown.is_empty(), "the command line counts: {shown:?}");
}

#[test]
fn a_wrong_conf_file_is_named_with_its_line() {
    let refused = |arguments: &[&str]| {
        let output = run(HEPFS, arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let place = Place::new("cach_size=1G\n");
    let conf = place.conf().display().to_string();
    assert_eq!(
        refused(&["mount", "--config", &conf]),
        format!("hepfs: {conf}:5: cach_size: `hepfs mount` has no such option (did you mean \"cache_size\"?)\n")
    );
    assert!(refused(&["mount", "--config", "/no/such.conf"]).contains("/no/such.conf"));
    let unknown = refused(&["mount", "--config", "no-such-mount"]);
    assert!(unknown.contains("/etc/hepfs/no-such-mount.conf"), "{unknown}");
    let place = Place::new("");
    let conf = place.conf().display().to_string();
    assert!(refused(&["mount", "--config", &conf, "a.h5", "mnt"]).contains("conf file"));
    assert!(!is_mounted(&place.mountpoint()));
}

/// The socket of a service manager.
struct Manager(UnixDatagram);

impl Manager {
    /// Starts the service, with a watchdog that wants a sign of life every 600 ms.
    fn start(self, place: &Place, socket: &str) -> (Self, Killed) {
        self.0.set_read_timeout(Some(LONG)).unwrap();
        let mut service = place.service();
        service.env("NOTIFY_SOCKET", socket).env("WATCHDOG_USEC", "600000").env_remove("WATCHDOG_PID");
        (self, Killed(service.spawn().unwrap()))
    }

    fn at_path(place: &Place) -> (Self, Killed) {
        let path = place.folder.path().join("notify");
        let manager = Self(UnixDatagram::bind(&path).unwrap());
        manager.start(place, path.to_str().unwrap())
    }

    /// The next message; `None`: none comes for a time.
    fn hear(&self) -> Option<String> {
        let mut bytes = [0; 4096];
        let length = self.0.recv(&mut bytes).ok()?;
        Some(String::from_utf8(bytes[..length].to_vec()).unwrap())
    }
}

#[test]
fn a_manager_hears_of_the_life_of_a_mount() {
    let place = Place::new("");
    let (manager, mut service) = Manager::at_path(&place);
    let first = manager.hear().unwrap();
    assert!(first.starts_with("READY=1\nWATCHDOG=1\nSTATUS=units.h5, "), "{first}");
    assert!(fs::read_to_string(place.mountpoint().join("t/table.csv")).unwrap().starts_with("mass,"));
    for _ in 0..3 {
        assert!(manager.hear().unwrap().starts_with("WATCHDOG=1"));
    }
    // Workers serve files of others, and are none of the manager's business.
    for process in family(service.0.id()).into_iter().skip(1) {
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        assert!(!environment.windows(13).any(|word| word == b"NOTIFY_SOCKET"), "process {process}");
    }
    signal(service.0.id(), libc::SIGTERM);
    assert!(end_of(&mut service.0, LONG).unwrap().success());
    manager.0.set_nonblocking(true).unwrap();
    let last = std::iter::from_fn(|| manager.hear()).last();
    assert_eq!(last.as_deref(), Some("STOPPING=1\nSTATUS=unmounting"));
    assert!(!is_mounted(&place.mountpoint()));
}

#[test]
fn a_manager_may_have_an_abstract_socket() {
    let place = Place::new("");
    let name = format!("hepfs-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let (manager, _service) = Manager(UnixDatagram::bind_addr(&address).unwrap()).start(&place, &format!("@{name}"));
    assert!(manager.hear().unwrap().starts_with("READY=1\n"));
}

#[test]
fn a_mount_that_does_not_answer_gives_no_sign_of_life() {
    let place = Place::new("");
    let (manager, service) = Manager::at_path(&place);
    assert!(manager.hear().unwrap().starts_with("READY=1\n"));
    let stopped = Stopped::all_but(service.0.id(), "hepfs-notify");
    manager.0.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    // What was on its way.
    let begun = Instant::now();
    while manager.hear().is_some() {
        assert!(begun.elapsed() < Duration::from_secs(2), "it says that it answers, and does not");
    }
    drop(stopped);
    assert!(manager.hear().unwrap().starts_with("WATCHDOG=1"), "it answers again");
}

/// Threads of another process that stand still.
struct Stopped(Vec<i32>);

impl Stopped {
    /// Stops all threads but the one of this name.
    fn all_but(process: u32, name: &str) -> Self {
        let mut stopped = Self(Vec::new());
        for entry in fs::read_dir(format!("/proc/{process}/task")).unwrap() {
            let task = entry.unwrap();
            if fs::read_to_string(task.path().join("comm")).unwrap().trim_end() == name {
                continue;
            }
            let id: i32 = task.file_name().to_str().unwrap().parse().unwrap();
            // SAFETY: these requests take no memory of this process.
            let done =
                unsafe { [libc::ptrace(libc::PTRACE_SEIZE, id, 0, 0), libc::ptrace(libc::PTRACE_INTERRUPT, id, 0, 0)] };
            assert_eq!(done, [0, 0], "{}", std::io::Error::last_os_error());
            stopped.0.push(id);
        }
        assert!(!stopped.0.is_empty());
        stopped
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for id in &self.0 {
            // SAFETY: `waitpid` gets no memory, `PTRACE_DETACH` neither.
            unsafe {
                libc::waitpid(*id, std::ptr::null_mut(), libc::__WALL);
                libc::ptrace(libc::PTRACE_DETACH, *id, 0, 0);
            }
        }
    }
}

#[test]
fn a_mount_in_the_background_leaves_the_manager_alone() {
    let place = Place::new("");
    let path = place.folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    let mut command = Command::new(HEPFS);
    command.args(["mount", "--config"]).arg(place.conf()).env("NOTIFY_SOCKET", &path).env("HOME", place.folder.path());
    assert!(command.status().unwrap().success());
    manager.set_nonblocking(true).unwrap();
    assert!(manager.recv(&mut [0; 64]).is_err());
    let daemon = daemon_of(&place.mountpoint()).unwrap();
    assert!(!fs::read_to_string(format!("/proc/{daemon}/environ")).unwrap().contains("NOTIFY_SOCKET"));
}

/// Standard error as a manager gives it, and what `JOURNAL_STREAM` says of it.
fn journal() -> (UnixStream, OwnedFd, String) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let theirs = OwnedFd::from(theirs);
    let status = File::from(theirs.try_clone().unwrap()).metadata().unwrap();
    (ours, theirs, format!("{}:{}", status.dev(), status.ino()))
}

#[test]
fn the_journal_gets_priorities_and_no_times() {
    let place = Place::new("source=/no/such/file.h5\n");
    let said = |is_journal: bool| {
        let (mut ours, theirs, stream) = journal();
        let stream = if is_journal { stream } else { "1:2".to_owned() };
        let mut service = Killed(place.service().stderr(theirs).env("JOURNAL_STREAM", stream).spawn().unwrap());
        until("the mount answers", || is_mounted(&place.mountpoint()));
        until("it says so", || place.mountpoint().join(".hepfs/stats").exists());
        signal(service.0.id(), libc::SIGTERM);
        assert!(end_of(&mut service.0, LONG).unwrap().success());
        let mut said = String::new();
        ours.read_to_string(&mut said).unwrap();
        said
    };
    let lines = said(true);
    let warning = lines.lines().find(|line| line.contains("/no/such/file.h5")).unwrap();
    assert!(warning.starts_with("<4>hepfs::"), "{lines}");
    assert_eq!(lines.matches("the other sources are mounted").count(), 1, "{lines}");
    let lines = said(false);
    assert!(lines.contains("hepfs: warning: ") && !lines.contains("<4>"), "{lines}");
}

#[test]
fn a_mount_in_the_background_of_a_service_logs_to_the_journal() {
    let place = Place::new("source=/no/such/file.h5\n");
    let (mut ours, theirs, stream) = journal();
    let mut command = Command::new(HEPFS);
    command.args(["mount", "--config"]).arg(place.conf()).env_clear().env("JOURNAL_STREAM", stream).stderr(theirs);
    assert!(command.status().unwrap().success());
    drop(command);
    clear(&place.mountpoint());
    let mut said = String::new();
    ours.read_to_string(&mut said).unwrap();
    assert_eq!(said.matches("the other sources are mounted").count(), 1, "{said}");
    assert!(said.starts_with("<4>hepfs::"), "{said}");
}

/// As root alone: mounts the system read-only in a namespace of its own.
#[test]
fn a_read_only_system_without_a_home_is_no_obstacle() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let file = data("units.h5");
    let script = "mount -t tmpfs none /mnt && mkdir /mnt/a && mount -o remount,bind,ro / && cd / && \
        ! touch /new 2>/dev/null && \"$0\" mount \"$1\" /mnt/a && head -c 5 /mnt/a/t/table.csv && \"$0\" umount /mnt/a";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script, HEPFS]).arg(&file).env_clear();
    let output = command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/nowhere").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"mass,", "{output:?}");
}
