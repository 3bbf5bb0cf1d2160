//! What elements hold that were never written.

use std::sync::{Arc, LazyLock};

use crate::catalogue;
use crate::store::heap::{IN_MEMORY, Move, relocate};

/// The element read where nothing was written, and what it leads to if it is of variable length.
#[derive(Debug)]
pub(in crate::store) struct Fill {
    /// One element, its descriptors leading into `heap`; empty for zeros.
    element: Vec<u8>,
    pub heap: Arc<[u8]>,
}

/// Zeros, which nearly all datasets share.
static ZEROS: LazyLock<Arc<Result<Fill, String>>> = LazyLock::new(|| Arc::new(Ok(Fill::zeros())));

impl Fill {
    fn zeros() -> Self {
        Self { element: Vec::new(), heap: Arc::default() }
    }

    /// The fill of a dataset; the reason where it has none that can be read.
    pub fn of(dataset: &catalogue::Dataset, address_size: u8) -> Arc<Result<Self, String>> {
        match dataset.fill {
            catalogue::Fill::Undefined | catalogue::Fill::Default => ZEROS.clone(),
            _ => Arc::new(Self::new(dataset, address_size)),
        }
    }

    fn new(dataset: &catalogue::Dataset, address_size: u8) -> Result<Self, String> {
        let explicit = match &dataset.fill {
            catalogue::Fill::Undefined | catalogue::Fill::Default => return Ok(Self::zeros()),
            catalogue::Fill::Unreadable(reason) => return Err(format!("its fill value cannot be read: {reason}")),
            catalogue::Fill::Explicit(explicit) => explicit,
        };
        let mut explicit = explicit.clone();
        if dataset.datatype.has_descriptors() {
            let to = Move { base: 0, index: IN_MEMORY, address_size };
            relocate(&dataset.datatype, &mut explicit, to).map_err(|reason| format!("its fill value: {reason}"))?;
        }
        if explicit.bytes.len() as u64 != dataset.datatype.size {
            let (bytes, size) = (explicit.bytes.len(), dataset.datatype.size);
            return Err(format!("its fill value has {bytes} bytes, an element {size}"));
        }
        let zero = explicit.bytes.iter().all(|byte| *byte == 0);
        Ok(if zero { Self::zeros() } else { Self { element: explicit.bytes, heap: explicit.heap.into() } })
    }

    /// Fills `out`, which begins `phase` bytes into an element.
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
