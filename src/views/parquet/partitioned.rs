//! Exports Parquet files, one for each value of some columns: `label=electron/part-0.parquet`.
//!
//! ```text
//! row group shown ──► keys ──► partition of each row ──► the other columns ──┬─► files of one core
//!                                                                            └─► files of another
//! ```
//!
//! Rows are buffered until they reach the memory limit; then each partition gets a row group. Encoders take more memory
//! than rows do, so each core runs one at a time.
//!
//! Partitions are numbered in the order of their first rows. Up to [`MOST_OPEN`] files are open at a time; rows of
//! later partitions wait for another pass, which begins at the first row group with such rows. So each partition is one
//! file, memory and open files are bounded, and rows already sorted by partition are read once.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, mem, thread};

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_row::{RowConverter, SortField};
use arrow_schema::{DataType, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use bstr::BString;
use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowRowGroupWriterFactory;
use parquet::basic::{Compression, Type};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::properties::{DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT, WriterProperties};
use parquet::file::writer::SerializedFileWriter;

use super::ParquetView;
use super::compressed::{ColumnWriter, CompressError, OpenedParquet};
use super::labelled::DictionaryLabels;
use crate::source::Interrupt;
use crate::store::{Error, cores};
use crate::views::text::{TextFormat, TextLayout};

/// Directory name for a null, by Hive's convention.
const MISSING: &str = "__HIVE_DEFAULT_PARTITION__";

/// Most partitions of a table.
const MOST_PARTITIONS: usize = 1 << 14;

/// Most partitions with open files.
const MOST_OPEN: u32 = 256;

/// Longest directory name in bytes.
const LONGEST_NAME: usize = 255;

/// About how many bytes of rows to decode at once.
const BATCH_BYTES: u64 = 8 << 20;

/// Number of rows to decode at once.
const BATCH_ROWS: u64 = 1 << 16;

/// Bytes below which a dictionary is kept, however little it saves.
const SHORTEST_DICTIONARY: usize = 1 << 12;

/// Every file gets all labels of a column if they take at most this many bytes.
const WHOLE_LABELS: u64 = 1 << 20;

/// Number of rows of a partition to encode at once.
const ROWS_AT_ONCE: usize = 1 << 13;

/// About the most bytes of a page whose rows have no fixed places.
const PAGE_BYTES: u64 = 2 << 20;

/// Most memory of the pages that a reader holds, as a multiple of that of the buffered rows.
const PAGES_PART: u64 = 4;

/// How to partition a table.
pub struct Partitioning<'a> {
    /// Names of the columns whose values determine the partition, outermost first.
    pub by: &'a [String],
    /// Compression of the columns.
    pub compression: Compression,
    /// About how many bytes of rows to buffer before writing them.
    pub memory: u64,
    /// Creates the file of a partition, given its directory: `label=electron`.
    pub create: &'a (dyn Fn(&str) -> io::Result<File> + Sync),
}

/// Writes the rows of `view`, partitioned. `done` counts rows written so far.
///
/// # Errors
/// [`CompressError`]; the output is then incomplete.
pub fn partition(
    view: ParquetView,
    how: &Partitioning<'_>,
    done: &AtomicU64,
    interrupt: &Interrupt,
) -> Result<(), CompressError> {
    let source = OpenedParquet::open(view, interrupt)?;
    let parted = Parted::new(&source, how.by)?;
    let held = source.metadata.metadata().row_groups().first().map_or(0, pages);
    if held > how.memory.saturating_mul(PAGES_PART) {
        let reason = format!("a page of each column takes {held} bytes: choose columns, or give a larger --memory");
        return Err(refused(&how.by.join(","), &reason));
    }
    let schema = source.metadata.schema().project(&parted.others).map_err(CompressError::from_arrow)?;
    let labels = source.shown.view.labels(how.compression, interrupt)?;
    let job = Job {
        properties: source.properties(how.compression),
        schema: Arc::new(schema),
        labels: parted.others.iter().map(|at| labels.get(*at).cloned().flatten()).collect(),
        how,
        cores: cores(),
        directories: Mutex::default(),
    };
    let mut pass = Pass { source, parted, job: &job, open: 0..MOST_OPEN, done, interrupt };
    let mut from = Some(0);
    while let Some(group) = from {
        from = pass.run(group)?;
        pass.open = pass.open.end..pass.open.end + MOST_OPEN;
    }
    Ok(())
}

