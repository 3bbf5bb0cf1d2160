//! Catches signals, so that a command can report how far it came before it ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::Error;

/// The exit code of a program ended by Ctrl-C, by the convention of shells.
pub(super) const INTERRUPTED: u8 = 130;

/// Registered once, since handlers stay.
static CAUGHT: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Whether a signal was caught.
pub(super) fn have_come() -> bool {
    CAUGHT.get().is_some_and(|signalled| signalled.load(Ordering::Relaxed))
}

/// A flag that signals raise; a second signal ends the program.
///
/// # Errors
/// If the system cannot catch them.
pub(super) fn caught() -> Result<Arc<AtomicBool>, Error> {
    if let Some(signalled) = CAUGHT.get() {
        return Ok(signalled.clone());
    }
    let signalled = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED.into(), signalled.clone())
            .and_then(|_| signal_hook::flag::register(signal, signalled.clone()))
            .map_err(Error::io("catching signals"))?;
    }
    Ok(CAUGHT.get_or_init(|| signalled).clone())
}
