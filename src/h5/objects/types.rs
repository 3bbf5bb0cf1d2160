//! Open datatypes, in the file and in memory.

use hdf5_metno_sys::h5t;

use super::c_string;
use crate::catalogue::Charset;
use crate::h5::element::ElementType;
use crate::h5::library::{FailureReason, Id, check};
use crate::h5::steps::References;

/// A datatype in the file, and the type of the same values in this machine's memory.
#[derive(Debug)]
pub(in crate::h5) struct Type {
    file: Id,
    memory: Id,
    size: usize,
    variable: bool,
}

impl Type {
    fn of(file: Id) -> Result<Self, FailureReason> {
        // SAFETY: no pointers.
        let memory = Id::own(unsafe { h5t::H5Tget_native_type(file.raw(), h5t::H5T_direction_t::H5T_DIR_ASCEND) })?;
        Self::pair(file, memory)
    }

    fn pair(file: Id, memory: Id) -> Result<Self, FailureReason> {
        // SAFETY: no pointers.
        let size = unsafe { h5t::H5Tget_size(memory.raw()) };
        if size == 0 { Err(FailureReason::of_library()) } else { Ok(Self { file, memory, size, variable: false }) }
    }

    fn copy(datatype: i64) -> Result<Id, FailureReason> {
        // SAFETY: no pointers.
        Id::own(unsafe { h5t::H5Tcopy(datatype) })
    }

    /// The identifier of the datatype in the file.
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

    /// Whether the type is a variable-length string.
    pub fn is_variable(&self) -> bool {
        self.variable
    }

    /// Creates the type of an element.
    pub fn new(element: &ElementType) -> Result<Self, FailureReason> {
        match element {
            ElementType::Signed(1) => Self::of(Self::copy(*h5t::H5T_STD_I8LE)?),
            ElementType::Signed(2) => Self::of(Self::copy(*h5t::H5T_STD_I16LE)?),
            ElementType::Signed(4) => Self::of(Self::copy(*h5t::H5T_STD_I32LE)?),
            ElementType::Signed(8) => Self::of(Self::copy(*h5t::H5T_STD_I64LE)?),
            ElementType::Unsigned(1) => Self::of(Self::copy(*h5t::H5T_STD_U8LE)?),
            ElementType::Unsigned(2) => Self::of(Self::copy(*h5t::H5T_STD_U16LE)?),
            ElementType::Unsigned(4) => Self::of(Self::copy(*h5t::H5T_STD_U32LE)?),
            ElementType::Unsigned(8) => Self::of(Self::copy(*h5t::H5T_STD_U64LE)?),
            ElementType::Float(2) => Self::half(),
            ElementType::Float(4) => Self::of(Self::copy(*h5t::H5T_IEEE_F32LE)?),
            ElementType::Float(8) => Self::of(Self::copy(*h5t::H5T_IEEE_F64LE)?),
            ElementType::Signed(width) | ElementType::Unsigned(width) | ElementType::Float(width) => {
                Err(FailureReason::new(format!("numbers of {width} bytes")))
            }
            ElementType::Text { charset, size, is_terminated } => {
                let make = || Self::fixed_text(*charset, *size, *is_terminated);
                Self::pair(make()?, make()?)
            }
            ElementType::VariableText => {
                let make = || Self::fixed_text(Charset::Utf8, h5t::H5T_VARIABLE, true);
                Ok(Self { variable: true, ..Self::pair(make()?, make()?)? })
            }
            ElementType::Opaque(size) => {
                // SAFETY: no pointers.
                let make = || Id::own(unsafe { h5t::H5Tcreate(h5t::H5T_class_t::H5T_OPAQUE, *size) });
                Self::pair(make()?, make()?)
            }
            ElementType::Enum { base, members } => Self::enumeration(&Self::new(base)?, members),
            ElementType::Compound(fields) => {
                let made = fields.iter().map(|(name, field)| Ok((name.clone(), Self::new(field)?)));
                Self::compound(&made.collect::<Result<Vec<_>, FailureReason>>()?)
            }
            ElementType::Array(element, count) => {
                let element = Self::new(element)?;
                // SAFETY: one dimension.
                Self::of_file(Id::own(unsafe { h5t::H5Tarray_create2(element.file(), 1, count) })?)
            }
        }
    }

