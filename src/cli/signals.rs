//! Signals that end a command which then says how far it came.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use super::Error;

/// What a shell shows of a program that Ctrl-C ended.
pub(super) const INTERRUPTED: u8 = 130;

/// A flag that is raised when a signal says to end; a second one ends the program.
///
/// # Errors
/// Where the system does not let them be caught.
pub(super) fn caught() -> Result<Arc<AtomicBool>, Error> {
    // Once: what is registered stays.
    static CAUGHT: OnceLock<Arc<AtomicBool>> = OnceLock::new();
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
