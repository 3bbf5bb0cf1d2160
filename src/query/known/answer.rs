//! The answer of a search index to a condition, if the index may be used ([`crate::indexes::Trust`]).
//!
//! The first block that asks reads the index's verdict and values. An unreadable index gives no answers.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, LargeStringArray, StructArray};
use arrow_buffer::BooleanBufferBuilder;
use arrow_buffer::{BooleanBuffer, Buffer};
use parking_lot::Mutex;
use serde::Serialize;

use super::{Ask, Known, RowsVerdict, of_summary, sorted};
use crate::indexes::bitmap::{self, BitmapValues};
use crate::indexes::{self, IndexFacts, Trust, bloom, canonical, minmax, order};
use crate::query::ranges::{ValueTest, of_labels};
use crate::source::Interrupt;
use crate::store::statistics::{GRAIN, Scalar, Summary};
use crate::store::{ARRAY_BYTES, Error, Nan, Rows, StoredDataset, fixed_width};
use crate::table::{IndexContent, IndexForm, ShownLabels};

/// Most bitmaps to combine for one block: more cost as much as reading the values.
const MOST_BITMAPS: usize = 64;

/// Most values or labels to examine for one condition.
const MOST_VALUES: u64 = 1 << 20;

/// Most values to look up in filters.
const MOST_ASKED: usize = 64;

/// The contribution of a search index to a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UsedIndex {
    /// HDF5 path of the index.
    pub path: String,
    /// Kind of the index.
    pub kind: &'static str,
    /// Name of the column that the index covers.
    pub column: String,
    /// Number of blocks of 65,536 rows for which it gave the answer: that all rows match, that none do, or which ones
    /// do.
    pub blocks: u64,
}

/// A search index and its answer to one condition.
#[derive(Debug)]
pub(in crate::query) struct IndexAnswer {
    form: Arc<IndexForm>,
    trust: Trust,
    /// The prepared answer. `None`: the index must not be used, or has no answer.
    says: OnceLock<Option<Says>>,
    /// A bit for each block, set if the index decided it.
    said: Mutex<Vec<u64>>,
    /// For chunks longer than a block whose filters were read: whether the filter lacks all values that could match.
    lacking: Mutex<HashMap<u64, bool>>,
}

#[derive(Debug)]
enum Says {
    /// The bounds of each chunk decide.
    Bounds,
    /// The rows of these bitmaps match; if `inverted`, all other rows.
    Bitmaps { positions: Vec<u64>, inverted: bool },
    /// Exactly these rows match, in ascending order.
    Rows(Vec<u64>),
    /// Every matching value has one of these pairs of hashes.
    Hashes(Vec<[u64; 2]>),
}

impl IndexAnswer {
    pub fn new(form: Arc<IndexForm>, trust: Trust) -> Self {
        Self { form, trust, says: OnceLock::new(), said: Mutex::default(), lacking: Mutex::default() }
    }

    /// Returns what the index did so far. `None`: it gave no answer.
    pub fn used(&self) -> Option<UsedIndex> {
        let blocks = self.said.lock().iter().map(|word| u64::from(word.count_ones())).sum();
        let (path, kind, column) = (self.form.path.clone(), self.form.kind.name(), self.form.column.to_string());
        (blocks > 0).then_some(UsedIndex { path, kind, column, blocks })
    }

    fn says(&self, ask: &Ask<'_>) -> Option<&Says> {
        if let Some(says) = self.says.get() {
            return says.as_ref();
        }
        let says = indexes::facts(&self.form, self.trust).map(|facts| prepare(&self.form, &facts, ask));
        match says.transpose() {
            Ok(says) => self.says.get_or_init(|| says.flatten()).as_ref(),
            // A later request may wait longer.
            Err(Error::Interrupted(_)) => None,
            Err(error) => {
                tracing::debug!("{} is not used: {error}", self.form.path);
                self.says.get_or_init(|| None).as_ref()
            }
        }
    }

