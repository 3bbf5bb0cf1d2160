//! Chooses how to reach the elements of a dataset, from its description in the catalogue.

use std::sync::Arc;

use super::mapped::Virtual;
use crate::catalogue::{self, Layout};
use crate::codec::{Pipeline, unavailable};
use crate::store::chunked::{ChunkGrid, ChunkReader, Chunks, FillElement, FillError, worker};
use crate::store::{Decoder, Error, File};

/// How to reach the elements of a dataset.
#[derive(Debug)]
pub(super) enum ElementAccess {
    /// Nothing is allocated: every element is the fill value.
    Unwritten,
    /// One contiguous run, from this byte of the file on.
    Run(u64),
    Chunks(Arc<Chunks>),
    Virtual(Virtual),
}

impl ElementAccess {
    /// Chooses the access to the elements of a dataset; an error if none is possible.
    pub fn new(
        file: &Arc<File>,
        path: &str,
        description: &catalogue::Dataset,
        fill: &Arc<Result<FillElement, FillError>>,
    ) -> Result<Self, Error> {
        let (shape, size) = (&description.shape, description.datatype.size);
        let chunks = |grid: ChunkGrid, reader: ChunkReader| {
            let object = (description.id, description.datatype.clone());
            Arc::new(Chunks::new(file.clone(), path.into(), object, grid, reader, fill.clone()))
        };
        let pieces = || {
            let bytes = if description.datatype.has_descriptors() {
                worker::VARIABLE_PIECE.saturating_mul(size)
            } else {
                worker::PIECE
            };
            let grid = ChunkGrid::pieces(shape, size, bytes).map_err(|error| Error::unsupported(path, error))?;
            Ok::<_, Error>(chunks(grid, ChunkReader::Worker { filter: None }))
        };
        // Addresses within another file are meaningless in this one.
        let elsewhere = description.id.file != 0;
        let reach = Reach::of(file);
        if let Some(reason) = reach.lacks(description) {
            return Err(Error::unsupported(path, reason));
        }
        // To libhdf5, heap collections are metadata, which a metadata cache image may keep outdated in the file.
        let may_be_old = file.info().has_image && description.datatype.has_descriptors();
        let by_library = reach.by_library || may_be_old;
        match &description.layout {
            Layout::Chunked { chunk, partial_unfiltered } => {
                let grid = ChunkGrid::new(shape, chunk, size).map_err(|error| Error::unsupported(path, error))?;
                let reader = match Pipeline::new(&description.filters) {
                    Ok(_) if elsewhere || by_library => ChunkReader::Worker { filter: None },
                    Ok(pipeline) => ChunkReader::Own { pipeline, partial_unfiltered: *partial_unfiltered },
                    Err(filter) => ChunkReader::Worker { filter: Some(filter) },
                };
                Ok(ElementAccess::Chunks(chunks(grid, reader)))
            }
            Layout::Contiguous { .. } | Layout::Virtual { .. } if elsewhere || by_library => {
                Ok(ElementAccess::Chunks(pieces()?))
            }
            // `H5Dget_offset` adds the user block to the address that means "not allocated", which then wraps around.
            Layout::Contiguous { address: Some(address) } if *address < file.info().user_block => {
                Ok(ElementAccess::Unwritten)
            }
            Layout::Contiguous { address: Some(address) } => Ok(ElementAccess::Run(*address)),
            Layout::Contiguous { address: None } => Ok(ElementAccess::Unwritten),
            Layout::Compact | Layout::External { .. } => Ok(ElementAccess::Chunks(pieces()?)),
            Layout::Virtual { .. } => Ok(ElementAccess::Virtual(Virtual::new(pieces()?))),
            Layout::Unknown(class) => Err(Error::unsupported(path, format!("storage layout {class} is not known"))),
        }
    }
}

/// The reads that the options allow: whether elements in other files, and whether only what libhdf5 can decode.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reach {
    follow: bool,
    by_library: bool,
}

impl Reach {
    /// The reads that the options allow for a file.
    pub fn of(file: &File) -> Self {
        Self { follow: file.client().follows_external(), by_library: file.store().decoder() == Decoder::Library }
    }

    /// Whether other files are read.
    pub fn follows(self) -> bool {
        self.follow
    }

    /// Why the elements of a dataset cannot be read, if that is known in advance.
    pub fn lacks(self, description: &catalogue::Dataset) -> Option<String> {
        unavailable(&description.filters, self.by_library).or_else(|| elsewhere_only(&description.layout, self.follow))
    }
}

/// Why elements in other files cannot be read; `follow` is `--follow-external`.
fn elsewhere_only(layout: &Layout, follow: bool) -> Option<String> {
    match layout {
        Layout::External { files } if !follow => {
            let names: Vec<String> = files.iter().map(|file| format!("{file:?}")).collect();
            Some(format!(
                "its elements are in other files ({}), which are not read unless --follow-external is given",
                names.join(", ")
            ))
        }
        Layout::Virtual { sources } if !follow => {
            let other = sources.iter().find(|source| source.file != ".")?;
            Some(format!(
                "it is mapped from other files ({:?}, …), which are not read unless --follow-external is given",
                other.file.to_string()
            ))
        }
        _ => None,
    }
}
