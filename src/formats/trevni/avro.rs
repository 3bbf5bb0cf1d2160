//! Matches the fields of the Avro schema from which a file may have been shredded with the file's columns.
//!
//! ```text
//! record   path#field (at the top: field), and no column of its own     map     path>  with  path>key, path>value
//! array    path[]                                                       union   path/Branch, an array of one or none
//! ```
//!
//! An array, a map or a branch of a complex type is a column of `null` with its parts below it. The schema is used only
//! if it yields exactly the columns of the file.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, LargeStringArray};
use arrow_schema::DataType;
use serde_json::Value;

use super::rows::TrevniSchema;
use crate::calendar;
use crate::codec::trevni::{TrevniColumn, TrevniHeader, TrevniType};
use crate::table::{Times, Unreadable};

/// The key of the file's metadata under which the schema is stored.
const KEY: &str = "avro.schema";

/// Longest path of a field, which is the name of its column, in bytes.
const LONGEST_PATH: usize = 64 << 10;

/// Deepest nesting of types to follow.
const DEEPEST: usize = 40;

/// Most types to visit for each column of the file: as many as can enclose one column.
const MOST_TYPES: usize = DEEPEST;

/// A field of the record that the schema describes.
pub(super) struct AvroField {
    pub name: String,
    pub part: TrevniSchema,
    /// How the field's integers count instants. `None`: they do not.
    pub times: Option<Times>,
    /// The first of the field's columns in the file.
    pub column: usize,
}

/// Finds the fields of the schema. `None`: the file has no schema.
///
/// # Errors
/// Why the schema does not match the columns of the file.
pub(super) fn fields(header: &TrevniHeader) -> Option<Result<Vec<AvroField>, Unreadable>> {
    let schema = serde_json::from_slice(header.metadata.get(KEY)?);
    Some(schema.map_err(|error| format!("it is no JSON: {error}").into()).and_then(|schema| followed(header, &schema)))
}

fn followed(header: &TrevniHeader, schema: &Value) -> Result<Vec<AvroField>, Unreadable> {
    let left = (header.columns.len() + 1).saturating_mul(MOST_TYPES);
    let mut shredder = Shredder { columns: &header.columns, next: 0, named: HashMap::new(), left };
    let (kind, name) = (text(schema, "type"), text(schema, "name"));
    if kind != Some("record") {
        return Err("it is not that of a record".into());
    }
    let space = shredder.space(schema, "");
    shredder.named.insert(full(name.unwrap_or_default(), &space), None);
    let mut fields = Vec::new();
    for field in list(schema, "fields") {
        let name = text(field, "name").ok_or("a field has no name")?;
        let kind = field.get("type").ok_or_else(|| format!("the field {name:?} has no type"))?;
        let column = shredder.next;
        let part = shredder.part(name.to_owned(), kind, &space, None, 0)?;
        fields.push(AvroField { name: name.to_owned(), part, times: times(kind), column });
    }
    match header.columns.get(shredder.next) {
        Some(more) => Err(format!("it has no column {:?}", more.name).into()),
        None => Ok(fields),
    }
}

/// Walks through the types of the schema and the columns of the file in parallel.
struct Shredder<'a> {
    columns: &'a [TrevniColumn],
    /// Position of the column that the next simple type must match.
    next: usize,
    /// Types by full name, with the namespace around each. `None`: the type is being visited.
    named: HashMap<String, Option<(&'a Value, String)>>,
    /// Number of types that may still be visited.
    left: usize,
}

impl<'a> Shredder<'a> {
    /// The namespace that a named type gives the types inside it.
    fn space(&self, schema: &Value, around: &str) -> String {
        match (text(schema, "name").and_then(|name| name.rsplit_once('.')), text(schema, "namespace")) {
            (Some((space, _)), _) | (None, Some(space)) => space.to_owned(),
            (None, None) => around.to_owned(),
        }
    }

    /// Resolves a type that may be given by name. Returns the type, and the namespace around it.
    fn resolved(&mut self, schema: &'a Value, space: &str) -> Result<(&'a Value, String), Unreadable> {
        let Value::String(name) = schema else { return Ok((schema, space.to_owned())) };
        if TrevniType::of(name).is_some() {
            return Ok((schema, space.to_owned()));
        }
        let found = self.named.get(&full(name, space)).or_else(|| self.named.get(name));
        match found {
            Some(Some((schema, space))) => Ok((schema, space.clone())),
            Some(None) => Err(format!("the type {name:?} contains itself").into()),
            None => Err(format!("there is no type {name:?}").into()),
        }
    }