fn refused(column: &str, reason: &str) -> CompressError {
    CompressError::Format(format!("partitions by {column:?}: {reason}"))
}

/// Returns the bytes of one page per column of a row group, which a reader of all columns holds at once.
fn pages(group: &RowGroupMetaData) -> u64 {
    let pages = group.columns().iter().map(|chunk| {
        let (bytes, leaf) = (chunk.uncompressed_size().max(0) as u64, chunk.column_descr());
        let has_places = leaf.max_def_level() == 0 && leaf.max_rep_level() == 0;
        if has_places && chunk.column_type() != Type::BYTE_ARRAY { bytes } else { bytes.min(PAGE_BYTES) }
    });
    pages.sum()
}

/// The state shared by all threads.
struct Job<'a> {
    how: &'a Partitioning<'a>,
    properties: WriterProperties,
    /// Schema of all files.
    schema: SchemaRef,
    /// Labels of each column of categories.
    labels: Vec<Option<Arc<DictionaryLabels>>>,
    cores: usize,
    /// Directory of each partition so far.
    directories: Mutex<Vec<Arc<str>>>,
}

/// A batch of rows in a pass.
struct Batch {
    rows: RecordBatch,
    /// Number of each row's partition.
    ids: Vec<u32>,
    /// Numbers of the partitions that this pass writes.
    open: Range<u32>,
    /// About how many bytes a row takes.
    width: u64,
}

/// Number of a partition, and its range among sorted rows.
type Part = (u32, Range<usize>);

/// Buffered rows, and the files for them.
#[derive(Default)]
struct Held {
    /// Rows sorted by partition, and the range of each partition.
    batches: Vec<(RecordBatch, Vec<Part>)>,
    /// About how many bytes the rows take.
    bytes: u64,
    files: HashMap<u32, Partition>,
}

/// The file of a partition, and the labels that it gets in full.
struct Partition {
    file: SerializedFileWriter<File>,
    factory: ArrowRowGroupWriterFactory,
    labels: Vec<Option<Arc<DictionaryLabels>>>,
}

