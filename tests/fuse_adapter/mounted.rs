//! Mounts that always go away again, and programs that never run for ever.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use hepfs::fs::NodeRef;
use hepfs::fs::mount::{Mount, MountOptions};

/// A busy machine may take this long for what should take a moment; nothing waits longer.
pub const LONG: Duration = Duration::from_secs(30);

/// A toy tree mounted in a temporary folder.
pub struct Mounted {
    mount: Option<Mount>,
    folder: tempfile::TempDir,
}

impl Mounted {
    pub fn new(root: NodeRef) -> Self {
        Self::with(root, &MountOptions::default())
    }

    pub fn with(root: NodeRef, options: &MountOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mountpoint = folder.path().join("mnt");
        std::fs::create_dir(&mountpoint).unwrap();
        let mount = Mount::new(root, &mountpoint, options).expect("these tests mount for real and need /dev/fuse");
        Self { mount: Some(mount), folder }
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root().join(name)
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("mnt")
    }

    pub fn mount(&self) -> &Mount {
        self.mount.as_ref().unwrap()
    }

    pub fn take(&mut self) -> Mount {
        self.mount.take().unwrap()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        drop(self.mount.take());
        clear(&self.root());
    }
}

/// Takes away whatever is mounted, without asking it anything.
pub fn clear(mountpoint: &Path) {
    while is_mounted(mountpoint) && hepfs::fs::mount::unmount(mountpoint, true).is_ok() {}
}

pub fn is_mounted(mountpoint: &Path) -> bool {
    let mountpoint = mountpoint.parent().unwrap().canonicalize().unwrap().join(mountpoint.file_name().unwrap());
    hepfs::fs::mount::mountpoints().unwrap().contains(&mountpoint)
}

/// Runs a program with a time limit and gives back what it wrote.
pub fn run<S: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = S>) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"));
    let id = child.id();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(LONG) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            Command::new("kill").args(["-9", &id.to_string()]).status().ok();
            panic!("{program} did not end");
        }
    }
}

/// Runs a program that must succeed.
pub fn must<S: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = S>) -> Vec<u8> {
    let output = run(program, arguments);
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Waits for a program's end; `None` after the time limit.
pub fn end_of(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

/// Waits until something holds.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LONG, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a program whose output nobody reads.
pub fn start<S: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = S>) -> Child {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

pub fn signal(child: &Child, signal: libc::c_int) {
    assert!(run("kill", [format!("-{signal}"), child.id().to_string()]).status.success());
}
