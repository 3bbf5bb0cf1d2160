//! A tree of toys: files that are slow, that panic, that know no more than a bound of their size.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bstr::BString;
use hepfs::fs::{Attributes, Children, DirEntry, EntryKind, Error, Node, NodeRef, Xattrs};
use hepfs::source::Interrupt;
use hepfs::store::Answer;
use hepfs::views::{AccessPattern, Effort, Size};

/// How a toy file behaves.
#[derive(Clone)]
pub enum Manner {
    /// The size is known from the start.
    Plain,
    /// `stat` shows a bound until the file is opened.
    Bound,
    /// As `Bound`, and the last byte comes later than an answer past the end.
    LateEnd,
    /// Opening takes until the gate opens; looks at the interrupt.
    Gated(Arc<Gate>),
    /// As `Gated`, but never looks at the interrupt.
    Deaf(Arc<Gate>),
    /// Reading takes until the gate opens.
    GatedRead(Arc<Gate>),
    /// Reading is quick at first; from [`LATER`] on it takes until the gate opens and never looks at the interrupt.
    DeafLater(Arc<Gate>),
    /// Computing the exact size fails.
    Damaged,
    /// Gives fewer bytes than its size says.
    Short,
    /// Read in stretches; counts the bytes that were asked for.
    Stretches(Arc<AtomicU64>),
    /// Panics when opened.
    PanicsOnOpen,
    /// Panics when read.
    PanicsOnRead,
    /// Panics in what the session threads ask.
    PanicsOnAttributes,
    /// A counter of its opens.
    Live(Arc<AtomicU64>),
}

/// Where [`Manner::DeafLater`] begins to wait.
pub const LATER: u64 = 4 << 20;

/// Holds work up, and says how many wait.
#[derive(Default)]
pub struct Gate {
    open: AtomicBool,
    pub waiting: AtomicU64,
    pub interrupted: AtomicU64,
}

impl Gate {
    pub fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }

    fn pass(&self, interrupt: Option<&Interrupt>) -> Result<(), Error> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        while !self.open.load(Ordering::SeqCst) {
            if interrupt.is_some_and(Interrupt::is_raised) {
                self.interrupted.fetch_add(1, Ordering::SeqCst);
                return Err(hepfs::Error::Interrupted.into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

pub struct File {
    pub bytes: Vec<u8>,
    manner: Manner,
    exact: AtomicBool,
    current: Arc<AtomicBool>,
    xattrs: Vec<(BString, Vec<u8>)>,
}

pub struct Directory {
    pub entries: parking_lot::Mutex<BTreeMap<BString, NodeRef>>,
    current: Arc<AtomicBool>,
}

struct Link(BString);

/// A directory of no names, each of which is looked for until the gate opens.
pub struct GatedNames(pub Arc<Gate>);

/// A time with nanoseconds: 2021-01-02 03:04:05.678901234 UTC.
pub fn time() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::new(1_609_556_645, 678_901_234)
}

fn attributes(kind: EntryKind, mode: u16) -> Attributes {
    Attributes { kind, mode, mtime: time(), ctime: time(), atime: time(), identity: 0 }
}

pub fn current() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(true))
}

pub fn file(bytes: impl Into<Vec<u8>>, manner: Manner) -> NodeRef {
    file_of(bytes, manner, current(), Vec::new())
}

pub fn file_of(
    bytes: impl Into<Vec<u8>>,
    manner: Manner,
    current: Arc<AtomicBool>,
    xattrs: Vec<(BString, Vec<u8>)>,
) -> NodeRef {
    Arc::new(File { bytes: bytes.into(), manner, exact: AtomicBool::new(false), current, xattrs })
}

pub fn directory<N: Into<BString>>(entries: impl IntoIterator<Item = (N, NodeRef)>) -> Arc<Directory> {
    directory_of(entries, current())
}

pub fn directory_of<N: Into<BString>>(
    entries: impl IntoIterator<Item = (N, NodeRef)>,
    current: Arc<AtomicBool>,
) -> Arc<Directory> {
    let entries = entries.into_iter().map(|(name, node)| (name.into(), node)).collect();
    Arc::new(Directory { entries: parking_lot::Mutex::new(entries), current })
}

pub fn link(target: &str) -> NodeRef {
    Arc::new(Link(target.into()))
}

/// Bytes in which every position can be told from its neighbours.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect()
}

