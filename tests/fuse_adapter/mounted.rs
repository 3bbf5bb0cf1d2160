//! Mounts that always go away again.

use std::path::{Path, PathBuf};

use hepfs::fs::NodeRef;
use hepfs::fs::mount::{Mount, MountOptions};

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
