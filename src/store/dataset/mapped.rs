//! Virtual datasets whose sources lie in the same file: ranges of them are ranges of their sources.
//!
//! The sources have chunk maps, codecs, read-ahead and cached chunks already, which virtual datasets over one source
//! (the versions of a column) then share. Where the mappings say more than that, libhdf5 reads the elements.

use std::sync::{Arc, OnceLock};

use super::Dataset;
use crate::catalogue::{self, Layout, MappedSource, Mapping, Mappings, Object};
use crate::h5;
use crate::source::{Interrupt, Interrupted};
use crate::store::chunked::{Chunks, Fill};
use crate::store::memory::WORTH_A_SPAN;
use crate::store::{Error, File, Lent, Reservation, Span};

/// Mappings and their part of the budget.
#[derive(Debug)]
pub(in crate::store) struct HeldMappings {
    mappings: Mappings,
    _held: Reservation,
}

/// How a virtual dataset is read.
#[derive(Debug)]
pub(super) struct Virtual {
    /// Through the worker, where its mappings cannot be followed here.
    pub worker: Arc<Chunks>,
    /// Its sources, once they are known; `None` where the worker reads.
    sources: OnceLock<Option<Vec<Dataset>>>,
}

/// A virtual dataset made of runs of its sources.
pub(super) struct Mapped<'a> {
    held: Arc<HeldMappings>,
    sources: &'a [Dataset],
    /// Bytes of an element.
    size: u64,
}

