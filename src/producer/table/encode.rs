//! Encodes the Arrow arrays of a column into stored chunks.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use parking_lot::Mutex;

use super::cells::{self, CellEncoding, Failure};
use super::planned::{ColumnDatasets, PlannedColumn, PlannedDataset, StandsFor};
use crate::codec::{Compression, Packer};
use crate::h5::ElementPayload;
use crate::table::NestedJson;

/// Bytes of variable-length strings to collect before they are written.
const STRINGS: usize = 4 << 20;

/// Memory that a label takes besides its text. The text is held twice: once to find its code, once in the order of
/// codes.
const LABEL: u64 = 96;

/// A piece of a dataset, ready to be written.
#[derive(Debug)]
pub struct EncodedPiece {
    /// Number of the dataset among those of the table.
    pub(super) part: usize,
    /// Position in the dataset of the first element.
    pub(super) start: u64,
    /// Number of elements, without the padding of the last chunk.
    pub(super) count: u64,
    /// The data of these elements.
    pub(super) content: PieceContent,
}

/// The data of a piece.
#[derive(Debug)]
pub(super) enum PieceContent {
    /// A chunk with all filters applied.
    Chunk(Vec<u8>),
    /// Strings of variable length.
    Strings(ElementPayload),
}

/// Consumer of pieces. An error that it returns ends the encoding.
pub type Take<'a> = dyn FnMut(EncodedPiece) -> Result<(), Failure> + 'a;

/// Encodes the values of a column.
#[derive(Debug)]
pub struct ColumnEncoder {
    state: State,
    shared: Arc<SharedPackers>,
    is_known: bool,
    rows: u64,
}

/// The result of encoding a column.
#[derive(Debug, Default)]
pub struct Encoded {
    /// Number of rows encoded.
    pub rows: u64,
    /// The labels, in the order of their codes; empty if the column has no codes.
    pub(super) labels: Vec<Box<str>>,
}

#[derive(Debug)]
enum State {
    Cells(Buffer, CellEncoding),
    Codes(Buffer, Labels),
    Strings { part: PlannedDataset, rows: u64, held: ElementPayload },
    Lists { offsets: Ends, mask: Option<Buffer>, items: Box<State> },
    Texts { offsets: Ends, mask: Option<Buffer>, bytes: Buffer, json: Option<NestedJson> },
}

/// Elements of a dataset that do not yet fill a chunk.
#[derive(Debug)]
struct Buffer {
    part: PlannedDataset,
    held: Vec<u8>,
    /// Position in the dataset of the first of these elements.
    start: u64,
}

/// End offsets of lists that do not yet fill a chunk.
#[derive(Debug)]
struct Ends {
    buffer: Buffer,
    end: u64,
}

/// The labels seen so far, and their codes.
#[derive(Debug)]
struct Labels {
    codes: HashMap<Box<str>, u64>,
    order: Vec<Box<str>>,
    shared: Arc<SharedPackers>,
    /// The dictionary met last, and the code of each of its labels.
    last: Option<(ArrayRef, Vec<Option<u64>>)>,
}

impl State {
    fn new(shape: &ColumnDatasets, shared: &Arc<SharedPackers>) -> Self {
        match shape {
            ColumnDatasets::Cells(part, cells) => Self::Cells(buffer(part), cells.clone()),
            ColumnDatasets::Codes(part, _) => Self::Codes(buffer(part), Labels::new(shared.clone())),
            ColumnDatasets::Strings(part) => Self::Strings {
                part: part.clone(),
                rows: part.resumed.as_ref().map_or(0, |resumed| resumed.start),
                held: strings(),
            },
            ColumnDatasets::Lists { offsets, mask, items } => Self::Lists {
                offsets: ends(offsets),
                mask: mask.as_ref().map(buffer),
                items: Box::new(Self::new(items, shared)),
            },
            ColumnDatasets::Texts { offsets, mask, bytes, stands_for } => Self::Texts {
                offsets: ends(offsets),
                mask: mask.as_ref().map(buffer),
                bytes: buffer(bytes),
                json: match stands_for {
                    Some(StandsFor::Json(json)) => Some(json.clone()),
                    _ => None,
                },
            },
        }
    }
}

fn ends(part: &PlannedDataset) -> Ends {
    let mut buffer = buffer(part);
    let end = part.resumed.as_ref().map_or(0, |resumed| resumed.last);
    if part.resumed.is_none() {
        buffer.held.extend_from_slice(&0u64.to_le_bytes());
    }
    Ends { buffer, end }
}

