//! Opens columns of Python objects, which are one pickle of a NumPy array. A scan finds the values, and never builds
//! objects.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, LargeStringBuilder};
use arrow_schema::DataType;

use crate::calendar::{DAY, SECOND};
use crate::catalogue::{Class, DESCRIPTOR_SIZE, Dataset};
use crate::codec::pickle::{self, CellKind, ObjectArray, PandasLabel, PickledCell};
use crate::dialects::attributes::text;
use crate::source::Interrupt;
use crate::store::{
    self, ARRAY_BYTES, Cache, Error, Facts, Fitter, Fitting, Hints, Reservation, RowRange, Rows, SharedRows, numbered,
};

/// Most characters of an integer of 128 bits: its digits, and a sign.
const LONGEST_INTEGER: u64 = 40;

/// Whether a dataset holds a single pickle.
pub(super) fn is_pickle(dataset: &Dataset) -> bool {
    let is_bytes = matches!(&dataset.datatype.class, Class::Sequence { base } if base.size == 1);
    is_bytes && dataset.shape == [1] && text(&dataset.attributes, "PSEUDOATOM").as_deref() == Some("object")
}

/// A pickled array in memory.
struct Pickled {
    bytes: Vec<u8>,
    array: ObjectArray,
    _held: [Reservation; 2],
}

/// A dataset that is one pickle of an array of objects. While the pickle is in use, it stays in memory, under the
/// budget.
#[derive(Debug)]
pub(super) struct ObjectBlock {
    dataset: Arc<store::StoredDataset>,
    pickled: Cache<(), Pickled>,
}

impl ObjectBlock {
    pub fn new(dataset: Arc<store::StoredDataset>) -> Arc<Self> {
        let pickled = Cache::new(dataset.file().store().budget());
        Arc::new(Self { dataset, pickled })
    }

    fn refuse(&self, reason: impl ToString) -> Error {
        Error::unsupported(self.dataset.path(), reason)
    }

    /// Reads the pickle. It reserves its memory all at once or not at all: otherwise, readers of several pickles could
    /// wait for each other's parts.
    fn load(&self, interrupt: &Interrupt) -> Result<Pickled, Error> {
        let budget = self.dataset.file().store().budget();
        let reserve = |bytes| {
            let reserved = budget.reserve(bytes, interrupt);
            reserved.map_err(|shortage| shortage.at(self.dataset.path(), "a pickle and the places in it"))
        };
        let mut descriptor = [0; DESCRIPTOR_SIZE];
        let width = (self.dataset.element_size() as usize).min(DESCRIPTOR_SIZE);
        self.dataset.read_bytes(0, &mut descriptor[..width], interrupt)?;
        let length = u64::from(u32::from_le_bytes([descriptor[0], descriptor[1], descriptor[2], descriptor[3]]));
        let (mut reserved, mut taken) = (reserve(length)?, length);
        loop {
            let (bytes, array) = self.scan(interrupt)?;
            let needed = length.saturating_add(array.bytes() as u64);
            let missing = needed.saturating_sub(taken);
            let more = if missing > 0 { budget.try_reserve(missing) } else { Some(budget.charge(0)) };
            if let Some(more) = more {
                return Ok(Pickled { bytes, array, _held: [reserved, more] });
            }
            drop((bytes, array, reserved));
            (reserved, taken) = (reserve(needed)?, needed);
        }
    }

    fn scan(&self, interrupt: &Interrupt) -> Result<(Vec<u8>, ObjectArray), Error> {
        let batch = self.dataset.read_elements(0..1, interrupt)?;
        let bytes = batch.heap.cursor().resolve(&batch.bytes, 1).map(<[u8]>::to_vec);
        let bytes = bytes.map_err(|cause| cause.at(self.dataset.path(), 0))?;
        let limit = self.dataset.file().store().budget().limit().try_into().unwrap_or(usize::MAX);
        let array = pickle::object_array(&bytes, limit, &|| !interrupt.is_raised()).map_err(|error| self.refuse(error));
        interrupt.check()?;
        Ok((bytes, array?))
    }

    fn pickled(&self, interrupt: &Interrupt) -> Result<Arc<Pickled>, Error> {
        self.pickled.get_or_make(&(), interrupt, || self.load(interrupt))
    }

