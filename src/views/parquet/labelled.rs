//! Column chunks of categories in exported files: a dictionary page of all labels in their order, whether or not they
//! occur, and indices into it.
//!
//! An ordinary encoder's dictionary has the values that occur, in the order of their occurrence. But readers take the
//! dictionary for the categories: pandas for their order, scanpy for the assignment of colours.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, StringArray};
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType, Type};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, PageEncodingStats};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::body::levels::{Levels, append_packed_header, append_varint};

/// Most bytes of a label that serves as a bound.
const LONGEST_BOUND: usize = 64;

/// Fewest equal indices that form an RLE run.
const RUN: usize = 8;

/// The labels of a column, ready for a dictionary page.
#[derive(Debug)]
pub(super) struct DictionaryLabels {
    texts: StringArray,
    /// Positions of the labels in the order of their bytes; `ranks` has the rank of each label in that order.
    sorted: Vec<u32>,
    ranks: Vec<u32>,
    /// Number of bits of an index.
    width: u32,
    compression: Compression,
    /// Values of the dictionary page, compressed, and their uncompressed length.
    page: (Bytes, usize),
    /// Whether the order of the labels is meaningful.
    pub ordered: bool,
}

/// A column chunk that is being encoded.
pub(super) struct ChunkEncoder {
    labels: Arc<DictionaryLabels>,
    column: ColumnDescPtr,
    same: Option<ArrayRef>,
    sink: TrackedWrite<Vec<u8>>,
    /// Uncompressed bytes so far, over all pages.
    uncompressed: usize,
    dictionary: usize,
    pages: i32,
    rows: u64,
    nulls: u64,
    bounds: Option<[u32; 2]>,
    index: ColumnIndexBuilder,
    offsets: OffsetIndexBuilder,
}

impl DictionaryLabels {
    /// Reads the labels from a dictionary page of `entries` texts.
    ///
    /// # Errors
    /// If the page is malformed.
    pub fn new(body: &[u8], entries: u32, ordered: bool, compression: Compression) -> Result<Self, ParquetError> {
        let broken = || ParquetError::General("a dictionary of other labels".into());
        let (mut texts, mut rest) = (Vec::with_capacity(entries as usize), body);
        while let Some((length, behind)) = rest.split_first_chunk() {
            let text = behind.split_at_checked(u32::from_le_bytes(*length) as usize);
            let (text, behind) = text.ok_or_else(broken)?;
            texts.push(std::str::from_utf8(text).map_err(|_| broken())?);
            rest = behind;
        }
        if texts.len() != entries as usize {
            return Err(broken());
        }
        let mut sorted: Vec<u32> = (0..entries).collect();
        sorted.sort_unstable_by_key(|at| texts[*at as usize]);
        let mut ranks = vec![0; texts.len()];
        for (rank, at) in (0..).zip(&sorted) {
            ranks[*at as usize] = rank;
        }
        let width = (u32::BITS - entries.saturating_sub(1).leading_zeros()).max(1);
        let page = (compressed(body, compression)?, body.len());
        Ok(Self { texts: texts.into_iter().map(Some).collect(), sorted, ranks, width, compression, page, ordered })
    }

    /// Returns the bytes of the dictionary.
    pub fn bytes(&self) -> u64 {
        self.page.1 as u64
    }

    /// Returns the index of a text among the labels.
    fn place(&self, text: &str) -> Option<u32> {
        let at = self.sorted.binary_search_by_key(&text, |at| self.texts.value(*at as usize)).ok()?;
        self.sorted.get(at).copied()
    }

    /// Returns the indices of an array's values, without nulls; `same` caches a dictionary that was found to equal
    /// these labels.
    fn places(&self, array: &ArrayRef, same: &mut Option<ArrayRef>) -> Result<Vec<u32>, ParquetError> {
        let other = || ParquetError::General(format!("{} where labels were expected", array.data_type()));
        let array = array.as_dictionary_opt::<Int32Type>().ok_or_else(other)?;
        let texts = array.values().as_string_opt::<i32>().ok_or_else(other)?;
        let keys = array.keys().iter().flatten().map(|key| key as u32);
        if same.as_ref().is_some_and(|same| same.to_data().ptr_eq(&array.values().to_data())) || *texts == self.texts {
            *same = Some(array.values().clone());
            return Ok(keys.collect());
        }
        let places: Vec<Option<u32>> = texts.iter().map(|text| text.and_then(|text| self.place(text))).collect();
        keys.map(|key| places.get(key as usize).copied().flatten().ok_or_else(other)).collect()
    }

    /// Returns the label of a rank as a bound, unless it is too long.
    fn bound(&self, rank: u32) -> Option<&[u8]> {
        let text = self.texts.value(*self.sorted.get(rank as usize)? as usize).as_bytes();
        Some(text).filter(|text| text.len() <= LONGEST_BOUND)
    }
}