fn buffer(part: &PlannedDataset) -> Buffer {
    match &part.resumed {
        Some(resumed) => Buffer { part: part.clone(), held: resumed.held.clone(), start: resumed.start },
        None => Buffer { part: part.clone(), held: Vec::new(), start: 0 },
    }
}

fn strings() -> ElementPayload {
    ElementPayload { bytes: Vec::new(), heap: Vec::new(), strings: vec![0] }
}

impl ColumnEncoder {
    pub(super) fn new(planned: &PlannedColumn, shared: Arc<SharedPackers>) -> Self {
        let mut state = State::new(&planned.shape, &shared);
        if let (State::Codes(_, labels), Some(known)) = (&mut state, &planned.known) {
            labels.order = known.labels.clone();
            labels.codes = known.labels.iter().cloned().zip(0..).collect();
        }
        Self { state, shared, is_known: planned.is_known, rows: 0 }
    }

    /// Encodes more values, and hands out the chunks that they fill.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn push(&mut self, array: &ArrayRef, take: &mut Take<'_>) -> Result<(), Failure> {
        self.rows += array.len() as u64;
        let mut out = Out { shared: &self.shared, take, is_known: self.is_known };
        out.push(&mut self.state, array)
    }

    /// Hands out the remaining elements, and ends the encoding.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn finish(mut self, take: &mut Take<'_>) -> Result<Encoded, Failure> {
        let mut out = Out { shared: &self.shared, take, is_known: self.is_known };
        out.finish(&mut self.state)?;
        let labels = match self.state {
            State::Codes(_, labels) => labels.order,
            _ => Vec::new(),
        };
        Ok(Encoded { rows: self.rows, labels })
    }
}

/// Hands out pieces to their consumer.
struct Out<'a, 't> {
    shared: &'a SharedPackers,
    take: &'a mut Take<'t>,
    is_known: bool,
}

impl Out<'_, '_> {
    fn push(&mut self, state: &mut State, array: &ArrayRef) -> Result<(), Failure> {
        match state {
            State::Cells(buffer, cells) => {
                let array = cells::normal(array)?;
                let fill = buffer.part.fill().map(<[u8]>::to_vec);
                // Chunk by chunk, since elements of fixed width may be far longer than their texts.
                let (width, chunk) = (buffer.part.width.max(1), buffer.part.chunk.max(1) as usize);
                let mut start = 0;
                while start < array.len() {
                    let rows = (chunk - (buffer.held.len() / width) % chunk).min(array.len() - start);
                    buffer.held.reserve_exact(rows * width);
                    cells::append(cells, &array.slice(start, rows), fill.as_deref(), self.is_known, &mut buffer.held)?;
                    self.flush(buffer)?;
                    start += rows;
                }
                Ok(())
            }
            State::Codes(buffer, labels) => {
                labels.append(array, &buffer.part, &mut buffer.held)?;
                self.flush(buffer)
            }
            State::Strings { part, rows, held } => {
                let array = cells::normal(array)?;
                let texts = array.as_string_opt::<i64>().ok_or_else(|| Failure::Wrong("no text".into()))?;
                cells::no_nul(texts)?;
                let fill = match &part.fill {
                    crate::h5::element::FillSetting::Text(text) => text.clone(),
                    _ => String::new(),
                };
                for text in texts {
                    held.bytes.extend_from_slice(&(held.heap.len() as u64).to_ne_bytes());
                    held.heap.extend_from_slice(text.unwrap_or(&fill).as_bytes());
                    held.heap.push(0);
                    if held.heap.len() + held.bytes.len() > STRINGS {
                        self.strings(part.number, rows, held)?;
                    }
                }
                Ok(())
            }
            State::Lists { offsets, mask, items } => {
                let array = match array.as_fixed_size_list_opt() {
                    // Fixed-size lists with null items become lists of any length.
                    Some(list) => {
                        let item = arrow_schema::Field::new_list_field(list.value_type(), true);
                        let to = arrow_schema::DataType::LargeList(Arc::new(item));
                        arrow_cast::cast(array, &to).map_err(|error| Failure::Wrong(error.to_string()))?
                    }
                    None => cells::normal(array)?,
                };
                let (lengths, values) = cells::lists(&array)?;
                self.ends(offsets, &lengths)?;
                self.mask(mask.as_mut(), &array)?;
                self.push(items, &values)
            }
            State::Texts { offsets, mask, bytes, json } => {
                let array = match json {
                    Some(json) => Arc::new(json.texts(array).map_err(|error| Failure::Wrong(error.to_string()))?),
                    None => cells::normal(array)?,
                };
                let array = match array.data_type() {
                    arrow_schema::DataType::LargeBinary => array,
                    _ => arrow_cast::cast(&array, &arrow_schema::DataType::LargeBinary)
                        .map_err(|error| Failure::Wrong(error.to_string()))?,
                };
                let texts = array.as_binary_opt::<i64>().ok_or_else(|| Failure::Wrong("no bytes".into()))?;
                let lengths: Vec<u64> = texts.iter().map(|text| text.map_or(0, |text| text.len() as u64)).collect();
                self.ends(offsets, &lengths)?;
                self.mask(mask.as_mut(), &array)?;
                for text in texts.iter().flatten() {
                    bytes.held.extend_from_slice(text);
                    // A single text may be long, so full chunks are handed out before the last text.
                    if bytes.held.len() as u64 >= 2 * bytes.part.chunk {
                        self.flush(bytes)?;
                    }
                }
                self.flush(bytes)
            }
        }
    }

