//! The threads that decode ahead of readers.

use std::sync::OnceLock;

use crossbeam_channel::{Sender, bounded};

/// Most jobs that may wait. Later ones would run long after they were useful.
const WAITING: usize = 64;

type Job = Box<dyn FnOnce() + Send>;

/// A few decoding threads, started at first use and stopped when dropped.
#[derive(Debug)]
pub(in crate::store) struct DecodingThreads {
    count: usize,
    jobs: OnceLock<Option<Sender<Job>>>,
}

impl DecodingThreads {
    pub fn new(count: usize) -> Self {
        Self { count, jobs: OnceLock::new() }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Queues `job`; `false`: the queue is full.
    pub fn submit(&self, job: impl FnOnce() + Send + 'static) -> bool {
        let jobs = self.jobs.get_or_init(|| {
            let (sender, receiver) = bounded::<Job>(WAITING);
            let started = (0..self.count).filter(|i| {
                let receiver = receiver.clone();
                let thread = std::thread::Builder::new().name(format!("hepfs-decode-{i}")).spawn(move || {
                    for job in receiver {
                        // The reader that the job served will hit the same panic, and report it.
                        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
                    }
                });
                thread.is_ok()
            });
            (started.count() > 0).then_some(sender)
        });
        jobs.as_ref().is_some_and(|jobs| jobs.try_send(Box::new(job)).is_ok())
    }
}
