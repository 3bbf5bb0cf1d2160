//! The schema in the footer: converted by `parquet` from an Arrow schema, serialised by this crate's own Thrift.

use arrow_schema::Schema;
use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit};
use parquet::schema::types::{SchemaDescriptor, Type};

use super::{ThriftStruct, structure};

use crate::views::Misfit;

/// Returns the Parquet schema of columns with these Arrow types.
///
/// # Errors
/// If Parquet lacks one of the types.
pub(in crate::views::parquet) fn convert(schema: &Schema) -> Result<SchemaDescriptor, Misfit> {
    ArrowSchemaConverter::new().schema_root("schema").convert(schema).map_err(|error| Misfit::Type(error.to_string()))
}

/// A schema as footers have it: a fraction of [`SchemaDescriptor`]'s memory, and files of many parts have many.
#[derive(Debug)]
pub(in crate::views::parquet) struct WrittenSchema {
    count: usize,
    elements: Box<[u8]>,
}

impl WrittenSchema {
    pub fn new(schema: &SchemaDescriptor) -> Self {
        let (root, mut elements) = (schema.root_schema(), Vec::new());
        write(root, &mut elements);
        Self { count: count(root), elements: elements.into() }
    }

    /// Number of elements: leaves, the nodes above them, and the root.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The elements, depth first.
    pub fn elements(&self) -> &[u8] {
        &self.elements
    }
}

/// Returns the number of elements that [`write`] appends for a node and its descendants.
fn count(node: &Type) -> usize {
    1 + children(node).iter().map(|child| count(child)).sum::<usize>()
}

fn children(node: &Type) -> &[parquet::schema::types::TypePtr] {
    match node {
        Type::GroupType { fields, .. } => fields,
        Type::PrimitiveType { .. } => &[],
    }
}

/// Appends the elements of a node and its descendants, depth first.
fn write(node: &Type, out: &mut Vec<u8>) {
    let info = node.get_basic_info();
    structure(out, |element| {
        if let Type::PrimitiveType { physical_type, type_length, .. } = node {
            element.i32(1, *physical_type as i32);
            if *type_length > 0 {
                element.i32(2, *type_length);
            }
        }
        // The root has no repetition.
        if info.has_repetition() {
            element.i32(
                3,
                match info.repetition() {
                    Repetition::REQUIRED => 0,
                    Repetition::OPTIONAL => 1,
                    Repetition::REPEATED => 2,
                },
            );
        }
        element.binary(4, info.name().as_bytes());
        if let Type::GroupType { fields, .. } = node {
            element.i32(5, i32::try_from(fields.len()).unwrap_or(i32::MAX));
        }
        if info.converted_type() != ConvertedType::NONE {
            element.i32(6, info.converted_type() as i32);
        }
        if let Type::PrimitiveType { scale, precision, .. } = node {
            if *scale >= 0 {
                element.i32(7, *scale);
            }
            if *precision >= 0 {
                element.i32(8, *precision);
            }
        }
        if let Some(logical) = info.logical_type_ref() {
            logical_type(logical, element);
        }
    });
    children(node).iter().for_each(|child| write(child, out));
}

/// Appends a `parquet.thrift` LogicalType. Types that hepfs never writes are left out: the converted type covers most
/// of them.
fn logical_type(logical: &LogicalType, element: &mut ThriftStruct<'_>) {
    let empty = |id: u8| move |union: &mut ThriftStruct<'_>| union.structure(id, |_| ());
    match logical {
        LogicalType::String => element.structure(10, empty(1)),
        LogicalType::Map => element.structure(10, empty(2)),
        LogicalType::List => element.structure(10, empty(3)),
        LogicalType::Enum => element.structure(10, empty(4)),
        LogicalType::Date => element.structure(10, empty(6)),
        LogicalType::Integer(integer) => element.structure(10, |union| {
            union.structure(10, |fields| {
                fields.i8(1, integer.bit_width);
                fields.bool(2, integer.is_signed);
            });
        }),
        LogicalType::Decimal(decimal) => element.structure(10, |union| {
            union.structure(5, |fields| {
                fields.i32(1, decimal.scale);
                fields.i32(2, decimal.precision);
            });
        }),
        LogicalType::Time(time) => element.structure(10, |union| {
            union.structure(7, |fields| {
                fields.bool(1, time.is_adjusted_to_u_t_c);
                fields.structure(2, empty(unit_of(&time.unit)));
            });
        }),
        LogicalType::Timestamp(timestamp) => element.structure(10, |union| {
            union.structure(8, |fields| {
                fields.bool(1, timestamp.is_adjusted_to_u_t_c);
                fields.structure(2, empty(unit_of(&timestamp.unit)));
            });
        }),
        LogicalType::Unknown => element.structure(10, empty(11)),
        LogicalType::Float16 => element.structure(10, empty(15)),
        _ => {}
    }
}

/// Returns the number of a `parquet.thrift` TimeUnit.
fn unit_of(unit: &TimeUnit) -> u8 {
    match unit {
        TimeUnit::MILLIS => 1,
        TimeUnit::MICROS => 2,
        TimeUnit::NANOS => 3,
    }
}
