//! Looks at a table without a pass: statistics of blocks where known, and a sample of rows.
//!
//! | part | task |
//! | --- | --- |
//! | `sample` | where the sample lies, and how much may be decoded |
//! | `values` | from arrays to numbers and labels |
//! | `draw` | from these to bars, lines and figures |
//! | `edges` | the first and the last rows |
//! | `words` | numbers and instants as people read them |

mod draw;
mod edges;
mod sample;
#[cfg(test)]
mod tests;
mod values;
pub(super) mod words;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::source::Interrupt;
use crate::store::statistics::Summary;
use crate::store::{Error, Rows, for_each_part};
use crate::table::{Column, Table};
use draw::Sampled;
pub use edges::{Cell, instant};
use sample::{Grain, Group};
use values::Piece;
pub(super) use values::{Form, Kind};

/// Most stretches of rows in a sample.
pub const STRETCHES: usize = 64;

/// Rows of a stretch.
pub const STRETCH: u64 = 1024;

/// Most bytes that are decoded for one look at a table.
pub const MOST_DECODED: u64 = 64 << 20;

/// Most columns with a picture.
pub const MOST_PICTURES: usize = 200;

/// A summary of a table made without a pass: of statistics of blocks where known, and of a sample of rows. The same
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

/// The summary of a column.
#[derive(Clone, Debug)]
pub struct ColumnLook {
    /// How the values are spread, and how they run over the rows; or why there is no picture.
    pub picture: Result<ColumnPicture, NoPicture>,
    /// The figures.
    pub numbers: Figures,
    /// Stretches of the sample, in order.
    pub stretches: Vec<Range<u64>>,
    /// Whether the sample has all rows.
    pub is_whole: bool,
}

/// Why a column has no picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoPicture {
    /// It is beyond the first [`MOST_PICTURES`].
    Beyond,
    /// It has no rows.
    Empty,
    /// All of its sampled values are missing.
    Missing,
    /// Its values have neither an order nor labels: bytes, compounds.
    Type,
    /// Fewer than four stretches fit into the bytes that a page may decode.
    Costly,
    /// It cannot be read, for this reason.
    Unreadable(String),
}

/// The picture of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnPicture {
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
    /// The quantity that bars count by.
    pub of: BarsOf,
    /// Rows of each bar: of the sample, or of all rows if it `rises`.
    pub counts: Vec<u64>,
    /// The first and the last value of the axis, in all digits.
    pub exact: [String; 2],
    /// The same as they are shown.
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

/// The quantity that bars count by.
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
    /// One for each stretch, in order.
    pub stretches: Vec<Stretch>,
    /// The axis of least, median and greatest value.
    pub scale: Scale,
    /// The ends of that axis. `None`: labels, or no finite number.
    pub ends: Option<[f64; 2]>,
    /// Whether values lie beyond the ends.
    pub is_cut: bool,
}

/// The values of a stretch of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stretch {
    /// Its rows.
    pub rows: u64,
    /// Rows without a value.
    pub missing: u64,
    /// Rows whose value is no number (NaN), though not missing.
    pub nans: u64,
    /// Least, median and greatest value: of whole numbers and instants, how far above the least of the sample, unless
    /// the axis is logarithmic. `None`: no value, or labels.
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
    /// Whether it is of all rows; otherwise it is of the sample, and pages show `≈`.
    pub is_exact: bool,
}

/// The figures of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
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
    /// The cells of each column of [`Look::columns`], in the order of the rows. Empty: the column has none.
    pub cells: Vec<Vec<Cell>>,
}

/// A column that is read.
struct Asked {
    rows: Arc<dyn Rows>,
    kind: Kind,
    /// Statistics of all rows, as published.
    known: Option<Summary>,
    /// Labels in its set.
    labels: Option<u64>,
    /// Whether its rows are those of the table.
    is_in_table: bool,
    read: Mutex<Read>,
}

/// The parts of a column that were read.
#[derive(Default)]
struct Read {
    pieces: BTreeMap<usize, Piece>,
    cells: [Vec<Cell>; 2],
    /// Why parts could not be read. The page shows the first reason, whichever part failed first.
    failed: BTreeMap<Part, String>,
}

/// A part of the rows to read: a stretch of the sample, or rows at an end of the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Stretch(usize),
    Edge(usize),
}

