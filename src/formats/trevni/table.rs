//! Makes the table of a file.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::avro::{self, AvroField};
use super::blocks::Survey;
use super::file::{TrevniFile, path_of};
use super::rows::{ColumnRows, TrevniSchema};
use super::rules;
use crate::catalogue::{ColumnId, ObjectId};
use crate::codec::trevni::{Checksum, Metadata, TrevniCodec, TrevniColumn, TrevniPacking, TrevniType};
use crate::formats::TableFile;
use crate::store::{Opening, Rows, Tally};
use crate::table::{Column, Finding, Meaning, Table, Unreadable};

/// Name of the format in `metadata.json`.
const FORMAT: &str = "Trevni";

impl TableFile for TrevniFile {
    fn opening(&self) -> &Arc<Opening> {
        &self.opening
    }

    fn table(&self) -> Table {
        // The upgrade succeeds, since the caller holds a reference to the file.
        self.this.upgrade().map_or_else(|| Table::empty("/", FORMAT), |file| table(&file))
    }

    fn findings(&self) -> Vec<Finding> {
        self.met.lock().values().cloned().collect()
    }
}

/// Makes the table of a file. Its columns are the fields of the file's Avro schema, if these match the columns of the
/// file; otherwise the columns without a parent, each with its children as records in lists. After them, each column
/// that has a parent and values follows by itself, as lists.
fn table(file: &Arc<TrevniFile>) -> Table {
    let header = &file.header;
    let mut findings = overlaps(file);
    let fields = avro::fields(header)
        .and_then(|fields| fields.map_err(|reason| findings.push(Finding::new("/", &rules::SCHEMA, reason))).ok());
    let mut columns = match fields {
        Some(fields) => fields.into_iter().map(|field| of_field(file, field)).collect(),
        None => roots(file),
    };
    for column in &columns {
        if let Ok(rows) = &column.rows
            && rows.len() != header.rows
        {
            let found = format!("{} rows, the header says {}", rows.len(), header.rows);
            findings.push(Finding::new(&column.path, &rules::LENGTH, found));
        }
    }
    for (at, described) in header.columns.iter().enumerate().filter(|(_, column)| column.parent.is_some()) {
        if !matches!(described.form, Ok((TrevniType::Null, _))) {
            columns.push(Column {
                in_table: false,
                is_within_another: true,
                ..column(file, at, &described.name, alone(file, at))
            });
        }
    }
    for column in &columns {
        if let Err(reason) = &column.rows {
            findings.push(Finding::new(&column.path, &rules::COLUMN, reason.clone()));
        }
    }
    Table {
        revision: format!("version {}", header.version),
        rows: header.rows,
        columns,
        storage: Some(json!({ "layout": "columns", "metadata": metadata_value(&header.metadata) })),
        findings,
        ..Table::empty("/", FORMAT)
    }
    .observed(file.opening())
}

/// Makes the columns of the table that have no parent in the file.
fn roots(file: &Arc<TrevniFile>) -> Vec<Column> {
    let children = children(file);
    let roots = file.header.columns.iter().enumerate().filter(|(_, column)| column.parent.is_none());
    roots.map(|(at, described)| column(file, at, &described.name, record(file, at, &children))).collect()
}

/// Makes the column of a field of the Avro schema.
fn of_field(file: &Arc<TrevniFile>, field: AvroField) -> Column {
    let made = column(file, field.column, &field.name, Ok(field.part));
    let times = field.times.filter(|_| file.opening().store().shows_times());
    Column { meaning: Meaning { times: times.map(|times| Box::new(Ok(times))), ..made.meaning }, ..made }
}

/// Makes a column of the table that begins with this column of the file.
fn column(file: &Arc<TrevniFile>, at: usize, name: &str, part: Result<TrevniSchema, Unreadable>) -> Column {
    let path = format!("/{name}");
    let rows = part.and_then(|part| ColumnRows::new(file, path.clone(), part));
    let rows = rows.map(|rows| Arc::new(rows) as Arc<dyn Rows>);
    let in_table = rows.as_ref().is_ok_and(|rows| rows.len() == file.header.rows);
    let id = ColumnId::whole(ObjectId { file: 0, address: at as u64 });
    let survey = file.columns.get(at).and_then(|seen| seen.as_ref().ok());
    let storage = file.header.columns.get(at).map(|described| storage_value(file, described, survey));
    Column { in_table, storage, ..Column::new(name.into(), path, id, rows, Arc::new(Tally::default())) }
}

