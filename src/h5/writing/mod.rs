//! Writing into a file, all or nothing: the lock, the writing worker, the journal.
//!
//! [`Exclusive`] holds libhdf5's own lock, so no other writer has the file, and no reader that locks. [`Writing`] is
//! one worker, which alone sees what it writes; others see it from [`Step::Commit`] on. What a worker that failed has
//! left behind is taken away again.

pub(super) mod journal;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::journal::{Found, Unusable};
use crate::h5::client::pool::{self, GLANCE};
use crate::h5::client::process::{Gone, Worker};
use crate::h5::options::Options;
use crate::h5::protocol::{Answer, MAX_ELEMENTS, Request};
use crate::h5::steps::{Done, Object, Step};
use crate::source::Interrupt;

/// Bytes of elements that one step may write.
pub const WRITE_LIMIT: u64 = MAX_ELEMENTS;

/// Compressing or syncing what a step has written may take this long on a slow disk.
const DEADLINE: Duration = Duration::from_secs(600);

/// Why a file was not written to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The system refused.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Another program has the file open.
    #[error(
        "{path}: another program has this file open (it holds the HDF5 lock, which a writer needs for itself): \
         close it there first", path = .0.display()
    )]
    Locked(PathBuf),
    /// There is a journal, but the file is not in the state it is of.
    #[error(
        "{journal}: an earlier run was ended while it changed the file, and it cannot be put back to what it was: \
         {reason}. Delete the journal to leave the file as it is", journal = .journal.display()
    )]
    Journal {
        /// The journal.
        journal: PathBuf,
        /// Why not.
        reason: String,
    },
    /// libhdf5 refused a step, with its own words.
    #[error("{path}: {what}: {reason}", path = .path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The step.
        what: &'static str,
        /// libhdf5's words.
        reason: String,
    },
    /// The worker died, or did not answer.
    #[error("{path}: the HDF5 library failed while {what}; the file is as it was: {reason}", path = .path.display())]
    Died {
        /// The file.
        path: PathBuf,
        /// The step.
        what: &'static str,
        /// What is known of it.
        reason: String,
    },
    /// The caller has stopped waiting.
    #[error("interrupted")]
    Interrupted,
}

/// A file that is locked for writing by this process alone.
#[derive(Debug)]
pub struct Exclusive {
    file: File,
    path: PathBuf,
    journal: PathBuf,
    was_put_back: bool,
}

impl Exclusive {
    /// Opens a file for writing and locks it as libhdf5 does. Where an earlier commit did not come to its end, the file
    /// is put back to what it was before.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn open(path: &Path) -> Result<Self, WriteError> {
        let io = |error| WriteError::Io { path: path.to_owned(), error };
        // The journal lies beside the file itself, not beside a link to it.
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
        Ok(Self { file, path, journal, was_put_back: found == Found::PutBack })
    }

    /// The file was put back to what it was before an earlier commit.
    pub fn was_put_back(&self) -> bool {
        self.was_put_back
    }

    /// Starts a worker that writes.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn writer(&self, options: &Options, interrupt: &Interrupt) -> Result<Writing<'_>, WriteError> {
        let io = |error| WriteError::Io { path: self.path.clone(), error };
        let slot = pool::acquire(options.workers, interrupt).map_err(|_| WriteError::Interrupted)?;
        let length = self.file.metadata().map_err(io)?.len();
        let journal =
            journal::create(&self.journal).map_err(|error| WriteError::Io { path: self.journal.clone(), error })?;
        // Its name must be on the disk before its content counts.
        let folder = self.path.parent().unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)?;
        let options = Options { follow_external: false, deadline: DEADLINE, ..options.clone() };
        let started =
            Worker::start(self.file.as_fd(), Some(journal.as_fd()), &self.path, &options, &[], slot).map_err(io);
        if started.is_err() {
            std::fs::remove_file(&self.journal).ok();
        }
        Ok(Writing { exclusive: self, worker: Some(started?), length })
    }
}

