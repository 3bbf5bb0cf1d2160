//! Recognises dimension scales (HDF5 Dimension Scale Specification): datasets that label the positions along an axis.

use crate::catalogue::{Attribute, Class, Dataset, Elements, ObjectId, attribute};
use crate::dialects::attributes::text;
use crate::store::decode::{HeapBytes, Resolve};

/// Bytes of an object reference of the old kind, which is the address of an object header, least significant byte
/// first.
const REFERENCE: usize = 8;

/// Whether a dataset is a scale.
pub fn is_scale(dataset: &Dataset) -> bool {
    text(&dataset.attributes, "CLASS").as_deref() == Some("DIMENSION_SCALE")
}

/// Finds the first scale that the attribute `DIMENSION_LIST` of a dataset attaches to an axis. Its address is 0 for a
/// null reference. `None`: no scale is attached.
pub fn attached(dataset: &Dataset, axis: usize) -> Option<ObjectId> {
    let list: &Attribute = attribute(&dataset.attributes, "DIMENSION_LIST")?;
    let Class::Sequence { base } = &list.datatype.class else { return None };
    if !base.is_reference() || base.size != REFERENCE as u64 {
        return None;
    }
    let Elements { bytes, heap } = list.value.as_ref().ok()?;
    let width = usize::try_from(list.datatype.size).ok().filter(|width| *width > 0)?;
    let mut heap = HeapBytes(heap);
    let scales = heap.resolve(bytes.chunks_exact(width).nth(axis)?, base.size).ok()?;
    let address = u64::from_le_bytes(*scales.first_chunk::<REFERENCE>()?);
    Some(ObjectId { file: dataset.id.file, address })
}

/// Whether a scale is netCDF's placeholder for a dimension without values.
pub fn is_pure_dimension(scale: &Dataset) -> bool {
    let name = text(&scale.attributes, "NAME").unwrap_or_default();
    name.starts_with("This is a netCDF dimension but not a netCDF variable")
}

/// Whether an attribute serves only the bookkeeping of dimension scales, on an object that has `attributes`.
pub fn is_plumbing(name: &[u8], attributes: &[Attribute]) -> bool {
    match name {
        b"DIMENSION_LIST" | b"REFERENCE_LIST" | b"_Netcdf4Coordinates" | b"_Netcdf4Dimid" | b"_nc3_strict" => true,
        b"CLASS" | b"NAME" => text(attributes, "CLASS").as_deref() == Some("DIMENSION_SCALE"),
        _ => false,
    }
}
