//! A file whose bytes are made once: `metadata.json`, `indexes.json`, `values.txt`.

use std::sync::OnceLock;

use super::{Effort, Size, UNKNOWN_SIZE, View};
use crate::source::Interrupt;
use crate::store::Error;

/// What makes the bytes.
type Make = dyn Fn(&Interrupt) -> Result<Vec<u8>, Error> + Send + Sync;

/// Bytes made at first use. Making them reads no more than labels and small scalars, so even
/// a free size is exact, unless they are costly.
pub struct ConstantView {
    make: Box<Make>,
    is_costly: bool,
    bytes: OnceLock<Vec<u8>>,
}

impl ConstantView {
    /// A view of the bytes that `make` gives; it must always give the same, unless it is interrupted.
    pub fn new(make: impl Fn(&Interrupt) -> Result<Vec<u8>, Error> + Send + Sync + 'static) -> Self {
        Self { make: Box::new(make), is_costly: false, bytes: OnceLock::new() }
    }

    /// The same of bytes that are made only for who opens the file: until then their number is not known.
    pub fn costly(make: impl Fn(&Interrupt) -> Result<Vec<u8>, Error> + Send + Sync + 'static) -> Self {
        Self { is_costly: true, ..Self::new(make) }
    }

    fn bytes(&self, interrupt: &Interrupt) -> Result<&[u8], Error> {
        if let Some(bytes) = self.bytes.get() {
            return Ok(bytes);
        }
        let bytes = (self.make)(interrupt);
        // Bytes that were cut short are not kept.
        interrupt.check()?;
        let bytes = bytes?;
        Ok(self.bytes.get_or_init(|| bytes))
    }
}

impl View for ConstantView {
    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        let is_enough = if self.is_costly { effort == Effort::Exact } else { effort != Effort::Known };
        if !is_enough && self.bytes.get().is_none() {
            return Ok(Size::AtMost(UNKNOWN_SIZE));
        }
        Ok(Size::Exact(self.bytes(interrupt)?.len() as u64))
    }

    fn read(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        let bytes = self.bytes(interrupt)?;
        let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
        out.extend_from_slice(&rest[..length.min(rest.len())]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_interrupt_cut_short_is_made_anew() {
        let view = ConstantView::new(|interrupt| Ok(vec![b'x'; if interrupt.check().is_err() { 1 } else { 3 }]));
        let raised = Interrupt::new();
        raised.raise();
        assert!(matches!(view.size(Effort::Exact, &raised), Err(Error::Interrupted(_))));
        assert_eq!(view.size(Effort::Exact, &Interrupt::new()).unwrap(), Size::Exact(3));
        let mut out = Vec::new();
        view.read(1, 9, &mut out, &raised).unwrap();
        assert_eq!(out, b"xx");
    }
}
