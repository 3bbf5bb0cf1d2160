//! `metadata.json` and `indexes.json`: facts of the catalogue, and nothing learnt at run time, so that their bytes
//! never change (`docs/metadata.schema.json`, `docs/indexes.schema.json`).

mod datatype;
mod member;
mod value;

use std::collections::HashMap;

use bstr::{BStr, BString};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::catalogue::{Attribute, Dataset, Fill, Filter, Layout};
use crate::codec::pickle;
use crate::dialects;
use crate::store::Nan;
use crate::table::{Column, Finding, SearchIndex, Table, arrow_name};
use crate::views::printable_json;

pub use member::{Details, ShownAs, ShownMember};
pub use value::{attribute_text, attribute_value, json_values};

/// Version of both schemas; raised by every change that a reader could notice.
const SCHEMA: u32 = 1;

/// The kind of a directory, in its own description and in its parent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryKind {
    /// A group of the file, which may have a table in it.
    Group,
    /// A table.
    Table,
    /// A directory that a dialect made up: no object of the file stands behind it.
    Made,
}

impl DirectoryKind {
    fn kind(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Table => "table",
            Self::Made => "made",
        }
    }
}

/// The facts that all directories have in common.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryDocument<'a> {
    /// HDF5 path of the directory.
    pub path: &'a str,
    /// Kind of the directory.
    pub called: DirectoryKind,
    /// Attributes of the directory's object.
    pub attributes: &'a [Attribute],
    /// Members of the directory.
    pub members: &'a [ShownMember],
    /// Values of members that are small scalars, by member name.
    pub values: &'a HashMap<BString, Value>,
    /// Why the directory is not a table, though some members have equal lengths.
    pub nearly: Option<&'a str>,
    /// Findings in the directory.
    pub findings: &'a [Finding],
}

impl DirectoryDocument<'_> {
    fn members(&self) -> impl Serialize {
        Each(|| self.members.iter().map(|member| member.value(self.values.get(&member.name))))
    }
}

/// A list whose elements are made one at a time: as [`Value`]s, all of them together would take twenty times the memory
/// of their text, and a table may have very many columns.
struct Each<F>(F);

impl<F: Fn() -> I, I: Iterator<Item = Value>> Serialize for Each<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// `metadata.json` of a group that is not a table.
#[derive(Serialize)]
struct GroupDocument<'a, M> {
    schema: u32,
    kind: &'static str,
    path: &'a str,
    attributes: Value,
    members: M,
    findings: &'a [Finding],
    #[serde(skip_serializing_if = "Option::is_none")]
    no_table: Option<&'a str>,
}

/// `metadata.json` of a table.
#[derive(Serialize)]
struct TableDocument<'a, C, M, L> {
    schema: u32,
    kind: &'static str,
    path: &'a str,
    dialect: &'static str,
    revision: &'a str,
    recognised_by: &'static str,
    rows: u64,
    attributes: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage: Option<&'a Value>,
    columns: C,
    categories: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<L>,
    members: M,
    not_shown: Vec<String>,
    findings: &'a [Finding],
    #[serde(skip_serializing_if = "Option::is_none")]
    selection: Option<&'a str>,
}

/// Where a document has line breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// One value per line, as in `metadata.json`.
    Many,
    /// Everything on one line.
    One,
}

/// Returns the `metadata.json` of a directory without a table.
pub fn group(directory: &DirectoryDocument<'_>, lines: Lines) -> Vec<u8> {
    written(
        lines,
        &GroupDocument {
            schema: SCHEMA,
            kind: directory.called.kind(),
            path: directory.path,
            attributes: attributes_value(directory.attributes),
            members: directory.members(),
            findings: directory.findings,
            no_table: directory.nearly,
        },
    )
}

