//! The threads that answer, and the watch over waiting requesters.
//!
//! A blocked session thread is lost for everybody, so it hands requests over. But waking another thread takes as long
//! as a small read, so a session thread does quick work itself while another one listens ([`Pool::run_quick`]). Three
//! things keep slow work from starving quick work:
//!
//! - work runs in *lanes* with threads of their own, so seventy opens that count a billion values do not delay lookups;
//! - a lane starts another thread whenever all of its threads are busy, up to a bound;
//! - a request whose sender was killed gets its answer at once, whether or not the work behind it notices.
//!
//! The last is why an answer is *claimed* ([`Ticket::claim`]): the worker and the watch over the requester both try.
//! Whoever claims the answer first sends it, and a worker that comes second discards its result.

mod requester;
mod threads;
mod waiters;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::Error;
use crate::activity::Timer;
use crate::session;
use crate::source::{Interrupt, StatMemo};
use requester::{Requester, Waiting};
use threads::LaneThreads;
use waiters::{Waiter, Waiters};

/// Sends the answer to one request. Dropped without a call, it must answer with an error by itself.
pub trait Reply: Send + 'static {
    /// Answers that the request failed.
    fn fail(self, error: &Error);
}

/// The threads that do a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Names and attributes: lookups, listings and all other calls that `ls` needs.
    Names,
    /// Reads of file contents.
    Reads,
    /// Work that may take minutes: opens that count a file's bytes.
    Slow,
}

impl Lane {
    /// Most threads of the lane. Every name asked for keeps at most one thread until the worker's deadline. Reads come
    /// from `max_background` (64) read-aheads and their callers. Slow work shares the cores anyway.
    fn bound(self) -> usize {
        match self {
            Lane::Names => 256,
            Lane::Reads | Lane::Slow => 64,
        }
    }
}

/// A request that waits for its answer.
pub struct Ticket<R: Reply>(Arc<Pending<R>>);

struct Pending<R> {
    answer: Mutex<Option<R>>,
    interrupt: Interrupt,
    memo: StatMemo,
    requester: Option<Requester>,
    id: u64,
    waiters: Arc<Waiters>,
    _timer: Option<Timer>,
}

impl<R: Reply> Ticket<R> {
    /// The interrupt, raised when the requester no longer waits.
    pub fn interrupt(&self) -> &Interrupt {
        &self.0.interrupt
    }

    /// Takes the reply, unless the request has its answer already. Effects that the requester must not miss (a counted
    /// lookup, an open file) belong after a successful claim.
    pub fn claim(&self) -> Option<R> {
        self.0.answer.lock().take()
    }

    /// Answers that the request failed, unless it has its answer already.
    pub fn fail(&self, error: &Error) {
        if let Some(answer) = self.claim() {
            answer.fail(error);
        }
    }
}

impl<R> Drop for Pending<R> {
    fn drop(&mut self) {
        self.waiters.remove(self.id);
    }
}

impl<R: Reply> Waiter for Pending<R> {
    fn waiting(&self) -> Waiting {
        self.requester.map_or(Waiting::Yes, Requester::waiting)
    }

    fn cancel(&self) {
        self.interrupt.raise();
        let answer = self.answer.lock().take();
        if let Some(answer) = answer {
            answer.fail(&session::Error::Interrupted.into());
        }
    }
}

/// Number of session threads that may be away at once, so that one always listens.
struct Listeners(AtomicUsize);

/// A session thread that does not listen for now.
struct Away<'a>(&'a Listeners);

impl Listeners {
    /// Lets the calling thread stop listening; `None`: it is the last one that listens.
    fn leave(&self) -> Option<Away<'_>> {
        let left = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |others| others.checked_sub(1));
        left.is_ok().then(|| Away(self))
    }
}

impl Drop for Away<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// The threads that answer.
pub struct Pool {
    listeners: Listeners,
    names: Arc<LaneThreads>,
    reads: Arc<LaneThreads>,
    slow: Arc<LaneThreads>,
    waiters: Arc<Waiters>,
    next: AtomicU64,
}

impl Pool {
    /// A pool that serves beside `session_threads` session threads. Its own threads start when work arrives.
    pub fn new(session_threads: usize) -> Self {
        let threads = |lane: Lane, name| Arc::new(LaneThreads::new(lane.bound(), name));
        Self {
            listeners: Listeners(AtomicUsize::new(session_threads.saturating_sub(1))),
            names: threads(Lane::Names, "hepfs-names"),
            reads: threads(Lane::Reads, "hepfs-reads"),
            slow: threads(Lane::Slow, "hepfs-slow"),
            waiters: Arc::default(),
            next: AtomicU64::new(0),
        }
    }

