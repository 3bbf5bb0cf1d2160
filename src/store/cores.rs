//! Runs work on all cores of the processor.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use parking_lot::Mutex;

use crate::source::{Interrupt, Interrupted};

/// Number of cores that the process may use, determined once; 1 if the system cannot tell.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

/// Calls `work` once on each core, but on no more than `most` cores, the calling thread's included.
pub fn on_all_cores(most: u64, work: impl Fn() + Sync) {
    on_threads(most.min(cores() as u64), work);
}

/// Calls `work` once on each of this many threads, the calling one included.
pub fn on_threads(threads: u64, work: impl Fn() + Sync) {
    thread::scope(|scope| {
        for _ in 1..threads {
            // If a thread cannot be started, the others do its work.
            let _ = thread::Builder::new().name("hepfs-cores".to_owned()).spawn_scoped(scope, &work);
        }
        work();
    });
}

/// Calls `work` for each of `parts` on all cores, in order. Once a part has failed, no further part begins.
///
/// # Errors
/// The error of the first failing part in order, whichever failed first in time; an [`Interrupted`] counts as of the
/// next part.
pub fn for_each_part<E: From<Interrupted> + Send>(
    parts: u64,
    interrupt: &Interrupt,
    work: impl Fn(u64) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let (next, failed) = (AtomicU64::new(0), Mutex::new(None::<(u64, E)>));
    on_all_cores(parts, || {
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= parts || failed.lock().as_ref().is_some_and(|(first, _)| *first < part) {
                return;
            }
            if let Err(error) = interrupt.check().map_err(E::from).and_then(|()| work(part)) {
                let mut failed = failed.lock();
                if failed.as_ref().is_none_or(|(first, _)| part < *first) {
                    *failed = Some((part, error));
                }
            }
        }
    });
    failed.into_inner().map_or(Ok(()), |(_, error)| Err(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Error;

    #[test]
    fn each_part_is_done_once_and_the_first_error_counts() {
        let sum = AtomicU64::new(0);
        let add = |part| {
            sum.fetch_add(part, Ordering::Relaxed);
            Ok::<_, Error>(())
        };
        for_each_part(1000, &Interrupt::new(), add).unwrap();
        assert_eq!(sum.into_inner(), 999 * 500);
        let fails = |part| if part < 7 { Ok(()) } else { Err(Error::NoMemory { bytes: part }) };
        let failed = for_each_part(1000, &Interrupt::new(), fails);
        assert!(matches!(failed, Err(Error::NoMemory { bytes: 7 })), "{failed:?}");
        let interrupt = Interrupt::new();
        interrupt.raise();
        let failed = for_each_part(1000, &interrupt, |_| -> Result<(), Error> { panic!("it was interrupted") });
        assert!(matches!(failed, Err(Error::Interrupted(_))));
        for_each_part(0, &interrupt, |_| -> Result<(), Error> { panic!("there is no part") }).unwrap();
    }
}
