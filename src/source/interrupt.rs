//! A flag that stops long work whose result is no longer wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag to stop work, shared between a waiting request and the work done for it. Clones share one flag.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// The work was stopped: its result is no longer wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

impl Interrupt {
    /// A flag that is not raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises the flag: work that looks at it stops soon.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the flag is raised.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns an error once the flag is raised. Long work calls this between blocks.
    ///
    /// # Errors
    /// [`Interrupted`] when the flag is raised.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.is_raised() { Err(Interrupted) } else { Ok(()) }
    }
}