    /// Registers a request of the thread `pid` (0 if unknown), counted by `timer` when it is done. The memo of the
    /// calling thread goes with it.
    pub fn ticket<R: Reply>(&self, pid: u32, answer: R, timer: Option<Timer>) -> Ticket<R> {
        let requester = Requester::new(pid);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let waiters = self.waiters.clone();
        let interrupt = Interrupt::new();
        let memo = StatMemo::current().until(&interrupt);
        let pending = Arc::new(Pending {
            answer: Mutex::new(Some(answer)),
            interrupt,
            memo,
            requester,
            id,
            waiters,
            _timer: timer,
        });
        let weak: Weak<Pending<R>> = Arc::downgrade(&pending);
        self.waiters.add(id, weak);
        Ticket(pending)
    }

    /// Runs `job` on a thread of `lane`. A panic in it answers with an I/O error.
    pub fn run<R: Reply>(&self, lane: Lane, ticket: Ticket<R>, job: impl FnOnce(Ticket<R>) + Send + 'static) {
        let threads = match lane {
            Lane::Names => &self.names,
            Lane::Reads => &self.reads,
            Lane::Slow => &self.slow,
        };
        if let Err(work) = threads.push(Box::new(|| answer(ticket, job))) {
            // The lane has no thread and cannot start one (`ulimit -v`, `-u`): the calling thread does the work, and
            // others wait.
            work();
        }
    }

    /// Runs `job` at once, on the calling session thread, if another one listens; otherwise as [`Pool::run`]. This is
    /// for work that should be quick: the end of the session waits for its threads.
    pub fn run_quick<R: Reply>(&self, lane: Lane, ticket: Ticket<R>, job: impl FnOnce(Ticket<R>) + Send + 'static) {
        match self.listeners.leave() {
            Some(_away) => answer(ticket, job),
            None => self.run(lane, ticket, job),
        }
    }

    /// Sets the test for the end of the session, called now and then while a request waits long: busy session threads
    /// do not notice the end. It cancels all requests.
    pub fn watch_end(&self, is_over: impl Fn() -> bool + Send + Sync + 'static) {
        self.waiters.watch_end(Box::new(is_over));
    }

    /// Answers every waiting request with "interrupted" and stops the work behind it.
    pub fn cancel_all(&self) {
        self.waiters.cancel_all();
    }
}

/// Runs `job`, unless its request was cancelled in the queue. A panic in it answers with an I/O error.
fn answer<R: Reply>(ticket: Ticket<R>, job: impl FnOnce(Ticket<R>)) {
    if ticket.interrupt().is_raised() {
        return;
    }
    let pending = ticket.0.clone();
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| pending.memo.scope(|| job(ticket)))) {
        Ticket(pending).fail(&panicked(&*panic));
    }
}

/// Logs a panic and turns it into an error.
pub fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)");
    tracing::error!("a request panicked: {message}; it answers EIO and the mount lives on");
    session::Error::Io(format!("internal error: {message}")).into()
}

