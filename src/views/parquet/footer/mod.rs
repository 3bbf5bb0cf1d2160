//! The footer: schema, row groups, key-value pairs.
//!
//! The entries of a leaf column have one length in all row groups, so that a read in the middle of the footer renders
//! the entries there and nothing else; a footer of 100 MiB is never held in memory. Every entry has room for
//! statistics, whether they are known or not: the rest is padding in a field that readers skip.

pub(super) mod column_index;
pub(super) mod filters;
pub(super) mod keys;
pub(super) mod page_index;
pub(super) mod summary;

use std::collections::HashMap;
use std::sync::Arc;

use parquet::basic::Type;

use super::columns::PreparedLeaf;
use super::layout::{ColumnChunk, ParquetLayout};
use super::thrift::page::{PageEncoding, PageHeaderForm};
use super::thrift::schema::WrittenSchema;
use super::thrift::{self, LARGEST, ThriftStruct, ThriftType, list_header, small_i32, structure};
use crate::store::statistics::LONGEST_TEXT;
use crate::views::wanted::WantedBytes;
use filters::ParquetBloomFilters;
use page_index::{ChunkIndex, PageIndex};
use summary::LeafSummary;

/// Longest footer to show, in bytes: readers hold it in memory several times over.
pub(super) const LONGEST: u64 = 256 << 20;

/// The field of a column chunk's metadata that holds padding. Parquet knows fields up to 17; Thrift's short form
/// reaches this one even from the last field before the statistics.
const PADDING: u8 = 24;

/// Number of bytes of the two fields that locate a column index.
const COLUMN_INDEX_FIELDS: usize = 16;

/// Number of bytes of the two fields that locate a Bloom filter.
const FILTER_FIELDS: usize = 16;

/// Number of the file's last bytes: length of the footer and `PAR1`.
const TRAILER: u64 = 8;

/// The footer's entry for a leaf column.
#[derive(Clone, Debug)]
pub(super) struct LeafEntry<'a> {
    /// Names from the column to the leaf.
    pub path: &'a [String],
    /// Type of the stored values.
    pub physical: Type,
    /// Encoding of the leaf's values.
    pub encoding: PageEncoding,
    /// Most bytes of a value in statistics; 0: no statistics.
    pub bound: usize,
    /// Summaries of the leaf's values, by row group.
    pub summaries: HashMap<u64, LeafSummary>,
}

/// A footer over a layout.
#[derive(Debug)]
pub(super) struct Footer {
    layout: Arc<ParquetLayout>,
    index: Option<Arc<PageIndex>>,
    filters: Arc<ParquetBloomFilters>,
    leaves: Vec<Leaf>,
    head: Box<[u8]>,
    tail: Box<[u8]>,
    /// Offset of each leaf's entry within a row group, and the end of the last one.
    entries: Box<[u64]>,
    /// Bytes that a row group's entry takes.
    group: u64,
}

#[derive(Debug)]
struct Leaf {
    /// `path_in_schema` and the elements before it, ready to copy.
    opening: Box<[u8]>,
    /// Most bytes of a value in statistics.
    bound: usize,
    /// Compression codec of the leaf's pages.
    codec: i32,
    has_dictionary: bool,
    /// Whether the entry has room for the location of Bloom filters.
    is_filtered: bool,
    summaries: HashMap<u64, LeafSummary>,
}

impl Leaf {
    /// Returns the bytes reserved for statistics and for the location of a filter.
    fn room(&self) -> usize {
        // Statistics take the field itself, a null count, two values, two flags, the end.
        let bounds = if self.bound > 0 { 2 * (2 + self.bound) + 2 } else { 0 };
        1 + 10 + bounds + 1 + if self.is_filtered { FILTER_FIELDS } else { 0 }
    }
}

