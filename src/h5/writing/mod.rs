//! Writes into a file, all or nothing: the lock, the writing worker, the journal.
//!
//! [`Exclusive`] holds libhdf5's own lock, so no other writer has the file, and no reader that locks. [`WritingClient`]
//! is one worker, and only this worker sees its changes before [`Step::Commit`]. A cleanup removes whatever a failed
//! worker has left behind.

pub(super) mod journal;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::journal::{JournalRecovery, Unusable};
use crate::h5::client::pool::{self, GLANCE};
use crate::h5::client::process::{Gone, SourceAccess, Worker};
use crate::h5::options::Options;
use crate::h5::protocol::{MAX_ELEMENTS, Request, WorkerAnswer};
use crate::h5::steps::{Step, StepOutcome, TargetObject};
use crate::source::{Interrupt, is_address};

/// Most bytes of elements in one step.
pub const WRITE_LIMIT: u64 = MAX_ELEMENTS;

/// Longest time of a step: on a slow disk, compressing or syncing may take this long.
const DEADLINE: Duration = Duration::from_secs(600);

/// An error of writing to a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The system refused.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// Path of the file or of its journal.
        path: PathBuf,
        /// The error from the system.
        error: io::Error,
    },
    /// It is the address of an object in a store.
    #[error("{path}: hepfs writes local files only", path = .0.display())]
    NotLocal(PathBuf),
    /// Another program has the file open.
    #[error(
        "{path}: another program has this file open (it holds the HDF5 lock, which a writer needs for itself): \
         close it there first", path = .0.display()
    )]
    Locked(PathBuf),
    /// An earlier run left a journal, but the file cannot be put back.
    #[error(
        "{journal}: an earlier run ended in the middle of a change, and the file cannot be put back: \
         {reason}. Delete the journal to keep the file as it is", journal = .journal.display()
    )]
    Journal {
        /// Path of the journal.
        journal: PathBuf,
        /// Why the file cannot be put back.
        reason: String,
    },
    /// libhdf5 refused a step, with its own words.
    #[error("{path}: {what}: {reason}", path = .path.display())]
    Refused {
        /// Path of the file.
        path: PathBuf,
        /// The step that libhdf5 refused.
        what: &'static str,
        /// libhdf5's words.
        reason: String,
    },
    /// The worker died, or did not answer.
    #[error("{path}: the HDF5 library failed while {what}; the file is as it was: {reason}", path = .path.display())]
    Died {
        /// Path of the file.
        path: PathBuf,
        /// The step during which the worker failed.
        what: &'static str,
        /// The known cause.
        reason: String,
    },
    /// The caller has stopped waiting.
    #[error("interrupted")]
    Interrupted,
}

/// Refuses the address of an object in a store.
///
/// # Errors
/// [`WriteError::NotLocal`].
pub fn check_is_local(path: &Path) -> Result<(), WriteError> {
    if is_address(path) { Err(WriteError::NotLocal(path.to_owned())) } else { Ok(()) }
}

/// A file that this process alone has locked for writing.
#[derive(Debug)]
pub struct Exclusive {
    file: File,
    path: PathBuf,
    journal: PathBuf,
    was_put_back: bool,
}