impl Job<'_> {
    /// Creates the file of a partition whose first row group has `rows` rows.
    fn create(&self, id: u32, rows: usize) -> Result<Partition, CompressError> {
        let directory = self.directories.lock().get(id as usize).cloned().unwrap_or_default();
        let file = (self.how.create)(&directory).map_err(CompressError::Output)?;
        // A dictionary of nearly all values would lengthen a short row group.
        let dictionary = rows.clamp(SHORTEST_DICTIONARY, DEFAULT_DICTIONARY_PAGE_SIZE_LIMIT);
        let properties = self.properties.clone().into_builder().set_dictionary_page_size_limit(dictionary).build();
        let file = ArrowWriter::try_new(file, self.schema.clone(), Some(properties))?;
        let (file, factory) = file.into_serialized_writer()?;
        // If the order of labels is meaningful, all of them are kept, whatever they take.
        let is_short =
            |labels: &Arc<DictionaryLabels>| labels.ordered || labels.bytes() <= WHOLE_LABELS.max(8 * rows as u64);
        let labels = self.labels.iter().map(|labels| labels.clone().filter(is_short)).collect();
        Ok(Partition { file, factory, labels })
    }

    /// Writes the rows of one core's partitions, until the queue is closed.
    fn write(&self, core: usize, batches: &Receiver<Arc<Batch>>) -> Result<(), CompressError> {
        let mut held = Held::default();
        for batch in batches {
            let own =
                (0..).zip(&batch.ids).filter(|(_, id)| batch.open.contains(id) && **id as usize % self.cores == core);
            let mut rows: Vec<(u32, u32)> = own.map(|(row, id)| (*id, row)).collect();
            rows.sort_unstable();
            let mut parts: Vec<Part> = Vec::new();
            for (at, (id, _)) in rows.iter().enumerate() {
                match parts.last_mut().filter(|(last, _)| last == id) {
                    Some((_, range)) => range.end = at + 1,
                    None => parts.push((*id, at..at + 1)),
                }
            }
            let places: UInt32Array = rows.iter().map(|(_, row)| *row).collect();
            let sorted = take_record_batch(&batch.rows, &places).map_err(CompressError::from_arrow)?;
            held.bytes += batch.width.saturating_mul(rows.len() as u64);
            held.batches.push((sorted, parts));
            if held.bytes > self.how.memory / self.cores as u64 {
                self.flush(&mut held)?;
            }
        }
        self.flush(&mut held)?;
        held.files.into_values().try_for_each(|part| Ok(part.file.close().map(drop)?))
    }

    /// Writes a row group of each partition that has buffered rows.
    fn flush(&self, held: &mut Held) -> Result<(), CompressError> {
        let batches = mem::take(&mut held.batches);
        held.bytes = 0;
        let mut slices = BTreeMap::<u32, Vec<RecordBatch>>::new();
        for (rows, parts) in &batches {
            for (id, range) in parts {
                slices.entry(*id).or_default().push(rows.slice(range.start, range.len()));
            }
        }
        for (id, slices) in slices {
            let part = match held.files.entry(id) {
                Entry::Occupied(part) => part.into_mut(),
                Entry::Vacant(place) => place.insert(self.create(id, slices.iter().map(RecordBatch::num_rows).sum())?),
            };
            let group = part.file.flushed_row_groups().len();
            let mut columns = ColumnWriter::of_columns(&part.factory, group, &part.file, &part.labels)?;
            let mut few = Vec::new();
            let mut count = 0;
            let last = slices.len() - 1;
            for (at, slice) in slices.into_iter().enumerate() {
                count += slice.num_rows();
                few.push(slice);
                if count >= ROWS_AT_ONCE || at == last {
                    let rows = concat_batches(&self.schema, &few).map_err(CompressError::from_arrow)?;
                    for ((writers, field), array) in columns.iter_mut().zip(self.schema.fields()).zip(rows.columns()) {
                        ColumnWriter::write(writers, field, array)?;
                    }
                    (few, count) = (Vec::new(), 0);
                }
            }
            let mut group = part.file.next_row_group()?;
            for writer in columns.into_iter().flatten() {
                writer.close()?.append_to(&mut group)?;
            }
            group.close()?;
        }
        Ok(())
    }
}

/// A pass over all rows that are not yet written.
struct Pass<'a> {
    source: OpenedParquet,
    parted: Parted,
    job: &'a Job<'a>,
    /// Numbers of the partitions written in this pass.
    open: Range<u32>,
    done: &'a AtomicU64,
    interrupt: &'a Interrupt,
}

