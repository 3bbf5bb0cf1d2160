//! HDF5 datatypes as they are stored.

use bstr::BString;
use serde::{Deserialize, Serialize};

/// A datatype in the layout it has in the file: `size` and the offsets of fields are those on disk, not in memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Datatype {
    /// Bytes of one element in the file. A variable-length part counts as one descriptor of 4 + address size + 4 bytes.
    pub size: u64,
    /// What the bytes mean.
    pub class: Class,
}

/// What the bytes of an element mean (`H5T_class_t`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Class {
    /// Two's complement or unsigned integer.
    Integer {
        /// Two's complement.
        signed: bool,
        /// Byte order.
        order: ByteOrder,
        /// Significant bits.
        precision: u32,
        /// Position of the lowest significant bit.
        offset: u32,
    },
    /// Floating point.
    Float {
        /// Byte order.
        order: ByteOrder,
        /// Where sign, exponent and mantissa lie.
        format: FloatFormat,
    },
    /// `H5T_TIME`, which no tool interprets.
    Time {
        /// Byte order.
        order: ByteOrder,
    },
    /// String of `size` bytes.
    FixedString {
        /// How a shorter text is filled up.
        padding: Padding,
        /// Declared character set.
        charset: Charset,
    },
    /// Variable-length string: a descriptor.
    VariableString {
        /// Declared padding.
        padding: Padding,
        /// Declared character set.
        charset: Charset,
    },
    /// Bits without sign or arithmetic.
    Bitfield {
        /// Byte order.
        order: ByteOrder,
        /// Significant bits.
        precision: u32,
        /// Position of the lowest significant bit.
        offset: u32,
    },
    /// Uninterpreted bytes.
    Opaque {
        /// The producer's name for what they are.
        tag: BString,
    },
    /// Fields at offsets.
    Compound {
        /// The fields, in the file's order.
        fields: Vec<Field>,
    },
    /// Names for numbers.
    Enum {
        /// The integer type underneath (same size).
        base: Box<Datatype>,
        /// The members, in the file's order.
        members: Vec<Member>,
    },
    /// Variable-length sequence: a descriptor.
    Sequence {
        /// Type of one element.
        base: Box<Datatype>,
    },
    /// Fixed-size array.
    Array {
        /// Extents, slowest first.
        dims: Vec<u64>,
        /// Type of one element.
        base: Box<Datatype>,
    },
    /// Reference to an object or a part of one.
    Reference(ReferenceKind),
    /// Complex number: real and imaginary part, each of `base`.
    Complex {
        /// Type of each part.
        base: Box<Datatype>,
    },
    /// A class this program does not know.
    Unknown(i32),
}

/// Byte order of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
    /// VAX mixed order.
    Vax,
}

/// The bits of a floating-point number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FloatFormat {
    /// IEEE binary16.
    Half,
    /// IEEE binary32.
    Single,
    /// IEEE binary64.
    Double,
    /// Anything else (bfloat16, x87 extended, producers' own).
    Other {
        /// Significant bits.
        precision: u32,
        /// Position of the lowest significant bit.
        offset: u32,
        /// Position of the sign bit.
        sign: u32,
        /// Position of the exponent's lowest bit.
        exponent_position: u32,
        /// Bits of the exponent.
        exponent_size: u32,
        /// Position of the mantissa's lowest bit.
        mantissa_position: u32,
        /// Bits of the mantissa.
        mantissa_size: u32,
        /// Bias of the exponent.
        bias: u64,
    },
}

/// How a string shorter than its place is filled up (`H5T_str_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Padding {
    /// Ends at the first NUL.
    NullTerminated,
    /// Filled with NULs.
    NullPadded,
    /// Filled with spaces, as Fortran does.
    SpacePadded,
}

/// Declared character set (`H5T_cset_t`). Producers often declare ASCII and write UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Charset {
    /// ASCII.
    Ascii,
    /// UTF-8.
    Utf8,
}

/// A field of a compound.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Field {
    /// Its name.
    pub name: BString,
    /// First byte in the element, on disk.
    pub offset: u64,
    /// Its type.
    pub datatype: Datatype,
}

/// A member of an enumeration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// Its name.
    pub name: BString,
    /// Its value, sign-extended.
    pub value: i128,
}

/// Kinds of reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ReferenceKind {
    /// `H5T_STD_REF_OBJ`: an object's address.
    Object,
    /// `H5T_STD_REF_DSETREG`: a region of a dataset, kept in the global heap.
    Region,
    /// `H5T_STD_REF` (HDF5 1.12): object, region or attribute.
    Standard,
}

impl Datatype {
    /// Whether an element leads to bytes outside itself (strings and sequences of variable length).
    pub fn is_variable(&self) -> bool {
        match &self.class {
            Class::VariableString { .. } | Class::Sequence { .. } => true,
            Class::Compound { fields } => fields.iter().any(|field| field.datatype.is_variable()),
            Class::Array { base, .. } => base.is_variable(),
            _ => false,
        }
    }

    /// Whether a reference of any kind is this type or a part of it.
    pub fn has_reference(&self) -> bool {
        match &self.class {
            Class::Reference(_) => true,
            Class::Compound { fields } => fields.iter().any(|field| field.datatype.has_reference()),
            Class::Array { base, .. } | Class::Sequence { base } => base.has_reference(),
            _ => false,
        }
    }

    /// The HEP001 boolean: an enumeration over one byte with exactly `FALSE` = 0 and `TRUE` = 1.
    pub fn is_boolean(&self) -> bool {
        let Class::Enum { members, .. } = &self.class else { return false };
        self.size == 1
            && members.len() == 2
            && members.iter().any(|member| member.name == "FALSE" && member.value == 0)
            && members.iter().any(|member| member.name == "TRUE" && member.value == 1)
    }
}