impl Exclusive {
    /// Opens a file for writing and locks it as libhdf5 does. If an earlier commit did not finish, this puts the file
    /// back to its state before.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn open(path: &Path) -> Result<Self, WriteError> {
        check_is_local(path)?;
        let io = |error| WriteError::Io { path: path.to_owned(), error };
        // The journal is beside the file itself, not beside a link to it.
        let path = path.canonicalize().map_err(io)?;
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(io)?;
        // SAFETY: plain numbers.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } < 0 {
            let error = io::Error::last_os_error();
            return Err(match error.kind() {
                io::ErrorKind::WouldBlock => WriteError::Locked(path),
                _ => WriteError::Io { path, error },
            });
        }
        let journal = journal::path_of(&path);
        let found = recover(&file, &journal)?;
        Ok(Self { file, path, journal, was_put_back: found == JournalRecovery::PutBack })
    }

    /// Whether the file was put back to its state before an earlier commit.
    pub fn was_put_back(&self) -> bool {
        self.was_put_back
    }

    /// Starts a worker that writes.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn writer(&self, options: &Options, interrupt: &Interrupt) -> Result<WritingClient<'_>, WriteError> {
        let io = |error| WriteError::Io { path: self.path.clone(), error };
        let slot = pool::acquire(options.workers, interrupt).map_err(|_| WriteError::Interrupted)?;
        let length = self.file.metadata().map_err(io)?.len();
        let journal =
            journal::create(&self.journal).map_err(|error| WriteError::Io { path: self.journal.clone(), error })?;
        // The journal's name must be on the disk before its content counts.
        let folder = self.path.parent().unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)?;
        let options = Options { follow_external: false, deadline: DEADLINE, ..options.clone() };
        let access = SourceAccess::Descriptor(self.file.as_fd());
        let started = Worker::start(access, Some(journal.as_fd()), &self.path, &options, &[], slot).map_err(io);
        if started.is_err() {
            std::fs::remove_file(&self.journal).ok();
        }
        Ok(WritingClient { exclusive: self, worker: Some(started?), length })
    }
}

fn recover(file: &File, journal: &Path) -> Result<JournalRecovery, WriteError> {
    journal::recover(file, journal).map_err(|error| match error {
        Unusable::Io(error) => WriteError::Io { path: journal.to_owned(), error },
        changed @ Unusable::Changed(_) => {
            WriteError::Journal { journal: journal.to_owned(), reason: changed.to_string() }
        }
    })
}

/// The journal of a commit to this file that broke off or still runs: the next [`Exclusive::open`] puts the file back.
/// An empty journal belongs to a writer that has changed nothing, and does not count.
pub fn journal_of(path: &Path) -> Option<PathBuf> {
    // Links before the name lead to the same folder. Nearly no file has a journal, and following a path takes long.
    if !path.is_symlink() && journal::path_of(path).symlink_metadata().is_err() {
        return None;
    }
    let journal = journal::path_of(&path.canonicalize().ok()?);
    let metadata = journal.symlink_metadata().ok()?;
    (metadata.is_file() && metadata.len() > 0).then_some(journal)
}

/// A worker that writes.
#[derive(Debug)]
pub struct WritingClient<'a> {
    exclusive: &'a Exclusive,
    worker: Option<Worker>,
    /// Length of the file after the last commit.
    length: u64,
}