    fn fixed_text(charset: Charset, size: usize, is_terminated: bool) -> Result<Id, FailureReason> {
        let file = Self::copy(*h5t::H5T_C_S1)?;
        let padding = if is_terminated { h5t::H5T_str_t::H5T_STR_NULLTERM } else { h5t::H5T_str_t::H5T_STR_NULLPAD };
        // SAFETY: no pointers.
        unsafe {
            check(h5t::H5Tset_cset(file.raw(), of_charset(charset)))?;
            check(h5t::H5Tset_size(file.raw(), size))?;
            check(h5t::H5Tset_strpad(file.raw(), padding))?;
        }
        Ok(file)
    }

    /// Half precision, for which libhdf5 has no name: made from the wider type, as other software does.
    fn half() -> Result<Self, FailureReason> {
        let file = Self::copy(*h5t::H5T_IEEE_F32LE)?;
        // SAFETY: no pointers. Positions of sign, exponent and mantissa, then their sizes, by IEEE 754.
        unsafe {
            check(h5t::H5Tset_fields(file.raw(), 15, 10, 5, 0, 10))?;
            check(h5t::H5Tset_size(file.raw(), 2))?;
            check(h5t::H5Tset_ebias(file.raw(), 15))?;
        }
        Self::of_file(file)
    }

    fn enumeration(base: &Self, members: &[(String, i64)]) -> Result<Self, FailureReason> {
        // SAFETY: no pointers.
        let file = Id::own(unsafe { h5t::H5Tenum_create(base.file()) })?;
        for (name, value) in members {
            let (name, bytes) = (c_string(name)?, value.to_le_bytes());
            if base.size() > bytes.len() {
                return Err(FailureReason::new(format!("an enumeration of numbers of {} bytes", base.size())));
            }
            // SAFETY: a C string and a value of the base type as stored, which takes no more bytes than these.
            check(unsafe { h5t::H5Tenum_insert(file.raw(), name.as_ptr(), bytes.as_ptr().cast()) })?;
        }
        Self::of(file)
    }

    /// A compound of consecutive fields, without padding.
    pub fn compound(fields: &[(String, Self)]) -> Result<Self, FailureReason> {
        // The width in memory without a conversion.
        let widths = fields.iter().map(|(_, field)| Ok(Self::of_file(Self::copy(field.file())?)?.size()));
        let widths = widths.collect::<Result<Vec<usize>, FailureReason>>()?;
        // SAFETY: no pointers.
        let file = Id::own(unsafe { h5t::H5Tcreate(h5t::H5T_class_t::H5T_COMPOUND, widths.iter().sum()) })?;
        let mut offset = 0;
        for ((name, field), width) in fields.iter().zip(widths) {
            let name = c_string(name)?;
            // SAFETY: a C string and an open datatype.
            check(unsafe { h5t::H5Tinsert(file.raw(), name.as_ptr(), offset, field.file()) })?;
            offset += width;
        }
        Self::of(file)
    }

    /// The same type, with elements in memory in their stored form.
    pub fn into_stored(self) -> Result<Self, FailureReason> {
        Self::of_file(self.file)
    }

    /// A datatype of a file, with elements in memory in their stored form: libhdf5 converts only elements with a
    /// pointer.
    pub fn of_file(file: Id) -> Result<Self, FailureReason> {
        let memory = Self::copy(file.raw())?;
        // SAFETY: no pointers.
        let variable = check(unsafe { h5t::H5Tis_variable_str(file.raw()) })? > 0;
        Ok(Self { variable, ..Self::pair(file, memory)? })
    }

    /// The offsets of pointers to strings in an element in memory: of a string, and of a compound of strings.
    pub fn pointers(&self) -> Result<Vec<u64>, FailureReason> {
        let datatype = self.memory.raw();
        if self.variable {
            return Ok(vec![0]);
        }
        let mut pointers = Vec::new();
        // SAFETY: no pointers but the name, which is null.
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

    /// The type of references of this kind.
    pub fn reference(kind: References) -> Result<Self, FailureReason> {
        let datatype = match kind {
            References::Standard => *h5t::H5T_STD_REF,
            References::Object => *h5t::H5T_STD_REF_OBJ,
        };
        Self::pair(Self::copy(datatype)?, Self::copy(datatype)?)
    }
}

/// libhdf5's constant for a character set.
pub(in crate::h5) fn of_charset(charset: Charset) -> h5t::H5T_cset_t {
    match charset {
        Charset::Ascii => h5t::H5T_cset_t::H5T_CSET_ASCII,
        Charset::Utf8 => h5t::H5T_cset_t::H5T_CSET_UTF8,
    }
}
