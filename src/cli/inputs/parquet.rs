//! Parquet files.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::timezone::Tz;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ProjectionMask};

use super::{BATCH, Batches, Input, Source, batch_rows};
use crate::producer::table::Profile;

/// A Parquet file. Texts are read as views, since many rows may share one long text of a dictionary.
pub(super) struct ParquetInput {
    source: Source,
    schema: SchemaRef,
    metadata: ArrowReaderMetadata,
}

impl ParquetInput {
    pub fn open(source: Source) -> Result<Self, ArrowError> {
        let metadata = ArrowReaderMetadata::load(&source.reader()?, ArrowReaderOptions::new())?;
        let schema = in_zones(&metadata);
        let viewed = schema.fields().iter().map(|field| match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => field.as_ref().clone().with_data_type(DataType::Utf8View),
            DataType::Binary | DataType::LargeBinary => field.as_ref().clone().with_data_type(DataType::BinaryView),
            _ => field.as_ref().clone(),
        });
        let viewed = Schema::new_with_metadata(viewed.collect::<Vec<_>>(), schema.metadata().clone());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(viewed));
        let metadata = ArrowReaderMetadata::try_new(metadata.metadata().clone(), options)?;
        Ok(Self { source, schema, metadata })
    }

    fn count(&self) -> u64 {
        self.metadata.metadata().row_groups().iter().map(|group| group.num_rows().max(0) as u64).sum()
    }
}

impl Input for ParquetInput {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn rows(&self) -> Option<u64> {
        Some(self.count())
    }

    fn is_columnar(&self) -> bool {
        // Readers of one descriptor would share its position.
        self.source.path.is_some()
    }

    fn believe(&self, column: usize, profile: &mut Profile) -> bool {
        let field = self.schema().field(column);
        let is_number = matches!(
            field.data_type(),
            DataType::Boolean
                | DataType::Int8
                | DataType::Int16
                | DataType::Int32
                | DataType::Int64
                | DataType::UInt8
                | DataType::UInt16
                | DataType::UInt32
                | DataType::UInt64
                | DataType::Date32
                | DataType::Timestamp(..)
        );
        if !is_number {
            return false;
        }
        let groups = self.metadata.metadata().row_groups();
        let mut read = || {
            let schema = self.metadata.parquet_schema();
            let told = StatisticsConverter::try_new(field.name(), self.schema(), schema).ok()?;
            let [least, greatest] = [told.row_group_mins(groups).ok()?, told.row_group_maxes(groups).ok()?];
            let nulls = told.row_group_null_counts(groups).ok()?;
            // A row group without statistics rules out any statement.
            for (at, group) in groups.iter().enumerate() {
                use arrow_array::Array;
                let nulls = nulls.is_valid(at).then(|| nulls.value(at))?;
                let has_values = nulls < group.num_rows().max(0) as u64;
                if has_values && (least.is_null(at) || greatest.is_null(at)) {
                    return None;
                }
            }
            let all = nulls.iter().flatten().sum::<u64>();
            profile.believe(&least, &greatest, self.count(), all);
            Some(())
        };
        read().is_some()
    }

    fn scan(&self, columns: &[usize]) -> Result<Batches, ArrowError> {
        let schema = self.metadata.parquet_schema();
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.source.reader()?, self.metadata.clone());
        let mask = ProjectionMask::roots(schema, columns.iter().copied());
        // The row group with the longest rows determines the batch size.
        let size = |group: &parquet::file::metadata::RowGroupMetaData| {
            let leaves = group.columns().iter().enumerate().filter(|(leaf, _)| mask.leaf_included(*leaf));
            let bytes = leaves.map(|(_, leaf)| leaf.uncompressed_size().max(0) as u64).sum::<u64>();
            batch_rows(bytes, group.num_rows().max(0) as u64)
        };
        let rows = self.metadata.metadata().row_groups().iter().map(size).min().unwrap_or(1024);
        let reader = builder.with_projection(mask).with_batch_size(rows).build()?;
        // The reader returns columns in the order of the file.
        let mut sorted: Vec<usize> = columns.to_vec();
        sorted.sort_unstable();
        let places: Vec<usize> =
            columns.iter().filter_map(|column| sorted.iter().position(|at| at == column)).collect();
        let schema = Arc::new(self.schema.project(columns)?);
        Ok(Box::new(reader.flat_map(move |batch| match batch.and_then(|batch| batch.project(&places)) {
            Ok(batch) => pieces(batch, schema.clone()),
            Err(error) => Box::new(std::iter::once(Err(error))),
        })))
    }
}

