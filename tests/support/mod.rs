//! A mount by the real program, which ends whatever happens.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program under test.
pub const HEPFS: &str = env!("CARGO_BIN_EXE_hepfs");

/// A mount in a temporary folder of its own.
pub struct Mounted {
    folder: tempfile::TempDir,
    mountpoint: PathBuf,
}

impl Mounted {
    /// Mounts sources with further arguments.
    pub fn new(sources: &[&Path], arguments: &[&str]) -> Self {
        let (folder, output) = Self::try_new(sources, arguments);
        assert!(output.status.success(), "mount failed: {}", String::from_utf8_lossy(&output.stderr));
        let mountpoint = folder.path().join("mnt");
        Self { folder, mountpoint }
    }

    /// Tries to mount; what the program said.
    pub fn try_new(sources: &[&Path], arguments: &[&str]) -> (tempfile::TempDir, Output) {
        assert!(Path::new("/dev/fuse").exists(), "/dev/fuse is missing: these tests mount for real");
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("mnt")).unwrap();
        let output = Command::new(HEPFS)
            .arg("mount")
            .args(arguments)
            .arg("--log-file")
            .arg(folder.path().join("log"))
            .args(sources)
            .arg(folder.path().join("mnt"))
            .output()
            .unwrap();
        (folder, output)
    }

    /// The mount point.
    pub fn path(&self) -> &Path {
        &self.mountpoint
    }

    /// What the background process logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// A path below the mount point.
    pub fn join(&self, path: &str) -> PathBuf {
        self.mountpoint.join(path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let umount = Command::new(HEPFS).arg("umount").arg("--lazy").arg(&self.mountpoint).output();
        if !umount.is_ok_and(|output| output.status.success()) {
            let _ = Command::new("umount").arg("-l").arg(&self.mountpoint).status();
        }
    }
}
