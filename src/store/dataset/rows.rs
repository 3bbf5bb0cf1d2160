//! The rows of a dataset.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_schema::DataType;

use super::Dataset;
use super::plain::PlainElements;
use crate::catalogue::{Class, Datatype, product};
use crate::source::Interrupt;
use crate::store::decode::{DecodeError, FillTest, Oddities, Weigher, arrow_type, decode};
use crate::store::statistics::Summary;
use crate::store::{Error, Fitter, Fitting, Hints, Lent, RowRange, Rows, Span, Tally};

/// Bytes of descriptors that are read together to be weighed: they stay in a processor's cache.
const DESCRIPTORS: u64 = 256 << 10;

/// The first `len` rows of a dataset: its elements, or what lies along its first axis. Which are missing is the
/// dialect's to say.
#[derive(Debug)]
pub struct DatasetRows {
    dataset: Arc<Dataset>,
    len: u64,
    /// Of a row as stored.
    datatype: Datatype,
    /// Elements in a row.
    per_row: u64,
    data_type: DataType,
    missing: FillTest,
    tally: Arc<Tally>,
}

impl DatasetRows {
    /// The first `len` elements of `dataset`; fewer where it is shorter. Oddities are counted in `tally`.
    pub fn new(dataset: Arc<Dataset>, len: u64, missing: FillTest, tally: Arc<Tally>) -> Self {
        let datatype = dataset.description().datatype.clone();
        let (len, data_type) = (len.min(dataset.len()), arrow_type(&datatype));
        Self { dataset, len, datatype, per_row: 1, data_type, missing, tally }
    }

    /// The same rows without oddities and missing values: codes, offsets, masks and characters have none.
    pub fn plain(dataset: Arc<Dataset>, len: u64) -> Self {
        Self::new(dataset, len, FillTest::none(), Arc::default())
    }

    /// What lies along the first axis of a dataset of any rank: elements, or arrays of them; a scalar is one row.
    /// `missing` tells of elements.
    pub fn along_first(dataset: Arc<Dataset>, missing: FillTest, tally: Arc<Tally>) -> Self {
        let description = dataset.description().clone();
        let Some((rows, dims)) = description.shape.split_first().filter(|(_, dims)| !dims.is_empty()) else {
            return Self::new(dataset, u64::MAX, missing, tally);
        };
        let per_row = product(dims).unwrap_or(0);
        let class = Class::Array { dims: dims.to_vec(), base: Box::new(description.datatype.clone()) };
        let datatype = Datatype { size: per_row.saturating_mul(description.datatype.size), class };
        let data_type = arrow_type(&datatype);
        let missing = missing.of_items(&description.datatype, dims.len());
        Self { dataset, len: *rows, datatype, per_row, data_type, missing, tally }
    }

    fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// Whether elements are more than their own bytes.
    fn leads_elsewhere(&self) -> bool {
        self.datatype().is_variable() || self.datatype().holds_reference()
    }

    /// The elements, where they are their own bytes.
    fn elements(&self) -> PlainElements<'_> {
        PlainElements { datatype: self.datatype(), data_type: &self.data_type, missing: &self.missing }
    }

    fn decode_error(&self, range: &RowRange, error: DecodeError) -> Error {
        error.cause.at(self.dataset.path(), range.start.saturating_add(error.row))
    }
}

/// What the datatype of rows of a dataset tells.
pub(super) fn hints_of(datatype: &Datatype, dataset: &Dataset) -> Hints {
    match datatype.class {
        Class::VariableString { .. } => Hints::of(datatype).within(dataset.file().source().identity().size),
        _ => Hints::of(datatype),
    }
}

/// [`Rows::fitting`] of rows of `per_row` elements, which are of `datatype` together.
pub(super) fn fitting(
    dataset: &Dataset,
    datatype: &Datatype,
    per_row: u64,
    range: RowRange,
    bytes: u64,
    interrupt: &Interrupt,
) -> Result<Fitting, Error> {
    let weigher = Weigher::new(datatype, dataset.file().source().identity().size);
    if let Some(width) = weigher.fixed() {
        return Ok(Fitting::fixed(&range, width, bytes));
    }
    let size = datatype.size.max(1);
    if size > bytes {
        let end = range.start.saturating_add(1).min(range.end);
        return Ok(Fitting { end, bytes: size });
    }
    // What a worker reads comes with all that a chunk leads to.
    let chunk = dataset.natural_rows().filter(|_| dataset.through_worker());
    let batch = chunk.unwrap_or(0).max(DESCRIPTORS / size).max(1);
    let mut fitter = Fitter::new(range.start, bytes);
    let mut start = range.start;
    while start < range.end {
        interrupt.check()?;
        let end = start.saturating_add(batch).min(range.end);
        let elements = start.saturating_mul(per_row)..end.saturating_mul(per_row);
        let elements = dataset.read_elements(elements, interrupt)?;
        for row in elements.bytes.chunks_exact(size as usize) {
            if !fitter.add(1, weigher.weight(row, fitter.left(), &elements.heap)) {
                return Ok(fitter.fitting());
            }
        }
        start = end;
    }
    Ok(fitter.fitting())
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
        self.missing.finds_rows() || self.datatype().is_boolean() || self.datatype().is_reference()
    }

    fn hints(&self) -> Hints {
        let hints = hints_of(self.datatype(), &self.dataset);
        match self.missing.item_depth() {
            Some(depth) => hints.of_nullable_items(depth),
            None => hints,
        }
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
            let elements = range.start.saturating_mul(self.per_row)..range.end.saturating_mul(self.per_row);
            let batch = self.dataset.read_elements(elements, interrupt)?;
            let bytes = Buffer::from_vec(batch.bytes);
            let array = decode(datatype, bytes.clone(), count, &batch.heap, &mut oddities)
                .map_err(|error| self.decode_error(&range, error))?;
            self.missing.apply(array, datatype, &bytes, &batch.heap)
        } else {
            let mut buffer = MutableBuffer::from_len_zeroed(bytes);
            self.dataset.read_bytes(offset, buffer.as_slice_mut(), interrupt)?;
            let array = self.elements().array(buffer.into(), count, &mut oddities);
            array.map_err(|error| self.decode_error(&range, error))?
        };
        self.tally.add(range, &oddities);
        Ok(array)
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        fitting(&self.dataset, &self.datatype, self.per_row, range, bytes, interrupt)
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

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let count = count_of(&range, self.len, self.dataset.path())?;
        // A missing sequence is one without elements here, whatever the fill value holds.
        if matches!(self.datatype.class, Class::Sequence { .. }) && self.missing.finds_rows() {
            return Ok(None);
        }
        self.dataset.outline(&self.datatype, range.start.saturating_mul(self.datatype.size), count, interrupt)
    }

    fn alike_until(&self, row: u64, interrupt: &Interrupt) -> Result<u64, Error> {
        let per_row = self.per_row.max(1);
        let end = self.dataset.unwritten_until(row.saturating_mul(per_row).min(self.dataset.len()), interrupt)?;
        Ok((end / per_row).clamp(row, self.len.max(row)))
    }

    fn natural_rows(&self) -> Option<u64> {
        self.dataset.natural_rows()
    }
}
