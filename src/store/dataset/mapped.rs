//! Virtual datasets whose sources lie in the same file: ranges of them map to ranges of the sources.
//!
//! The sources already have chunk maps, codecs, read-ahead and cached chunks, which virtual datasets over one source
//! (the versions of a column) then share. If each mapping covers a chunk of one source, whatever its rank, the dataset
//! is read as chunked, with the chunks of the source. More complex mappings are left to libhdf5.

use std::sync::{Arc, OnceLock};

use super::StoredDataset;
use crate::catalogue::{self, Layout, MappedSource, Mapping, Mappings, Object, PACKED_CHUNK};
use crate::h5;
use crate::source::{Interrupt, Interrupted};
use crate::store::chunked::{ChunkGrid, ChunkReader, Chunks, FillElement, FillError, HeldMappings, Taken};
use crate::store::memory::WORTH_A_SPAN;
use crate::store::rows::RowsContainer;
use crate::store::{Error, File, Lent, Span};

/// The access to a virtual dataset.
#[derive(Debug)]
pub(super) struct Virtual {
    /// Reads it through the worker, if its mappings cannot be followed here.
    pub worker: Arc<Chunks>,
    known: OnceLock<Known>,
}

/// The composition of a virtual dataset.
#[derive(Debug)]
enum Known {
    /// Left to the worker.
    Worker,
    /// Its sources do not exist.
    Nowhere(h5::Error),
    /// Runs of these datasets.
    Sources(Vec<StoredDataset>),
    /// Chunks of one dataset.
    Chunks(Arc<Chunks>),
}

/// The reader of a virtual dataset.
pub(super) enum VirtualReader<'a> {
    /// Chunks: its own, which are those of a source, or pieces that the worker reads.
    Chunks(&'a Arc<Chunks>),
    /// Runs of sources.
    Mapped(MappedRuns<'a>),
}

/// A virtual dataset made of runs of its sources.
pub(super) struct MappedRuns<'a> {
    held: Arc<HeldMappings>,
    sources: &'a [StoredDataset],
    /// Bytes of an element.
    size: u64,
}

/// Why mappings are not followed here.
enum Unmapped {
    /// The mappings are of another kind.
    Reason(String),
    /// There are no mappings.
    Nothing,
    /// The sources do not exist.
    Nowhere(h5::Error),
    /// Reading the mappings failed.
    Error(Error),
}

impl From<Error> for Unmapped {
    fn from(error: Error) -> Self {
        Unmapped::Error(error)
    }
}

impl From<Interrupted> for Unmapped {
    fn from(interrupted: Interrupted) -> Self {
        Unmapped::Error(interrupted.into())
    }
}

impl Virtual {
    pub fn new(worker: Arc<Chunks>) -> Self {
        Self { worker, known: OnceLock::new() }
    }

    /// Whether the worker reads it; known after the first read.
    pub fn is_through_worker(&self) -> bool {
        matches!(self.known.get(), Some(Known::Worker))
    }

    /// Whether elements are decoded, as far as known.
    pub fn is_decoded(&self) -> bool {
        match self.known.get() {
            Some(Known::Sources(sources)) => sources.iter().any(StoredDataset::is_decoded),
            Some(Known::Chunks(chunks)) => chunks.is_decoded(),
            Some(Known::Worker) => true,
            Some(Known::Nowhere(_)) | None => false,
        }
    }