    fn ends(&mut self, ends: &mut Ends, lengths: &[u64]) -> Result<(), Failure> {
        for length in lengths {
            // Offsets of appended lists continue from the last one in the file.
            ends.end = ends.end.checked_add(*length).ok_or_else(|| Failure::Wrong("lists end past 2^64".into()))?;
            ends.buffer.held.extend_from_slice(&ends.end.to_le_bytes());
        }
        self.flush(&mut ends.buffer)
    }

    fn mask(&mut self, mask: Option<&mut Buffer>, array: &ArrayRef) -> Result<(), Failure> {
        match (mask, array.null_count()) {
            (None, 0) => Ok(()),
            (None, _) => Err(Failure::Wrong("a list is missing where none may be".into())),
            (Some(mask), _) => {
                mask.held.extend((0..array.len()).map(|row| u8::from(array.is_valid(row))));
                self.flush(mask)
            }
        }
    }

    /// Hands out the chunks that are full.
    fn flush(&mut self, buffer: &mut Buffer) -> Result<(), Failure> {
        let bytes = buffer.part.chunk as usize * buffer.part.width;
        let whole = buffer.held.len() / bytes.max(1) * bytes;
        for chunk in buffer.held.get(..whole).unwrap_or_default().chunks_exact(bytes.max(1)) {
            let content = self.shared.pack(&buffer.part, chunk)?;
            let (part, start, count) = (buffer.part.number, buffer.start, buffer.part.chunk);
            (self.take)(EncodedPiece { part, start, count, content })?;
            buffer.start += count;
        }
        buffer.held.drain(..whole);
        Ok(())
    }

    fn strings(&mut self, part: usize, rows: &mut u64, held: &mut ElementPayload) -> Result<(), Failure> {
        let count = held.bytes.len() as u64 / 8;
        if count == 0 {
            return Ok(());
        }
        let content = PieceContent::Strings(std::mem::replace(held, strings()));
        (self.take)(EncodedPiece { part, start: *rows, count, content })?;
        *rows += count;
        Ok(())
    }

    fn finish(&mut self, state: &mut State) -> Result<(), Failure> {
        match state {
            State::Cells(buffer, _) | State::Codes(buffer, _) => self.last(buffer),
            State::Strings { part, rows, held } => self.strings(part.number, rows, held),
            State::Lists { offsets, mask, items } => {
                self.last(&mut offsets.buffer)?;
                mask.as_mut().map_or(Ok(()), |mask| self.last(mask))?;
                self.finish(items)
            }
            State::Texts { offsets, mask, bytes, .. } => {
                self.last(&mut offsets.buffer)?;
                mask.as_mut().map_or(Ok(()), |mask| self.last(mask))?;
                self.last(bytes)
            }
        }
    }

    /// Hands out the last chunk, padded with the fill value.
    fn last(&mut self, buffer: &mut Buffer) -> Result<(), Failure> {
        let (part, width) = (&buffer.part, buffer.part.width.max(1));
        let count = (buffer.held.len() / width) as u64;
        if count == 0 {
            return Ok(());
        }
        let fill = part.fill().map_or(vec![0; width], <[u8]>::to_vec);
        for _ in count..part.chunk {
            buffer.held.extend_from_slice(&fill);
        }
        let content = self.shared.pack(part, &buffer.held)?;
        (self.take)(EncodedPiece { part: part.number, start: buffer.start, count, content })
    }
}

