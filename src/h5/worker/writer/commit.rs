//! Writes the held-back changes, in an order in which a reader finds a complete file after each write.
//!
//! Whatever a change adds must be there before anything points to it: the superblock's end of addresses, heaps with
//! names, nodes, object headers, in this order; a removal goes the other way round. Consecutive changes within one page
//! of memory become one write, which a dying process does completely or not at all. Some structures have parts that no
//! order keeps readable: the two parts of a local heap; a version 2 B-tree, whose parents have the lengths of its
//! checksummed nodes; the pieces of an object header, between which messages move. Their parts also become one write,
//! unless they are far apart: then only the journal helps.

use std::cmp::Reverse;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::h5::worker::driver::disk;
use crate::h5::worker::driver::overlay::OverlayWrite;
use crate::h5::writing::journal::{self, JournalChange};

/// A dying process does not tear a write within one page.
const PAGE: u64 = 4096;

/// Parts of one structure that must agree become one write if they are within this distance of each other.
const REACH: u64 = 64 << 10;

// `H5FD_mem_t`
const SUPERBLOCK: i32 = 1;
const DATA: i32 = 3;
const GLOBAL_HEAP: i32 = 4;
const LOCAL_HEAP: i32 = 5;

/// Commits pieces to the file, which then is `end` bytes long; returns the number of writes.
pub(super) fn commit(
    file: &File,
    journal: &File,
    pieces: Vec<OverlayWrite>,
    end: u64,
    removes: bool,
) -> io::Result<u64> {
    let size = disk::length(file)?;
    if size < end {
        disk::set_len(file, end)?;
    }
    let changes = plan(file, pieces, removes)?;
    // The targets of the changes must be on the disk before the changes.
    disk::sync(file)?;
    disk::write_all_at(journal, &journal::encode(&changes), 0)?;
    disk::sync(journal)?;
    for change in &changes {
        disk::write_all_at(file, &change.after, change.at)?;
    }
    disk::sync(file)?;
    disk::set_len(journal, 0)?;
    if size > end {
        disk::set_len(file, end)?;
    }
    Ok(changes.len() as u64)
}

/// Plans the writes, in their order.
fn plan(file: &File, pieces: Vec<OverlayWrite>, removes: bool) -> io::Result<Vec<JournalChange>> {
    let mut changes = Vec::new();
    for piece in pieces {
        let mut before = vec![0; piece.bytes.len()];
        file.read_exact_at(&mut before, piece.at)?;
        let differs = |at: &usize| before.get(*at) != piece.bytes.get(*at);
        let (first, last) = ((0..before.len()).find(differs), (0..before.len()).rfind(differs));
        let (Some(first), Some(last)) = (first, last) else { continue };
        let cut = |bytes: &[u8]| bytes.get(first..=last).unwrap_or_default().to_vec();
        let change = JournalChange { at: piece.at + first as u64, before: cut(&before), after: cut(&piece.bytes) };
        changes.push((Rank::of(&piece), change));
    }
    // Changes of one rank stay in the order of their offsets: messages of an object header move only to its earlier
    // parts.
    if removes {
        // Only the end of addresses never moves backwards.
        changes.sort_by_key(|change| (change.0 != Rank::Superblock, Reverse(change.0)));
    } else {
        changes.sort_by_key(|change| change.0);
    }
    let mut groups: Vec<Group> = Vec::new();
    for (rank, change) in changes {
        match groups.last_mut() {
            Some(last) if last.takes(rank, &change) => last.add(rank, change),
            _ => groups.push(Group { rank, at: change.at, end: change.end(), changes: vec![change] }),
        }
    }
    let mut writes = Vec::with_capacity(groups.len());
    for group in groups {
        let write = group.write(file, &writes)?;
        writes.push(write);
    }
    Ok(writes)
}

/// Changes that become one write, with the bytes between them.
struct Group {
    /// The rank of the last change.
    rank: Rank,
    at: u64,
    end: u64,
    changes: Vec<JournalChange>,
}

impl Group {
    fn takes(&self, rank: Rank, change: &JournalChange) -> bool {
        let (at, end) = (self.at.min(change.at), self.end.max(change.end()));
        at / PAGE == (end - 1) / PAGE || self.rank.agrees_with(rank) && end - at < REACH
    }

    fn add(&mut self, rank: Rank, change: JournalChange) {
        (self.rank, self.at, self.end) = (rank, self.at.min(change.at), self.end.max(change.end()));
        self.changes.push(change);
    }

