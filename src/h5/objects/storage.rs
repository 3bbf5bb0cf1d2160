//! The storage of datasets: extents, chunks, filters and fill values.

use std::ffi::c_char;
use std::ptr;

use hdf5_metno_sys::{h5p, h5s, h5z};

use super::c_string;
use super::types::Type;
use crate::codec::Compression;
use crate::h5::element::FillSetting;
use crate::h5::library::{FailureReason, Id, check};

/// Level 1 is fast, and after the shuffle it already compresses nearly as well as higher levels.
const USUAL: Compression = Compression::Deflate(1);

/// Size of an unlimited dimension.
pub const UNLIMITED: u64 = h5s::H5S_UNLIMITED;

/// A property list for the creation of objects without times, so that the same rows give the same bytes at any hour.
pub(in crate::h5) fn timeless(class: i64) -> Result<Id, FailureReason> {
    // SAFETY: no pointers.
    let list = Id::own(unsafe { h5p::H5Pcreate(class) })?;
    // SAFETY: no pointers.
    check(unsafe { h5p::H5Pset_obj_track_times(list.raw(), false.into()) })?;
    Ok(list)
}

/// Extents and layout of a dataset.
#[derive(Clone, Debug)]
pub struct Storage {
    /// Elements in each dimension.
    pub extents: Vec<u64>,
    /// Largest extent of each dimension.
    pub limits: Vec<u64>,
    chunk: Option<Vec<u64>>,
    shuffle: bool,
    compression: Compression,
}

impl Storage {
    /// Contiguous storage, which cannot be extended.
    pub fn contiguous(extents: &[u64]) -> Self {
        Self { extents: extents.to_vec(), limits: extents.to_vec(), chunk: None, shuffle: false, compression: USUAL }
    }

    /// Storage in chunks, shuffled by byte and then deflated.
    pub fn chunked(extents: &[u64], limits: &[u64], chunk: &[u64]) -> Self {
        let (extents, limits, chunk) = (extents.to_vec(), limits.to_vec(), Some(chunk.to_vec()));
        Self { extents, limits, chunk, shuffle: true, compression: USUAL }
    }

    /// Storage in one dimension that can grow without limit.
    pub fn growing(extent: u64, chunk: u64) -> Self {
        Self::chunked(&[extent], &[UNLIMITED], &[chunk])
    }

    /// The same storage with this compression.
    pub fn compressed(self, compression: Compression) -> Self {
        Self { compression, ..self }
    }

    /// The same storage without the shuffle, which is useless for bytes and text.
    pub fn unshuffled(self) -> Self {
        Self { shuffle: false, ..self }
    }

    /// The property list for the creation of a dataset.
    pub(in crate::h5) fn property_list(&self) -> Result<Id, FailureReason> {
        let list = timeless(*h5p::H5P_CLS_DATASET_CREATE)?;
        let Some(chunk) = &self.chunk else { return Ok(list) };
        let rank = i32::try_from(chunk.len()).map_err(|_| FailureReason::new("too many dimensions"))?;
        // SAFETY: `rank` extents.
        check(unsafe { h5p::H5Pset_chunk(list.raw(), rank, chunk.as_ptr()) })?;
        if self.shuffle {
            // SAFETY: no pointers.
            check(unsafe { h5p::H5Pset_shuffle(list.raw()) })?;
        }
        match self.compression {
            Compression::None => {}
            Compression::Deflate(level) => {
                // SAFETY: no pointers.
                check(unsafe { h5p::H5Pset_deflate(list.raw(), level.into()) })?;
            }
            Compression::Zstandard(level) => filter(&list, 32015, &[level.into()])?,
            Compression::Lz4 => filter(&list, 32004, &[])?,
        }
        Ok(list)
    }
}

/// Adds a filter that libhdf5 may lack: chunks come to it already filtered.
fn filter(list: &Id, id: i32, parameters: &[u32]) -> Result<(), FailureReason> {
    // Only an optional filter may be unknown at the creation of the dataset.
    let optional = h5z::H5Z_FLAG_OPTIONAL;
    // SAFETY: as many parameters as are given.
    check(unsafe { h5p::H5Pset_filter(list.raw(), id, optional, parameters.len(), parameters.as_ptr()) })?;
    Ok(())
}

impl FillSetting {
    /// Sets the value in the property list of a dataset of this type.
    pub(in crate::h5) fn set(&self, list: &Id, datatype: &Type) -> Result<(), FailureReason> {
        let text = match self {
            Self::Text(text) => Some(c_string(text)?),
            _ => None,
        };
        let pointer: *const c_char = text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        let value = match self {
            Self::Unset => return Ok(()),
            Self::Bytes(bytes) if !datatype.is_variable() && bytes.len() == datatype.size() => bytes.as_ptr().cast(),
            Self::EmptyText | Self::Text(_) if datatype.is_variable() => (&raw const pointer).cast(),
            _ => return Err(FailureReason::new("the fill value is not of the datatype")),
        };
        // SAFETY: one element of the datatype in memory, checked above.
        check(unsafe { h5p::H5Pset_fill_value(list.raw(), datatype.memory(), value) })?;
        Ok(())
    }
}
