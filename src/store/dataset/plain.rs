//! Elements that are their own bytes: as arrays, and what they hold where making arrays of them would take longer than
//! decoding them did.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt8Type;
use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, UInt8Array};
use arrow_buffer::Buffer;
use arrow_schema::DataType;

use crate::catalogue::{Class, Datatype, Member};
use crate::store::decode::{DecodeError, FillTest, Memory, Oddities, Oddity, codes, decode};
use crate::store::statistics::{self, Cells, Scalar, Summary};

/// Elements of one type, none of which leads elsewhere.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct PlainElements<'a> {
    pub datatype: &'a Datatype,
    /// What they are shown as.
    pub data_type: &'a DataType,
    /// Which are missing.
    pub missing: &'a FillTest,
}

impl PlainElements<'_> {
    /// The array of `count` elements.
    pub fn array(&self, bytes: Buffer, count: usize, oddities: &mut Oddities) -> Result<ArrayRef, DecodeError> {
        let none = Memory(&[]);
        let before = oddities.len();
        let array = decode(self.datatype, bytes.clone(), count, &none, oddities)?;
        let array = self.missing.apply(array, self.datatype, &bytes, &none);
        // The code of a missing value needs no name.
        if self.missing.finds_rows() && oddities.len() > before {
            oddities.retain(|(what, row)| *what != Oddity::UnnamedCode || array.is_valid(*row as usize));
        }
        Ok(array)
    }

    /// See [`Rows::stored_values`](crate::store::Rows::stored_values).
    pub fn stored_values(&self, bytes: Buffer) -> Option<ArrayRef> {
        match self.data_type {
            // Making texts of them takes longer than decoding them did.
            DataType::LargeUtf8 | DataType::Dictionary(..) => {
                let width = i32::try_from(self.datatype.size).ok()?;
                Some(Arc::new(FixedSizeBinaryArray::try_new(width, bytes, None).ok()?))
            }
            DataType::Boolean => Some(Arc::new(UInt8Array::new(bytes.into(), None))),
            _ => self.values(bytes),
        }
    }

    /// What elements hold of which [`PlainElements::stored_values`] gives `values`.
    pub fn summary_of(&self, values: &dyn Array) -> Option<Summary> {
        match (&self.datatype.class, self.data_type) {
            (_, DataType::Boolean) => self.booleans(values),
            (Class::FixedString { padding, .. }, _) => {
                let bytes = values.as_fixed_size_binary_opt()?.values();
                let width = usize::try_from(self.datatype.size).ok()?;
                let cells = Cells { width, padding: *padding, fill: self.missing.text() };
                cells.summary(bytes, |part| {
                    let bytes = bytes.slice_with_length(part.start, part.len());
                    statistics::summary(self.values(bytes)?.as_ref())
                })
            }
            (Class::Enum { base, members }, DataType::Dictionary(..)) => {
                self.names(values.as_fixed_size_binary_opt()?.values(), base, members)
            }
            _ => statistics::summary(values),
        }
    }

    fn names(&self, bytes: &Buffer, base: &Datatype, members: &[Member]) -> Option<Summary> {
        let codes = codes(bytes.clone(), base)?;
        let codes = self.missing.apply(codes, self.datatype, bytes, &Memory(&[]));
        let named = statistics::named(codes.as_ref(), members);
        named.or_else(|| statistics::summary(self.values(bytes.clone())?.as_ref()))
    }

    fn booleans(&self, values: &dyn Array) -> Option<Summary> {
        let known = statistics::summary(values)?;
        let Some(bytes) = values.as_primitive_opt::<UInt8Type>() else { return Some(known) };
        match (known.min, known.max) {
            (Some(Scalar::UInt(min)), Some(Scalar::UInt(max @ 0..=1))) => {
                let [min, max] = [min, max].map(|bound| Some(Scalar::Bool(bound == 1)));
                Some(Summary { min, max, ..known })
            }
            // Some are neither true nor false.
            _ => statistics::summary(self.values(bytes.values().inner().clone())?.as_ref()),
        }
    }

    /// The array, its oddities uncounted: they are counted for readers of values.
    fn values(&self, bytes: Buffer) -> Option<ArrayRef> {
        let count = bytes.len() / usize::try_from(self.datatype.size).ok().filter(|size| *size > 0)?;
        self.array(bytes, count, &mut Oddities::new()).ok()
    }
}
