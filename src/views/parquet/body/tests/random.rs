//! Values of any type, made at random, written and read back.

use std::sync::Arc;

use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray, Float16Array,
    Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, LargeListArray, LargeStringArray, NullArray,
    StructArray, UInt8Array, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, FieldRef};
use half::f16;
use proptest::prelude::*;

use super::read_back;
use super::tree::{Tree, rows};
use crate::store::Hints;
use crate::views::parquet::columns::shape::{Given, LeafMapping};

/// A type of column.
#[derive(Clone, Debug)]
enum Kind {
    Null,
    Int8,
    UInt8,
    Int16,
    Int32,
    UInt64,
    Float16,
    Float64,
    Boolean,
    Text,
    Binary,
    Enumeration,
    Categories,
    Struct(Vec<Kind>),
    Fixed(Box<Kind>, usize),
    List(Box<Kind>),
}

const LABELS: [&str; 3] = ["one", "", "drei"];

impl Kind {
    /// Whether it can be null inside a compound or an array.
    fn can_be_missing(&self) -> bool {
        matches!(self, Kind::Null | Kind::Boolean | Kind::Text | Kind::Categories)
    }

    fn data_type(&self) -> DataType {
        let texts = Box::new(DataType::LargeUtf8);
        match self {
            Kind::Null => DataType::Null,
            Kind::Int8 => DataType::Int8,
            Kind::UInt8 => DataType::UInt8,
            Kind::Int16 => DataType::Int16,
            Kind::Int32 => DataType::Int32,
            Kind::UInt64 => DataType::UInt64,
            Kind::Float16 => DataType::Float16,
            Kind::Float64 => DataType::Float64,
            Kind::Boolean => DataType::Boolean,
            Kind::Text => DataType::LargeUtf8,
            Kind::Binary => DataType::FixedSizeBinary(3),
            Kind::Enumeration => DataType::Dictionary(Box::new(DataType::Int32), texts),
            Kind::Categories => DataType::Dictionary(Box::new(DataType::Int64), texts),
            Kind::Struct(kinds) => {
                let field = |(at, kind): (usize, &Kind)| Field::new(format!("f{at}"), kind.data_type(), true);
                DataType::Struct(kinds.iter().enumerate().map(field).collect())
            }
            Kind::Fixed(kind, length) => DataType::FixedSizeList(item(kind), *length as i32),
            Kind::List(kind) => DataType::LargeList(item(kind)),
        }
    }

    /// An array of `values`; what lies under a null is `junk`, or null too.
    fn array(&self, values: &[Tree]) -> ArrayRef {
        let nulls = NullBuffer::from(values.iter().map(|value| *value != Tree::Null).collect::<Vec<_>>());
        let nulls = Some(nulls);
        macro_rules! numbers {
            ($array:ty) => {
                Arc::new(<$array>::from_iter(values.iter().map(|value| integer(value).map(|v| v as _))))
            };
        }
        match self {
            Kind::Null => Arc::new(NullArray::new(values.len())),
            Kind::Int8 => numbers!(Int8Array),
            Kind::UInt8 => numbers!(UInt8Array),
            Kind::Int16 => numbers!(Int16Array),
            Kind::Int32 => numbers!(Int32Array),
            Kind::UInt64 => numbers!(UInt64Array),
            Kind::Float16 => Arc::new(Float16Array::from_iter(values.iter().map(|v| float(v).map(f16::from_f64)))),
            Kind::Float64 => Arc::new(Float64Array::from_iter(values.iter().map(float))),
            Kind::Boolean => Arc::new(BooleanArray::from_iter(values.iter().map(|value| match value {
                Tree::Boolean(value) => Some(*value),
                _ => None,
            }))),
            // Nulls have a text underneath.
            Kind::Text => {
                let texts = values.iter().map(|value| text(value).unwrap_or("junk"));
                let texts = LargeStringArray::from_iter_values(texts);
                let (offsets, bytes, _) = texts.into_parts();
                Arc::new(LargeStringArray::new(offsets, bytes, nulls))
            }
            Kind::Binary => {
                let cells = values.iter().flat_map(|value| match value {
                    Tree::Bytes(bytes) => bytes.clone(),
                    _ => vec![9; 3],
                });
                Arc::new(FixedSizeBinaryArray::new(3, cells.collect::<Vec<_>>().into(), nulls))
            }
            Kind::Enumeration => {
                let keys = values.iter().map(|value| key(value).map(|key| key as i32));
                let labels = Arc::new(LargeStringArray::from(LABELS.to_vec()));
                Arc::new(DictionaryArray::<Int32Type>::new(Int32Array::from_iter(keys), labels))
            }
            Kind::Categories => {
                let keys = Int64Array::from_iter(values.iter().map(|value| key(value).map(|key| key as i64)));
                Arc::new(DictionaryArray::<Int64Type>::new(keys, labels()))
            }
            Kind::Struct(kinds) => {
                let column = |(at, kind): (usize, &Kind)| {
                    let column: Vec<Tree> = values.iter().map(|value| child(value, at, kind)).collect();
                    kind.array(&column)
                };
                let columns = kinds.iter().enumerate().map(column).collect();
                let DataType::Struct(fields) = self.data_type() else { panic!() };
                Arc::new(StructArray::new(fields, columns, nulls))
            }
            Kind::Fixed(kind, length) => {
                let elements = values.iter().flat_map(|value| (0..*length).map(|at| child(value, at, kind)));
                let elements = kind.array(&elements.collect::<Vec<_>>());
                Arc::new(FixedSizeListArray::new(item(kind), *length as i32, elements, nulls))
            }
            Kind::List(kind) => {
                let lists = values.iter().map(|value| match value {
                    Tree::List(elements) => elements.clone(),
                    _ => vec![kind.junk()],
                });
                let lists: Vec<Vec<Tree>> = lists.collect();
                let offsets = OffsetBuffer::from_lengths(lists.iter().map(Vec::len));
                Arc::new(LargeListArray::new(item(kind), offsets, kind.array(&lists.concat()), nulls))
            }
        }
    }