    /// Makes the write. Earlier writes may have changed the bytes between the changes.
    fn write(&self, file: &File, earlier: &[JournalChange]) -> io::Result<JournalChange> {
        let mut before = vec![0; (self.end - self.at) as usize];
        file.read_exact_at(&mut before, self.at)?;
        earlier.iter().for_each(|change| change.apply(self.at, &mut before));
        let mut after = before.clone();
        self.changes.iter().for_each(|change| change.apply(self.at, &mut after));
        Ok(JournalChange { at: self.at, before, after })
    }
}

/// The order in which additions are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Superblock,
    GlobalHeap,
    LocalHeap,
    /// Nodes of version 1 B-trees, those near the root first: a search finds the target of two parents all the same.
    Tree(u8),
    Symbols,
    FractalHeap,
    Tree2,
    ObjectHeader,
    /// Overwritten elements; new ones are beyond the end of the file, and not held back.
    Data,
}

impl Rank {
    fn of(piece: &OverlayWrite) -> Self {
        match piece.bytes.first_chunk::<4>() {
            _ if piece.kind == SUPERBLOCK => Rank::Superblock,
            _ if piece.kind == GLOBAL_HEAP => Rank::GlobalHeap,
            _ if piece.kind == DATA => Rank::Data,
            // Signature, kind of node, level.
            Some(b"TREE") => Rank::Tree(u8::MAX - piece.bytes.get(5).copied().unwrap_or(0)),
            Some(b"SNOD") => Rank::Symbols,
            Some(b"FHDB" | b"FHIB" | b"FRHP") => Rank::FractalHeap,
            Some(b"BTHD" | b"BTIN" | b"BTLF") => Rank::Tree2,
            _ if piece.kind == LOCAL_HEAP => Rank::LocalHeap,
            _ => Rank::ObjectHeader,
        }
    }

    /// Whether the two are parts of a structure that no order of them keeps readable.
    fn agrees_with(self, other: Self) -> bool {
        self == other && matches!(self, Rank::LocalHeap | Rank::Tree2 | Rank::ObjectHeader)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn piece(at: u64, signature: &[u8], length: usize, kind: i32) -> OverlayWrite {
        let mut bytes = signature.to_vec();
        bytes.resize(length, 0xee);
        OverlayWrite { at, bytes, kind }
    }

    proptest! {
        /// However writes are joined, in the end the file is the result of all pieces, and undoing the writes restores
        /// the file.
        #[test]
        fn the_writes_are_the_pieces(
            places in prop::collection::btree_map(0u64..40, (0usize..6, 8usize..300), 1..12),
            removes in any::<bool>(),
        ) {
            let file = tempfile::tempfile().unwrap();
            let original: Vec<u8> = (0..40 * 300).map(|i| (i % 251) as u8).collect();
            file.write_all_at(&original, 0).unwrap();
            let kinds: [(&[u8], i32); 6] =
                [(b"HEAP", 5), (b"BTHD", 2), (b"BTLF", 2), (b"FHDB", 5), (b"SNOD", 2), (b"OCHK", 6)];
            let mut expected = original.clone();
            let pieces: Vec<OverlayWrite> = places.iter().map(|(place, (kind, length))| {
                let (signature, kind) = kinds[*kind];
                piece(place * 300, signature, *length, kind)
            }).collect();
            for piece in &pieces {
                expected[piece.at as usize..piece.end() as usize].copy_from_slice(&piece.bytes);
            }
            let writes = plan(&file, pieces, removes).unwrap();
            let mut now = original.clone();
            for write in &writes {
                prop_assert_eq!(&now[write.at as usize..write.end() as usize], &write.before[..]);
                write.apply(0, &mut now);
            }
            prop_assert_eq!(&now, &expected);
        }
    }

    #[test]
    fn parents_come_first_and_the_end_of_addresses_before_all() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let far = |number: u64, signature: &[u8], kind| piece(number * 100_000, signature, 16, kind);
        let pieces =
            || vec![far(1, b"x", 6), far(2, b"SNOD", 2), far(3, b"TREE", 2), far(4, b"HEAP", 5), far(5, b"x", 1)];
        let order = |removes| {
            let writes = plan(&file, pieces(), removes).unwrap();
            writes.iter().map(|write| write.at / 100_000).collect::<Vec<_>>()
        };
        assert_eq!(order(false), [5, 4, 3, 2, 1]);
        assert_eq!(order(true), [5, 1, 2, 3, 4]);
    }
}
