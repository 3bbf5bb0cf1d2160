//! Datatypes in the file and in memory.

use hdf5_metno_sys::h5t;

use super::c_string;
use crate::h5::steps::References;
use crate::h5::worker::error::{Id, Reason, check};

/// Values that libhdf5 may read byte for byte.
///
/// # Safety
/// No padding (every byte is initialised), no pointers, the layout of C.
pub(in crate::h5) unsafe trait Plain: Copy {}

/// Numbers with a datatype of their own.
pub(in crate::h5) trait Number: Plain {
    /// The little-endian datatype; the library is initialised.
    fn file_type() -> i64;
}

macro_rules! numbers {
    ($($number:ty => $datatype:ident),+ $(,)?) => {$(
        // SAFETY: a primitive number.
        unsafe impl Plain for $number {}
        impl Number for $number {
            fn file_type() -> i64 {
                *h5t::$datatype
            }
        }
    )+};
}

numbers! {
    i8 => H5T_STD_I8LE,
    i16 => H5T_STD_I16LE,
    i64 => H5T_STD_I64LE,
    u8 => H5T_STD_U8LE,
    u16 => H5T_STD_U16LE,
    u32 => H5T_STD_U32LE,
    u64 => H5T_STD_U64LE,
    f32 => H5T_IEEE_F32LE,
    f64 => H5T_IEEE_F64LE,
}

// SAFETY: an array has the layout of its elements one after the other.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// An element of a chunk min/max index over an `int64` column (HEP001 §8.4).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::h5) struct MinMax {
    pub min: i64,
    pub max: i64,
    pub nan_count: u64,
    pub fill_count: u64,
    pub n: u64,
}

// SAFETY: five numbers of eight bytes.
unsafe impl Plain for MinMax {}

/// The bytes of values.
pub(in crate::h5) fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: a plain type has no uninitialised bytes.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// Character set of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::h5) enum Text {
    /// US-ASCII.
    Ascii,
    /// UTF-8.
    Utf8,
}

impl Text {
    pub fn charset(self) -> h5t::H5T_cset_t {
        match self {
            Self::Ascii => h5t::H5T_cset_t::H5T_CSET_ASCII,
            Self::Utf8 => h5t::H5T_cset_t::H5T_CSET_UTF8,
        }
    }
}

/// A datatype as stored, and the one of the same values in this machine's memory.
#[derive(Debug)]
pub(in crate::h5) struct Type {
    file: Id,
    memory: Id,
    size: usize,
    variable: bool,
}

impl Type {
    fn of(file: Id) -> Result<Self, Reason> {
        // SAFETY: no pointers.
        let memory = Id::own(unsafe { h5t::H5Tget_native_type(file.raw(), h5t::H5T_direction_t::H5T_DIR_ASCEND) })?;
        Self::pair(file, memory)
    }

    fn pair(file: Id, memory: Id) -> Result<Self, Reason> {
        // SAFETY: no pointers.
        let size = unsafe { h5t::H5Tget_size(memory.raw()) };
        if size == 0 { Err(Reason::of_library()) } else { Ok(Self { file, memory, size, variable: false }) }
    }

    fn copy(datatype: i64) -> Result<Id, Reason> {
        // SAFETY: no pointers.
        Id::own(unsafe { h5t::H5Tcopy(datatype) })
    }

    /// The identifier of the datatype as stored.
    pub fn file(&self) -> i64 {
        self.file.raw()
    }

    /// The identifier of the datatype in memory.
    pub fn memory(&self) -> i64 {
        self.memory.raw()
    }

    /// Bytes of an element in memory.
    pub fn size(&self) -> usize {
        self.size
    }

    /// A variable-length string.
    pub fn is_variable(&self) -> bool {
        self.variable
    }

    /// A number.
    pub fn number<T: Number>() -> Result<Self, Reason> {
        Self::of(Self::copy(T::file_type())?)
    }

    /// A NUL-terminated string of `size` bytes.
    pub fn fixed_text(charset: Text, size: usize) -> Result<Self, Reason> {
        let make = || {
            let file = Self::text(charset)?;
            // SAFETY: no pointers.
            check(unsafe { h5t::H5Tset_size(file.raw(), size) })?;
            Ok(file)
        };
        Self::pair(make()?, make()?)
    }

    /// An ASCII string of `size` bytes, padded with NUL.
    pub fn padded_text(size: usize) -> Result<Self, Reason> {
        let datatype = Self::fixed_text(Text::Ascii, size)?;
        for side in [&datatype.file, &datatype.memory] {
            // SAFETY: no pointers.
            check(unsafe { h5t::H5Tset_strpad(side.raw(), h5t::H5T_str_t::H5T_STR_NULLPAD) })?;
        }
        Ok(datatype)
    }

    /// A variable-length UTF-8 string.
    pub fn variable_text() -> Result<Self, Reason> {
        let make = || {
            let file = Self::text(Text::Utf8)?;
            // SAFETY: no pointers.
            check(unsafe { h5t::H5Tset_size(file.raw(), h5t::H5T_VARIABLE) })?;
            Ok(file)
        };
        Ok(Self { variable: true, ..Self::pair(make()?, make()?)? })
    }