    /// Returns `Nothing` if the filters of all chunks that hold the rows lack all values that could match, else
    /// `Unknown`.
    fn lacking(
        &self,
        hashes: &[[u64; 2]],
        may_hold: &dyn Fn(u64, [u64; 2]) -> Result<bool, Error>,
        rows: &Range<u64>,
    ) -> Result<RowsVerdict, Error> {
        // Long chunks are few enough to remember, and several blocks need each of them.
        let remembers = self.form.chunk > GRAIN;
        for chunk in rows.start / self.form.chunk..=(rows.end - 1) / self.form.chunk {
            let known = if remembers { self.lacking.lock().get(&chunk).copied() } else { None };
            let is_lacking = match known {
                Some(known) => known,
                None => {
                    let mut is_lacking = true;
                    for hashes in hashes {
                        is_lacking = is_lacking && !may_hold(chunk, *hashes)?;
                    }
                    is_lacking
                }
            };
            if remembers {
                self.lacking.lock().insert(chunk, is_lacking);
            }
            if !is_lacking {
                return Ok(RowsVerdict::Unknown);
            }
        }
        Ok(RowsVerdict::Nothing)
    }

    /// As [`Known::counts`], for a single bitmap.
    fn counted(&self, ask: &Ask<'_>) -> Option<Vec<u32>> {
        let rows = ask.rows;
        if rows.is_empty() || rows.end > self.form.rows() || !rows.start.is_multiple_of(GRAIN) {
            return None;
        }
        let (Some(Says::Bitmaps { positions, inverted }), IndexContent::Bitmap { bits, row_bytes, .. }) =
            (self.says(ask), &self.form.kind)
        else {
            return None;
        };
        let [position] = positions[..] else { return None };
        let run = bits.run_bytes().filter(|run| *run > 0)?;
        let to_next = run.saturating_mul(8) - rows.start % run.saturating_mul(8);
        let end = match rows.start.saturating_add(to_next) {
            next if next < rows.end => next / GRAIN * GRAIN,
            _ => rows.end,
        };
        let count = end.checked_sub(rows.start).filter(|count| *count > 0)?;
        let length = usize::try_from(count.div_ceil(8)).ok()?;
        let offset = byte_of(position, *row_bytes, rows.start)?;
        let lent = bits.lend_scanned(offset, length, ask.interrupt).ok()??;
        let blocks = (0..count).step_by(GRAIN as usize).zip(lent.chunks(GRAIN as usize / 8));
        let counts = blocks.map(|(first, bits)| {
            let block = GRAIN.min(count - first);
            self.note(&(rows.start + first..rows.start + first + block));
            let set = bitmap::count(bits, block as usize);
            (if *inverted { block - set } else { set }) as u32
        });
        Some(counts.collect())
    }

    fn note(&self, rows: &Range<u64>) {
        let block = rows.start / GRAIN;
        let (word, bit) = ((block / 64) as usize, block % 64);
        let mut said = self.said.lock();
        if said.len() <= word {
            said.resize(word + 1, 0);
        }
        said[word] |= 1 << bit;
    }
}

impl Known for IndexAnswer {
    fn verdict(&self, ask: &Ask<'_>) -> RowsVerdict {
        if ask.rows.is_empty() || ask.rows.end > self.form.rows() {
            return RowsVerdict::Unknown;
        }
        let verdict = match (self.says(ask), &self.form.kind) {
            (Some(Says::Bounds), IndexContent::MinMax { entries, .. }) => bounds(&self.form, entries.as_ref(), ask),
            (Some(Says::Bounds), IndexContent::Bounds { bounds, .. }) => of_runs(&self.form, bounds.as_ref(), ask),
            (Some(Says::Hashes(hashes)), IndexContent::Bloom { filters, filter_bytes, k, .. }) => self.lacking(
                hashes,
                &|chunk, hashes| may_hold(filters, chunk, *filter_bytes, *k, hashes, ask.interrupt),
                ask.rows,
            ),
            (Some(Says::Rows(found)), _) => Ok(match within(found, ask.rows).len() as u64 {
                0 => RowsVerdict::Nothing,
                all if all == ask.rows.end - ask.rows.start => RowsVerdict::Everything,
                _ => RowsVerdict::Unknown,
            }),
            (Some(Says::Bitmaps { positions, inverted }), _) if positions.is_empty() => {
                Ok(if *inverted { RowsVerdict::Everything } else { RowsVerdict::Nothing })
            }
            _ => Ok(RowsVerdict::Unknown),
        };
        let verdict = verdict.unwrap_or(RowsVerdict::Unknown);
        if verdict != RowsVerdict::Unknown {
            self.note(ask.rows);
        }
        verdict
    }

