//! The one schema of the files of a dataset.
//!
//! It is that of most files; of equally many, of the first by name. Each further file, in the order of names, joins if
//! it has the same columns, in any order, and each has the same type or one that can be cast without loss: then the
//! column is widened as far as that takes. A file that cannot join is left out.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::DataType;
use bstr::BString;

use crate::table::{Column, Table, common_type};
use crate::views::parquet::ParquetColumn;

/// A column of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileField {
    name: BString,
    /// As readers of Parquet see it.
    data_type: DataType,
    nullable: bool,
    /// Whether the rows are numbers that can be cast.
    is_number: bool,
    units: Option<String>,
}

/// A column that all files of a dataset have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::fs::tree) struct CommonField {
    /// Its name.
    pub name: BString,
    /// As readers of Parquet see it.
    pub data_type: DataType,
    /// Whether a value of some file can be missing.
    pub nullable: bool,
}

/// The columns of a table's Parquet file.
pub(super) fn fields(table: &Table) -> Arc<[FileField]> {
    let field = |column: &Column| {
        let field = ParquetColumn::new(column).ok()?.plain_field().ok()?;
        Some(FileField {
            name: column.name.clone(),
            data_type: field.data_type().clone(),
            nullable: field.is_nullable(),
            is_number: column.rows.as_ref().is_ok_and(|rows| rows.data_type().is_numeric()),
            units: column.units.clone(),
        })
    };
    table.columns.iter().filter(|column| column.in_table).filter_map(field).collect()
}

/// What becomes of the files: the columns, which files have them, and what is to be said of files, by their places.
#[derive(Debug, Default)]
pub(super) struct CommonSchema {
    pub fields: Vec<CommonField>,
    pub joined: Vec<usize>,
    pub said: Vec<(usize, String)>,
}

/// Names and types in an order that does not depend on that of the columns.
type Signature<'a> = Vec<(&'a BString, &'a DataType)>;

fn signature(fields: &[FileField]) -> Signature<'_> {
    let mut signature: Signature = fields.iter().map(|field| (&field.name, &field.data_type)).collect();
    signature.sort_by_key(|(name, _)| *name);
    signature
}

/// Finds the schema of files, which come in the order of their names.
pub(super) fn common_schema(files: &[Arc<[FileField]>]) -> CommonSchema {
    // How many files have a signature, and which has it first.
    let mut counts: HashMap<Signature<'_>, (usize, usize)> = HashMap::new();
    for (at, file) in files.iter().enumerate() {
        counts.entry(signature(file)).or_insert((0, at)).0 += 1;
    }
    let most = counts.values().max_by_key(|(count, first)| (*count, usize::MAX - first));
    let Some(base) = most.and_then(|(_, first)| files.get(*first)) else { return CommonSchema::default() };
    let places: HashMap<&BString, usize> = base.iter().enumerate().map(|(at, field)| (&field.name, at)).collect();
    let (mut wide, mut common) = (base.to_vec(), CommonSchema::default());
    wide.iter_mut().for_each(|field| field.nullable = false);
    for (at, file) in files.iter().enumerate() {
        match joined(&wide, file, &places) {
            Ok(next) => {
                wide = next;
                common.joined.push(at);
            }
            Err(reason) => common.said.push((at, format!("{reason}; the file is left out"))),
        }
    }
    for at in &common.joined {
        let said = files[*at].iter().filter_map(|field| Some(said(field, base.get(*places.get(&field.name)?)?, &wide)));
        let said: Vec<String> = said.flatten().collect();
        if !said.is_empty() {
            common.said.push((*at, said.join("; ")));
        }
    }
    let field =
        |field: FileField| CommonField { name: field.name, data_type: field.data_type, nullable: field.nullable };
    common.fields = wide.into_iter().map(field).collect();
    common
}

/// The columns once a file has joined, or why it cannot.
fn joined(wide: &[FileField], file: &[FileField], places: &HashMap<&BString, usize>) -> Result<Vec<FileField>, String> {
    let mut next = wide.to_vec();
    if let Some(other) = file.iter().find(|field| !places.contains_key(&field.name)) {
        return Err(format!("it has a column {:?}, which most files have not", other.name));
    }
    if file.len() < wide.len() {
        let missing = wide.iter().find(|field| file.iter().all(|own| own.name != field.name));
        return Err(missing.map_or_else(String::new, |field| format!("it has no column {:?}", field.name)));
    }
    for field in file {
        let Some(common) = places.get(&field.name).and_then(|at| next.get_mut(*at)) else { continue };
        common.nullable |= field.nullable;
        if common.data_type == field.data_type {
            common.is_number &= field.is_number;
            continue;
        }
        let both = common.is_number && field.is_number;
        let wider = if both { common_type(&common.data_type, &field.data_type) } else { None };
        let lost = || format!("{:?} is {}, and {} elsewhere", field.name, field.data_type, common.data_type);
        common.data_type = wider.ok_or_else(lost)?;
    }
    Ok(next)
}

