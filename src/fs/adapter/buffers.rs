//! A pool of buffers for answers: touching fresh memory costs more than filling it.

use parking_lot::Mutex;

/// Most buffers kept: more answers at once are rare, and each buffer grows to the longest read (1 MiB).
const KEPT: usize = 16;

/// Largest buffer kept, in bytes.
const LARGEST: usize = 2 << 20;

/// A stack of buffers: the buffer used last is likeliest in the processor's cache.
#[derive(Default)]
pub struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// Takes an empty buffer.
    pub fn take(&self) -> Vec<u8> {
        self.0.lock().pop().unwrap_or_default()
    }

    /// Keeps a buffer for the next answer.
    pub fn give_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut kept = self.0.lock();
        if kept.len() < KEPT && buffer.capacity() <= LARGEST {
            kept.push(buffer);
        }
    }
}
