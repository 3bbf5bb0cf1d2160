//! The table of the versions of a file.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, LargeStringArray, new_null_array};
use arrow_buffer::Buffer;
use arrow_schema::DataType;
use arrow_select::concat::concat;
use bstr::{BString, ByteSlice};

use super::Versioned;
use super::history::{History, Kept, Version};
use crate::calendar::SECOND;
use crate::catalogue::{Attribute, Class, ColumnId, Datatype, join};
use crate::dialects::{Dialect, Site, compound, times};
use crate::store::decode::{Memory, Oddities, arrow_type, decode};
use crate::store::{Hints, Rows};
use crate::table::{Column, HeldRows, Table};

/// Attributes of versions that are columns.
const MOST_ATTRIBUTES: usize = 256;

/// Bytes of the longest attribute of which the column has the value.
const LONGEST: usize = 64 << 10;

/// The table: a row for each version.
pub(super) fn table(site: &Site<'_>, kept: &Kept, history: &History) -> Table {
    let versions = &history.versions;
    let text = |name: &BString| name.to_str_lossy().into_owned();
    let names: LargeStringArray = versions.iter().map(|version| Some(text(&version.name))).collect();
    let before: LargeStringArray = versions.iter().map(|version| version.previous.as_ref().map(text)).collect();
    let times: Int64Array = versions.iter().map(|version| version.time).collect();
    let current = history.current().map(|version| &version.name);
    let is_current: BooleanArray = versions.iter().map(|version| Some(Some(&version.name) == current)).collect();
    let mut found: Vec<(BString, Result<ArrayRef, String>)> = vec![
        ("name".into(), Ok(Arc::new(names))),
        ("prev_version".into(), Ok(Arc::new(before))),
        ("timestamp".into(), Ok(Arc::new(times))),
        ("current".into(), Ok(Arc::new(is_current))),
    ];
    found.extend(users(versions).map(|name| (name.clone(), values(versions, name))));
    let stated: Vec<BString> = found.iter().map(|(name, _)| name.clone()).collect();
    let named = compound::distinct(&stated).into_iter().zip(found).zip(1..);
    let columns = named.map(|((name, (_, array)), field)| {
        let id = ColumnId { object: kept.id, field };
        let rows = array.map(|array| {
            let is_nullable = !matches!(field, 1 | 4);
            Arc::new(HeldRows::new(array, is_nullable, Hints::default())) as Arc<dyn Rows>
        });
        let is_time = name == "timestamp" && field == 3;
        let times = rows.as_ref().ok().filter(|_| is_time);
        let times = times.and_then(|rows| times::since(site.file, SECOND / 1_000_000, 0, rows.as_ref()));
        let path = join("/_version_data/versions", &name);
        Column { times: times.map(Box::new), ..Column::new(name, path, id, rows, Arc::default()) }
    });
    Table {
        rows: versions.len() as u64,
        attributes: kept.attributes.clone(),
        columns: columns.collect(),
        ..Table::empty("/_version_data/versions", Versioned.name())
    }
}

/// Names of the attributes that users gave versions.
fn users(versions: &[Version]) -> impl Iterator<Item = &BString> {
    let names = versions.iter().flat_map(|version| &version.attributes).map(|attribute| &attribute.name);
    let names: BTreeSet<&BString> = names.filter(|name| !name.is_empty()).collect();
    names.into_iter().take(MOST_ATTRIBUTES)
}

/// An attribute of each version, missing where there is none.
fn values(versions: &[Version], name: &BString) -> Result<ArrayRef, String> {
    let of = |version: &Version| version.attributes.iter().find(|attribute| attribute.name == *name).map(value);
    let values: Vec<Option<ArrayRef>> =
        versions.iter().map(|version| of(version).transpose()).collect::<Result<_, _>>()?;
    let known = values.iter().flatten().map(|value| value.data_type());
    let mut types: Vec<&DataType> = Vec::new();
    known.for_each(|known| {
        if !types.contains(&known) {
            types.push(known)
        }
    });
    let data_type = match types.as_slice() {
        [only] => (*only).clone(),
        _ => return Err(format!("it is of {} types: see metadata.json of each version", types.len())),
    };
    let missing = new_null_array(&data_type, 1);
    let values: Vec<&dyn Array> = values.iter().map(|value| value.as_ref().unwrap_or(&missing).as_ref()).collect();
    concat(&values).map_err(|error| error.to_string())
}

/// The value of an attribute, as one row.
fn value(attribute: &Attribute) -> Result<ArrayRef, String> {
    let scalar = &attribute.datatype;
    let datatype = match (attribute.shape.as_slice(), attribute.len()) {
        ([], _) => scalar.clone(),
        (dims, Some(count)) => Datatype {
            size: scalar.size.saturating_mul(count),
            class: Class::Array { dims: dims.to_vec(), base: Box::new(scalar.clone()) },
        },
        _ => return Err("it has more elements than there can be".into()),
    };
    if attribute.null {
        return Ok(new_null_array(&arrow_type(&datatype), 1));
    }
    let stored = attribute.value.as_ref().map_err(Clone::clone)?;
    let bytes = stored.bytes.len() + stored.heap.len();
    if bytes > LONGEST {
        return Err(format!("a value of {bytes} bytes: see metadata.json of its version"));
    }
    let value =
        decode(&datatype, Buffer::from(stored.bytes.as_slice()), 1, &Memory(&stored.heap), &mut Oddities::new());
    value.map_err(|error| error.to_string())
}
