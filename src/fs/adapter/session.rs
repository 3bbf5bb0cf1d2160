//! One mounted session: its threads, and the notifications that we send the kernel.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam_channel::{Receiver, bounded};
use fuser::{Config, INodeNo, Notifier, Session, SessionACL};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{getegid, geteuid};

use super::answer::Device;
use super::buffers::Buffers;
use super::{Adapter, Shared, pipe};
use crate::activity::Requests;
use crate::fs::Error;
use crate::fs::node::NodeRef;
use crate::fs::options::MountOptions;
use crate::fs::pool::{Lane, Pool, Reply};
use crate::fs::service::{KnownName, ROOT, Service};
use crate::source::{self, StatMemo};
use crate::store::cores;

/// Least number of new names between two trims for the sake of sources.
const LEAST_GROWTH: usize = 32;

/// Sends notifications to the kernel; empty until the session runs.
pub struct Connection {
    known_names: usize,
    notifier: OnceLock<Notifier>,
    device: OnceLock<Device>,
    trimming: Arc<AtomicBool>,
    /// Names known at the last trim for the sake of sources, or fewer that were known since.
    left: AtomicUsize,
}

/// Keeps [`Connection::trimming`] true while a trim runs, panics included.
struct Trimming(Arc<AtomicBool>);

impl Drop for Trimming {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A trim has no requester, so nobody needs its failure.
impl Reply for () {
    fn fail(self, _: &Error) {}
}

impl Connection {
    fn new(known_names: usize) -> Self {
        Self {
            known_names,
            notifier: OnceLock::new(),
            device: OnceLock::new(),
            trimming: Arc::default(),
            left: AtomicUsize::new(0),
        }
    }

    /// The descriptor of the session, once it runs.
    pub(super) fn device(&self) -> Option<&Device> {
        self.device.get()
    }

    /// Whether so many names came since the last trim for the sake of sources that another is worth its time: sources
    /// that programs hold open stay.
    fn has_grown(&self, known: usize) -> bool {
        let left = self.left.fetch_min(known, Ordering::Relaxed).min(known);
        known >= left + (left / 8).max(LEAST_GROWTH)
    }

    /// Asks the kernel to forget the oldest names if it knows too many, until three quarters of the limit remain.
    /// Without this, a walk through selections would never end. If too many sources are open, half of the names remain:
    /// a source closes with the last of its names.
    pub fn trim(&self, service: &Service, pool: &Pool) {
        let known = service.inodes().len();
        let kept = if known > self.known_names {
            self.known_names / 4 * 3
        } else if source::are_too_many_open() && self.has_grown(known) {
            self.left.store(known, Ordering::Relaxed);
            known / 2
        } else {
            return;
        };
        if self.trimming.swap(true, Ordering::Acquire) {
            return;
        }
        let guard = Trimming(self.trimming.clone());
        let Some(notifier) = self.notifier.get().cloned() else { return };
        let names = service.inodes().oldest(kept);
        // Not on a session thread: the kernel may need an answer from us before it lets go.
        pool.run(Lane::Slow, pool.ticket(0, (), None), move |_| {
            let _guard = guard;
            for name in names {
                forget_name(&notifier, &name);
            }
        });
    }
}

/// Makes the kernel forget a name. The name or the mount may be gone already.
fn forget_name(notifier: &Notifier, name: &KnownName) {
    if let Err(error) = notifier.inval_entry(INodeNo(name.parent), OsStr::from_bytes(&name.name)) {
        tracing::debug!("cannot invalidate {:?}: {error}", name.name);
    }
}

/// A handle that makes the kernel drop what it has cached. Any thread may hold and use one.
#[derive(Clone)]
pub struct Invalidator(Arc<Shared>);

impl Invalidator {
    /// Drops pages, attributes and names of every node that is no longer current, and the attributes of the directories
    /// that hold them.
    ///
    /// This may wait for answers to requests, so never call it from a [`crate::fs::Node`].
    pub fn stale(&self) {
        self.drop_names(|node| !node.is_current());
    }

    /// Drops pages, attributes and names of every known node.
    ///
    /// This may wait for answers to requests, so never call it from a [`crate::fs::Node`].
    pub fn everything(&self) {
        self.0.service.inodes().distrust_names();
        self.drop_names(|_| true);
    }