/// Finds the children of each column.
fn children(file: &TrevniFile) -> Vec<Vec<usize>> {
    let mut children = vec![Vec::new(); file.header.columns.len()];
    for (at, column) in file.header.columns.iter().enumerate() {
        if let Some(below) = column.parent.and_then(|parent| children.get_mut(parent)) {
            below.push(at);
        }
    }
    children
}

/// The structure of a column, with all readable columns below it that have as many rows.
fn record(file: &TrevniFile, at: usize, children: &[Vec<usize>]) -> Result<TrevniSchema, Unreadable> {
    let (column, kind, _) = file.column(at)?;
    let rows = |at: usize| file.columns.get(at).and_then(|seen| Some(seen.as_ref().ok()?.rows));
    let below = children.get(at).map_or(&[][..], Vec::as_slice);
    let fit = below.iter().filter(|below| rows(**below) == rows(at));
    let mut fields: Vec<(String, TrevniSchema)> = fit
        .filter_map(|below| Some((file.header.columns.get(*below)?.name.clone(), record(file, *below, children).ok()?)))
        .collect();
    if fields.is_empty() {
        return Ok(TrevniSchema::leaf(column, at));
    }
    if kind != TrevniType::Null {
        fields.insert(0, (column.name.clone(), TrevniSchema::Values(at)));
    }
    Ok(TrevniSchema::Lists(at, Box::new(TrevniSchema::Record(fields))))
}

/// The structure of a column by itself, in a list for each of its ancestors.
fn alone(file: &TrevniFile, at: usize) -> Result<TrevniSchema, Unreadable> {
    let column = |at: usize| file.column(at).map(|(column, ..)| column).map_err(|error| error.to_string());
    let (mut part, mut above) = (TrevniSchema::leaf(column(at)?, at), column(at)?.parent);
    while let Some(parent) = above {
        part = TrevniSchema::Lists(parent, Box::new(part));
        above = column(parent)?.parent;
    }
    Ok(part)
}

/// Reports columns that have bytes in common.
fn overlaps(file: &TrevniFile) -> Vec<Finding> {
    let seen = file.header.columns.iter().zip(&file.columns);
    let mut spans: Vec<_> =
        seen.filter_map(|(column, seen)| Some((column.start, seen.as_ref().ok()?.end, column))).collect();
    spans.sort_by_key(|(start, end, _)| (*start, *end));
    let mut findings = Vec::new();
    let mut last: Option<(u64, &TrevniColumn)> = None;
    for (start, end, column) in spans {
        if let Some((before, other)) = last
            && start < before
        {
            let found = format!("it begins at byte {start}, {:?} ends at {before}", other.name);
            findings.push(Finding::new(path_of(column), &rules::OVERLAP, found));
        }
        if last.is_none_or(|(before, _)| end > before) {
            last = Some((end, column));
        }
    }
    findings
}

/// Shows metadata as JSON: values are text if they are UTF-8, else hexadecimal.
fn metadata_value(metadata: &Metadata) -> Value {
    let texts = metadata.iter().map(|(key, value)| match std::str::from_utf8(value) {
        Ok(text) => (key.to_owned(), Value::String(text.to_owned())),
        Err(_) => (key.to_owned(), Value::String(value.iter().map(|byte| format!("{byte:02x}")).collect())),
    });
    texts.collect::<Map<_, _>>().into()
}

/// Describes how a column is stored, for `metadata.json`.
fn storage_value(file: &TrevniFile, described: &TrevniColumn, survey: Option<&Survey>) -> Value {
    let mut value = Map::new();
    value.insert("layout".into(), "blocks".into());
    if let Ok((kind, packing)) = &described.form {
        let TrevniPacking { codec, checksum } = packing;
        let codec = match codec {
            TrevniCodec::Null => "null",
            TrevniCodec::Deflate => "deflate",
            TrevniCodec::Snappy => "snappy",
            TrevniCodec::Bzip2 => "bzip2",
        };
        let checksum = match checksum {
            Checksum::Null => "null",
            Checksum::Crc32 => "crc32",
        };
        value.extend([("type".into(), kind.name().into()), ("codec".into(), codec.into())]);
        value.insert("checksum".into(), checksum.into());
    }
    if let Some(parent) = described.parent.and_then(|parent| file.header.columns.get(parent)) {
        value.insert("parent".into(), parent.name.clone().into());
    }
    value.insert("array".into(), described.is_array.into());
    value.insert("first_values".into(), described.has_values.into());
    if let Some(survey) = survey {
        value.insert("blocks".into(), survey.blocks.into());
        value.insert("bytes".into(), survey.size.into());
        value.insert("bytes_stored".into(), survey.stored.into());
    }
    value.insert("metadata".into(), metadata_value(&described.metadata));
    value.into()
}
