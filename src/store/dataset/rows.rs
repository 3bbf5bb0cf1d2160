//! The rows of a dataset.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;

use super::StoredDataset;
use super::plain::PlainElements;
use crate::catalogue::{Class, Datatype, Padding, product};
use crate::source::Interrupt;
use crate::store::decode::outline::without_empty;
use crate::store::decode::{DecodeError, FillTest, Oddities, VariableParts, Weigher, arrow_type};
use crate::store::statistics::Summary;
use crate::store::{
    ARRAY_BYTES, ChunkDecoding, Coded, Containers, ElementBatch, Error, Facts, Fitter, Fitting, Hints, Lent, RowRange,
    Rows, SharedRows, Span, StoredBytes, StoredFacts, Tally, fixed_width, numbered,
};

/// Rows in the first batch to weigh.
const FIRST_WEIGHED: u64 = 256;

/// Bytes of descriptors to read at once for weighing: they fit in a processor's cache.
const DESCRIPTORS: u64 = 256 << 10;

/// The first `len` rows of a dataset: its elements, or slices along its first axis. The dialect decides which are
/// missing.
#[derive(Debug)]
pub struct DatasetRows {
    dataset: Arc<StoredDataset>,
    /// Datatype of a row as stored.
    datatype: Arc<Datatype>,
    /// Elements in a row.
    per_row: u64,
    missing: FillTest,
    tally: Arc<Tally>,
    facts: Facts,
}

impl DatasetRows {
    /// The first `len` elements of `dataset`, or all if it is shorter. `tally` counts oddities.
    pub fn new(dataset: Arc<StoredDataset>, len: u64, missing: FillTest, tally: Arc<Tally>) -> Self {
        let datatype = dataset.description().datatype.clone();
        let len = len.min(dataset.len());
        Self::of(dataset, len, datatype, 1, missing, tally)
    }

    /// Rows of `per_row` elements each; together these are one value of `datatype`.
    fn of(
        dataset: Arc<StoredDataset>,
        len: u64,
        datatype: Datatype,
        per_row: u64,
        missing: FillTest,
        tally: Arc<Tally>,
    ) -> Self {
        let (hints, datatype) = (hints_of(&datatype, &dataset), Arc::new(datatype));
        let facts = Facts {
            nullable: missing.finds_rows() || datatype.is_boolean() || datatype.is_reference(),
            hints: match missing.item_depth() {
                Some(depth) => hints.of_nullable_items(depth),
                None => hints,
            },
            natural_rows: dataset.natural_rows(),
            stored: StoredFacts::of(datatype.clone(), ChunkDecoding::Asked(dataset.clone())),
            alike: dataset.alike(per_row),
            containers: Containers::one(dataset.clone()),
            ..Facts::new(len, arrow_type(&datatype))
        };
        Self { dataset, datatype, per_row, missing, tally, facts }
    }

    /// Rows without oddities and missing values, such as codes, offsets, masks and characters.
    pub fn plain(dataset: Arc<StoredDataset>, len: u64) -> Self {
        Self::new(dataset, len, FillTest::none(), Arc::default())
    }

    /// Rows along the first axis of a dataset of any rank: elements, or arrays of them; a scalar is one row. `missing`
    /// tests elements.
    pub fn along_first(dataset: Arc<StoredDataset>, missing: FillTest, tally: Arc<Tally>) -> Self {
        let description = dataset.description().clone();
        let Some((rows, dims)) = description.shape.split_first().filter(|(_, dims)| !dims.is_empty()) else {
            return Self::new(dataset, u64::MAX, missing, tally);
        };
        let per_row = product(dims).unwrap_or(0);
        let class = Class::Array { dims: dims.to_vec(), base: Box::new(description.datatype.clone()) };
        let datatype = Datatype { size: per_row.saturating_mul(description.datatype.size), class };
        let missing = missing.of_items(&description.datatype, dims.len());
        Self::of(dataset, *rows, datatype, per_row, missing, tally)
    }

    /// Joins the characters along the last axis of a dataset into texts. Rank 1 makes one row; for a higher rank, rows
    /// along the first axis are texts, or arrays of them. `None`: the last axis is empty, or elements are not
    /// characters.
    pub fn joined(dataset: Arc<StoredDataset>, tally: Arc<Tally>) -> Option<Self> {
        let description = dataset.description().clone();
        let (characters, shape) = description.shape.split_last().filter(|(characters, _)| **characters > 0)?;
        let (rows, dims) = shape.split_first().unwrap_or((&1, &[]));
        let Class::FixedString { charset, .. } = description.datatype.class else { return None };
        // Writers pad with NULs or with spaces: this strips both.
        let class = Class::FixedString { padding: Padding::SpacePadded, charset };
        let text = Datatype { size: Some(*characters).filter(|_| description.datatype.size == 1)?, class };
        let size = product(dims)?.checked_mul(text.size)?;
        let datatype = match dims {
            [] => text,
            dims => Datatype { size, class: Class::Array { dims: dims.to_vec(), base: Box::new(text) } },
        };
        // An element has one byte.
        Some(Self::of(dataset, *rows, datatype, size, FillTest::none(), tally))
    }

    fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// Whether elements contain descriptors or references.
    fn leads_elsewhere(&self) -> bool {
        self.datatype().is_variable() || self.datatype().holds_reference()
    }

    /// The elements, if they contain no descriptors or references.
    fn elements(&self) -> PlainElements<'_> {
        PlainElements { datatype: self.datatype(), data_type: &self.facts.data_type, missing: &self.missing }
    }

    /// See [`Store::admit`](crate::store::Store::admit).
    fn admit(&self, range: &RowRange, bytes: u64) -> Result<(), Error> {
        let store = self.dataset.file().store();
        store.admit(self.dataset.path(), bytes, || match range.end - range.start {
            1 => format!("row {}", range.start),
            count => format!("{count} rows from {} on", range.start),
        })
    }

    fn decode_error(&self, range: &RowRange, error: DecodeError) -> Error {
        error.cause.at(self.dataset.path(), range.start.saturating_add(error.row))
    }
}

/// Hints from the datatype of a dataset's rows.
pub(super) fn hints_of(datatype: &Datatype, dataset: &StoredDataset) -> Hints {
    match datatype.class {
        Class::VariableString { .. } => Hints::of(datatype).within(dataset.file().source().identity().size),
        _ => Hints::of(datatype),
    }
}

/// [`Rows::fitting`] for rows of `per_row` elements each; together these are one value of `datatype`.
pub(super) fn fitting(
    dataset: &StoredDataset,
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
    // Elements read by a worker come with the content of a whole chunk.
    let chunk = dataset.natural_rows().filter(|_| dataset.through_worker());
    let most = chunk.unwrap_or(0).max(DESCRIPTORS / size).max(1);
    let mut fitter = Fitter::new(range.start, bytes);
    // A few rows may suffice: batches grow as long as rows fit.
    let (mut start, mut batch) = (range.start, chunk.unwrap_or(0).max(FIRST_WEIGHED).min(most));
    while start < range.end {
        interrupt.check()?;
        let end = start.saturating_add(batch).min(range.end);
        let elements = start.saturating_mul(per_row)..end.saturating_mul(per_row);
        let elements = dataset.read_elements(elements, interrupt)?;
        let all = weigher.weight_of_all(&elements.bytes, size, fitter.left(), &elements.heap);
        if all <= fitter.left() {
            fitter.add(end - start, all);
        } else {
            for row in elements.bytes.chunks_exact(size as usize) {
                if !fitter.add(1, weigher.weight(row, fitter.left(), &elements.heap)) {
                    return Ok(fitter.fitting());
                }
            }
        }
        start = end;
        batch = batch.saturating_mul(4).min(most);
    }
    Ok(fitter.fitting())
}

/// Deduplicates the variable-length elements `range`, which form rows of `datatype`: the distinct rows, with the
/// content of their descriptors, and the index of each row among them. `None`: even these take much memory.
pub(super) fn shared_elements(
    dataset: &StoredDataset,
    datatype: &Datatype,
    range: RowRange,
    interrupt: &Interrupt,
) -> Result<Option<(ElementBatch, Buffer, Vec<u32>)>, Error> {
    let bytes = (range.end - range.start).saturating_mul(dataset.element_size());
    if !datatype.is_variable() || bytes > ARRAY_BYTES {
        return Ok(None);
    }
    let batch = dataset.read_elements(range, interrupt)?;
    let distinct = distinct(dataset, datatype, &batch.bytes, &batch.heap);
    Ok(distinct.map(|(distinct, keys)| (batch, distinct, keys)))
}

/// The distinct rows of `datatype` among stored ones, and the index of each row among them. `None`: their content takes
/// much memory.
pub(super) fn distinct(
    dataset: &StoredDataset,
    datatype: &Datatype,
    stored: &[u8],
    heap: &dyn VariableParts,
) -> Option<(Buffer, Vec<u32>)> {
    let (distinct, keys) = numbered(stored.chunks_exact(datatype.size.max(1) as usize));
    let distinct = distinct.concat();
    let weigher = Weigher::new(datatype, dataset.file().source().identity().size);
    let weight = weigher.weight_of_all(&distinct, datatype.size, ARRAY_BYTES, heap);
    (weight <= ARRAY_BYTES).then(|| (Buffer::from_vec(distinct), keys))
}

