//! Facts about rows: everything known before one is read.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use arrow_schema::DataType;

use super::{Cuts, Hints, Rows};
use crate::catalogue::Datatype;
use crate::source::Interrupt;
use crate::store::Error;

/// Facts about some rows, made once by their constructor. A wrapper clones the facts of the wrapped rows and overrides
/// those that it changes: `Facts { nullable: true, ..inner.facts().clone() }`. Facts that it does not mention are kept;
/// dropping one has to be explicit.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Number of rows.
    pub len: u64,
    /// Arrow type of [`Rows::array`].
    pub data_type: DataType,
    /// Whether [`Rows::array`] may return nulls.
    pub nullable: bool,
    /// Bounds of the values. They make a file smaller, or its size arithmetic; they never change a value.
    pub hints: Hints,
    /// Rows of a chunk: the natural grain of reading. `None`: rows are contiguous.
    pub natural_rows: Option<u64>,
    /// Bytes from one row to the next, including those of other columns: reading one row decodes a whole chunk, all
    /// columns included. `None`: rows are stored by themselves.
    pub stride: Option<u64>,
    /// Boundaries between rows of different origin, which statistics and row groups respect. `None`: all rows have one
    /// origin.
    pub cuts: Option<Cuts>,
    /// The stored bytes of rows.
    pub stored: StoredFacts,
    /// Number of codes, 256 or 65,536, if rows are stored as codes of one or two bytes, each of which stands for one
    /// finite number, or for a null. Otherwise 0.
    pub codes: u64,
    /// Whether [`Rows::outline`] is available and includes the nulls of rows and of their parts.
    pub outline_tells_nulls: bool,
    /// Whether rows are compounds whose fields [`Rows::array_for_field`] reads separately.
    pub fields_lie_apart: bool,
    /// Runs of rows that are alike because none of them was ever stored.
    pub alike: Alike,
    /// The datasets whose chunk indexes are examined before the first read.
    pub containers: Containers,
}

/// Facts about the stored bytes of rows: after filters and encodings.
#[derive(Clone, Debug, Default)]
pub struct StoredFacts {
    /// Type of the elements that [`append`](super::StoredBytes::append) returns. `None`: rows are neither the elements
    /// of one dataset nor decoded to elements of one width.
    pub datatype: Option<Arc<Datatype>>,
    /// Bytes of a row, as [`append`](super::StoredBytes::append) returns them; `None`: widths differ.
    pub width: Option<u64>,
    /// Whether the bytes come from decoded chunks, not unchanged from the file.
    pub decoded: ChunkDecoding,
}

/// Whether bytes come from decoded chunks.
#[derive(Clone, Debug, Default)]
pub enum ChunkDecoding {
    /// The file contains them unchanged.
    #[default]
    Never,
    /// They are decoded.
    Always,
    /// Depends on a container: a virtual dataset knows its sources after the first read.
    Asked(Arc<dyn RowsContainer>),
}

/// Runs of rows that are alike because none of them was ever stored.
#[derive(Clone, Default)]
pub struct Alike(Option<Arc<FindEnd>>);

/// Finds the end of the run that a row is in.
type FindEnd = dyn Fn(u64, &Interrupt) -> Result<u64, Error> + Send + Sync;

impl Alike {
    /// `find` gives the end of the run that contains a row; that row, or an earlier one, if no run is known. It reads
    /// no values.
    pub fn new(find: impl Fn(u64, &Interrupt) -> Result<u64, Error> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(find)))
    }

    /// All rows are alike.
    pub fn all() -> Self {
        Self::new(|_, _| Ok(u64::MAX))
    }
}

impl Debug for Alike {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Alike").field(&self.0.as_ref().map(Arc::as_ptr)).finish()
    }
}

/// A dataset, or a column of blocks, from which rows are read.
pub trait RowsContainer: Debug + Send + Sync {
    /// Whether reading it decodes chunks, as far as known.
    fn is_decoded(&self) -> bool;

    /// Locates its chunks in the file, so that a damaged chunk index comes to light. Reads no chunk.
    ///
    /// # Errors
    /// See [`Error`].
    fn examine(&self, interrupt: &Interrupt) -> Result<(), Error>;
}

/// The containers of some rows, in the order in which a reader needs them.
#[derive(Clone, Debug, Default)]
pub struct Containers(Arc<[Arc<dyn RowsContainer>]>);

