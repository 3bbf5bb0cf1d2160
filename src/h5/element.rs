//! Element types and attribute values of new objects: plain data, without a handle of libhdf5.

use serde::{Deserialize, Serialize};

use crate::catalogue::Charset;

/// Values that libhdf5 may read byte for byte.
///
/// # Safety
/// No padding (every byte is initialised), no pointers, the layout of C.
pub unsafe trait Plain: Copy {}

/// Numbers with an element type.
pub trait ElementNumber: Plain {
    /// The little-endian type.
    const ELEMENT: ElementType;
}

macro_rules! numbers {
    ($($number:ty => $element:expr),+ $(,)?) => {$(
        // SAFETY: a primitive number.
        unsafe impl Plain for $number {}
        impl ElementNumber for $number {
            const ELEMENT: ElementType = $element;
        }
    )+};
}

numbers! {
    i8 => ElementType::Signed(1),
    i16 => ElementType::Signed(2),
    i64 => ElementType::Signed(8),
    u8 => ElementType::Unsigned(1),
    u16 => ElementType::Unsigned(2),
    u32 => ElementType::Unsigned(4),
    u64 => ElementType::Unsigned(8),
    f32 => ElementType::Float(4),
    f64 => ElementType::Float(8),
}

// SAFETY: an array has the layout of its elements one after the other.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// The bytes of values.
pub(super) fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: a plain type has no uninitialised bytes.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The type of an element.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ElementType {
    /// A signed integer of 1, 2, 4 or 8 bytes, little-endian.
    Signed(u8),
    /// An unsigned integer of 1, 2, 4 or 8 bytes, little-endian.
    Unsigned(u8),
    /// A floating-point number of 2, 4 or 8 bytes, little-endian.
    Float(u8),
    /// A string of a fixed number of bytes.
    Text {
        /// Character set of the string.
        charset: Charset,
        /// Bytes of the string, with the NUL at its end if `is_terminated`.
        size: usize,
        /// Whether the string ends with a NUL; otherwise NULs pad a shorter one.
        is_terminated: bool,
    },
    /// A variable-length UTF-8 string.
    VariableText,
    /// Bytes without a meaning for HDF5, and without a tag: h5py cannot read opaque data that has one.
    Opaque(usize),
    /// Names for values of an integer type.
    Enum {
        /// The integer type.
        base: Box<ElementType>,
        /// Names and values.
        members: Vec<(String, i64)>,
    },
    /// Consecutive fields, without padding.
    Compound(Vec<(String, ElementType)>),
    /// An array of rank 1.
    Array(Box<ElementType>, u64),
}

impl ElementType {
    /// A NUL-terminated string with room for `length` bytes before the NUL.
    pub fn text(charset: Charset, length: usize) -> Self {
        Self::Text { charset, size: length + 1, is_terminated: true }
    }

    /// An enumeration with values of the type `T`.
    pub fn enumeration<T: ElementNumber + Into<i64>>(members: &[(&str, T)]) -> Self {
        let members = members.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        Self::Enum { base: Box::new(T::ELEMENT), members }
    }

    /// A compound of these fields, without padding.
    pub fn compound<const N: usize>(fields: [(&str, Self); N]) -> Self {
        Self::Compound(fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect())
    }
}

/// The value of an attribute: elements as in this machine's memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AttributeValue {
    /// One element.
    Scalar(ElementType, Vec<u8>),
    /// Consecutive elements.
    List(ElementType, Vec<u8>),
}

impl AttributeValue {
    /// A NUL-terminated ASCII string.
    pub fn ascii(text: &str) -> Self {
        Self::text(Charset::Ascii, text)
    }

    /// A NUL-terminated UTF-8 string.
    pub fn utf8(text: &str) -> Self {
        Self::text(Charset::Utf8, text)
    }

    fn text(charset: Charset, text: &str) -> Self {
        Self::Scalar(ElementType::text(charset, text.len()), [text.as_bytes(), b"\0"].concat())
    }

    /// An ASCII string of exactly its bytes, without a NUL.
    pub fn padded(text: &str) -> Self {
        let element = ElementType::Text { charset: Charset::Ascii, size: text.len(), is_terminated: false };
        Self::Scalar(element, text.as_bytes().to_vec())
    }

    /// A list of NUL-terminated UTF-8 strings.
    pub fn texts(values: &[&str]) -> Self {
        let length = values.iter().map(|value| value.len()).max().unwrap_or(0);
        let mut bytes = Vec::new();
        for value in values {
            bytes.extend_from_slice(value.as_bytes());
            bytes.resize(bytes.len() + length + 1 - value.len(), 0);
        }
        Self::List(ElementType::text(Charset::Utf8, length), bytes)
    }

    /// A number.
    pub fn number<T: ElementNumber>(value: T) -> Self {
        Self::Scalar(T::ELEMENT, bytes_of(&[value]).to_vec())
    }

    /// A list of numbers.
    pub fn numbers<T: ElementNumber>(values: &[T]) -> Self {
        Self::List(T::ELEMENT, bytes_of(values).to_vec())
    }
}

/// The fill value of a dataset.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FillSetting {
    /// No fill value.
    Unset,
    /// An element in its form in this machine's memory.
    Bytes(Vec<u8>),
    /// The empty variable-length string, a null pointer like those that
    /// [`CreatedDataset::write_texts`](crate::h5::create::CreatedDataset::write_texts) writes: libhdf5 fills every new
    /// chunk of variable-length strings, and an empty C string would take heap for each element.
    EmptyText,
    /// A variable-length string.
    Text(String),
}

impl FillSetting {
    /// A fill value of a type without pointers.
    pub fn of<T: Plain>(value: T) -> Self {
        Self::Bytes(bytes_of(std::slice::from_ref(&value)).to_vec())
    }
}
