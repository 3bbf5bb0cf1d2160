//! The value of elements that were never written.

use std::sync::{Arc, LazyLock};

use crate::catalogue;
use crate::store::heap::{IN_MEMORY, Move, relocate};

/// The element that stands for unwritten ones, with the content of its descriptors.
#[derive(Debug)]
pub(in crate::store) struct FillElement {
    /// One element, whose descriptors lead into `heap`; empty for zeros.
    element: Vec<u8>,
    pub heap: Arc<[u8]>,
}

/// Why a fill value cannot be read.
#[derive(Debug, thiserror::Error)]
pub(in crate::store) enum FillError {
    #[error("its fill value cannot be read: {0}")]
    Unreadable(String),
    #[error("its fill value: {0}")]
    Descriptors(String),
    #[error("its fill value has {bytes} bytes, an element {size}")]
    Size { bytes: usize, size: u64 },
}

/// A fill of zeros, which nearly all datasets share.
static ZEROS: LazyLock<Arc<Result<FillElement, FillError>>> = LazyLock::new(|| Arc::new(Ok(FillElement::zeros())));

impl FillElement {
    fn zeros() -> Self {
        Self { element: Vec::new(), heap: Arc::default() }
    }

    /// The fill value of a dataset.
    pub fn of(dataset: &catalogue::Dataset, address_size: u8) -> Arc<Result<Self, FillError>> {
        match dataset.fill {
            catalogue::Fill::Undefined | catalogue::Fill::Default => ZEROS.clone(),
            _ => Arc::new(Self::new(dataset, address_size)),
        }
    }

    fn new(dataset: &catalogue::Dataset, address_size: u8) -> Result<Self, FillError> {
        let explicit = match &dataset.fill {
            catalogue::Fill::Undefined | catalogue::Fill::Default => return Ok(Self::zeros()),
            catalogue::Fill::Unreadable(reason) => return Err(FillError::Unreadable(reason.clone())),
            catalogue::Fill::Explicit(explicit) => explicit,
        };
        let mut explicit = explicit.clone();
        if dataset.datatype.has_descriptors() {
            let to = Move { base: 0, index: IN_MEMORY, address_size };
            relocate(&dataset.datatype, &mut explicit, to).map_err(FillError::Descriptors)?;
        }
        if explicit.bytes.len() as u64 != dataset.datatype.size {
            return Err(FillError::Size { bytes: explicit.bytes.len(), size: dataset.datatype.size });
        }
        let zero = explicit.bytes.iter().all(|byte| *byte == 0);
        Ok(if zero { Self::zeros() } else { Self { element: explicit.bytes, heap: explicit.heap.into() } })
    }

    /// Fills `out`, whose first byte is byte `phase` of an element.
    pub fn write(&self, phase: usize, out: &mut [u8]) {
        let size = self.element.len();
        if size == 0 {
            out.fill(0);
            return;
        }
        let phase = phase % size;
        let (head, rest) = out.split_at_mut((size - phase).min(out.len()));
        head.copy_from_slice(&self.element[phase..][..head.len()]);
        for part in rest.chunks_mut(size) {
            part.copy_from_slice(&self.element[..part.len()]);
        }
    }
}