    fn bits(&self, ask: &Ask<'_>) -> Option<BooleanBuffer> {
        let rows = ask.rows;
        if rows.is_empty() || rows.end > self.form.rows() || !rows.start.is_multiple_of(8) {
            return None;
        }
        // A block has at most 65,536 rows.
        let length = (rows.end - rows.start) as usize;
        let says = self.says(ask);
        if let Some(Says::Rows(found)) = says {
            let mut bits = BooleanBufferBuilder::new(length);
            bits.append_n(length, false);
            within(found, rows).iter().for_each(|row| bits.set_bit((row - rows.start) as usize, true));
            self.note(rows);
            return Some(bits.finish());
        }
        let (Some(Says::Bitmaps { positions, inverted }), IndexContent::Bitmap { bits, row_bytes, .. }) =
            (says, &self.form.kind)
        else {
            return None;
        };
        let mut sum = vec![0_u8; length.div_ceil(8)];
        let mut one = Vec::new();
        for position in positions {
            let offset = byte_of(*position, *row_bytes, rows.start)?;
            if let Some(lent) = bits.lend_scanned(offset, sum.len(), ask.interrupt).ok()? {
                add(&mut sum, &lent);
            } else {
                one.resize(sum.len(), 0);
                bits.read_bytes(offset, &mut one, ask.interrupt).ok()?;
                add(&mut sum, &one);
            }
        }
        self.note(rows);
        let found = BooleanBuffer::new(Buffer::from_vec(sum), 0, length);
        Some(if *inverted { !&found } else { found })
    }

    /// Counts bits where they were decoded, for the whole blocks in one chunk of one bitmap.
    fn counts(&self, ask: &Ask<'_>) -> Vec<u32> {
        self.counted(ask).unwrap_or_default()
    }
}

/// Returns the offset of the byte with a row's bit, in bitmaps of `row_bytes` each.
fn byte_of(position: u64, row_bytes: u64, row: u64) -> Option<u64> {
    position.checked_mul(row_bytes)?.checked_add(row / 8)
}

/// Sets the bits of `sum` that are set in `more`.
fn add(sum: &mut [u8], more: &[u8]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum |= more);
}

/// Returns the rows in a range, out of ascending rows.
fn within<'a>(found: &'a [u64], rows: &Range<u64>) -> &'a [u64] {
    let first = found.partition_point(|row| *row < rows.start);
    let last = found.partition_point(|row| *row < rows.end);
    found.get(first..last).unwrap_or_default()
}

/// Prepares the answer of an index to a condition.
fn prepare(form: &IndexForm, facts: &IndexFacts, ask: &Ask<'_>) -> Result<Option<Says>, Error> {
    match &form.kind {
        // Bounds are of codes, but conditions are on labels.
        IndexContent::MinMax { .. } | IndexContent::Bounds { .. } => Ok(form.labels.is_none().then_some(Says::Bounds)),
        IndexContent::Bitmap { values, shown, .. } => {
            if values.len() > MOST_VALUES {
                return Ok(None);
            }
            if facts.exhaustive { all_bitmaps(shown.as_ref(), ask) } else { some_bitmaps(form, values.as_ref(), ask) }
        }
        IndexContent::Bloom { .. } => {
            let Some(asked) = asked(form, ask)?.filter(|asked| asked.len() <= MOST_ASKED) else { return Ok(None) };
            let hashes = asked.iter().flat_map(|bytes| facts.schemes.iter().map(|scheme| scheme.hashes(bytes)));
            Ok((!facts.schemes.is_empty()).then(|| Says::Hashes(hashes.collect())))
        }
        IndexContent::SortedRows { order, tails, .. } => {
            Ok(sorted::rows(form, order.as_ref(), *tails, ask)?.map(Says::Rows))
        }
        IndexContent::SortedValues { values, order, run, .. } => {
            let run = if facts.is_one_run { u64::MAX } else { *run };
            Ok(sorted::rows_of_values(form, order.as_ref(), values.as_ref(), run, ask)?.map(Says::Rows))
        }
    }
}

