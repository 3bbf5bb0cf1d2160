//! All files of a dataset as one table, for commands: the rows of the files, concatenated.

use std::collections::HashMap;
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use super::cast::{cast, counts, of_rows, path_of, with};
use super::schema::CommonField;
use crate::catalogue::{ColumnId, ObjectId, join};
use crate::session::Error;
use crate::source::Interrupt;
use crate::store::{Rows, Tally};
use crate::table::{
    AbsentRows, CastRows, ChainRows, Column, Finding, Meaning, Origin, Table, Unreadable, labelled_runs,
};

/// Name of the column that holds the file of each row.
const FILE: &str = "file";

/// Field number of the first column of a chained table.
const FIRST_FIELD: u32 = 1 << 31;

/// The tables that the files of a dataset have at one path, to be made one table.
pub(super) struct Chain<'a> {
    pub path: &'a str,
    pub fields: &'a [CommonField],
    /// The path of each file, and its table.
    pub parts: Vec<(&'a BString, &'a Table)>,
}

impl Chain<'_> {
    /// Makes the table: the columns of the dataset, then the path of each row's file, as readers of Hive partitions see
    /// it.
    ///
    /// # Errors
    /// [`Error::Stale`] if a file has other columns by now, [`Error::TooLarge`] past 2^63 rows.
    pub fn table(&self, interrupt: &Interrupt) -> Result<Table, Error> {
        let mut ends = Vec::with_capacity(self.parts.len());
        let mut rows = 0_u64;
        for (_, table) in &self.parts {
            rows = rows.checked_add(table.rows).filter(|rows| i64::try_from(*rows).is_ok()).ok_or(Error::TooLarge)?;
            ends.push(rows);
        }
        let places = self.parts.iter().map(|(_, table)| {
            let columns = table.columns.iter().enumerate().filter(|(_, column)| column.in_table);
            columns.map(|(at, column)| (column.name.clone(), at)).collect()
        });
        let places: Vec<HashMap<BString, usize>> = places.collect();
        let mut columns = Vec::with_capacity(self.fields.len() + 1);
        for field in self.fields {
            interrupt.check()?;
            columns.push(self.column(columns.len(), field, &places)?);
        }
        let labels = self.parts.iter().map(|(file, _)| file.to_str_lossy().into_owned()).collect();
        let files = labelled_runs(self.path, labels, &ends, interrupt).map_err(Unreadable::from);
        // If the files have a column of this name, the new one gives way to it.
        let mut names = std::iter::successors(Some(FILE.to_owned()), |name| Some(format!("{name}_")));
        let name = names.find(|name| self.fields.iter().all(|field| field.name != *name));
        columns.push(self.named(columns.len(), name.unwrap_or_default().into(), files));
        let found = self.parts.iter().flat_map(|(file, table)| {
            table.findings.iter().map(|finding| Finding { path: in_file(file, &finding.path), ..finding.clone() })
        });
        let findings = found.collect();
        let revision = format!("{} files", self.parts.len());
        Ok(Table { rows, columns, findings, revision, ..Table::empty(self.path, "dataset") })
    }

    fn column(&self, at: usize, field: &CommonField, places: &[HashMap<BString, usize>]) -> Result<Column, Error> {
        let (mut parts, mut below) = (Vec::with_capacity(self.parts.len()), Vec::new());
        for ((file, table), places) in self.parts.iter().zip(places) {
            let Some(own) = places.get(&field.name).and_then(|at| table.columns.get(*at)) else {
                parts.push(None);
                continue;
            };
            let tally = Arc::<Tally>::default();
            let column = cast(own, field, &tally).ok_or(Error::Stale)?;
            let path = in_file(file, &path_of(own));
            below.push((path.clone(), own.tally.clone()));
            below.extend(own.below.iter().map(|(path, tally)| (in_file(file, path), tally.clone())));
            below.push((path, tally.clone()));
            parts.push(Some((column, tally)));
        }
        let mut present = parts.iter().flatten().map(|(column, _)| column);
        let first = present.next().ok_or(Error::Stale)?;
        let is_one = present.all(|column| kind(column) == kind(first));
        let columns = parts.iter().map(|part| {
            let Some((column, tally)) = part else { return Ok(None) };
            let alike = match &field.times {
                _ if is_one => Some(column.clone()),
                Some(times) => counts(column, times, tally),
                None => {
                    let rows = column.shown().ok().map(|rows| CastRows::form(rows, of_rows(&field.data_type)));
                    rows.map(|rows| with(column, Arc::new(rows)))
                }
            };
            alike.map(Some).ok_or(Error::Stale)
        });
        let columns: Vec<Option<Column>> = columns.collect::<Result<_, _>>()?;
        let first = columns.iter().flatten().next().ok_or(Error::Stale)?;
        let data_type = first.rows.as_ref().map_err(|reason| Error::Io(reason.to_string()))?.data_type();
        let rows = columns.iter().zip(&self.parts).map(|(column, (_, table))| match column {
            Some(column) => column.rows.clone(),
            None => Ok(Arc::new(AbsentRows::new(table.rows, data_type.clone())) as Arc<dyn Rows>),
        });
        let rows: Result<Vec<_>, Unreadable> = rows.collect();
        let chain = rows.and_then(|rows| ChainRows::new(rows).ok_or("files have it in other types".into()));
        let chain = chain.map(|chain| Arc::new(chain.with_texts().cut()) as Arc<dyn Rows>);
        let same = |told: fn(&Column) -> &Option<String>| {
            told(first).clone().filter(|_| columns.iter().flatten().all(|column| told(column) == told(first)))
        };
        let meaning = Meaning {
            times: first.meaning.times.clone(),
            duration: first.meaning.duration,
            units: same(|column| &column.meaning.units),
            units_vocabulary: same(|column| &column.meaning.units_vocabulary),
            calendar: same(|column| &column.meaning.calendar),
            description: same(|column| &column.meaning.description),
            // Files differ in their origin, and each file is checked by itself.
            origin: Origin::default(),
            expected: None,
        };
        Ok(Column { below, meaning, ..self.named(at, field.name.clone(), chain) })
    }

    fn named(&self, at: usize, name: BString, rows: Result<Arc<dyn Rows>, Unreadable>) -> Column {
        let field = FIRST_FIELD.saturating_add(u32::try_from(at).unwrap_or(u32::MAX));
        let id = ColumnId { object: ObjectId { file: 0, address: 0 }, field };
        let path = join(self.path, &name);
        Column::new(name, path, id, rows, Arc::default())
    }
}

/// The type of a column's values.
fn kind(column: &Column) -> impl PartialEq {
    (column.rows.as_ref().ok().map(|rows| rows.data_type()), column.times(), column.meaning.duration)
}

/// Writes a path within a file as `FILE:PATH`.
fn in_file(file: &BString, path: &str) -> String {
    format!("{}:{path}", file.to_str_lossy())
}
