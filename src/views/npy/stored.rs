//! Files of stored bytes.

use std::sync::Arc;

use super::dtype::NpyType;
use super::header;
use crate::source::Interrupt;
use crate::store::{Error, Rows, Span};
use crate::views::{Effort, Size, View};

/// Elements as stored, decompressed, back to back in row-major order.
pub trait Stored: Send + Sync {
    /// Bytes of all elements.
    fn len_bytes(&self) -> u64;

    /// Appends `length` bytes from byte `offset` on to `out`. The range lies within [`Stored::len_bytes`].
    ///
    /// # Errors
    /// See [`Error`]; bytes appended before it count for nothing.
    fn append(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error>;

    /// Where the same bytes lie.
    ///
    /// # Errors
    /// See [`Error`].
    fn span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        let _ = (offset, interrupt);
        Ok(Span::Made(length))
    }
}

/// The stored bytes of a column whose rows have one width.
#[derive(Clone, Debug)]
pub struct RowsBytes {
    rows: Arc<dyn Rows>,
    bytes: u64,
}

impl RowsBytes {
    /// `None` where rows have no fixed width, or their number of bytes overflows.
    pub fn new(rows: Arc<dyn Rows>) -> Option<Self> {
        let bytes = rows.len().checked_mul(rows.stored_width()?)?;
        Some(Self { rows, bytes })
    }
}

impl Stored for RowsBytes {
    fn len_bytes(&self) -> u64 {
        self.bytes
    }

    fn append(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        self.rows.stored_bytes()?.append(offset, length, out, interrupt)
    }

    fn span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        self.rows.stored_bytes()?.span(offset, length, interrupt)
    }
}

impl<T: Stored + ?Sized> Stored for Arc<T> {
    fn len_bytes(&self) -> u64 {
        T::len_bytes(self)
    }

    fn append(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        T::append(self, offset, length, out, interrupt)
    }

    fn span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        T::span(self, offset, length, interrupt)
    }
}

/// `.raw`: the elements and nothing else.
#[derive(Clone, Debug)]
pub struct RawView<S> {
    stored: S,
}

impl<S: Stored> RawView<S> {
    /// A file of these bytes.
    pub fn new(stored: S) -> Self {
        Self { stored }
    }
}

impl<S: Stored> View for RawView<S> {
    fn size(&self, _: Effort, _: &Interrupt) -> Result<Size, Error> {
        Ok(Size::Exact(self.stored.len_bytes()))
    }

    fn read(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        let left = self.stored.len_bytes().saturating_sub(offset);
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(length);
        if count == 0 {
            return Ok(());
        }
        self.stored.append(offset, count, out, interrupt)
    }

    fn span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        self.stored.span(offset, length, interrupt)
    }
}

/// A header and the elements: `.npy`, `.pgm`, `.ppm`.
#[derive(Clone, Debug)]
pub struct HeadedView<S> {
    header: Vec<u8>,
    elements: RawView<S>,
}

impl<S: Stored> HeadedView<S> {
    /// A header with the elements behind it. `None` where they are more bytes together than can be numbered.
    pub fn new(header: Vec<u8>, stored: S) -> Option<Self> {
        stored.len_bytes().checked_add(header.len() as u64)?;
        Some(Self { header, elements: RawView::new(stored) })
    }

    /// An array of `shape` with elements of `dtype`, as NumPy has it. `None` where those are not as many bytes as there
    /// are.
    pub fn npy(dtype: &NpyType, shape: &[u64], stored: S) -> Option<Self> {
        let bytes = shape.iter().try_fold(dtype.size()?, |product, &extent| product.checked_mul(extent))?;
        if bytes != stored.len_bytes() {
            return None;
        }
        Self::new(header::header(dtype, shape), stored)
    }
}

impl<S: Stored> View for HeadedView<S> {
    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        let elements = self.elements.size(effort, interrupt)?.bytes();
        Ok(Size::Exact(elements.saturating_add(self.header.len() as u64)))
    }

    fn read(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        let header = self.header.len() as u64;
        let before = out.len();
        if let Some(rest) = usize::try_from(offset).ok().and_then(|offset| self.header.get(offset..)) {
            out.extend(rest.iter().take(length));
        }
        let length = length - (out.len() - before);
        if length == 0 {
            return Ok(());
        }
        self.elements.read(offset.saturating_sub(header), length, out, interrupt)
    }
    fn span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        let header = self.header.len() as u64;
        match offset.checked_sub(header) {
            Some(offset) => self.elements.span(offset, length, interrupt),
            None => Ok(Span::Made(usize::try_from(header - offset).map_or(length, |left| left.min(length)))),
        }
    }
}