impl Look {
    /// Looks at a table. With `statistics`, those of blocks that files publish are used; without, the same values give
    /// the same look everywhere. A column that cannot be read says so itself.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn of(table: &Table, statistics: bool, interrupt: &Interrupt) -> Result<Self, Error> {
        Self::within(table, statistics, MOST_DECODED, interrupt)
    }

    /// As [`Look::of`], but decodes `most` bytes at most.
    ///
    /// # Errors
    /// As [`Look::of`].
    pub fn within(table: &Table, statistics: bool, most: u64, interrupt: &Interrupt) -> Result<Self, Error> {
        let edges = edges::ranges(table.rows);
        let asked = table.columns.iter().enumerate().map(|(at, column)| match at {
            0..MOST_PICTURES => Asked::of(table, column, statistics),
            _ => Err(NoPicture::Beyond),
        });
        let asked: Vec<Result<Asked, NoPicture>> = asked.collect();
        let read: Vec<(usize, &Asked)> =
            asked.iter().enumerate().filter_map(|(at, one)| Some((at, one.as_ref().ok()?))).collect();
        let wishes = read
            .iter()
            .map(|(at, one)| (Grain::of(one.rows.as_ref(), &table.columns[*at].id), one.kind != Kind::Plain));
        let groups = sample::plan(&wishes.collect::<Vec<_>>(), most);
        // Columns that lie in the same chunks are read together, while these are in memory.
        let parts = groups.iter().flat_map(|group| {
            let edges = (0..2).filter(|_| group.has_edges).map(Part::Edge);
            edges.chain((0..group.stretches.len()).map(Part::Stretch)).map(move |part| (group, part))
        });
        let parts: Vec<(&Group, Part)> = parts.collect();
        for_each_part(parts.len() as u64, interrupt, |at| {
            let (group, part) = parts[at as usize];
            group.members.iter().try_for_each(|member| read[*member].1.read(group, part, &edges, interrupt))
        })?;
        let drawn: Vec<Mutex<Option<ColumnLook>>> = asked.iter().map(|_| Mutex::default()).collect();
        for_each_part(asked.len() as u64, interrupt, |at| -> Result<(), Error> {
            let look = match &asked[at as usize] {
                Ok(asked) => asked.look(),
                Err(plain) => ColumnLook::plain(plain.clone()),
            };
            *drawn[at as usize].lock() = Some(look);
            Ok(())
        })?;
        let rows = edge_rows(table.rows);
        let cells = asked.iter().map(|one| match one {
            Ok(one) if one.is_in_table => {
                let mut cells = std::mem::take(&mut one.read.lock().cells).concat();
                cells.resize(rows.len(), Cell::Unread);
                cells
            }
            _ => Vec::new(),
        });
        let cells = cells.collect();
        let columns = drawn.into_iter().filter_map(Mutex::into_inner).collect();
        Ok(Self { rows: table.rows, columns, edges: EdgeRows { rows, cells } })
    }
}

impl Asked {
    fn of(table: &Table, column: &Column, statistics: bool) -> Result<Self, NoPicture> {
        let rows = column.shown().map_err(|reason| NoPicture::Unreadable(reason.to_string()))?;
        if rows.is_empty() {
            return Err(NoPicture::Empty);
        }
        let learner = column.learner.as_ref().filter(|learner| statistics && learner.rows() == rows.len());
        let known = learner.and_then(|learner| learner.shown()).and_then(|known| known.over(0..known.rows()));
        let known = known.and_then(|known| match column.times() {
            Some(times) => times.summary(known),
            None => Some(known),
        });
        let labels = column.categories.and_then(|at| table.categories.get(at)).and_then(|set| set.labels.as_ref().ok());
        let (kind, read) = (Kind::of(rows.data_type()), Mutex::default());
        Ok(Self { kind, known, labels: labels.map(|labels| labels.len()), is_in_table: column.in_table, rows, read })
    }

