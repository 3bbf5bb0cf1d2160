//! Extents of datasets and attributes.

use crate::h5::library::{FailureReason, Id, check, ffi};

/// A dataspace.
#[derive(Debug)]
pub(in crate::h5::worker) struct Dataspace {
    pub shape: Vec<u64>,
    pub max_shape: Vec<Option<u64>>,
    pub null: bool,
}

impl Dataspace {
    pub fn of(space: &Id) -> Result<Self, FailureReason> {
        // SAFETY: an open dataspace (so in all calls here).
        let (class, rank) = unsafe {
            (ffi::H5Sget_simple_extent_type(space.raw()), check(ffi::H5Sget_simple_extent_ndims(space.raw()))? as usize)
        };
        if class < 0 || rank > ffi::MAX_RANK {
            return Err(FailureReason::new(format!("a dataspace of class {class} and rank {rank}")));
        }
        let (mut shape, mut max) = (vec![0; rank], vec![0; rank]);
        if rank > 0 {
            // SAFETY: as above; both have room for each dimension.
            check(unsafe { ffi::H5Sget_simple_extent_dims(space.raw(), shape.as_mut_ptr(), max.as_mut_ptr()) })?;
        }
        let max_shape = max.into_iter().map(|max| (max != ffi::UNLIMITED).then_some(max)).collect();
        Ok(Self { shape, max_shape, null: class == ffi::S_NULL })
    }
}
