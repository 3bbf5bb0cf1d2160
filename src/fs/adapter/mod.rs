//! Translates between the kernel's protocol, as `fuser` speaks it, and [`Service`]. Only this module knows `fuser`.
//!
//! A handler runs on one of few session threads and must not block. It answers from memory if it can, and looks up
//! names and reads files itself as long as these are quick. All other work goes to the [`Pool`], whose threads answer.

mod answer;
mod buffers;
mod listing;
mod pipe;
mod replies;
mod session;

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use bstr::{BString, ByteSlice};
use crossbeam_channel::Sender;
use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, IoctlFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, PollEvents, PollFlags,
    PollNotifier, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty,
    ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyPoll, ReplyStatfs, ReplyWrite, ReplyXattr, Request, RequestId,
    TimeOrNow, WriteFlags,
};

pub(super) use session::session_threads;
pub use session::{Invalidator, Server};

use super::Error;
use super::node::EntryKind;
use super::pool::{Lane, Pool, Reply, Ticket, panicked};
use super::service::{OpenNode, Service, Stat};
use crate::activity::{RequestKind, Requests, Timer};
use crate::source::{Interrupt, StatMemo};
use crate::views::Effort;
use buffers::Buffers;

/// Most read-ahead requests under way in the kernel.
const MAX_BACKGROUND: u16 = 64;

/// If a read takes less time, a session thread answers the next read of that file itself; lookups follow the same rule.
/// Decoding a chunk of 1 MiB takes less; waiting for a pass over a column, for a worker or for a slow disk takes more.
const QUICK: Duration = Duration::from_millis(5);

/// Block size in `statfs`, and in `stat` of directories, links and live files.
const BLOCK: u32 = 4096;

/// A number stands for one node as long as the kernel knows it, so all generations are the same.
const GENERATION: Generation = Generation(0);

/// State that session threads and pool share.
struct Shared {
    service: Service,
    pool: Pool,
    buffers: Buffers,
    /// Whether the last job of [`Lane::Names`] was quick.
    names_are_quick: AtomicBool,
    direct_io: bool,
    max_read: u32,
    total_bytes: u64,
    owner: (u32, u32),
    session: session::Connection,
    requests: Arc<Requests>,
}

/// The handlers, and a channel that closes when the session is over.
struct Adapter(Arc<Shared>, Sender<()>);

impl Shared {
    fn attr(&self, stat: &Stat) -> FileAttr {
        FileAttr {
            ino: INodeNo(stat.number),
            size: stat.size,
            // Never fewer blocks than the size takes: `tar` and `cp` would look for holes.
            blocks: stat.size.div_ceil(512),
            atime: stat.attributes.atime,
            mtime: stat.attributes.mtime,
            ctime: stat.attributes.ctime,
            crtime: stat.attributes.ctime,
            kind: file_type(stat.attributes.kind),
            perm: stat.attributes.mode & 0o555,
            // For a directory, 1 means "unknown", whereas `find` takes 2 for "no folders inside".
            nlink: 1,
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            // `cat`, `cp` and Python's files read this much at a time. The kernel keeps only the highest bit.
            blksize: if stat.attributes.kind == EntryKind::File { self.max_read.next_power_of_two() } else { BLOCK },
            flags: 0,
        }
    }

    fn send_entry(&self, reply: ReplyEntry, stat: &Stat) {
        reply.entry_with_ttls(&stat.attr_ttl, &stat.entry_ttl, &self.attr(stat), GENERATION);
    }

    /// Opens a file if its size is known or quickly computed; otherwise in the slow lane.
    fn open(self: Arc<Self>, number: u64, effort: Effort, ticket: Ticket<ReplyOpen>) {
        match self.service.open(number, effort, ticket.interrupt()) {
            Ok(Some(file)) => {
                if let Some(reply) = ticket.claim() {
                    self.send_open(reply, file);
                }
            }
            Ok(None) => {
                let shared = self.clone();
                self.pool.run(Lane::Slow, ticket, move |ticket| shared.open(number, Effort::Exact, ticket));
            }
            Err(error) => ticket.fail(&error),
        }
    }