    fn drop_names(&self, choose: impl Fn(&NodeRef) -> bool) {
        let Some(notifier) = self.0.session.notifier.get() else { return };
        StatMemo::expire_all();
        // All names belong to the same few files.
        let names = StatMemo::default().scope(|| self.0.service.inodes().names(choose));
        let folders: BTreeSet<u64> = names.iter().map(|name| name.parent).chain([ROOT]).collect();
        for name in &names {
            // A negative length means the rest of the file.
            forget_inode(notifier, name.number, 0, -1);
            forget_name(notifier, name);
        }
        for folder in folders {
            // A negative offset means attributes alone.
            forget_inode(notifier, folder, -1, 0);
        }
    }
}

/// Makes the kernel forget attributes and pages. They or the mount may be gone already.
fn forget_inode(notifier: &Notifier, number: u64, offset: i64, length: i64) {
    if let Err(error) = notifier.inval_inode(INodeNo(number), offset, length) {
        tracing::debug!("cannot invalidate inode {number}: {error}");
    }
}

/// A running session.
pub struct Server {
    shared: Arc<Shared>,
    ended: Receiver<()>,
}

impl Server {
    /// Answers the requests of a mount, which come from this descriptor of `/dev/fuse`.
    pub fn start(root: NodeRef, device: OwnedFd, options: &MountOptions) -> io::Result<Self> {
        let threads = options.threads.unwrap_or_else(session_threads);
        let longest = u32::try_from(pipe::longest_answer()).unwrap_or(u32::MAX);
        let max_read = options.max_read.min(longest);
        let shared = Arc::new(Shared {
            service: Service::new(root, options.ttl, options.xattrs),
            pool: Pool::new(threads),
            buffers: Buffers::default(),
            names_are_quick: AtomicBool::new(false),
            direct_io: options.direct_io,
            max_read,
            total_bytes: options.total_bytes,
            owner: (geteuid().as_raw(), getegid().as_raw()),
            session: Connection::new(options.known_names),
            requests: Arc::default(),
        });
        let (sender, ended) = bounded(1);
        let mut config = Config::default();
        config.n_threads = Some(threads);
        let adapter = Adapter(shared.clone(), sender.clone());
        // The mount decided who may send requests.
        let session = Session::from_fd(adapter, device, SessionACL::All, config)?;
        let device = session.as_fd().try_clone_to_owned()?;
        shared.session.device.set(Device::new(session.as_fd().try_clone_to_owned()?)).ok();
        shared.pool.watch_end(move || {
            let over = is_over(device.as_fd());
            if over {
                sender.try_send(()).ok();
            }
            over
        });
        shared.session.notifier.set(session.notifier()).ok();
        // We unmount ourselves. Dropped, the session's handle would unmount a second time, by path, and could so remove
        // another mount: `fuser` 0.18.0 takes a mount that is gone for one that exists.
        std::mem::forget(session.spawn()?);
        Ok(Self { shared, ended })
    }

    /// The channel that gets one message when the session ends.
    pub fn ended(&self) -> &Receiver<()> {
        &self.ended
    }

    /// Longest read that the kernel asks for, in bytes.
    pub fn max_read(&self) -> u32 {
        self.shared.max_read
    }

    /// The requests so far.
    pub fn requests(&self) -> &Arc<Requests> {
        &self.shared.requests
    }

    /// The handle that makes the kernel drop its caches.
    pub fn invalidator(&self) -> Invalidator {
        Invalidator(self.shared.clone())
    }

    /// Answers all waiting requests with "interrupted".
    pub fn cancel_all(&self) {
        self.shared.pool.cancel_all();
    }
}

/// Default number of session threads: one for each core, one more that may wait for a disk, and one that listens.
pub(in crate::fs) fn session_threads() -> usize {
    cores() + 2
}

/// Whether the kernel has ended the session of this device, after an unmount or an abort.
fn is_over(device: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(device, PollFlags::empty())];
    poll(&mut polled, Some(&Timespec::default())).is_ok() && polled[0].revents().contains(PollFlags::ERR)
}
