//! Idle buffers, for reuse: a fresh one costs a page fault every 4 KiB, more than decoding into it.

use std::collections::BTreeMap;

use super::pages::ZeroedPages;

/// Idle buffers by length.
#[derive(Default)]
pub(super) struct Idle {
    by_length: BTreeMap<usize, Vec<ZeroedPages>>,
    bytes: u64,
}

/// Bytes to allocate for a buffer of `length` bytes, rounded so that buffers for compressed data, whose sizes all
/// differ, can replace each other.
pub(super) fn rounded(length: usize) -> usize {
    // An eighth of the next power of two, which wastes at most a quarter.
    let grain = length.checked_next_power_of_two().map_or(4096, |power| (power / 8).max(4096));
    length.checked_next_multiple_of(grain).unwrap_or(length)
}

/// Whether a buffer of `idle` bytes serves for `length`: it must not be much too long.
pub(super) fn serves(idle: usize, length: usize) -> bool {
    idle >= length && idle <= longest(length)
}

fn longest(length: usize) -> usize {
    rounded(length).saturating_mul(2)
}

impl Idle {
    /// Bytes of all idle buffers.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds an idle buffer.
    pub fn put(&mut self, buffer: ZeroedPages) {
        self.bytes += buffer.len() as u64;
        self.by_length.entry(buffer.len()).or_default().push(buffer);
    }

    /// The shortest buffer that serves for `length`.
    pub fn take(&mut self, length: usize) -> Option<ZeroedPages> {
        let (&found, _) = self.by_length.range(length..=longest(length)).next()?;
        self.take_exactly(found)
    }

    /// The longest buffer whose length `which` accepts.
    pub fn take_largest(&mut self, which: impl Fn(usize) -> bool) -> Option<ZeroedPages> {
        let length = self.by_length.keys().rev().copied().find(|length| which(*length))?;
        self.take_exactly(length)
    }

    fn take_exactly(&mut self, length: usize) -> Option<ZeroedPages> {
        let buffers = self.by_length.get_mut(&length)?;
        let buffer = buffers.pop();
        if buffers.is_empty() {
            self.by_length.remove(&length);
        }
        self.bytes -= buffer.as_ref().map_or(0, |buffer| buffer.len() as u64);
        buffer
    }

    /// Bytes to allocate for buffers of these sizes, taken one after the other.
    pub fn missing(&self, sizes: &[usize]) -> u64 {
        let mut taken: Vec<usize> = Vec::with_capacity(sizes.len());
        let mut missing = 0_u64;
        for size in sizes {
            let mut fitting = self.by_length.range(*size..=longest(*size));
            let free = fitting
                .find(|(length, buffers)| buffers.len() > taken.iter().filter(|taken| **taken == **length).count());
            match free {
                Some((length, _)) => taken.push(*length),
                None => missing = missing.saturating_add(rounded(*size) as u64),
            }
        }
        missing
    }
}