    fn send_open(&self, reply: ReplyOpen, file: OpenNode) {
        let direct = self.direct_io || file.is_direct();
        let flags = if direct { FopenFlags::FOPEN_DIRECT_IO } else { FopenFlags::FOPEN_KEEP_CACHE };
        let handle = self.service.opened(file);
        reply.opened(FileHandle(handle), flags | FopenFlags::FOPEN_NOFLUSH);
    }

    fn read(&self, request: RequestId, file: &OpenNode, offset: u64, length: usize, ticket: &Ticket<ReplyData>) {
        let started = Instant::now();
        match file.gather(offset, length, self.buffers.take(), ticket.interrupt()) {
            Ok(mut answer) => {
                self.send(request, (file, offset), &mut answer, ticket);
                self.buffers.give_back(answer.into_made());
            }
            Err(error) => ticket.fail(&error),
        }
        file.set_quick(started.elapsed() < QUICK);
    }
}

impl Adapter {
    /// Counts a request from now on.
    fn timer(&self, kind: RequestKind, request: &Request) -> Timer {
        Timer::start(&self.0.requests, kind, request.pid())
    }

    /// Runs a handler that answers at once. A panic drops the reply, and a dropped reply answers EIO.
    fn at_once<R: Reply>(&self, reply: R, handler: impl FnOnce(&Shared, R) -> Result<(), (R, Error)>) {
        match catch_unwind(AssertUnwindSafe(|| StatMemo::impatient().scope(|| handler(&self.0, reply)))) {
            Ok(Ok(())) => {}
            Ok(Err((reply, error))) => reply.fail(&error),
            Err(panic) => drop(panicked(&*panic)),
        }
    }

    /// Answers from memory; if memory has no answer, or only an old one, computes it on the pool.
    fn known_or<R: Reply, T>(
        &self,
        kind: RequestKind,
        (request, reply): (&Request, R),
        known: impl FnOnce(&Service) -> Result<Option<T>, Error>,
        send: impl FnOnce(&Shared, R, T),
        otherwise: impl FnOnce(R, Timer),
    ) {
        let timer = self.timer(kind, request);
        let memo = StatMemo::impatient();
        memo.scope(|| match catch_unwind(AssertUnwindSafe(|| known(&self.0.service))) {
            Ok(_) if memo.is_late() => otherwise(reply, timer),
            Ok(Ok(Some(answer))) => self.at_once(reply, |shared, reply| {
                send(shared, reply, answer);
                Ok(())
            }),
            Ok(Ok(None)) => otherwise(reply, timer),
            Ok(Err(error)) => reply.fail(&error),
            Err(panic) => reply.fail(&panicked(&*panic)),
        })
    }

    /// Runs a job on the pool, which then answers. The session thread runs a job of the lane of names itself as long as
    /// such jobs are quick: nearly all are, and waking another thread takes longer.
    fn run<R: Reply>(
        &self,
        lane: Lane,
        request: &Request,
        (reply, timer): (R, Timer),
        job: impl FnOnce(Arc<Shared>, Ticket<R>) + Send + 'static,
    ) {
        let (shared, pool) = (self.0.clone(), &self.0.pool);
        let ticket = pool.ticket(request.pid(), reply, Some(timer));
        if lane != Lane::Names {
            return pool.run(lane, ticket, move |ticket| job(shared, ticket));
        }
        let timed = move |ticket| {
            let started = Instant::now();
            job(shared.clone(), ticket);
            shared.names_are_quick.store(started.elapsed() < QUICK, Ordering::Relaxed);
        };
        let quick = self.0.names_are_quick.load(Ordering::Relaxed);
        if quick { pool.run_quick(lane, ticket, timed) } else { pool.run(lane, ticket, timed) }
    }