impl ChunkEncoder {
    /// Begins a chunk with its dictionary.
    ///
    /// # Errors
    /// Those of the page writer.
    pub fn new(labels: &Arc<DictionaryLabels>, column: ColumnDescPtr) -> Result<Self, ParquetError> {
        let mut chunk = Self {
            labels: labels.clone(),
            column,
            same: None,
            sink: TrackedWrite::new(Vec::new()),
            uncompressed: 0,
            dictionary: 0,
            pages: 0,
            rows: 0,
            nulls: 0,
            bounds: None,
            index: ColumnIndexBuilder::new(Type::BYTE_ARRAY),
            offsets: OffsetIndexBuilder::new(),
        };
        let (buf, bytes) = labels.page.clone();
        let num_values = labels.texts.len() as u32;
        let page = Page::DictionaryPage { buf, num_values, encoding: Encoding::PLAIN, is_sorted: false };
        chunk.dictionary = chunk.put(page, bytes)?;
        Ok(chunk)
    }

    /// Appends a page; returns its size in bytes.
    fn put(&mut self, page: Page, uncompressed: usize) -> Result<usize, ParquetError> {
        let spec = SerializedPageWriter::new(&mut self.sink).write_page(CompressedPage::new(page, uncompressed))?;
        self.uncompressed += spec.uncompressed_size;
        Ok(spec.compressed_size)
    }

    /// Appends the rows of an array as a page.
    ///
    /// # Errors
    /// If the array has other labels.
    pub fn write(&mut self, array: &ArrayRef) -> Result<(), ParquetError> {
        let places = self.labels.places(array, &mut self.same)?;
        let rows = array.len();
        let nulls = rows - places.len();
        let mut body = Vec::new();
        if self.column.max_def_level() > 0 {
            let levels = Levels::of_nulls(array.logical_nulls().as_ref(), rows);
            levels.append(1, &mut body).map_err(|misfit| ParquetError::General(misfit.to_string()))?;
        }
        body.push(self.labels.width as u8);
        append_hybrid(&places, self.labels.width, &mut body);
        let page = Page::DataPage {
            buf: compressed(&body, self.labels.compression)?,
            num_values: rows as u32,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let start = self.sink.bytes_written() as i64;
        let bytes = self.put(page, body.len())?;
        self.offsets.append_row_count(rows as i64);
        self.offsets.append_offset_and_size(start, bytes as i32);
        let ranks = places.iter().filter_map(|place| self.labels.ranks.get(*place as usize).copied());
        match ranks.clone().min().zip(ranks.max()) {
            None => self.index.append(true, Vec::new(), Vec::new(), nulls as i64, None),
            Some((least, greatest)) => {
                match self.labels.bound(least).zip(self.labels.bound(greatest)) {
                    Some((least, greatest)) => {
                        self.index.append(false, least.to_vec(), greatest.to_vec(), nulls as i64, None);
                    }
                    None => self.index.to_invalid(),
                }
                let [all_least, all_greatest] = self.bounds.unwrap_or([least, greatest]);
                self.bounds = Some([least.min(all_least), greatest.max(all_greatest)]);
            }
        }
        self.pages += 1;
        self.rows += rows as u64;
        self.nulls += nulls as u64;
        Ok(())
    }

    /// Ends the chunk; returns its bytes and its metadata.
    ///
    /// # Errors
    /// Those of the `parquet` crate's writer.
    pub fn close(self) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
        let [least, greatest] = [0, 1].map(|at| self.bounds.and_then(|bounds| self.labels.bound(bounds[at])));
        let bounds = least.zip(greatest).map(|(least, greatest)| [least, greatest].map(|text| text.to_vec().into()));
        let [least, greatest]: [Option<ByteArray>; 2] = bounds.map_or([None, None], |bounds| bounds.map(Some));
        let page = |page_type, encoding, count| PageEncodingStats { page_type, encoding, count };
        let bytes = Bytes::from(self.sink.into_inner()?);
        let metadata = ColumnChunkMetaData::builder(self.column)
            .set_compression(self.labels.compression)
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
            .set_page_encoding_stats(vec![
                page(PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1),
                page(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY, self.pages),
            ])
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(self.uncompressed as i64)
            .set_num_values(self.rows as i64)
            .set_dictionary_page_offset(Some(0))
            .set_data_page_offset(self.dictionary as i64)
            .set_statistics(Statistics::byte_array(least, greatest, None, Some(self.nulls), false))
            .build()?;
        let index = Some(self.index).filter(|index| index.valid() && self.pages > 0);
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: self.rows,
            metadata,
            bloom_filter: None,
            column_index: index.map(ColumnIndexBuilder::build).transpose()?,
            offset_index: Some(self.offsets.build()),
        };
        Ok((bytes, close))
    }
}

