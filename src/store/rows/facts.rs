//! Facts of rows: what is known before one is read.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use arrow_schema::DataType;

use super::{Cuts, Hints, Rows};
use crate::catalogue::Datatype;
use crate::source::Interrupt;
use crate::store::Error;

/// Facts of some rows, made once by their constructor. A wrapper clones those of what it wraps and changes what it
/// changes: `Facts { nullable: true, ..inner.facts().clone() }`. A fact that it does not name is kept, and giving one
/// up takes a word.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Number of rows.
    pub len: u64,
    /// Arrow type of [`Rows::array`].
    pub data_type: DataType,
    /// Whether [`Rows::array`] may hold nulls.
    pub nullable: bool,
    /// Bounds of the values. They make a file smaller, or its size arithmetic; they never change a value.
    pub hints: Hints,
    /// Rows in a chunk: the natural grain of reading. `None` where rows lie in one run.
    pub natural_rows: Option<u64>,
    /// Bytes from a row to the next, those of other columns in between: reading one row decodes a chunk with all of
    /// them. `None` where rows lie by themselves.
    pub stride: Option<u64>,
    /// Where rows of one origin end: statistics and row groups keep to it. `None` where all rows are of one.
    pub cuts: Option<Cuts>,
    /// The bytes of rows as stored.
    pub stored: StoredFacts,
    /// Number of codes, 256 or 65,536, where rows are stored as codes of one or two bytes, each of which stands for one
    /// finite number, or for a missing one. Elsewhere 0.
    pub codes: u64,
    /// Whether [`Rows::outline`] is there and tells as well which rows, and which of their parts, are missing.
    pub outline_tells_nulls: bool,
    /// Whether rows are compounds each of whose fields [`Rows::array_for_field`] reads without the others.
    pub fields_lie_apart: bool,
    /// Where rows are alike because nothing of them was ever stored.
    pub alike: Alike,
    /// The datasets whose chunk indexes are examined before the first read.
    pub containers: Containers,
}

/// Facts of the bytes of rows as stored: after filters and encodings.
#[derive(Clone, Debug, Default)]
pub struct StoredFacts {
    /// Type of the elements that [`append`](super::StoredBytes::append) gives. `None` where rows are neither the
    /// elements of one dataset nor decoded to elements of one width.
    pub datatype: Option<Arc<Datatype>>,
    /// Bytes of a row, as [`append`](super::StoredBytes::append) gives them; `None` where widths differ.
    pub width: Option<u64>,
    /// Whether the bytes come out of decoded chunks, not out of the file as they are.
    pub decoded: Decoded,
}

/// Whether bytes come out of decoded chunks.
#[derive(Clone, Debug, Default)]
pub enum Decoded {
    /// They lie in the file as they are.
    #[default]
    Never,
    /// They are decoded.
    Always,
    /// A dataset tells: a virtual one knows its sources once it was read.
    Asked(Arc<dyn Container>),
}

/// Ends of runs of rows that are alike because nothing of them was ever stored.
#[derive(Clone, Default)]
pub struct Alike(Option<Arc<FindEnd>>);

/// Finds the end of the run that a row is in.
type FindEnd = dyn Fn(u64, &Interrupt) -> Result<u64, Error> + Send + Sync;

impl Alike {
    /// Runs whose ends `find` gives: of the run that a row is in, or that row or one before it where no run is known.
    /// It reads no values.
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

/// A dataset, or a column of blocks, that rows are read from.
pub trait Container: Debug + Send + Sync {
    /// Whether reading it decodes chunks, as far as it knows.
    fn is_decoded(&self) -> bool;

    /// Looks where its chunks lie in the file, so that a damaged chunk index is met and reported. Reads no chunk.
    ///
    /// # Errors
    /// See [`Error`].
    fn examine(&self, interrupt: &Interrupt) -> Result<(), Error>;
}

/// The containers of some rows, in the order in which a reader needs them.
#[derive(Clone, Debug, Default)]
pub struct Containers(Arc<[Arc<dyn Container>]>);

impl Containers {
    /// A single one.
    pub fn one(container: Arc<impl Container + 'static>) -> Self {
        Self::from_iter([container as Arc<dyn Container>])
    }

    /// Those of several rows.
    pub fn of_all<'a>(rows: impl IntoIterator<Item = &'a Arc<dyn Rows>>) -> Self {
        rows.into_iter().flat_map(|rows| rows.facts().containers.0.iter().cloned()).collect()
    }

    /// Examines each; see [`Container::examine`].
    ///
    /// # Errors
    /// The first one.
    pub fn examine(&self, interrupt: &Interrupt) -> Result<(), Error> {
        self.0.iter().try_for_each(|container| container.examine(interrupt))
    }
}

impl FromIterator<Arc<dyn Container>> for Containers {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Container>>>(containers: I) -> Self {
        Self(containers.into_iter().collect())
    }
}

impl Facts {
    /// `len` rows of a type, none of which is missing. Nothing else is known.
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
    /// Elements of a datatype, of one width unless they are of variable length.
    pub fn of(datatype: Arc<Datatype>, decoded: Decoded) -> Self {
        Self { width: (!datatype.is_variable()).then_some(datatype.size), datatype: Some(datatype), decoded }
    }
}

/// The facts one by one.
impl dyn Rows + '_ {
    /// [`Facts::len`].
    pub fn len(&self) -> u64 {
        self.facts().len
    }

    /// Whether there is no row.
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

    /// [`StoredFacts::decoded`], by now.
    pub fn is_decoded(&self) -> bool {
        match &self.facts().stored.decoded {
            Decoded::Never => false,
            Decoded::Always => true,
            Decoded::Asked(dataset) => dataset.is_decoded(),
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