fn recover(file: &File, journal: &Path) -> Result<Found, WriteError> {
    journal::recover(file, journal).map_err(|error| match error {
        Unusable::Io(error) => WriteError::Io { path: journal.to_owned(), error },
        changed @ Unusable::Changed(_) => {
            WriteError::Journal { journal: journal.to_owned(), reason: changed.to_string() }
        }
    })
}

/// The journal of a commit to this file that did not come to its end, or has not yet: the next [`Exclusive::open`] puts
/// the file back. One that is empty is of a writer that has changed nothing.
pub fn journal_of(path: &Path) -> Option<PathBuf> {
    let journal = journal::path_of(&path.canonicalize().ok()?);
    let metadata = journal.symlink_metadata().ok()?;
    (metadata.is_file() && metadata.len() > 0).then_some(journal)
}

/// A worker that writes.
#[derive(Debug)]
pub struct Writing<'a> {
    exclusive: &'a Exclusive,
    worker: Option<Worker>,
    /// Length of the file as it was committed last.
    length: u64,
}

impl Writing<'_> {
    /// Does a step.
    ///
    /// # Errors
    /// See [`WriteError`]. After an error everything since the last commit is lost, and the writer of no more use.
    pub fn step(&mut self, step: Step, interrupt: &Interrupt) -> Result<Done, WriteError> {
        let what = step.what();
        let commits = matches!(step, Step::Commit { .. });
        let answer = self.ask(step, what, interrupt)?;
        if commits {
            self.length = self.exclusive.file.metadata().map_or(self.length, |metadata| metadata.len());
        }
        Ok(answer)
    }

    /// Makes an object.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn make(&mut self, step: Step, interrupt: &Interrupt) -> Result<Object, WriteError> {
        let what = step.what();
        match self.step(step, interrupt)? {
            Done::New(number) => Ok(Object::New(number)),
            _ => Err(self.died(what, "an answer that makes no sense")),
        }
    }

    /// Writes a box of elements, at most [`WRITE_LIMIT`] bytes: see [`Step::Elements`].
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn elements(
        &mut self,
        object: &Object,
        [start, count]: [&[u64]; 2],
        elements: &Elements,
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

    /// Writes a chunk as it is stored, at most [`WRITE_LIMIT`] bytes: see [`Step::Chunk`].
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn chunk(
        &mut self,
        object: &Object,
        start: &[u64],
        stored: &[u8],
        interrupt: &Interrupt,
    ) -> Result<(), WriteError> {
        let step = Step::Chunk { object: object.clone(), start: start.to_vec(), bytes: stored.len() as u64 };
        self.give(&step, stored)?;
        self.step(step, interrupt).map(|_| ())
    }

    /// Puts what a step writes into the shared memory.
    fn give(&mut self, step: &Step, bytes: &[u8]) -> Result<(), WriteError> {
        match self.worker.as_ref().map(|worker| worker.give(bytes)) {
            Some(Err(Gone(reason))) => Err(self.died(step.what(), &reason)),
            _ => Ok(()),
        }
    }

    fn ask(&mut self, step: Step, what: &'static str, interrupt: &Interrupt) -> Result<Done, WriteError> {
        // What has begun to change the file comes to its end.
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
            Ok(Some(Ok(Answer::Written(done)))) => Ok(done),
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

    /// Takes away what was not committed, as if the worker had never been.
    fn clean_up(&mut self) -> Result<(), WriteError> {
        // It must be gone before anybody else writes.
        self.worker = None;
        recover(&self.exclusive.file, &self.exclusive.journal)?;
        let io = |error| WriteError::Io { path: self.exclusive.path.clone(), error };
        if self.exclusive.file.metadata().map_err(io)?.len() > self.length {
            self.exclusive.file.set_len(self.length).map_err(io)?;
        }
        Ok(())
    }
}

impl Drop for Writing<'_> {
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

/// Elements to be written, as [`Step::Elements`] has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elements {
    /// The elements as in this machine's memory.
    pub bytes: Vec<u8>,
    /// Strings with a NUL each.
    pub heap: Vec<u8>,
    /// Where in an element the position of one stands.
    pub strings: Vec<u64>,
}