    /// Fills places that no reader looks at.
    fn junk(&self) -> Tree {
        match self {
            Kind::Float64 | Kind::Float16 => Tree::float(0.5),
            Kind::Int8 | Kind::Int32 => Tree::Integer(77),
            _ => Tree::Null,
        }
    }

    fn values(&self, nullable: bool) -> BoxedStrategy<Tree> {
        let float = any::<f64>().prop_map(Tree::float);
        let some = match self {
            Kind::Null => Just(Tree::Null).boxed(),
            Kind::Int8 => any::<i8>().prop_map(|v| Tree::Integer(v.into())).boxed(),
            Kind::UInt8 => any::<u8>().prop_map(|v| Tree::Integer(v.into())).boxed(),
            Kind::Int16 => any::<i16>().prop_map(|v| Tree::Integer(v.into())).boxed(),
            Kind::Int32 => any::<i32>().prop_map(|v| Tree::Integer(v.into())).boxed(),
            Kind::UInt64 => any::<u64>().prop_map(|v| Tree::Integer(v.into())).boxed(),
            Kind::Float16 => (-2048i32..2048).prop_map(|v| Tree::float(f64::from(v) / 64.0)).boxed(),
            Kind::Float64 => float.boxed(),
            Kind::Boolean => any::<bool>().prop_map(Tree::Boolean).boxed(),
            Kind::Text => "[aé\u{1F600}]{0,4}".prop_map(|text| Tree::text(&text)).boxed(),
            Kind::Binary => any::<[u8; 3]>().prop_map(|bytes| Tree::Bytes(bytes.to_vec())).boxed(),
            Kind::Enumeration | Kind::Categories => (0..3usize).prop_map(|at| Tree::text(LABELS[at])).boxed(),
            Kind::Struct(kinds) => {
                let fields: Vec<_> = kinds.iter().map(|kind| kind.values(kind.can_be_missing())).collect();
                fields.prop_map(Tree::Struct).boxed()
            }
            Kind::Fixed(kind, length) => {
                let element = kind.values(kind.can_be_missing());
                proptest::collection::vec(element, *length).prop_map(Tree::List).boxed()
            }
            Kind::List(kind) => proptest::collection::vec(kind.values(true), 0..4).prop_map(Tree::List).boxed(),
        };
        if nullable { prop_oneof![1 => Just(Tree::Null), 4 => some].boxed() } else { some }
    }
}

fn item(kind: &Kind) -> FieldRef {
    Arc::new(Field::new_list_field(kind.data_type(), true))
}

fn labels() -> ArrayRef {
    Arc::new(LargeStringArray::from(LABELS.to_vec()))
}

fn child(value: &Tree, at: usize, kind: &Kind) -> Tree {
    match value {
        Tree::Struct(children) | Tree::List(children) => children[at].clone(),
        _ => kind.junk(),
    }
}

fn integer(value: &Tree) -> Option<i128> {
    if let Tree::Integer(value) = value { Some(*value) } else { None }
}

fn float(value: &Tree) -> Option<f64> {
    if let Tree::Float(bits) = value { Some(f64::from_bits(*bits)) } else { None }
}

fn text(value: &Tree) -> Option<&str> {
    if let Tree::Bytes(bytes) = value { std::str::from_utf8(bytes).ok() } else { None }
}

fn key(value: &Tree) -> Option<usize> {
    let text = text(value)?;
    LABELS.iter().position(|label| *label == text)
}

fn kinds() -> impl Strategy<Value = Kind> {
    let leaf = prop_oneof![
        Just(Kind::Null),
        Just(Kind::Int8),
        Just(Kind::UInt8),
        Just(Kind::Int16),
        Just(Kind::Int32),
        Just(Kind::UInt64),
        Just(Kind::Float16),
        Just(Kind::Float64),
        Just(Kind::Boolean),
        Just(Kind::Text),
        Just(Kind::Binary),
        Just(Kind::Enumeration),
        Just(Kind::Categories),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 1..4).prop_map(Kind::Struct),
            (inner.clone(), 1..4usize).prop_map(|(kind, length)| Kind::Fixed(Box::new(kind), length)),
            inner.prop_map(|kind| Kind::List(Box::new(kind))),
        ]
    })
}

/// A kind, whether it can be null, and rows of it.
fn columns() -> impl Strategy<Value = (Kind, bool, Vec<Tree>)> {
    (kinds(), any::<bool>()).prop_flat_map(|(kind, nullable)| {
        let nullable = nullable || matches!(kind, Kind::Categories);
        let values = proptest::collection::vec(kind.values(nullable), 0..40);
        (Just(kind), Just(nullable), values)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_column_reads_back((kind, nullable, values) in columns(), cut in 0usize..40, with_labels: bool) {
        let given = Given { labels: with_labels.then(labels), ..Given::default() };
        let shape = LeafMapping::new("x", &kind.data_type(), nullable, &Hints::default(), given).unwrap();
        let array = kind.array(&values);
        let cut = cut.min(values.len());
        // The second page begins within its array. No file has pages without rows.
        let pages: Vec<_> = [array.slice(0, cut), array.slice(cut, values.len() - cut)]
            .into_iter()
            .filter(|page| !page.is_empty())
            .collect();
        prop_assert_eq!(rows(&read_back(&shape, &pages)), values);
    }
}
