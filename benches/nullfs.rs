//! A file system of one file of zeros, behind the same adapter: the ceiling that FUSE sets for everything else.
//!
//! `cargo bench --bench nullfs -- MOUNTPOINT BYTES` serves `MOUNTPOINT/zeros` until a signal or an unmount ends it;
//! `scripts/bench` starts it beside hepfs.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use bstr::BString;
use hepfs::fs::mount::{Mount, MountOptions, StopSignals};
use hepfs::fs::{Attributes, Children, DirEntry, Error, Kind, Node, NodeRef};
use hepfs::source::Interrupt;
use hepfs::views::{Effort, Size};

const NAME: &str = "zeros";

/// The directory, or the file in it.
struct Null {
    kind: Kind,
    bytes: u64,
}

impl Node for Null {
    fn attributes(&self) -> Attributes {
        let time = SystemTime::UNIX_EPOCH;
        Attributes { kind: self.kind, mode: 0o555, mtime: time, ctime: time, atime: time }
    }

    fn is_current(&self) -> bool {
        true
    }

    fn lookup(&self, name: &[u8], _: &Interrupt) -> Result<NodeRef, Error> {
        if name != NAME.as_bytes() {
            return Err(Error::NotFound);
        }
        Ok(Arc::new(Null { kind: Kind::File, bytes: self.bytes }))
    }

    fn children(&self, _: &Interrupt) -> Result<Children, Error> {
        Ok([DirEntry { name: NAME.into(), kind: Kind::File }].into())
    }

    fn readlink(&self) -> Result<BString, Error> {
        Err(Error::NotAFile)
    }

    fn size(&self, _: Effort, _: &Interrupt) -> Result<Size, Error> {
        Ok(Size::Exact(self.bytes))
    }

    fn read(&self, offset: u64, length: usize, out: &mut Vec<u8>, _: &Interrupt) -> Result<(), Error> {
        let length = self.bytes.saturating_sub(offset).min(length as u64) as usize;
        out.resize(out.len() + length, 0);
        Ok(())
    }

    fn xattrs(&self, _: &Interrupt) -> Result<Vec<(BString, Vec<u8>)>, Error> {
        Ok(Vec::new())
    }
}

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [mountpoint, bytes] = arguments.as_slice() else {
        eprintln!("usage: nullfs MOUNTPOINT BYTES");
        // `cargo test --benches` runs this without arguments: nothing to measure, nothing wrong.
        return ExitCode::SUCCESS;
    };
    let Ok(bytes) = bytes.parse() else {
        eprintln!("nullfs: {bytes:?} is no number of bytes");
        return ExitCode::FAILURE;
    };
    let root: NodeRef = Arc::new(Null { kind: Kind::Directory, bytes });
    let served = StopSignals::catch()
        .and_then(|stop| Mount::new(root, &PathBuf::from(mountpoint), &MountOptions::default())?.serve_until(&stop));
    match served {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nullfs: {error}");
            ExitCode::FAILURE
        }
    }
}
