//! Watches sources for changes, by inotify.
//!
//! It watches each file twice: the file itself, for rewrites in place, and its folder, for another file that takes its
//! name. The watch on the file follows the inode, so each change renews it. Network file systems do not report changes
//! from other machines: only [`crate::fs::Node::is_current`] notices those, at the next request. Changes of objects of
//! stores are noticed there as well, and the session tells of them.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask, Watches};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::session::Watcher;

/// Quiet time before a report of a change: writers seldom write once.
const QUIET: Duration = Duration::from_millis(100);

/// Longest time from the first change to its report, even if the file goes on changing.
const LATEST: Duration = Duration::from_secs(1);

/// Events to watch for on a file.
const FILE_EVENTS: WatchMask = WatchMask::MODIFY
    .union(WatchMask::ATTRIB)
    .union(WatchMask::CLOSE_WRITE)
    .union(WatchMask::MOVE_SELF)
    .union(WatchMask::DELETE_SELF);

/// Events to watch for in a folder: its names come and go.
const FOLDER_EVENTS: WatchMask = WatchMask::CREATE
    .union(WatchMask::DELETE)
    .union(WatchMask::MOVED_FROM)
    .union(WatchMask::MOVED_TO)
    .union(WatchMask::ONLYDIR);

/// Calls back when a watched path changes, until it is dropped.
pub struct Watch {
    watched: Arc<Mutex<Watched>>,
    /// Each byte wakes the thread, and so does the end of the pipe, with the watch: that ends it.
    wake: PipeWriter,
}

struct Watched {
    watches: Watches,
    /// Several paths may lead to one inode.
    meanings: HashMap<WatchDescriptor, BTreeSet<Meaning>>,
    /// Sources that the session found changed.
    told: BTreeSet<PathBuf>,
}

/// The purpose of a watch descriptor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Meaning {
    /// It watches this source.
    File(PathBuf),
    /// It watches the folder in which this name stands for this source.
    NameIn(OsString, PathBuf),
    /// It watches this source folder: any name in it matters.
    Folder(PathBuf),
}

impl Watch {
    /// Starts a watch over nothing. It calls `changed`, on its own thread, with each path that changed.
    ///
    /// # Errors
    /// If the system has no more inotify instances for this user, or no threads.
    pub fn new(changed: impl Fn(&Path) + Send + 'static) -> io::Result<Self> {
        let inotify = Inotify::init()?;
        let watched = Arc::new(Mutex::new(Watched {
            watches: inotify.watches(),
            meanings: HashMap::new(),
            told: BTreeSet::new(),
        }));
        let (woken, wake) = io::pipe()?;
        let shared = watched.clone();
        thread::Builder::new().name("hepfs-inotify".to_owned()).spawn(move || {
            if let Err(error) = listen(inotify, woken, &shared, &changed) {
                tracing::warn!("sources are no longer watched: {error}");
            }
        })?;
        Ok(Self { watched, wake })
    }
}

impl Watcher for Watch {
    fn add_file(&self, path: &Path) -> io::Result<()> {
        self.watched.lock().add_file(path)
    }

    fn add_folder(&self, path: &Path) -> io::Result<()> {
        self.watched.lock().add(path, FOLDER_EVENTS, Meaning::Folder(path.to_owned()))
    }

    fn changed(&self, path: &Path) {
        self.watched.lock().told.insert(path.to_owned());
        // The thread has ended only after an error, which is in the log.
        let _ = (&self.wake).write_all(&[0]);
    }
}

impl Watched {
    fn add(&mut self, path: &Path, events: WatchMask, meaning: Meaning) -> io::Result<()> {
        // MASK_ADD: the same folder may have another watch already.
        let descriptor = self.watches.add(path, events | WatchMask::MASK_ADD)?;
        self.meanings.entry(descriptor).or_default().insert(meaning);
        Ok(())
    }

    fn add_file(&mut self, path: &Path) -> io::Result<()> {
        let file = self.add(path, FILE_EVENTS, Meaning::File(path.to_owned()));
        let mut folder = self.add_name(path, path);
        // A symbolic link also changes when another file takes the name of its target. Of any other file, the watch on
        // the folder follows links before the name.
        if path.is_symlink()
            && let Ok(target) = path.canonicalize()
        {
            folder = folder.and(self.add_name(&target, path));
        }
        file.or(folder)
    }

