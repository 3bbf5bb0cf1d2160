//! The memory that buffers consist of.

use std::ops::{Deref, DerefMut, Range};
use std::slice;
use std::sync::Arc;

use memmap2::{Advice, MmapMut, MmapRaw, UncheckedAdvice};

/// Bytes of a huge page on most processors.
const HUGE: usize = 2 << 20;

/// Shorter buffers do not share a huge page: the system may keep the page for a single part until memory is short.
const SHORTEST_PART: usize = HUGE / 128;

/// Zeroed bytes: from the heap, in a mapping of their own, or part of a shared huge page.
#[derive(Debug)]
pub(super) enum ZeroedPages {
    Heap(Vec<u8>),
    Mapped(MmapMut),
    Part(HugePagePart),
}

/// A range of a huge page, which overlaps no other part of it.
#[derive(Debug)]
pub(super) struct HugePagePart {
    page: Arc<MmapRaw>,
    range: Range<usize>,
}

impl ZeroedPages {
    /// `length` bytes, supplied by the kernel when they are first touched; long ones in huge pages if possible, with
    /// one fault instead of 512.
    pub fn new(length: usize) -> Self {
        if length >= HUGE
            && let Ok(map) = MmapMut::map_anon(length)
        {
            // If huge pages are off or unsupported, ordinary ones do as well.
            let _ = map.advise(Advice::HugePage);
            return ZeroedPages::Mapped(map);
        }
        // Zeroed pages come from the kernel, so this writes nothing.
        ZeroedPages::Heap(vec![0; length])
    }

    /// Number of buffers of `length` bytes in one huge page, if more than one.
    pub fn sharing(length: usize) -> Option<usize> {
        (length >= SHORTEST_PART && length.is_multiple_of(4096)).then(|| HUGE / length).filter(|count| *count > 1)
    }

    /// The buffers of `length` bytes that share one huge page; empty if [`ZeroedPages::sharing`] says no, or the page
    /// cannot be allocated. Touching the first pays the fault for all.
    pub fn shared(length: usize) -> Vec<Self> {
        let Some(count) = Self::sharing(length) else { return Vec::new() };
        let Ok(map) = MmapMut::map_anon(HUGE) else { return Vec::new() };
        // As above: ordinary pages do as well.
        let _ = map.advise(Advice::HugePage);
        let page = Arc::new(MmapRaw::from(map));
        (0..count)
            .map(|i| ZeroedPages::Part(HugePagePart { page: page.clone(), range: i * length..(i + 1) * length }))
            .collect()
    }
}

impl Drop for HugePagePart {
    fn drop(&mut self) {
        // The last part unmaps the page; earlier ones return their own range to the system.
        if Arc::strong_count(&self.page) > 1 {
            // SAFETY: no other part has these bytes, and nothing can reach them any more.
            let _ = unsafe {
                self.page.unchecked_advise_range(UncheckedAdvice::DontNeed, self.range.start, self.range.len())
            };
        }
    }
}

impl Deref for HugePagePart {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `range` lies in the mapping, which is readable and lives as long as `page`; no other part overlaps
        // it, so only `deref_mut` of this one writes to it.
        unsafe { slice::from_raw_parts(self.page.as_ptr().add(self.range.start), self.range.len()) }
    }
}

impl DerefMut for HugePagePart {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and this part is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.page.as_mut_ptr().add(self.range.start), self.range.len()) }
    }
}

impl Default for ZeroedPages {
    fn default() -> Self {
        ZeroedPages::Heap(Vec::new())
    }
}

impl Deref for ZeroedPages {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            ZeroedPages::Heap(bytes) => bytes,
            ZeroedPages::Mapped(map) => map,
            ZeroedPages::Part(part) => part,
        }
    }
}

impl DerefMut for ZeroedPages {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            ZeroedPages::Heap(bytes) => bytes,
            ZeroedPages::Mapped(map) => map,
            ZeroedPages::Part(part) => part,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_either_kind_are_zero_and_can_be_written() {
        for length in [0, 1, 4096, HUGE - 1, HUGE, HUGE + 4096, 3 * HUGE] {
            let mut pages = ZeroedPages::new(length);
            assert_eq!(pages.len(), length);
            assert!(pages.iter().all(|byte| *byte == 0));
            pages.fill(7);
            assert!(pages.iter().all(|byte| *byte == 7));
        }
    }

    #[test]
    fn parts_of_a_huge_page_do_not_touch_each_other() {
        let length = 640 << 10;
        let mut parts = ZeroedPages::shared(length);
        assert_eq!(parts.len(), 3);
        for (part, value) in parts.iter_mut().zip(1..) {
            assert!(part.len() == length && part.iter().all(|byte| *byte == 0));
            part.fill(value);
        }
        // Returning one part does not affect the others.
        drop(parts.remove(1));
        for (part, value) in parts.iter().zip([1, 3]) {
            assert!(part.iter().all(|byte| *byte == value));
        }
    }

    #[test]
    fn what_is_short_or_long_shares_nothing() {
        for length in [0, 4096, SHORTEST_PART - 4096, SHORTEST_PART + 1, HUGE - 4096, HUGE, 2 * HUGE] {
            assert_eq!((ZeroedPages::sharing(length), ZeroedPages::shared(length).len()), (None, 0), "{length}");
        }
        assert_eq!((ZeroedPages::sharing(SHORTEST_PART), ZeroedPages::sharing(HUGE / 2)), (Some(128), Some(2)));
    }
}