    /// Reads a part, or keeps the reason why it cannot be read.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    fn read(&self, group: &Group, part: Part, edges: &[Range<u64>; 2], interrupt: &Interrupt) -> Result<(), Error> {
        let read = match part {
            Part::Stretch(at) => self.read_stretch(group, at, interrupt),
            Part::Edge(at) => self.read_edge(edges, at, interrupt),
        };
        match read {
            Err(error) if !matches!(error, Error::Interrupted(_)) => {
                self.read.lock().failed.insert(part, error.to_string());
                Ok(())
            }
            read => read,
        }
    }

    fn read_stretch(&self, group: &Group, at: usize, interrupt: &Interrupt) -> Result<(), Error> {
        if self.kind != Kind::Plain {
            let stretch = group.stretches[at].clone();
            let piece = values::read(self.rows.as_ref(), self.kind, stretch, group.most, interrupt)?;
            self.read.lock().pieces.extend(piece.map(|piece| (at, piece)));
        }
        Ok(())
    }

    fn read_edge(&self, edges: &[Range<u64>; 2], at: usize, interrupt: &Interrupt) -> Result<(), Error> {
        if self.is_in_table {
            let cells = edges::cells(self.rows.as_ref(), edges[at].clone(), interrupt)?;
            self.read.lock().cells[at] = cells;
        }
        Ok(())
    }

    fn look(&self) -> ColumnLook {
        let mut read = self.read.lock();
        if let Some((_, reason)) = read.failed.pop_first() {
            return ColumnLook::plain(NoPicture::Unreadable(reason));
        }
        let pieces: Vec<Piece> = std::mem::take(&mut read.pieces).into_values().collect();
        let is_whole = pieces.iter().map(Piece::row_count).sum::<u64>() == self.rows.len();
        let of = Sampled {
            kind: self.kind,
            rows: self.rows.len(),
            pieces: &pieces,
            known: self.known.clone(),
            labels: self.labels,
            is_whole,
        };
        let (picture, numbers) = of.drawn();
        let is_enough = is_whole || pieces.len() as u64 >= sample::FEWEST || self.kind == Kind::Plain;
        let picture = if is_enough { picture } else { Err(NoPicture::Costly) };
        let stretches = pieces.into_iter().map(|piece| piece.rows).collect();
        ColumnLook { picture, numbers, stretches, is_whole }
    }
}

/// Numbers of the first and the last rows of a table of `rows` rows.
pub fn edge_rows(rows: u64) -> Vec<u64> {
    edges::ranges(rows).into_iter().flatten().collect()
}

impl Labels {
    /// The label with this text, if it is one of the commonest.
    pub fn named(&self, text: &str) -> Option<&Label> {
        self.commonest.iter().find(|label| label.text == text)
    }
}

impl Stretch {
    /// Rows whose value is missing or no number.
    pub fn gaps(&self) -> u64 {
        self.missing + self.nans
    }
}

impl Values {
    /// Whether bars count all rows, those between stretches in proportion.
    pub fn rises(&self) -> bool {
        matches!(self, Self::Bars(bars) if bars.rises)
    }

    /// Whether bars count lists by their lengths.
    pub fn are_lengths(&self) -> bool {
        matches!(self, Self::Bars(bars) if bars.of == BarsOf::Lengths)
    }
}

impl EdgeRows {
    /// The first and the last values of the only column: `0, 1, 2, 3, 4, 5, … 98, 99`.
    pub fn in_words(&self) -> String {
        let cells = self.rows.iter().zip(self.cells.first().into_iter().flatten());
        let (mut text, mut next) = (String::new(), 0);
        for (row, cell) in cells {
            text += match (next, *row > next) {
                (0, _) => "",
                (_, true) => ", … ",
                (_, false) => ", ",
            };
            next = row + 1;
            text += match cell {
                Cell::Text(text) => text,
                Cell::Missing => "missing",
                Cell::Unread => "…",
            };
        }
        text
    }
}

impl ColumnLook {
    /// Whether it shows how numbers, instants or lengths run over the rows.
    pub fn has_band(&self) -> bool {
        matches!(&self.picture, Ok(ColumnPicture { values: Values::Bars(bars), .. }) if bars.of != BarsOf::Bytes)
    }

    /// Rows of the sample.
    pub fn sampled(&self) -> u64 {
        self.stretches.iter().map(|rows| rows.end - rows.start).sum()
    }

    /// A column without a picture and without figures.
    fn plain(plain: NoPicture) -> Self {
        Self { picture: Err(plain), numbers: Figures::default(), stretches: Vec::new(), is_whole: false }
    }
}
