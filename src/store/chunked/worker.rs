//! Reads chunks through the worker, in bounded pieces: those that only libhdf5 can read.

use std::sync::Arc;

use super::grid::{Area, boxes};
use super::{ChunkReader, Chunks};
use crate::catalogue::{Elements, product};
use crate::h5::{self, Region};
use crate::source::{Interrupt, Interrupted};
use crate::store::Error;
use crate::store::heap::{Move, relocate};
use crate::store::memory::ChunkBytes;

/// Bytes of elements per request: half of the limit of a reply, to leave room for the content of descriptors.
const REQUEST: u64 = 8 << 20;

/// Bytes of a piece of an unchunked dataset.
pub(in crate::store) const PIECE: u64 = 1 << 20;

/// Elements of a piece if they vary in length: the size of their content is unknown in advance.
pub(in crate::store) const VARIABLE_PIECE: u64 = 4096;

/// Reads a whole chunk: its part within the extent; the rest stays zero.
pub(super) fn read_chunk(chunks: &Chunks, index: u64, interrupt: &Interrupt) -> Result<ChunkBytes, Error> {
    let store = chunks.file.store();
    let overflow = || Error::unsupported(&chunks.path, "the size of a chunk passes 2^64");
    let length = usize::try_from(chunks.grid.chunk_bytes()).map_err(|_| overflow())?;
    let size = chunks.datatype.size;
    let variable = chunks.datatype.has_descriptors();
    let (region, extent) = chunks.grid.region(index);
    let count = product(&region.count).ok_or_else(overflow)?;
    let (lease, [mut bytes]) = store.budget().lease([length], interrupt)?;
    bytes.fill(0);
    let mut heap = Vec::new();
    let mut todo = vec![(0, count)];
    while let Some((first, elements)) = todo.pop() {
        interrupt.check()?;
        let most = (REQUEST / size.max(1)).max(1);
        if elements > most {
            todo.push((first + most, elements - most));
            todo.push((first, most));
            continue;
        }
        for area in areas(&region.count, first, elements) {
            let at = Region {
                start: region.start.iter().zip(&area.start).map(|(a, b)| a + b).collect(),
                count: area.count.clone(),
            };
            let mut answer = match chunks.file.client().read(chunks.id, &at, interrupt) {
                Ok(answer) => answer,
                // Variable-length content may be large: retry with fewer elements.
                Err(h5::Error::TooLarge { .. }) if elements > 1 => {
                    let half = elements / 2;
                    todo.push((first + half, elements - half));
                    todo.push((first, half));
                    break;
                }
                Err(error) => return Err(explain(chunks, error)),
            };
            store.counters().worker_reads.add(1);
            store.counters().worker_bytes.add((answer.bytes.len() + answer.heap.len()) as u64);
            let expected = product(&area.count).and_then(|n| n.checked_mul(size));
            if expected != Some(answer.bytes.len() as u64) {
                let reason = "libhdf5 returned another number of bytes than requested";
                return Err(Error::unsupported(&chunks.path, reason));
            }
            if variable {
                let address_size = chunks.file.info().address_size;
                let to = Move { base: heap.len() as u64, index: 0, address_size };
                relocate(&chunks.datatype, &mut answer, to)
                    .map_err(|reason| Error::unsupported(&chunks.path, reason))?;
            }
            let Elements { bytes: dense, heap: part } = answer;
            let all = heap.len() as u64 + part.len() as u64;
            store.admit(&chunks.path, all, || "what the elements of a chunk lead to".into())?;
            heap.extend(part);
            scatter(&area, extent, size, &dense, &mut bytes).ok_or_else(overflow)?;
        }
    }
    chunks.file.check()?;
    let heap = if heap.is_empty() {
        None
    } else {
        let held = store.budget().charge(heap.capacity() as u64);
        Some(Arc::new((heap, held)))
    };
    drop(lease);
    Ok(ChunkBytes { bytes, heap })
}

/// The boxes that elements `first..first + count` of an array form; a scalar is one box without dimensions.
fn areas(shape: &[u64], first: u64, count: u64) -> Vec<Area> {
    if shape.is_empty() { vec![Area { start: vec![], count: vec![] }] } else { boxes(shape, first, count) }
}

/// Copies the elements of a box into a chunk of shape `extent`; `None`: they do not fit.
fn scatter(area: &Area, extent: &[u64], size: u64, dense: &[u8], chunk: &mut [u8]) -> Option<()> {
    let Some((row, outer)) = area.count.split_last() else {
        chunk.get_mut(..dense.len())?.copy_from_slice(dense);
        return Some(());
    };
    let row = usize::try_from(row.checked_mul(size)?).ok().filter(|row| *row > 0)?;
    let mut at = vec![0u64; outer.len()];
    for source in dense.chunks_exact(row) {
        let mut element = 0u64;
        let steps = at.iter().chain([&0]);
        for ((extent, start), step) in extent.iter().zip(&area.start).zip(steps) {
            element = element.checked_mul(*extent)?.checked_add(start + step)?;
        }
        let start = usize::try_from(element.checked_mul(size)?).ok()?;
        chunk.get_mut(start..start.checked_add(row)?)?.copy_from_slice(source);
        for (at, count) in at.iter_mut().zip(outer).rev() {
            *at += 1;
            if *at < *count {
                break;
            }
            *at = 0;
        }
    }
    Some(())
}

/// The worker's error, with advice.
fn explain(chunks: &Chunks, error: h5::Error) -> Error {
    let path = chunks.path.clone();
    match (error, &chunks.reader) {
        (h5::Error::Interrupted, _) => Interrupted.into(),
        (h5::Error::Hdf5(reason), ChunkReader::Worker { filter: Some(filter) }) => {
            // Filters that libhdf5 lacks were rejected earlier: this one failed on its data.
            let reason = format!("filter {} ({}): {reason}", filter.id, filter.name);
            Error::unsupported(path, reason)
        }
        (error, _) => Error::Hdf5 { path, error },
    }
}
