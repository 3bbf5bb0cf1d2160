//! Finds the processes that hold a mount: an open file, their folder, or a mount namespace of their own.
//!
//! All of it comes from `/proc` (proc_pid_fdinfo(5), proc_pid_mountinfo(5)). The file system itself is never asked: it
//! may hang. Processes of other users show nothing, except to root.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::fs::{self, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::mounts::mounts_of;

/// A process that holds a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process ID.
    pub pid: u32,
    /// The name of its program.
    pub program: String,
    /// How it holds the mount.
    pub hold: Hold,
}

/// How a process holds a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// An open file.
    File(PathBuf),
    /// A file mapped into memory.
    Mapping(PathBuf),
    /// Its working folder.
    Folder,
    /// Its root.
    Root,
    /// It is in another mount namespace, which has the mount; so are `others`.
    Namespace {
        /// How many more processes are in that namespace.
        others: usize,
    },
}

impl Display for Holder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.program, self.pid)?;
        match &self.hold {
            Hold::File(path) => write!(f, ": {})", path.display()),
            Hold::Mapping(path) => write!(f, ": {}, mapped)", path.display()),
            Hold::Folder => write!(f, ": its folder)"),
            Hold::Root => write!(f, ": its root)"),
            Hold::Namespace { others: 0 } => write!(f, ": another mount namespace)"),
            Hold::Namespace { others } => write!(f, " and {others} more: another mount namespace)"),
        }
    }
}

/// Mounts of one device, by which open files are told.
#[derive(Clone, Debug)]
pub struct HeldMounts {
    device: (u32, u32),
    /// Numbers of the mounts, also of those that are detached by now.
    mounts: BTreeSet<u64>,
}

impl HeldMounts {
    /// The mounts of a device, in all namespaces that this user may look at.
    pub fn new(device: (u32, u32)) -> Self {
        let mut held = Self { device, mounts: BTreeSet::new() };
        held.namespaces(&processes());
        held
    }

    /// The processes that hold one of them, or a file in it, but not this process.
    pub fn holders(&mut self) -> Vec<Holder> {
        let processes = processes();
        let own = namespace(std::process::id());
        let of_namespaces = self.namespaces(&processes);
        let mut holders: Vec<Holder> = processes.iter().filter_map(|process| self.holder(*process)).collect();
        for (namespace, inside) in of_namespaces {
            if Some(&namespace) != own.as_ref()
                && let Some(first) = inside.first()
            {
                let hold = Hold::Namespace { others: inside.len() - 1 };
                holders.push(Holder { pid: *first, program: program(*first), hold });
            }
        }
        holders
    }

    /// The namespaces that have the device mounted, and their processes. Learns the numbers of their mounts.
    fn namespaces(&mut self, processes: &[u32]) -> BTreeMap<PathBuf, Vec<u32>> {
        let mut all: BTreeMap<PathBuf, Vec<u32>> = BTreeMap::new();
        for process in processes {
            if let Some(namespace) = namespace(*process) {
                all.entry(namespace).or_default().push(*process);
            }
        }
        all.retain(|_, inside| {
            let mounts = inside.iter().find_map(|process| mounts_of(*process).ok()).unwrap_or_default();
            let ours: Vec<u64> =
                mounts.iter().filter(|mount| mount.device == self.device).map(|mount| mount.id).collect();
            self.mounts.extend(&ours);
            !ours.is_empty()
        });
        all
    }

    fn holder(&self, process: u32) -> Option<Holder> {
        if process == std::process::id() {
            return None;
        }
        let hold = self.open_file(process).or_else(|| self.place(process)).or_else(|| self.mapping(process))?;
        Some(Holder { pid: process, program: program(process), hold })
    }

    fn open_file(&self, process: u32) -> Option<Hold> {
        let descriptors = fs::read_dir(format!("/proc/{process}/fdinfo")).ok()?.flatten();
        descriptors.into_iter().find_map(|descriptor| {
            self.mounts.contains(&mount_of(&descriptor.path())?).then_some(())?;
            let link = Path::new("/proc").join(process.to_string()).join("fd").join(descriptor.file_name());
            Some(Hold::File(fs::read_link(link).ok()?))
        })
    }

    /// Working folder and root. They have no number in `/proc`; a descriptor that only stands for their place has one,
    /// and to open it asks the file system nothing.
    fn place(&self, process: u32) -> Option<Hold> {
        [("cwd", Hold::Folder), ("root", Hold::Root)].into_iter().find_map(|(name, hold)| {
            let place = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_PATH | libc::O_CLOEXEC)
                .open(format!("/proc/{process}/{name}"))
                .ok()?;
            let mount = mount_of(Path::new(&format!("/proc/self/fdinfo/{}", place.as_raw_fd())))?;
            self.mounts.contains(&mount).then_some(hold)
        })
    }

    /// A line of `maps`: addresses, rights, offset, `MAJ:MIN` in hexadecimal, inode, path.
    fn mapping(&self, process: u32) -> Option<Hold> {
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
        let device = format!("{:02x}:{:02x}", self.device.0, self.device.1);
        let line = maps.lines().find(|line| line.split(' ').nth(3) == Some(&device))?;
        Some(Hold::Mapping(line.find('/').map(|at| &line[at..]).unwrap_or_default().into()))
    }
}

/// The number of the mount in a file of `fdinfo`.
fn mount_of(information: &Path) -> Option<u64> {
    let text = fs::read_to_string(information).ok()?;
    text.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok())
}

/// The mount namespace of a process, as `mnt:[NUMBER]`.
fn namespace(process: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/mnt")).ok()
}

/// The name of the program that a process runs.
pub fn program(process: u32) -> String {
    fs::read_to_string(format!("/proc/{process}/comm")).map_or_else(|_| "?".into(), |name| name.trim_end().to_owned())
}

/// All processes, by number.
pub fn processes() -> Vec<u32> {
    let listed = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut all: Vec<u32> = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    all.sort_unstable();
    all
}
