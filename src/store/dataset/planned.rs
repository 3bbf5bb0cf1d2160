//! Plans the reads of a dataset whose source lies on a network.

use super::StoredDataset;
use crate::store::Error;
use crate::store::heap::collections;

/// Bytes of contiguous elements to plan as one.
pub(super) const UNIT: u64 = 64 << 10;

impl StoredDataset {
    /// The position in the file of `length` bytes from byte `offset` on, of contiguous elements that begin at
    /// `address`. Plans their read, and of bytes behind them that their reader will want, if the source is on a
    /// network.
    pub(super) fn planned_at(&self, address: u64, offset: u64, length: u64) -> Result<u64, Error> {
        let at = address
            .checked_add(offset)
            .ok_or_else(|| Error::unsupported(&self.path, format!("its address {address} lies beyond any file")))?;
        let source = self.file.source();
        if source.is_remote() && length > 0 {
            let end = offset.saturating_add(length);
            let ahead = self.planned.note((end - 1) / UNIT, UNIT);
            let ahead = ahead.start.saturating_mul(UNIT)..ahead.end.saturating_mul(UNIT).min(self.bytes);
            let ranges = [offset..end, ahead].into_iter();
            source.plan(ranges.map(|range| address.saturating_add(range.start)..address.saturating_add(range.end)));
        }
        Ok(at)
    }

    /// Plans the reads of the heap collections that these elements lead to, if the source is on a network.
    pub(super) fn plan_collections(&self, elements: &[u8]) {
        let (file, datatype) = (&self.file, &self.description.datatype);
        if file.source().is_remote() && datatype.has_descriptors() {
            let (address_size, before) = (usize::from(file.info().address_size), file.info().user_block);
            let ranges = collections(datatype, elements, address_size).into_iter();
            file.source()
                .plan(ranges.map(|range| range.start.saturating_add(before)..range.end.saturating_add(before)));
        }
    }
}