impl Pass<'_> {
    /// Goes through the row groups from `from` on; returns the first that has rows of later partitions.
    fn run(&mut self, from: usize) -> Result<Option<usize>, CompressError> {
        let job = self.job;
        thread::scope(|scope| {
            let (mut senders, mut workers) = (Vec::new(), Vec::new());
            for core in 0..job.cores {
                let (sender, receiver) = bounded(1);
                let worker = thread::Builder::new().name("hepfs-export".to_owned());
                let worker = worker.spawn_scoped(scope, move || job.write(core, &receiver));
                workers.push(worker.map_err(CompressError::Output)?);
                senders.push(sender);
            }
            let mut later = None;
            let groups = self.source.metadata.metadata().num_row_groups();
            let read = (from..groups).try_for_each(|group| {
                if self.group(group, &senders)? {
                    later.get_or_insert(group);
                }
                Ok(())
            });
            drop(senders);
            // A writer's error is the cause; its closed queue is only a consequence.
            for worker in workers {
                worker.join().unwrap_or_else(|_| Err(ended()))?;
            }
            read.map(|()| later)
        })
    }

    /// Sends the rows of a row group to the writers; returns whether some belong to later partitions.
    fn group(&mut self, group: usize, senders: &[Sender<Arc<Batch>>]) -> Result<bool, CompressError> {
        let ids = self.parted.ids(&self.source, group, self.job, self.interrupt)?;
        let is_open = |id: &u32| self.open.contains(id);
        if let (Some(first), Some(last)) = (ids.iter().position(is_open), ids.iter().rposition(is_open)) {
            let columns = &self.parted.others;
            let width = BATCH_BYTES.div_ceil(self.source.rows_in(BATCH_BYTES, columns, group));
            let batch = self.source.rows_in(BATCH_BYTES, columns, group).min(BATCH_ROWS);
            let mut ids = ids[first..=last].iter().copied();
            for batch in self.source.read(columns, group, first as u64..last as u64 + 1, batch)? {
                self.interrupt.check().map_err(Error::from)?;
                let columns = batch.map_err(CompressError::from_arrow)?.columns().to_vec();
                let rows = RecordBatch::try_new(self.job.schema.clone(), columns).map_err(CompressError::from_arrow)?;
                let ids: Vec<u32> = ids.by_ref().take(rows.num_rows()).collect();
                let wanted = ids.iter().filter(|id| is_open(id)).count() as u64;
                let batch = Arc::new(Batch { rows, ids, open: self.open.clone(), width });
                for sender in senders.iter().filter(|_| wanted > 0) {
                    sender.send(batch.clone()).map_err(|_| ended())?;
                }
                self.done.fetch_add(wanted, Ordering::Relaxed);
            }
        }
        Ok(ids.iter().any(|id| *id >= self.open.end))
    }
}

fn ended() -> CompressError {
    CompressError::Format("a thread that writes partitions ended".into())
}

/// Assigns rows to partitions.
struct Parted {
    /// Names of the key columns.
    names: Vec<String>,
    /// Positions of the key columns among all columns, in the order of `names`; `others` has the rest.
    keys: Vec<usize>,
    others: Vec<usize>,
    converter: RowConverter,
    /// Numbers of partitions by their values; `by_directory` has them by directory.
    known: HashMap<Box<[u8]>, u32>,
    by_directory: HashMap<Arc<str>, u32>,
}

impl Parted {
    fn new(source: &OpenedParquet, by: &[String]) -> Result<Self, CompressError> {
        let schema = source.metadata.schema();
        let (mut keys, mut fields) = (Vec::new(), Vec::new());
        for name in by {
            let (at, field) = schema.column_with_name(name).ok_or_else(|| refused(name, "there is no such column"))?;
            let value = match field.data_type() {
                DataType::Dictionary(_, value) => value,
                plain => plain,
            };
            if value.is_nested() {
                return Err(refused(name, "lists and compounds are no names of directories"));
            }
            if keys.contains(&at) {
                return Err(refused(name, "it is named twice"));
            }
            keys.push(at);
            fields.push(SortField::new(field.data_type().clone()));
        }
        let others: Vec<usize> = (0..schema.fields().len()).filter(|at| !keys.contains(at)).collect();
        if others.is_empty() {
            return Err(CompressError::Format("partitions by all columns: none is left for the files".into()));
        }
        let converter = RowConverter::new(fields).map_err(CompressError::from_arrow)?;
        let (known, by_directory) = (HashMap::new(), HashMap::new());
        Ok(Self { names: by.to_vec(), keys, others, converter, known, by_directory })
    }

