//! Rows of a column, from disk to Arrow: chunk maps, codecs, the chunk cache under one memory budget.
//!
//! | part | contents |
//! | --- | --- |
//! | [`Store`] | one per process: budget, caches, threads that decode ahead, counters |
//! | [`Rows`] | the trait behind every column |
//! | [`Opening`] | one opening of a source of any format, and facts learnt about it |
//! | [`File`] | an opened HDF5 file: an opening, its worker, the worker's answers |
//! | [`StoredDataset`] | its elements as one line of bytes, whatever their rank and layout |
//! | [`ElementBatch`] | elements with the content of their variable-length parts |
//!
//! The rooms, lowest first; a room imports from those above it in this table:
//!
//! | room | contents |
//! | --- | --- |
//! | `cores` | the cores of the processor, and loops over all of them |
//! | `memory` | the budget, buffers, caches, borrowed bytes |
//! | [`statistics`] | least and greatest values, nulls and NaN by blocks of rows |
//! | `rows` | the trait |
//! | `kept`, `decisions` | the user's cache folder; what a mount has decided to show |
//! | `opening` | openings of sources |
//! | `file` | the HDF5 file and its worker's answers |
//! | `heap` | the content of variable-length elements |
//! | [`decode`] | stored bytes become Arrow arrays |
//! | `chunked` | chunk maps, grids, decoding, prefetch |
//! | `dataset` | datasets of any layout, and rows of their elements |
//!
//! libhdf5 supplies the places of chunks (once per dataset) and everything that only it can read; the rest is `pread`
//! and [codecs](crate::codec) on this program's own threads.

mod ahead;
mod answer;
mod chunked;
mod cores;
mod counters;
mod dataset;
mod decisions;
pub mod decode;
mod error;
mod file;
mod heap;
mod kept;
pub(crate) mod memory;
mod opening;
pub(crate) mod rows;
mod span;
pub mod statistics;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use chunked::{ChunkKey, DecodingThreads, HeldMap, HeldMappings, Readers};
use decisions::Decisions;
use file::{Closed, Saver};
use heap::Collections;
use memory::ChunkBytes;

pub use answer::{Answer, AnswerPart};
pub(crate) use chunked::RequestStreams;
pub use cores::{cores, for_each_part, on_all_cores, on_threads};
pub use counters::{Counter, Counters};
#[cfg(test)]
pub(crate) use dataset::PlainElements;
pub(crate) use dataset::count_of;
pub use dataset::{DatasetRows, FieldRows, Reach, RowPart, StoredDataset, StoredStrings, StridedField};
pub use decode::{Tally, TallyCount, fixed_width};
pub use error::Error;
pub use file::{Damage, File};
pub use heap::{Cursor, ElementBatch, Heap, Resolved, Unresolved};
pub use kept::{KeptFolder, LearntError, LearntFile, LearntWriter, WrittenEntries};
pub use memory::{
    ARRAY_BYTES, Budget, Buffer, Cache, Flight, Lent, Reservation, Shortage, SingleFlight, keep_little, libc,
    machine_memory, share_heaps, try_memory,
};
pub use opening::{Opening, SourceConstancy};
pub use rows::{
    Alike, ChunkDecoding, Containers, EnumerationNames, Facts, Hints, Nan, RowRange, Rows, RowsContainer, StoredFacts,
    TextLength, ValueSet,
};
pub use rows::{
    Blocked, Cuts, Fitter, Fitting, SharedRows, for_each_array, for_each_counted, for_each_stored, numbered,
};
pub use rows::{Coded, StoredBytes, Summaries};
pub use span::{Span, StoredRun};

use crate::catalogue::ObjectId;
use crate::source::Identity;

/// Settings of a [`Store`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Most bytes of everything cached (`--cache-size`). Default: a quarter of the memory available to the process, at
    /// most 1 GiB.
    pub cache_size: u64,
    /// Bytes of the largest chunk to decode (`--max-chunk`). Default: half of that memory, at most 1 GiB.
    pub max_chunk: u64,
    /// Bytes of the largest array made of a single value: those of `--max-chunk`. Without that option, at most
    /// `cache_size` or [`Options::LARGEST_VALUE`], whichever is more.
    pub max_value: u64,
    /// Threads that decode ahead of sequential readers. Default: one per core.
    pub threads: usize,
    /// The decoder of filters and descriptors (`--decode`).
    pub decoder: Decoder,
    /// Whether integers that count time from a date are shown as instants (`--times`). Default: yes.
    pub times: bool,
    /// The meaning of NaN in a column of floats (`--nan`). Default: that of the software that wrote the column.
    pub nan: NanPolicy,
    /// The cache folder for facts about sources (`--cache-folder`); `None`: caches nothing across sessions.
    pub kept_folder: Option<PathBuf>,
    /// Most bytes of everything in that folder (`--cache-folder-size`). Default: 1 GiB.
    pub kept_size: u64,
}

