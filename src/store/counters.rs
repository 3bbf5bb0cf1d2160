//! Counters of the store's work, for `.hepfs/stats`.

use std::sync::atomic::{AtomicU64, Ordering};

/// A monotone counter.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The sum so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts since the store was created.
#[derive(Debug, Default)]
pub struct Counters {
    /// Chunks decoded.
    pub chunks_decoded: Counter,
    /// Bytes that decoding produced.
    pub bytes_decoded: Counter,
    /// Bytes read from sources, except by workers.
    pub bytes_read: Counter,
    /// Those of the read bytes that the kernel passed from the source to a reader directly.
    pub bytes_passed_on: Counter,
    /// Cache hits of chunks.
    pub hits: Counter,
    /// Cache misses of chunks.
    pub misses: Counter,
    /// Chunks decoded ahead of a sequential reader.
    pub read_ahead: Counter,
    /// Reads requested from HDF5 workers.
    pub worker_reads: Counter,
    /// Bytes that workers returned.
    pub worker_bytes: Counter,
    /// Groups, objects, chunk maps and files described by workers.
    pub catalogue_asked: Counter,
    /// Descriptions found in memory or in the cache folder.
    pub catalogue_found: Counter,
    /// Global heap collections parsed.
    pub collections: Counter,
    /// Passes over all values of a view begun, for its exact size.
    pub passes: Counter,
    /// Rows whose values went into the statistics of their column.
    pub rows_observed: Counter,
    /// Blocks of 65,536 rows of a column whose statistics became known.
    pub blocks_learnt: Counter,
    /// Columns whose statistics the cache folder had.
    pub statistics_loaded: Counter,
    /// Columns whose statistics were written to the cache folder.
    pub statistics_kept: Counter,
    /// Entries found in the cache folder.
    pub kept_found: Counter,
    /// Entries written to the cache folder.
    pub kept_written: Counter,
}

impl Counters {
    /// All counts with their names, for `.hepfs/stats`.
    pub fn table(&self) -> [(&'static str, u64); 19] {
        [
            ("chunks_decoded", self.chunks_decoded.get()),
            ("bytes_decoded", self.bytes_decoded.get()),
            ("bytes_read", self.bytes_read.get()),
            ("bytes_passed_on", self.bytes_passed_on.get()),
            ("cache_hits", self.hits.get()),
            ("cache_misses", self.misses.get()),
            ("chunks_read_ahead", self.read_ahead.get()),
            ("worker_reads", self.worker_reads.get()),
            ("worker_bytes", self.worker_bytes.get()),
            ("catalogue_asked", self.catalogue_asked.get()),
            ("catalogue_found", self.catalogue_found.get()),
            ("heap_collections", self.collections.get()),
            ("passes", self.passes.get()),
            ("rows_observed", self.rows_observed.get()),
            ("blocks_learnt", self.blocks_learnt.get()),
            ("statistics_loaded", self.statistics_loaded.get()),
            ("statistics_kept", self.statistics_kept.get()),
            ("kept_found", self.kept_found.get()),
            ("kept_written", self.kept_written.get()),
        ]
    }
}
