//! Exports a Parquet file: the rows of a [`ParquetView`] with compression, dictionaries and statistics of all pages.
//!
//! ```text
//! file shown ──► column of a row group, decoded ──► encoded, compressed ──┐
//!            ──► another one                    ──►                      ──┴─► row group, as soon as it is whole
//! ```
//!
//! All cores encode columns. Row groups have the rows of those in the view; one that takes more bytes than the limit is
//! split. At most two row groups are unfinished at a time.

use std::collections::{HashSet, VecDeque};
use std::io::{BufReader, Read, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use arrow_array::ArrayRef;
use arrow_schema::{ArrowError, Field};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriter, compute_leaves,
};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ProjectionMask};
use parquet::basic::Compression;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use super::ParquetView;
use super::footer::keys::CREATED_BY;
use super::labelled::{ChunkEncoder, DictionaryLabels};
use crate::source::Interrupt;
use crate::store::{Answer, Error, cores};
use crate::views::{Effort, View};

/// About the most bytes of a column to decode at once.
const BATCH_BYTES: u64 = 4 << 20;

/// Most rows to decode at once.
const BATCH_ROWS: u64 = 1 << 14;

/// Most row groups that are unfinished at a time.
const AT_ONCE: usize = 2;

/// Number of bytes to read at once while parsing page headers.
const HEADER: usize = 512;

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompressError {
    /// Rows cannot be read.
    #[error(transparent)]
    Rows(#[from] Error),
    /// The file cannot be written.
    #[error(transparent)]
    Output(std::io::Error),
    /// The Parquet writer rejected something.
    #[error("{0}")]
    Format(String),
}

impl From<ParquetError> for CompressError {
    fn from(error: ParquetError) -> Self {
        let ParquetError::External(inner) = error else { return Self::Format(error.to_string()) };
        let inner = match inner.downcast::<std::io::Error>() {
            Ok(error) => return error.downcast::<Error>().map_or_else(Self::Output, Self::Rows),
            Err(inner) => inner,
        };
        inner.downcast::<Error>().map_or_else(|inner| Self::Format(inner.to_string()), |error| Self::Rows(*error))
    }
}

impl CompressError {
    /// Converts an error of the view's reader, or of an Arrow kernel.
    pub(super) fn from_arrow(error: ArrowError) -> Self {
        match error {
            ArrowError::ExternalError(inner) => ParquetError::External(inner).into(),
            other => Self::Format(other.to_string()),
        }
    }
}

/// The view as input of the `parquet` crate's reader.
#[derive(Clone)]
pub(super) struct ShownParquet {
    pub view: Arc<ParquetView>,
    size: u64,
    interrupt: Interrupt,
}

impl Length for ShownParquet {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for ShownParquet {
    type T = BufReader<ParquetTail>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::with_capacity(HEADER, ParquetTail { shown: self.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let mut answer = Answer::in_memory(Vec::with_capacity(length));
        let gathered = self.view.gather(start, length, &mut answer, &self.interrupt);
        gathered.map_err(|error| ParquetError::External(Box::new(error)))?;
        let bytes = answer.into_made();
        if bytes.len() < length {
            return Err(ParquetError::EOF(format!("{} bytes of {length} at {start}", bytes.len())));
        }
        Ok(bytes.into())
    }
}

/// Reads the bytes of the view from a position on.
pub(super) struct ParquetTail {
    shown: ShownParquet,
    at: u64,
}

impl Read for ParquetTail {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let length = self.shown.size.saturating_sub(self.at).min(out.len() as u64) as usize;
        let bytes = self.shown.get_bytes(self.at, length).map_err(|error| match error {
            ParquetError::External(inner) => std::io::Error::other(inner),
            other => std::io::Error::other(other),
        })?;
        out.get_mut(..length).into_iter().for_each(|out| out.copy_from_slice(&bytes));
        self.at += length as u64;
        Ok(length)
    }
}

/// Rows that become one row group of the output.
#[derive(Clone, Debug)]
struct Group {
    /// Number of the row group in the view.
    shown: usize,
    /// Rows within that row group.
    rows: Range<u64>,
}

/// An unfinished row group: the writers of its columns, then their encoded chunks.
struct Begun {
    writers: Vec<Option<Vec<ColumnWriter>>>,
    chunks: Vec<Option<Vec<EncodedChunk>>>,
    next: usize,
}

/// Encodes a leaf column of a row group.
pub(super) enum ColumnWriter {
    /// Values, with a dictionary of those that occur.
    Values(Box<ArrowColumnWriter>),
    /// Categories, with a dictionary of all labels.
    Labelled(Box<ChunkEncoder>),
}

/// An encoded column chunk.
pub(super) enum EncodedChunk {
    Values(Box<ArrowColumnChunk>),
    Labelled(Bytes, Box<ColumnCloseResult>),
}

impl ColumnWriter {
    /// Returns the writers of each column of a row group, one per leaf; `labels` has those of columns of categories.
    pub fn of_columns<W: Write + Send>(
        factory: &ArrowRowGroupWriterFactory,
        group: usize,
        file: &SerializedFileWriter<W>,
        labels: &[Option<Arc<DictionaryLabels>>],
    ) -> Result<Vec<Vec<Self>>, ParquetError> {
        let schema = file.schema_descr();
        let mut columns: Vec<Vec<Self>> = labels.iter().map(|_| Vec::new()).collect();
        for (leaf, writer) in factory.create_column_writers(group)?.into_iter().enumerate() {
            let column = schema.get_column_root_idx(leaf);
            let writer = match labels.get(column).and_then(Option::as_ref) {
                Some(labels) => Self::Labelled(Box::new(ChunkEncoder::new(labels, schema.column(leaf))?)),
                None => Self::Values(Box::new(writer)),
            };
            if let Some(writers) = columns.get_mut(column) {
                writers.push(writer);
            }
        }
        Ok(columns)
    }

    /// Encodes the rows of an array, for the leaves of a column.
    pub fn write(writers: &mut [Self], field: &Field, array: &ArrayRef) -> Result<(), ParquetError> {
        if let [Self::Labelled(chunk)] = writers {
            return chunk.write(array);
        }
        for (leaf, writer) in compute_leaves(field, array)?.iter().zip(writers) {
            match writer {
                Self::Values(writer) => writer.write(leaf)?,
                Self::Labelled(chunk) => chunk.write(array)?,
            }
        }
        Ok(())
    }

    pub fn close(self) -> Result<EncodedChunk, ParquetError> {
        Ok(match self {
            Self::Values(writer) => EncodedChunk::Values(Box::new(writer.close()?)),
            Self::Labelled(chunk) => {
                let (bytes, close) = chunk.close()?;
                EncodedChunk::Labelled(bytes, Box::new(close))
            }
        })
    }
}

impl EncodedChunk {
    pub fn append_to<W: Write + Send>(self, group: &mut SerializedRowGroupWriter<'_, W>) -> Result<(), ParquetError> {
        match self {
            Self::Values(chunk) => chunk.append_to_row_group(group),
            Self::Labelled(bytes, close) => group.append_column(&bytes, *close),
        }
    }
}

/// Unfinished row groups, in order.
#[derive(Default)]
struct State {
    begun: VecDeque<Begun>,
    /// Number of row groups written, hence of the first in `begun`.
    written: usize,
    all_begun: bool,
    failure: Option<CompressError>,
}

/// The view as opened by the `parquet` crate's reader.
pub(super) struct OpenedParquet {
    pub shown: ShownParquet,
    pub metadata: ArrowReaderMetadata,
}

impl OpenedParquet {
    pub fn open(view: ParquetView, interrupt: &Interrupt) -> Result<Self, CompressError> {
        // If the layout followed from a sample, asking for the exact size makes it final.
        let size = view.size(Effort::Exact, interrupt)?.bytes();
        let shown = ShownParquet { view: Arc::new(view), size, interrupt: interrupt.clone() };
        let metadata = ArrowReaderMetadata::load(&shown, ArrowReaderOptions::new())?;
        Ok(Self { shown, metadata })
    }

    /// Returns the properties of exported files, which include the key-value pairs of the view.
    pub fn properties(&self, compression: Compression) -> WriterProperties {
        let said = self.metadata.metadata().file_metadata().key_value_metadata().cloned().unwrap_or_default();
        let said = said.into_iter().filter(|pair| pair.key != ARROW_SCHEMA_META_KEY).collect();
        WriterProperties::builder()
            .set_compression(compression)
            .set_created_by(CREATED_BY.to_owned())
            .set_key_value_metadata(Some(said))
            .build()
    }

    /// Returns how many rows of these columns in a row group of the view take about `bytes` bytes.
    pub fn rows_in(&self, bytes: u64, columns: &[usize], group: usize) -> u64 {
        let all = self.metadata.metadata().row_group(group);
        let columns: HashSet<usize> = columns.iter().copied().collect();
        let leaves = (0..all.num_columns())
            .filter(|leaf| columns.contains(&self.metadata.parquet_schema().get_column_root_idx(*leaf)));
        let width: i64 = leaves.map(|leaf| all.column(leaf).uncompressed_size()).sum();
        let width = (width.max(0) as u64).div_ceil(all.num_rows().max(1) as u64).max(1);
        (bytes / width).max(1)
    }

    /// Reads columns of some rows of a row group of the view.
    pub fn read(
        &self,
        columns: &[usize],
        group: usize,
        rows: Range<u64>,
        batch: u64,
    ) -> Result<ParquetRecordBatchReader, CompressError> {
        Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(self.shown.clone(), self.metadata.clone())
            .with_projection(ProjectionMask::roots(self.metadata.parquet_schema(), columns.iter().copied()))
            .with_row_groups(vec![group])
            .with_offset(rows.start as usize)
            .with_limit((rows.end - rows.start) as usize)
            .with_batch_size(batch as usize)
            .build()?)
    }
}

/// Writes the rows of `view`, compressed, to `out`, in row groups of at most `row_group` bytes as in the view. `done`
/// counts rows written so far.
///
/// # Errors
/// [`CompressError`]; the output is then incomplete.
pub fn compress(
    view: ParquetView,
    compression: Compression,
    row_group: u64,
    out: &mut (dyn Write + Send),
    done: &AtomicU64,
    interrupt: &Interrupt,
) -> Result<(), CompressError> {
    let source = OpenedParquet::open(view, interrupt)?;
    let writer = ArrowWriter::try_new(out, source.metadata.schema().clone(), Some(source.properties(compression)))?;
    let (mut writer, factory) = writer.into_serialized_writer()?;
    let labels = source.shown.view.labels(compression, interrupt)?;
    let work = Work { source, labels, row_group: row_group.max(1), state: Mutex::default(), changed: Condvar::new() };
    let groups = work.groups();
    thread::scope(|scope| {
        for _ in 0..cores() {
            let worker = thread::Builder::new().name("hepfs-export".to_owned());
            if let Err(error) = worker.spawn_scoped(scope, || work.work(&groups)) {
                work.fail(CompressError::Output(error));
            }
        }
        let written = groups.iter().try_for_each(|group| {
            work.begin(&groups, &factory, &writer)?;
            let mut row_group = writer.next_row_group()?;
            for chunk in work.encoded()? {
                chunk.append_to(&mut row_group)?;
            }
            row_group.close()?;
            done.fetch_add(group.rows.end - group.rows.start, Ordering::Relaxed);
            Ok(())
        });
        work.state.lock().all_begun = true;
        if let Err(error) = written {
            work.fail(error);
        }
        work.changed.notify_all();
    });
    if let Some(failure) = work.state.into_inner().failure {
        return Err(failure);
    }
    writer.close()?;
    Ok(())
}

struct Work {
    source: OpenedParquet,
    /// Labels of each column of categories.
    labels: Vec<Option<Arc<DictionaryLabels>>>,
    /// Most bytes of a row group as in the view; further rows go to another row group.
    row_group: u64,
    state: Mutex<State>,
    changed: Condvar,
}

/// Wakes the waiting threads if this one panics.
struct Ends<'a>(&'a Work);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail(CompressError::Format("a thread that encodes columns ended".into()));
        }
    }
}

