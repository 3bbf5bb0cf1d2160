//! Buffers for answers, used again: touching fresh memory costs more than filling it.

use parking_lot::Mutex;

/// Buffers kept; more than this many answers at once are rare, and each buffer grows to the longest read (1 MiB).
const KEPT: usize = 16;

/// A buffer larger than this is not kept.
const LARGEST: usize = 2 << 20;

/// A stack of buffers: the one used last is likeliest in the processor's cache.
#[derive(Default)]
pub struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// An empty buffer.
    pub fn take(&self) -> Vec<u8> {
        self.0.lock().pop().unwrap_or_default()
    }

    /// Keeps a buffer for the next.
    pub fn give_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut kept = self.0.lock();
        if kept.len() < KEPT && buffer.capacity() <= LARGEST {
            kept.push(buffer);
        }
    }
}
