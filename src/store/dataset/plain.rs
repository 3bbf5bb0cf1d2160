//! Elements without descriptors or references: as arrays, or summarised directly if making arrays takes longer than
//! decoding.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt8Type;
use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, UInt8Array};
use arrow_buffer::Buffer;
use arrow_schema::DataType;

use crate::catalogue::{Class, Datatype, EnumerationMember, Padding};
use crate::store::decode::{DecodeError, FillTest, HeapBytes, Oddities, codes};
use crate::store::statistics::{self, FixedStrings, Scalar, Summary};

/// Elements of one type, without descriptors or references.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainElements<'a> {
    pub datatype: &'a Datatype,
    /// The Arrow type that they are shown as.
    pub data_type: &'a DataType,
    /// The test for missing elements.
    pub missing: &'a FillTest,
}

impl PlainElements<'_> {
    /// The array of `count` elements.
    pub fn array(&self, bytes: Buffer, count: usize, oddities: &mut Oddities) -> Result<ArrayRef, DecodeError> {
        self.missing.decode(self.datatype, bytes, count, &HeapBytes(&[]), oddities)
    }

    /// See [`Coded::values`](crate::store::Coded::values).
    pub fn stored_values(&self, bytes: Buffer) -> Option<ArrayRef> {
        match self.data_type {
            // Converting these to text takes longer than decoding them did.
            DataType::LargeUtf8 | DataType::Dictionary(..) => {
                let width = i32::try_from(self.datatype.size).ok()?;
                Some(Arc::new(FixedSizeBinaryArray::try_new(width, bytes, None).ok()?))
            }
            DataType::Boolean => Some(Arc::new(UInt8Array::new(bytes.into(), None))),
            _ => self.values(bytes),
        }
    }

    /// The summary of elements from [`PlainElements::stored_values`].
    pub fn summary_of(&self, values: &dyn Array) -> Option<Summary> {
        match (&self.datatype.class, self.data_type) {
            (_, DataType::Boolean) => self.sound_summary_of(values).or_else(|| {
                // Some are neither true nor false.
                let bytes = values.as_primitive_opt::<UInt8Type>()?.values().inner().clone();
                statistics::summary(self.values(bytes)?.as_ref())
            }),
            (Class::FixedString { padding, .. }, _) => {
                let bytes = values.as_fixed_size_binary_opt()?.values();
                self.cells(*padding)?.summary(bytes, |part| {
                    let bytes = bytes.slice_with_length(part.start, part.len());
                    statistics::summary(self.values(bytes)?.as_ref())
                })
            }
            (Class::Enum { base, members }, DataType::Dictionary(..)) => {
                let bytes = values.as_fixed_size_binary_opt()?.values();
                let named = self.named(bytes, base, members).map(|(summary, _)| summary);
                named.or_else(|| statistics::summary(self.values(bytes.clone())?.as_ref()))
            }
            _ => statistics::summary(values),
        }
    }

    /// The summary, if a quick check finds no odd element; otherwise `None`.
    pub fn sound_summary_of(&self, values: &dyn Array) -> Option<Summary> {
        match (&self.datatype.class, self.data_type) {
            (_, DataType::Boolean) => {
                let known = statistics::summary(values)?;
                let [min, max] = [known.min, known.max].map(|bound| match bound {
                    Some(Scalar::UInt(bound @ 0..=1)) => Some(Some(Scalar::Bool(bound == 1))),
                    Some(_) => None,
                    None => Some(None),
                });
                Some(Summary { min: min?, max: max?, ..known })
            }
            (Class::FixedString { padding, .. }, _) => {
                self.cells(*padding)?.summary(values.as_fixed_size_binary_opt()?.values(), |_| None)
            }
            (Class::Enum { base, members }, DataType::Dictionary(..)) => {
                let (summary, all) = self.named(values.as_fixed_size_binary_opt()?.values(), base, members)?;
                all.then_some(summary)
            }
            // If the nearest float64 is a different number, the element is odd.
            (Class::Float { format, .. }, _) if format.is_wide() => None,
            (Class::Integer { .. } | Class::Bitfield { .. } | Class::Float { .. } | Class::Opaque { .. }, _) => {
                statistics::summary(values)
            }
            _ => None,
        }
    }

    fn cells(&self, padding: Padding) -> Option<FixedStrings<'_>> {
        let width = usize::try_from(self.datatype.size).ok()?;
        Some(FixedStrings { width, padding, fill: self.missing.text() })
    }

    /// See [`statistics::named`].
    fn named(&self, bytes: &Buffer, base: &Datatype, members: &[EnumerationMember]) -> Option<(Summary, bool)> {
        let codes = codes(bytes.clone(), base)?;
        let codes = self.missing.apply(codes, self.datatype, bytes, &HeapBytes(&[]));
        statistics::named(codes.as_ref(), members)
    }

    /// The array, without counting its oddities: those are counted for readers of values.
    fn values(&self, bytes: Buffer) -> Option<ArrayRef> {
        let count = bytes.len() / usize::try_from(self.datatype.size).ok().filter(|size| *size > 0)?;
        self.array(bytes, count, &mut Oddities::new()).ok()
    }
}