impl Options {
    /// Bytes that a single value may always have, however small the budget is.
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
    /// A null if the software that wrote the table treats NaN so (pandas, AnnData, h5Seurat), otherwise a value.
    #[default]
    Auto,
    /// A null in every column.
    Null,
    /// A value in every column, unless it equals the file's fill value.
    Value,
}

/// The decoder of stored elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoder {
    /// hepfs itself, as far as possible.
    Own,
    /// libhdf5 alone, in its worker: slow, for a second opinion.
    Library,
}

/// The caches over all files, under one memory budget.
#[derive(Debug)]
pub struct Store {
    options: Options,
    budget: Budget,
    chunks: Cache<ChunkKey, ChunkBytes>,
    /// Chunks decoded together, ahead of their readers.
    stretches: Cache<ChunkKey, ChunkBytes>,
    maps: Cache<(u64, ObjectId), HeldMap>,
    mappings: Cache<(u64, ObjectId), HeldMappings>,
    collections: Collections,
    readers: Readers,
    threads: DecodingThreads,
    kept: KeptFolder,
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
            threads: DecodingThreads::new(options.threads),
            kept: options
                .kept_folder
                .clone()
                .map_or_else(KeptFolder::none, |folder| KeptFolder::new(folder, options.kept_size)),
            closed: Cache::new(&budget),
            saver: Saver::default(),
            decisions: Decisions::default(),
            counters: Counters::default(),
            budget,
            options,
        })
    }

    /// The memory budget; other caches may take their memory from it through a [`Cache`].
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Counts since the store was created.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Bytes of the largest chunk to decode.
    pub fn max_chunk(&self) -> u64 {
        self.options.max_chunk
    }

    /// Bytes of the largest array made of rows: the most that one value takes outside the budget.
    pub fn max_value(&self) -> u64 {
        self.options.max_value
    }

    /// Checks that an array of `bytes` bytes, of `what` at `path`, is within the limits.
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

    /// The cache folder. [`Opening::kept`] and [`Opening::keep`] use it with a source's identity.
    pub fn kept(&self) -> &KeptFolder {
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

    fn chunks(&self) -> &Cache<ChunkKey, ChunkBytes> {
        &self.chunks
    }

    fn stretches(&self) -> &Cache<ChunkKey, ChunkBytes> {
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

    /// Records a request for `bytes` of a dataset of `chunks` chunks, whose last chunk is `last`. Its reader `stops`
    /// where a column chunk ends, or may go on. Returns whether it comes from a sequential reader.
    pub(crate) fn note_reader(
        &self,
        streams: &RequestStreams,
        bytes: Range<u64>,
        (last, chunks): (u64, u64),
        stops: bool,
    ) -> bool {
        let length = bytes.end.saturating_sub(bytes.start);
        let Some(start) = streams.note(bytes, last, stops) else { return false };
        if last.saturating_add(1) >= chunks {
            self.readers.leave(streams, start);
        } else {
            self.readers.note(streams, start, length);
        }
        true
    }

    /// Each sequential reader's share of the budget, in bytes.
    fn part_of_reader(&self) -> u64 {
        self.readers.share(self.budget.limit())
    }

    /// Most bytes to decode ahead of a sequential reader: a quarter of its share. The rest is for the chunks at its
    /// position, ahead up to the end of a stretch, and behind it for late requests.
    pub(crate) fn ahead_of_reader(&self) -> u64 {
        self.part_of_reader() / 4
    }

    fn threads(&self) -> &DecodingThreads {
        &self.threads
    }

    /// Number of threads that decode ahead of readers.
    pub(crate) fn threads_ahead(&self) -> usize {
        self.threads.count()
    }

    /// Queues `job` on one of these threads; `false`: the queue is full. The reader that it serves will see its errors
    /// itself.
    pub(crate) fn decode_soon(&self, job: impl FnOnce() + Send + 'static) -> bool {
        self.threads.submit(job)
    }

    /// Drops the cache entries of an opening that has ended.
    fn forget(&self, file: u64) {
        self.chunks.retain(|key| key.file != file);
        self.stretches.retain(|key| key.file != file);
        self.maps.retain(|key| key.0 != file);
        self.mappings.retain(|key| key.0 != file);
        self.collections.forget(file);
    }
}
