//! Files and folders while they are written: beside their place, under a name that says who writes them. What a killed
//! command left behind is removed by the next one that writes to the same place.
//!
//! ```text
//! .NAME.hepfs-HOST-PID-START        START: start time of the process, in ticks since boot
//! ```
//!
//! Numbers of processes are used again, and another host that has the same folder has processes of its own. So a
//! leftover goes where its host is this one, no process of its number began at that time, and nobody holds its lock.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes of a name that are part of the hidden one: the host's may have 64, and both together no more than 255.
const MOST_OF_NAME: usize = 128;

/// The place where a file or folder is written until it is whole.
pub(super) struct Partial {
    path: PathBuf,
    /// Prefix of every hidden name for the same place.
    prefix: OsString,
}

impl Partial {
    /// Where what is to have this path is written; `None` where it has no name.
    pub fn beside(path: &Path) -> Option<Self> {
        let name = path.file_name()?.as_bytes();
        let name = name.get(..MOST_OF_NAME).unwrap_or(name);
        let prefix = OsString::from_vec([b".", name, b".hepfs-"].concat());
        let process = std::process::id();
        let mut hidden = prefix.clone();
        hidden.push(format!("{}-{process}-{}", host(), began(process).unwrap_or(0)));
        Some(Self { path: path.with_file_name(hidden), prefix })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes an empty file, locked until it is closed.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn file(&self) -> io::Result<File> {
        self.remove_leftovers();
        let file = OpenOptions::new().write(true).create_new(true).open(&self.path)?;
        // Without a lock, on a file system that has none, it is never taken for a leftover.
        file.try_lock().ok();
        Ok(file)
    }

    /// Makes a folder, locked until what is returned is closed.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn folder(&self) -> io::Result<File> {
        self.remove_leftovers();
        fs::create_dir(&self.path)?;
        let folder = File::open(&self.path)?;
        folder.try_lock().ok();
        Ok(folder)
    }

    /// Removes what killed commands have left that wrote to the same place; what cannot be removed stays.
    fn remove_leftovers(&self) {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let writer = name.as_bytes().strip_prefix(self.prefix.as_bytes()).and_then(Writer::of);
            if writer.is_some_and(|writer| writer.is_gone()) && remove(&entry.path()).is_ok() {
                say!("hepfs: {} is removed, which a killed command left behind", entry.path().display());
            }
        }
    }
}

/// Removes a file or folder that nobody has locked. A link is not followed: others may write to the folder as well.
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

/// The process that writes, as its name says.
#[derive(Debug, PartialEq, Eq)]
struct Writer {
    host: String,
    process: u32,
    began: u64,
}

impl Writer {
    /// The process that what stands behind the prefix tells.
    fn of(text: &[u8]) -> Option<Self> {
        let mut parts = std::str::from_utf8(text).ok()?.rsplitn(3, '-');
        let (began, process, host) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self { host: host.to_owned(), process: process.parse().ok()?, began: began.parse().ok()? })
    }

    /// Whether it was a process of this host that is no more. One that cannot be seen has its lock.
    fn is_gone(&self) -> bool {
        self.host == host() && began(self.process) != Some(self.began)
    }
}

/// The name of this host, as far as it may stand in a file's name.
fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain =
        |character: char| if character.is_ascii_alphanumeric() || "-._".contains(character) { character } else { '_' };
    name.trim().chars().map(plain).take(64).collect()
}

/// Reads the start time of a process, in ticks since boot; `None` for a process that has ended.
fn began(process: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
    // Behind the name, which is in parentheses and may hold any, the third field is the first.
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
