//! How datasets are stored: extents, chunks, filters and fill values.

use std::ffi::c_char;
use std::ptr;

use hdf5_metno_sys::{h5p, h5s};

use super::types::Type;
use crate::h5::element::{Plain, bytes_of};
use crate::h5::library::{Id, Reason, check};

/// Deflate level: level 1 is fast, and after shuffle it already finds most there is to find.
const DEFLATE_LEVEL: u32 = 1;

/// Size of an unlimited dimension.
pub const UNLIMITED: u64 = h5s::H5S_UNLIMITED;

/// A property list for the creation of objects without times, so that the same rows give the same bytes at any hour.
pub(in crate::h5) fn timeless(class: i64) -> Result<Id, Reason> {
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
    /// How far each can grow.
    pub limits: Vec<u64>,
    chunk: Option<Vec<u64>>,
    shuffle: bool,
}

impl Storage {
    /// In one piece, not extendible.
    pub fn contiguous(extents: &[u64]) -> Self {
        Self { extents: extents.to_vec(), limits: extents.to_vec(), chunk: None, shuffle: false }
    }

    /// In chunks, deflated after a byte shuffle.
    pub fn chunked(extents: &[u64], limits: &[u64], chunk: &[u64]) -> Self {
        Self { extents: extents.to_vec(), limits: limits.to_vec(), chunk: Some(chunk.to_vec()), shuffle: true }
    }

    /// One dimension that can grow without limit.
    pub fn growing(extent: u64, chunk: u64) -> Self {
        Self::chunked(&[extent], &[UNLIMITED], &[chunk])
    }

    /// Deflated without the shuffle, which is of no use to bytes and text.
    pub fn unshuffled(self) -> Self {
        Self { shuffle: false, ..self }
    }

    /// The property list for the creation of a dataset.
    pub(in crate::h5) fn property_list(&self) -> Result<Id, Reason> {
        let list = timeless(*h5p::H5P_CLS_DATASET_CREATE)?;
        let Some(chunk) = &self.chunk else { return Ok(list) };
        let rank = i32::try_from(chunk.len()).map_err(|_| Reason::new("too many dimensions"))?;
        // SAFETY: `rank` extents.
        check(unsafe { h5p::H5Pset_chunk(list.raw(), rank, chunk.as_ptr()) })?;
        if self.shuffle {
            // SAFETY: no pointers.
            check(unsafe { h5p::H5Pset_shuffle(list.raw()) })?;
        }
        // SAFETY: no pointers.
        check(unsafe { h5p::H5Pset_deflate(list.raw(), DEFLATE_LEVEL) })?;
        Ok(list)
    }
}

/// The fill value of a dataset.
#[derive(Clone, Debug)]
pub enum Fill {
    /// None set.
    Unset,
    /// An element as in memory.
    Bytes(Vec<u8>),
    /// The empty variable-length string, a null pointer like those that
    /// [`Dataset::write_texts`](crate::h5::create::Dataset::write_texts) writes: libhdf5 fills every new chunk of
    /// variable-length strings, and an empty C string would take heap for each element.
    EmptyText,
}

impl Fill {
    /// A value of a type without pointers.
    pub fn of<T: Plain>(value: T) -> Self {
        Self::Bytes(bytes_of(std::slice::from_ref(&value)).to_vec())
    }

    /// Puts the value into the property list of a dataset of this type.
    pub(in crate::h5) fn set(&self, list: &Id, datatype: &Type) -> Result<(), Reason> {
        let empty: *const c_char = ptr::null();
        let value = match self {
            Self::Unset => return Ok(()),
            Self::Bytes(bytes) if !datatype.is_variable() && bytes.len() == datatype.size() => bytes.as_ptr().cast(),
            Self::EmptyText if datatype.is_variable() => (&raw const empty).cast(),
            _ => return Err(Reason::new("the fill value is not of the datatype")),
        };
        // SAFETY: one element of the datatype in memory, checked above.
        check(unsafe { h5p::H5Pset_fill_value(list.raw(), datatype.memory(), value) })?;
        Ok(())
    }
}
