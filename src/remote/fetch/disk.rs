//! ByteStretches in the cache folder, so that another mount need not fetch them.
//!
//! Those that stay after having been read are kept: metadata, small objects, what was fetched in the background. Values
//! that are read once would only push them out. Each is an entry of its own, and one more says where they lie: an entry
//! that is damaged or gone is fetched again.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::source::Identity;
use crate::store::KeptFolder;

/// The entry that says which stretches of an object are kept.
const PLACES: &str = "stretches fetched";

/// Most bytes that wait to be written. A disk that is slower than the network keeps less.
const MOST_WAITING: usize = 32 << 20;

/// Most stretches of an object.
const MOST_PLACES: usize = 1 << 16;

/// How long written stretches wait for more, before the entry of their places is written.
const PAUSE: Duration = Duration::from_millis(500);

/// The stretches that the cache folder keeps.
#[derive(Debug)]
pub(super) struct Disk {
    kept: KeptFolder,
    waiting: Mutex<Waiting>,
    /// Held while stretches are written.
    writing: Mutex<()>,
}

#[derive(Debug, Default)]
struct Waiting {
    stretches: VecDeque<(Arc<KeptPlaces>, u64, Vec<u8>)>,
    bytes: usize,
    is_written: bool,
}

/// Where the kept stretches of an object lie.
#[derive(Debug)]
pub(super) struct KeptPlaces {
    pub identity: Identity,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    /// First byte and end.
    places: BTreeMap<u64, u64>,
    is_new: bool,
}

impl Disk {
    pub fn new(kept: KeptFolder) -> Arc<Self> {
        Arc::new(Self { kept, waiting: Mutex::default(), writing: Mutex::default() })
    }

    /// Looks up which stretches of an object are kept.
    pub fn places(&self, identity: Identity) -> Arc<KeptPlaces> {
        Arc::new(KeptPlaces { identity, known: Mutex::new(Known { places: self.load(&identity), is_new: false }) })
    }

    fn load(&self, identity: &Identity) -> BTreeMap<u64, u64> {
        let entry = self.kept.get(identity, PLACES);
        let places: Option<Vec<(u64, u64)>> = entry.and_then(|entry| postcard::from_bytes(&entry).ok());
        places.unwrap_or_default().into_iter().filter(|(start, end)| start < end && *end <= identity.size).collect()
    }

    /// A kept stretch that has byte `at`.
    pub fn get(&self, places: &KeptPlaces, at: u64) -> Option<(Range<u64>, Vec<u8>)> {
        let range = places.with(at)?;
        let bytes = self.kept.get(&places.identity, &what(range.start));
        let bytes = bytes.filter(|bytes| bytes.len() as u64 == range.end - range.start);
        if bytes.is_none() {
            places.known.lock().places.remove(&range.start);
        }
        Some((range, bytes?))
    }

    /// Keeps a stretch, if the disk is fast enough; does not wait for it.
    pub fn keep(self: &Arc<Self>, places: &Arc<KeptPlaces>, start: u64, bytes: &[u8], runtime: &Handle) {
        let mut waiting = self.waiting.lock();
        if self.kept.folder().is_none() || waiting.bytes + bytes.len() > MOST_WAITING {
            return;
        }
        waiting.bytes += bytes.len();
        waiting.stretches.push_back((places.clone(), start, bytes.to_vec()));
        if !std::mem::replace(&mut waiting.is_written, true) {
            let disk = self.clone();
            runtime.spawn_blocking(move || disk.write_for_a_while());
        }
    }

    fn write_for_a_while(&self) {
        let mut written: Vec<Arc<KeptPlaces>> = Vec::new();
        loop {
            for places in self.write() {
                if !written.iter().any(|other| Arc::ptr_eq(other, &places)) {
                    written.push(places);
                }
            }
            std::thread::sleep(PAUSE);
            let mut waiting = self.waiting.lock();
            if waiting.stretches.is_empty() {
                waiting.is_written = false;
                break;
            }
        }
        written.iter().for_each(|places| self.save(places));
    }

    /// Writes the stretches that wait; returns whose they are.
    fn write(&self) -> Vec<Arc<KeptPlaces>> {
        let _turn = self.writing.lock();
        let mut written = Vec::new();
        loop {
            let mut waiting = self.waiting.lock();
            let Some((places, start, bytes)) = waiting.stretches.pop_front() else { return written };
            waiting.bytes -= bytes.len();
            drop(waiting);
            if places.known.lock().places.len() < MOST_PLACES && self.kept.put(&places.identity, &what(start), &bytes) {
                let mut known = places.known.lock();
                known.places.insert(start, start + bytes.len() as u64);
                known.is_new = true;
                drop(known);
                written.push(places);
            }
        }
    }

    /// Writes where the stretches of an object lie, if that is new. Another process may have added others.
    fn save(&self, places: &KeptPlaces) {
        // A reader that looks up a place waits for no disk.
        if std::mem::take(&mut places.known.lock().is_new) {
            let others = self.load(&places.identity);
            let mut known = places.known.lock();
            for (start, end) in others {
                known.places.entry(start).or_insert(end);
            }
            let all: Vec<(u64, u64)> = known.places.iter().map(|(start, end)| (*start, *end)).collect();
            drop(known);
            let entry = postcard::to_stdvec(&all).unwrap_or_default();
            self.kept.put(&places.identity, PLACES, &entry);
        }
    }

    /// Writes what waits, and where the stretches of an object lie.
    pub fn finish(&self, places: &KeptPlaces) {
        drop(self.write());
        self.save(places);
    }
}

fn what(start: u64) -> String {
    format!("bytes from {start}")
}

impl KeptPlaces {
    /// The kept stretch that has byte `at`.
    pub fn with(&self, at: u64) -> Option<Range<u64>> {
        let known = self.known.lock();
        let (start, end) = known.places.range(..=at).next_back()?;
        (*end > at).then_some(*start..*end)
    }

    /// The gap around byte `at`, which no kept stretch has.
    pub fn gap(&self, at: u64) -> Range<u64> {
        let known = self.known.lock();
        let start = known.places.range(..=at).next_back().map_or(0, |(_, end)| *end);
        start..known.places.range(at..).next().map_or(self.identity.size, |(start, _)| *start)
    }

    /// Bytes of all kept stretches.
    pub fn bytes(&self) -> u64 {
        self.known.lock().places.iter().map(|(start, end)| end - start).fold(0, u64::saturating_add)
    }
}