    /// Computes an answer on the pool and sends it from there.
    fn later<R: Reply, T>(
        &self,
        lane: Lane,
        request: &Request,
        reply: (R, Timer),
        compute: impl FnOnce(&Service, &Interrupt) -> Result<T, Error> + Send + 'static,
        send: impl FnOnce(&Shared, R, T) + Send + 'static,
    ) {
        self.run(lane, request, reply, move |shared, ticket| match compute(&shared.service, ticket.interrupt()) {
            Ok(answer) => {
                if let Some(reply) = ticket.claim() {
                    send(&shared, reply, answer);
                }
            }
            Err(error) => ticket.fail(&error),
        });
    }
}

impl Filesystem for Adapter {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let wanted = InitFlags::FUSE_ASYNC_READ
            | InitFlags::FUSE_PARALLEL_DIROPS
            | InitFlags::FUSE_DO_READDIRPLUS
            // Programs that look nothing up ask for names alone: `ls` creates no node for each name.
            | InitFlags::FUSE_READDIRPLUS_AUTO
            | InitFlags::FUSE_ASYNC_DIO
            | InitFlags::FUSE_MAX_PAGES
            | InitFlags::FUSE_CACHE_SYMLINKS
            // Some files bypass the page cache, and some programs map even those.
            | InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP
            // This flag makes reads ask again for expired attributes: `open` expires an upper bound of the size. With
            // that bound, the kernel would take the first answer past the end for the end of the file, with zeros up to
            // there.
            | InitFlags::FUSE_AUTO_INVAL_DATA;
        // Older kernels lack some capabilities; each is an improvement and none a condition.
        if let Err(missing) = config.add_capabilities(wanted) {
            tracing::debug!("this kernel lacks {missing:?}");
            config.add_capabilities(wanted & !missing).ok();
        }
        config.set_max_background(MAX_BACKGROUND).ok();
        config.set_max_write(self.0.max_read).ok();
        // The kernel offers 128 KiB and takes no more here; `mount` raises it afterwards if it may.
        if let Err(offered) = config.set_max_readahead(self.0.max_read) {
            config.set_max_readahead(offered).ok();
        }
        Ok(())
    }

    fn destroy(&mut self) {
        self.0.pool.cancel_all();
        self.1.try_send(()).ok();
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let parent = parent.0;
        let bytes = name.as_bytes().as_bstr();
        self.known_or(
            RequestKind::Lookup,
            (request, reply),
            |service| service.lookup_known(parent, bytes),
            |shared, reply, stat| shared.send_entry(reply, &stat),
            |reply, timer| {
                let name = bytes.to_owned();
                let sought = name.clone();
                self.later(
                    Lane::Names,
                    request,
                    (reply, timer),
                    move |service, interrupt| service.lookup(parent, sought.as_bstr(), Effort::Quick, interrupt),
                    move |shared, reply, found| {
                        shared.send_entry(reply, &shared.service.count(parent, name.as_bstr(), found));
                        shared.session.trim(&shared.service, &shared.pool);
                    },
                );
            },
        );
    }

    fn forget(&self, _: &Request, number: INodeNo, count: u64) {
        self.0.service.inodes().forget(number.0, count);
    }

    fn getattr(&self, request: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let number = number.0;
        let send = |shared: &Shared, reply: ReplyAttr, stat: Stat| reply.attr(&stat.attr_ttl, &shared.attr(&stat));
        self.known_or(
            RequestKind::Getattr,
            (request, reply),
            |service| service.attributes_known(number),
            send,
            |reply, timer| {
                let reply = (reply, timer);
                self.later(Lane::Names, request, reply, move |s, interrupt| s.attributes(number, interrupt), send);
            },
        );
    }

    fn readlink(&self, request: &Request, number: INodeNo, reply: ReplyData) {
        let _timer = self.timer(RequestKind::Other, request);
        self.at_once(reply, |shared, reply| match shared.service.readlink(number.0) {
            Ok(target) => {
                reply.data(&target);
                Ok(())
            }
            Err(error) => Err((reply, error)),
        });
    }

    fn open(&self, request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if flags.acc_mode() != OpenAccMode::O_RDONLY {
            reply.fail(&Error::ReadOnly);
            return;
        }
        let reply = (reply, self.timer(RequestKind::Open, request));
        self.run(Lane::Names, request, reply, move |shared, ticket| shared.open(number.0, Effort::Free, ticket));
    }

    fn read(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u32,
        _: OpenFlags,
        owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let timer = self.timer(RequestKind::Read, request);
        let file = match self.0.service.file(handle.0) {
            Ok(file) => file,
            Err(error) => return reply.fail(&error),
        };
        // A read that bypasses the page cache names its owner; a read that fills the cache does not.
        if !file.is_awaited(offset, length as usize, owner.is_some()) {
            return reply.error(Errno::EAGAIN);
        }
        let shared = self.0.clone();
        let pool = &self.0.pool;
        let ticket = pool.ticket(request.pid(), reply, Some(timer));
        let (id, quick) = (request.unique(), file.is_quick());
        let job = move |ticket: Ticket<ReplyData>| shared.read(id, &file, offset, length as usize, &ticket);
        if quick { pool.run_quick(Lane::Reads, ticket, job) } else { pool.run(Lane::Reads, ticket, job) }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn release(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        let _timer = self.timer(RequestKind::Other, request);
        self.at_once(reply, |shared, reply| {
            shared.service.close(handle.0);
            reply.ok();
            Ok(())
        });
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn opendir(&self, request: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.later(
            Lane::Names,
            request,
            (reply, self.timer(RequestKind::Open, request)),
            move |service, interrupt| service.open_directory(number.0, interrupt),
            |shared, reply, directory| {
                let kept = FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE;
                let flags = if directory.is_lasting() { kept } else { FopenFlags::empty() };
                let handle = shared.service.opened_directory(directory);
                reply.opened(FileHandle(handle), flags);
            },
        );
    }

    fn readdir(&self, request: &Request, _: INodeNo, handle: FileHandle, offset: u64, reply: ReplyDirectory) {
        let reply = (reply, self.timer(RequestKind::Readdir, request));
        self.run(Lane::Names, request, reply, move |shared, ticket| {
            if let Err(error) = shared.list(handle.0, offset, &ticket) {
                ticket.fail(&error);
            }
        });
    }

    fn readdirplus(&self, request: &Request, _: INodeNo, handle: FileHandle, offset: u64, reply: ReplyDirectoryPlus) {
        let reply = (reply, self.timer(RequestKind::Readdir, request));
        self.run(Lane::Names, request, reply, move |shared, ticket| {
            if let Err(error) = shared.list_plus(handle.0, offset, &ticket) {
                ticket.fail(&error);
            }
            shared.session.trim(&shared.service, &shared.pool);
        });
    }

    fn releasedir(&self, request: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        let _timer = self.timer(RequestKind::Other, request);
        self.at_once(reply, |shared, reply| {
            shared.service.close_directory(handle.0);
            reply.ok();
            Ok(())
        });
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn statfs(&self, request: &Request, _: INodeNo, reply: ReplyStatfs) {
        let _timer = self.timer(RequestKind::Other, request);
        let blocks = self.0.total_bytes.div_ceil(u64::from(BLOCK));
        let files = self.0.service.inodes().len() as u64;
        reply.statfs(blocks, 0, 0, files, 0, BLOCK, 255, BLOCK);
    }

    fn getxattr(&self, request: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let timer = self.timer(RequestKind::Xattr, request);
        let name = BString::from(name.as_bytes());
        if !self.0.service.has_xattrs() {
            // The kernel does not ask again.
            return reply.error(Errno::ENOSYS);
        }
        if !name.starts_with(b"user.") {
            // `ls -l` asks for security labels and access lists of every file.
            reply.fail(&Error::NoAttribute);
            return;
        }
        self.later(
            Lane::Names,
            request,
            (reply, timer),
            move |service, interrupt| service.extended_attribute(number.0, name.as_bstr(), interrupt),
            move |_, reply, value| send_xattr(reply, &value, size),
        );
    }

    fn listxattr(&self, request: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let timer = self.timer(RequestKind::Xattr, request);
        if !self.0.service.has_xattrs() {
            return reply.error(Errno::ENOSYS);
        }
        self.later(
            Lane::Names,
            request,
            (reply, timer),
            move |service, interrupt| service.extended_attribute_names(number.0, interrupt),
            move |_, reply, list| send_xattr(reply, &list, size),
        );
    }

    /// The kernel asks only if it does not check modes itself, that is, for the owner of the mount.
    fn access(&self, request: &Request, number: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        let _timer = self.timer(RequestKind::Other, request);
        self.at_once(reply, |shared, reply| {
            let Some(inode) = shared.service.inodes().get(number.0) else {
                return Err((reply, crate::session::Error::Stale.into()));
            };
            let attributes = inode.node.attributes();
            if mask.contains(AccessFlags::W_OK) {
                Err((reply, Error::ReadOnly))
            } else if mask.contains(AccessFlags::X_OK) && attributes.mode & 0o111 == 0 {
                Err((reply, Error::NotPermitted))
            } else {
                reply.ok();
                Ok(())
            }
        });
    }

    // Without these three handlers, `fuser` logs a warning for each such request.

    fn ioctl(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: IoctlFlags,
        _: u32,
        _: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        reply.fail(&Error::NoControl);
    }

    fn lseek(&self, _: &Request, _: INodeNo, _: FileHandle, _: i64, _: i32, reply: ReplyLseek) {
        reply.fail(&Error::LeftToKernel);
    }

    fn poll(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: PollNotifier,
        _: PollEvents,
        _: PollFlags,
        reply: ReplyPoll,
    ) {
        reply.fail(&Error::LeftToKernel);
    }

    fn setattr(
        &self,
        _: &Request,
        _: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        reply.fail(&Error::ReadOnly);
    }

    fn mknod(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: u32, reply: ReplyEntry) {
        reply.fail(&Error::ReadOnly);
    }

    fn mkdir(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        reply.fail(&Error::ReadOnly);
    }

    fn unlink(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.fail(&Error::ReadOnly);
    }

    fn rmdir(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.fail(&Error::ReadOnly);
    }

    fn symlink(&self, _: &Request, _: INodeNo, _: &OsStr, _: &Path, reply: ReplyEntry) {
        reply.fail(&Error::ReadOnly);
    }

    fn rename(&self, _: &Request, _: INodeNo, _: &OsStr, _: INodeNo, _: &OsStr, _: RenameFlags, reply: ReplyEmpty) {
        reply.fail(&Error::ReadOnly);
    }

    fn link(&self, _: &Request, _: INodeNo, _: INodeNo, _: &OsStr, reply: ReplyEntry) {
        reply.fail(&Error::ReadOnly);
    }

    fn create(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: i32, reply: ReplyCreate) {
        reply.fail(&Error::ReadOnly);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        reply.fail(&Error::ReadOnly);
    }

    fn setxattr(&self, _: &Request, _: INodeNo, _: &OsStr, _: &[u8], _: i32, _: u32, reply: ReplyEmpty) {
        reply.fail(&Error::ReadOnly);
    }

    fn removexattr(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.fail(&Error::ReadOnly);
    }

    fn fallocate(&self, _: &Request, _: INodeNo, _: FileHandle, _: u64, _: u64, _: i32, reply: ReplyEmpty) {
        reply.fail(&Error::ReadOnly);
    }

    fn copy_file_range(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: u64,
        _: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        reply.fail(&Error::ReadOnly);
    }
}

fn file_type(kind: EntryKind) -> FileType {
    match kind {
        EntryKind::Directory => FileType::Directory,
        EntryKind::File | EntryKind::LiveFile => FileType::RegularFile,
        EntryKind::Symlink => FileType::Symlink,
    }
}

/// Answers with the value, or with its length if the caller asks for that (`size` 0).
fn send_xattr(reply: ReplyXattr, value: &[u8], size: u32) {
    match u32::try_from(value.len()) {
        Ok(length) if size == 0 => reply.size(length),
        Ok(length) if length <= size => reply.data(value),
        _ => reply.fail(&crate::session::Error::TooLarge.into()),
    }
}