/// Compresses the body of a page.
fn compressed(body: &[u8], compression: Compression) -> Result<Bytes, ParquetError> {
    Ok(match compression {
        Compression::UNCOMPRESSED => body.to_vec().into(),
        Compression::SNAPPY => {
            let compressed = snap::raw::Encoder::new().compress_vec(body);
            compressed.map_err(|error| ParquetError::General(error.to_string()))?.into()
        }
        Compression::ZSTD(level) => {
            let mut out = Vec::with_capacity(zstd_safe::compress_bound(body.len()));
            let done = zstd_safe::compress(&mut out, body, level.compression_level());
            done.map_err(|code| ParquetError::General(zstd_safe::get_error_name(code).to_owned()))?;
            out.into()
        }
        other => return Err(ParquetError::NYI(format!("{other} of columns of categories"))),
    })
}

/// Appends indices of `width` bits in the RLE/bit-packed hybrid of parquet-format's `Encodings.md`.
fn append_hybrid(indices: &[u32], width: u32, out: &mut Vec<u8>) {
    let (mut packed, mut at) = (0, 0);
    while let Some(first) = indices.get(at) {
        let run = indices[at..].iter().take_while(|index| *index == first).count();
        if run >= RUN {
            append_packed(&indices[packed..at], width, out);
            append_varint((run as u64) << 1, out);
            out.extend_from_slice(&first.to_le_bytes()[..width.div_ceil(8) as usize]);
            at += run;
            packed = at;
        } else {
            at = indices.len().min(at + RUN);
        }
    }
    append_packed(&indices[packed..], width, out);
}

/// Appends a bit-packed run; every run but the last of a page has a multiple of eight indices.
fn append_packed(indices: &[u32], width: u32, out: &mut Vec<u8>) {
    if indices.is_empty() {
        return;
    }
    append_packed_header(indices.len(), out);
    for eight in indices.chunks(8) {
        let (mut bits, mut count) = (0_u64, 0);
        for index in eight.iter().chain(&[0; 8]).take(8) {
            bits |= u64::from(*index) << count;
            count += width;
            while count >= 8 {
                out.push(bits as u8);
                bits >>= 8;
                count -= 8;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Decodes runs as specified in `Encodings.md`.
    fn decoded(mut bytes: &[u8], width: u32, count: usize) -> Vec<u32> {
        let mut indices = Vec::new();
        while !bytes.is_empty() {
            let mut header = 0_u64;
            for shift in (0..).step_by(7) {
                let (first, rest) = bytes.split_first().unwrap();
                header |= u64::from(first & 0x7f) << shift;
                bytes = rest;
                if first & 0x80 == 0 {
                    break;
                }
            }
            let (of_run, is_packed) = ((header >> 1) as usize, header & 1 == 1);
            let length = if is_packed { of_run * width as usize } else { width.div_ceil(8) as usize };
            let (run, rest) = bytes.split_at(length);
            bytes = rest;
            let bit = |at: usize| u32::from(run[at / 8] >> (at % 8) & 1);
            let index =
                |at: usize| (0..width as usize).fold(0, |sum, place| sum | bit(at * width as usize + place) << place);
            if is_packed { indices.extend((0..of_run * 8).map(index)) } else { indices.extend(vec![index(0); of_run]) }
        }
        assert!(indices.len() < count + 8 && indices[count..].iter().all(|index| *index == 0));
        indices.truncate(count);
        indices
    }

    proptest! {
        #[test]
        fn indices_come_back(
            runs in prop::collection::vec((0..1_u32 << 24, 1..30_usize), 0..40),
            width in 1..25_u32,
        ) {
            let runs = runs.into_iter().map(|(index, count)| (index >> (24 - width), count));
            let indices: Vec<u32> = runs.flat_map(|(index, count)| vec![index; count]).collect();
            let mut bytes = Vec::new();
            append_hybrid(&indices, width, &mut bytes);
            prop_assert_eq!(decoded(&bytes, width, indices.len()), indices);
        }
    }

    #[test]
    fn long_runs_are_short_and_labels_are_found_by_their_bytes() {
        let mut bytes = Vec::new();
        append_hybrid(&[3; 16_384], 2, &mut bytes);
        assert_eq!(bytes, [0x80, 0x80, 2, 3]);
        let body: Vec<u8> = ["low", "mid", "", "high"]
            .into_iter()
            .flat_map(|text| [(text.len() as u32).to_le_bytes().as_slice(), text.as_bytes()].concat())
            .collect();
        let labels = DictionaryLabels::new(&body, 4, true, Compression::UNCOMPRESSED).unwrap();
        assert_eq!(
            ["low", "mid", "", "high", "none"].map(|text| labels.place(text)),
            [Some(0), Some(1), Some(2), Some(3), None]
        );
        assert_eq!((labels.ranks.as_slice(), labels.width), (&[2, 3, 0, 1][..], 2));
        for (body, entries) in [(&body[..body.len() - 1], 4), (&body, 3)] {
            assert!(DictionaryLabels::new(body, entries, true, Compression::UNCOMPRESSED).is_err());
        }
    }
}