    fn add_name(&mut self, path: &Path, source: &Path) -> io::Result<()> {
        let Some(name) = path.file_name() else { return Ok(()) };
        let folder = match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => return Ok(()),
        };
        self.add(folder, FOLDER_EVENTS, Meaning::NameIn(name.to_owned(), source.to_owned()))
    }

    /// The sources that an event affects.
    fn concerned(&mut self, descriptor: &WatchDescriptor, mask: EventMask, name: Option<&OsStr>) -> Vec<PathBuf> {
        let Some(meanings) = self.meanings.get(descriptor) else { return Vec::new() };
        let of_the_name = EventMask::CREATE | EventMask::DELETE | EventMask::MOVED_FROM | EventMask::MOVED_TO;
        let concerned = meanings.iter().filter_map(|meaning| match meaning {
            Meaning::File(path) => Some(path.clone()),
            Meaning::NameIn(watched, path) => (name == Some(watched.as_os_str())).then(|| path.clone()),
            Meaning::Folder(path) => (mask.intersects(of_the_name) || name.is_none()).then(|| path.clone()),
        });
        let concerned = concerned.collect();
        // The inode is gone, and the kernel may reuse the descriptor's number.
        if mask.contains(EventMask::IGNORED) {
            self.meanings.remove(descriptor);
        }
        concerned
    }

    fn everything(&self) -> BTreeSet<PathBuf> {
        self.meanings
            .values()
            .flatten()
            .map(|meaning| match meaning {
                Meaning::File(path) | Meaning::NameIn(_, path) | Meaning::Folder(path) => path.clone(),
            })
            .collect()
    }

    /// Moves the watch to the present inode of the path.
    fn follow(&mut self, path: &Path) {
        let moved = Meaning::File(path.to_owned());
        if !self.meanings.values().flatten().any(|meaning| matches!(meaning, Meaning::NameIn(_, p) if p == path)) {
            return;
        }
        match self.watches.add(path, FILE_EVENTS | WatchMask::MASK_ADD) {
            Ok(descriptor) => {
                for (other, meanings) in &mut self.meanings {
                    if *other != descriptor {
                        meanings.remove(&moved);
                    }
                }
                self.meanings.entry(descriptor).or_default().insert(moved);
            }
            // The path has no file now; the watch on the folder reports the next one.
            Err(error) => tracing::debug!("{}: {error}", path.display()),
        }
        let gone: Vec<_> = self.meanings.iter().filter(|(_, m)| m.is_empty()).map(|(d, _)| d.clone()).collect();
        for descriptor in gone {
            self.meanings.remove(&descriptor);
            self.watches.remove(descriptor).ok();
        }
    }
}

fn listen(
    mut inotify: Inotify,
    mut woken: PipeReader,
    watched: &Mutex<Watched>,
    changed: &impl Fn(&Path),
) -> io::Result<()> {
    let mut buffer = vec![0; 16 << 10];
    let mut pending: BTreeSet<PathBuf> = BTreeSet::new();
    let mut first = Instant::now();
    loop {
        let patience = (!pending.is_empty()).then(|| {
            let left = LATEST.saturating_sub(first.elapsed()).min(QUIET);
            Timespec::try_from(left).unwrap_or_default()
        });
        let mut ready = [PollFd::new(&inotify, PollFlags::IN), PollFd::new(&woken, PollFlags::IN)];
        match poll(&mut ready, patience.as_ref()) {
            Ok(_) => {}
            // The descriptors hold no result after this error.
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let [has_events, is_woken] = ready.map(|polled| !polled.revents().is_empty());
        if is_woken {
            if woken.read(&mut buffer)? == 0 {
                return Ok(());
            }
            pending.append(&mut watched.lock().told);
        }
        if has_events {
            let events = match inotify.read_events(&mut buffer) {
                Ok(events) => events,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            };
            let mut watched = watched.lock();
            for event in events {
                if pending.is_empty() {
                    first = Instant::now();
                }
                if event.mask.contains(EventMask::Q_OVERFLOW) {
                    // The kernel lost events: anything may have changed.
                    pending.extend(watched.everything());
                } else {
                    pending.extend(watched.concerned(&event.wd, event.mask, event.name));
                }
            }
            if first.elapsed() < LATEST {
                continue;
            }
        }
        for path in std::mem::take(&mut pending) {
            watched.lock().follow(&path);
            changed(&path);
        }
    }
}
