//! Values of any type as a tree, to compare arrays of different layouts.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    Null,
    Integer(i128),
    /// Bits of a double.
    Float(u64),
    Boolean(bool),
    Bytes(Vec<u8>),
    List(Vec<Tree>),
    Struct(Vec<Tree>),
}

impl Tree {
    pub fn text(text: &str) -> Self {
        Tree::Bytes(text.as_bytes().to_vec())
    }

    pub fn float(value: f64) -> Self {
        Tree::Float(value.to_bits())
    }
}

/// All rows of `array`.
pub fn rows(array: &ArrayRef) -> Vec<Tree> {
    (0..array.len()).map(|row| tree(array, row)).collect()
}

fn tree(array: &ArrayRef, row: usize) -> Tree {
    if array.is_null(row) {
        return Tree::Null;
    }
    macro_rules! integer {
        ($kind:ty) => {
            Tree::Integer(array.as_primitive::<$kind>().value(row).into())
        };
    }
    match array.data_type() {
        DataType::Null => Tree::Null,
        DataType::Int8 => integer!(Int8Type),
        DataType::Int16 => integer!(Int16Type),
        DataType::Int32 => integer!(Int32Type),
        DataType::Int64 => integer!(Int64Type),
        DataType::UInt8 => integer!(UInt8Type),
        DataType::UInt16 => integer!(UInt16Type),
        DataType::UInt32 => integer!(UInt32Type),
        DataType::UInt64 => integer!(UInt64Type),
        DataType::Float16 => Tree::float(array.as_primitive::<Float16Type>().value(row).to_f64()),
        DataType::Float32 => Tree::float(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => Tree::float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Boolean => Tree::Boolean(array.as_boolean().value(row)),
        DataType::Utf8 => Tree::text(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Tree::text(array.as_string::<i64>().value(row)),
        DataType::FixedSizeBinary(_) => Tree::Bytes(array.as_fixed_size_binary().value(row).to_vec()),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            tree(dictionary.values(), dictionary.normalized_keys()[row])
        }
        DataType::List(_) => Tree::List(rows(&array.as_list::<i32>().value(row))),
        DataType::LargeList(_) => Tree::List(rows(&array.as_list::<i64>().value(row))),
        DataType::FixedSizeList(..) => Tree::List(rows(&array.as_fixed_size_list().value(row))),
        DataType::Struct(_) => Tree::Struct(array.as_struct().columns().iter().map(|child| tree(child, row)).collect()),
        other => panic!("no tree of {other}"),
    }
}