impl WritingClient<'_> {
    /// Executes a step.
    ///
    /// # Errors
    /// See [`WriteError`]. After an error everything since the last commit is lost, and the writer is useless.
    pub fn step(&mut self, step: Step, interrupt: &Interrupt) -> Result<StepOutcome, WriteError> {
        let what = step.what();
        let commits = matches!(step, Step::Commit { .. });
        let answer = self.ask(step, what, interrupt)?;
        if commits {
            self.length = self.exclusive.file.metadata().map_or(self.length, |metadata| metadata.len());
        }
        Ok(answer)
    }

    /// Creates an object.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn make(&mut self, step: Step, interrupt: &Interrupt) -> Result<TargetObject, WriteError> {
        let what = step.what();
        match self.step(step, interrupt)? {
            StepOutcome::New(number) => Ok(TargetObject::New(number)),
            _ => Err(self.died(what, "an answer that makes no sense")),
        }
    }

    /// Writes a box of elements, at most [`WRITE_LIMIT`] bytes: see [`Step::Elements`].
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn elements(
        &mut self,
        object: &TargetObject,
        [start, count]: [&[u64]; 2],
        elements: &ElementPayload,
        interrupt: &Interrupt,
    ) -> Result<(), WriteError> {
        let step = Step::Elements {
            object: object.clone(),
            start: start.to_vec(),
            count: count.to_vec(),
            bytes: elements.bytes.len() as u64,
            heap: elements.heap.len() as u64,
            strings: elements.strings.clone(),
        };
        let both = [elements.bytes.as_slice(), &elements.heap].concat();
        self.give(&step, &both)?;
        self.step(step, interrupt).map(|_| ())
    }

    /// Writes a chunk in stored form, at most [`WRITE_LIMIT`] bytes: see [`Step::Chunk`].
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn chunk(
        &mut self,
        object: &TargetObject,
        start: &[u64],
        stored: &[u8],
        interrupt: &Interrupt,
    ) -> Result<(), WriteError> {
        let step = Step::Chunk { object: object.clone(), start: start.to_vec(), bytes: stored.len() as u64 };
        self.give(&step, stored)?;
        self.step(step, interrupt).map(|_| ())
    }

    /// Copies the bytes of a step into the shared memory.
    fn give(&mut self, step: &Step, bytes: &[u8]) -> Result<(), WriteError> {
        match self.worker.as_ref().map(|worker| worker.give(bytes)) {
            Some(Err(Gone(reason))) => Err(self.died(step.what(), &reason)),
            _ => Ok(()),
        }
    }

    fn ask(&mut self, step: Step, what: &'static str, interrupt: &Interrupt) -> Result<StepOutcome, WriteError> {
        // A commit that has begun must finish.
        let may_stop = !matches!(step, Step::Commit { .. });
        let Some(worker) = &mut self.worker else { return Err(self.died(what, "it failed before")) };
        let deadline = Instant::now() + DEADLINE;
        let sent = worker.send(Request::Write(step));
        let reply = sent.and_then(|_| {
            loop {
                if let Some(reply) = worker.reply(GLANCE)? {
                    return Ok(Some(reply));
                }
                if may_stop && interrupt.is_raised() {
                    return Ok(None);
                }
                if Instant::now() > deadline {
                    return Err(Gone(format!("no answer within {} s", DEADLINE.as_secs())));
                }
            }
        });
        match reply.map(|reply| reply.map(|reply| reply.answer)) {
            Ok(Some(Ok(WorkerAnswer::Written(done)))) => Ok(done),
            Ok(Some(Err(refusal))) => {
                let reason = crate::h5::Error::from(refusal).to_string();
                Err(WriteError::Refused { path: self.exclusive.path.clone(), what, reason })
            }
            Ok(None) => Err(WriteError::Interrupted),
            Ok(Some(Ok(_))) => Err(self.died(what, "an answer that makes no sense")),
            Err(Gone(reason)) => Err(self.died(what, &reason)),
        }
    }

    fn died(&self, what: &'static str, reason: &str) -> WriteError {
        WriteError::Died { path: self.exclusive.path.clone(), what, reason: reason.to_owned() }
    }

    /// Removes everything uncommitted, as if the worker had never run.
    fn clean_up(&mut self) -> Result<(), WriteError> {
        // The worker must be gone before anybody else writes.
        self.worker = None;
        recover(&self.exclusive.file, &self.exclusive.journal)?;
        let io = |error| WriteError::Io { path: self.exclusive.path.clone(), error };
        if self.exclusive.file.metadata().map_err(io)?.len() > self.length {
            self.exclusive.file.set_len(self.length).map_err(io)?;
        }
        Ok(())
    }
}

impl Drop for WritingClient<'_> {
    fn drop(&mut self) {
        #[cfg(debug_assertions)]
        if std::env::var_os(crate::h5::REHEARSED_DEATH).is_some() {
            return;
        }
        if let Err(error) = self.clean_up() {
            tracing::error!("{error}");
        }
    }
}

/// New elements, in the form of [`Step::Elements`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElementPayload {
    /// The elements as in this machine's memory.
    pub bytes: Vec<u8>,
    /// Strings with a NUL each.
    pub heap: Vec<u8>,
    /// Offsets in an element that hold the position of a string.
    pub strings: Vec<u64>,
}
