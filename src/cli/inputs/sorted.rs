//! Sorts rows: an external merge sort.
//!
//! ```text
//! inputs ─► as many batches as memory allows ─► sorted: a run, in a file without a name ─► merged as they are read
//! ```
//!
//! Every [`FEWEST`] runs or more are merged into one of the next level, so that as many batches fit in memory.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{self, AtomicU64};

use arrow_array::{Array, ArrayRef, RecordBatch, new_empty_array};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};
use arrow_select::interleave::interleave_record_batch;

use super::{Failed, Inputs, MOST_ROWS, guarded};
use crate::query::{sort_fields, sort_keys};
use crate::source::Interrupt;
use crate::table::{arrow_name, did_you_mean, listed};

/// Approximate bytes of a batch in a run; a merge holds one batch per run.
const PIECE: usize = 512 << 10;

/// Most bytes of a batch in a run, as a multiple of [`PIECE`], unless the batch is a single row.
const SPREAD: usize = 4;

/// Fewest runs to merge at once, however little memory there is.
const FEWEST: usize = 8;

/// Bytes of a row during sorting, besides its key.
const PLACE: usize = size_of::<Place>();

/// The order of rows: columns, and whether each descends.
#[derive(Clone, Debug)]
pub(in crate::cli) struct SortBy {
    keys: Vec<(usize, bool)>,
}

/// Sorted rows, in runs.
pub(in crate::cli) struct Sorted {
    keys: Arc<Keys>,
    /// Runs by the number of merges; within a level, and from a higher level to a lower one, they are in the order of
    /// the inputs.
    levels: Vec<Vec<Arc<File>>>,
    /// Columns that are dictionaries in the inputs.
    dictionaries: Vec<usize>,
    /// Fields of the runs.
    schema: SchemaRef,
}

/// Makes keys of rows.
struct Keys {
    columns: Vec<usize>,
    converter: RowConverter,
}

/// The start of a row's key, then its batch and its row there.
type Place = (u64, u32, u32);

impl SortBy {
    /// Parses `COLUMN[:desc]`.
    ///
    /// # Errors
    /// If there is no such column, or it has no order.
    pub fn new(given: &[String], fields: &Fields) -> Result<Self, String> {
        let mut keys = Vec::with_capacity(given.len());
        let known =
            fields.iter().flat_map(|field| ["", ":asc", ":desc"].map(|order| format!("{}{order}", field.name())));
        for text in &listed(given, known) {
            let (name, descending) = match (fields.find(text), text.rsplit_once(':')) {
                (None, Some((name, "desc"))) => (name, true),
                (None, Some((name, "asc"))) => (name, false),
                _ => (text.as_str(), false),
            };
            let Some((at, field)) = fields.find(name) else {
                let names = fields.iter().map(|field| field.name());
                return Err(format!("--sort-by {name}: there is no such column{}", did_you_mean(name, names)));
            };
            if !RowConverter::supports_fields(&[SortField::new(spilled(field.data_type()))]) {
                return Err(format!("--sort-by {name}: values of {} have no order", arrow_name(field.data_type())));
            }
            keys.push((at, descending));
        }
        Ok(Self { keys })
    }

