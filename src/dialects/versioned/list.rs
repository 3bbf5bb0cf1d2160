//! Makes the table of the versions of a file.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, LargeListArray, LargeStringArray, new_empty_array, new_null_array,
};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_cast::cast;
use arrow_schema::{DataType, Field};
use arrow_select::concat::concat;
use bstr::{BString, ByteSlice};

use super::Versioned;
use super::history::{History, Version, VersionsGroup};
use crate::calendar::SECOND;
use crate::catalogue::{Attribute, Class, ColumnId, Datatype, join};
use crate::dialects::{Dialect, Site, datasets, times};
use crate::source::Interrupt;
use crate::store::decode::{HeapBytes, Oddities, arrow_type, decode, fixed_width};
use crate::store::{Hints, Rows};
use crate::table::{Column, HeldRows, Meaning, Table, Unreadable};

/// Most user attributes that become columns.
const MOST_ATTRIBUTES: usize = 256;

/// Most bytes in an attribute whose value the table shows.
const LONGEST: usize = 64 << 10;

/// Most bytes in the values of all columns of attributes: many names may lead to one version.
const MOST_BYTES: usize = 64 << 20;

/// Makes the table, with a row for each version.
pub(super) fn table(site: &Site<'_>, kept: &VersionsGroup, history: &History, interrupt: &Interrupt) -> Table {
    let versions = &history.versions;
    let names: LargeStringArray = versions.iter().map(|version| Some(version.name.to_str_lossy())).collect();
    let before = versions.iter().map(|version| version.previous.as_ref().map(|name| name.to_str_lossy()));
    let before: LargeStringArray = before.collect();
    let times: Int64Array = versions.iter().map(|version| version.time).collect();
    let current = history.current().map(|version| &version.name);
    let is_current: BooleanArray = versions.iter().map(|version| Some(Some(&version.name) == current)).collect();
    let mut found: Vec<(BString, Result<ArrayRef, Unreadable>)> = vec![
        ("name".into(), Ok(Arc::new(names))),
        ("prev_version".into(), Ok(Arc::new(before))),
        ("timestamp".into(), Ok(Arc::new(times))),
        ("current".into(), Ok(Arc::new(is_current))),
    ];
    let mut left = MOST_BYTES;
    found.extend(users(versions).map(|name| (name.clone(), values(versions, name, &mut left, interrupt))));
    let stated: Vec<BString> = found.iter().map(|(name, _)| name.clone()).collect();
    let named = datasets::distinct(&stated).into_iter().zip(found).zip(1..);
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
        Column {
            meaning: Meaning { times: times.map(Box::new), ..Meaning::default() },
            ..Column::new(name, path, id, rows, Arc::default())
        }
    });
    Table {
        rows: versions.len() as u64,
        is_held: true,
        attributes: kept.attributes.clone(),
        columns: columns.collect(),
        ..Table::empty("/_version_data/versions", Versioned.about().name)
    }
}

/// Names of the attributes that users gave to versions.
fn users(versions: &[Version]) -> impl Iterator<Item = &BString> {
    let names = versions.iter().flat_map(|version| &version.attributes).map(|attribute| &attribute.name);
    let names: BTreeSet<&BString> = names.filter(|name| !name.is_empty()).collect();
    names.into_iter().take(MOST_ATTRIBUTES)
}

/// Collects an attribute of each version, with null where a version lacks it. `left` is the number of bytes that may
/// still be used, and is reduced.
fn values(
    versions: &[Version],
    name: &BString,
    left: &mut usize,
    interrupt: &Interrupt,
) -> Result<ArrayRef, Unreadable> {
    let mut own = *left;
    let values: Vec<Option<ArrayRef>> = versions
        .iter()
        .map(|version| {
            interrupt.check()?;
            let attribute = version.attributes.iter().find(|attribute| attribute.name == *name);
            attribute.map(|attribute| within(value(attribute)?, &mut own)).transpose()
        })
        .collect::<Result<_, _>>()?;
    within(of_one_type(values, *left, interrupt)?, left)
}

/// Deducts the bytes of a value from those that are `left`.
fn within(value: ArrayRef, left: &mut usize) -> Result<ArrayRef, Unreadable> {
    *left = left.checked_sub(value.get_buffer_memory_size()).ok_or_else(too_much)?;
    Ok(value)
}

fn too_much() -> Unreadable {
    format!("attributes of all versions take more than {MOST_BYTES} bytes: see metadata.json of each version").into()
}

