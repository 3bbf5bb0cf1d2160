//! A store of objects in memory. Objects have versions, and the store counts reads.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use hepfs::source::{
    Error, Identity, Interrupt, Listed, ObjectStore, ObjectVersion, Opener, RemoteObject, SourceKind, SourceStat, Stamp,
};
use parking_lot::Mutex;

/// Objects by their addresses. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Shelf(Arc<Shelved>);

#[derive(Debug, Default)]
struct Shelved {
    objects: Mutex<BTreeMap<PathBuf, Arc<Copy>>>,
    reads: AtomicU64,
    is_stalled: AtomicBool,
    is_broken: AtomicBool,
    /// Reads until one fails, which is the last of them. Zero or less: it has failed, or no read is to fail.
    until_failure: AtomicI64,
    /// Milliseconds that a read takes.
    delay: AtomicU64,
    /// Ranges that were planned.
    planned: Mutex<Vec<Range<u64>>>,
    /// Reads that were not planned.
    unplanned: AtomicU64,
}

/// One version of an object.
#[derive(Debug)]
struct Copy {
    address: PathBuf,
    stat: SourceStat,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct OpenCopy {
    shelf: Shelf,
    copy: Arc<Copy>,
}

impl Shelf {
    /// Opens files, and the objects of this store.
    pub fn opener(&self) -> Opener {
        Opener::new(Arc::new(self.clone()))
    }

    /// Puts bytes at an address, as a version of this number that was written at a time.
    pub fn put(&self, address: impl Into<PathBuf>, bytes: Vec<u8>, version: u64, written: SystemTime) {
        let address = address.into();
        let (key, version) = (address.to_str().unwrap(), ObjectVersion::Version(version.to_string()));
        let identity = Identity::of_object("memory", "", key, &version, bytes.len() as u64);
        let stamp = Stamp { times: [written; 3], mode: 0o444 };
        let stat = SourceStat { kind: SourceKind::File, identity, stamp };
        self.0.objects.lock().insert(address.clone(), Arc::new(Copy { address, stat, bytes }));
    }

    /// Lets all reads fail, or none.
    pub fn break_down(&self, is_broken: bool) {
        self.0.is_broken.store(is_broken, Ordering::SeqCst);
    }

    /// Lets one read fail, after this number of reads that succeed.
    pub fn fail_once_after(&self, reads: u64) {
        self.0.until_failure.store(reads as i64 + 1, Ordering::SeqCst);
    }

    /// Whether that read has failed.
    pub fn has_failed(&self) -> bool {
        self.0.until_failure.load(Ordering::SeqCst) < 1
    }

    /// Lets each read take this time.
    pub fn delay(&self, delay: Duration) {
        self.0.delay.store(delay.as_millis() as u64, Ordering::SeqCst);
    }

    /// How many ranges were read.
    pub fn reads(&self) -> u64 {
        self.0.reads.load(Ordering::SeqCst)
    }

    /// How many reads no plan had announced, since the last time that this was asked.
    pub fn unplanned(&self) -> u64 {
        self.0.unplanned.swap(0, Ordering::SeqCst)
    }

    /// Lets reads wait until they are interrupted, or answers them at once.
    pub fn stall(&self, is_stalled: bool) {
        self.0.is_stalled.store(is_stalled, Ordering::SeqCst);
    }
}

impl Shelved {
    fn find(&self, address: &Path) -> io::Result<Arc<Copy>> {
        self.objects.lock().get(address).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl ObjectStore for Shelf {
    fn open(&self, address: &Path, _: &Interrupt) -> Result<Arc<dyn RemoteObject>, Error> {
        let copy = self.0.find(address).map_err(|error| Error::Io { path: address.to_owned(), error })?;
        Ok(Arc::new(OpenCopy { shelf: self.clone(), copy }))
    }

    fn stat(&self, address: &Path) -> io::Result<SourceStat> {
        Ok(self.0.find(address)?.stat)
    }

    fn list(&self, folder: &Path, _: &Interrupt) -> Result<Arc<Vec<Listed>>, Error> {
        let objects = self.0.objects.lock();
        // An object and a folder may have one name.
        let mut members: BTreeMap<(&str, bool), SourceStat> = BTreeMap::new();
        for (address, copy) in objects.iter() {
            let Some(below) = address.to_str().unwrap().strip_prefix(folder.to_str().unwrap()) else { continue };
            match below.split_once('/') {
                Some((folder, _)) => {
                    members.insert((folder, true), SourceStat { kind: SourceKind::Folder, ..copy.stat })
                }
                None => members.insert((below, false), copy.stat),
            };
        }
        Ok(Arc::new(
            members.into_iter().map(|((name, _), stat)| Listed { name: name.into(), stat: Some(stat) }).collect(),
        ))
    }
}

impl RemoteObject for OpenCopy {
    fn stat(&self) -> SourceStat {
        self.copy.stat
    }

    fn read_at(&self, offset: u64, out: &mut [u8], interrupt: &Interrupt) -> Result<(), Error> {
        while self.shelf.0.is_stalled.load(Ordering::SeqCst) {
            interrupt.check()?;
            thread::sleep(Duration::from_millis(1));
        }
        self.shelf.0.reads.fetch_add(1, Ordering::SeqCst);
        let end = offset + out.len() as u64;
        if !self.shelf.0.planned.lock().iter().any(|planned| planned.start <= offset && end <= planned.end) {
            self.shelf.0.unplanned.fetch_add(1, Ordering::SeqCst);
        }
        thread::sleep(Duration::from_millis(self.shelf.0.delay.load(Ordering::SeqCst)));
        let fails = self.shelf.0.until_failure.fetch_sub(1, Ordering::SeqCst) == 1;
        if fails || self.shelf.0.is_broken.load(Ordering::SeqCst) {
            let (path, error) = (self.copy.address.clone(), io::Error::other("503 Service Unavailable"));
            return Err(Error::Io { path, error });
        }
        let now = self.shelf.0.find(&self.copy.address).ok();
        if !now.is_some_and(|now| Arc::ptr_eq(&now, &self.copy)) {
            return Err(Error::Changed(self.copy.address.clone()));
        }
        let start = usize::try_from(offset).unwrap();
        out.copy_from_slice(&self.copy.bytes[start..start + out.len()]);
        Ok(())
    }

    fn plan(&self, ranges: &[Range<u64>]) {
        let mut planned = self.shelf.0.planned.lock();
        for range in ranges.iter().cloned() {
            match planned.iter_mut().find(|known| known.start <= range.end && range.start <= known.end) {
                Some(known) => *known = known.start.min(range.start)..known.end.max(range.end),
                None => planned.push(range),
            }
        }
    }
}