/// What is to be said of a column of a file that joined.
fn said(field: &FileField, base: &FileField, wide: &[FileField]) -> Option<String> {
    let name = &field.name;
    let shown = wide.iter().find(|wide| wide.name == *name)?;
    if shown.data_type != field.data_type {
        return Some(format!("{name:?} is {}, and is shown as {}", field.data_type, shown.data_type));
    }
    // Instants are the same ones whatever they are counted from.
    if matches!(shown.data_type, DataType::Timestamp(..)) {
        return None;
    }
    let units = |field: &FileField| field.units.clone().unwrap_or_else(|| "no units".into());
    (field.units != base.units).then(|| format!("{name:?} is in {}, and in {} elsewhere", units(field), units(base)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(fields: &[(&str, DataType, bool)]) -> Arc<[FileField]> {
        let field = |(name, data_type, nullable): &(&str, DataType, bool)| FileField {
            name: (*name).into(),
            data_type: data_type.clone(),
            nullable: *nullable,
            is_number: data_type.is_numeric(),
            units: None,
        };
        fields.iter().map(field).collect()
    }

    fn of_one(types: &[DataType]) -> CommonSchema {
        common_schema(&types.iter().map(|data_type| file(&[("x", data_type.clone(), false)])).collect::<Vec<_>>())
    }

    #[test]
    fn numbers_are_widened_where_nothing_is_lost() {
        use DataType::{Boolean, Float32, Float64, Int16, Int32, Int64, UInt8, UInt32, UInt64, Utf8};
        for (types, expected) in [
            (vec![Int32, Int32], Int32),
            (vec![Int32, Int64], Int64),
            (vec![Int16, UInt32, Int32], Int64),
            (vec![UInt8, UInt64], UInt64),
            (vec![Float32, Float64], Float64),
            (vec![Int32, Float32], Float64),
        ] {
            let common = of_one(&types);
            assert_eq!((common.joined.len(), &common.fields[0].data_type), (types.len(), &expected), "{types:?}");
        }
        for types in [[Int64, UInt64], [Int64, Float64], [Utf8, Int32], [Boolean, UInt8]] {
            let common = of_one(&types);
            assert_eq!((common.joined, common.said.len()), (vec![0], 1), "{types:?}");
            assert_eq!(common.fields[0].data_type, types[0]);
        }
        // What was widened before goes no further.
        assert_eq!(of_one(&[Int32, Float32, Int64]).joined, [0, 1]);
    }

    #[test]
    fn units_are_compared_of_numbers_and_not_of_times() {
        use arrow_schema::TimeUnit::{Microsecond, Millisecond};
        let of = |data_type: &DataType, units: &str| -> Arc<[FileField]> {
            let fields = file(&[("x", data_type.clone(), false)]);
            fields.iter().map(|field| FileField { units: Some(units.into()), ..field.clone() }).collect()
        };
        let said =
            |types: [&DataType; 2]| common_schema(&[of(types[0], "s since 2020-01-01"), of(types[1], "s")]).said.len();
        let [coarse, fine] = [Millisecond, Microsecond].map(|unit| DataType::Timestamp(unit, Some("UTC".into())));
        assert_eq!(said([&DataType::Int32; 2]), 1);
        assert_eq!(said([&coarse; 2]), 0);
        // What is another type is left out.
        assert_eq!((said([&coarse, &fine]), said([&coarse, &DataType::Int64])), (1, 1));
    }

    #[test]
    fn most_files_decide_and_of_equally_many_the_first() {
        use DataType::{Int32, Utf8};
        let (a, b) = (file(&[("x", Int32, false), ("y", Utf8, false)]), file(&[("x", Utf8, true)]));
        let turned = file(&[("y", Utf8, true), ("x", Int32, false)]);
        let names =
            |common: &CommonSchema| common.fields.iter().map(|field| field.name.to_string()).collect::<Vec<_>>();
        let tie = common_schema(&[b.clone(), a.clone()]);
        assert_eq!((tie.joined.clone(), names(&tie)), (vec![0], vec!["x".to_owned()]));
        let most = common_schema(&[b, a, turned]);
        assert_eq!((most.joined.clone(), names(&most)), (vec![1, 2], vec!["x".to_owned(), "y".to_owned()]));
        assert_eq!(most.fields.iter().map(|field| field.nullable).collect::<Vec<_>>(), [false, true]);
        assert_eq!(most.said.len(), 1);
        assert!(common_schema(&[]).fields.is_empty());
    }
}
