//! Files rendered as a whole: `metadata.json`, `indexes.json`, `values.txt`.

use std::sync::{Arc, OnceLock};

use super::rendered::{BlockCache, RenderedBlock, next_view};
use super::{Effort, Size, UNKNOWN_SIZE, View};
use crate::source::Interrupt;
use crate::store::{Answer, Error};

/// Renders the bytes of a file.
type Make = dyn Fn(&Interrupt) -> Result<Vec<u8>, Error> + Send + Sync;

/// Computes the size of a file without rendering it.
type Measure = dyn Fn(&Interrupt) -> Result<u64, Error> + Send + Sync;

/// A file rendered at first use, and again after the cache evicted it. Rendering reads no more than labels and small
/// scalars, so the size is exact even for [`Effort::Free`], unless the file is costly.
pub struct ConstantView(Arc<Content>);

struct Content {
    id: u64,
    make: Box<Make>,
    measure: Option<Box<Measure>>,
    is_costly: bool,
    cache: Arc<BlockCache>,
    size: OnceLock<u64>,
}

/// A file while a program has it open: holds the bytes even if the cache evicts them, or each read might render all of
/// them.
struct Open {
    content: Arc<Content>,
    bytes: OnceLock<RenderedBlock>,
}

impl ConstantView {
    /// Returns a view of the bytes that `make` returns, kept in `cache`. `make` must always return the same bytes,
    /// unless it is interrupted.
    pub fn new(
        cache: Arc<BlockCache>,
        make: impl Fn(&Interrupt) -> Result<Vec<u8>, Error> + Send + Sync + 'static,
    ) -> Self {
        Self::with(cache, make, None, false)
    }

    /// Returns a view of bytes that are costly to render: only opening the file renders them, and their number is
    /// unknown until then.
    pub fn costly(
        cache: Arc<BlockCache>,
        make: impl Fn(&Interrupt) -> Result<Vec<u8>, Error> + Send + Sync + 'static,
    ) -> Self {
        Self::with(cache, make, None, true)
    }

    /// Returns a view of bytes that are costly to render, but whose number `measure` computes.
    pub fn measured(
        cache: Arc<BlockCache>,
        measure: impl Fn(&Interrupt) -> Result<u64, Error> + Send + Sync + 'static,
        make: impl Fn(&Interrupt) -> Result<Vec<u8>, Error> + Send + Sync + 'static,
    ) -> Self {
        Self::with(cache, make, Some(Box::new(measure)), false)
    }

    fn with(
        cache: Arc<BlockCache>,
        make: impl Fn(&Interrupt) -> Result<Vec<u8>, Error> + Send + Sync + 'static,
        measure: Option<Box<Measure>>,
        is_costly: bool,
    ) -> Self {
        let make = Box::new(make);
        Self(Arc::new(Content { id: next_view(), make, measure, is_costly, cache, size: OnceLock::new() }))
    }
}

impl Content {
    fn bytes(&self, interrupt: &Interrupt) -> Result<RenderedBlock, Error> {
        let bytes = self.cache.get_or_render((self.id, 0, 0), interrupt, |_| {
            let bytes = (self.make)(interrupt);
            // Truncated bytes must not enter the cache.
            interrupt.check()?;
            bytes
        })?;
        self.size.get_or_init(|| bytes.len() as u64);
        Ok(bytes)
    }

    fn size(
        &self,
        effort: Effort,
        interrupt: &Interrupt,
        bytes: impl FnOnce() -> Result<RenderedBlock, Error>,
    ) -> Result<Size, Error> {
        let is_enough = effort >= if self.is_costly { Effort::Exact } else { Effort::Free };
        Ok(match (self.size.get(), &self.measure) {
            (Some(size), _) => Size::Exact(*size),
            (None, _) if !is_enough => Size::AtMost(UNKNOWN_SIZE),
            (None, Some(measure)) => {
                let size = measure(interrupt)?;
                Size::Exact(*self.size.get_or_init(|| size))
            }
            (None, None) => Size::Exact(bytes()?.len() as u64),
        })
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        self.cache.forget(self.id);
    }
}

impl View for ConstantView {
    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        self.0.size(effort, interrupt, || self.0.bytes(interrupt))
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, interrupt: &Interrupt) -> Result<(), Error> {
        answer.append(&self.0.bytes(interrupt)?, offset, length);
        Ok(())
    }

    fn opened(&self) -> Option<Arc<dyn View>> {
        Some(Arc::new(Open { content: self.0.clone(), bytes: OnceLock::new() }))
    }
}

impl Open {
    fn bytes(&self, interrupt: &Interrupt) -> Result<RenderedBlock, Error> {
        if let Some(bytes) = self.bytes.get() {
            return Ok(bytes.clone());
        }
        let bytes = self.content.bytes(interrupt)?;
        Ok(self.bytes.get_or_init(|| bytes).clone())
    }
}

impl View for Open {
    fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        self.content.size(effort, interrupt, || self.bytes(interrupt))
    }

    fn gather(&self, offset: u64, length: usize, answer: &mut Answer, interrupt: &Interrupt) -> Result<(), Error> {
        answer.append(&self.bytes(interrupt)?, offset, length);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn read(view: &dyn View, interrupt: &Interrupt) -> Vec<u8> {
        Answer::collect(|answer| view.gather(1, 9, answer, interrupt)).unwrap()
    }

    #[test]
    fn what_an_interrupt_cut_short_is_made_anew() {
        let cache = Arc::new(BlockCache::new(1 << 20));
        let view = ConstantView::new(cache, |interrupt| Ok(vec![b'x'; if interrupt.check().is_err() { 1 } else { 3 }]));
        let raised = Interrupt::new();
        raised.raise();
        assert!(matches!(view.size(Effort::Exact, &raised), Err(Error::Interrupted(_))));
        assert_eq!(view.size(Effort::Exact, &Interrupt::new()).unwrap(), Size::Exact(3));
        assert_eq!(read(&view, &raised), b"xx");
    }

    #[test]
    fn bytes_that_nobody_reads_give_way_and_stay_while_open() {
        let (cache, made) = (Arc::new(BlockCache::new(100)), Arc::new(AtomicUsize::new(0)));
        let view = |letter: u8| {
            let made = made.clone();
            ConstantView::new(cache.clone(), move |_| {
                made.fetch_add(1, Ordering::Relaxed);
                Ok(vec![letter; 80])
            })
        };
        let (first, second, never) = (view(b'a'), view(b'b'), Interrupt::new());
        assert_eq!(first.size(Effort::Known, &never).unwrap(), Size::AtMost(UNKNOWN_SIZE));
        let (first_open, second_open) = (first.opened().unwrap(), second.opened().unwrap());
        for _ in 0..3 {
            assert_eq!(read(&*first_open, &never), [b'a'; 9]);
            assert_eq!(read(&*second_open, &never), [b'b'; 9]);
        }
        assert_eq!((cache.bytes(), made.load(Ordering::Relaxed)), (80, 2));
        drop((first_open, second_open));
        assert_eq!(first.size(Effort::Known, &never).unwrap(), Size::Exact(80));
        assert_eq!(read(&first, &never), [b'a'; 9]);
        assert_eq!((cache.bytes(), made.load(Ordering::Relaxed)), (80, 3));
        drop((first, second));
        assert_eq!(cache.bytes(), 0);
    }
}
