//! Writing what was held back, in an order in which a reader finds a whole file after each write.
//!
//! What is added must be there before something leads to it: the superblock's end of addresses, heaps with names, nodes, object
//! headers, in this order; where something is taken away, the other way round. Changes within one page of memory that follow
//! each other are one write, which a dying process does in full or not at all. So are the parts of structures that no order
//! keeps readable (the two of a local heap; a version 2 B-tree, whose parents say how long its checksummed nodes are), unless
//! they lie far apart: there only the journal helps.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::disk;
use super::overlay::Piece;
use crate::h5::journal::{self, Change};

/// A write within one is not torn by a dying process.
const PAGE: u64 = 4096;

/// Parts of one structure that must agree are one write where they lie within this of each other.
const REACH: u64 = 1 << 20;

// `H5FD_mem_t`
const SUPERBLOCK: i32 = 1;
const GLOBAL_HEAP: i32 = 4;
const LOCAL_HEAP: i32 = 5;

/// Commits pieces to the file, which then is `end` bytes long; answers how many writes that took.
pub(super) fn commit(file: &File, journal: &File, pieces: Vec<Piece>, end: u64, removes: bool) -> io::Result<u64> {
    let size = disk::length(file)?;
    if size < end {
        disk::set_len(file, end)?;
    }
    let changes = plan(file, pieces, removes)?;
    // What the changes will lead to must be on the disk before them.
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

/// The writes, in their order.
fn plan(file: &File, pieces: Vec<Piece>, removes: bool) -> io::Result<Vec<Change>> {
    let mut changes = Vec::new();
    for piece in pieces {
        let mut before = vec![0; piece.bytes.len()];
        file.read_exact_at(&mut before, piece.at)?;
        let differs = |at: &usize| before.get(*at) != piece.bytes.get(*at);
        let (first, last) = ((0..before.len()).find(differs), (0..before.len()).rfind(differs));
        let (Some(first), Some(last)) = (first, last) else { continue };
        let cut = |bytes: &[u8]| bytes.get(first..=last).unwrap_or_default().to_vec();
        let change = Change { at: piece.at + first as u64, before: cut(&before), after: cut(&piece.bytes) };
        changes.push((Rank::of(&piece), change));
    }
    changes.sort_by_key(|change| change.0);
    if removes {
        // Only the end of addresses never moves backwards.
        let rest = changes.iter().take_while(|change| change.0 == Rank::Superblock).count();
        changes.get_mut(rest..).unwrap_or_default().reverse();
    }
    let mut merged: Vec<(Rank, Change)> = Vec::new();
    for (rank, change) in changes {
        match merged.last_mut() {
            Some((of, last)) if of_one_page(last, &change) || of.agrees_with(rank) && is_near(last, &change) => {
                join(file, last, change)?;
                *of = rank;
            }
            _ => merged.push((rank, change)),
        }
    }
    Ok(merged.into_iter().map(|(_, change)| change).collect())
}

fn is_near(a: &Change, b: &Change) -> bool {
    a.at.abs_diff(b.at) < REACH
}

fn of_one_page(a: &Change, b: &Change) -> bool {
    let first = a.at.min(b.at);
    let end = (a.at + a.before.len() as u64).max(b.at + b.before.len() as u64);
    first / PAGE == (end - 1) / PAGE
}

/// Makes two changes one, with what lies between them.
fn join(file: &File, into: &mut Change, other: Change) -> io::Result<()> {
    let first = into.at.min(other.at);
    let end = (into.at + into.before.len() as u64).max(other.at + other.before.len() as u64);
    let mut before = vec![0; (end - first) as usize];
    file.read_exact_at(&mut before, first)?;
    let mut after = before.clone();
    for change in [&*into, &other] {
        let from = (change.at - first) as usize;
        if let Some(place) = after.get_mut(from..from + change.after.len()) {
            place.copy_from_slice(&change.after);
        }
    }
    *into = Change { at: first, before, after };
    Ok(())
}

/// What comes first where something is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Superblock,
    GlobalHeap,
    LocalHeap,
    /// Nodes of B-trees of version 1, those near the root first: what two parents lead to is found all the same.
    Tree(u8),
    Symbols,
    FractalHeap,
    Tree2,
    ObjectHeader,
}

impl Rank {
    fn of(piece: &Piece) -> Self {
        match piece.bytes.first_chunk::<4>() {
            _ if piece.kind == SUPERBLOCK => Rank::Superblock,
            _ if piece.kind == GLOBAL_HEAP => Rank::GlobalHeap,
            // Signature, kind of node, level.
            Some(b"TREE") => Rank::Tree(u8::MAX - piece.bytes.get(5).copied().unwrap_or(0)),
            Some(b"SNOD") => Rank::Symbols,
            Some(b"FHDB" | b"FHIB" | b"FRHP") => Rank::FractalHeap,
            Some(b"BTHD" | b"BTIN" | b"BTLF") => Rank::Tree2,
            _ if piece.kind == LOCAL_HEAP => Rank::LocalHeap,
            _ => Rank::ObjectHeader,
        }
    }

    /// Whether no order of the two keeps the structure readable that they are parts of.
    fn agrees_with(self, other: Self) -> bool {
        self == other && matches!(self, Rank::LocalHeap | Rank::Tree2)
    }
}