    fn text(charset: Text) -> Result<Id, Reason> {
        let file = Self::copy(*h5t::H5T_C_S1)?;
        // SAFETY: no pointers.
        check(unsafe { h5t::H5Tset_cset(file.raw(), charset.charset()) })?;
        // SAFETY: no pointers.
        check(unsafe { h5t::H5Tset_strpad(file.raw(), h5t::H5T_str_t::H5T_STR_NULLTERM) })?;
        Ok(file)
    }

    /// The boolean datatype (HEP001 of July 2026 §5).
    pub fn boolean() -> Result<Self, Reason> {
        Self::enumeration(&[("FALSE", 0i8), ("TRUE", 1)])
    }

    /// An enumeration.
    pub fn enumeration<T: Number>(members: &[(&str, T)]) -> Result<Self, Reason> {
        // SAFETY: no pointers.
        let file = Id::own(unsafe { h5t::H5Tenum_create(T::file_type()) })?;
        for (name, value) in members {
            let name = c_string(name)?;
            let bytes = little_endian(value);
            // SAFETY: a C string and a value of the base type as stored.
            check(unsafe { h5t::H5Tenum_insert(file.raw(), name.as_ptr(), bytes.as_ptr().cast()) })?;
        }
        Self::of(file)
    }

    /// A compound of numbers, without padding.
    pub fn compound(fields: &[(&str, i64, usize)]) -> Result<Self, Reason> {
        let size = fields.iter().map(|(_, _, size)| size).sum();
        // SAFETY: no pointers.
        let file = Id::own(unsafe { h5t::H5Tcreate(h5t::H5T_class_t::H5T_COMPOUND, size) })?;
        let mut offset = 0;
        for &(name, datatype, size) in fields {
            let name = c_string(name)?;
            // SAFETY: a C string and an open datatype.
            check(unsafe { h5t::H5Tinsert(file.raw(), name.as_ptr(), offset, datatype) })?;
            offset += size;
        }
        Self::of(file)
    }

    /// An element of a chunk min/max index over a column of this datatype (HEP001 §8.4).
    pub fn min_max(column: i64) -> Result<Self, Reason> {
        let size = Self::of_file(Self::copy(column)?)?.size();
        Self::compound(&[
            ("min", column, size),
            ("max", column, size),
            ("nan_count", u64::file_type(), 8),
            ("fill_count", u64::file_type(), 8),
            ("n", u64::file_type(), 8),
        ])
    }

    /// The same type with elements in memory as they are stored.
    pub fn into_stored(self) -> Result<Self, Reason> {
        Self::of_file(self.file)
    }

    /// A datatype of a file, with elements in memory as they are stored: nothing is converted but what has a pointer.
    pub fn of_file(file: Id) -> Result<Self, Reason> {
        let memory = Self::copy(file.raw())?;
        // SAFETY: no pointers.
        let variable = check(unsafe { h5t::H5Tis_variable_str(file.raw()) })? > 0;
        Ok(Self { variable, ..Self::pair(file, memory)? })
    }

    /// Where in an element in memory pointers to strings stand: of a string, and of a compound of strings.
    pub fn pointers(&self) -> Result<Vec<u64>, Reason> {
        let datatype = self.memory.raw();
        if self.variable {
            return Ok(vec![0]);
        }
        let mut pointers = Vec::new();
        // SAFETY: no pointers but the name, which is none.
        unsafe {
            if h5t::H5Tget_class(datatype) != h5t::H5T_class_t::H5T_COMPOUND {
                return Ok(pointers);
            }
            for member in 0..check(h5t::H5Tget_nmembers(datatype))? as u32 {
                let field = Id::own(h5t::H5Tget_member_type(datatype, member))?;
                if check(h5t::H5Tis_variable_str(field.raw()))? > 0 {
                    pointers.push(h5t::H5Tget_member_offset(datatype, member) as u64);
                }
            }
        }
        Ok(pointers)
    }

    /// Bytes without a meaning to HDF5. Without a tag too: h5py cannot read opaque data that has one.
    pub fn opaque(size: usize) -> Result<Self, Reason> {
        // SAFETY: no pointers.
        let make = || Id::own(unsafe { h5t::H5Tcreate(h5t::H5T_class_t::H5T_OPAQUE, size) });
        Self::pair(make()?, make()?)
    }

    /// A reference to an object.
    pub fn reference(kind: References) -> Result<Self, Reason> {
        let datatype = match kind {
            References::Standard => *h5t::H5T_STD_REF,
            References::Object => *h5t::H5T_STD_REF_OBJ,
        };
        Self::pair(Self::copy(datatype)?, Self::copy(datatype)?)
    }
}

/// A number as a little-endian file stores it.
fn little_endian<T: Number>(value: &T) -> Vec<u8> {
    let mut bytes = bytes_of(std::slice::from_ref(value)).to_vec();
    if cfg!(target_endian = "big") {
        bytes.reverse();
    }
    bytes
}