    /// Determines the reader of the dataset, whose fill is `fill`.
    pub fn follow(
        &self,
        description: &catalogue::Dataset,
        fill: &Arc<Result<FillElement, FillError>>,
        interrupt: &Interrupt,
    ) -> Result<VirtualReader<'_>, Error> {
        let (path, size) = (&self.worker.path, description.datatype.size);
        match self.try_follow(description, fill, interrupt) {
            Ok(Some((held, sources))) => return Ok(VirtualReader::Mapped(MappedRuns { held, sources, size })),
            Ok(None) | Err(Unmapped::Nothing) => {}
            Err(Unmapped::Error(error)) => return Err(error),
            Err(Unmapped::Nowhere(error)) => {
                self.worker.file.report_unfollowed(path, error.to_string());
                self.known.get_or_init(|| Known::Nowhere(error));
            }
            Err(Unmapped::Reason(reason)) => {
                tracing::debug!(path, reason, "a virtual dataset is read through libhdf5");
                self.worker.file.report_unfollowed(path, reason);
                self.known.get_or_init(|| Known::Worker);
            }
        }
        Ok(VirtualReader::Chunks(match self.known.get() {
            Some(Known::Chunks(chunks)) => chunks,
            Some(Known::Nowhere(error)) => return Err(self.worker.worker_error(error.clone())),
            _ => &self.worker,
        }))
    }

    /// The mappings and their sources, if the dataset consists of runs; `None`: it consists of chunks, or the worker is
    /// known to read it.
    #[allow(clippy::type_complexity)]
    fn try_follow(
        &self,
        description: &catalogue::Dataset,
        fill: &Arc<Result<FillElement, FillError>>,
        interrupt: &Interrupt,
    ) -> Result<Option<(Arc<HeldMappings>, &[StoredDataset])>, Unmapped> {
        let file = &self.worker.file;
        if let Some(Known::Chunks(_) | Known::Worker | Known::Nowhere(_)) = self.known.get() {
            return Ok(None);
        }
        if file.info().swmr {
            return Err(Unmapped::Reason("a writer has the file open".into()));
        }
        if let Err(reason) = fill.as_ref() {
            return Err(Unmapped::Reason(reason.to_string()));
        }
        if self.known.get().is_none() {
            match self.open_chunks(description, fill, interrupt) {
                Ok(chunks) => {
                    self.known.get_or_init(|| Known::Chunks(Arc::new(chunks)));
                    return Ok(None);
                }
                Err(error @ (Unmapped::Error(_) | Unmapped::Nowhere(_))) => return Err(error),
                Err(Unmapped::Nothing) => {}
                Err(Unmapped::Reason(reason)) => self.worker.file.report_unfollowed(&self.worker.path, reason),
            }
        }
        let key = (file.serial(), description.id);
        let len = description.len().unwrap_or(0);
        let held = file.store().mappings().get_or_make(&key, interrupt, || {
            self.load(&|limit| file.client().mappings(description.id, len, limit, interrupt), interrupt)
        })?;
        let known = match self.known.get() {
            Some(known) => known,
            None => {
                let sources = self.open_sources(&held.mappings, description, fill, interrupt)?;
                self.known.get_or_init(|| Known::Sources(sources))
            }
        };
        match known {
            Known::Sources(sources) => Ok(Some((held, sources))),
            Known::Chunks(_) | Known::Worker | Known::Nowhere(_) => Ok(None),
        }
    }

    /// The chunks of the dataset, if each is a chunk of a single source.
    fn open_chunks(
        &self,
        description: &catalogue::Dataset,
        fill: &Arc<Result<FillElement, FillError>>,
        interrupt: &Interrupt,
    ) -> Result<Chunks, Unmapped> {
        let refuse = |reason: &str| Unmapped::Reason(reason.to_owned());
        let file = &self.worker.file;
        let held = self.load(&|limit| file.client().mappings_by_chunk(description.id, limit, interrupt), interrupt)?;
        let held = Arc::new(held);
        let [source] = held.mappings.sources() else {
            return Err(match held.mappings.sources() {
                [] => Unmapped::Nothing,
                sources => Unmapped::Reason(format!("it has {} sources", sources.len())),
            });
        };
        let opened = self.open_source(source, description, fill, interrupt)?;
        let chunks = opened.chunks().ok_or_else(|| refuse("the source has no chunks"))?;
        let (ChunkReader::Own { pipeline, partial_unfiltered: false }, Layout::Chunked { chunk, .. }) =
            (&chunks.reader, &opened.description.layout)
        else {
            return Err(refuse("chunks of the source are not read here"));
        };
        let grid = ChunkGrid::new(&description.shape, chunk, description.datatype.size)
            .map_err(|error| Unmapped::Reason(error.to_string()))?;
        let map = chunks.map(interrupt)?.ok_or_else(|| refuse("chunks of the source are not read here"))?;
        // As for any chunk map, to leave room for the chunks themselves.
        let taken = held.mappings.runs().iter().map(|run| run.len).fold(0, u64::saturating_add);
        if taken > file.store().budget().limit() / 2 / PACKED_CHUNK {
            return Err(refuse("it has more chunks than can be listed"));
        }
        for run in held.mappings.runs() {
            interrupt.check()?;
            let fits = |first: u64, all: u64| first.checked_add(run.len).is_some_and(|end| end <= all);
            // An unwritten chunk would have the source's fill value.
            let is_written = (0..run.len).all(|at| map.map.get(run.first.saturating_add(at)).is_some());
            if !fits(run.at, grid.chunks()) || !fits(run.first, chunks.grid.chunks()) || !is_written {
                return Err(Unmapped::Reason(format!("{} chunks from {} on pass a source", run.len, run.first)));
            }
        }
        let reader = ChunkReader::Own { pipeline: pipeline.clone(), partial_unfiltered: false };
        let object = (description.id, description.datatype.clone());
        let own = Chunks::new(file.clone(), self.worker.path.clone(), object, grid, reader, fill.clone());
        Ok(own.taking(Taken { source: chunks.clone(), places: held }))
    }

    /// Loads the mappings that `ask` returns, given the most that fit in half of the budget.
    fn load(
        &self,
        ask: &dyn Fn(u64) -> Result<Mappings, h5::Error>,
        interrupt: &Interrupt,
    ) -> Result<HeldMappings, Unmapped> {
        let (file, path) = (&self.worker.file, &self.worker.path);
        let budget = file.store().budget();
        // Half the budget, as for a chunk map.
        let mappings = ask(budget.limit() / 2 / size_of::<Mapping>() as u64);
        file.check()?;
        let mappings = mappings.map_err(|error| match error {
            h5::Error::Hdf5(_) | h5::Error::TooLarge { .. } => Unmapped::Reason(error.to_string()),
            error @ h5::Error::Beyond(_) => Unmapped::Nowhere(error),
            error => self.worker.worker_error(error).into(),
        })?;
        let held = budget.reserve(mappings.memory() as u64, interrupt);
        let held = held.map_err(|error| error.at(path, "the list of its mappings"))?;
        Ok(HeldMappings { mappings, _held: held })
    }

    fn open_sources(
        &self,
        mappings: &Mappings,
        description: &catalogue::Dataset,
        fill: &Result<FillElement, FillError>,
        interrupt: &Interrupt,
    ) -> Result<Vec<StoredDataset>, Unmapped> {
        let sources = mappings.sources().iter().map(|source| self.open_source(source, description, fill, interrupt));
        let sources: Vec<StoredDataset> = sources.collect::<Result<_, _>>()?;
        for run in mappings.runs() {
            let source = sources.get(run.source as usize);
            let end = run.first.checked_add(run.len);
            if source.is_none_or(|source| end.is_none_or(|end| end > source.len())) {
                return Err(Unmapped::Reason(format!("{} elements from {} on pass a source", run.len, run.first)));
            }
        }
        Ok(sources)
    }
}

