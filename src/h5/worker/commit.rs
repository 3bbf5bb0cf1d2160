//! Writing what was held back, in an order in which a reader finds a whole file after each write.
//!
//! What is added must be there before something leads to it: the superblock's end of addresses, heaps with names, nodes, object
//! headers, in this order; where something is taken away, the other way round. Changes within one page of memory that follow
//! each other are one write, which a dying process does in full or not at all.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::disk;
use super::overlay::Piece;
use crate::h5::journal::{self, Change};

/// A write within one is not torn by a dying process.
const PAGE: u64 = 4096;

/// `H5FD_MEM_SUPER` and others.
const SUPERBLOCK: i32 = 1;
const GLOBAL_HEAP: i32 = 4;

/// Commits pieces to the file, which then is `end` bytes long; answers how many writes that took.
pub(super) fn commit(
    file: &File,
    journal: &File,
    pieces: Vec<Piece>,
    end: u64,
    removes: bool,
    length_size: u8,
) -> io::Result<u64> {
    let size = file.metadata()?.len();
    if size < end {
        disk::set_len(file, end)?;
    }
    let changes = plan(file, pieces, removes, length_size)?;
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
fn plan(file: &File, pieces: Vec<Piece>, removes: bool, length_size: u8) -> io::Result<Vec<Change>> {
    let mut changes = Vec::new();
    for piece in pieces {
        let rank = Rank::of(&piece);
        let mut before = vec![0; piece.bytes.len()];
        file.read_exact_at(&mut before, piece.at)?;
        let differ = |at: &usize| before.get(*at) != piece.bytes.get(*at);
        let (Some(first), Some(last)) = ((0..before.len()).find(&differ), (0..before.len()).rev().find(&differ)) else {
            continue;
        };
        let header = (rank == Rank::LocalHeap && piece.bytes.starts_with(b"HEAP"))
            .then(|| piece.at + 8 + u64::from(length_size));
        let cut = |bytes: &[u8]| bytes.get(first..=last).unwrap_or_default().to_vec();
        let change = Change { at: piece.at + first as u64, before: cut(&before), after: cut(&piece.bytes) };
        changes.push((rank, header, change));
    }
    if removes {
        // Only the end of addresses never moves backwards.
        changes.sort_by(|a, b| (b.0 == Rank::Superblock).cmp(&(a.0 == Rank::Superblock)).then(b.0.cmp(&a.0)));
    } else {
        changes.sort_by(|a, b| a.0.cmp(&b.0));
    }
    let heaps = changes.iter().filter(|change| change.0 == Rank::LocalHeap).count();
    let headers: Vec<u64> = changes.iter().filter_map(|change| change.1).collect();
    let mut merged: Vec<Change> = Vec::new();
    for (_, _, change) in changes {
        match merged.last_mut() {
            Some(last) if of_one_page(last, &change) => join(file, last, change)?,
            _ => merged.push(change),
        }
    }
    let _ = (heaps, headers);
    Ok(merged)
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
    FractalHeap,
    /// Nodes of B-trees, those near the root first: what a parent leads to twice is found all the same.
    Tree(u8),
    Symbols,
    ObjectHeader,
}

impl Rank {
    fn of(piece: &Piece) -> Self {
        match piece.bytes.first_chunk::<4>() {
            _ if piece.kind == SUPERBLOCK => Rank::Superblock,
            _ if piece.kind == GLOBAL_HEAP => Rank::GlobalHeap,
            Some(b"TREE") => Rank::Tree(u8::MAX - piece.bytes.get(5).copied().unwrap_or(0)),
            Some(b"SNOD") => Rank::Symbols,
            Some(b"FHDB" | b"FHIB" | b"FRHP") => Rank::FractalHeap,
            Some(b"BTHD" | b"BTIN" | b"BTLF") => Rank::Tree(u8::MAX),
            _ if piece.kind == 5 => Rank::LocalHeap,
            _ => Rank::ObjectHeader,
        }
    }
}
