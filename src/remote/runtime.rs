//! The threads that wait for the network.

use std::io;
use std::pin::pin;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::timeout;

use crate::source::{Interrupt, Interrupted};

/// How often a waiting thread looks at its interrupt.
const LOOK: Duration = Duration::from_millis(20);

/// Made by the first that needs it, so a command that reads files alone starts no thread.
static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);

/// The runtime of all requests to stores. Tasks spawned on it must not block.
///
/// # Errors
/// Where the system gives no threads.
pub fn handle() -> io::Result<Handle> {
    let mut runtime = RUNTIME.lock();
    if let Some(runtime) = &*runtime {
        return Ok(runtime.handle().clone());
    }
    let new = Builder::new_multi_thread().worker_threads(2).thread_name("hepfs-net").enable_all().build()?;
    Ok(runtime.insert(new).handle().clone())
}

/// Waits for work on the network, on a thread that may block. Once the interrupt is raised, the work is dropped.
///
/// # Errors
/// [`Interrupted`]
pub fn wait<T>(runtime: &Handle, work: impl Future<Output = T>, interrupt: &Interrupt) -> Result<T, Interrupted> {
    runtime.block_on(async {
        let mut work = pin!(work);
        loop {
            interrupt.check()?;
            if let Ok(done) = timeout(LOOK, &mut work).await {
                return Ok(done);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Instant;

    use super::*;

    #[test]
    fn an_interrupt_ends_a_wait() {
        let (runtime, interrupt) = (handle().unwrap(), Interrupt::new());
        assert_eq!(wait(&runtime, async { 7 }, &interrupt), Ok(7));
        let begun = Instant::now();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| wait(&runtime, std::future::pending::<()>(), &interrupt));
            thread::sleep(Duration::from_millis(50));
            interrupt.raise();
            assert_eq!(waiting.join().unwrap(), Err(Interrupted));
        });
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
