//! Files and folders while they are written: beside their target, under a name that identifies the writer. The next
//! command that writes to the same target removes leftovers of killed ones.
//!
//! ```text
//! .NAME.hepfs-HOST-PID-START        START: start time of the process, in ticks since boot
//! ```
//!
//! Process numbers are reused, and other hosts that share the folder have their own. So a leftover is removed only if
//! its host is this one, no process with that number started at that time, and nobody holds its lock.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes of the target's name that the hidden name contains: the host may take 64, and a name at most 255.
const MOST_OF_NAME: usize = 128;

/// The place where a file or folder is written until it is complete.
pub(super) struct Partial {
    path: PathBuf,
    /// Prefix of all hidden names for the same target.
    prefix: OsString,
}

impl Partial {
    /// The place for writing the target `path`; `None`: it has no file name.
    pub fn beside(path: &Path) -> Option<Self> {
        let name = path.file_name()?.as_bytes();
        let name = name.get(..MOST_OF_NAME).unwrap_or(name);
        let prefix = OsString::from_vec([b".", name, b".hepfs-"].concat());
        let process = std::process::id();
        let mut hidden = prefix.clone();
        hidden.push(format!("{}-{process}-{}", host(), began(process).unwrap_or(0)));
        Some(Self { path: path.with_file_name(hidden), prefix })
    }

    /// The hidden path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates an empty file, locked until it is closed.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn file(&self) -> io::Result<File> {
        self.remove_leftovers();
        let file = OpenOptions::new().write(true).create_new(true).open(&self.path)?;
        // On a file system without locks, the file never counts as a leftover.
        file.try_lock().ok();
        Ok(file)
    }

    /// Creates a folder, locked until the returned file is closed.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn folder(&self) -> io::Result<File> {
        self.remove_leftovers();
        fs::create_dir(&self.path)?;
        let folder = File::open(&self.path)?;
        folder.try_lock().ok();
        Ok(folder)
    }

    /// Removes leftovers of killed commands that wrote to the same target, as far as possible.
    fn remove_leftovers(&self) {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let writer = name.as_bytes().strip_prefix(self.prefix.as_bytes()).and_then(Writer::of);
            if writer.is_some_and(|writer| writer.is_gone()) && remove(&entry.path()).is_ok() {
                say!("hepfs: {} is removed: a killed command left it behind", entry.path().display());
            }
        }
    }
}

/// Removes a file or folder that nobody has locked. Does not follow links: others may write to the folder as well.
fn remove(path: &Path) -> io::Result<()> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let left = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    left.try_lock()?;
    match left.metadata()? {
        metadata if metadata.is_dir() => fs::remove_dir_all(path),
        metadata if metadata.is_file() => fs::remove_file(path),
        _ => Err(io::Error::other("is neither a file nor a folder")),
    }
}

/// The writing process, from the hidden name.
#[derive(Debug, PartialEq, Eq)]
struct Writer {
    host: String,
    process: u32,
    began: u64,
}

impl Writer {
    /// Parses the part of the name after the prefix.
    fn of(text: &[u8]) -> Option<Self> {
        let mut parts = std::str::from_utf8(text).ok()?.rsplitn(3, '-');
        let (began, process, host) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self { host: host.to_owned(), process: process.parse().ok()?, began: began.parse().ok()? })
    }

    /// Whether it was a process of this host and has ended. A live process that is invisible here still holds its lock.
    fn is_gone(&self) -> bool {
        self.host == host() && began(self.process) != Some(self.began)
    }
}

/// The name of this host, in characters that are safe in file names.
fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain =
        |character: char| if character.is_ascii_alphanumeric() || "-._".contains(character) { character } else { '_' };
    name.trim().chars().map(plain).take(64).collect()
}

/// Reads the start time of a process, in ticks since boot; `None` for a process that has ended.
fn began(process: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may contain any characters; the first field after it is the third.
    let fields = stat.rsplit(|byte| *byte == b')').next()?;
    std::str::from_utf8(fields).ok()?.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_name_tells_its_writer() {
        let writer = |host: &str, process, began| Some(Writer { host: host.into(), process, began });
        assert_eq!(Writer::of(b"node-1.example-17-4711"), writer("node-1.example", 17, 4711));
        for text in ["17", "17-4711", "host-x-1", "host-1-x", "host-1-", ""] {
            assert_eq!(Writer::of(text.as_bytes()), None, "{text}");
        }
        let own = Partial::beside(Path::new("out/t.csv")).unwrap();
        let name = own.path().file_name().unwrap().as_bytes();
        let own = Writer::of(name.strip_prefix(b".t.csv.hepfs-").unwrap()).unwrap();
        assert_eq!((own.process, own.is_gone()), (std::process::id(), false));
        assert!(Writer { began: own.began + 1, host: host(), ..own }.is_gone());
        assert!(!Writer { host: "elsewhere".into(), process: u32::MAX, began: 0 }.is_gone());
    }

    #[test]
    fn long_names_leave_room_for_their_writer() {
        let path = Path::new("out").join(OsStr::from_bytes(&[b'x'; 255]));
        assert!(Partial::beside(&path).unwrap().path().file_name().unwrap().len() <= 255);
    }
}