    /// Reads the inputs and sorts their rows, in unnamed files in a folder. Holds at most `memory` bytes, unless a
    /// single batch of the inputs takes more. `done` counts rows.
    ///
    /// # Errors
    /// If an input cannot be read, or the folder rejects files.
    pub fn sort(
        &self,
        inputs: &Inputs,
        memory: u64,
        folder: &Path,
        done: &AtomicU64,
        interrupt: &Interrupt,
    ) -> Result<Sorted, String> {
        let fields = inputs.fields.iter().map(|field| Field::new(field.name(), spilled(field.data_type()), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let of_key = |(at, descending): &(usize, bool)| sort_fields(schema.field(*at).data_type(), *descending);
        let converter = RowConverter::new(self.keys.iter().flat_map(of_key).collect()).map_err(wrong)?;
        let keys = Arc::new(Keys { columns: self.keys.iter().map(|key| key.0).collect(), converter });
        let dictionaries = (0..inputs.fields.len())
            .filter(|at| matches!(inputs.fields[*at].data_type(), DataType::Dictionary(..)))
            .collect();
        let memory = usize::try_from(memory).unwrap_or(usize::MAX);
        let mut sorter = Sorter {
            sorted: Sorted { keys, levels: Vec::new(), dictionaries, schema },
            folder: folder.to_owned(),
            moved: 0,
            done,
            held: Vec::new(),
            bytes: 0,
            most: memory,
            most_runs: (memory / PIECE / 2).max(FEWEST),
        };
        let failed = |error: ArrowError| {
            Failed::Input(format!("sorting, in files without names in {}: {error}", folder.display()))
        };
        let (sender, receiver) = crossbeam_channel::bounded(1);
        let sorted = std::thread::scope(|scope| {
            scope.spawn(move || {
                let columns: Vec<usize> = (0..inputs.fields.len()).collect();
                let read = || {
                    // After a failure the receiver is gone.
                    inputs.batches(&columns).try_for_each(|batch| sender.send(batch)).ok();
                    Ok::<(), Failed<()>>(())
                };
                if let Err(Failed::Input(reason)) = guarded(read) {
                    sender.send(Err(reason)).ok();
                }
            });
            let sort = || {
                for batch in receiver {
                    sorter.add(&batch.map_err(Failed::Input)?).map_err(failed)?;
                    interrupt.check().map_err(|error| Failed::Input(error.to_string()))?;
                }
                sorter.spill().map_err(failed)
            };
            guarded::<()>(sort)
        });
        match sorted {
            Ok(()) => Ok(sorter.sorted),
            Err(Failed::Input(reason)) => Err(reason),
            Err(Failed::Column(..)) => Err("the rows cannot be sorted".to_owned()),
        }
    }
}

fn wrong(error: ArrowError) -> String {
    format!("sorting: {error}")
}

/// The type of values in a run: labels become text, so that no dictionary is needed.
fn spilled(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, labels) => spilled(labels),
        DataType::Utf8View => DataType::LargeUtf8,
        DataType::BinaryView => DataType::LargeBinary,
        other => other.clone(),
    }
}

/// Bytes of the rows of a batch, without other bytes in the same buffers.
fn bytes_of(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter();
    columns.map(|array| array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())).sum()
}

impl Keys {
    fn of(&self, batch: &RecordBatch) -> Result<Rows, ArrowError> {
        let columns: Vec<ArrayRef> = self.columns.iter().flat_map(|at| sort_keys(batch.column(*at).clone())).collect();
        self.converter.convert_columns(&columns)
    }
}

/// Turns batches into runs.
struct Sorter<'a> {
    sorted: Sorted,
    folder: PathBuf,
    /// Rows read and rows written to runs. Either is half of the work, and reading fills the memory first.
    moved: u64,
    done: &'a AtomicU64,
    held: Vec<(RecordBatch, Rows)>,
    /// Bytes in memory.
    bytes: usize,
    most: usize,
    most_runs: usize,
}