    /// Takes the next column of the file, which must have these properties, and returns its position.
    fn column(
        &mut self,
        name: &str,
        kind: TrevniType,
        parent: Option<usize>,
        is_array: bool,
    ) -> Result<usize, Unreadable> {
        let at = self.next;
        let column = self.columns.get(at).ok_or_else(|| format!("the file has no column {name:?}"))?;
        let is_of_kind = column.form.as_ref().is_ok_and(|(found, _)| *found == kind);
        if column.name != name || !is_of_kind || column.parent != parent || column.is_array != is_array {
            return Err(format!("its column {name:?} of type {} differs from the one in the file", kind.name()).into());
        }
        self.next += 1;
        Ok(at)
    }

    /// Makes the structure of a simple type, which has a column of its own that may be an array. `None`: the type is
    /// not simple.
    fn simple(
        &mut self,
        path: &str,
        schema: &'a Value,
        parent: Option<usize>,
        is_array: bool,
    ) -> Result<Option<(usize, TrevniSchema)>, Unreadable> {
        let Some((kind, names)) = simple(schema) else { return Ok(None) };
        let at = self.column(path, kind, parent, is_array)?;
        let values = TrevniSchema::Values(at);
        Ok(Some((at, names.map_or(values.clone(), |names| TrevniSchema::Names(Box::new(values), names)))))
    }

    /// Makes the structure of an array column that has elements of this type.
    fn array(
        &mut self,
        path: &str,
        element: &'a Value,
        space: &str,
        parent: Option<usize>,
        depth: usize,
    ) -> Result<(usize, Box<TrevniSchema>), Unreadable> {
        let (element, space) = self.resolved(element, space)?;
        self.define(element, &space);
        if let Some((at, part)) = self.simple(path, element, parent, true)? {
            return Ok((at, Box::new(part)));
        }
        let at = self.column(path, TrevniType::Null, parent, true)?;
        Ok((at, Box::new(self.part(path.to_owned(), element, &space, Some(at), depth + 1)?)))
    }

    /// Remembers a type under its name, if it has one.
    fn define(&mut self, schema: &'a Value, space: &str) {
        if let (Value::Object(_), Some(name)) = (schema, text(schema, "name")) {
            let full = full(name, &self.space(schema, space));
            self.named.entry(full).or_insert(Some((schema, space.to_owned())));
        }
    }

    /// Makes the structure of a type at a path.
    fn part(
        &mut self,
        path: String,
        schema: &'a Value,
        space: &str,
        parent: Option<usize>,
        depth: usize,
    ) -> Result<TrevniSchema, Unreadable> {
        self.left = self.left.checked_sub(1).filter(|_| depth < DEEPEST).ok_or("it has too many types")?;
        // Each field gets a copy of the path, so long paths would take much memory.
        if path.len() > LONGEST_PATH {
            return Err(format!("a path of more than {LONGEST_PATH} bytes").into());
        }
        let (schema, space) = self.resolved(schema, space)?;
        self.define(schema, &space);
        if let Some((_, part)) = self.simple(&path, schema, parent, false)? {
            return Ok(part);
        }
        if let Value::Array(branches) = schema {
            return self.union(&path, branches, &space, parent, depth);
        }
        match text(schema, "type") {
            Some("record" | "error") => {
                let (name, within) = (text(schema, "name").unwrap_or_default(), self.space(schema, &space));
                let full = full(name, &within);
                let known = self.named.insert(full.clone(), None);
                let mut fields = Vec::new();
                for field in list(schema, "fields") {
                    let name = text(field, "name").ok_or("a field has no name")?;
                    let kind = field.get("type").ok_or_else(|| format!("the field {name:?} has no type"))?;
                    let part = self.part(format!("{path}#{name}"), kind, &within, parent, depth + 1)?;
                    fields.push((name.to_owned(), part));
                }
                self.named.insert(full, known.flatten());
                Ok(TrevniSchema::Record(fields))
            }
            Some("array") => {
                let items = schema.get("items").ok_or("an array has no items")?;
                let (at, item) = self.array(&format!("{path}[]"), items, &space, parent, depth)?;
                Ok(TrevniSchema::Lists(at, item))
            }
            Some("map") => {
                let values = schema.get("values").ok_or("a map has no values")?;
                let path = format!("{path}>");
                let at = self.column(&path, TrevniType::Null, parent, true)?;
                let key = self.column(&format!("{path}key"), TrevniType::String, Some(at), false)?;
                let value = self.part(format!("{path}value"), values, &space, Some(at), depth + 1)?;
                let entry = vec![("key".to_owned(), TrevniSchema::Values(key)), ("value".to_owned(), value)];
                Ok(TrevniSchema::Lists(at, Box::new(TrevniSchema::Record(entry))))
            }
            _ => match schema.get("type") {
                // This is a type in nested braces.
                Some(within @ (Value::Object(_) | Value::Array(_))) => {
                    self.part(path, within, &space, parent, depth + 1)
                }
                _ => Err(format!("{schema} is no type").into()),
            },
        }
    }

