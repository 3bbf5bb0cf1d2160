//! Variable-length strings as they are stored: for `.raw`, where nothing is missing and no encoding is assumed.

use std::sync::Arc;

use ::arrow::array::{ArrayRef, LargeBinaryArray};
use ::arrow::buffer::OffsetBuffer;
use ::arrow::datatypes::DataType;

use super::arrow::strip;
use super::{Dataset, Error, RowRange, Rows, count_of};
use crate::catalogue::Padding;
use crate::source::Interrupt;

/// The bytes of each string up to its first NUL, the fill value like any other.
#[derive(Debug)]
pub struct StoredStrings {
    dataset: Arc<Dataset>,
    len: u64,
}

impl StoredStrings {
    /// The first `len` elements of `dataset`, which must be of variable-length strings.
    pub fn new(dataset: Arc<Dataset>, len: u64) -> Self {
        Self { len: len.min(dataset.len()), dataset }
    }
}

/// Leaves of each string what stands before its first NUL. `ends` begins with 0.
fn cut_at_nuls(texts: &mut Vec<u8>, ends: &mut [i64]) {
    let (mut start, mut kept) = (0, 0);
    for end in ends.iter_mut().skip(1) {
        let text = start..*end as usize;
        start = text.end;
        let length = strip(&texts[text.clone()], Padding::NullTerminated).len();
        texts.copy_within(text.start..text.start + length, kept);
        kept += length;
        *end = kept as i64;
    }
    texts.truncate(kept);
}

impl Rows for StoredStrings {
    fn len(&self) -> u64 {
        self.len
    }

    fn data_type(&self) -> &DataType {
        &DataType::LargeBinary
    }

    fn nullable(&self) -> bool {
        false
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let count = count_of(&range, self.len, self.dataset.path())?;
        let batch = self.dataset.read_elements(range.clone(), interrupt)?;
        let width = usize::try_from(self.dataset.element_size()).unwrap_or(usize::MAX).max(1);
        let (mut texts, mut ends) = (Vec::with_capacity(batch.bytes.len()), Vec::with_capacity(count + 1));
        ends.push(0);
        let mut cursor = batch.heap.cursor();
        for (row, descriptor) in (range.start..).zip(batch.bytes.chunks_exact(width)) {
            let text = cursor.resolve(descriptor, 1).map_err(|cause| cause.at(self.dataset.path(), row))?;
            texts.extend_from_slice(text);
            ends.push(texts.len() as i64);
        }
        // Looked for once, over all: hardly any string holds one.
        if memchr::memchr(0, &texts).is_some() {
            cut_at_nuls(&mut texts, &mut ends);
        }
        Ok(Arc::new(LargeBinaryArray::new(OffsetBuffer::new(ends.into()), texts.into(), None)))
    }

    fn stored_width(&self) -> Option<u64> {
        None
    }

    fn append_stored(&self, _: u64, _: usize, _: &mut Vec<u8>, _: &Interrupt) -> Result<(), Error> {
        Err(Error::Unsupported {
            path: self.dataset.path().to_owned(),
            reason: "strings of variable length have no fixed width".into(),
        })
    }

    fn natural_rows(&self) -> Option<u64> {
        self.dataset.natural_rows()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn strings_end_at_their_first_nul(strings in prop::collection::vec(prop::collection::vec(0u8..4, 0..6), 0..20)) {
            let (mut texts, mut ends, mut expected) = (Vec::new(), vec![0], vec![0]);
            let mut kept = Vec::new();
            for string in &strings {
                texts.extend(string);
                ends.push(texts.len() as i64);
                kept.extend(string.iter().take_while(|byte| **byte != 0));
                expected.push(kept.len() as i64);
            }
            cut_at_nuls(&mut texts, &mut ends);
            prop_assert_eq!((texts, ends), (kept, expected));
        }
    }
}