    /// Opens the columns of the array, which may be at most `most`.
    ///
    /// # Errors
    /// Why the pickle cannot be read.
    pub fn columns(self: &Arc<Self>, most: u64, interrupt: &Interrupt) -> Result<Vec<ObjectRows>, Error> {
        let pickled = self.pickled(interrupt)?;
        let (mut rows, mut columns) = (pickled.array.rows(), pickled.array.columns().unwrap_or(1));
        if columns == 0 {
            // A block of columns without rows is stored transposed.
            (rows, columns) = (0, rows);
        }
        if columns as u64 > most {
            return Err(self.refuse(format!("{columns} columns, more than {most}")));
        }
        let all = (0..columns).map(|column| {
            let counts = pickled.array.counts(column);
            let (shown, others) = (InferredType::of(counts), counts[CellKind::Other as usize]);
            let (data_type, hints) = (shown.data_type(), Hints { nullable: true, ..Hints::default() });
            // No text is longer than the pickle.
            let is_text = data_type == DataType::LargeUtf8;
            let hints = if is_text { hints.within(pickled.bytes.len() as u64) } else { hints };
            let facts = Facts { nullable: true, hints, ..Facts::new(rows as u64, data_type) };
            ObjectRows { block: self.clone(), column, shown, others, facts }
        });
        Ok(all.collect())
    }
}

/// The form in which the objects of a column are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InferredType {
    Texts,
    Booleans,
    Integers,
    Floats,
    /// Days, counted from 1970.
    Dates,
    /// Instants, in nanoseconds since 1970 if `is_fine`, else in microseconds; in UTC if they had a zone.
    Times {
        is_fine: bool,
        is_zoned: bool,
    },
    /// The digits of decimal numbers, or of integers of which some exceed 64 bits.
    Decimals,
    /// A JSON text for each value, since their kinds differ.
    Mixed,
}

impl InferredType {
    /// Chooses the form, given the number of values of each kind.
    fn of(counts: [usize; CellKind::ALL.len()]) -> Self {
        let present = CellKind::ALL.into_iter().filter(|kind| counts[*kind as usize] > 0);
        let present = present.filter(|kind| !matches!(kind, CellKind::None | CellKind::Nan | CellKind::Other));
        let present: Vec<CellKind> = present.collect();
        match present.as_slice() {
            [] | [CellKind::Text] => Self::Texts,
            [CellKind::Bool] => Self::Booleans,
            [CellKind::Integer] | [CellKind::Long] | [CellKind::Integer, CellKind::Long] => Self::Integers,
            [CellKind::Float] | [CellKind::Integer, CellKind::Float] => Self::Floats,
            [.., CellKind::Wide]
                if present.iter().all(|kind| matches!(kind, CellKind::Integer | CellKind::Long | CellKind::Wide)) =>
            {
                Self::Decimals
            }
            [CellKind::Date] => Self::Dates,
            [CellKind::Time] => Self::Times { is_fine: false, is_zoned: false },
            [CellKind::Nanoseconds] => Self::Times { is_fine: true, is_zoned: false },
            [CellKind::ZonedTime] => Self::Times { is_fine: false, is_zoned: true },
            [CellKind::ZonedNanoseconds] => Self::Times { is_fine: true, is_zoned: true },
            [CellKind::Decimal] => Self::Decimals,
            _ => Self::Mixed,
        }
    }

    /// The attoseconds of the unit that integers count. `None`: the form is not one of times.
    pub fn step(self) -> Option<i128> {
        match self {
            Self::Dates => Some(i128::from(DAY) * SECOND),
            Self::Times { is_fine: false, .. } => Some(SECOND / 1_000_000),
            Self::Times { is_fine: true, .. } => Some(SECOND / 1_000_000_000),
            _ => None,
        }
    }

    /// The time zone of instants. `None`: they have none.
    pub fn zone(self) -> Option<&'static str> {
        matches!(self, Self::Times { is_zoned: true, .. }).then_some("UTC")
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Texts | Self::Decimals | Self::Mixed => DataType::LargeUtf8,
            Self::Booleans => DataType::Boolean,
            Self::Integers | Self::Times { .. } => DataType::Int64,
            Self::Floats => DataType::Float64,
            Self::Dates => DataType::Int32,
        }
    }
}

/// A column of a pickled array. `None`, NaN, and objects that are neither text, boolean, number, date nor time are
/// null.
#[derive(Debug)]
pub(super) struct ObjectRows {
    block: Arc<ObjectBlock>,
    column: usize,
    shown: InferredType,
    others: usize,
    facts: Facts,
}

impl ObjectRows {
    pub fn shown(&self) -> InferredType {
        self.shown
    }

    /// Number of objects of other kinds, which are null.
    pub fn others(&self) -> usize {
        self.others
    }

    /// Bytes of a row's text as stored, or of the digits to be made, whichever is more.
    fn length(&self, pickled: &Pickled, row: usize) -> u64 {
        let digits =
            if matches!(self.shown, InferredType::Decimals | InferredType::Mixed) { LONGEST_INTEGER } else { 0 };
        digits.max(pickled.array.text_length(row, self.column, &pickled.bytes) as u64)
    }

    /// Upper bound on the bytes in an array of these rows.
    fn taken(&self, pickled: &Pickled, rows: impl Iterator<Item = usize>) -> u64 {
        rows.map(|row| self.length(pickled, row) * 3 + 8).fold(0, u64::saturating_add)
    }

