//! A file whose bytes are made once: `metadata.json`, `indexes.json`.

use std::sync::OnceLock;

use super::{Effort, LARGEST_SIZE, Size, View};
use crate::source::Interrupt;
use crate::store::Error;

/// Bytes made at first use. Making them reads nothing, so even a free size is exact.
pub struct ConstantView {
    make: Box<dyn Fn() -> Vec<u8> + Send + Sync>,
    bytes: OnceLock<Vec<u8>>,
}

impl ConstantView {
    /// A view of the bytes that `make` gives; it must always give the same.
    pub fn new(make: impl Fn() -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self { make: Box::new(make), bytes: OnceLock::new() }
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get_or_init(|| (self.make)())
    }
}

impl View for ConstantView {
    fn size(&self, effort: Effort, _: &Interrupt) -> Result<Size, Error> {
        if effort == Effort::Known && self.bytes.get().is_none() {
            return Ok(Size::AtMost(LARGEST_SIZE));
        }
        Ok(Size::Exact(self.bytes().len() as u64))
    }

    fn read(&self, offset: u64, length: usize, out: &mut Vec<u8>, _: &Interrupt) -> Result<(), Error> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.bytes().get(offset..)).unwrap_or_default();
        out.extend_from_slice(&rest[..length.min(rest.len())]);
        Ok(())
    }
}
