//! The folders in which processes answer on sockets: which there are, and which can be trusted.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::geteuid;

/// Where root's processes answer: no other user can be there first.
const OF_ROOT: &str = "/run/hepfs";

/// Where the system makes a folder for each user who is logged in.
const OF_USERS: &str = "/run/user";

/// The name of a folder in [`OF_USERS`]'s folders, and the beginning of that of a user in [`SHARED`].
const NAME: &str = "hepfs";

/// A folder that every user can write to. Not `$TMPDIR`: a process with another one must find it.
const SHARED: &str = "/tmp";

/// A folder of sockets, held open: whatever happens to its name, this one was looked at.
#[derive(Debug)]
pub(super) struct SocketFolder {
    /// Its path.
    pub path: PathBuf,
    /// The user whom it belongs to.
    pub owner: u32,
    /// Device and inode.
    pub identity: (u64, u64),
    open: File,
}

impl SocketFolder {
    /// Opens a folder that its owner alone can enter.
    ///
    /// # Errors
    /// If it is a link or no folder, or others may enter it.
    fn open(path: PathBuf) -> io::Result<Self> {
        let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits();
        let open = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(&path)?;
        let metadata = open.metadata()?;
        if metadata.mode() & 0o77 != 0 {
            return Err(io::Error::other("others may enter it"));
        }
        let identity = (metadata.dev(), metadata.ino());
        Ok(Self { path, owner: metadata.uid(), identity, open })
    }

    /// Opens a folder of this user; makes it if need be.
    ///
    /// # Errors
    /// If it cannot be made, or is not one of this user alone.
    pub fn own(path: PathBuf) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let folder = Self::open(path)?;
        if folder.owner != geteuid().as_raw() {
            return Err(io::Error::other("it belongs to another user"));
        }
        Ok(folder)
    }

    /// A path of a name in the folder. It is short enough for an address of a socket, and leads to this folder even if
    /// another one takes its path.
    pub fn at(&self, name: &str) -> PathBuf {
        format!("/proc/self/fd/{}/{name}", self.open.as_raw_fd()).into()
    }

    /// The names in the folder.
    ///
    /// # Errors
    /// If it cannot be listed.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let listed = fs::read_dir(self.at(""))?;
        Ok(listed.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
    }
}

/// Where a process of this user may answer, the best first.
fn places() -> Vec<PathBuf> {
    let user = geteuid();
    let mut places = Vec::new();
    if let Some(folder) = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute()) {
        places.push(folder.join(NAME));
    }
    if user.is_root() {
        places.push(OF_ROOT.into());
    }
    places.push(Path::new(SHARED).join(format!("{NAME}-{user}")));
    places
}

/// A folder that this user alone can enter, for as long as the system runs.
///
/// # Errors
/// If none can be made.
pub fn own_folder() -> io::Result<PathBuf> {
    in_first(|place| Ok(SocketFolder::own(place)?.path))
}

/// Does something in the first folder of this user where it can be done.
///
/// # Errors
/// That of the last folder.
pub(super) fn in_first<T>(act: impl Fn(PathBuf) -> io::Result<T>) -> io::Result<T> {
    let mut last = io::Error::from(ErrorKind::NotFound);
    for place in places() {
        match act(place.clone()) {
            Ok(done) => return Ok(done),
            Err(error) => last = io::Error::new(error.kind(), format!("{}: {error}", place.display())),
        }
    }
    Err(last)
}

/// The folders of this user, or of all users if this is root.
pub(super) fn all() -> Vec<SocketFolder> {
    let user = geteuid();
    let mut paths: BTreeSet<PathBuf> = places().into_iter().collect();
    // The user may be logged in elsewhere.
    paths.insert(Path::new(OF_USERS).join(user.to_string()).join(NAME));
    if user.is_root() {
        paths.extend(listed(OF_USERS).filter_map(|(path, name)| of_its_user(path.join(NAME), &name)));
        let shared = listed(SHARED).filter_map(|(path, name)| {
            let user = name.strip_prefix(NAME)?.strip_prefix('-')?;
            of_its_user(path, user)
        });
        paths.extend(shared);
    }
    let mut seen = BTreeSet::new();
    let open = |path: PathBuf| {
        SocketFolder::open(path).inspect_err(|error| tracing::debug!("a folder of sockets: {error}")).ok()
    };
    let trusted = |folder: &SocketFolder| user.is_root() || folder.owner == user.as_raw();
    paths.into_iter().filter_map(open).filter(trusted).filter(|folder| seen.insert(folder.identity)).collect()
}

fn listed(folder: &str) -> impl Iterator<Item = (PathBuf, String)> {
    let listed = fs::read_dir(folder).into_iter().flatten().flatten();
    listed.filter_map(|entry| Some((entry.path(), entry.file_name().into_string().ok()?)))
}

/// The path of a folder, if it belongs to the user in its name: no user has more than one.
fn of_its_user(path: PathBuf, user: &str) -> Option<PathBuf> {
    let user: u32 = user.parse().ok()?;
    (path.symlink_metadata().ok()?.uid() == user).then_some(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_folder_of_this_user_alone_is_trusted() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("hepfs");
        let folder = SocketFolder::own(path.clone()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        // Its contents are those of the folder that was opened, whatever has its name now.
        fs::write(path.join("a"), "").unwrap();
        fs::rename(&path, top.path().join("other")).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(folder.names().unwrap(), ["a"]);

        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        assert!(SocketFolder::own(path.clone()).is_err(), "others may enter it");
        fs::remove_dir(&path).unwrap();
        symlink(top.path().join("other"), &path).unwrap();
        assert!(SocketFolder::own(path.clone()).is_err(), "a link");
        fs::remove_file(&path).unwrap();
        fs::write(&path, "").unwrap();
        assert!(SocketFolder::own(path).is_err(), "a file");
    }
}