impl Footer {
    /// Returns a footer. `leaves` has an entry for each leaf column of `schema`, in its order. `None`: the footer would
    /// exceed [`LONGEST`].
    pub fn new(
        layout: Arc<ParquetLayout>,
        index: Option<Arc<PageIndex>>,
        filters: Arc<ParquetBloomFilters>,
        schema: &WrittenSchema,
        leaves: Vec<LeafEntry<'_>>,
        key_values: &[(String, String)],
        created_by: &str,
    ) -> Option<Self> {
        let groups = layout.groups().count();
        let mut head = Vec::new();
        let mut opened = ThriftStruct::resume(&mut head, 0);
        opened.i32(1, 1);
        opened.list(2, ThriftType::Struct, schema.count(), |out| out.extend_from_slice(schema.elements()));
        opened.i64(3, layout.groups().rows().min(LARGEST));
        opened.list(4, ThriftType::Struct, usize::try_from(groups).ok()?, |_| ());
        let mut tail = Vec::new();
        let mut opened = ThriftStruct::resume(&mut tail, 4);
        if !key_values.is_empty() {
            opened.list(5, ThriftType::Struct, key_values.len(), |out| {
                for (key, value) in key_values {
                    structure(out, |pair| {
                        pair.binary(1, key.as_bytes());
                        pair.binary(2, value.as_bytes());
                    });
                }
            });
        }
        opened.binary(6, created_by.as_bytes());
        // Each leaf's statistics use the order that its type defines.
        opened.list(7, ThriftType::Struct, leaves.len(), |out| {
            leaves.iter().for_each(|_| structure(out, |order| order.structure(1, |_| ())));
        });
        opened.end();
        let leaves: Vec<Leaf> = leaves
            .into_iter()
            .enumerate()
            .map(|(position, entry)| {
                let mut opening = Vec::new();
                let mut opened = ThriftStruct::resume(&mut opening, 0);
                opened.i32(1, entry.physical as i32);
                let encodings = entry.encoding.encodings();
                opened.list(2, ThriftType::I32, encodings.len(), |out| {
                    encodings.iter().for_each(|&encoding| small_i32(encoding, out));
                });
                let pages = layout.leaves().get(position);
                opened.list(3, ThriftType::Binary, entry.path.len(), |out| {
                    entry.path.iter().for_each(|part| thrift::binary(part.as_bytes(), out));
                });
                Leaf {
                    opening: opening.into(),
                    bound: entry.bound,
                    codec: pages.map_or(PageHeaderForm::Exact, |leaf| leaf.pages.header()).codec(),
                    is_filtered: filters.has_room(position),
                    has_dictionary: pages.is_some_and(|leaf| leaf.dictionary > 0),
                    summaries: entry.summaries,
                }
            })
            .collect();
        let (head, tail) = (head.into(), tail.into());
        let mut footer = Self { layout, index, filters, leaves, head, tail, entries: Box::default(), group: 0 };
        footer.measure();
        (footer.length()? <= LONGEST).then_some(footer)
    }

    /// Determines the lengths of entries by writing those of one row group.
    fn measure(&mut self) {
        let mut out = Vec::new();
        self.group_start(&mut out);
        let mut entries = vec![out.len() as u64];
        let chunk = ColumnChunk { start: 0, data: 0, bytes: 0, entries: 0 };
        for leaf in &self.leaves {
            Self::entry(leaf, chunk, None, None, self.index.as_ref().map(|_| ChunkIndex::default()), &mut out);
            entries.push(out.len() as u64);
        }
        self.group_end(0, &mut out);
        self.entries = entries.into();
        self.group = out.len() as u64;
    }

    /// Returns the length of the Thrift struct in bytes.
    fn length(&self) -> Option<u64> {
        let groups = self.layout.groups().count().checked_mul(self.group)?;
        groups.checked_add(self.head.len() as u64)?.checked_add(self.tail.len() as u64)
    }

    /// Returns the length in bytes, trailer included.
    pub fn bytes(&self) -> u64 {
        self.length().unwrap_or(0) + TRAILER
    }

