//! The memory that buffers are made of.

use std::ops::{Deref, DerefMut};

use memmap2::{Advice, MmapMut};

/// Bytes of a huge page, of most processors.
const HUGE: usize = 2 << 20;

/// Zeroed bytes, of the heap or of a mapping of their own.
#[derive(Debug)]
pub(super) enum Pages {
    Heap(Vec<u8>),
    Mapped(MmapMut),
}

impl Pages {
    /// `length` bytes. The kernel gives them when they are first touched: long ones in huge pages where it may, with one
    /// fault instead of 512.
    pub fn new(length: usize) -> Self {
        if length >= HUGE
            && let Ok(map) = MmapMut::map_anon(length)
        {
            // Where huge pages are switched off, or not known, these are as good as others.
            let _ = map.advise(Advice::HugePage);
            return Pages::Mapped(map);
        }
        // Zeroed pages come from the kernel as they are: nothing is written here.
        Pages::Heap(vec![0; length])
    }
}

impl Default for Pages {
    fn default() -> Self {
        Pages::Heap(Vec::new())
    }
}

impl Deref for Pages {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Pages::Heap(bytes) => bytes,
            Pages::Mapped(map) => map,
        }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Pages::Heap(bytes) => bytes,
            Pages::Mapped(map) => map,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_either_kind_are_zero_and_can_be_written() {
        for length in [0, 1, 4096, HUGE - 1, HUGE, HUGE + 4096, 3 * HUGE] {
            let mut pages = Pages::new(length);
            assert_eq!(pages.len(), length);
            assert!(pages.iter().all(|byte| *byte == 0));
            pages.fill(7);
            assert!(pages.iter().all(|byte| *byte == 7));
        }
    }
}
