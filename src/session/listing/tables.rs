//! The files of a table, and the reasons why some cannot be shown.

use bstr::BString;

use super::entries::{
    COLUMNS, Child, ColumnView, ElementsForm, HEAD, INDEXES, Listing, ListingEntry, RESERVED_IN_TABLES, SUFFIXES,
    TABLE_ARROW, TABLE_CSV, TABLE_NDJSON, TABLE_NPY, TABLE_PARQUET, TABLE_RAW, WHERE,
};
use crate::session::names;
use crate::store::Rows;
use crate::table::{Column, Single, SingleFile, SingleForm, Table};
use crate::views::Misfit;
use crate::views::ipc::{self, IpcColumn};
use crate::views::metadata::{ShownAs, ShownMember};
use crate::views::npy::NpyType;
use crate::views::parquet::{ParquetColumn, ParquetView};
use crate::views::png::PngView;
use crate::views::text::TextFormat;

/// Number of rows in `head.csv`.
const HEAD_ROWS: u64 = 1000;

/// Largest size that `stat` can report.
const LARGEST: u64 = i64::MAX as u64;

/// Adds the files and directories of a table to its directory.
pub(crate) fn list(table: &Table, listing: &mut Listing, members: &mut Vec<ShownMember>) {
    if !table.only_adds {
        listing.add(INDEXES.into(), Child::Indexes);
    }
    if table.columns.iter().any(|column| column.in_table) {
        listing.add(HEAD.into(), Child::Table(TextFormat::Csv, Some(HEAD_ROWS)));
        if text_fits(table.rows).is_ok() {
            listing.add(TABLE_CSV.into(), Child::Table(TextFormat::Csv, None));
            listing.add(TABLE_NDJSON.into(), Child::Table(TextFormat::Ndjson, None));
        }
    }
    for (name, child, shown) in whole_views(table) {
        match shown {
            Ok(()) => listing.add(name.into(), child),
            Err(reason) => members.push(ShownMember {
                not_shown: vec![reason.to_string().into()],
                ..ShownMember::new(&BString::from(name), "view")
            }),
        }
    }
    if !table.only_adds {
        listing.add(COLUMNS.into(), Child::Columns);
    }
    if table.columns.iter().any(|column| column.in_table) {
        listing.add(WHERE.into(), Child::Where);
    }
}

/// The views of a whole table, each with the reason if this table cannot have it.
fn whole_views(table: &Table) -> Vec<(&'static str, Child, Result<(), Misfit>)> {
    let mut views = Vec::new();
    if table.columns.iter().any(|column| column.in_table) {
        views.extend([(TABLE_PARQUET, Child::Parquet, parquet(table)), (TABLE_ARROW, Child::Arrow, arrow(table))]);
    }
    if let Some(rows) = &table.whole {
        views.extend([
            (TABLE_NPY, Child::Whole(ElementsForm::Npy), npy(rows.as_ref())),
            (TABLE_RAW, Child::Whole(ElementsForm::Raw), elements(rows.as_ref())),
        ]);
    }
    views
}

/// Lists the directory `columns/`.
pub(crate) fn list_columns(table: &Table) -> Listing {
    let mut listing = Listing::default();
    for (position, column) in table.columns.iter().enumerate() {
        let shown = ColumnView::ALL.iter().map(|(_, view)| u8::from(column_view(column, *view).is_ok()));
        let shown = shown.enumerate().fold(0, |all, (at, one)| all | one << at);
        listing.push(ListingEntry::Column(names::encode(&column.name), position, shown));
    }
    listing
}

/// Describes each column's views for `metadata.json`.
pub(crate) fn describe_columns(table: &Table) -> impl Iterator<Item = ShownMember> + Clone {
    table.columns.iter().map(|column| {
        let mut member = ShownMember::new(&column.name, "column");
        if table.only_adds {
            return member;
        }
        let suffixes = ColumnView::ALL.into_iter().filter_map(|(suffix, view)| match column_view(column, view) {
            Ok(()) => Some(suffix),
            Err(reason) => {
                member.not_shown.push(format!("{suffix}: {reason}").into());
                None
            }
        });
        let suffixes = suffixes.collect();
        member.shown_as = ShownAs::Files(names::encode(&column.name), suffixes);
        member
    })
}

/// The suffixes of the files of a column.
pub(crate) fn column_suffixes(column: &Column) -> Vec<&'static str> {
    let shown = ColumnView::ALL.iter().filter(|(_, view)| column_view(column, *view).is_ok());
    shown.map(|(suffix, _)| *suffix).collect()
}