    fn group_start(&self, out: &mut Vec<u8>) {
        // The row groups are field 1, a list.
        out.push(0x19);
        list_header(ThriftType::Struct, self.leaves.len(), out);
    }

    fn group_end(&self, group: u64, out: &mut Vec<u8>) {
        let mut chunks = (0..self.leaves.len()).filter_map(|leaf| self.layout.chunk(group, leaf));
        let bytes = chunks.clone().map(|chunk| chunk.bytes).sum();
        let rows = self.layout.groups().rows_of(group);
        let mut fields = ThriftStruct::resume(out, 1);
        fields.i64(2, bytes);
        fields.i64(3, rows.end - rows.start);
        fields.i64(5, chunks.next().map_or(0, |chunk| chunk.start));
        fields.i64(6, bytes);
        fields.end();
    }

    /// Writes the entry of a column chunk.
    fn entry(
        leaf: &Leaf,
        chunk: ColumnChunk,
        summary: Option<&LeafSummary>,
        filter: Option<(u64, u32)>,
        index: Option<ChunkIndex>,
        out: &mut Vec<u8>,
    ) {
        structure(out, |column| {
            // Deprecated but required; current writers put 0.
            column.i64(2, 0);
            column.structure_with(3, |out| {
                out.extend_from_slice(&leaf.opening);
                let mut metadata = ThriftStruct::resume(out, 3);
                metadata.i32(4, leaf.codec);
                metadata.i64(5, chunk.entries);
                metadata.i64(6, chunk.bytes);
                metadata.i64(7, chunk.bytes);
                metadata.i64(9, chunk.data);
                if leaf.has_dictionary {
                    metadata.i64(11, chunk.start);
                }
                let before = metadata.len();
                if let Some(summary) = summary {
                    statistics(leaf, summary, &mut metadata);
                }
                if let Some((start, length)) = filter {
                    metadata.i64(14, start);
                    metadata.i32(15, length as i32);
                }
                let used = metadata.len() - before;
                // Without a column index, the bytes of its fields become padding as well.
                let absent = index.filter(|index| index.columns.is_none()).map_or(0, |_| COLUMN_INDEX_FIELDS);
                metadata.padding(PADDING, (leaf.room() + absent).saturating_sub(used));
                metadata.end();
            });
            if let Some(ChunkIndex { offsets: (start, length), columns }) = index {
                column.i64(4, start);
                column.i32(5, length as i32);
                if let Some((start, length)) = columns {
                    column.i64(6, start);
                    column.i32(7, length as i32);
                }
            }
        });
    }

    /// Returns the most bytes of an entry, estimated before there is a schema.
    pub fn most_entry(leaf: &PreparedLeaf) -> u64 {
        let path: usize = leaf.leaf.path.iter().map(|part| part.len() + 3).sum();
        // The numbers cover everything else, rounded up, and the two bounds.
        (path + 160 + FILTER_FIELDS + 2 * LONGEST_TEXT) as u64
    }