impl Virtual {
    fn open_source(
        &self,
        source: &MappedSource,
        description: &catalogue::Dataset,
        fill: &Result<FillElement, FillError>,
        interrupt: &Interrupt,
    ) -> Result<StoredDataset, Unmapped> {
        let file = &self.worker.file;
        match file.object(source.id, interrupt).map_err(|error| self.worker.worker_error(error))? {
            Object::Dataset(found) => open_source(file, source, found, description, fill),
            _ => Err(Unmapped::Reason(format!("{:?} is not a dataset", source.path))),
        }
    }
}

/// Opens a source whose stored bytes are those of the virtual dataset.
fn open_source(
    file: &Arc<File>,
    source: &MappedSource,
    found: Arc<catalogue::Dataset>,
    description: &catalogue::Dataset,
    fill: &Result<FillElement, FillError>,
) -> Result<StoredDataset, Unmapped> {
    let refuse = |reason: &str| Err(Unmapped::Reason(format!("source {:?} {reason}", source.path)));
    if source.id.file != 0 || found.id.file != 0 {
        return refuse("lies in another file");
    }
    if found.datatype != description.datatype {
        return refuse("is of another datatype");
    }
    if matches!(found.layout, Layout::Virtual { .. }) {
        return refuse("is virtual itself");
    }
    let name: &[u8] = &source.path;
    let path = catalogue::join("/", name.strip_prefix(b"/").unwrap_or(name));
    let dataset = match StoredDataset::new(file.clone(), path, found) {
        Ok(dataset) => dataset,
        Err(error) => return refuse(&format!("cannot be read here: {error}")),
    };
    // Descriptors lead into the file, or into the single heap of a fill value that a batch of elements has.
    let own_heap = match (dataset.fill_value(), fill) {
        (Ok(own), Ok(fill)) => !own.heap.is_empty() && own.heap != fill.heap,
        _ => true,
    };
    if description.datatype.has_descriptors() && (own_heap || dataset.through_worker()) {
        return refuse("has elements of variable length that do not lie in the file's heaps");
    }
    Ok(dataset)
}

