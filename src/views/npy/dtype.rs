//! The NumPy dtype for a stored datatype.

use bstr::ByteSlice;

use crate::catalogue::{ByteOrder, Class, Datatype, FloatFormat};

/// Byte order of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NpyByteOrder {
    /// `<`
    Little,
    /// `>`
    Big,
}

/// The kind of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NpyKind {
    /// `i`: two's complement.
    Signed,
    /// `u`
    Unsigned,
    /// `f`: IEEE 754.
    Float,
    /// `c`: two IEEE 754 numbers, real part first.
    Complex,
}

/// A NumPy dtype, restricted to those that stored datatypes map to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NpyType {
    /// `<i4` and the like.
    Scalar {
        /// Byte order; meaningless if `size` is 1.
        order: NpyByteOrder,
        /// Kind of number.
        kind: NpyKind,
        /// Size in bytes.
        size: u64,
    },
    /// `|b1`
    Bool,
    /// `|S5`: text, padded with NULs.
    Bytes(u64),
    /// `|V5`: opaque bytes.
    Void(u64),
    /// A structured dtype, such as `[('a', '<i4'), ('b', '<f8')]`.
    Struct {
        /// Fields by rising offset; they do not overlap.
        fields: Vec<NpyField>,
        /// Bytes of an element, padding at its end included.
        size: u64,
    },
    /// A sub-array, never directly within another.
    Array {
        /// Extents, slowest dimension first.
        dims: Vec<u64>,
        /// Type of an element.
        base: Box<NpyType>,
    },
}

/// A field of a structured dtype.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyField {
    /// Name of the field; invalid UTF-8 is replaced.
    pub name: String,
    /// Offset of the field's first byte in the element.
    pub offset: u64,
    /// Type of the field.
    pub dtype: NpyType,
}

/// Why a datatype has no `.npy`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoNpy {
    /// Variable-length strings and sequences: elements of no fixed size.
    #[error("elements of variable length have no place in a NumPy file")]
    Variable,
    /// References, which NumPy cannot represent.
    #[error("references have no meaning outside their HDF5 file")]
    Reference,
    /// An unknown datatype class.
    #[error("datatype class {0} is not known")]
    Unknown(i32),
    /// Integers of 3, 5, 6 or 7 bytes.
    #[error("NumPy has no integers of {0} bytes")]
    Width(u64),
    /// A duplicate or empty field name.
    #[error("a structured dtype cannot have the field name {0:?}")]
    Name(String),
    /// A datatype that contradicts itself.
    #[error("datatype is malformed: {0}")]
    Malformed(String),
}

/// Deepest nesting of compounds and arrays.
const MAX_DEPTH: usize = 32;

impl NpyType {
    /// Returns the dtype with which NumPy reads elements of `datatype` as stored: numbers that fill 1, 2, 4 or 8 bytes
    /// as numbers, enumerations as their base, anything unusual as bytes.
    ///
    /// # Errors
    /// [`NoNpy`] has the reason.
    pub fn of(datatype: &Datatype) -> Result<Self, NoNpy> {
        let dtype = of(datatype, 0)?;
        let (given, size) = (datatype.size, dtype.size());
        if size == Some(given) && given > 0 {
            return Ok(dtype);
        }
        Err(NoNpy::Malformed(format!("an element of {given} bytes has parts of {size:?} bytes")))
    }

    /// Returns the bytes of an element. `None`: their number overflows.
    pub fn size(&self) -> Option<u64> {
        match self {
            NpyType::Bool => Some(1),
            NpyType::Scalar { size, .. } | NpyType::Struct { size, .. } => Some(*size),
            NpyType::Bytes(size) | NpyType::Void(size) => Some(*size),
            NpyType::Array { dims, base } => {
                dims.iter().try_fold(base.size()?, |product, &extent| product.checked_mul(extent))
            }
        }
    }

    /// Splits a top-level sub-array into its extents, which become dimensions of the file's array, and the type inside.
    pub fn split_array(&self) -> (&[u64], &NpyType) {
        match self {
            NpyType::Array { dims, base } => (dims, base),
            other => (&[], other),
        }
    }
}