impl Node for Directory {
    fn attributes(&self) -> Attributes {
        attributes(EntryKind::Directory, 0o555)
    }
    fn is_current(&self) -> bool {
        self.current.load(Ordering::SeqCst)
    }
    fn lookup(&self, name: &[u8], _: &Interrupt) -> Result<NodeRef, Error> {
        assert_ne!(name, b"panic-in-lookup", "on purpose");
        self.entries.lock().get(&BString::from(name)).cloned().ok_or_else(|| hepfs::Error::NotFound.into())
    }
    fn children(&self, _: &Interrupt) -> Result<Children, Error> {
        let entries = self.entries.lock();
        Ok(entries.iter().map(|(name, node)| DirEntry { name: name.clone(), kind: node.attributes().kind }).collect())
    }
    fn size(&self, _: Effort, _: &Interrupt) -> Result<Size, Error> {
        Err(hepfs::Error::NotAFile.into())
    }
}

impl Node for GatedNames {
    fn attributes(&self) -> Attributes {
        attributes(EntryKind::Directory, 0o555)
    }
    fn is_current(&self) -> bool {
        true
    }
    fn lookup(&self, _: &[u8], _: &Interrupt) -> Result<NodeRef, Error> {
        self.0.pass(None)?;
        Err(hepfs::Error::NotFound.into())
    }
}

impl Node for Link {
    fn attributes(&self) -> Attributes {
        attributes(EntryKind::Symlink, 0o777)
    }
    fn is_current(&self) -> bool {
        true
    }
    fn readlink(&self) -> Result<BString, Error> {
        Ok(self.0.clone())
    }
    fn size(&self, _: Effort, _: &Interrupt) -> Result<Size, Error> {
        Err(hepfs::Error::NotAFile.into())
    }
}

impl Node for File {
    fn attributes(&self) -> Attributes {
        match self.manner {
            Manner::Live(_) => attributes(EntryKind::LiveFile, 0o444),
            Manner::PanicsOnAttributes if self.exact.load(Ordering::SeqCst) => panic!("on purpose"),
            _ => attributes(EntryKind::File, 0o440),
        }
    }
    fn is_current(&self) -> bool {
        self.current.load(Ordering::SeqCst)
    }
    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        let length = self.bytes.len() as u64;
        let lazy = !matches!(
            self.manner,
            Manner::Plain
                | Manner::GatedRead(_)
                | Manner::DeafLater(_)
                | Manner::Short
                | Manner::Stretches(_)
                | Manner::PanicsOnRead
                | Manner::PanicsOnAttributes
        );
        if lazy && effort != Effort::Exact && !self.exact.load(Ordering::SeqCst) {
            return Ok(Size::AtMost(length * 3 + 100_000));
        }
        match &self.manner {
            Manner::Gated(gate) => gate.pass(Some(interrupt))?,
            Manner::Deaf(gate) => gate.pass(None)?,
            Manner::Damaged => return Err(hepfs::Error::Io("damaged on purpose".to_owned()).into()),
            Manner::PanicsOnOpen => panic!("on purpose"),
            _ => {}
        }
        self.exact.store(true, Ordering::SeqCst);
        Ok(Size::Exact(length))
    }
    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, interrupt: &Interrupt) -> Result<(), Error> {
        match &self.manner {
            Manner::PanicsOnRead => panic!("on purpose"),
            Manner::GatedRead(gate) => gate.pass(Some(interrupt))?,
            Manner::Stretches(read) => drop(read.fetch_add(length as u64, Ordering::SeqCst)),
            Manner::DeafLater(gate) if offset >= LATER => gate.pass(None)?,
            Manner::LateEnd if offset + length as u64 >= self.bytes.len() as u64 => {
                std::thread::sleep(Duration::from_millis(200));
            }
            Manner::Live(opens) => {
                let text = format!("opened {} times\n", opens.fetch_add(1, Ordering::SeqCst) + 1);
                answer.append(text.as_bytes(), 0, text.len());
                return Ok(());
            }
            _ => {}
        }
        let is_short = matches!(self.manner, Manner::Short);
        answer.append(&self.bytes, offset, if is_short { length / 2 } else { length });
        Ok(())
    }
    fn access(&self) -> AccessPattern {
        if let Manner::Stretches(_) = self.manner { AccessPattern::Stretches } else { AccessPattern::Any }
    }
    fn xattrs(&self, _: &Interrupt) -> Result<Box<dyn Xattrs>, Error> {
        Ok(Box::new(self.xattrs.clone()))
    }
}
