//! Builds the view of each file of a group.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bstr::BString;
use serde_json::Value;

use super::contents::Contents;
use super::datasets::{self, CommonField, Tallies};
use super::file::{Later, ObjectAttributes, ShownFile};
use super::listing::{Child, ColumnView, ElementsForm};
use super::walk::below;
use super::{Error, OpenedSource, changes};
use crate::catalogue::{Dataset, Fill, Layout, ObjectId};
use crate::dialects::stated;
use crate::indexes::Trust;
use crate::learnt::pass::Keeper;
use crate::source::Interrupt;
use crate::store::{NanPolicy, Rows};
use crate::table::{Column, IndexContent, Single, SingleFile, SingleForm, Table};
use crate::views::View;
use crate::views::constant::ConstantView;
use crate::views::ipc::{IpcColumn, IpcView};
use crate::views::metadata::{self, Lines};
use crate::views::npy::{NpyType, StoredView};
use crate::views::parquet::{ParquetColumn, ParquetView};
use crate::views::png::{PicturedArray, PngView};
use crate::views::text::{BlockCache, TextColumn, TextFormat, TextView};

/// A table with more columns than this gets its views at first use.
const MANY_COLUMNS: usize = 1024;

/// Builds the files of a group, or of selected rows of its table.
#[derive(Clone)]
pub(crate) struct FileMaker {
    pub opened: Arc<OpenedSource>,
    pub id: ObjectId,
    /// HDF5 path.
    pub path: String,
    /// Name of the link.
    pub name: BString,
    /// The selection, if not all rows are shown. Facts learnt by passes belong to this selection alone.
    pub selection: Option<String>,
    /// The directory, or the file in it, in lists of work.
    pub title: Arc<str>,
}

impl FileMaker {
    /// Builds the file behind a name, `child` of the directory or of its `columns/`.
    pub fn file(&self, contents: &Arc<Contents>, child: &Child, name: &BString) -> Result<ShownFile, Error> {
        let columns = if matches!(child, Child::Column(..)) { "columns/" } else { "" };
        Self { title: below(&self.title, &format!("{columns}{name}")).into(), ..self.clone() }.made(contents, child)
    }

    fn made(&self, contents: &Arc<Contents>, child: &Child) -> Result<ShownFile, Error> {
        let (view, attributes): (Arc<dyn View>, ObjectAttributes) = match child {
            Child::Metadata => {
                let (shown, path, opened) = (contents.clone(), self.path.clone(), self.opened.clone());
                let view = ConstantView::new(self.blocks(), move |interrupt| {
                    shown.metadata(&opened, &path, Lines::Many, interrupt)
                });
                (Arc::new(view), self.attributes(contents))
            }
            Child::Indexes => {
                let table = contents.table.clone().ok_or(Error::NotFound)?;
                (
                    Arc::new(ConstantView::new(self.blocks(), move |_| Ok(metadata::indexes(&table)))),
                    self.attributes(contents),
                )
            }
            Child::Changes => {
                let (opened, id, path) = (self.opened.clone(), self.id, self.path.clone());
                let view =
                    ConstantView::costly(self.blocks(), move |interrupt| changes::text(&opened, id, &path, interrupt));
                (Arc::new(view), self.attributes(contents))
            }
            Child::Table(..) | Child::Parquet | Child::Arrow => {
                let table = contents.table.clone().ok_or(Error::NotFound)?;
                let view = if table.columns.len() > MANY_COLUMNS {
                    let (files, child) = (self.clone(), child.clone());
                    Arc::new(Later::new(move || files.whole(&table, &child)))
                } else {
                    self.whole(&table, child)
                };
                (view, self.attributes(contents))
            }
            Child::Whole(form) => {
                let table = contents.table.as_ref().ok_or(Error::NotFound)?;
                (elements(table.whole.as_ref().ok_or(Error::NotFound)?, *form)?, self.attributes(contents))
            }
            Child::Column(position, view) => {
                let table = contents.table.as_ref().ok_or(Error::NotFound)?;
                let column = table.columns.get(*position).ok_or(Error::NotFound)?;
                let attributes =
                    ObjectAttributes::of_member(column.name.clone(), column.attributes.clone(), column.id.object);
                (self.column(table, column, *position, *view)?, attributes)
            }
            Child::Single(array, file) => {
                let interrupt = Interrupt::new();
                let single = array.single(self.opened.file()?, &interrupt).map_err(Error::Io)?;
                let files = Self { id: array.dataset.id, path: array.path.clone(), ..self.clone() };
                let (name, dataset) = (array.name.clone(), &array.dataset);
                let attributes = ObjectAttributes::of_member(name, dataset.attributes.clone(), dataset.id);
                let view = files.single(&single, file, dataset)?;
                return Ok(ShownFile::new(&self.opened, view, attributes).of_dataset(array.clone(), single));
            }
            Child::Page | Child::Columns | Child::Where | Child::Directory(_) | Child::Link(_) => {
                return Err(Error::NotAFile);
            }
        };
        Ok(ShownFile::new(&self.opened, view, attributes))
    }

