//! Tables of HDF5 files as inputs, of any dialect.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::{BATCH, Batches, Input, MOST_ROWS};
use crate::source::Interrupt;
use crate::store::{Rows, ValueSet};
use crate::table::{Column, Table};

/// A table as a mount shows it.
pub(super) struct ShownTable {
    schema: SchemaRef,
    columns: Vec<Arc<dyn Rows>>,
    rows: u64,
    interrupt: Interrupt,
}

impl ShownTable {
    /// Takes the columns of the table that can be written; returns the others by name, with the reason.
    pub fn new(
        table: &Table,
        why_not: impl Fn(&Field) -> Option<String>,
        interrupt: &Interrupt,
    ) -> (Self, Vec<(String, String)>) {
        let (mut fields, mut columns, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        for column in &table.columns {
            match column.shown() {
                Ok(rows) if column.in_table => {
                    let field = field(column, rows.as_ref());
                    match why_not(&field) {
                        Some(reason) => left_out.push((column.name.to_string(), reason)),
                        None => {
                            fields.push(field);
                            columns.push(rows);
                        }
                    }
                }
                Ok(_) if column.is_within_another => {}
                Ok(_) => left_out.push((column.name.to_string(), column.why_apart(table.rows))),
                Err(reason) => left_out.push((column.name.to_string(), reason.into())),
            }
        }
        let schema = Arc::new(Schema::new(fields));
        (Self { schema, columns, rows: table.rows, interrupt: interrupt.clone() }, left_out)
    }
}

fn field(column: &Column, rows: &dyn Rows) -> Field {
    let notes: HashMap<_, _> = column.notes().into_iter().map(|(key, text)| (key.to_owned(), text)).collect();
    let data_type = unpacked(rows.data_type());
    let ordered = matches!(rows.hints().values, Some(ValueSet::Categories { ordered: true, .. }));
    let field = Field::new(column.name.to_string(), data_type, rows.nullable()).with_metadata(notes);
    if matches!(field.data_type(), DataType::Dictionary(..)) { field.with_dict_is_ordered(ordered) } else { field }
}

/// The type to pass on: labels that are not text are replaced by their values.
fn unpacked(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, labels) if **labels != DataType::LargeUtf8 => labels.as_ref().clone(),
        other => other.clone(),
    }
}

impl Input for ShownTable {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn rows(&self) -> Option<u64> {
        Some(self.rows)
    }

    fn is_columnar(&self) -> bool {
        true
    }

    fn scan(&self, columns: &[usize]) -> Result<Batches, ArrowError> {
        let rows: Vec<Arc<dyn Rows>> = columns.iter().filter_map(|column| self.columns.get(*column).cloned()).collect();
        let schema = Arc::new(self.schema.project(columns)?);
        let (all, interrupt) = (self.rows, self.interrupt.clone());
        let mut next = 0;
        Ok(Box::new(std::iter::from_fn(move || {
            if next >= all {
                return None;
            }
            let batch = || {
                let wrong = |error: crate::store::Error| ArrowError::ExternalError(Box::new(error));
                let mut end = all.min(next + MOST_ROWS);
                for rows in &rows {
                    end = end.min(rows.fitting(next..end, BATCH, &interrupt).map_err(wrong)?.end.max(next + 1));
                }
                let arrays = rows.iter().zip(schema.fields()).map(|(rows, field)| {
                    let array = rows.array(next..end, &interrupt).map_err(wrong)?;
                    let is_it = array.data_type() == field.data_type();
                    if is_it { Ok(array) } else { arrow_cast::cast(&array, field.data_type()) }
                });
                let arrays = arrays.collect::<Result<Vec<_>, ArrowError>>()?;
                next = end;
                // Every column of a batch is nullable, whatever its values.
                let fields = schema.fields().iter().zip(&arrays);
                let fields = fields.map(|(field, array)| {
                    field.as_ref().clone().with_data_type(array.data_type().clone()).with_nullable(true)
                });
                RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), arrays)
            };
            let mut batch = batch;
            let batch = batch();
            if batch.is_err() {
                next = all;
            }
            Some(batch)
        })))
    }
}