impl Sorter<'_> {
    fn add(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let fields = self.sorted.schema.fields();
        let columns = batch.columns().iter().zip(fields).map(|(array, field)| {
            let is_it = array.data_type() == field.data_type();
            if is_it { Ok(array.clone()) } else { arrow_cast::cast(array, field.data_type()) }
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let batch = RecordBatch::try_new(self.sorted.schema.clone(), columns)?;
        let keys = self.sorted.keys.of(&batch)?;
        let bytes = bytes_of(&batch) + keys.size() + PLACE * batch.num_rows();
        // Writing a run takes some memory as well.
        if self.bytes + bytes + SPREAD * PIECE > self.most {
            self.spill()?;
        }
        self.bytes += bytes;
        self.count(batch.num_rows());
        self.held.push((batch, keys));
        Ok(())
    }

    fn count(&mut self, rows: usize) {
        self.moved += rows as u64;
        self.done.store(self.moved / 2, atomic::Ordering::Relaxed);
    }

    /// Writes the batches in memory as a run.
    fn spill(&mut self) -> Result<(), ArrowError> {
        let (held, bytes) = (std::mem::take(&mut self.held), std::mem::take(&mut self.bytes));
        let mut places: Vec<Place> = Vec::with_capacity(held.iter().map(|(batch, _)| batch.num_rows()).sum());
        for (at, (_, keys)) in (0..).zip(&held) {
            places.extend(keys.iter().zip(0..).map(|(key, row)| (begin(key.data()), at, row)));
        }
        if places.is_empty() {
            return Ok(());
        }
        let key = |(_, batch, row): &Place| held[*batch as usize].1.row(*row as usize);
        // Equal rows keep their order.
        places.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| key(a).cmp(&key(b))).then_with(|| (a.1, a.2).cmp(&(b.1, b.2)))
        });
        let batches: Vec<&RecordBatch> = held.iter().map(|(batch, _)| batch).collect();
        let mut run = self.run()?;
        let fitting =
            |rows: usize, bytes: usize| (rows.saturating_mul(PIECE) / bytes.max(1)).clamp(1, MOST_ROWS as usize);
        let mut rows = fitting(places.len(), bytes);
        let mut rest = places.as_slice();
        while !rest.is_empty() {
            let (these, others) = rest.split_at(rows.min(rest.len()));
            let picked: Vec<_> = these.iter().map(|(_, batch, row)| (*batch as usize, *row as usize)).collect();
            let piece = interleave_record_batch(&batches, &picked)?;
            let bytes = bytes_of(&piece);
            rows = fitting(these.len(), bytes);
            if bytes <= SPREAD * PIECE || these.len() == 1 {
                run.write(&piece)?;
                self.count(these.len());
                rest = others;
            }
        }
        drop((held, places));
        self.keep(run, 0)
    }

    fn run(&self) -> Result<StreamWriter<BufWriter<File>>, ArrowError> {
        let file = tempfile::tempfile_in(&self.folder)?;
        StreamWriter::try_new(BufWriter::with_capacity(PIECE, file), &self.sorted.schema)
    }

    fn keep(&mut self, run: StreamWriter<BufWriter<File>>, level: usize) -> Result<(), ArrowError> {
        let mut run = run;
        run.finish()?;
        let mut file = run.into_inner()?;
        file.flush()?;
        let file = file.into_inner().map_err(|error| ArrowError::from(error.into_error()))?;
        let levels = &mut self.sorted.levels;
        levels.resize_with(levels.len().max(level + 1), Vec::new);
        levels[level].push(Arc::new(file));
        if levels[level].len() < self.most_runs {
            return Ok(());
        }
        let runs = std::mem::take(&mut levels[level]);
        let mut merged = self.run()?;
        for batch in Merge::new(&runs, self.sorted.keys.clone())? {
            merged.write(&batch?)?;
        }
        drop(runs);
        self.keep(merged, level + 1)
    }
}

/// The first bytes of a key as a number with the same order, apart from ties.
fn begin(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(bytes)
}

impl Sorted {
    /// Batches of these columns, in order. They are preceded by the dictionaries of the inputs, without rows, since the
    /// order of labels may be meaningful.
    pub fn batches<'a>(
        &'a self,
        inputs: &'a Inputs,
        columns: &'a [usize],
    ) -> Box<dyn Iterator<Item = Result<RecordBatch, String>> + 'a> {
        let labels = (!self.dictionaries.is_empty()).then(|| inputs.batches(&self.dictionaries));
        let labels = labels.into_iter().flatten().map(move |batch| {
            let batch = batch?;
            let arrays = columns.iter().map(|column| match self.dictionaries.binary_search(column) {
                Ok(place) => batch.column(place).slice(0, 0),
                Err(_) => new_empty_array(self.schema.field(*column).data_type()),
            });
            let arrays: Vec<ArrayRef> = arrays.collect();
            let fields = arrays
                .iter()
                .zip(columns)
                .map(|(array, column)| Field::new(self.schema.field(*column).name(), array.data_type().clone(), true));
            RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), arrays).map_err(wrong)
        });
        let runs: Vec<Arc<File>> = self.levels.iter().rev().flatten().cloned().collect();
        let (merge, failed) = match Merge::new(&runs, self.keys.clone()) {
            Ok(merge) => (Some(merge), None),
            Err(error) => (None, Some(Err(wrong(error)))),
        };
        let rows = merge.into_iter().flatten().map(|batch| batch?.project(columns)).map(|batch| batch.map_err(wrong));
        Box::new(labels.chain(rows).chain(failed))
    }
}

/// Reads a file from the beginning, independently of other readers.
struct Run {
    file: Arc<File>,
    place: u64,
}

impl Read for Run {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read_at(out, self.place)?;
        self.place += count as u64;
        Ok(count)
    }
}

/// The current position in a run being merged.
struct Head {
    batches: StreamReader<BufReader<Run>>,
    batch: RecordBatch,
    keys: Rows,
    row: usize,
}

/// Merges runs; of equal rows, that of the first run comes first.
struct Merge {
    keys: Arc<Keys>,
    heads: Vec<Head>,
    /// Unfinished runs, as a heap with the least row first.
    heap: Vec<usize>,
}