/// Bytes of a virtual dataset with a common origin.
struct Piece<'a> {
    length: u64,
    /// The source and the first byte in it; `None`: fill value.
    from: Option<(&'a StoredDataset, u64)>,
}

impl<'a> MappedRuns<'a> {
    /// The piece at byte `offset`, of at most `length` bytes.
    fn piece(&self, offset: u64, length: u64) -> Piece<'a> {
        let (run, end) = self.held.mappings.find(offset / self.size.max(1));
        let length = end.saturating_mul(self.size).saturating_sub(offset).clamp(1, length.max(1));
        let from = run.and_then(|run| {
            // Runs lie within datasets of fewer than 2^63 bytes, so nothing saturates.
            let within = offset.saturating_sub(run.at.saturating_mul(self.size));
            let byte = run.first.saturating_mul(self.size).saturating_add(within);
            Some((self.sources.get(run.source as usize)?, byte))
        });
        Piece { length, from }
    }

    /// Fills `out` from byte `offset` on.
    pub fn read(
        &self,
        mut offset: u64,
        out: &mut [u8],
        fill: &FillElement,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let mut rest = out;
        while !rest.is_empty() {
            let piece = self.piece(offset, rest.len() as u64);
            let (part, tail) = rest.split_at_mut((piece.length as usize).min(rest.len()));
            match piece.from {
                Some((source, byte)) => source.read_bytes(byte, part, interrupt)?,
                None => fill.write((offset % self.size.max(1)) as usize, part),
            }
            offset += part.len() as u64;
            rest = tail;
        }
        Ok(())
    }

    /// Appends `length` bytes from byte `offset` on, as [`StoredDataset::append_once`].
    pub fn append(
        &self,
        mut offset: u64,
        length: usize,
        out: &mut Vec<u8>,
        fill: &FillElement,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let end = out.len().saturating_add(length);
        while out.len() < end {
            let (start, left) = (out.len(), end - out.len());
            let piece = self.piece(offset, left as u64);
            let count = (piece.length as usize).min(left);
            match piece.from {
                Some((source, byte)) => source.append_once(byte, count, out, interrupt)?,
                None => {
                    out.resize(start + count, 0);
                    fill.write((offset % self.size.max(1)) as usize, &mut out[start..]);
                }
            }
            offset += count as u64;
        }
        Ok(())
    }

    /// Locates up to `length` bytes from `offset` on.
    pub fn span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        let piece = self.piece(offset, length as u64);
        let count = usize::try_from(piece.length).map_or(length, |count| count.min(length));
        match piece.from {
            // Many small pieces: better copied together.
            _ if count < length.min(WORTH_A_SPAN) => Ok(Span::Made(length)),
            Some((source, byte)) => source.span(byte, count, interrupt),
            None => Ok(Span::Made(count)),
        }
    }

    /// Borrows bytes `offset..offset + length`, if they are contiguous in one source.
    pub fn lend(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Option<Lent>, Error> {
        let piece = self.piece(offset, length as u64);
        match piece.from {
            Some((source, byte)) if piece.length >= length as u64 => source.lend(byte, length, interrupt),
            _ => Ok(None),
        }
    }
}
