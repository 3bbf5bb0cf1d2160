//! Fetching: between what reads a source byte by byte and a client that asks a network for ranges.
//!
//! | part | contents |
//! | --- | --- |
//! | [`Fetcher`] | reads and plans of one object |
//! | [`Fetching`] | what the objects of a store share: requests in flight, their order, the bytes held |
//! | `object` | an object as stretches that do not overlap, so no byte is in flight twice |
//! | `stretch` | bytes that are queued, in flight or held; those who wait for them |
//! | `disk` | metadata in the cache folder, for other mounts |
//! | `measured` | delay and bandwidth, which say how much to have in flight |
//!
//! A thread that reads never holds a request: it waits for bytes that tasks of the runtime put into stretches, and
//! takes them as they come.
//!
//! ```text
//!  plan, read ─► missing stretches ─► queue ─► requests for close stretches ─► tasks ─► bytes ─► readers
//!                                     ▲ a stretch that a reader waits for goes first
//! ```
//!
//! - **Values** (planned, or 16 KiB and more at once) are fetched exactly, and go once they have been read: they are
//!   decoded and cached elsewhere.
//! - **Metadata** (less than 16 KiB) comes in blocks of 16 KiB, which double while neighbours are used, and stays while
//!   memory lasts.
//! - Bytes in flight, and those that arrived and were not read, stay within a *window* of twice delay × bandwidth. So
//!   requests end soon after their reader has stopped.
//! - A small object comes whole. The rest of a larger one comes in the background once waiting for its parts has cost
//!   more time than the rest would.
//! - Nothing is remembered of a range that failed, apart from that the store has another version. A store that was
//!   given up is left alone for a second.

mod counts;
mod disk;
mod measured;
mod object;
mod schedule;
mod stretch;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::remote::RangeClient;
use crate::source::{Error, Identity, Interrupt};

use object::{BLOCK, FetchedObject, Wanted};
use stretch::{Plan, Reading};

pub use counts::FetchCounts;
pub use schedule::Fetching;

/// How to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchSettings {
    /// Most requests in flight.
    pub connections: usize,
    /// Most bytes of an object to fetch without having been asked for them; 0: none.
    pub ahead: u64,
}

/// One version of an object, whose bytes are fetched when they are read, planned or likely to be.
#[derive(Debug)]
pub struct Fetcher {
    fetching: Arc<Fetching>,
    object: Arc<FetchedObject>,
    /// Whether it was read before.
    was_read: AtomicBool,
}

impl Fetcher {
    /// Reads the object of this identity through a client. Errors name it by its address.
    pub fn new(fetching: &Arc<Fetching>, client: Arc<dyn RangeClient>, identity: Identity, address: PathBuf) -> Self {
        let object = Arc::new(fetching.object(client, identity, address));
        Self { fetching: fetching.clone(), object, was_read: AtomicBool::new(false) }
    }

    /// Fills `out` from byte `offset` on; waits for the bytes. The range ends within the object.
    ///
    /// # Errors
    /// Those of [`RangeClient::get`], and [`Error::Interrupted`].
    pub fn read_at(&self, offset: u64, out: &mut [u8], interrupt: &Interrupt) -> Result<(), Error> {
        self.object.check()?;
        if !self.was_read.swap(true, Ordering::Relaxed) && self.comes_whole() {
            self.want(0..self.object.size(), Wanted::Kept, &self.object.rest);
        }
        let wanted = if (out.len() as u64) < BLOCK { Wanted::Blocks } else { Wanted::Exactly };
        let plan = Ends(Arc::default());
        let (mut done, mut has_waited) = (0, false);
        while done < out.len() {
            let at = offset + done as u64;
            let stretch = self.object.stretches.lock().at(at);
            let stretch = stretch.or_else(|| self.fetching.kept_on_disk(&self.object, at));
            let Some(stretch) = stretch else {
                // A request may have failed before its reader looked.
                self.object.check()?;
                self.object.failure().map_or(Ok(()), Err)?;
                self.want(at..offset + out.len() as u64, wanted, &plan.0);
                continue;
            };
            self.fetching.hurry(&self.object, &stretch);
            match stretch.read(at, &mut out[done..], interrupt)? {
                Reading::Gone => {}
                Reading::Copied { bytes, waited, is_spent } => {
                    done += bytes;
                    has_waited |= !waited.is_zero();
                    self.fetching.note_read(&self.object, &stretch, waited, is_spent);
                }
            }
        }
        if !has_waited {
            self.fetching.counts.memory_hits.add(1);
        }
        Ok(())
    }

    /// Whether the first read fetches all bytes.
    pub fn comes_whole(&self) -> bool {
        self.fetching.takes_whole(&self.object)
    }

    /// Announces bytes that will be read soon, in this order; never waits. What memory has no room for is left out.
    pub fn plan(&self, ranges: &[Range<u64>]) {
        if self.object.check().is_err() {
            return;
        }
        let plan = Arc::default();
        let stretches = ranges.iter().flat_map(|range| {
            let end = range.end.min(self.object.size());
            let wanted = if range.end.saturating_sub(range.start) < BLOCK { Wanted::Blocks } else { Wanted::Exactly };
            self.object.want(range.start..end, wanted, &plan, &self.fetching.counts)
        });
        self.fetching.plan(&self.object, stretches.collect());
    }

    fn want(&self, range: Range<u64>, wanted: Wanted, plan: &Arc<Plan>) {
        let stretches = self.object.want(range, wanted, plan, &self.fetching.counts);
        self.fetching.plan(&self.object, stretches);
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        self.fetching.close(&self.object);
    }
}

/// A plan that ends when its reader does.
struct Ends(Arc<Plan>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.end();
    }
}