/// Why mappings are not followed here.
enum Unmapped {
    /// libhdf5 has to read them.
    Reason(String),
    /// They are not known.
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
        Self { worker, sources: OnceLock::new() }
    }

    /// Whether the worker reads it. That is known when it was read once.
    pub fn is_through_worker(&self) -> bool {
        matches!(self.sources.get(), Some(None))
    }

    /// Whether elements are decoded, as far as is known.
    pub fn is_decoded(&self) -> bool {
        match self.sources.get() {
            Some(Some(sources)) => sources.iter().any(Dataset::is_decoded),
            Some(None) => true,
            None => false,
        }
    }

    /// The mappings of the dataset, whose fill is `fill`; `None` where the worker reads.
    pub fn mapped(
        &self,
        description: &catalogue::Dataset,
        fill: &Result<Fill, String>,
        interrupt: &Interrupt,
    ) -> Result<Option<Mapped<'_>>, Error> {
        if self.is_through_worker() {
            return Ok(None);
        }
        let (path, size) = (&self.worker.path, description.datatype.size);
        match self.try_mapped(description, fill, interrupt) {
            Ok((held, sources)) => Ok(Some(Mapped { held, sources, size })),
            Err(Unmapped::Error(error)) => Err(error),
            Err(Unmapped::Reason(reason)) => {
                tracing::debug!(path, reason, "a virtual dataset is read through libhdf5");
                self.sources.get_or_init(|| None);
                Ok(None)
            }
        }
    }

    fn try_mapped(
        &self,
        description: &catalogue::Dataset,
        fill: &Result<Fill, String>,
        interrupt: &Interrupt,
    ) -> Result<(Arc<HeldMappings>, &[Dataset]), Unmapped> {
        let file = &self.worker.file;
        if file.info().swmr {
            return Err(Unmapped::Reason("a writer has the file open".into()));
        }
        if let Err(reason) = fill {
            return Err(Unmapped::Reason(reason.clone()));
        }
        let key = (file.serial(), description.id);
        let held = file.store().mappings().get_or_make(&key, interrupt, || self.load(description, interrupt))?;
        let sources = match self.sources.get() {
            Some(known) => known,
            None => {
                let sources = self.open_sources(&held.mappings, description, fill, interrupt)?;
                self.sources.get_or_init(|| Some(sources))
            }
        };
        let sources = sources.as_deref().ok_or_else(|| Unmapped::Reason("it was found to need libhdf5".into()))?;
        Ok((held, sources))
    }

    fn load(&self, description: &catalogue::Dataset, interrupt: &Interrupt) -> Result<HeldMappings, Unmapped> {
        let (file, path) = (&self.worker.file, &self.worker.path);
        let budget = file.store().budget();
        // Half the budget, as for a chunk map.
        let limit = budget.limit() / 2 / size_of::<Mapping>() as u64;
        let len = description.len().unwrap_or(0);
        let mappings = file.client().mappings(description.id, len, limit, interrupt);
        file.check()?;
        let mappings = mappings.map_err(|error| match error {
            h5::Error::Hdf5(_) | h5::Error::TooLarge { .. } => Unmapped::Reason(error.to_string()),
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
        fill: &Result<Fill, String>,
        interrupt: &Interrupt,
    ) -> Result<Vec<Dataset>, Unmapped> {
        let file = &self.worker.file;
        let sources = mappings.sources().iter().map(|source| {
            let object = file.client().object(source.id, interrupt);
            match object.map_err(|error| self.worker.worker_error(error))? {
                Object::Dataset(found) => open_source(file, source, found, description, fill),
                _ => Err(Unmapped::Reason(format!("{:?} is no dataset", source.path))),
            }
        });
        let sources: Vec<Dataset> = sources.collect::<Result<_, _>>()?;
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

/// A source whose stored bytes are those that the virtual dataset shows.
fn open_source(
    file: &Arc<File>,
    source: &MappedSource,
    found: Arc<catalogue::Dataset>,
    description: &catalogue::Dataset,
    fill: &Result<Fill, String>,
) -> Result<Dataset, Unmapped> {
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
    let dataset = match Dataset::new(file.clone(), path, found) {
        Ok(dataset) => dataset,
        Err(error) => return refuse(&format!("cannot be read here: {error}")),
    };
    // Descriptors lead into the file, or into the one heap of a fill value that a batch of elements has.
    let own_heap = match (dataset.fill_value(), fill) {
        (Ok(own), Ok(fill)) => !own.heap.is_empty() && own.heap != fill.heap,
        _ => true,
    };
    if description.datatype.has_descriptors() && (own_heap || dataset.through_worker()) {
        return refuse("has elements of variable length that do not lie in the file's heaps");
    }
    Ok(dataset)
}

/// Bytes of a virtual dataset that have one origin.
struct Piece<'a> {
    length: u64,
    /// The source and the first byte in it; `None` for fill value.
    from: Option<(&'a Dataset, u64)>,
}

impl<'a> Mapped<'a> {
    /// The piece that begins at byte `offset`, of at most `length` bytes.
    fn piece(&self, offset: u64, length: u64) -> Piece<'a> {
        let (run, end) = self.held.mappings.find(offset / self.size.max(1));
        let length = end.saturating_mul(self.size).saturating_sub(offset).clamp(1, length.max(1));
        // Runs lie in datasets of less than 2^63 bytes, so nothing saturates.
        let byte = |run: &Mapping| {
            run.first.saturating_mul(self.size).saturating_add(offset.saturating_sub(run.at.saturating_mul(self.size)))
        };
        let from = run.and_then(|run| Some((self.sources.get(run.source as usize)?, byte(run))));
        Piece { length, from }
    }

    /// Fills `out` from byte `offset` on.
    pub fn read(&self, mut offset: u64, out: &mut [u8], fill: &Fill, interrupt: &Interrupt) -> Result<(), Error> {
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

    /// Appends `length` bytes from byte `offset` on, as [`Dataset::append_once`].
    pub fn append(
        &self,
        mut offset: u64,
        length: usize,
        out: &mut Vec<u8>,
        fill: &Fill,
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

    /// Where bytes from `offset` on lie, at most `length` of them.
    pub fn span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        let piece = self.piece(offset, length as u64);
        let count = usize::try_from(piece.length).map_or(length, |count| count.min(length));
        match piece.from {
            // Of many small pieces together: it must be made.
            _ if count < length.min(WORTH_A_SPAN) => Ok(Span::Made(length)),
            Some((source, byte)) => source.span(byte, count, interrupt),
            None => Ok(Span::Made(count)),
        }
    }

    /// The bytes `offset..offset + length` where one source has them together; `None` elsewhere.
    pub fn lend(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Option<Lent>, Error> {
        let piece = self.piece(offset, length as u64);
        match piece.from {
            Some((source, byte)) if piece.length >= length as u64 => source.lend(byte, length, interrupt),
            _ => Ok(None),
        }
    }
}