    /// Returns the partition of each row of a row group.
    fn ids(
        &mut self,
        source: &OpenedParquet,
        group: usize,
        job: &Job<'_>,
        interrupt: &Interrupt,
    ) -> Result<Vec<u32>, CompressError> {
        let all = source.metadata.metadata().row_group(group).num_rows().max(0) as u64;
        let mut ids = Vec::with_capacity(all as usize);
        for batch in
            source.read(&self.keys, group, 0..all, source.rows_in(BATCH_BYTES, &self.keys, group).min(BATCH_ROWS))?
        {
            interrupt.check().map_err(Error::from)?;
            let batch = batch.map_err(CompressError::from_arrow)?;
            let arrays = self.names.iter().filter_map(|name| batch.column_by_name(name).cloned());
            let arrays: Vec<ArrayRef> = arrays.collect();
            let rows = self.converter.convert_columns(&arrays).map_err(CompressError::from_arrow)?;
            for row in 0..rows.num_rows() {
                let key = rows.row(row);
                let id = match ids.last() {
                    Some(last) if row > 0 && key == rows.row(row - 1) => *last,
                    _ => match self.known.get(key.data()) {
                        Some(id) => *id,
                        None => self.add(key.data(), &arrays, row, job)?,
                    },
                };
                ids.push(id);
            }
        }
        Ok(ids)
    }

    /// Adds the partition of a new combination of values.
    fn add(&mut self, key: &[u8], arrays: &[ArrayRef], row: usize, job: &Job<'_>) -> Result<u32, CompressError> {
        let mut parts = Vec::with_capacity(arrays.len());
        for (name, array) in self.names.iter().zip(arrays) {
            parts.push(directory(name, &array.slice(row, 1)).map_err(|reason| refused(name, &reason))?);
        }
        let path: Arc<str> = parts.join("/").into();
        let mut directories = job.directories.lock();
        let id = *self.by_directory.entry(path.clone()).or_insert(directories.len() as u32);
        if id as usize == directories.len() {
            directories.push(path);
        }
        if directories.len() > MOST_PARTITIONS || self.known.len() >= 2 * MOST_PARTITIONS {
            return Err(refused(&self.names.join(","), &format!("there are more than {MOST_PARTITIONS} of them")));
        }
        self.known.insert(key.into(), id);
        Ok(id)
    }
}

/// Returns the directory name for a value of a column.
fn directory(column: &str, value: &ArrayRef) -> Result<String, String> {
    let mut text = Vec::new();
    let is_missing = value.logical_null_count() > 0;
    if !is_missing {
        let layout = TextLayout::new(TextFormat::Verbatim, [&BString::default()]);
        layout.render(std::slice::from_ref(value), &mut text).map_err(|error| error.to_string())?;
    }
    let name = match escaped(&text, |byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)) {
        _ if is_missing => MISSING.to_owned(),
        // A text that equals the name for null gets an escape.
        text if text == MISSING => text.replacen('_', "%5F", 1),
        text => text,
    };
    // Not all readers undo these escapes.
    let name = format!("{}={name}", escaped(column.as_bytes(), |byte| !b"/=\0".contains(&byte)));
    if name.len() <= LONGEST_NAME {
        return Ok(name);
    }
    Err(format!("a value of {} bytes, {name:.40}…, is too long for the name of a directory", text.len()))
}

/// Returns a text with bytes escaped as in a URL; readers of Hive directories undo that.
fn escaped(text: &[u8], is_plain: impl Fn(u8) -> bool) -> String {
    let mut escaped = Vec::with_capacity(text.len());
    for byte in text {
        match is_plain(*byte) {
            true => escaped.push(*byte),
            false => escaped.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    String::from_utf8_lossy(&escaped).into_owned()
}