    /// Makes the array of these rows.
    fn values(&self, pickled: &Pickled, rows: impl ExactSizeIterator<Item = usize>) -> ArrayRef {
        let count = rows.len();
        let mut cells =
            rows.map(|row| pickled.array.cell(row, self.column, &pickled.bytes).unwrap_or(PickledCell::None));
        macro_rules! made {
            ($builder:expr, $value:expr) => {{
                let mut builder = $builder;
                cells.by_ref().for_each(|cell| builder.append_option($value(cell)));
                Arc::new(builder.finish())
            }};
        }
        match self.shown {
            InferredType::Booleans => made!(BooleanBuilder::with_capacity(count), |cell| match cell {
                PickledCell::Bool(value) => Some(value),
                _ => None,
            }),
            InferredType::Integers => made!(Int64Builder::with_capacity(count), |cell| match cell {
                PickledCell::Integer(value) => i64::try_from(value).ok(),
                _ => None,
            }),
            InferredType::Dates => made!(Int32Builder::with_capacity(count), |cell| match cell {
                PickledCell::Date(days) => Some(days),
                _ => None,
            }),
            InferredType::Times { .. } => made!(Int64Builder::with_capacity(count), |cell| match cell {
                PickledCell::Time(time) => Some(time.value),
                _ => None,
            }),
            InferredType::Decimals => made!(LargeStringBuilder::new(), |cell| match cell {
                PickledCell::Decimal(digits) => Some(digits),
                PickledCell::Integer(value) => Some(value.to_string().into()),
                _ => None,
            }),
            InferredType::Texts => made!(LargeStringBuilder::new(), |cell| match cell {
                PickledCell::Text(text) => Some(text),
                _ => None,
            }),
            InferredType::Mixed => made!(LargeStringBuilder::new(), |cell| Self::json(&cell)),
            InferredType::Floats => made!(Float64Builder::with_capacity(count), |cell| match cell {
                PickledCell::Float(value) => Some(value).filter(|value| !value.is_nan()),
                PickledCell::Integer(value) => Some(value as f64),
                _ => None,
            }),
        }
    }

    /// The JSON text of a value. `None`: the value is null.
    fn json(cell: &PickledCell<'_>) -> Option<String> {
        let quoted = |label: PandasLabel<'_>| format!("\"{label}\"");
        Some(match cell {
            PickledCell::None | PickledCell::Other(_) => return None,
            PickledCell::Float(value) if value.is_nan() => return None,
            PickledCell::Bool(value) => value.to_string(),
            PickledCell::Integer(value) => value.to_string(),
            PickledCell::Float(value) if value.is_infinite() => {
                format!("\"{}Infinity\"", if *value < 0.0 { "-" } else { "" })
            }
            PickledCell::Float(value) => serde_json::to_string(value).ok()?,
            PickledCell::Text(text) | PickledCell::Decimal(text) => serde_json::to_string(text).ok()?,
            PickledCell::Date(days) => quoted(PandasLabel::Date((*days).into())),
            PickledCell::Time(time) => {
                let zone = time.is_zoned.then(|| "UTC".to_owned());
                quoted(PandasLabel::Timestamp { value: time.value, per_second: time.per_second(), zone })
            }
        })
    }
}

impl Rows for ObjectRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        store::count_of(&range, self.facts.len, self.block.dataset.path())?;
        let pickled = self.block.pickled(interrupt)?;
        let taken = self.taken(&pickled, range.start as usize..range.end as usize);
        let dataset = &self.block.dataset;
        dataset.file().store().admit(dataset.path(), taken, || format!("rows {}..{}", range.start, range.end))?;
        interrupt.check()?;
        Ok(self.values(&pickled, range.start as usize..range.end as usize))
    }

    fn fitting(&self, range: RowRange, bytes: u64, interrupt: &Interrupt) -> Result<Fitting, Error> {
        if self.facts.data_type != DataType::LargeUtf8 {
            return Ok(Fitting::fixed(&range, 8, bytes));
        }
        let pickled = self.block.pickled(interrupt)?;
        let mut fitter = Fitter::new(range.start, bytes);
        let mut rows = range;
        rows.all(|row| fitter.add(1, self.length(&pickled, row as usize) + 16));
        Ok(fitter.fitting())
    }

    fn shared(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<SharedRows>, Error> {
        store::count_of(&range, self.facts.len, self.block.dataset.path())?;
        let pickled = self.block.pickled(interrupt)?;
        let rows = range.start as usize..range.end as usize;
        // A text shared by several rows is stored once in the pickle.
        let (places, keys) = numbered(rows.clone().map(|row| pickled.array.place(row, self.column)));
        let mut first = vec![0; places.len()];
        rows.zip(&keys).rev().for_each(|(row, key)| first[*key as usize] = row);
        let fits = self.taken(&pickled, first.iter().copied()) <= ARRAY_BYTES;
        Ok(fits.then(|| SharedRows { values: self.values(&pickled, first.into_iter()), keys }))
    }
}