    /// Copies the wanted bytes of the footer, which begins at byte `start` of the file.
    pub fn read(&self, start: u64, wanted: &mut WantedBytes<'_>) {
        wanted.take(start, &self.head);
        let first = start + self.head.len() as u64;
        let groups = self.layout.groups().count();
        let end = first + groups * self.group;
        let mut scratch = Vec::new();
        while let Some(position) = wanted.next().filter(|&next| next >= first && next < end) {
            let group = (position - first) / self.group;
            let start = first + group * self.group;
            let inside = position - start;
            scratch.clear();
            let from = match self.entries.partition_point(|&entry| entry <= inside) {
                // The byte lies before the first entry.
                0 => {
                    self.group_start(&mut scratch);
                    0
                }
                after => {
                    let leaf = after - 1;
                    match self.leaves.get(leaf).zip(self.layout.chunk(group, leaf)) {
                        Some((known, chunk)) => {
                            let index = self.index.as_ref().and_then(|index| index.chunk(group, leaf));
                            let filter = self.filters.chunk(group, leaf);
                            Self::entry(known, chunk, known.summaries.get(&group), filter, index, &mut scratch);
                        }
                        None => self.group_end(group, &mut scratch),
                    }
                    self.entries.get(leaf).copied().unwrap_or(0)
                }
            };
            if wanted.take(start + from, &scratch) == 0 {
                // An entry that ends before the wanted byte would loop forever.
                return;
            }
        }
        wanted.take(end, &self.tail);
        let mut trailer =
            self.length().and_then(|length| u32::try_from(length).ok()).unwrap_or(0).to_le_bytes().to_vec();
        trailer.extend_from_slice(b"PAR1");
        wanted.take(end + self.tail.len() as u64, &trailer);
    }
}