/// The schema of a file, with times (also within lists and structs) in the zones of the Arrow schema that the file was
/// written from. Parquet has no zones, and the library drops the zone of seconds, since they are stored as
/// milliseconds.
fn in_zones(metadata: &ArrowReaderMetadata) -> SchemaRef {
    let written = || {
        let keys = metadata.metadata().file_metadata().key_value_metadata()?;
        let text = keys.iter().find(|pair| pair.key == ARROW_SCHEMA_META_KEY)?.value.as_ref()?;
        let bytes = BASE64_STANDARD.decode(text).ok()?;
        // An encapsulated message begins with a marker and its length.
        let message = bytes.strip_prefix(&[0xff; 4]).and_then(|rest| rest.get(4..)).unwrap_or(&bytes);
        arrow_ipc::convert::try_schema_from_flatbuffer_bytes(message).ok()
    };
    let Some(written) = written() else { return metadata.schema().clone() };
    let fields = fields_in_zones(metadata.schema().fields(), written.fields());
    Arc::new(Schema::new_with_metadata(fields, metadata.schema().metadata().clone()))
}

/// Fields with the zones of the corresponding written fields.
fn fields_in_zones(fields: &Fields, written: &Fields) -> Fields {
    let field = |(at, field): (usize, &FieldRef)| match written.get(at).filter(|known| known.name() == field.name()) {
        Some(written) => field_in_zone(field, written),
        None => field.clone(),
    };
    fields.iter().enumerate().map(field).collect()
}

fn field_in_zone(field: &FieldRef, written: &Field) -> FieldRef {
    let data_type = match (field.data_type(), written.data_type()) {
        (DataType::Timestamp(unit, Some(_)), DataType::Timestamp(_, Some(zone))) if zone.parse::<Tz>().is_ok() => {
            DataType::Timestamp(*unit, Some(zone.clone()))
        }
        (DataType::List(items), DataType::List(written)) => DataType::List(field_in_zone(items, written)),
        (DataType::LargeList(items), DataType::LargeList(written)) => {
            DataType::LargeList(field_in_zone(items, written))
        }
        (DataType::FixedSizeList(items, count), DataType::FixedSizeList(written, _)) => {
            DataType::FixedSizeList(field_in_zone(items, written), *count)
        }
        (DataType::Struct(fields), DataType::Struct(written)) => DataType::Struct(fields_in_zones(fields, written)),
        _ => return field.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

/// The rows of a batch converted to the types of a schema, in pieces whose texts take about [`BATCH`] bytes.
fn pieces(batch: RecordBatch, schema: SchemaRef) -> Batches {
    let views = |array: &ArrayRef| {
        let texts = array.as_string_view_opt().map(|texts| texts.views().clone());
        texts.or_else(|| array.as_binary_view_opt().map(|texts| texts.views().clone()))
    };
    let views: Vec<_> = batch.columns().iter().filter_map(views).collect();
    let (mut cuts, mut bytes) = (vec![0], 0);
    for row in 0..batch.num_rows() {
        // The lower 32 bits of a view are the length of its text.
        let own = views.iter().map(|views| views.get(row).map_or(0, |view| u64::from(*view as u32))).sum::<u64>();
        if bytes > 0 && bytes + own > BATCH {
            cuts.push(row);
            bytes = 0;
        }
        bytes += own;
    }
    cuts.push(batch.num_rows());
    let last = cuts.len() - 1;
    Box::new((0..last).map(move |at| {
        let piece = batch.slice(cuts[at], cuts[at + 1] - cuts[at]);
        let arrays = piece.columns().iter().zip(schema.fields()).map(|(array, field)| match field.data_type() {
            same if same == array.data_type() => Ok(array.clone()),
            other => arrow_cast::cast(array, other),
        });
        RecordBatch::try_new(schema.clone(), arrays.collect::<Result<Vec<_>, _>>()?)
    }))
}
