//! The changes that a writing worker holds back from the file until they are complete.
//!
//! Bytes beyond everything that the file's metadata knows go to the file at once: no reader looks there. All other
//! writes of libhdf5 would change what readers see, in an order that libhdf5 chooses, so they stay in memory until the
//! file is closed. Then the [writer](crate::h5::worker::writer) commits them, in an order that keeps a partly written
//! file readable.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use super::disk;

/// Most bytes held back: a hundred times the metadata around one dataset.
const MAX_HELD: u64 = 256 << 20;

/// A write at one offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::h5::worker) struct OverlayWrite {
    /// Offset of the first byte in the file.
    pub at: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// libhdf5's kind of the bytes (`H5FD_mem_t`).
    pub kind: i32,
}

/// The changes held back from a file: see the module.
#[derive(Debug)]
pub(in crate::h5::worker) struct Overlay {
    /// Bytes from here on go to the file at once.
    boundary: u64,
    /// One past the last address that libhdf5 has allocated.
    addresses: u64,
    /// The end of the file, as libhdf5 sees it.
    end: u64,
    held: BTreeMap<u64, OverlayWrite>,
    bytes: u64,
}

impl Overlay {
    /// An empty overlay of a file of `size` bytes, none of which may be written before [`Overlay::arm`].
    pub fn new(size: u64) -> Self {
        Self { boundary: u64::MAX, addresses: size, end: size, held: BTreeMap::new(), bytes: 0 }
    }

    /// Makes bytes beyond the addresses allocated so far go to the file from now on.
    pub fn arm(&mut self) {
        self.boundary = self.addresses;
    }

    /// Sets the end of the allocated addresses.
    pub fn set_addresses(&mut self, end: u64) {
        self.addresses = end;
    }

    /// The end of the file, as libhdf5 sees it.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Sets the end of the file.
    pub fn set_end(&mut self, end: u64) {
        self.end = end;
    }

    /// The held-back pieces, by offset.
    pub fn into_pieces(self) -> Vec<OverlayWrite> {
        self.held.into_values().collect()
    }

    /// Writes bytes, into the overlay or the file.
    pub fn write(&mut self, file: &File, at: u64, bytes: &[u8], kind: i32) -> io::Result<()> {
        let end = at.checked_add(bytes.len() as u64).ok_or_else(|| io::Error::other("past 2^64"))?;
        let before = usize::try_from(self.boundary.saturating_sub(at)).unwrap_or(usize::MAX).min(bytes.len());
        let (held, direct) = bytes.split_at(before);
        if !held.is_empty() {
            self.hold(at, held, kind)?;
        }
        if !direct.is_empty() {
            disk::write_all_at(file, direct, self.boundary.max(at))?;
        }
        self.end = self.end.max(end);
        Ok(())
    }

    fn hold(&mut self, at: u64, bytes: &[u8], kind: i32) -> io::Result<()> {
        let end = at + bytes.len() as u64;
        // An overlapped piece keeps its two ends.
        let mut ends = Vec::new();
        while let Some((&start, _)) = self.held.range(..end).next_back().filter(|(_, piece)| piece.end() > at) {
            let Some(old) = self.held.remove(&start) else { break };
            self.bytes -= old.bytes.len() as u64;
            if old.at < at {
                ends.push(old.part(old.at, at));
            }
            if old.end() > end {
                ends.push(old.part(end, old.end()));
            }
        }
        ends.push(OverlayWrite { at, bytes: bytes.to_vec(), kind });
        for piece in ends {
            self.bytes += piece.bytes.len() as u64;
            self.held.insert(piece.at, piece);
        }
        if self.bytes > MAX_HELD {
            return Err(io::Error::other(format!(
                "more than {MAX_HELD} bytes of the file would change at once, which is too much to do safely"
            )));
        }
        Ok(())
    }

    /// Copies the held-back bytes from `at` on over bytes read from the file.
    pub fn patch(&self, at: u64, buffer: &mut [u8]) {
        let end = at.saturating_add(buffer.len() as u64);
        for piece in self.held.range(..end).rev().map(|(_, piece)| piece).take_while(|piece| piece.end() > at) {
            let (from, to) = (piece.at.max(at), piece.end().min(end));
            let (into, held) = ((from - at) as usize..(to - at) as usize, (from - piece.at) as usize);
            if let (Some(into), Some(bytes)) = (buffer.get_mut(into), piece.bytes.get(held..)) {
                into.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            }
        }
    }
}

impl OverlayWrite {
    /// One past the last byte.
    pub fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    /// The bytes from `from` to `to`, which lie within.
    pub fn part(&self, from: u64, to: u64) -> Self {
        let bytes = self.bytes.get((from - self.at) as usize..(to - self.at) as usize);
        Self { at: from, bytes: bytes.unwrap_or_default().to_vec(), kind: self.kind }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The model is a plain array of bytes.
        #[test]
        fn reads_see_what_was_written(
            boundary in 0u64..60,
            writes in prop::collection::vec((0u64..60, prop::collection::vec(any::<u8>(), 1..20)), 0..12),
        ) {
            let file = tempfile::tempfile().unwrap();
            let before: Vec<u8> = (0..80).collect();
            file.write_all_at(&before, 0).unwrap();
            let mut model = before.clone();
            let mut overlay = Overlay::new(80);
            overlay.set_addresses(boundary);
            overlay.arm();
            for (at, bytes) in writes {
                overlay.write(&file, at, &bytes, 1).unwrap();
                model[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
                let mut seen = vec![0; 80];
                file.read_exact_at(&mut seen, 0).unwrap();
                prop_assert_eq!(&seen[..boundary as usize], &before[..boundary as usize]);
                overlay.patch(0, &mut seen);
                prop_assert_eq!(&seen, &model);
                let mut part = vec![0; 7];
                file.read_exact_at(&mut part, 11).unwrap();
                overlay.patch(11, &mut part);
                prop_assert_eq!(&part, &model[11..18]);
            }
        }
    }
}