impl Work {
    /// Returns the row groups to write.
    fn groups(&self) -> Vec<Group> {
        let groups = self.source.metadata.metadata().row_groups().iter().enumerate().flat_map(|(shown, group)| {
            let rows = group.num_rows().max(0) as u64;
            let pieces = (group.total_byte_size().max(0) as u64).div_ceil(self.row_group).clamp(1, rows.max(1));
            let step = rows.div_ceil(pieces).max(1);
            (0..rows).step_by(step as usize).map(move |start| Group { shown, rows: start..rows.min(start + step) })
        });
        groups.collect()
    }

    fn fail(&self, error: CompressError) {
        self.state.lock().failure.get_or_insert(error);
        self.changed.notify_all();
    }

    /// Begins row groups, at most [`AT_ONCE`] at a time.
    fn begin<W: Write + Send>(
        &self,
        groups: &[Group],
        factory: &ArrowRowGroupWriterFactory,
        file: &SerializedFileWriter<W>,
    ) -> Result<(), CompressError> {
        let mut state = self.state.lock();
        loop {
            let next = state.written + state.begun.len();
            if state.begun.len() >= AT_ONCE || next >= groups.len() {
                break;
            }
            let writers = ColumnWriter::of_columns(factory, next, file, &self.labels)?;
            let chunks = writers.iter().map(|_| None).collect();
            state.begun.push_back(Begun { writers: writers.into_iter().map(Some).collect(), chunks, next: 0 });
        }
        self.changed.notify_all();
        Ok(())
    }

