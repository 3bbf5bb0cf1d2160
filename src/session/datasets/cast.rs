//! Casts the columns of one file to those of its dataset.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};

use super::schema::{CommonField, nullable, plain_field};
use crate::catalogue::join;
use crate::store::{Rows, Tally};
use crate::table::{AbsentRows, CastRows, Column, Meaning, Table, Times};

/// Casts a column of a file to the type that the dataset has for it. A cast column has no learner, since a learner sees
/// the stored values. `tally` counts values that the cast rounds or cannot represent. `None`: the file has other
/// columns by now.
pub(crate) fn cast(column: &Column, field: &CommonField, tally: &Arc<Tally>) -> Option<Column> {
    let own = plain_field(column)?;
    if own.data_type() == &field.data_type && own.is_nullable() == field.nullable {
        return Some(column.clone());
    }
    if let Some(kept) = nullable(column).filter(|_| field.nullable)
        && plain_field(&kept)?.data_type() == &field.data_type
    {
        return Some(kept);
    }
    match &field.times {
        Some(times) => counts(column, times, tally),
        None => {
            let rows = CastRows::new(column.shown().ok()?, Some(field.data_type.clone()), field.nullable);
            Some(with(column, Arc::new(rows.counted(tally.clone()))))
        }
    }
}

/// The path of a column in findings; a field's name follows the path of its dataset.
pub(crate) fn path_of(column: &Column) -> String {
    let is_own = column.path.rsplit('/').next().is_some_and(|last| column.name == last);
    if is_own { column.path.clone() } else { join(&column.path, &column.name) }
}

/// The same column with other rows, and without what holds for the stored values alone: learner, times, duration.
pub(super) fn with(column: &Column, rows: Arc<dyn Rows>) -> Column {
    Column {
        rows: Ok(rows),
        learner: None,
        meaning: Meaning { times: None, duration: None, ..column.meaning.clone() },
        ..column.clone()
    }
}

/// Casts instants or durations to counts in the unit of this type.
pub(super) fn counts(column: &Column, times: &DataType, tally: &Arc<Tally>) -> Option<Column> {
    let counted = |unit| {
        let rows = CastRows::counts(column.shown().ok()?, unit).counted(tally.clone());
        Some(with(column, Arc::new(rows)))
    };
    match times {
        DataType::Timestamp(unit, zone) => {
            let times = Times::counts(*unit, zone.as_deref())?;
            let column = counted(*unit)?;
            Some(Column { meaning: Meaning { times: Some(Box::new(Ok(times))), ..column.meaning }, ..column })
        }
        DataType::Duration(unit) => {
            let column = counted(*unit)?;
            Some(Column { meaning: Meaning { duration: Some(*unit), ..column.meaning }, ..column })
        }
        _ => None,
    }
}

/// A column of nulls, for a column that a file lacks. `None`: no rows have this type.
pub(crate) fn absent(table: &Table, field: &CommonField) -> Option<Column> {
    let rows = Arc::new(AbsentRows::new(table.rows, of_rows(&field.data_type)));
    // No object stands behind the column: only its name distinguishes it.
    let id = table.columns.first()?.id;
    let column = Column::new(field.name.clone(), table.path.clone(), id, Ok(rows), Arc::default());
    (plain_field(&column)?.data_type() == &field.data_type).then_some(column)
}

/// The row type that Parquet readers see as this type.
pub(super) fn of_rows(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8 => DataType::LargeUtf8,
        DataType::List(item) => DataType::LargeList(field_of_rows(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(field_of_rows(item), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field_of_rows).collect()),
        other => other.clone(),
    }
}

fn field_of_rows(field: &FieldRef) -> FieldRef {
    Arc::new(Field::new(field.name(), of_rows(field.data_type()), field.is_nullable()))
}

#[cfg(test)]
mod tests {
    use arrow_schema::TimeUnit;

    use super::*;
    use crate::catalogue::{ColumnId, ObjectId};

    /// Whatever type a column has in other files, one that is not there has it as well.
    #[test]
    fn columns_that_are_not_there_have_the_type_of_others() {
        let list = |item: DataType, nullable| DataType::List(Arc::new(Field::new("element", item, nullable)));
        let fields = |fields: Vec<Field>| DataType::Struct(fields.into());
        let point =
            || fields(vec![Field::new("x", DataType::Float32, false), Field::new("is", DataType::Boolean, true)]);
        for data_type in [
            DataType::Utf8,
            DataType::Boolean,
            DataType::Int8,
            DataType::UInt64,
            DataType::Float64,
            DataType::Binary,
            DataType::Date32,
            DataType::FixedSizeBinary(3),
            DataType::Timestamp(TimeUnit::Nanosecond, None),
            DataType::Timestamp(TimeUnit::Microsecond, Some("Europe/Berlin".into())),
            DataType::Duration(TimeUnit::Second),
            list(DataType::Float64, false),
            list(DataType::Utf8, true),
            list(list(DataType::Int64, false), true),
            point(),
            list(point(), true),
            fields(vec![Field::new("texts", list(DataType::Utf8, true), false), Field::new("p", point(), false)]),
        ] {
            let id = ColumnId { object: ObjectId { file: 0, address: 0 }, field: 0 };
            let rows: Arc<dyn Rows> = Arc::new(AbsentRows::new(3, DataType::Int8));
            let other = Column::new("x".into(), "/t/x".into(), id, Ok(rows), Arc::default());
            let table = Table { rows: 3, columns: vec![other], ..Table::empty("/t", "") };
            let field = CommonField { name: "y".into(), data_type, times: None, nullable: true };
            assert!(absent(&table, &field).is_some(), "{field:?}");
        }
    }
}
