//! Bodies of pages, read back by the `parquet` crate: its decoders of levels, values and dictionaries, and its record
//! assembly. Page headers are out of scope.

mod flat;
mod nested;
mod random;
mod tree;

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Schema;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups};
use parquet::arrow::parquet_to_arrow_field_levels;
use parquet::basic::{Encoding as ParquetEncoding, Type};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{FileMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::schema::types::SchemaDescriptor;

use super::super::columns::shape::LeafMapping;
use super::leaf::{ParquetLeaf, Physical};
use crate::views::parquet::thrift::page::PageEncoding;

/// The body of a leaf's dictionary page, and its number of values.
fn dictionary(leaf: &ParquetLeaf) -> Option<(&[u8], u32)> {
    let dictionary = leaf.dictionary()?;
    Some((dictionary.body()?, dictionary.entries()))
}

/// The pages of one column chunk.
struct Chunk(std::collections::VecDeque<Page>);

impl Iterator for Chunk {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.pop_front().map(Ok)
    }
}

impl PageReader for Chunk {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        Ok(self.0.pop_front())
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        Ok(self.0.front().map(|page| match page {
            Page::DictionaryPage { .. } => PageMetadata { num_rows: None, num_levels: None, is_dict: true },
            other => PageMetadata { num_rows: None, num_levels: Some(other.num_values() as usize), is_dict: false },
        }))
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.0.pop_front();
        Ok(())
    }
}

struct Chunks(Option<Chunk>);

impl Iterator for Chunks {
    type Item = ParquetResult<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(|chunk| Ok(Box::new(chunk) as Box<dyn PageReader>))
    }
}

impl PageIterator for Chunks {}

struct Group<'a> {
    leaves: &'a [ParquetLeaf],
    pages: &'a [ArrayRef],
    metadata: ParquetMetaData,
}

impl RowGroups for Group<'_> {
    fn num_rows(&self) -> usize {
        self.pages.iter().map(|page| page.len()).sum()
    }

    fn column_chunks(&self, i: usize) -> ParquetResult<Box<dyn PageIterator>> {
        let leaf = &self.leaves[i];
        let mut chunk = std::collections::VecDeque::new();
        if let Some((body, entries)) = dictionary(leaf) {
            let buf = body.to_vec().into();
            let encoding = ParquetEncoding::PLAIN;
            chunk.push_back(Page::DictionaryPage { buf, num_values: entries, encoding, is_sorted: false });
        }
        for page in self.pages {
            let mut body = b"before".to_vec();
            let told = leaf.append(page, &mut body).unwrap();
            assert_eq!(body.len() as u64 - 6, told.bytes);
            assert_eq!(leaf.measure(page).unwrap(), told);
            check_bounds(leaf, page.len() as u64, told.bytes);
            chunk.push_back(Page::DataPage {
                buf: body.split_off(6).into(),
                num_values: told.entries,
                encoding: match leaf.encoding {
                    PageEncoding::Plain => ParquetEncoding::PLAIN,
                    PageEncoding::Dictionary => ParquetEncoding::RLE_DICTIONARY,
                },
                def_level_encoding: ParquetEncoding::RLE,
                rep_level_encoding: ParquetEncoding::RLE,
                statistics: None,
            });
        }
        Ok(Box::new(Chunks(Some(Chunk(chunk)))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.metadata.row_groups().iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// Checks a page against the bounds that its leaf computed before.
fn check_bounds(leaf: &ParquetLeaf, rows: u64, bytes: u64) {
    if let Some(most) = leaf.most_body(rows) {
        assert!(bytes <= most, "{bytes} bytes where at most {most} were foreseen: {leaf:?}");
        assert!(!leaf.is_exact() || bytes == most, "{bytes} bytes where exactly {most} were foreseen: {leaf:?}");
    }
    if let Some(width) = leaf.cell_width() {
        assert_eq!(width * rows, bytes);
    }
    if let Some(cells) = leaf.cells(rows) {
        assert_eq!(cells.before + cells.width * rows + cells.after, bytes);
    }
}

/// Writes each of `pages` as a page of every leaf and reads the column back, as the type that the shape shows.
fn read_back(shape: &LeafMapping, pages: &[ArrayRef]) -> ArrayRef {
    let schema = Schema::new(vec![shape.field().clone()]);
    let described = Arc::new(ArrowSchemaConverter::new().convert(&schema).unwrap());
    check_schema(shape.leaves(), &described);
    let rows: usize = pages.iter().map(|page| page.len()).sum();
    let group = RowGroupMetaData::builder(described.clone()).set_num_rows(rows as i64);
    let columns = described
        .columns()
        .iter()
        .map(|column| parquet::file::metadata::ColumnChunkMetaData::builder(column.clone()).build().unwrap());
    let group = group.set_column_metadata(columns.collect()).build().unwrap();
    let file = FileMetaData::new(1, rows as i64, None, None, described.clone(), None);
    let group = Group { leaves: shape.leaves(), pages, metadata: ParquetMetaData::new(file, vec![group]) };
    let levels = parquet_to_arrow_field_levels(&described, ProjectionMask::all(), Some(schema.fields())).unwrap();
    let reader = ParquetRecordBatchReader::try_new_with_row_groups(&levels, &group, rows.max(1), None).unwrap();
    let batches: Vec<RecordBatch> = reader.map(|batch| batch.unwrap()).collect();
    if batches.is_empty() {
        return arrow_array::new_empty_array(shape.field().data_type());
    }
    let batch = arrow_select::concat::concat_batches(&batches.first().unwrap().schema(), &batches).unwrap();
    assert_eq!(batch.schema().field(0).data_type(), shape.field().data_type());
    batch.column(0).clone()
}

/// Checks that paths, types and levels agree with the schema that the converter makes of the field.
fn check_schema(leaves: &[ParquetLeaf], described: &SchemaDescriptor) {
    assert_eq!(leaves.len(), described.num_columns());
    for (leaf, column) in leaves.iter().zip(described.columns()) {
        assert_eq!(leaf.path.as_slice(), column.path().parts());
        assert_eq!(leaf.max_definition as i16, column.max_def_level(), "{:?}", leaf.path);
        assert_eq!(leaf.max_repetition as i16, column.max_rep_level(), "{:?}", leaf.path);
        let physical = match leaf.physical {
            Physical::Boolean => Type::BOOLEAN,
            Physical::Int32 => Type::INT32,
            Physical::Int64 => Type::INT64,
            Physical::Float => Type::FLOAT,
            Physical::Double => Type::DOUBLE,
            Physical::ByteArray => Type::BYTE_ARRAY,
            Physical::FixedLenByteArray(width) => {
                assert_eq!(width, column.type_length());
                Type::FIXED_LEN_BYTE_ARRAY
            }
        };
        assert_eq!(physical, column.physical_type());
    }
}
