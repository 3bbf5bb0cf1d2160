//! The common schema of a dataset: the union of the columns of its files.
//!
//! It begins with the set of columns that most files share; on a tie, with that of the first file by name. Every other
//! file joins in the order of names if each of its columns has the type of the schema's column, or a common type with
//! it; the column is widened to that type. Its new columns are appended. A file that cannot join is left out. A column
//! that a file lacks is null in its rows.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_schema::{DataType, Field};
use bstr::BString;

use crate::table::{CastRows, Column, Table, Times, common_type};
use crate::views::parquet::ParquetColumn;

/// Most columns that a dataset has beyond those of the most common schema: every file gets all of them.
const MOST_MORE: usize = 1 << 16;

/// Most columns that a finding names.
const MOST_NAMED: usize = 3;

/// A column of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileField {
    name: BString,
    /// The type that Parquet readers see if values can be null.
    data_type: DataType,
    /// The type if no value can be null, where it differs.
    whole: Option<DataType>,
    /// Type of the instants or durations as shown, since Parquet lacks some units and zones.
    times: Option<DataType>,
    nullable: bool,
    units: Option<String>,
}

/// A column of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommonField {
    /// Name of the column.
    pub name: BString,
    /// The type that Parquet readers see.
    pub data_type: DataType,
    /// Type of the instants or durations as shown.
    pub times: Option<DataType>,
    /// Whether the column can be null in some file, or some file lacks it.
    pub nullable: bool,
}

/// A column's field as Parquet readers see it; `None`: the column has no place in a Parquet file.
pub(super) fn plain_field(column: &Column) -> Option<Field> {
    ParquetColumn::new(column).ok()?.plain_field().ok()
}

/// The same column with a nullable type; `None`: its rows cannot be read.
pub(super) fn nullable(column: &Column) -> Option<Column> {
    let rows = CastRows::new(column.rows.as_ref().ok()?.clone(), None, true);
    Some(Column { rows: Ok(Arc::new(rows)), ..column.clone() })
}

/// The columns of a table's Parquet file.
pub(super) fn fields(table: &Table) -> Arc<[FileField]> {
    let fields = table.columns.iter().filter(|column| column.in_table).filter_map(|column| {
        let field = plain_field(column)?;
        let own = field.data_type().clone();
        // The fields of a compound or array depend on whether the compound or array is nullable.
        let may_differ = own.is_nested() && !field.is_nullable();
        let data_type = if may_differ { plain_field(&nullable(column)?)?.data_type().clone() } else { own.clone() };
        let is_time = matches!(own, DataType::Timestamp(..) | DataType::Duration(_));
        let shown = if is_time { Some(column.shown().ok()?.data_type().clone()) } else { None };
        Some(FileField {
            name: column.name.clone(),
            whole: (data_type != own).then_some(own),
            data_type,
            times: shown,
            nullable: field.is_nullable(),
            units: column.meaning.units.clone(),
        })
    });
    fields.collect()
}

/// The common schema of some files, which are known by their positions.
#[derive(Debug, Default)]
pub(super) struct CommonSchema {
    pub fields: Vec<CommonField>,
    pub joined: Vec<usize>,
    /// Remarks on files that joined.
    pub said: Vec<(usize, String)>,
    /// Files that are left out, and why.
    pub left_out: Vec<(usize, String)>,
}

/// Names and types, sorted so that the order of columns does not matter.
type Signature<'a> = Vec<(&'a BString, &'a DataType)>;

fn signature(fields: &[FileField]) -> Signature<'_> {
    let mut signature: Signature = fields.iter().map(|field| (&field.name, &field.data_type)).collect();
    signature.sort_by_key(|(name, _)| *name);
    signature
}

/// The union of the columns of the files so far.
#[derive(Default)]
struct Union {
    fields: Vec<FileField>,
    /// Number of files that have each column.
    counts: Vec<usize>,
    places: HashMap<BString, usize>,
    /// The columns of the most common schema.
    first: Vec<FileField>,
}

