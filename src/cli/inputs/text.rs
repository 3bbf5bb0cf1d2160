//! CSV and NDJSON: types of columns are inferred by a pass over the whole file.

use std::io::BufReader;
use std::sync::Arc;

use arrow_csv::reader::Format;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::{Batches, Input, Source};

/// Rows of a batch: lines are of any length.
const ROWS: usize = 8192;

/// Bytes read ahead.
const AHEAD: usize = 1 << 20;

/// A file of lines.
pub(super) struct Text {
    source: Source,
    schema: SchemaRef,
    /// What separates the fields of CSV; `None` of NDJSON.
    format: Option<Format>,
}

impl Text {
    pub fn csv(source: Source, separator: char) -> Result<Self, ArrowError> {
        let separator = u8::try_from(separator);
        let separator =
            separator.map_err(|_| ArrowError::ParseError("a separator is one character of ASCII".into()))?;
        let format = Format::default().with_header(true).with_delimiter(separator);
        let (schema, _) = format.infer_schema(BufReader::with_capacity(AHEAD, source.reader()?), None)?;
        Ok(Self { source, schema: typed(&schema), format: Some(format) })
    }

    pub fn ndjson(source: Source) -> Result<Self, ArrowError> {
        let mut reader = BufReader::with_capacity(AHEAD, source.reader()?);
        let (schema, _) = arrow_json::reader::infer_json_schema(&mut reader, None)?;
        Ok(Self { source, schema: typed(&schema), format: None })
    }
}

/// The schema, where a column without any value is one of text.
fn typed(schema: &Schema) -> SchemaRef {
    let typed = |field: &Field| match field.data_type() {
        DataType::Null => field.clone().with_data_type(DataType::Utf8),
        _ => field.clone(),
    };
    Arc::new(Schema::new(schema.fields().iter().map(|field| typed(field)).collect::<Vec<_>>()))
}

impl Input for Text {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn scan(&self, columns: &[usize]) -> Result<Batches, ArrowError> {
        let file = BufReader::with_capacity(AHEAD, self.source.reader()?);
        let columns = columns.to_vec();
        Ok(match &self.format {
            Some(format) => {
                let builder = arrow_csv::ReaderBuilder::new(self.schema.clone()).with_format(format.clone());
                let reader = builder.with_batch_size(ROWS).build_buffered(file)?;
                Box::new(reader.map(move |batch| batch?.project(&columns)))
            }
            None => {
                let builder = arrow_json::ReaderBuilder::new(self.schema.clone()).with_batch_size(ROWS);
                Box::new(builder.build(file)?.map(move |batch| batch?.project(&columns)))
            }
        })
    }
}
