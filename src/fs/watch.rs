//! Watches sources for changes, by inotify.
//!
//! A file is watched twice: itself, for rewrites in place, and its folder, for another file that takes its name. The
//! watch on the file follows the inode, so it is set anew after each change. Network file systems do not report changes
//! made on other machines: there only [`crate::fs::Node::is_current`] notices, at the next request.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, PipeWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask, Watches};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::session::Watcher;

/// A change is reported after this long without another: writers seldom write once.
const QUIET: Duration = Duration::from_millis(100);

/// A change is reported after this long even while the file goes on changing.
const LATEST: Duration = Duration::from_secs(1);

/// What happens to a file by its own name or by another.
const FILE_EVENTS: WatchMask = WatchMask::MODIFY
    .union(WatchMask::ATTRIB)
    .union(WatchMask::CLOSE_WRITE)
    .union(WatchMask::MOVE_SELF)
    .union(WatchMask::DELETE_SELF);

/// What happens to names in a folder.
const FOLDER_EVENTS: WatchMask = WatchMask::CREATE
    .union(WatchMask::DELETE)
    .union(WatchMask::MOVED_FROM)
    .union(WatchMask::MOVED_TO)
    .union(WatchMask::ONLYDIR);

/// Calls back when a watched path changes, until it is dropped.
pub struct Watch {
    watched: Arc<Mutex<Watched>>,
    /// Dropped with the watch, which wakes the thread and ends it.
    _stop: PipeWriter,
}

struct Watched {
    watches: Watches,
    /// Several paths may lead to one inode.
    meanings: HashMap<WatchDescriptor, BTreeSet<Meaning>>,
}

/// Why a descriptor is watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Meaning {
    /// It is this source.
    File(PathBuf),
    /// It is the folder in which this name stands for this source.
    NameIn(OsString, PathBuf),
    /// It is this source folder: any name in it matters.
    Folder(PathBuf),
}

impl Watch {
    /// Starts a watch over nothing. `changed` is called, on a thread of the watch, with each path that changed.
    ///
    /// # Errors
    /// Where the system has no more inotify instances for this user, or no threads.
    pub fn new(changed: impl Fn(&Path) + Send + 'static) -> io::Result<Self> {
        let inotify = Inotify::init()?;
        let watched = Arc::new(Mutex::new(Watched { watches: inotify.watches(), meanings: HashMap::new() }));
        let (stop, stopper) = io::pipe()?;
        let shared = watched.clone();
        thread::Builder::new().name("hepfs-inotify".to_owned()).spawn(move || {
            if let Err(error) = listen(inotify, &stop, &shared, &changed) {
                tracing::warn!("sources are no longer watched: {error}");
            }
        })?;
        Ok(Self { watched, _stop: stopper })
    }
}

impl Watcher for Watch {
    fn add_file(&self, path: &Path) -> io::Result<()> {
        self.watched.lock().add_file(path)
    }

    fn add_folder(&self, path: &Path) -> io::Result<()> {
        self.watched.lock().add(path, FOLDER_EVENTS, Meaning::Folder(path.to_owned()))
    }
}

impl Watched {
    fn add(&mut self, path: &Path, events: WatchMask, meaning: Meaning) -> io::Result<()> {
        // MASK_ADD: the same folder may be watched for another reason already.
        let descriptor = self.watches.add(path, events | WatchMask::MASK_ADD)?;
        self.meanings.entry(descriptor).or_default().insert(meaning);
        Ok(())
    }

    fn add_file(&mut self, path: &Path) -> io::Result<()> {
        let file = self.add(path, FILE_EVENTS, Meaning::File(path.to_owned()));
        let mut folder = self.add_name(path, path);
        // A symbolic link changes also when another file takes the name that it leads to.
        if let Ok(target) = path.canonicalize() {
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

    /// The sources that an event concerns.
    fn concerned(&mut self, descriptor: &WatchDescriptor, mask: EventMask, name: Option<&OsStr>) -> Vec<PathBuf> {
        let Some(meanings) = self.meanings.get(descriptor) else { return Vec::new() };
        let of_the_name = EventMask::CREATE | EventMask::DELETE | EventMask::MOVED_FROM | EventMask::MOVED_TO;
        let concerned = meanings.iter().filter_map(|meaning| match meaning {
            Meaning::File(path) => Some(path.clone()),
            Meaning::NameIn(watched, path) => (name == Some(watched.as_os_str())).then(|| path.clone()),
            Meaning::Folder(path) => (mask.intersects(of_the_name) || name.is_none()).then(|| path.clone()),
        });
        let concerned = concerned.collect();
        // The inode is gone, and the kernel may give the descriptor's number to another.
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

    /// Sets the watch on the inode that has the path now.
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
            // Nothing has the name now; the folder tells when that changes.
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
    stop: &PipeReader,
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
        let mut ready = [PollFd::new(&inotify, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        match poll(&mut ready, patience.as_ref()) {
            Ok(_) => {}
            // It says nothing of the descriptors then.
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let [has_events, is_stopped] = ready.map(|polled| !polled.revents().is_empty());
        if is_stopped {
            return Ok(());
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
                    // Events were lost: anything may have changed.
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