/// Computes the common schema of files, given in the order of their names.
pub(super) fn common_schema(files: &[Arc<[FileField]>]) -> CommonSchema {
    // For each signature, its number of files and the first such file.
    let mut counts: HashMap<Signature<'_>, (usize, usize)> = HashMap::new();
    for (at, file) in files.iter().enumerate() {
        counts.entry(signature(file)).or_insert((0, at)).0 += 1;
    }
    let most = counts.values().max_by_key(|(count, first)| (*count, usize::MAX - first));
    let Some(base) = most.and_then(|(_, first)| files.get(*first)) else { return CommonSchema::default() };
    let (mut union, mut common) = (Union::default(), CommonSchema::default());
    base.iter().for_each(|field| union.add(field, 0));
    union.first = base.to_vec();
    for (at, file) in files.iter().enumerate() {
        match union.join(file) {
            Ok(()) => common.joined.push(at),
            Err(reason) => common.left_out.push((at, reason)),
        }
    }
    let all = common.joined.len();
    for at in &common.joined {
        let said = union.said(&files[*at], all);
        if !said.is_empty() {
            common.said.push((*at, said.join("; ")));
        }
    }
    let lacking = union.counts.into_iter().map(|count| count < all);
    common.fields = union.fields.into_iter().zip(lacking).map(|(field, lacks)| field.common(lacks)).collect();
    common
}

impl FileField {
    /// The column as the dataset has it; `lacks`: some file lacks it.
    fn common(self, lacks: bool) -> CommonField {
        let nullable = self.nullable || lacks;
        let data_type = self.whole.filter(|_| !nullable).unwrap_or(self.data_type);
        CommonField { name: self.name, data_type, times: self.times, nullable }
    }

    /// The column widened to hold the values of another one as well.
    fn with(&self, other: &Self) -> Result<Self, String> {
        let is_same = (&self.data_type, &self.times) == (&other.data_type, &other.times);
        let mut wide = Self { nullable: self.nullable || other.nullable, ..self.clone() };
        // The two types agree only if values may be null.
        wide.nullable |= self.whole != other.whole;
        if is_same {
            return Ok(wide);
        }
        let lost = || {
            let [own, elsewhere] = [other, self].map(|field| field.times.as_ref().unwrap_or(&field.data_type));
            format!("{:?} is {own}, and {elsewhere} elsewhere", other.name)
        };
        match (&self.times, &other.times) {
            (Some(own), Some(times)) => {
                let times = common_type(own, times).ok_or_else(lost)?;
                wide.data_type = in_parquet(&times).ok_or_else(lost)?;
                // Values out of range of the finer unit become null.
                wide.nullable = true;
                wide.times = Some(times);
            }
            (None, None) => wide.data_type = common_type(&self.data_type, &other.data_type).ok_or_else(lost)?,
            _ => return Err(lost()),
        }
        Ok(wide)
    }
}

/// The type of instants or durations in Parquet; `None`: Parquet has none for them.
fn in_parquet(times: &DataType) -> Option<DataType> {
    match times {
        DataType::Timestamp(unit, zone) => Some(Times::counts(*unit, zone.as_deref())?.of_parquet().data_type()),
        other => Some(other.clone()),
    }
}

impl Union {
    fn add(&mut self, field: &FileField, count: usize) {
        self.places.insert(field.name.clone(), self.fields.len());
        self.fields.push(field.clone());
        self.counts.push(count);
    }

