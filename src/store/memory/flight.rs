//! Memory outside the budget: arrays and text being made, over all threads.
//!
//! Work is cut into pieces of about [`ARRAY_BYTES`], so that a few of them per core take little memory. A single value
//! may be larger, and a file can have many large values: a [`Flight`] counts the bytes of each piece of work, and the
//! next piece waits for room. The thread that makes arrays takes the flight, never one that waits for others that may
//! want one; nested work on the same thread belongs to the outer piece.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::source::Interrupt;
use crate::store::{Error, cores};

/// Bytes of arrays to make at once, if rows can be split that far.
pub const ARRAY_BYTES: u64 = 16 << 20;

/// Most bytes in flight, or [`OF_A_CORE`] times the number of cores if that is more.
const MOST: u64 = 128 << 20;

/// Bytes in flight per core. A single larger piece of work runs alone.
const OF_A_CORE: u64 = 8 << 20;

/// How long work waits without any progress before it continues without room, to break a cycle of threads that wait for
/// each other.
const STALLED: Duration = Duration::from_secs(10);

/// How long a waiter sleeps between checks of its interrupt.
const LOOK: Duration = Duration::from_millis(20);

/// Allocations of at least this size are tried out first, since Rust aborts the process if one fails.
const TRIED: u64 = 1 << 20;

#[derive(Default)]
struct State {
    held: u64,
    releases: u64,
}

static STATE: Mutex<State> = Mutex::new(State { held: 0, releases: 0 });
static RELEASED: Condvar = Condvar::new();

thread_local! {
    static FLYING: Cell<bool> = const { Cell::new(false) };
}

/// Work in progress, measured in the bytes that it makes; ends when dropped.
#[derive(Debug)]
pub struct Flight {
    bytes: u64,
    is_outer: bool,
    /// Binds a flight to its thread.
    _here: std::marker::PhantomData<*const ()>,
}

impl Flight {
    /// Waits until there is room for `bytes` more.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; [`Error::NoMemory`] if the system cannot supply them.
    pub fn begin(bytes: u64, interrupt: &Interrupt) -> Result<Self, Error> {
        if FLYING.get() {
            return Ok(Self { bytes: 0, is_outer: false, _here: std::marker::PhantomData });
        }
        let most = most();
        let mut state = STATE.lock();
        let (mut seen, mut since) = (state.releases, Instant::now());
        while state.held > 0 && state.held.saturating_add(bytes) > most && since.elapsed() < STALLED {
            interrupt.check()?;
            RELEASED.wait_for(&mut state, LOOK);
            if state.releases != seen {
                (seen, since) = (state.releases, Instant::now());
            }
        }
        try_memory(bytes)?;
        state.held = state.held.saturating_add(bytes);
        FLYING.set(true);
        Ok(Self { bytes, is_outer: true, _here: std::marker::PhantomData })
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if self.is_outer {
            FLYING.set(false);
            let mut state = STATE.lock();
            state.held = state.held.saturating_sub(self.bytes);
            state.releases = state.releases.wrapping_add(1);
            drop(state);
            RELEASED.notify_all();
        }
    }
}

fn most() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| MOST.max((cores() as u64).saturating_mul(OF_A_CORE)))
}

/// Checks whether the system has `bytes` more bytes of address space.
///
/// # Errors
/// [`Error::NoMemory`].
pub fn try_memory(bytes: u64) -> Result<(), Error> {
    if bytes < TRIED {
        return Ok(());
    }
    let length = usize::try_from(bytes).map_err(|_| Error::NoMemory { bytes })?;
    // Untouched memory costs two system calls.
    Vec::<u8>::new().try_reserve_exact(length).map_err(|_| Error::NoMemory { bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_large_goes_alone_and_whoever_waits_can_be_stopped() {
        let interrupt = Interrupt::new();
        let huge = Flight::begin(most(), &interrupt).unwrap();
        // Nested work does not wait.
        drop(Flight::begin(most(), &interrupt).unwrap());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| Flight::begin(1, &interrupt).map(drop));
            std::thread::sleep(LOOK * 2);
            assert!(!waiting.is_finished());
            interrupt.raise();
            assert!(matches!(waiting.join().unwrap(), Err(Error::Interrupted(_))));
            let waiting = scope.spawn(|| Flight::begin(1, &Interrupt::new()).map(drop));
            drop(huge);
            waiting.join().unwrap().unwrap();
        });
    }

    #[test]
    fn memory_that_is_not_there_is_an_error() {
        assert!(matches!(try_memory(1 << 60), Err(Error::NoMemory { bytes }) if bytes == 1 << 60));
        try_memory(1 << 24).unwrap();
    }
}
