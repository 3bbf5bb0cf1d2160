//! Parquet files.

use arrow_schema::{ArrowError, DataType, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};

use super::{Batches, Input, Source, batch_rows};
use crate::dialects::table_writer::Profile;

/// A Parquet file.
pub(super) struct Parquet {
    source: Source,
    metadata: ArrowReaderMetadata,
}

impl Parquet {
    pub fn open(source: Source) -> Result<Self, ArrowError> {
        let metadata = ArrowReaderMetadata::load(&source.reader()?, ArrowReaderOptions::new())?;
        Ok(Self { source, metadata })
    }

    fn count(&self) -> u64 {
        self.metadata.metadata().row_groups().iter().map(|group| group.num_rows().max(0) as u64).sum()
    }
}

impl Input for Parquet {
    fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    fn rows(&self) -> Option<u64> {
        Some(self.count())
    }

    fn is_columnar(&self) -> bool {
        // Readers of one descriptor would share their place.
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
            // A row group that tells nothing leaves all open.
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
        // The largest row group tells how long rows are.
        let size = |group: &parquet::file::metadata::RowGroupMetaData| {
            let leaves = group.columns().iter().enumerate().filter(|(leaf, _)| mask.leaf_included(*leaf));
            let bytes = leaves.map(|(_, leaf)| leaf.uncompressed_size().max(0) as u64).sum::<u64>();
            batch_rows(bytes, group.num_rows().max(0) as u64)
        };
        let rows = self.metadata.metadata().row_groups().iter().map(size).min().unwrap_or(1024);
        let reader = builder.with_projection(mask).with_batch_size(rows).build()?;
        // The reader keeps the order of the file.
        let mut sorted: Vec<usize> = columns.to_vec();
        sorted.sort_unstable();
        let places: Vec<usize> =
            columns.iter().filter_map(|column| sorted.iter().position(|at| at == column)).collect();
        Ok(Box::new(reader.map(move |batch| batch?.project(&places))))
    }
}
