//! The interface to libhdf5 for the rest of the program.

mod listing;
mod nursery;
mod patience;
pub(super) mod pool;
pub(super) mod process;
mod requests;
mod scout;
mod simple;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use hdf5_metno_sys::HDF5_VERSION;

pub use self::requests::PrefetchedCatalogue;
use self::requests::{SharedClient, nonsense};
use crate::catalogue::{
    ChunkMap, ChunkMapBuilder, Elements, FileInfo, Group, MappedSource, Mapping, Mappings, Object, ObjectId,
};
use crate::h5::error::Error;
use crate::h5::options::{Options, Region};
use crate::h5::protocol::{CHUNKS_AHEAD, Fault, MAX_SOURCE_PATHS, MAX_SOURCES, MAX_WANTED, Request, WorkerAnswer};
use crate::source::{Interrupt, Source};

/// Most addresses in one request for paths.
const MAX_ADDRESSES: usize = 16_384;

/// Speaks to the worker of one source. Cheap to share; any thread may call any method.
///
/// The worker executes one request at a time. If the current request kills the worker, the waiting requests lose
/// nothing: they go to a fresh worker.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<SharedClient>,
}

impl Client {
    /// A client for `source`; it starts no worker before the first request.
    pub fn new(source: Arc<Source>, mut options: Options) -> Self {
        // The daemon may change its working directory before the first worker starts.
        options.plugins = options.plugins.map(|folder| std::path::absolute(&folder).unwrap_or(folder));
        // An object leads to no file.
        options.follow_external &= source.folder().is_some();
        let path = match source.folder() {
            Some(_) => std::path::absolute(source.path()).unwrap_or_else(|_| source.path().to_owned()),
            // libhdf5 takes names in the file as names beside it only if its path is absolute.
            None => Path::new("/").join(source.path()),
        };
        Self { inner: Arc::new(SharedClient::new(source, path, options)) }
    }

    /// Whether the worker follows external links, storage and virtual sources ([`Options::follow_external`]).
    pub fn follows_external(&self) -> bool {
        self.inner.options.follow_external
    }

    /// Whether the worker may load filter plugins ([`Options::plugins`]).
    pub fn has_plugins(&self) -> bool {
        self.inner.options.plugins.is_some()
    }

    /// Everything beside the file that answers depend on: the version of libhdf5, and the plugins.
    pub fn settings(&self) -> String {
        let plugins = self.inner.options.plugins.as_deref().map(plugins_in);
        format!("libhdf5 {HDF5_VERSION:?} plugins {plugins:?}")
    }

    /// Describes the file as a whole.
    ///
    /// # Errors
    /// [`Error::NotHdf5`] if the file is not an HDF5 file; see [`Error`] for the rest.
    pub fn file(&self, interrupt: &Interrupt) -> Result<FileInfo, Error> {
        self.inner.file(interrupt)
    }

    /// Asks for the groups of a small file and the chunk maps of their datasets in one request. The answer omits large
    /// groups, and omits everything if the request fails: callers ask for the missing parts. Of a simple file it has
    /// everything, without a worker ([`Options::lists_simple`]); but only once, after [`Client::file`].
    ///
    /// # Errors
    /// See [`Error`]: the worker does not start, its answer makes no sense, or the request was interrupted.
    pub fn ahead(&self, interrupt: &Interrupt) -> Result<PrefetchedCatalogue, Error> {
        if let Some(simple) = self.inner.turn(interrupt)?.simple.take() {
            return Ok(simple);
        }
        let mut ahead = PrefetchedCatalogue::default();
        // Over a network, chunk maps that are not asked for would take longer than the round trips.
        if !self.inner.source.comes_whole() {
            return Ok(ahead);
        }
        let answers = match self.inner.ahead(interrupt)? {
            Some(WorkerAnswer::Ahead(answers)) => answers,
            _ => return Ok(ahead),
        };
        for (request, answer) in answers {
            match (request, answer) {
                (Request::Group { id, .. }, WorkerAnswer::Group(page)) if page.next.is_none() => {
                    ahead.groups.push(listing::whole(id, page)?);
                }
                (Request::Chunks { id, .. }, WorkerAnswer::Chunks { chunks, next: None }) => {
                    let mut map = ChunkMapBuilder::default();
                    if chunks.len() as u64 <= CHUNKS_AHEAD && chunks.into_iter().all(|chunk| map.push(chunk).is_ok()) {
                        ahead.chunks.push((id, map.finish()));
                    }
                }
                _ => return Err(nonsense()),
            }
        }
        Ok(ahead)
    }

