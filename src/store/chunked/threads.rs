//! The threads that decode ahead of readers.

use std::sync::OnceLock;

use crossbeam_channel::{Sender, bounded};

/// Jobs that may wait. More would be done long after they were of use.
const WAITING: usize = 64;

type Job = Box<dyn FnOnce() + Send>;

/// A few threads that decode; started when first needed, ended when dropped.
#[derive(Debug)]
pub(in crate::store) struct Threads {
    count: usize,
    jobs: OnceLock<Option<Sender<Job>>>,
}

impl Threads {
    pub fn new(count: usize) -> Self {
        Self { count, jobs: OnceLock::new() }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Does `job` soon; `false` where too many wait already.
    pub fn submit(&self, job: impl FnOnce() + Send + 'static) -> bool {
        let jobs = self.jobs.get_or_init(|| {
            let (sender, receiver) = bounded::<Job>(WAITING);
            let started = (0..self.count).filter(|i| {
                let receiver = receiver.clone();
                let thread = std::thread::Builder::new().name(format!("hepfs-decode-{i}")).spawn(move || {
                    for job in receiver {
                        // The reader that a job worked for meets the same panic again, and reports it.
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
