//! Rows of a column, from disk to Arrow: chunk maps, codecs, the chunk cache under one memory budget.
//!
//! | part | what it is |
//! | --- | --- |
//! | [`Store`] | one for a process: budget, caches, threads that decode ahead, counters |
//! | [`Rows`] | what a column is made of |
//! | [`Opening`] | one opening of a source of any format, and what is learnt of it |
//! | [`File`] | an opened HDF5 file: an opening, its worker, what the worker said |
//! | [`Dataset`] | its elements as one line of bytes, whatever their rank and layout |
//! | [`ElementBatch`] | elements with what their variable-length parts lead to |
//!
//! The rooms, lowest first; a room imports from those above it in this table:
//!
//! | room | what is in it |
//! | --- | --- |
//! | `cores` | the cores of the processor, and loops over all of them |
//! | `memory` | the budget, buffers, caches, bytes lent |
//! | [`statistics`] | least and greatest values, missing rows and NaN by blocks of rows |
//! | `rows` | the trait |
//! | `learnt` | openings, [passes](pass), learners, the user's cache folder |
//! | `file` | the HDF5 file and what its worker said |
//! | `heap` | what variable-length elements lead to |
//! | [`decode`] | stored bytes become Arrow arrays |
//! | `chunked` | chunk maps, grids, decoding, prefetch |
//! | `dataset` | datasets of any layout, and rows of their elements |
//!
//! libhdf5 is asked where chunks lie (once for a dataset) and for what only it can read; everything else is `pread` and
//! [codecs](crate::codec) on our own threads.

mod answer;
mod chunked;
mod cores;
mod counters;
mod dataset;
pub mod decode;
mod error;
mod file;
mod heap;
mod learnt;
pub(crate) mod memory;
pub(crate) mod rows;
mod span;
pub mod statistics;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use chunked::{ChunkKey, HeldMap, HeldMappings, Readers, Threads};
use file::{Closed, Saver};
use heap::Collections;
use learnt::Decisions;
use memory::Block;

pub use answer::{Answer, AnswerPart};
pub(crate) use chunked::Streams;
pub use cores::{cores, for_each_part, on_all_cores};
pub use counters::{Counter, Counters};
pub(crate) use dataset::count_of;
pub use dataset::{Dataset, DatasetRows, FieldRows, Part, Place, Reach, StoredStrings};
pub use decode::{Count, Tally, fixed_width};
pub use error::Error;
pub use file::{Damage, File};
pub use heap::{Cursor, ElementBatch, Heap, Resolved, Unresolved};
pub use learnt::{Content, Kept, Learner, Observed, Opening, pass, rows_at_once};
pub use memory::{
    ARRAY_BYTES, Budget, Buffer, Cache, Flight, Lent, Reservation, Shortage, SingleFlight, keep_little, machine_memory,
    try_memory,
};
pub use rows::{
    Alike, Container, Containers, Decoded, Facts, Hints, Names, Nan, RowRange, Rows, StoredFacts, TextLength, ValueSet,
};
pub use rows::{Blocked, Cuts, Fitter, Fitting, Shared, for_each_array, for_each_counted, for_each_stored, numbered};
pub use rows::{Coded, StoredBytes, Summaries};
pub use span::{Span, StoredRun};

use crate::catalogue::ObjectId;
use crate::source::Identity;

/// Settings of a [`Store`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of everything kept (`--cache-size`): a quarter of the memory that the process may have, at most 1
    /// GiB.
    pub cache_size: u64,
    /// Bytes of the largest chunk that is decoded (`--max-chunk`): half of that memory, at most 1 GiB.
    pub max_chunk: u64,
    /// Bytes of the largest array that is made of one value: those of `--max-chunk`. Unless that was given, no more
    /// than are kept, or [`Options::LARGEST_VALUE`].
    pub max_value: u64,
    /// Threads that decode ahead of sequential readers: one for each core.
    pub threads: usize,
    /// The decoder of filters and descriptors (`--decode`).
    pub decoder: Decoder,
    /// Whether integers that count time from a date are shown as instants (`--times`): yes.
    pub times: bool,
    /// The meaning of NaN in a column of floats (`--nan`): that of the software that wrote it.
    pub nan: NanPolicy,
    /// Folder for what is kept of sources (`--cache-folder`); none, so nothing is kept.
    pub kept_folder: Option<PathBuf>,
    /// Bytes of everything in that folder (`--cache-folder-size`): 1 GiB.
    pub kept_size: u64,
}

impl Options {
    /// A value may always be as large as this, however small the budget is.
    pub const LARGEST_VALUE: u64 = 64 << 20;
}

impl Default for Options {
    fn default() -> Self {
        let (cache_size, max_chunk) = ((machine_memory() / 4).min(1 << 30), (machine_memory() / 2).min(1 << 30));
        Self {
            cache_size,
            max_chunk,
            max_value: max_chunk.min(cache_size.max(Self::LARGEST_VALUE)),
            threads: cores(),
            decoder: Decoder::Own,
            times: true,
            nan: NanPolicy::default(),
            kept_folder: None,
            kept_size: 1 << 30,
        }
    }
}

/// The meaning of NaN in a column of floats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum NanPolicy {
    /// A missing value where the software that wrote the table takes it for one (pandas, AnnData), else a value.
    #[default]
    Auto,
    /// A missing value in every column.
    Null,
    /// A value in every column, unless it is the fill value that the file states.
    Value,
}

