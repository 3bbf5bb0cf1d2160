//! A file in a folder of its own, with a cache folder beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::{Mounted, lives, until};

pub struct Place(tempfile::TempDir);

impl Place {
    /// No file yet.
    pub fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    pub fn source(&self) -> PathBuf {
        self.0.path().join("run.h5")
    }

    pub fn cache(&self) -> String {
        self.0.path().join("cache").display().to_string()
    }

    pub fn entries(&self) -> Vec<PathBuf> {
        let mut entries: Vec<_> =
            fs::read_dir(self.cache()).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        entries
    }

    pub fn mount(&self, arguments: &[&str]) -> Mounted {
        let cache = self.cache();
        Mounted::new(&[&self.source()], &[&["--cache-folder", cache.as_str()], arguments].concat())
    }
}

/// Unmounts, and waits until the daemon has written what it keeps.
pub fn end(mounted: Mounted) {
    let daemon = mounted.daemon();
    drop(mounted);
    until("the daemon ends", || !lives(daemon));
}

/// Values are kept of files only whose times would show a change.
pub fn settle() {
    std::thread::sleep(Duration::from_millis(60));
}
