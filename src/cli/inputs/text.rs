//! CSV and NDJSON: infers types of columns in a pass over the whole file; columns with a given type are read as text.

use std::io::BufReader;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_csv::reader::Format;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::{AHEAD, Batches, Input, Source, Typed, batch_rows};

/// Most rows of a batch.
const ROWS: usize = 8192;

/// A file of lines.
pub(super) struct Text {
    source: Source,
    schema: SchemaRef,
    /// The format of CSV; `None`: NDJSON.
    format: Option<Format>,
    /// Number of rows.
    rows: usize,
    /// Rows of a batch, by the mean length of lines.
    batch: usize,
}

impl Text {
    pub fn csv(source: Source, separator: char, types: &[Typed]) -> Result<Self, ArrowError> {
        let separator = u8::try_from(separator);
        let separator =
            separator.map_err(|_| ArrowError::ParseError("a separator is one character of ASCII".into()))?;
        let format = Format::default().with_header(true).with_delimiter(separator);
        let (schema, rows) = format.infer_schema(source.counting("finding types")?, None)?;
        let schema = in_zones(&schema, &format, &source, rows)?;
        Self::new(source, &schema, types, Some(format), rows)
    }

    pub fn ndjson(source: Source, types: &[Typed]) -> Result<Self, ArrowError> {
        let (schema, rows) = arrow_json::reader::infer_json_schema(source.counting("finding types")?, None)?;
        Self::new(source, &schema, types, None, rows)
    }

    fn new(
        source: Source,
        schema: &Schema,
        types: &[Typed],
        format: Option<Format>,
        rows: usize,
    ) -> Result<Self, ArrowError> {
        let batch = batch_rows(source.reader()?.metadata()?.len(), rows as u64).min(ROWS);
        Ok(Self { source, schema: typed(schema, types), format, rows, batch })
    }
}

/// The schema of CSV: a column of times is one of instants if all values have a zone, and text if only some do, since
/// the others could be any instant.
fn in_zones(schema: &Schema, format: &Format, source: &Source, rows: usize) -> Result<Schema, ArrowError> {
    let fields = schema.fields().iter().enumerate();
    let times: Vec<usize> =
        fields.filter(|(_, field)| matches!(field.data_type(), DataType::Timestamp(..))).map(|(at, _)| at).collect();
    // Whether there are values without a zone, and with one.
    let mut met = vec![[false; 2]; times.len()];
    if !times.is_empty() {
        let text = |field: &Arc<Field>| field.as_ref().clone().with_data_type(DataType::Utf8);
        let texts = Schema::new(schema.fields().iter().map(text).collect::<Vec<_>>());
        let builder = arrow_csv::ReaderBuilder::new(texts.into()).with_format(format.clone());
        // The reader holds all fields of a batch, whichever are wanted.
        let batch = batch_rows(source.reader()?.metadata()?.len(), rows as u64).min(ROWS);
        let builder = builder.with_projection(times.clone()).with_batch_size(batch);
        for batch in builder.build_buffered(source.counting("finding types")?)? {
            for (met, column) in met.iter_mut().zip(batch?.columns()) {
                for time in column.as_string::<i32>().iter().flatten() {
                    // Anything after the clock is a zone: `Z`, `+02:00`, ` Europe/Paris`.
                    let clock = time.get(DATE + 1..).unwrap_or_default();
                    let zone = clock.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ':' | '.'));
                    met[usize::from(!zone.trim().is_empty())] = true;
                }
            }
        }
    }
    let field = |(at, field): (usize, &Arc<Field>)| {
        let met = times.iter().position(|time| *time == at).map(|time| met[time]);
        let data_type = match (met, field.data_type()) {
            (Some([false, true]), DataType::Timestamp(unit, _)) => DataType::Timestamp(*unit, Some("UTC".into())),
            (Some([true, true]), _) => DataType::Utf8,
            (_, other) => other.clone(),
        };
        field.as_ref().clone().with_data_type(data_type)
    };
    Ok(Schema::new(schema.fields().iter().enumerate().map(field).collect::<Vec<_>>()))
}

/// Characters of `2026-01-31`.
const DATE: usize = 10;

/// The schema, with text as the type of columns without values, and of columns that will be cast to a given type.
fn typed(schema: &Schema, types: &[Typed]) -> SchemaRef {
    let typed = |field: &Field| match field.data_type() {
        DataType::Null => field.clone().with_data_type(DataType::Utf8),
        _ if types.iter().any(|typed| typed.is_of(field.name())) => field.clone().with_data_type(DataType::Utf8),
        _ => field.clone(),
    };
    Arc::new(Schema::new(schema.fields().iter().map(|field| typed(field)).collect::<Vec<_>>()))
}

impl Input for Text {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn counted(&self) -> Option<u64> {
        Some(self.rows as u64)
    }

    fn scan(&self, columns: &[usize]) -> Result<Batches, ArrowError> {
        let file = BufReader::with_capacity(AHEAD, self.source.reader()?);
        let columns = columns.to_vec();
        Ok(match &self.format {
            Some(format) => {
                let builder = arrow_csv::ReaderBuilder::new(self.schema.clone()).with_format(format.clone());
                let reader = builder.with_batch_size(self.batch).build_buffered(file)?;
                Box::new(reader.map(move |batch| batch?.project(&columns)))
            }
            None => {
                let builder = arrow_json::ReaderBuilder::new(self.schema.clone()).with_batch_size(self.batch);
                // Numbers in a column of text become text.
                let builder = builder.with_coerce_primitive(true);
                Box::new(builder.build(file)?.map(move |batch| batch?.project(&columns)))
            }
        })
    }
}
