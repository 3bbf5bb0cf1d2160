//! Files of stored bytes.

use std::sync::Arc;

use super::dtype::NpyType;
use super::header;
use crate::source::Interrupt;
use crate::store::{Answer, Error, Rows};
use crate::views::wanted::WantedBytes;
use crate::views::{Effort, Size, View};

/// Elements as stored, decompressed, back to back in row-major order, after a header: `.npy`, `.pgm`, `.ppm`, and
/// `.raw` without one.
#[derive(Clone, Debug)]
pub struct StoredView {
    header: Vec<u8>,
    rows: Arc<dyn Rows>,
    /// Bytes of all elements.
    bytes: u64,
}

impl StoredView {
    /// Returns the elements without a header. `None`: the rows have no fixed width, or their bytes overflow.
    pub fn raw(rows: Arc<dyn Rows>) -> Option<Self> {
        let bytes = rows.len().checked_mul(rows.stored_width()?)?;
        Some(Self { header: Vec::new(), rows, bytes })
    }

    /// Puts a header before the elements. `None`: the length overflows.
    pub fn behind(self, header: Vec<u8>) -> Option<Self> {
        self.bytes.checked_add(header.len() as u64)?;
        Some(Self { header, ..self })
    }

    /// Puts the header of a NumPy array of `shape` with elements of `dtype` before the elements. `None`: such an array
    /// has a different number of bytes.
    pub fn npy(self, dtype: &NpyType, shape: &[u64]) -> Option<Self> {
        let bytes = shape.iter().try_fold(dtype.size()?, |product, &extent| product.checked_mul(extent))?;
        if bytes != self.bytes {
            return None;
        }
        self.behind(header::header(dtype, shape))
    }
}

impl View for StoredView {
    fn size(&self, _: Effort, _: &Interrupt) -> Result<Size, Error> {
        Ok(Size::Exact(self.bytes + self.header.len() as u64))
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, interrupt: &Interrupt) -> Result<(), Error> {
        let mut wanted = WantedBytes::new(offset, length, answer);
        wanted.take(0, &self.header);
        wanted.take_stored((self.header.len() as u64, self.bytes), self.rows.as_ref(), (0, None), interrupt)
    }
}