    /// Returns the columns of the first unfinished row group, once they are encoded.
    fn encoded(&self) -> Result<Vec<EncodedChunk>, CompressError> {
        let mut state = self.state.lock();
        loop {
            if let Some(failure) = state.failure.take() {
                return Err(failure);
            }
            if state.begun.front().is_none_or(|group| group.chunks.iter().all(Option::is_some)) {
                let group = state.begun.pop_front();
                state.written += 1;
                return Ok(group.into_iter().flat_map(|group| group.chunks).flatten().flatten().collect());
            }
            self.changed.wait(&mut state);
        }
    }

    /// Encodes columns until none is left, those of the first row groups first.
    fn work(&self, groups: &[Group]) {
        let _ends = Ends(self);
        loop {
            let mut state = self.state.lock();
            let (place, column, writers) = loop {
                if state.failure.is_some() {
                    return;
                }
                let free = state.begun.iter_mut().enumerate().find(|(_, group)| group.next < group.writers.len());
                if let Some((at, group)) = free {
                    let column = group.next;
                    group.next += 1;
                    let writers = group.writers.get_mut(column).and_then(Option::take).unwrap_or_default();
                    break (state.written + at, column, writers);
                }
                if state.all_begun {
                    return;
                }
                self.changed.wait(&mut state);
            };
            drop(state);
            let Some(group) = groups.get(place) else { return };
            match self.encode(group, column, writers) {
                Ok(chunks) => {
                    let mut state = self.state.lock();
                    let at = place - state.written;
                    if let Some(slot) = state.begun.get_mut(at).and_then(|group| group.chunks.get_mut(column)) {
                        *slot = Some(chunks);
                    }
                    self.changed.notify_all();
                }
                Err(error) => return self.fail(error),
            }
        }
    }

    /// Encodes a column of a row group.
    fn encode(
        &self,
        group: &Group,
        column: usize,
        mut writers: Vec<ColumnWriter>,
    ) -> Result<Vec<EncodedChunk>, CompressError> {
        let schema = self.source.metadata.schema();
        let batch = self.source.rows_in(BATCH_BYTES.min(self.row_group), &[column], group.shown).min(BATCH_ROWS);
        for batch in self.source.read(&[column], group.shown, group.rows.clone(), batch)? {
            self.source.shown.interrupt.check().map_err(Error::from)?;
            let batch = batch.map_err(CompressError::from_arrow)?;
            ColumnWriter::write(&mut writers, schema.field(column), batch.column(0))?;
        }
        Ok(writers.into_iter().map(ColumnWriter::close).collect::<Result<_, _>>()?)
    }
}