impl Containers {
    /// A single container.
    pub fn one(container: Arc<impl RowsContainer + 'static>) -> Self {
        Self::from_iter([container as Arc<dyn RowsContainer>])
    }

    /// The containers of several rows.
    pub fn of_all<'a>(rows: impl IntoIterator<Item = &'a Arc<dyn Rows>>) -> Self {
        rows.into_iter().flat_map(|rows| rows.facts().containers.0.iter().cloned()).collect()
    }

    /// Examines each container; see [`RowsContainer::examine`].
    ///
    /// # Errors
    /// That of the first container that fails.
    pub fn examine(&self, interrupt: &Interrupt) -> Result<(), Error> {
        self.0.iter().try_for_each(|container| container.examine(interrupt))
    }
}

impl FromIterator<Arc<dyn RowsContainer>> for Containers {
    fn from_iter<I: IntoIterator<Item = Arc<dyn RowsContainer>>>(containers: I) -> Self {
        Self(containers.into_iter().collect())
    }
}

impl Facts {
    /// `len` rows of a type, without nulls. Nothing else is known.
    pub fn new(len: u64, data_type: DataType) -> Self {
        Self {
            len,
            data_type,
            nullable: false,
            hints: Hints::default(),
            natural_rows: None,
            stride: None,
            cuts: None,
            stored: StoredFacts::default(),
            codes: 0,
            outline_tells_nulls: false,
            fields_lie_apart: false,
            alike: Alike::default(),
            containers: Containers::default(),
        }
    }
}

impl StoredFacts {
    /// Facts about elements of a datatype: of one width, unless they vary in length.
    pub fn of(datatype: Arc<Datatype>, decoded: ChunkDecoding) -> Self {
        Self { width: (!datatype.is_variable()).then_some(datatype.size), datatype: Some(datatype), decoded }
    }
}

/// The facts one by one.
impl dyn Rows + '_ {
    /// [`Facts::len`].
    pub fn len(&self) -> u64 {
        self.facts().len
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.facts().len == 0
    }

    /// [`Facts::data_type`].
    pub fn data_type(&self) -> &DataType {
        &self.facts().data_type
    }

    /// [`Facts::nullable`].
    pub fn nullable(&self) -> bool {
        self.facts().nullable
    }

    /// [`Facts::hints`].
    pub fn hints(&self) -> &Hints {
        &self.facts().hints
    }

    /// [`Facts::natural_rows`].
    pub fn natural_rows(&self) -> Option<u64> {
        self.facts().natural_rows
    }

    /// [`Facts::stride`].
    pub fn stride(&self) -> Option<u64> {
        self.facts().stride
    }

    /// [`Facts::cuts`].
    pub fn cuts(&self) -> Option<&Cuts> {
        self.facts().cuts.as_ref()
    }

    /// [`StoredFacts::datatype`].
    pub fn stored_type(&self) -> Option<&Datatype> {
        self.facts().stored.datatype.as_deref()
    }

    /// [`StoredFacts::width`].
    pub fn stored_width(&self) -> Option<u64> {
        self.facts().stored.width
    }

    /// [`StoredFacts::decoded`], as far as known now.
    pub fn is_decoded(&self) -> bool {
        match &self.facts().stored.decoded {
            ChunkDecoding::Never => false,
            ChunkDecoding::Always => true,
            ChunkDecoding::Asked(dataset) => dataset.is_decoded(),
        }
    }

    /// [`Facts::codes`].
    pub fn code_count(&self) -> u64 {
        self.facts().codes
    }

    /// [`Facts::outline_tells_nulls`].
    pub fn outline_tells_nulls(&self) -> bool {
        self.facts().outline_tells_nulls
    }

    /// The end of the run of rows from `row` on which are [alike](Facts::alike); `row` where none is known.
    ///
    /// # Errors
    /// As [`Rows::array`].
    pub fn alike_until(&self, row: u64, interrupt: &Interrupt) -> Result<u64, Error> {
        let facts = self.facts();
        let end = facts.alike.0.as_ref().map_or(Ok(row), |find| find(row, interrupt))?;
        Ok(end.clamp(row, facts.len.max(row)))
    }

    /// [`Facts::fields_lie_apart`].
    pub fn fields_lie_apart(&self) -> bool {
        self.facts().fields_lie_apart
    }
}