    fn union(
        &mut self,
        path: &str,
        branches: &'a [Value],
        space: &str,
        parent: Option<usize>,
        depth: usize,
    ) -> Result<TrevniSchema, Unreadable> {
        let mut fields = Vec::new();
        for branch in branches.iter().filter(|branch| simple(branch).is_none_or(|(kind, _)| kind != TrevniType::Null)) {
            let (resolved, around) = self.resolved(branch, space)?;
            let name = match (resolved, text(resolved, "name")) {
                (Value::String(name), _) => name.clone(),
                (_, Some(name)) => full(name, &self.space(resolved, &around)),
                _ => text(resolved, "type").unwrap_or_default().to_owned(),
            };
            let (at, item) = self.array(&format!("{path}/{name}"), branch, space, parent, depth)?;
            fields.push((name, at, item));
        }
        // Not all files can show a nullable record or list inside other types, so it stays a list there.
        let optional = |at, item: Box<TrevniSchema>, is_column| match item.as_ref() {
            TrevniSchema::Values(_) | TrevniSchema::Names(..) => TrevniSchema::Optional(at, item),
            _ if is_column => TrevniSchema::Optional(at, item),
            _ => TrevniSchema::Lists(at, item),
        };
        match fields.len() {
            0 => Err("a union of nothing".into()),
            1 => Ok(fields
                .pop()
                .map_or_else(|| TrevniSchema::Record(Vec::new()), |(_, at, item)| optional(at, item, depth == 0))),
            _ => Ok(TrevniSchema::Record(
                fields.into_iter().map(|(name, at, item)| (name, optional(at, item, false))).collect(),
            )),
        }
    }
}

fn text<'a>(schema: &'a Value, key: &str) -> Option<&'a str> {
    schema.get(key)?.as_str()
}

fn list<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The full name of a type, given the namespace around it.
fn full(name: &str, space: &str) -> String {
    if name.contains('.') || space.is_empty() { name.to_owned() } else { format!("{space}.{name}") }
}

/// The type of a simple type's column, and the names if it is an enumeration. `None`: the type is not simple.
fn simple(schema: &Value) -> Option<(TrevniType, Option<ArrayRef>)> {
    let name = schema.as_str().or_else(|| text(schema, "type"))?;
    match name {
        "enum" => {
            let names = list(schema, "symbols").iter().map(|symbol| symbol.as_str().unwrap_or_default());
            Some((TrevniType::Int, Some(Arc::new(LargeStringArray::from_iter_values(names)))))
        }
        "fixed" => Some((TrevniType::Bytes, None)),
        "fixed32" | "fixed64" => None,
        name => TrevniType::of(name).filter(|kind| kind.name() == name).map(|kind| (kind, None)),
    }
}

/// How integers count instants, for dates and times, also in a union with `null`. `None`: they do not.
fn times(schema: &Value) -> Option<Times> {
    let schema = match schema {
        Value::Array(branches) => match branches.as_slice() {
            [one, null] if *null == "null" => one,
            [null, one] if *null == "null" => one,
            _ => return None,
        },
        one => one,
    };
    let step = match (text(schema, "type")?, text(schema, "logicalType")?) {
        ("int", "date") => i128::from(calendar::DAY) * calendar::SECOND,
        ("long", "timestamp-millis" | "local-timestamp-millis") => calendar::SECOND / 1_000,
        ("long", "timestamp-micros" | "local-timestamp-micros") => calendar::SECOND / 1_000_000,
        _ => return None,
    };
    let stored = if text(schema, "type") == Some("int") { DataType::Int32 } else { DataType::Int64 };
    let times = Times::new(step, calendar::Instant { attoseconds: 0, is_exact: true }, &stored).ok()?;
    Some(if text(schema, "logicalType").is_some_and(|name| name.starts_with("local")) {
        times.in_zone(None)
    } else {
        times
    })
}