/// The length of a range; an error if it exceeds the end.
pub(crate) fn count_of(range: &RowRange, len: u64, path: &str) -> Result<usize, Error> {
    let count = range.end.checked_sub(range.start).filter(|_| range.end <= len);
    count
        .and_then(|count| usize::try_from(count).ok())
        .ok_or_else(|| Error::unsupported(path, format!("rows {}..{} of {len}", range.start, range.end)))
}

impl Rows for DatasetRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let count = count_of(&range, self.facts.len, self.dataset.path())?;
        let datatype = self.datatype();
        let mut oddities = Oddities::new();
        let width = datatype.size.max(fixed_width(&self.facts.data_type));
        self.admit(&range, (count as u64).saturating_mul(width))?;
        // Checked against the limit, hence within a process's memory.
        let (bytes, offset) = ((count as u64 * datatype.size) as usize, range.start.saturating_mul(datatype.size));
        let array = if self.leads_elsewhere() {
            let elements = range.start.saturating_mul(self.per_row)..range.end.saturating_mul(self.per_row);
            let batch = self.dataset.read_elements(elements, interrupt)?;
            let weigher = Weigher::new(datatype, self.dataset.file().source().identity().size);
            // A batch over the limit need not be weighed further: following shared parts might never end.
            let most = self.dataset.file().store().max_value();
            self.admit(&range, weigher.weight_of_all(&batch.bytes, datatype.size, most, &batch.heap))?;
            self.missing.decode(datatype, Buffer::from_vec(batch.bytes), count, &batch.heap, &mut oddities)
        } else {
            // A `MutableBuffer` has a stricter alignment than glibc's own, and glibc does not reuse such a block for
            // the next one of equal length: the heap would grow with each batch.
            let mut stored = vec![0; bytes];
            self.dataset.read_bytes(offset, &mut stored, interrupt)?;
            self.elements().array(Buffer::from_vec(stored), count, &mut oddities)
        };
        let array = array.map_err(|error| self.decode_error(&range, error))?;
        self.tally.add(range, &oddities);
        Ok(array)
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        fitting(&self.dataset, &self.datatype, self.per_row, range, bytes, interrupt)
    }

    fn shared(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<SharedRows>, Error> {
        let elements = range.start.saturating_mul(self.per_row)..range.end.saturating_mul(self.per_row);
        let Some((batch, distinct, keys)) = shared_elements(&self.dataset, &self.datatype, elements, interrupt)? else {
            return Ok(None);
        };
        let (mut oddities, count) = (Oddities::new(), distinct.len() / self.datatype.size.max(1) as usize);
        let values = self.missing.decode(&self.datatype, distinct, count, &batch.heap, &mut oddities);
        let values = values.map_err(|error| {
            let row = keys.iter().position(|key| u64::from(*key) == error.row).unwrap_or(0) as u64;
            error.cause.at(self.dataset.path(), range.start.saturating_add(row))
        })?;
        self.tally.add(range, &oddities.of_shared(&keys));
        Ok(Some(SharedRows { values, keys }))
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        let count = count_of(&range, self.facts.len, self.dataset.path())?;
        // A missing sequence counts as one without elements here, whatever the fill value contains.
        if matches!(self.datatype.class, Class::Sequence { .. }) && self.missing.finds_rows() {
            return Ok(None);
        }
        let offset = range.start.saturating_mul(self.datatype.size);
        let outline = self.dataset.outline(&self.datatype, offset, count, interrupt)?;
        // A missing text is nearly always an empty one, and often most texts are missing.
        let empty_is_missing = self.missing.finds_rows() && self.missing.text() == Some(b"");
        Ok(outline.map(|outline| if empty_is_missing { without_empty(outline) } else { outline }))
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        Some(self)
    }

    fn coded(&self) -> Option<&dyn Coded> {
        Some(self)
    }
}

impl StoredBytes for DatasetRows {
    fn append(&self, offset: u64, length: usize, out: &mut Vec<u8>, interrupt: &Interrupt) -> Result<(), Error> {
        self.dataset.append_once(offset, length, out, interrupt)
    }

    fn span(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Span, Error> {
        self.dataset.span(offset, length, interrupt)
    }

    fn lend(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Option<Lent>, Error> {
        self.dataset.lend_scanned(offset, length, interrupt)
    }
}

impl Coded for DatasetRows {
    fn values(&self, bytes: Buffer) -> Option<ArrayRef> {
        if self.leads_elsewhere() { None } else { self.elements().stored_values(bytes) }
    }

    fn summary_of(&self, values: &dyn Array, _: &Interrupt) -> Option<Summary> {
        self.elements().summary_of(values)
    }

    fn sound_summary_of(&self, values: &dyn Array, _: &Interrupt) -> Option<Summary> {
        self.elements().sound_summary_of(values)
    }
}