/// Whether some table may have a file or directory of this name.
pub(crate) fn is_of_tables(name: &[u8]) -> bool {
    RESERVED_IN_TABLES.iter().any(|reserved| name == reserved.as_bytes())
        || SUFFIXES.iter().any(|suffix| name.ends_with(suffix.as_bytes()))
}

/// Whether a file of a dataset can be shown.
pub(crate) fn single_view(single: &Single, file: &SingleFile) -> Result<(), Misfit> {
    let whole = &single.whole;
    match &file.form {
        SingleForm::Csv | SingleForm::Txt | SingleForm::Ndjson | SingleForm::JsonValues | SingleForm::Text => {
            text_fits(whole.rows)
        }
        SingleForm::Parquet => parquet(whole),
        SingleForm::Arrow => arrow(whole),
        SingleForm::Raw | SingleForm::Pixmap(_) => whole.columns.iter().try_for_each(stored),
        SingleForm::Png(pixels) => {
            whole.columns.iter().try_for_each(|column| PngView::check(pixels, readable(column)?))
        }
        SingleForm::Npy => {
            for column in &whole.columns {
                elements(readable(column)?)?;
            }
            NpyType::of(&single.datatype).map(drop).map_err(|error| Misfit::Type(error.to_string()))
        }
    }
}

/// Whether text of this many rows, at least two bytes each, stays within the sizes that `stat` can report.
fn text_fits(rows: u64) -> Result<(), Misfit> {
    let fits = rows.checked_mul(2).is_some_and(|bytes| bytes <= LARGEST);
    if fits { Ok(()) } else { Err(too_large(rows)) }
}

fn too_large(rows: u64) -> Misfit {
    Misfit::Size(format!("{rows} rows pass 2^63 bytes"))
}

/// Whether the columns of `table.csv` that Parquet can represent make a Parquet file.
fn parquet(table: &Table) -> Result<(), Misfit> {
    let columns = table.columns.iter().filter(|column| column.in_table);
    let columns = columns.filter_map(|column| ParquetColumn::new(column).ok());
    if columns.clone().next().is_none() {
        return Err(nothing(table, |column| ParquetColumn::new(column).map(drop)));
    }
    ParquetView::check(columns)
}

/// Whether the table can be an Arrow file.
fn arrow(table: &Table) -> Result<(), Misfit> {
    let mut columns = IpcColumn::each_of_table(table).peekable();
    if columns.peek().is_none() {
        return Err(nothing(table, |column| IpcColumn::new(column).map(drop)));
    }
    ipc::check(columns)
}

/// Why there is nothing to show; a single column gives its own reason.
fn nothing(table: &Table, check: impl Fn(&Column) -> Result<(), Misfit>) -> Misfit {
    let reason = match table.columns.as_slice() {
        [only] => check(only).err(),
        _ => None,
    };
    reason.unwrap_or_else(|| Misfit::Type("no column can be shown".into()))
}

/// The column's rows, if they can be read.
fn readable(column: &Column) -> Result<&dyn Rows, Misfit> {
    column.rows.as_deref().map_err(|reason| Misfit::Rows(reason.clone()))
}

/// Whether a column can have a view.
fn column_view(column: &Column, view: ColumnView) -> Result<(), Misfit> {
    let rows = readable(column)?;
    match view {
        ColumnView::Text(_) => text_fits(rows.len()),
        ColumnView::Parquet => ParquetView::check(&[ParquetColumn::new(column)?]),
        ColumnView::Arrow => IpcColumn::new(column).map(drop),
        ColumnView::Raw => stored(column),
        ColumnView::Npy => npy(rows),
    }
}

/// Whether rows can be a NumPy file.
fn npy(rows: &dyn Rows) -> Result<(), Misfit> {
    let stored =
        rows.stored_type().ok_or_else(|| Misfit::Type("its values are not the elements of one dataset".into()))?;
    elements(rows)?;
    NpyType::of(stored).map(drop).map_err(|error| Misfit::Type(error.to_string()))
}

/// Whether a column's stored bytes can be shown.
fn stored(column: &Column) -> Result<(), Misfit> {
    match &column.stored_strings {
        Some(strings) => text_fits(strings.len()),
        None => elements(readable(column)?),
    }
}

/// Whether all rows have one width.
fn elements(rows: &dyn Rows) -> Result<(), Misfit> {
    let width =
        rows.stored_width().ok_or_else(|| Misfit::Type("elements of variable length have no fixed place".into()))?;
    // A header takes its share of the size.
    match rows.len().checked_mul(width) {
        Some(bytes) if bytes <= LARGEST - (1 << 20) => Ok(()),
        _ => Err(too_large(rows.len())),
    }
}