    /// Lists a group: its links, with a description of each of their objects (in pages).
    ///
    /// A link with an empty name, always unreadable, stands for links that could not be listed.
    ///
    /// # Errors
    /// See [`Error`]. A link or object that cannot be read gets a description that says so, and fails nothing else.
    pub fn group(&self, id: ObjectId, interrupt: &Interrupt) -> Result<Group, Error> {
        listing::group(&self.inner, id, interrupt)
    }

    /// Describes one object.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn object(&self, id: ObjectId, interrupt: &Interrupt) -> Result<Object, Error> {
        match self.inner.call(Request::Object { id }, interrupt)?.0 {
            WorkerAnswer::Object(object) => Ok(object),
            _ => Err(nonsense()),
        }
    }

    /// Lists the chunks of a chunked dataset (in pages).
    ///
    /// # Errors
    /// See [`Error`]; [`Error::TooLarge`] past `limit` chunks.
    pub fn chunks(&self, id: ObjectId, limit: u64, interrupt: &Interrupt) -> Result<ChunkMap, Error> {
        let mut map = ChunkMapBuilder::default();
        let mut start = 0u64;
        loop {
            let answer = self.inner.call(Request::Chunks { id, limit, start }, interrupt)?.0;
            let WorkerAnswer::Chunks { chunks, next } = answer else { return Err(nonsense()) };
            let end = start.saturating_add(chunks.len() as u64);
            if end > limit {
                return Err(nonsense());
            }
            for chunk in chunks {
                map.push(chunk).map_err(|_| nonsense())?;
            }
            match next {
                None => return Ok(map.finish()),
                Some(next) if next > start && next == end => start = next,
                Some(_) => return Err(nonsense()),
            }
        }
    }

    /// Lists the mappings of a virtual dataset of `len` elements (in pages), if each maps one run of elements of a
    /// dataset in the same file.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::Hdf5`] if the mappings are of another kind, [`Error::TooLarge`] past `limit` runs.
    pub fn mappings(&self, id: ObjectId, len: u64, limit: u64, interrupt: &Interrupt) -> Result<Mappings, Error> {
        self.mappings_by((id, false), len, limit, interrupt)
    }

    /// Lists the mappings in chunks of the source, if each maps a whole chunk, or the part of one within the extent.
    /// They are not checked against the number of chunks of the virtual dataset.
    ///
    /// # Errors
    /// As [`Client::mappings`].
    pub fn mappings_by_chunk(&self, id: ObjectId, limit: u64, interrupt: &Interrupt) -> Result<Mappings, Error> {
        self.mappings_by((id, true), u64::MAX, limit, interrupt)
    }

    fn mappings_by(
        &self,
        (id, by_chunk): (ObjectId, bool),
        len: u64,
        limit: u64,
        interrupt: &Interrupt,
    ) -> Result<Mappings, Error> {
        let (mut all_sources, mut all) = (Vec::<MappedSource>::new(), Vec::new());
        let (mut start, mut path_bytes) = (0, 0);
        loop {
            let answer = self.inner.call(Request::Mappings { id, start, by_chunk }, interrupt)?.0;
            let WorkerAnswer::Mappings { mut sources, mut runs, next } = answer else { return Err(nonsense()) };
            path_bytes += sources.iter().map(|source| source.path.len()).sum::<usize>();
            all_sources.append(&mut sources);
            all.append(&mut runs);
            // A sound worker keeps these limits.
            if all_sources.len() > MAX_SOURCES || path_bytes > MAX_SOURCE_PATHS {
                return Err(nonsense());
            }
            if all.len() as u64 > limit {
                let what = format!("the list of the mappings of the dataset at address {}", id.address);
                let [bytes, limit] =
                    [all.len() as u64, limit].map(|runs| runs.saturating_mul(size_of::<Mapping>() as u64));
                return Err(Error::TooLarge { what, bytes, limit });
            }
            match next {
                None => return Mappings::new(all_sources, all, len).map_err(Error::Hdf5),
                Some(next) if next > start => start = next,
                Some(_) => return Err(nonsense()),
            }
        }
    }

    /// Reads elements of any dataset through `H5Dread`, in the file's own type, in row-major order.
    ///
    /// A standard reference (`H5T_STD_REF`) to a region or an attribute points into the heap like a sequence of bytes.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::TooLarge`] if the answer would exceed the limit of a request:
    /// [`READ_LIMIT`](crate::h5::READ_LIMIT) for the elements, three times that for the contents of variable-length
    /// elements.
    pub fn read(&self, id: ObjectId, region: &Region, interrupt: &Interrupt) -> Result<Elements, Error> {
        let request = Request::Read { id, start: region.start.clone(), count: region.count.clone() };
        self.inner.call(request, interrupt)?.1.ok_or_else(nonsense)
    }

    /// Paths of the objects at these addresses of a file (see [`ObjectId`]): for each the shortest path over hard
    /// links, and among equally long ones the first bytewise; `None`: no path leads to an object there.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn paths(&self, file: u32, addresses: &[u64], interrupt: &Interrupt) -> Result<Vec<Option<String>>, Error> {
        let mut paths = Vec::with_capacity(addresses.len());
        while let Some(rest) = addresses.get(paths.len()..).filter(|rest| !rest.is_empty()) {
            let piece = rest.get(..MAX_ADDRESSES).unwrap_or(rest);
            let request = Request::Paths { file, addresses: piece.to_vec() };
            match self.inner.call(request, interrupt)?.0 {
                WorkerAnswer::Paths(page) if page.is_empty() || page.len() > piece.len() => return Err(nonsense()),
                WorkerAnswer::Paths(mut page) => paths.append(&mut page),
                WorkerAnswer::Again => {}
                _ => return Err(nonsense()),
            }
        }
        Ok(paths)
    }

    /// Tries in the worker what its sandbox should forbid. Returns each attempt, and whether it succeeded. For tests.
    ///
    /// # Errors
    /// See [`Error`].
    #[doc(hidden)]
    pub fn probe(&self, interrupt: &Interrupt) -> Result<Vec<(String, bool)>, Error> {
        match self.inner.call(Request::Probe, interrupt)?.0 {
            WorkerAnswer::Probe(found) => Ok(found),
            _ => Err(nonsense()),
        }
    }

    /// Makes the worker fail: `crash`, `hang`, `panic`; `greed` (asks for bytes behind the end of the source), `nibble`
    /// and `gorge` (ask for its first bytes without end, for few or many at once). For tests.
    ///
    /// # Errors
    /// The error of that failure.
    #[doc(hidden)]
    pub fn rehearse(&self, fault: &str, interrupt: &Interrupt) -> Result<(), Error> {
        let fault = match fault {
            "crash" => Fault::Crash,
            "hang" => Fault::Hang,
            "greed" => Fault::Greed,
            "nibble" => Fault::Repeat(1),
            "gorge" => Fault::Repeat(MAX_WANTED.min(self.inner.source.identity().size)),
            _ => Fault::Panic,
        };
        self.inner.call(Request::Fault(fault), interrupt).map(|_| ())
    }

    /// Number of answered requests. For tests.
    #[doc(hidden)]
    pub fn requests(&self) -> u64 {
        self.inner.state.lock().requests
    }

    /// The process id of the worker, if one runs. For tests.
    #[doc(hidden)]
    pub fn worker_id(&self) -> Option<u32> {
        self.inner.state.lock().worker.as_ref().map(|running| running.worker.id())
    }
}

/// Lists the plugins in a folder: names, sizes, times of last change.
fn plugins_in(folder: &Path) -> Vec<(PathBuf, u64, Option<SystemTime>)> {
    let found = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let described = found.filter_map(|entry| {
        // The target of a link counts.
        let metadata = std::fs::metadata(entry.path()).ok()?;
        Some((entry.path(), metadata.len(), metadata.modified().ok()))
    });
    let mut files: Vec<_> = described.collect();
    files.sort();
    files
}