    /// Adds the columns of a file; if it cannot join, returns the reason and changes nothing.
    fn join(&mut self, file: &[FileField]) -> Result<(), String> {
        let widened = file.iter().filter_map(|field| {
            let at = *self.places.get(&field.name)?;
            Some(self.fields.get(at)?.with(field).map(|wide| (at, wide)))
        });
        let widened: Vec<(usize, FileField)> = widened.collect::<Result<_, _>>()?;
        let new: Vec<&FileField> = file.iter().filter(|field| !self.places.contains_key(&field.name)).collect();
        if new.len() > MOST_MORE.saturating_sub(self.fields.len() - self.first.len()) {
            return Err(format!("the files have more than {MOST_MORE} columns that most of them lack"));
        }
        for (at, field) in widened {
            self.fields[at] = field;
            self.counts[at] += 1;
        }
        new.into_iter().for_each(|field| self.add(field, 1));
        Ok(())
    }

    /// Remarks on a file that joined; `all`: the number of files.
    fn said(&self, file: &[FileField], all: usize) -> Vec<String> {
        let mut said: Vec<String> = file.iter().filter_map(|field| self.said_of(field, all)).collect();
        let own: BTreeSet<&BString> = file.iter().map(|field| &field.name).collect();
        // A column that few files have is remarked on in those files.
        let lacking: Vec<String> = self.first.iter().filter(|field| !own.contains(&field.name)).map(quoted).collect();
        if !lacking.is_empty() {
            let more = lacking.len().saturating_sub(MOST_NAMED);
            let more = if more > 0 { format!(" and {more} others") } else { String::new() };
            let named = &lacking[..lacking.len().min(MOST_NAMED)];
            said.push(format!("it has no column {}{more}: missing there", named.join(", ")));
        }
        said
    }

    fn said_of(&self, field: &FileField, all: usize) -> Option<String> {
        let (name, at) = (&field.name, *self.places.get(&field.name)?);
        let (shown, count) = (self.fields.get(at)?, *self.counts.get(at)?);
        let Some(usual) = self.first.get(at) else {
            let others = match all.saturating_sub(count) {
                1 => "1 other file lacks".to_owned(),
                others => format!("{others} other files lack"),
            };
            return Some(format!("it has a column {name:?}, which {others}: missing there"));
        };
        let [own, usual_type, common] =
            [field, usual, shown].map(|field| field.times.as_ref().unwrap_or(&field.data_type));
        if own != usual_type {
            return Some(match own == common {
                true => format!("{name:?} is {own}, and {usual_type} in most files, which show it as {own}"),
                false => format!("{name:?} is {own}, and is shown as {common}"),
            });
        }
        // Instants are the same whatever epoch their counts use.
        if matches!(common, DataType::Timestamp(..)) {
            return None;
        }
        let [units, usual_units] = [field, usual].map(|field| field.units.as_deref().unwrap_or("no units"));
        (field.units != usual.units).then(|| format!("{name:?} is in {units}, and in {usual_units} elsewhere"))
    }
}

