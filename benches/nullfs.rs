//! Serves files that are in memory already through the same adapter: the ceiling that FUSE sets for everything else.
//!
//! `cargo bench --bench nullfs -- MOUNTPOINT BYTES [FILE]` serves `MOUNTPOINT/zeros`, and `MOUNTPOINT/copy` with the
//! bytes of FILE, until a signal or an unmount ends it; `scripts/bench/main` starts it beside hepfs. It lends answers,
//! as hepfs lends decoded chunks: no byte is touched on the way to the kernel.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use clap::Parser;
use hepfs::fs::mount::{Mount, MountOptions, StopSignals};
use hepfs::fs::{Attributes, Children, DirEntry, EntryKind, Error, Node, NodeRef};
use hepfs::source::Interrupt;
use hepfs::store::{Answer, Budget, Lent};
use hepfs::views::{Effort, Size};

/// The longest answer.
const LONGEST: usize = 1 << 20;

/// Files in memory, served as fast as FUSE can.
#[derive(Parser)]
struct Arguments {
    /// An existing directory
    mountpoint: PathBuf,
    /// Length of `zeros`
    bytes: u64,
    /// A file to show as `copy`
    file: Option<PathBuf>,
    /// Bypass the page cache
    #[arg(long)]
    direct_io: bool,
    /// Session threads instead of one for each core and two more
    #[arg(long)]
    threads: Option<usize>,
    /// Longest read that the kernel may ask for, in bytes
    #[arg(long, default_value_t = LONGEST as u32)]
    max_read: u32,
    /// Write each answer into a buffer first, as hepfs does where bytes do not lie together
    #[arg(long)]
    copied: bool,
    /// Cargo adds it
    #[arg(long, hide = true)]
    bench: bool,
}

/// The directory.
struct Folder(Vec<(&'static str, NodeRef)>);

/// One of its files: the same bytes over and over.
struct File {
    bytes: u64,
    content: Lent,
    copied: bool,
}

fn attributes(kind: EntryKind) -> Attributes {
    let time = SystemTime::UNIX_EPOCH;
    Attributes { kind, mode: 0o555, mtime: time, ctime: time, atime: time, identity: 0 }
}

impl Node for Folder {
    fn attributes(&self) -> Attributes {
        attributes(EntryKind::Directory)
    }

    fn is_current(&self) -> bool {
        true
    }

    fn lookup(&self, name: &[u8], _: &Interrupt) -> Result<NodeRef, Error> {
        let found = self.0.iter().find(|(known, _)| known.as_bytes() == name);
        found.map(|(_, node)| node.clone()).ok_or_else(|| hepfs::Error::NotFound.into())
    }

    fn children(&self, _: &Interrupt) -> Result<Children, Error> {
        Ok(self.0.iter().map(|(name, _)| DirEntry { name: (*name).into(), kind: EntryKind::File }).collect())
    }
}

impl File {
    /// The bytes from `offset` on; zeros are the same wherever they are taken from.
    fn part(&self, offset: u64, length: usize) -> Option<Lent> {
        let start = if self.bytes == self.content.len() as u64 { usize::try_from(offset).ok()? } else { 0 };
        self.content.part(start..start.checked_add(length)?)
    }
}

impl Node for File {
    fn attributes(&self) -> Attributes {
        attributes(EntryKind::File)
    }

    fn is_current(&self) -> bool {
        true
    }

    fn size(&self, _: Effort, _: &Interrupt) -> Result<Size, Error> {
        Ok(Size::Exact(self.bytes))
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, _: &Interrupt) -> Result<(), Error> {
        let left = self.bytes.saturating_sub(offset);
        let part = self.part(offset, usize::try_from(left).map_or(length, |left| left.min(length)));
        let part = part.ok_or(hepfs::Error::NotFound)?;
        if self.copied {
            answer.append(&part, 0, length);
        } else {
            answer.lend(part);
        }
        Ok(())
    }
}

/// The files that were asked for.
fn files(arguments: &Arguments) -> std::io::Result<Folder> {
    let lent = |bytes: &[u8]| {
        let budget = Budget::new(u64::MAX);
        let made = Lent::made(&budget, bytes.len(), |out| {
            out.copy_from_slice(bytes);
            Ok::<_, std::io::Error>(())
        });
        made?.ok_or_else(|| std::io::Error::other("no memory"))
    };
    let file = |bytes, content| Arc::new(File { bytes, content, copied: arguments.copied }) as NodeRef;
    let mut files = vec![("zeros", file(arguments.bytes, lent(&[0; LONGEST])?))];
    if let Some(path) = &arguments.file {
        let content = fs::read(path)?;
        files.push(("copy", file(content.len() as u64, lent(&content)?)));
    }
    Ok(Folder(files))
}

fn serve(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let options = MountOptions {
        direct_io: arguments.direct_io,
        threads: arguments.threads,
        max_read: arguments.max_read,
        ..MountOptions::default()
    };
    let stop = StopSignals::catch()?;
    Mount::new(Arc::new(files(arguments)?), &arguments.mountpoint, &options)?.serve_until(&stop, || ())?;
    Ok(())
}

fn main() -> ExitCode {
    if std::env::args().skip(1).all(|argument| argument == "--bench") {
        // `cargo test --benches` runs this without arguments: nothing to measure, nothing wrong.
        eprintln!("nullfs: no MOUNTPOINT, nothing to serve");
        return ExitCode::SUCCESS;
    }
    match serve(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nullfs: {error}");
            ExitCode::FAILURE
        }
    }
}
