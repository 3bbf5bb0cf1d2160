//! The kernel's list of mounts, `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
//!
//! Reading the list never asks a mounted file system anything, so it works even if a mount hangs or its daemon died.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use bstr::BString;

/// The type of mounts of hepfs.
pub const HEPFS: &str = "fuse.hepfs";

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountEntry {
    /// Number of the mount, which no other one of the system has.
    pub id: u64,
    /// Major and minor device number.
    pub device: (u32, u32),
    /// Where it is mounted.
    pub mountpoint: PathBuf,
    /// File system type: `fuse.hepfs` for mounts of hepfs.
    pub fs_type: String,
    /// The name of the source; any bytes.
    pub source: BString,
    /// The user who made a FUSE mount.
    pub user: Option<u32>,
}

impl MountEntry {
    /// The device number as in the list.
    pub fn device(&self) -> String {
        format!("{}:{}", self.device.0, self.device.1)
    }
}

/// All mounts in this process's mount namespace, the latest last.
///
/// # Errors
/// Where `/proc` is not mounted.
pub fn mounts() -> io::Result<Vec<MountEntry>> {
    read("/proc/self/mountinfo")
}

/// All mounts in the mount namespace of a process, the latest last.
///
/// # Errors
/// If the process is gone, or one that this user may not look at.
pub fn mounts_of(process: u32) -> io::Result<Vec<MountEntry>> {
    read(&format!("/proc/{process}/mountinfo"))
}

fn read(list: &str) -> io::Result<Vec<MountEntry>> {
    let text = std::fs::read(list)?;
    Ok(text.split(|byte| *byte == b'\n').filter_map(parse_line).collect())
}

/// The topmost mount at exactly this path. `None`: nothing is mounted there.
///
/// # Errors
/// Where `/proc` is not mounted.
pub fn mount_at(path: &Path) -> io::Result<Option<MountEntry>> {
    Ok(mounts()?.into_iter().rev().find(|mount| mount.mountpoint == path))
}

/// The absolute path of a mount point, without symbolic links. A mount point is only looked up in the list: its file
/// system may hang.
///
/// # Errors
/// If there is no such path, or `/proc` is not mounted.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut path = std::path::absolute(path)?;
    // As many links as Linux follows.
    for _ in 0..40 {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { break };
        let real = parent.canonicalize()?.join(name);
        if mount_at(&real)?.is_some() {
            return Ok(real);
        }
        match std::fs::read_link(&real) {
            Ok(target) => path = parent.canonicalize()?.join(target),
            Err(_) => break,
        }
    }
    path.canonicalize()
}

/// The paths at which hepfs is mounted in this process's mount namespace.
///
/// # Errors
/// Where `/proc` is not mounted.
pub fn mountpoints() -> io::Result<Vec<PathBuf>> {
    let ours = mounts()?.into_iter().filter(|mount| mount.fs_type == HEPFS);
    Ok(ours.map(|mount| mount.mountpoint).collect())
}

/// Reads one line: id, parent, `MAJ:MIN`, root, mount point, options, optional fields up to `-`, type, source, options.
fn parse_line(line: &[u8]) -> Option<MountEntry> {
    let mut fields = line.split(|byte| *byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?;
    let device = std::str::from_utf8(fields.nth(1)?).ok()?;
    let (major, minor) = device.split_once(':')?;
    let mountpoint = unescape(fields.nth(1)?);
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let (fs_type, source, options) = (fields.next()?, fields.next()?, fields.next()?);
    let mut options = options.split(|byte| *byte == b',');
    let user = options.find_map(|option| std::str::from_utf8(option.strip_prefix(b"user_id=")?).ok()?.parse().ok());
    Some(MountEntry {
        id: id.parse().ok()?,
        device: (major.parse().ok()?, minor.parse().ok()?),
        mountpoint: PathBuf::from(OsString::from_vec(mountpoint)),
        fs_type: String::from_utf8_lossy(fs_type).into_owned(),
        source: unescape(source).into(),
        user,
    })
}

/// Undoes the kernel's `\ooo` for space, tab, line feed and backslash.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let octal = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) if *first == b'\\' => {
                out.push(code);
                rest = tail.get(3..).unwrap_or_default();
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_manual_page() {
        // From proc_pid_mountinfo(5).
        let line = b"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let mount = parse_line(line).unwrap();
        assert_eq!((mount.id, mount.device), (36, (98, 0)));
        assert_eq!((mount.source.as_slice(), mount.user), (&b"/dev/root"[..], None));
        assert_eq!(mount.mountpoint, Path::new("/mnt2"));
        assert_eq!((mount.fs_type.as_str(), mount.user), ("ext3", None));
    }

    #[test]
    fn no_optional_fields_and_escaped_names() {
        let line = br"41 31 0:38 / /a\040b\134c\012d\0 ro - fuse.hepfs x\040y.h5 ro,user_id=1000,group_id=100";
        let mount = parse_line(line).unwrap();
        assert_eq!(mount.mountpoint, Path::new("/a b\\c\nd\\0"));
        assert_eq!(mount.fs_type, "fuse.hepfs");
        assert_eq!((mount.source.as_slice(), mount.user), (&b"x y.h5"[..], Some(1000)));
    }

    #[test]
    fn a_mount_point_is_found_through_links() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("/proc", real.join("link")).unwrap();
        std::os::unix::fs::symlink("link", real.join("relative")).unwrap();
        for name in ["link", "relative", "relative/", "./relative"] {
            assert_eq!(resolve(&folder.path().join(name)).unwrap(), Path::new("/proc"), "{name}");
        }
        assert_eq!(resolve(folder.path()).unwrap(), real);
        assert_eq!(resolve(Path::new("/")).unwrap(), Path::new("/"));
        assert!(resolve(&real.join("nothing")).is_err());
    }

    #[test]
    fn nonsense_is_skipped() {
        for line in [&b""[..], b"36", b"36 35 x:y / /mnt rw - ext3 a b", b"36 35 1:2 / /mnt rw ext3 a b"] {
            assert_eq!(parse_line(line), None);
        }
    }

    #[test]
    fn the_root_is_mounted() {
        assert!(mount_at(Path::new("/")).unwrap().is_some());
        assert!(mount_at(Path::new("/no such mount")).unwrap().is_none());
    }
}
