//! Scratch memory for the blocks of a chunk between two steps of a codec.

use std::cell::RefCell;
use std::thread::LocalKey;

/// Most bytes that a thread keeps: the usual blocks of all formats are smaller, and allocating costs more than copying.
const KEPT: usize = 4 << 20;

/// A buffer that a thread keeps.
pub(super) type Space = RefCell<Vec<u8>>;

/// Lends `length` bytes of arbitrary content to `work`.
pub(super) fn lend<R>(space: &'static LocalKey<Space>, length: usize, work: impl FnOnce(&mut [u8]) -> R) -> R {
    space.with_borrow_mut(|kept| {
        if kept.len() < length {
            kept.resize(length, 0);
        }
        let result = work(&mut kept[..length]);
        if kept.capacity() > KEPT {
            *kept = Vec::new();
        }
        result
    })
}