fn of(datatype: &Datatype, depth: usize) -> Result<NpyType, NoNpy> {
    if depth > MAX_DEPTH {
        return Err(NoNpy::Malformed(format!("nested more than {MAX_DEPTH} deep")));
    }
    let size = datatype.size;
    let void = Ok(NpyType::Void(size));
    let number = |order: ByteOrder, kind: NpyKind, sizes: &[u64]| match order {
        _ if !sizes.contains(&size) => NpyType::Void(size),
        ByteOrder::Little => NpyType::Scalar { order: NpyByteOrder::Little, kind, size },
        ByteOrder::Big => NpyType::Scalar { order: NpyByteOrder::Big, kind, size },
        ByteOrder::Vax => NpyType::Void(size),
    };
    let fills = |precision: u32, offset: u32| offset == 0 && u64::from(precision) == size.saturating_mul(8);
    if let Some(part) = datatype.complex_part() {
        return complex(size, part, depth);
    }
    match &datatype.class {
        _ if datatype.is_boolean() => Ok(NpyType::Bool),
        Class::Flag if size == 1 => Ok(NpyType::Bool),
        Class::Integer { .. } if matches!(size, 3 | 5..=7) => Err(NoNpy::Width(size)),
        Class::Integer { signed, order, precision, offset } if fills(*precision, *offset) => {
            Ok(number(*order, if *signed { NpyKind::Signed } else { NpyKind::Unsigned }, &[1, 2, 4, 8]))
        }
        Class::Bitfield { order, precision, offset } if fills(*precision, *offset) => {
            Ok(number(*order, NpyKind::Unsigned, &[1, 2, 4, 8]))
        }
        Class::Float { order, format } => match format {
            FloatFormat::Half => Ok(number(*order, NpyKind::Float, &[2])),
            FloatFormat::Single => Ok(number(*order, NpyKind::Float, &[4])),
            FloatFormat::Double => Ok(number(*order, NpyKind::Float, &[8])),
            FloatFormat::Extended | FloatFormat::Quadruple | FloatFormat::Other { .. } => void,
        },
        Class::Integer { .. }
        | Class::Bitfield { .. }
        | Class::Time { .. }
        | Class::Opaque { .. }
        | Class::Flag
        | Class::SplitSeconds { .. } => void,
        Class::FixedString { .. } => Ok(NpyType::Bytes(size)),
        Class::Enum { base, .. } if base.size == size => of(base, depth + 1),
        Class::Enum { base, .. } => {
            Err(NoNpy::Malformed(format!("an enumeration of {size} bytes over {} bytes", base.size)))
        }
        Class::Compound { fields } => {
            let mut fields = fields
                .iter()
                .map(|field| {
                    Ok(NpyField {
                        name: field.name.to_str_lossy().into_owned(),
                        offset: field.offset,
                        dtype: self::of(&field.datatype, depth + 1)?,
                    })
                })
                .collect::<Result<Vec<_>, NoNpy>>()?;
            fields.sort_by_key(|field| field.offset);
            structure(fields, size)
        }
        Class::Array { dims, base } => {
            let (inner, dtype) = match of(base, depth + 1)? {
                // NumPy flattens arrays of arrays: the extents are concatenated.
                NpyType::Array { dims, base } => (dims, base),
                other => (Vec::new(), Box::new(other)),
            };
            let array = NpyType::Array { dims: dims.iter().copied().chain(inner).collect(), base: dtype };
            if array.size() == Some(size) {
                return Ok(array);
            }
            Err(NoNpy::Malformed(format!("an array of extents {dims:?} in {size} bytes")))
        }
        Class::VariableString { .. } | Class::Sequence { .. } => Err(NoNpy::Variable),
        Class::Reference(_) => Err(NoNpy::Reference),
        Class::Complex { base } => complex(size, base, depth),
        Class::Unknown(class) => Err(NoNpy::Unknown(*class)),
    }
}

/// Returns `c8` or `c16`. NumPy has no complex type of two half-precision floats: these become a structured dtype, as
/// in h5py. Anything else becomes opaque bytes.
fn complex(size: u64, base: &Datatype, depth: usize) -> Result<NpyType, NoNpy> {
    let part = of(base, depth + 1)?;
    match part {
        NpyType::Scalar { order, kind: NpyKind::Float, size: 4 | 8 } if part.size() == Some(size / 2) => {
            Ok(NpyType::Scalar { order, kind: NpyKind::Complex, size })
        }
        NpyType::Scalar { kind: NpyKind::Float, size: 2, .. } if size == 4 => {
            let fields =
                [("r", 0), ("i", 2)].map(|(name, offset)| NpyField { name: name.into(), offset, dtype: part.clone() });
            structure(fields.into(), size)
        }
        _ => Ok(NpyType::Void(size)),
    }
}

/// Returns a structured dtype; `fields` must be in order of offset.
fn structure(fields: Vec<NpyField>, size: u64) -> Result<NpyType, NoNpy> {
    let mut names = std::collections::HashSet::new();
    let mut end = 0;
    for field in &fields {
        // NumPy marks padding by a field without a name.
        if field.name.is_empty() || !names.insert(field.name.as_str()) {
            return Err(NoNpy::Name(field.name.clone()));
        }
        let width = field.dtype.size().unwrap_or(u64::MAX);
        if field.offset < end {
            return Err(NoNpy::Malformed(format!("field {:?} overlaps another", field.name)));
        }
        end = field.offset.saturating_add(width);
        if end > size {
            return Err(NoNpy::Malformed(format!("field {:?} ends past the {size} bytes of an element", field.name)));
        }
    }
    Ok(NpyType::Struct { fields, size })
}