impl Drop for Pool {
    /// Threads end after their current work. Nobody joins them: one may hang in a system call.
    fn drop(&mut self) {
        for threads in [&self.names, &self.reads, &self.slow] {
            threads.close();
        }
        self.waiters.close();
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Sends `Ok` by hand and the errno on failure, as a dropped reply of `fuser` sends EIO.
    struct Recorded(Option<Sender<Result<(), i32>>>);

    impl Recorded {
        fn new() -> (Self, Receiver<Result<(), i32>>) {
            let (sender, receiver) = channel();
            (Self(Some(sender)), receiver)
        }

        fn ok(mut self) {
            self.0.take().unwrap().send(Ok(())).ok();
        }
    }

    impl Reply for Recorded {
        fn fail(mut self, error: &Error) {
            self.0.take().unwrap().send(Err(error.errno())).ok();
        }
    }

    impl Drop for Recorded {
        fn drop(&mut self) {
            if let Some(sender) = self.0.take() {
                sender.send(Err(libc::EIO)).ok();
            }
        }
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn slow_work_beyond_the_bound_leaves_names_alone() {
        let pool = Pool::new(1);
        let (open_gate, gate) = crossbeam_channel::bounded::<()>(0);
        let mut slow = Vec::new();
        for _ in 0..Lane::Slow.bound() + 6 {
            let (reply, answer) = Recorded::new();
            let gate = gate.clone();
            pool.run(Lane::Slow, pool.ticket(0, reply, None), move |ticket| {
                gate.recv().ok();
                ticket.claim().unwrap().ok();
            });
            slow.push(answer);
        }
        let (reply, answer) = Recorded::new();
        pool.run(Lane::Names, pool.ticket(0, reply, None), |ticket| ticket.claim().unwrap().ok());
        assert_eq!(answer.recv_timeout(LONG), Ok(Ok(())));
        assert!(slow.iter().all(|answer| answer.try_recv().is_err()));
        drop(open_gate);
        for answer in slow {
            assert_eq!(answer.recv_timeout(LONG), Ok(Ok(())));
        }
    }

    #[test]
    fn quick_work_is_done_here_while_another_thread_listens() {
        // Of two session threads one is away.
        let pool = Arc::new(Pool::new(2));
        let (reply, answer) = Recorded::new();
        let (inner_reply, inner_answer) = Recorded::new();
        let here = thread::current().id();
        let other = pool.clone();
        pool.run_quick(Lane::Reads, pool.ticket(0, reply, None), move |ticket| {
            assert_eq!(thread::current().id(), here);
            other.run_quick(Lane::Reads, other.ticket(0, inner_reply, None), move |ticket| {
                assert_ne!(thread::current().id(), here);
                ticket.claim().unwrap().ok();
            });
            ticket.claim().unwrap().ok();
        });
        assert_eq!(answer.recv_timeout(LONG), Ok(Ok(())));
        assert_eq!(inner_answer.recv_timeout(LONG), Ok(Ok(())));
        // It is back, also after a panic.
        for _ in 0..3 {
            let (reply, answer) = Recorded::new();
            let (done, by) = channel();
            pool.run_quick(Lane::Reads, pool.ticket(0, reply, None), move |_| {
                done.send(thread::current().id()).ok();
                panic!("on purpose")
            });
            assert_eq!(answer.recv_timeout(LONG), Ok(Err(libc::EIO)));
            assert_eq!(by.recv(), Ok(here));
        }
    }

    #[test]
    fn a_panic_answers_and_the_thread_lives() {
        let pool = Pool::new(1);
        for _ in 0..3 {
            let (reply, answer) = Recorded::new();
            pool.run(Lane::Names, pool.ticket(0, reply, None), |_| panic!("on purpose"));
            assert_eq!(answer.recv_timeout(LONG), Ok(Err(libc::EIO)));
        }
        let (reply, answer) = Recorded::new();
        pool.run(Lane::Names, pool.ticket(0, reply, None), |ticket| ticket.claim().unwrap().ok());
        assert_eq!(answer.recv_timeout(LONG), Ok(Ok(())));
    }

    #[test]
    fn a_requester_that_dies_is_answered_though_the_work_goes_on() {
        let pool = Pool::new(1);
        let mut child = Command::new("sleep").arg("1000").stdout(Stdio::null()).spawn().unwrap();
        let (open_gate, gate) = crossbeam_channel::bounded::<()>(0);
        let (reply, answer) = Recorded::new();
        let ticket = pool.ticket(child.id(), reply, None);
        let interrupt = ticket.interrupt().clone();
        let (done, finished) = channel();
        pool.run(Lane::Slow, ticket, move |ticket| {
            gate.recv().ok();
            done.send(ticket.claim().is_none()).ok();
        });
        assert!(answer.recv_timeout(Duration::from_millis(600)).is_err(), "answered before its requester died");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(answer.recv_timeout(LONG), Ok(Err(libc::EINTR)));
        assert!(interrupt.is_raised());
        drop(open_gate);
        assert_eq!(finished.recv_timeout(LONG), Ok(true), "the worker could still claim the answer");
    }

    #[test]
    fn all_can_be_cancelled_also_those_that_queue() {
        let pool = Pool::new(1);
        // One that can be watched, one that cannot.
        let requesters = [std::process::id(), 0];
        let (open_gate, gate) = crossbeam_channel::bounded::<()>(0);
        let answers: Vec<_> = (0..Lane::Slow.bound() + 3)
            .map(|at| {
                let (reply, answer) = Recorded::new();
                let gate = gate.clone();
                pool.run(Lane::Slow, pool.ticket(requesters[at % 2], reply, None), move |_| gate.recv().unwrap_or(()));
                answer
            })
            .collect();
        pool.cancel_all();
        for answer in answers {
            assert_eq!(answer.recv_timeout(LONG), Ok(Err(libc::EINTR)));
        }
        drop(open_gate);
    }
}