    /// The attributes of the group's object.
    fn attributes(&self, contents: &Contents) -> ObjectAttributes {
        ObjectAttributes::new(self.name.clone(), contents.attributes.clone())
    }

    /// The view of a whole table.
    fn whole(&self, table: &Table, child: &Child) -> Arc<dyn View> {
        let columns = table.columns.iter().enumerate().filter(|(_, column)| column.in_table);
        match child {
            Child::Parquet => {
                self.parquet(columns.filter_map(|(at, column)| self.parquet_column(table, at, column)).collect())
            }
            Child::Table(format, limit) => {
                self.text("table", columns.filter_map(|(_, column)| text_column(column)).collect(), *format, *limit)
            }
            _ => self.arrow("table", self.arrow_columns(table)),
        }
    }

    /// The cache of rendered blocks.
    pub fn blocks(&self) -> Arc<BlockCache> {
        self.opened.session().blocks.clone()
    }

    fn text(&self, what: &str, columns: Vec<TextColumn>, format: TextFormat, limit: Option<u64>) -> Arc<dyn View> {
        // The number of columns is part of the key: facts learnt while a column was unreadable must not be used later.
        let keeper = Some(self.keeper(&format!("{what} of {}", columns.len())));
        Arc::new(TextView::new(columns, format, &self.opened.session().csv, limit, self.blocks(), keeper))
    }

    /// The text of one column. Programs that read a value per line skip an empty line, or fail at it, so NaN is written
    /// as `NaN`.
    fn alone(&self, what: &str, column: &Column, format: TextFormat) -> Arc<dyn View> {
        let is_lines = matches!(format, TextFormat::Csv | TextFormat::Txt);
        let column = if is_lines { Cow::Owned(column.with_nan_kept()) } else { Cow::Borrowed(column) };
        self.text(what, text_column(&column).into_iter().collect(), format, None)
    }

    /// A column of a Parquet file; `None`: the column has no place in one.
    fn parquet_column(&self, table: &Table, position: usize, column: &Column) -> Option<ParquetColumn> {
        let parquet = ParquetColumn::new(column).ok()?;
        let session = self.opened.session();
        let learner = column.learner.clone().filter(|_| session.parquet_statistics);
        let mut forms = table.indexes.iter().filter_map(|index| index.form.as_ref().ok());
        let bitmap =
            forms.find(|form| form.column == column.name && matches!(form.kind, IndexContent::Bitmap { .. })).cloned();
        let parquet = parquet.with_bitmap(bitmap, session.parquet_statistics && session.trust != Trust::Ignore);
        Some(parquet.told_by(learner).kept_by(self.keeper(&column_what(position, column))))
    }

    /// The table as one file of a dataset: the dataset's columns, in its order and with its types. `tallies` counts
    /// values that a cast rounds or loses, by the column's path.
    ///
    /// # Errors
    /// [`Error::Stale`] if the table has other columns by now.
    pub fn part(&self, table: &Table, fields: &[CommonField], tallies: &mut Tallies) -> Result<Arc<dyn View>, Error> {
        let places: HashMap<&BString, usize> =
            table.columns.iter().enumerate().map(|(at, column)| (&column.name, at)).collect();
        let columns = fields.iter().map(|field| {
            let Some(at) = places.get(&field.name).copied().filter(|at| table.columns[*at].in_table) else {
                let absent = datasets::absent(table, field)?;
                let keeper = self.cast_keeper(&format!("no column {:?}", field.name), field);
                return Some(ParquetColumn::new(&absent).ok()?.plain().kept_by(keeper));
            };
            let own = table.columns.get(at)?;
            let tally = Arc::default();
            let cast = datasets::cast(own, field, &tally)?;
            let parquet = self.parquet_column(table, at, &cast)?.plain();
            let is_own = match (&cast.rows, &own.rows) {
                (Ok(cast), Ok(own)) => Arc::ptr_eq(cast, own),
                _ => false,
            };
            if is_own {
                return Some(parquet);
            }
            tallies.push((datasets::path_of(own), tally));
            Some(parquet.kept_by(self.cast_keeper(&column_what(at, own), field)))
        });
        let columns: Option<Vec<ParquetColumn>> = columns.collect();
        Ok(self.parquet(columns.ok_or(Error::Stale)?))
    }