fn statistics(leaf: &Leaf, summary: &LeafSummary, metadata: &mut ThriftStruct<'_>) {
    metadata.structure(12, |fields| {
        fields.i64(3, summary.nulls.min(LARGEST));
        let bounds = summary.bounds.as_ref().filter(|(least, largest)| least.len().max(largest.len()) <= leaf.bound);
        if let Some((least, largest)) = bounds {
            fields.binary(5, largest);
            fields.binary(6, least);
            fields.bool(7, true);
            fields.bool(8, true);
        }
    });
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field, Schema};
    use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

    use super::super::layout::{DataPages, Groups, LeafSize, MeasuredPages, Page};
    use super::super::thrift::schema;
    use super::*;

    /// Three columns in two row groups, with summaries for the second one.
    fn footer(known: [Option<LeafSummary>; 3]) -> Footer {
        let groups = Groups::new(131_080, 131_072, None);
        let pages = [131_072, 8].map(|rows| Page { rows, bytes: rows, entries: rows });
        let measured = Arc::new(MeasuredPages::new(&groups, false, pages.map(|page| (page, 1))).unwrap());
        let leaf = |dictionary| LeafSize { dictionary, pages: DataPages::Measured(measured.clone()) };
        let layout = ParquetLayout::new(groups, vec![leaf(0), leaf(50), leaf(0)]).unwrap();
        let fields = vec![
            Field::new("n", DataType::Int64, true),
            Field::new("t", DataType::Utf8, true),
            Field::new("l", DataType::List(Arc::new(Field::new("element", DataType::Boolean, true))), false),
        ];
        let schema = schema::convert(&Schema::new(fields)).unwrap();
        let keys = [("k".to_owned(), "v".to_owned())];
        let entries =
            known.into_iter().zip([8, 64, 0]).zip(schema.columns()).map(|((known, bound), column)| LeafEntry {
                path: column.path().parts(),
                physical: column.physical_type(),
                encoding: PageEncoding::Plain,
                bound,
                summaries: known.into_iter().map(|known| (1, known)).collect(),
            });
        let entries = entries.collect();
        let layout = Arc::new(layout);
        let filters = Arc::new(ParquetBloomFilters::new(layout.clone(), 0, Vec::new()));
        Footer::new(layout, None, filters, &WrittenSchema::new(&schema), entries, &keys, "hepfs version 1").unwrap()
    }

    fn read(footer: &Footer) -> Vec<u8> {
        let out = WantedBytes::collect(1000, usize::MAX, |wanted| footer.read(1000, wanted));
        assert_eq!(out.len() as u64, footer.bytes());
        out
    }

    fn parse(bytes: &[u8]) -> ParquetMetaData {
        let (metadata, trailer) = bytes.split_at(bytes.len() - 8);
        assert_eq!(trailer[..4], (metadata.len() as u32).to_le_bytes());
        ParquetMetaDataReader::decode_metadata(metadata).unwrap()
    }

    #[test]
    fn statistics_take_no_room_of_their_own() {
        let bounds = |least: &[u8], largest: &[u8]| Some((least.to_vec(), largest.to_vec()));
        let number = LeafSummary { nulls: 3, bounds: bounds(&(-5_i64).to_le_bytes(), &7_i64.to_le_bytes()) };
        let text = LeafSummary { nulls: 0, bounds: bounds(b"", "ü".repeat(32).as_bytes()) };
        let nothing = LeafSummary { nulls: 8, bounds: None };
        let unknown = read(&footer([None, None, None]));
        let known = read(&footer([Some(number.clone()), Some(text), Some(nothing)]));
        assert_eq!(known.len(), unknown.len());
        let metadata = parse(&known);
        let statistics = |leaf: usize| metadata.row_group(1).column(leaf).statistics().unwrap();
        assert_eq!(statistics(0).null_count_opt(), Some(3));
        assert_eq!(statistics(0).min_bytes_opt(), Some(&(-5_i64).to_le_bytes()[..]));
        assert_eq!(statistics(0).max_bytes_opt(), Some(&7_i64.to_le_bytes()[..]));
        assert!(statistics(0).min_is_exact() && statistics(0).max_is_exact());
        assert_eq!(statistics(1).min_bytes_opt(), Some(&b""[..]));
        assert_eq!(statistics(1).max_bytes_opt(), Some("ü".repeat(32).as_bytes()));
        assert_eq!(statistics(2).null_count_opt(), Some(8));
        assert_eq!(statistics(2).min_bytes_opt(), None);
        assert!((0..3).all(|leaf| metadata.row_group(0).column(leaf).statistics().is_none()));
        assert!((0..3).all(|leaf| parse(&unknown).row_group(1).column(leaf).statistics().is_none()));
        // A text that is too long is no bound.
        let long = LeafSummary { nulls: 1, bounds: bounds(b"a", &[b'b'; 65]) };
        let long = read(&footer([None, Some(long), None]));
        assert_eq!(long.len(), unknown.len());
        let metadata = parse(&long);
        let statistics = metadata.row_group(1).column(1).statistics().unwrap();
        assert_eq!((statistics.null_count_opt(), statistics.max_bytes_opt()), (Some(1), None));
    }

    #[test]
    fn places_of_chunks() {
        let metadata = parse(&read(&footer([None, None, None])));
        let (first, last) = (metadata.row_group(0), metadata.row_group(1));
        assert_eq!((first.num_rows(), last.num_rows()), (131_072, 8));
        // Chunks of 45 bytes of header and a byte a row, behind the magic; the second has a dictionary.
        let chunk = 45 + 131_072;
        assert_eq!(first.column(0).data_page_offset(), 4);
        assert_eq!(first.column(0).dictionary_page_offset(), None);
        assert_eq!(first.column(1).dictionary_page_offset(), Some(4 + chunk));
        assert_eq!(first.column(1).data_page_offset(), 4 + chunk + 50);
        assert_eq!(first.column(1).compressed_size(), chunk + 50);
        assert_eq!(last.column(2).data_page_offset(), 4 + 3 * chunk + 50 + 2 * 53 + 50);
        assert_eq!(last.column(2).num_values(), 8);
        assert_eq!(first.total_byte_size(), 3 * chunk + 50);
        assert_eq!(last.file_offset(), Some(4 + 3 * chunk + 50));
    }

    #[test]
    fn any_range_is_a_slice_of_the_whole() {
        let footer = footer([Some(LeafSummary { nulls: 1, bounds: None }), None, None]);
        let whole = read(&footer);
        for start in 0..whole.len() {
            for length in [1, 7, 200, whole.len()] {
                let out = WantedBytes::collect(1000 + start as u64, length, |wanted| footer.read(1000, wanted));
                assert_eq!(out, whole[start..(start + length).min(whole.len())], "{length} bytes from {start}");
            }
        }
    }
}