/// The decoder of stored elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoder {
    /// This program, wherever it can.
    Own,
    /// libhdf5 alone, in its worker: slow, and a second opinion.
    Library,
}

/// Everything that is kept of all files, under one memory budget.
#[derive(Debug)]
pub struct Store {
    options: Options,
    budget: Budget,
    chunks: Cache<ChunkKey, Block>,
    /// Chunks decoded together, ahead of their readers.
    stretches: Cache<ChunkKey, Block>,
    maps: Cache<(u64, ObjectId), HeldMap>,
    mappings: Cache<(u64, ObjectId), HeldMappings>,
    collections: Collections,
    readers: Readers,
    threads: Threads,
    kept: Kept,
    /// Answers about closed files.
    closed: Cache<Identity, Closed>,
    saver: Saver,
    decisions: Decisions,
    counters: Counters,
}

impl Store {
    /// An empty store.
    pub fn new(options: Options) -> Arc<Self> {
        let budget = Budget::new(options.cache_size);
        Arc::new(Self {
            chunks: Cache::new(&budget),
            stretches: Cache::new(&budget),
            maps: Cache::new(&budget),
            mappings: Cache::new(&budget),
            collections: Collections::new(&budget),
            readers: Readers::default(),
            threads: Threads::new(options.threads),
            kept: options.kept_folder.clone().map_or_else(Kept::none, |folder| Kept::new(folder, options.kept_size)),
            closed: Cache::new(&budget),
            saver: Saver::default(),
            decisions: Decisions::default(),
            counters: Counters::default(),
            budget,
            options,
        })
    }

    /// The memory budget; make a [`Cache`] over it to keep something else under it.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Counts since the store was made.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Bytes of the largest chunk that is decoded.
    pub fn max_chunk(&self) -> u64 {
        self.options.max_chunk
    }

    /// Bytes of the largest array that is made of rows: what one value takes at most beside the budget.
    pub fn max_value(&self) -> u64 {
        self.options.max_value
    }

    /// Admits an array of `bytes` bytes, of `what` at `path`.
    ///
    /// # Errors
    /// [`Error::TooLarge`] past [`Store::max_value`], [`Error::NoMemory`].
    pub(crate) fn admit(&self, path: &str, bytes: u64, what: impl FnOnce() -> String) -> Result<(), Error> {
        let limit = self.max_value();
        if bytes > limit {
            return Err(Error::TooLarge { path: path.to_owned(), what: what(), bytes, limit, option: "--max-chunk" });
        }
        try_memory(bytes)
    }

    /// The decoder of stored elements.
    pub fn decoder(&self) -> Decoder {
        self.options.decoder
    }

    /// Whether integers that count time from a date are shown as instants.
    pub fn shows_times(&self) -> bool {
        self.options.times
    }

    /// The meaning of NaN in a column of floats.
    pub fn nan(&self) -> NanPolicy {
        self.options.nan
    }

    /// Entries about sources in the cache folder. [`Opening::kept`] and [`Opening::keep`] go with a source's identity.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    fn closed(&self) -> &Cache<Identity, Closed> {
        &self.closed
    }

    fn saver(&self) -> &Saver {
        &self.saver
    }

    fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    fn chunks(&self) -> &Cache<ChunkKey, Block> {
        &self.chunks
    }

    fn stretches(&self) -> &Cache<ChunkKey, Block> {
        &self.stretches
    }

    fn maps(&self) -> &Cache<(u64, ObjectId), HeldMap> {
        &self.maps
    }

    fn mappings(&self) -> &Cache<(u64, ObjectId), HeldMappings> {
        &self.mappings
    }

    fn collections(&self) -> &Collections {
        &self.collections
    }

    /// Notes a request for `bytes` of a dataset of `chunks` chunks, whose last chunk is `last`. Returns whether it is
    /// one of a sequential reader.
    pub(crate) fn note_reader(&self, streams: &Streams, bytes: Range<u64>, last: u64, chunks: u64) -> bool {
        let length = bytes.end.saturating_sub(bytes.start);
        let Some(start) = streams.note(bytes, last) else { return false };
        if last.saturating_add(1) >= chunks {
            self.readers.leave(streams, start);
        } else {
            self.readers.note(streams, start, length);
        }
        true
    }

    /// The part of the budget, in bytes, of each sequential reader.
    fn part_of_reader(&self) -> u64 {
        self.readers.share(self.budget.limit())
    }

    /// Bytes that may be decoded ahead of a sequential reader: a quarter of its part. As much again lies where it is,
    /// beyond that up to the end of a stretch, and behind it for late requests.
    pub(crate) fn ahead_of_reader(&self) -> u64 {
        self.part_of_reader() / 4
    }

    fn threads(&self) -> &Threads {
        &self.threads
    }

    /// Threads that decode ahead of readers.
    pub(crate) fn threads_ahead(&self) -> usize {
        self.threads.count()
    }

    /// Does `job` soon on one of these threads; `false` where too many wait already. What it meets is met again by the
    /// reader it works for.
    pub(crate) fn decode_soon(&self, job: impl FnOnce() + Send + 'static) -> bool {
        self.threads.submit(job)
    }

    /// Drops what is cached of an opening that has ended.
    fn forget(&self, file: u64) {
        self.chunks.retain(|key| key.file != file);
        self.stretches.retain(|key| key.file != file);
        self.maps.retain(|key| key.0 != file);
        self.mappings.retain(|key| key.0 != file);
        self.collections.forget(file);
    }
}
