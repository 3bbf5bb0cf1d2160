//! The rows of a rank-1 dataset.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_schema::DataType;

use super::arrow::{DecodeError, FillTest, Oddities, arrow_type, decode};
use super::plain::PlainElements;
use super::statistics::Summary;
use super::{Dataset, Error, Hints, Lent, RowRange, Rows, Span, Tally, TextLength};
use crate::catalogue::{Class, Datatype, Fill};
use crate::source::Interrupt;

/// The first `len` elements of a rank-1 dataset, missing where they equal its explicit fill value.
#[derive(Debug)]
pub struct DatasetRows {
    dataset: Arc<Dataset>,
    len: u64,
    data_type: DataType,
    fill: FillTest,
    tally: Arc<Tally>,
}

impl DatasetRows {
    /// The first `len` elements of `dataset`; fewer where it is shorter. Oddities are counted in `tally`.
    pub fn new(dataset: Arc<Dataset>, len: u64, tally: Arc<Tally>) -> Self {
        let datatype = &dataset.description().datatype;
        let data_type = arrow_type(datatype);
        let fill = FillTest::new(datatype, &dataset.description().fill);
        Self { len: len.min(dataset.len()), data_type, fill, tally, dataset }
    }

    /// The same rows without the missing-value test: codes, offsets, masks and characters are never missing.
    pub fn plain(dataset: Arc<Dataset>, len: u64) -> Self {
        Self { fill: FillTest::none(), ..Self::new(dataset, len, Arc::default()) }
    }

    /// The same rows, missing where they equal the fill value of another dataset of this type.
    pub fn filled_as(dataset: Arc<Dataset>, len: u64, fill: &Fill) -> Self {
        let fill = FillTest::new(&dataset.description().datatype, fill);
        Self { fill, ..Self::new(dataset, len, Arc::default()) }
    }

    fn datatype(&self) -> &Datatype {
        &self.dataset.description().datatype
    }

    /// Whether elements are more than their own bytes.
    fn leads_elsewhere(&self) -> bool {
        self.datatype().is_variable() || self.datatype().holds_reference()
    }

    /// The elements, where they are their own bytes.
    fn elements(&self) -> PlainElements<'_> {
        PlainElements { datatype: self.datatype(), data_type: &self.data_type, fill: &self.fill }
    }

    fn decode_error(&self, range: &RowRange, error: DecodeError) -> Error {
        error.cause.at(self.dataset.path(), range.start.saturating_add(error.row))
    }
}

/// The range as a count, refused where it passes the end.
pub(crate) fn count_of(range: &RowRange, len: u64, path: &str) -> Result<usize, Error> {
    let count = range.end.checked_sub(range.start).filter(|_| range.end <= len);
    count.and_then(|count| usize::try_from(count).ok()).ok_or_else(|| Error::Unsupported {
        path: path.to_owned(),
        reason: format!("rows {}..{} of {len}", range.start, range.end),
    })
}

impl Rows for DatasetRows {
    fn len(&self) -> u64 {
        self.len
    }

    fn data_type(&self) -> &DataType {
        &self.data_type
    }

    fn nullable(&self) -> bool {
        self.fill.finds_any() || self.datatype().is_boolean() || self.datatype().is_reference()
    }

    fn hints(&self) -> Hints {
        let mut hints = Hints::of(self.datatype());
        if matches!(self.datatype().class, Class::VariableString { .. }) {
            // What lies in a heap is stored as it is.
            hints.texts = TextLength::Within(self.dataset.file().source().identity().size);
        }
        hints
    }

    fn stored_type(&self) -> Option<&Datatype> {
        Some(self.datatype())
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let count = count_of(&range, self.len, self.dataset.path())?;
        let datatype = self.datatype();
        let mut oddities = Oddities::new();
        let bytes = (count as u64).checked_mul(datatype.size).and_then(|bytes| usize::try_from(bytes).ok());
        let offset = range.start.checked_mul(datatype.size);
        let (Some(bytes), Some(offset)) = (bytes, offset) else {
            return Err(Error::Unsupported {
                path: self.dataset.path().to_owned(),
                reason: format!("{count} elements of {} bytes overflow", datatype.size),
            });
        };
        let limit = self.dataset.file().store().max_chunk();
        if bytes as u64 > limit {
            return Err(Error::TooLarge {
                path: self.dataset.path().to_owned(),
                what: format!("{count} elements of {} bytes", datatype.size),
                bytes: bytes as u64,
                limit,
                option: "--max-chunk",
            });
        }
        let array = if self.leads_elsewhere() {
            let batch = self.dataset.read_elements(range.clone(), interrupt)?;
            let bytes = Buffer::from_vec(batch.bytes);
            let array = decode(datatype, bytes.clone(), count, &batch.heap, &mut oddities)
                .map_err(|error| self.decode_error(&range, error))?;
            self.fill.apply(array, datatype, &bytes, &batch.heap)
        } else {
            let mut buffer = MutableBuffer::from_len_zeroed(bytes);
            self.dataset.read_bytes(offset, buffer.as_slice_mut(), interrupt)?;
            let array = self.elements().array(buffer.into(), count, &mut oddities);
            array.map_err(|error| self.decode_error(&range, error))?
        };
        self.tally.add(range, &oddities);
        Ok(array)
    }

    fn stored_width(&self) -> Option<u64> {
        (!self.datatype().is_variable()).then_some(self.datatype().size)
    }

    fn append_stored(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        self.dataset.append_once(offset, length, out, interrupt)
    }

    fn stored_span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        self.dataset.span(offset, length, interrupt)
    }

    fn lend_scanned(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Option<Lent>, Error> {
        self.dataset.lend_scanned(offset, length, interrupt)
    }

    fn is_decoded(&self) -> bool {
        self.dataset.is_decoded()
    }

    fn stored_values(&self, bytes: Buffer) -> Option<ArrayRef> {
        if self.leads_elsewhere() { None } else { self.elements().stored_values(bytes) }
    }

    fn summary_of(&self, values: &dyn Array, _: &Interrupt) -> Option<Summary> {
        self.elements().summary_of(values)
    }

    fn natural_rows(&self) -> Option<u64> {
        self.dataset.natural_rows()
    }
}