    fn parquet(&self, columns: Vec<ParquetColumn>) -> Arc<dyn View> {
        Arc::new(ParquetView::new(columns, self.blocks()))
    }

    /// A column as a mount's Arrow files show it. The header of an Arrow batch counts the nulls of every column, so a
    /// reader of one column would cause all others to be decoded: NaN stays a value here, unless `--nan` says
    /// otherwise.
    fn arrow_column<'a>(&self, column: &'a Column) -> Cow<'a, Column> {
        match self.opened.store().nan() {
            NanPolicy::Auto => Cow::Owned(column.with_nan_kept()),
            NanPolicy::Null | NanPolicy::Value => Cow::Borrowed(column),
        }
    }

    fn arrow_columns(&self, table: &Table) -> Vec<IpcColumn> {
        let columns = table.columns.iter().filter(|column| column.in_table);
        columns.filter_map(|column| IpcColumn::new(&self.arrow_column(column)).ok()).collect()
    }

    fn arrow(&self, what: &str, columns: Vec<IpcColumn>) -> Arc<dyn View> {
        Arc::new(IpcView::new(columns, self.blocks(), Some(self.keeper(what))))
    }

    /// The keeper of facts learnt about `what` in this group. Two paths that are not UTF-8 may look alike as text, so
    /// the key includes the object's number.
    pub fn keeper(&self, what: &str) -> Keeper {
        // Facts that rest on unverified indexes must not be kept for sessions that trust none.
        let trusting = if self.opened.session().trust == Trust::Trust { " trusting" } else { "" };
        let rows = self.selection.as_ref().map(|selection| format!("{trusting} where/{selection}")).unwrap_or_default();
        // Instants have other texts and sizes than the stored numbers.
        let times = if self.opened.store().shows_times() { " times" } else { "" };
        let nan = match self.opened.store().nan() {
            NanPolicy::Auto => " nan by software",
            NanPolicy::Null => " nan missing",
            NanPolicy::Value => "",
        };
        let what = format!("{} {:?}{times}{nan}{rows} {what}", self.path, self.id);
        Keeper { file: self.opened.opening().clone(), what, title: self.title.clone() }
    }

    /// The keeper of facts learnt about `what` as a field of a dataset.
    fn cast_keeper(&self, what: &str, field: &CommonField) -> Keeper {
        self.keeper(&format!("{what} as {} {}", field.data_type, field.nullable))
    }

    /// Builds a file of a dataset that is a table by itself.
    fn single(&self, single: &Single, file: &SingleFile, dataset: &Dataset) -> Result<Arc<dyn View>, Error> {
        let columns = &single.whole;
        let whole = single.whole.columns.first().ok_or(Error::NotFound)?;
        let rows = whole.rows.as_ref().map_err(|reason| Error::Io(reason.to_string()))?;
        Ok(match &file.form {
            SingleForm::Csv if single.parts.is_empty() => self.alone("whole", whole, TextFormat::Csv),
            SingleForm::Csv => {
                let parts = labels(single).unwrap_or_else(|| single.parts.clone());
                self.text("parts", vec![TextColumn::spread(rows.clone(), parts)], TextFormat::Csv, None)
            }
            SingleForm::Txt => self.alone("whole", whole, TextFormat::Txt),
            SingleForm::Ndjson => self.alone("whole", whole, TextFormat::Ndjson),
            SingleForm::JsonValues => self.alone("whole", whole, TextFormat::JsonValues),
            SingleForm::Text => {
                let text = single.text.clone().ok_or(Error::NotFound)?;
                self.text("text", vec![TextColumn::new(BString::default(), text)], TextFormat::Verbatim, None)
            }
            SingleForm::Parquet => {
                let all = columns.columns.iter().enumerate();
                self.parquet(all.filter_map(|(at, column)| self.parquet_column(columns, at, column)).collect())
            }
            SingleForm::Arrow => self.arrow("columns", self.arrow_columns(columns)),
            SingleForm::Raw => match &whole.stored_strings {
                Some(strings) => self.strings("strings", strings),
                None => elements(rows, ElementsForm::Raw)?,
            },
            SingleForm::Npy => {
                let dtype = NpyType::of(&single.datatype).map_err(|error| Error::Io(error.to_string()))?;
                Arc::new(stored(rows)?.npy(&dtype, &single.shape).ok_or(Error::TooLarge)?)
            }
            SingleForm::Png(pixels) => {
                let array = pictured(single, dataset).ok_or(Error::NotFound)?;
                Arc::new(
                    PngView::new(pixels, array, single.palette.clone(), self.keeper("png")).ok_or(Error::NotFound)?,
                )
            }
            SingleForm::Pixmap(header) => Arc::new(stored(rows)?.behind(header.clone()).ok_or(Error::TooLarge)?),
        })
    }

    /// A column's strings as stored, each followed by a NUL.
    fn strings(&self, what: &str, strings: &Arc<dyn Rows>) -> Arc<dyn View> {
        let column = TextColumn::new(BString::default(), strings.clone());
        self.text(what, vec![column], TextFormat::NulTerminated, None)
    }

    fn column(
        &self,
        table: &Table,
        column: &Column,
        position: usize,
        view: ColumnView,
    ) -> Result<Arc<dyn View>, Error> {
        let what = column_what(position, column);
        let rows = column.rows.as_ref().map_err(|reason| Error::Io(reason.to_string()))?;
        Ok(match view {
            ColumnView::Arrow => {
                let column = self.arrow_column(column);
                self.arrow(&what, vec![IpcColumn::new(&column).map_err(|misfit| Error::Io(misfit.to_string()))?])
            }
            ColumnView::Text(format) => self.alone(&what, column, format),
            ColumnView::Raw => match &column.stored_strings {
                Some(strings) => self.strings(&what, strings),
                None => elements(rows, ElementsForm::Raw)?,
            },
            ColumnView::Parquet => {
                self.parquet(vec![self.parquet_column(table, position, column).ok_or(Error::NotFound)?])
            }
            ColumnView::Npy => elements(rows, ElementsForm::Npy)?,
        })
    }
}