/// Joins values of one row each, with null for a missing one. The result may take at most `left` bytes.
fn of_one_type(values: Vec<Option<ArrayRef>>, mut left: usize, interrupt: &Interrupt) -> Result<ArrayRef, Unreadable> {
    let known = values.iter().flatten().map(|value| value.data_type());
    let mut types: Vec<&DataType> = Vec::new();
    known.for_each(|known| {
        if !types.contains(&known) {
            types.push(known)
        }
    });
    let several = || Unreadable::from(format!("it is of {} types: see metadata.json of each version", types.len()));
    let data_type = common(&types).ok_or_else(several)?;
    // A null row of fixed width takes as much room as any other.
    if fixed_width(&data_type).saturating_mul(values.len() as u64) > left as u64 {
        return Err(too_much());
    }
    let none = new_null_array(&data_type, 1);
    let values = values.iter().map(|value| {
        interrupt.check()?;
        match value {
            None => Ok(none.clone()),
            Some(value) if *value.data_type() == data_type => Ok(value.clone()),
            Some(value) if *value.data_type() == WITHOUT_ELEMENTS => {
                let item = Arc::new(Field::new_list_field(DataType::Null, true));
                let empty =
                    LargeListArray::new(item, OffsetBuffer::from_lengths([0]), new_empty_array(&DataType::Null), None);
                Ok(cast(&empty, &data_type)?)
            }
            Some(value) => {
                let made = cast(value, &data_type)?;
                // A float cannot hold every integer exactly.
                let is_same = cast(&made, value.data_type()).is_ok_and(|back| back.as_ref() == value.as_ref());
                within(is_same.then_some(made).ok_or_else(several)?, &mut left)
            }
        }
    });
    let values: Vec<ArrayRef> = values.collect::<Result<_, _>>()?;
    let values: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
    concat(&values).map_err(Unreadable::from)
}

/// The type that an array without elements gets.
const WITHOUT_ELEMENTS: DataType = DataType::FixedSizeBinary(0);

/// The type to which values of all these types can be converted: the wider number type, or lists for arrays. `None`:
/// there is none.
fn common(types: &[&DataType]) -> Option<DataType> {
    match types {
        [only] => Some((*only).clone()),
        _ if types.iter().all(|data_type| data_type.is_integer() && **data_type != DataType::UInt64) => {
            Some(DataType::Int64)
        }
        _ if types.iter().all(|data_type| data_type.is_integer() || data_type.is_floating()) => Some(DataType::Float64),
        _ => {
            let lists = types.iter().filter(|data_type| ***data_type != WITHOUT_ELEMENTS);
            let mut items: Vec<&DataType> = lists
                .map(|data_type| match data_type {
                    DataType::FixedSizeList(item, _) => Some(item.data_type()),
                    _ => None,
                })
                .collect::<Option<_>>()?;
            items.dedup();
            Some(DataType::LargeList(Arc::new(Field::new_list_field(common(&items)?, true))))
        }
    }
}

/// Decodes the value of an attribute into one row.
fn value(attribute: &Attribute) -> Result<ArrayRef, Unreadable> {
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
        let shown = arrow_type(&datatype);
        let fits = fixed_width(&shown) <= LONGEST as u64;
        return fits.then(|| new_null_array(&shown, 1)).ok_or_else(|| "its type is too wide".into());
    }
    let stored = attribute.value.as_ref().map_err(Clone::clone)?;
    let bytes = stored.bytes.len() + stored.heap.len();
    if bytes > LONGEST {
        return Err(format!("a value of {bytes} bytes: see metadata.json of its version").into());
    }
    let value =
        decode(&datatype, Buffer::from(stored.bytes.as_slice()), 1, &HeapBytes(&stored.heap), &mut Oddities::new());
    value.map_err(Unreadable::from)
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};

    use super::*;
    use crate::catalogue::{ByteOrder, Elements, FloatFormat};

    fn attribute(class: Class, shape: &[u64], bytes: Vec<u8>) -> Attribute {
        Attribute {
            name: "a".into(),
            datatype: Datatype { size: 8, class },
            shape: shape.to_vec(),
            null: false,
            value: Ok(Elements { bytes, heap: Vec::new() }),
            references: Vec::new(),
        }
    }

    fn column(attributes: Vec<Attribute>) -> ArrayRef {
        let values = attributes.iter().map(|attribute| Some(value(attribute).unwrap())).collect();
        of_one_type(values, MOST_BYTES, &Interrupt::default()).unwrap()
    }

    #[test]
    fn numbers_and_lists_of_several_types_are_of_one() {
        let order = ByteOrder::Little;
        let integer = || Class::Integer { signed: true, order, precision: 64, offset: 0 };
        let float = || Class::Float { order, format: FloatFormat::Double };
        let whole = |values: &[i64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let half = 6.5_f64.to_le_bytes().to_vec();
        let numbers = column(vec![attribute(integer(), &[], whole(&[5])), attribute(float(), &[], half)]);
        assert_eq!(numbers.as_primitive::<Float64Type>().values(), &[5.0, 6.5]);
        let values =
            [attribute(integer(), &[], whole(&[(1 << 53) + 1])), attribute(float(), &[], 0_f64.to_le_bytes().into())];
        let values = values.iter().map(|attribute| Some(value(attribute).unwrap())).collect();
        assert!(of_one_type(values, MOST_BYTES, &Interrupt::default()).unwrap_err().contains("2 types"));
        let list = |values: &[i64]| attribute(integer(), &[values.len() as u64], whole(values));
        // Missing rows are as wide as the one that is there.
        let mut wide = vec![None; 20_000];
        wide[0] = Some(value(&list(&[1; 1_000])).unwrap());
        assert!(of_one_type(wide, MOST_BYTES, &Interrupt::default()).unwrap_err().contains("bytes"));
        let lists = column(vec![list(&[1, 2]), list(&[]), list(&[3])]);
        let items = |at: usize| lists.as_list::<i64>().value(at).as_primitive::<Int64Type>().values().to_vec();
        assert_eq!([items(0), items(1), items(2)], [vec![1, 2], vec![], vec![3]]);
    }
}