/// Answers by a bitmap that has every value of its column: tests the condition on these values.
fn all_bitmaps(shown: &dyn Rows, ask: &Ask<'_>) -> Result<Option<Says>, Error> {
    let values = shown.array(0..shown.len(), ask.interrupt)?;
    let nulls = values.logical_nulls();
    // NaN has no bitmap, and is not null.
    let with_nan = values.data_type().is_floating();
    let (holds, inverted) = match ask.test {
        _ if with_nan && !matches!(ask.test, ValueTest::Compare { negated: false, .. }) => return Ok(None),
        ValueTest::Nan | ValueTest::NotNan => return Ok(None),
        ValueTest::Valid => (BooleanBuffer::new_set(values.len()), false),
        ValueTest::Null => (BooleanBuffer::new_set(values.len()), true),
        ValueTest::Compare { ranges, negated } => {
            let matching = match values.as_any_dictionary_opt() {
                Some(dictionary) => {
                    ranges.matching(dictionary.values().as_ref()).and_then(|labels| of_labels(values.as_ref(), &labels))
                }
                None => ranges.matching(values.as_ref()),
            };
            let Some(matching) = matching else { return Ok(None) };
            (if *negated { !&matching } else { matching }, false)
        }
    };
    let valid = holds.set_indices().filter(|at| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*at)));
    let positions: Vec<u64> = valid.map(|at| at as u64).collect();
    Ok((positions.len() <= MOST_BITMAPS).then_some(Says::Bitmaps { positions, inverted }))
}

/// Answers by a bitmap of some values: it must have every value that satisfies the condition.
fn some_bitmaps(form: &IndexForm, values: &dyn Rows, ask: &Ask<'_>) -> Result<Option<Says>, Error> {
    let Some(asked) = asked(form, ask)?.filter(|asked| asked.len() <= MOST_BITMAPS) else { return Ok(None) };
    let mut known = BitmapValues::default();
    // A verified index has distinct values; in an unverified one, the first of equal values counts.
    known.extend(values.array(0..values.len(), ask.interrupt)?.as_ref()).ok();
    let positions: Option<Vec<u64>> = asked.iter().map(|bytes| known.position(bytes).map(|at| at as u64)).collect();
    Ok(positions.map(|positions| Says::Bitmaps { positions, inverted: false }))
}

/// Returns the canonical bytes of all values that satisfy the condition. `None`: they are not a few known ones.
fn asked(form: &IndexForm, ask: &Ask<'_>) -> Result<Option<Vec<Vec<u8>>>, Error> {
    let ValueTest::Compare { ranges, negated: false } = ask.test else { return Ok(None) };
    let data_type = form.values.data_type();
    let Some(points) = ranges.points() else { return Ok(None) };
    let of_code = |code: i128| canonical::of_scalar(&Scalar::of_integer(code)?, data_type);
    Ok(Some(match &form.labels {
        None => points.iter().filter_map(|point| canonical::of_scalar(point, data_type)).collect(),
        Some(ShownLabels::Categories(labels)) => {
            if labels.len() > MOST_VALUES {
                return Ok(None);
            }
            let labels = labels.array(0..labels.len(), ask.interrupt)?;
            let Some(matching) = ranges.matching(labels.as_ref()) else { return Ok(None) };
            let codes = matching.set_indices().filter(|code| labels.is_valid(*code));
            codes.filter_map(|code| of_code(code as i128)).collect()
        }
        Some(ShownLabels::Members(members)) => {
            let names = LargeStringArray::from_iter_values(members.iter().map(|(_, name)| name));
            let Some(matching) = ranges.matching(&names) else { return Ok(None) };
            // If a code has several names, the first one is shown.
            let named = matching.set_indices().filter_map(|at| {
                let (code, _) = members.get(at)?;
                (members.iter().position(|(other, _)| other == code) == Some(at)).then_some(*code)
            });
            // A code without a name is shown as a number in its usual notation; a code with a name never is.
            let unnamed = points.iter().filter_map(|point| {
                let Scalar::Text(text) = point else { return None };
                let text = std::str::from_utf8(text).ok()?;
                let code: i128 = text.parse().ok()?;
                (code.to_string() == text && members.iter().all(|(named, _)| *named != code)).then_some(code)
            });
            named.chain(unnamed).filter_map(of_code).collect()
        }
    }))
}