/// Returns the `metadata.json` of a table. `views` lists, for each column, its shown names and the views that it cannot
/// have.
pub fn table<V>(table: &Table, views: V, directory: &DirectoryDocument<'_>, lines: Lines) -> Vec<u8>
where
    V: Iterator<Item = ShownMember> + Clone,
{
    let categories = table
        .categories
        .iter()
        .map(|set| {
            json!({
                "path": set.path,
                "ordered": set.ordered,
                "count": set.labels.as_ref().ok().map(|labels| labels.len()),
                "type": set.labels.as_ref().ok().map(|labels| labels.data_type().to_string()),
                "error": set.labels.as_ref().err().map(|reason| &**reason),
            })
        })
        .collect();
    written(
        lines,
        &TableDocument {
            schema: SCHEMA,
            kind: directory.called.kind(),
            path: &table.path,
            dialect: table.dialect,
            revision: &table.revision,
            recognised_by: table.recognised_by,
            rows: table.rows,
            attributes: attributes_value(&table.attributes),
            storage: table.storage.as_ref(),
            columns: Each(|| {
                table.columns.iter().zip(views.clone()).map(|(column, views)| column_value(table, column, &views))
            }),
            categories,
            left_out: (table.only_adds || !table.left_out.is_empty()).then_some(Each(|| {
                let of_members = directory.members.iter().filter_map(|one| Some((&one.name, one.left_out.as_deref()?)));
                let of_table = table.left_out.iter().map(|(name, reason)| (name, reason.as_ref()));
                of_members.chain(of_table).map(|(name, reason)| left_out_value(name, reason))
            })),
            members: directory.members(),
            not_shown: table.servants.iter().map(|name| name.to_string()).collect(),
            findings: directory.findings,
            selection: table.selection.as_deref(),
        },
    )
}

/// Returns `indexes.json`: the row labels and search indexes of a table.
pub fn indexes(table: &Table) -> Vec<u8> {
    let labels: Vec<String> =
        table.columns.iter().filter(|column| column.is_label).map(|column| column.name.to_string()).collect();
    written(
        Lines::Many,
        &json!({
            "schema": SCHEMA,
            "path": table.path,
            "row_labels": labels,
            "search_indexes": table.indexes.iter().map(index_value).collect::<Vec<_>>(),
        }),
    )
}

fn index_value(index: &SearchIndex) -> Value {
    let mut value = json!({
        "path": index.path,
        "kind": index.kind,
        "columns": index.columns.iter().map(|name| name.to_string()).collect::<Vec<_>>(),
        "shape": index.shape,
        "source_generation": index.source_generation,
        "source_rows": index.source_rows,
        "attributes": attributes_value(&index.attributes),
    });
    if let (Err(absent), Some(value)) = (&index.form, value.as_object_mut()) {
        value.insert("not_used".into(), format!("{}: {}", absent.rule.text, absent.found).into());
    }
    value
}

/// Returns the entry of a column in `metadata.json`.
pub fn column_value(table: &Table, column: &Column, views: &ShownMember) -> Value {
    let mut value = Map::new();
    insert_name(&mut value, &column.name);
    value.insert("path".into(), column.path.clone().into());
    value.insert("row_label".into(), column.is_label.into());
    value.insert("in_table".into(), column.in_table.into());
    match column.shown() {
        Ok(rows) => {
            value.insert("rows".into(), rows.len().into());
            value.insert("type".into(), arrow_name(rows.data_type()).into());
            value.insert("nullable".into(), rows.nullable().into());
            if rows.data_type().is_floating() && rows.hints().nan != Nan::Value {
                value.insert("nan".into(), "missing".into());
            }
        }
        Err(reason) => {
            value.insert("error".into(), reason.to_string().into());
        }
    }
    if let Some(Err(reason)) = column.meaning.times.as_deref() {
        value.insert("not_times".into(), reason.to_string().into());
    }
    value.extend(column.notes().into_iter().map(|(key, text)| (key.into(), text.into())));
    if let Some(set) = column.categories.and_then(|at| table.categories.get(at)) {
        value.insert("categories".into(), set.path.clone().into());
    }
    if let Some(storage) = column.dataset.as_deref().map(storage_value).or_else(|| column.storage.clone()) {
        value.insert("storage".into(), storage);
    }
    let is_of_pytables = dialects::is_of_pytables(&table.attributes);
    value.insert("attributes".into(), attributes_of(&column.attributes, is_of_pytables));
    views.insert_views(&mut value);
    value.into()
}

fn storage_value(dataset: &Dataset) -> Value {
    json!({
        "datatype": datatype::value(&dataset.datatype),
        "extent": dataset.len().unwrap_or(u64::MAX),
        "fill": fill_value(&dataset.datatype, &dataset.fill),
        "layout": layout_value(&dataset.layout),
        "filters": filters_value(&dataset.filters),
    })
}

fn left_out_value(name: &BString, reason: &str) -> Value {
    let mut value = Map::new();
    insert_name(&mut value, name);
    value.insert("reason".into(), reason.into());
    value.into()
}

/// Inserts a link's name and, if it is not UTF-8, its bytes in hexadecimal.
fn insert_name(value: &mut Map<String, Value>, name: &BString) {
    value.insert("name".into(), name.to_string().into());
    if std::str::from_utf8(name).is_err() {
        value.insert("name_hex".into(), name.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into());
    }
}

/// Returns the values of attributes, as `metadata.json` has them.
pub(super) fn attributes_value(attributes: &[Attribute]) -> Value {
    attributes_of(attributes, dialects::is_of_pytables(attributes))
}

/// Returns the values of attributes; for an object of PyTables, decoded as PyTables does.
fn attributes_of(attributes: &[Attribute], is_of_pytables: bool) -> Value {
    let told = attributes.iter().filter(|attribute| !dialects::is_plumbing(&attribute.name, attributes));
    let told = told.map(|attribute| {
        let value = match is_of_pytables.then(|| dialects::pickled(attribute)) {
            Some(Some(tree)) => pickle::json(tree.root()),
            Some(None) => attribute_value(&dialects::of_pytables(attribute)),
            None => attribute_value(attribute),
        };
        (BStr::new(&attribute.name).to_string(), value)
    });
    told.collect::<Map<_, _>>().into()
}

fn fill_value(datatype: &crate::catalogue::Datatype, fill: &Fill) -> Value {
    match fill {
        Fill::Undefined => json!({ "state": "undefined" }),
        Fill::Default => json!({ "state": "default" }),
        Fill::Explicit(elements) => json!({ "state": "explicit", "value": value::element(datatype, elements) }),
        Fill::Unreadable(reason) => json!({ "state": "unreadable", "error": reason }),
    }
}

fn layout_value(layout: &Layout) -> Value {
    match layout {
        Layout::Compact => json!({ "kind": "compact" }),
        Layout::Contiguous { address } => json!({ "kind": "contiguous", "allocated": address.is_some() }),
        Layout::Chunked { chunk, .. } => json!({ "kind": "chunked", "chunk": chunk }),
        Layout::Virtual { sources } => json!({
            "kind": "virtual",
            "sources": sources.iter().map(|source| json!({
                "file": source.file.to_string(),
                "dataset": source.dataset.to_string(),
            })).collect::<Vec<_>>(),
        }),
        Layout::External { files } => json!({
            "kind": "external",
            "files": files.iter().map(|file| file.to_string()).collect::<Vec<_>>(),
        }),
        Layout::Unknown(class) => json!({ "kind": "unknown", "class": class }),
    }
}

fn filters_value(filters: &[Filter]) -> Value {
    filters
        .iter()
        .map(|filter| {
            json!({
                "id": filter.id,
                "name": filter.name,
                "optional": filter.optional,
                "parameters": filter.parameters,
            })
        })
        .collect::<Vec<_>>()
        .into()
}

fn written(lines: Lines, value: &impl Serialize) -> Vec<u8> {
    let text = if lines == Lines::Many { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    // All keys are strings, so this cannot fail.
    let mut bytes = printable_json(&text.unwrap_or_default()).into_bytes();
    if lines == Lines::Many {
        bytes.push(b'\n');
    }
    // The cache keeps these bytes, which may be many.
    bytes.shrink_to_fit();
    bytes
}