/// State that the encoders of all columns share.
#[derive(Debug)]
pub(super) struct SharedPackers {
    /// Idle compressors, each of which takes about a megabyte.
    packers: Mutex<Vec<(Compression, Packer)>>,
    /// Bytes of memory that labels may still take.
    room: AtomicU64,
}

impl SharedPackers {
    pub fn new(room: u64) -> Self {
        Self { packers: Mutex::default(), room: AtomicU64::new(room) }
    }

    fn pack(&self, part: &PlannedDataset, chunk: &[u8]) -> Result<PieceContent, Failure> {
        let known = {
            let mut packers = self.packers.lock();
            let known = packers.iter().position(|(compression, _)| *compression == part.compression);
            known.map(|known| packers.swap_remove(known).1)
        };
        let mut packer = known.unwrap_or_else(|| Packer::new(part.compression));
        let packed = packer.pack(chunk, part.width, part.shuffles);
        self.packers.lock().push((part.compression, packer));
        packed.map(PieceContent::Chunk).map_err(|error| Failure::Wrong(error.to_string()))
    }
}

impl Labels {
    fn new(shared: Arc<SharedPackers>) -> Self {
        Self { codes: HashMap::new(), order: Vec::new(), shared, last: None }
    }

    /// Appends the codes of labels, which come as a dictionary or as texts.
    fn append(&mut self, array: &ArrayRef, part: &PlannedDataset, out: &mut Vec<u8>) -> Result<(), Failure> {
        let width = part.width;
        let fill = part.fill().unwrap_or_default();
        let mut put = |code: Option<u64>| match code {
            Some(code) => out.extend_from_slice(code.to_le_bytes().get(..width).unwrap_or_default()),
            None => out.extend_from_slice(fill),
        };
        let most = if matches!(part.element, crate::h5::element::ElementType::Signed(_)) {
            (1u64 << (width * 8 - 1)) - 1
        } else {
            // The greatest code stands for a missing label.
            u64::MAX.unbounded_shr(64 - width as u32 * 8) - 1
        };
        let Some(dictionary) = array.as_any_dictionary_opt() else {
            let array = cells::normal(array)?;
            let texts = array.as_string_opt::<i64>().ok_or_else(|| Failure::Wrong("no text".into()))?;
            for text in texts {
                put(text.map(|text| self.code(text, most)).transpose()?);
            }
            return Ok(());
        };
        let is_last = self.last.as_ref().is_some_and(|(values, _)| Arc::ptr_eq(values, dictionary.values()));
        if !is_last {
            let values = cells::normal(dictionary.values())?;
            let texts = values.as_string_opt::<i64>();
            let texts = texts.ok_or_else(|| Failure::Wrong(format!("labels of {}", values.data_type())))?;
            let codes = texts.iter().map(|text| text.map(|text| self.code(text, most)).transpose());
            let codes = codes.collect::<Result<Vec<_>, _>>()?;
            self.last = Some((dictionary.values().clone(), codes));
        }
        let Some((_, codes)) = &self.last else { return Ok(()) };
        let keys = dictionary.keys();
        if codes.is_empty() {
            (0..keys.len()).for_each(|_| put(None));
            return Ok(());
        }
        let places = dictionary.normalized_keys();
        for (row, place) in places.into_iter().enumerate() {
            put(if keys.is_valid(row) { codes.get(place).copied().flatten() } else { None });
        }
        Ok(())
    }

    fn code(&mut self, label: &str, most: u64) -> Result<u64, Failure> {
        if let Some(code) = self.codes.get(label) {
            return Ok(*code);
        }
        let code = self.order.len() as u64;
        if code > most {
            return Err(Failure::Wrong(format!("it has more than {most} labels, more than its codes can tell apart")));
        }
        if label.contains('\0') {
            return Err(Failure::Wrong(
                "a label has a NUL, which HDF5's strings cannot hold: cast the column to text".into(),
            ));
        }
        let bytes = LABEL + 2 * label.len() as u64;
        if self.shared.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(bytes)).is_err()
        {
            let reason = format!(
                "it has more than {code} different texts, too many to hold as labels: leave out --categorical, or use \
                 a larger --memory"
            );
            return Err(Failure::Wrong(reason));
        }
        self.codes.insert(label.into(), code);
        self.order.push(label.into());
        Ok(code)
    }
}