/// The array of a dataset, for pictures; `None`: it has none.
pub(super) fn pictured(single: &Single, dataset: &Dataset) -> Option<PicturedArray> {
    let rows = single.whole.columns.first()?.rows.as_ref().ok()?;
    let missing = match stated::fill(&dataset.datatype, &dataset.attributes) {
        Fill::Explicit(elements) => Some(elements.bytes),
        _ => None,
    };
    let chunk = match &dataset.layout {
        Layout::Chunked { chunk, .. } => Some(chunk.as_slice()),
        _ => None,
    };
    PicturedArray::new(&single.shape, chunk, rows, missing.as_deref())
}

fn stored(rows: &Arc<dyn Rows>) -> Result<StoredView, Error> {
    StoredView::raw(rows.clone()).ok_or(Error::NotFound)
}

/// A file of rows as stored.
fn elements(rows: &Arc<dyn Rows>, form: ElementsForm) -> Result<Arc<dyn View>, Error> {
    let stored = stored(rows)?;
    Ok(match form {
        ElementsForm::Raw => Arc::new(stored),
        ElementsForm::Npy => {
            let dtype = NpyType::of(rows.stored_type().ok_or(Error::NotFound)?);
            let dtype = dtype.map_err(|error| Error::Io(error.to_string()))?;
            Arc::new(stored.npy(&dtype, &[rows.len()]).ok_or(Error::TooLarge)?)
        }
    })
}

fn text_column(column: &Column) -> Option<TextColumn> {
    Some(TextColumn::new(column.name.clone(), column.shown().ok()?))
}

/// The column labels of an array as text; `None`: it does not have one label per column.
fn labels(single: &Single) -> Option<Vec<BString>> {
    let rows = single.labels.as_ref()?;
    let labels = metadata::json_values(rows.array(0..rows.len(), &Interrupt::new()).ok()?).ok()?;
    let labels = labels.into_iter().map(|label| match label {
        Value::String(text) => Some(text.into()),
        Value::Number(number) => Some(number.to_string().into()),
        _ => None,
    });
    let labels: Vec<BString> = labels.collect::<Option<_>>()?;
    let distinct: HashSet<&BString> = labels.iter().collect();
    (distinct.len() == labels.len()).then_some(labels)
}

/// The name of a column in a [`Keeper`]'s keys.
fn column_what(position: usize, column: &Column) -> String {
    format!("column {position} {:?}", column.name)
}