fn quoted(field: &FileField) -> String {
    format!("{:?}", field.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(fields: &[(&str, DataType, bool)]) -> Arc<[FileField]> {
        let field = |(name, data_type, nullable): &(&str, DataType, bool)| FileField {
            name: (*name).into(),
            data_type: data_type.clone(),
            whole: None,
            times: matches!(data_type, DataType::Timestamp(..)).then(|| data_type.clone()),
            nullable: *nullable,
            units: None,
        };
        fields.iter().map(field).collect()
    }

    fn of_one(types: &[DataType]) -> CommonSchema {
        common_schema(&types.iter().map(|data_type| file(&[("x", data_type.clone(), false)])).collect::<Vec<_>>())
    }

    #[test]
    fn numbers_and_times_are_widened() {
        use DataType::{Boolean, Float32, Float64, Int16, Int32, Int64, UInt8, UInt32, UInt64, Utf8};
        use arrow_schema::TimeUnit::{Microsecond, Millisecond};
        let [coarse, fine] = [Millisecond, Microsecond].map(|unit| DataType::Timestamp(unit, Some("UTC".into())));
        for (types, expected) in [
            (vec![Int32, Int32], Int32),
            (vec![Int32, Int64], Int64),
            (vec![Int16, UInt32, Int32], Int64),
            (vec![UInt8, UInt64], UInt64),
            (vec![Float32, Float64], Float64),
            (vec![Int32, Float32], Float64),
            (vec![Int64, Float64], Float64),
            (vec![Int32, Float32, Int64], Float64),
            (vec![coarse.clone(), fine.clone()], fine.clone()),
        ] {
            let common = of_one(&types);
            assert_eq!((common.joined.len(), &common.fields[0].data_type), (types.len(), &expected), "{types:?}");
        }
        let naive = DataType::Timestamp(Millisecond, None);
        for types in [[Int64, UInt64], [Utf8, Int32], [Boolean, UInt8], [coarse.clone(), Int64], [coarse, naive]] {
            let common = of_one(&types);
            assert_eq!((common.joined, common.left_out.len()), (vec![0], 1), "{types:?}");
            assert_eq!(common.fields[0].data_type, types[0]);
        }
    }

    #[test]
    fn units_are_compared_of_numbers_and_not_of_times() {
        use arrow_schema::TimeUnit::Millisecond;
        let of = |data_type: &DataType, units: &str| -> Arc<[FileField]> {
            let fields = file(&[("x", data_type.clone(), false)]);
            fields.iter().map(|field| FileField { units: Some(units.into()), ..field.clone() }).collect()
        };
        let said =
            |types: [&DataType; 2]| common_schema(&[of(types[0], "s since 2020-01-01"), of(types[1], "s")]).said.len();
        let time = DataType::Timestamp(Millisecond, Some("UTC".into()));
        assert_eq!((said([&DataType::Int32; 2]), said([&time; 2])), (1, 0));
    }

    #[test]
    fn columns_of_most_files_come_first_and_what_a_file_lacks_can_be_missing() {
        use DataType::{Int32, Utf8};
        let (a, b) = (file(&[("x", Int32, false), ("y", Utf8, false)]), file(&[("x", Utf8, true)]));
        let turned = file(&[("y", Utf8, false), ("x", Int32, false)]);
        let shown = |common: &CommonSchema| {
            let fields = common.fields.iter().map(|field| (field.name.to_string(), field.nullable));
            fields.collect::<Vec<_>>()
        };
        let of =
            |named: &[(&str, bool)]| named.iter().map(|(name, can)| ((*name).to_owned(), *can)).collect::<Vec<_>>();
        // Of equally many the first decides, and its column of another type keeps the other file out.
        let tie = common_schema(&[b.clone(), a.clone()]);
        assert_eq!((tie.joined.clone(), shown(&tie)), (vec![0], of(&[("x", true)])));
        let most = common_schema(&[b, a.clone(), turned.clone()]);
        assert_eq!((most.joined.clone(), shown(&most)), (vec![1, 2], of(&[("x", false), ("y", false)])));
        assert_eq!((most.left_out.len(), most.said.len()), (1, 0));
        // A column less, one more, a type more.
        let less = file(&[("y", Utf8, false)]);
        let more = file(&[("more", Int32, false), ("x", DataType::Float64, false), ("y", Utf8, false)]);
        let union = common_schema(&[more, less, a, turned]);
        assert_eq!((union.joined.clone(), union.left_out.len()), (vec![0, 1, 2, 3], 0));
        assert_eq!(shown(&union), of(&[("x", true), ("y", false), ("more", true)]));
        assert_eq!(union.fields[0].data_type, DataType::Float64);
        let said: Vec<&str> = union.said.iter().map(|(_, said)| said.as_str()).collect();
        let number = "\"x\" is Float64, and Int32 in most files, which show it as Float64";
        let more = "it has a column \"more\", which 3 other files lack: missing there";
        assert_eq!(said[0], format!("{more}; {number}"));
        assert_eq!((said[1], said.len()), ("it has no column \"x\": missing there", 2));
        assert!(common_schema(&[]).fields.is_empty());
    }
}