/// Returns the verdict by the bounds of the chunks that hold the rows.
fn bounds(form: &IndexForm, entries: &dyn Rows, ask: &Ask<'_>) -> Result<RowsVerdict, Error> {
    let chunks = ask.rows.start / form.chunk..(ask.rows.end - 1) / form.chunk + 1;
    let array = entries.array(chunks, ask.interrupt)?;
    let Some(array) = array.as_struct_opt() else { return Ok(RowsVerdict::Unknown) };
    let mut all = None;
    for at in 0..array.len() {
        let said = summary(form, array, at).map_or(RowsVerdict::Unknown, |summary| of_summary(ask.test, &summary));
        if said == RowsVerdict::Unknown || all.is_some_and(|all| all != said) {
            return Ok(RowsVerdict::Unknown);
        }
        all = Some(said);
    }
    Ok(all.unwrap_or(RowsVerdict::Unknown))
}

/// Returns the verdict by the bounds of runs; bounds include the stored values of nulls.
fn of_runs(form: &IndexForm, bounds: &dyn Rows, ask: &Ask<'_>) -> Result<RowsVerdict, Error> {
    let runs = ask.rows.start / form.chunk..(ask.rows.end - 1) / form.chunk + 1;
    let width = fixed_width(bounds.data_type()).max(form.values.stored_width().unwrap_or(0));
    let bytes = (runs.end - runs.start).saturating_mul(2).saturating_mul(width);
    if runs.end > bounds.len() / 2 || bytes > ARRAY_BYTES || !matches!(ask.test, ValueTest::Compare { .. }) {
        return Ok(RowsVerdict::Unknown);
    }
    let array = order::present(&bounds.array(2 * runs.start..2 * runs.end, ask.interrupt)?);
    let mut all = None;
    for at in (0..array.len()).step_by(2) {
        let (min, max) = (minmax::stored(&array, at), minmax::stored(&array, at + 1));
        // If the greatest value is NaN, the greatest number is unknown.
        let nans = if max.is_none() { form.chunk.min(1 + u64::from(min.is_none()) * form.chunk) } else { 0 };
        let max = max.or(Some(Scalar::Float(f64::INFINITY)));
        let said = of_summary(ask.test, &Summary { rows: form.chunk, nulls: 0, nans, min, max });
        if said == RowsVerdict::Unknown || all.is_some_and(|all| all != said) {
            return Ok(RowsVerdict::Unknown);
        }
        all = Some(said);
    }
    // A null satisfies no comparison; bounds cover NaN.
    let is_told = !form.shown.nullable() || form.shown.hints().nan == Nan::Missing { alone: true };
    Ok(all.filter(|all| *all == RowsVerdict::Nothing || is_told).unwrap_or(RowsVerdict::Unknown))
}

fn summary(form: &IndexForm, array: &StructArray, at: usize) -> Option<Summary> {
    let count = |name: &str| Some(array.column_by_name(name)?.as_primitive_opt::<UInt64Type>()?.value(at));
    let (nans, nulls, rows) = (count("nan_count")?, count("fill_count")?, count("n")?);
    // If NaN means missing, it is counted twice.
    let nans = if form.nan_is_missing { nans.checked_sub(nulls)? } else { nans };
    let has_values = rows.checked_sub(nulls)?.checked_sub(nans)? > 0;
    // Zero has two signs, and a bound may mean either.
    let [min, max] = ["min", "max"].map(|name| minmax::stored(array.column_by_name(name)?, at).filter(|_| has_values));
    Some(Summary { rows, nulls, nans, min, max })
}

/// Whether a filter may hold a value. Reads only the bits of that value, since a filter may be long.
fn may_hold(
    filters: &StoredDataset,
    chunk: u64,
    bytes: u64,
    k: u16,
    hashes: [u64; 2],
    interrupt: &Interrupt,
) -> Result<bool, Error> {
    for bit in bloom::positions(hashes, k, bytes.saturating_mul(8)) {
        let mut byte = [0];
        filters.read_bytes(chunk.saturating_mul(bytes).saturating_add(bit / 8), &mut byte, interrupt)?;
        if byte[0] >> (bit % 8) & 1 == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