impl Merge {
    fn new(runs: &[Arc<File>], keys: Arc<Keys>) -> Result<Self, ArrowError> {
        let mut heads = Vec::with_capacity(runs.len());
        for file in runs {
            let run = BufReader::with_capacity(PIECE / 8, Run { file: file.clone(), place: 0 });
            let mut batches = StreamReader::try_new(run, None)?;
            if let Some(batch) = batches.next().transpose()? {
                let rows = keys.of(&batch)?;
                heads.push(Head { batches, batch, keys: rows, row: 0 });
            }
        }
        let mut merge = Self { keys, heap: (0..heads.len()).collect(), heads };
        let mut heap = std::mem::take(&mut merge.heap);
        heap.sort_by(|a, b| merge.order(*a, *b));
        merge.heap = heap;
        Ok(merge)
    }

    fn order(&self, a: usize, b: usize) -> Ordering {
        let key = |at: usize| self.heads[at].keys.row(self.heads[at].row);
        key(a).cmp(&key(b)).then(a.cmp(&b))
    }

    /// Restores the heap after the first run's row has changed.
    fn sift(&mut self) {
        let mut at = 0;
        loop {
            let below = [2 * at + 1, 2 * at + 2].into_iter().filter(|below| *below < self.heap.len());
            let Some(least) = below.min_by(|a, b| self.order(self.heap[*a], self.heap[*b])) else { return };
            if self.order(self.heap[at], self.heap[least]).is_lt() {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }

    /// Advances the first run of the heap to its next batch, or removes it.
    fn advance(&mut self) -> Result<(), ArrowError> {
        let head = &mut self.heads[self.heap[0]];
        match head.batches.next().transpose()? {
            Some(batch) => (head.keys, head.row, head.batch) = (self.keys.of(&batch)?, 0, batch),
            None => {
                self.heap.swap_remove(0);
            }
        }
        self.sift();
        Ok(())
    }

    fn merged(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let mut picked = Vec::new();
        while let Some(first) = self.heap.first().copied() {
            let head = &mut self.heads[first];
            if self.heap.len() == 1 && picked.is_empty() {
                let rest = head.batch.slice(head.row, head.batch.num_rows() - head.row);
                self.advance()?;
                return Ok(Some(rest));
            }
            picked.push((first, head.row));
            head.row += 1;
            let is_over = head.row == head.batch.num_rows();
            if is_over || picked.len() == MOST_ROWS as usize {
                let batches: Vec<&RecordBatch> = self.heads.iter().map(|head| &head.batch).collect();
                let batch = interleave_record_batch(&batches, &picked)?;
                if is_over {
                    self.advance()?;
                } else {
                    self.sift();
                }
                return Ok(Some(batch));
            }
            self.sift();
        }
        Ok(None)
    }
}

impl Iterator for Merge {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let merged = self.merged().transpose();
        if matches!(merged, Some(Err(_))) {
            self.heap.clear();
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    use super::*;

    /// With so little memory, each batch is a run, and runs are merged three times.
    #[test]
    fn runs_of_runs_keep_the_order_of_equal_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.csv");
        let key = |row: usize| row * 7919 % 101;
        let lines: String = (0..1_200_000).map(|row| format!("{},{row}\n", key(row))).collect();
        std::fs::write(&path, format!("key,row\n{lines}")).unwrap();
        let inputs = Inputs::open(&[OsString::from(&path)], None, None, &[]).unwrap();
        let by = SortBy::new(&["key:desc".to_owned()], &inputs.fields).unwrap();
        let (done, interrupt) = (AtomicU64::new(0), Interrupt::new());
        let sorted = by.sort(&inputs, 1, folder.path(), &done, &interrupt).unwrap();
        assert_eq!(done.into_inner(), 1_200_000);
        assert!(sorted.levels.len() > 2, "{:?}", sorted.levels.iter().map(Vec::len).collect::<Vec<_>>());
        let mut found = Vec::new();
        for batch in sorted.batches(&inputs, &[1, 0]) {
            let batch = batch.unwrap();
            found.extend(batch.column(0).as_primitive::<Int64Type>().values().iter().map(|row| *row as usize));
        }
        let mut expected: Vec<usize> = (0..1_200_000).collect();
        expected.sort_by_key(|row| std::cmp::Reverse(key(*row)));
        assert!(found == expected);
        // Unnamed files.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
