//! Finds the rows of a block that satisfy a predicate.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_schema::DataType;

use super::matches::{MatchedBytes, Matches};
use super::prune::Pruner;
use crate::learnt::pass::Measure;
use crate::query::bind::{BoundCondition, BoundPredicate, ConditionTree, PredicateColumn};
use crate::query::known::RowsVerdict;
use crate::query::known::answer::{IndexAnswer, UsedIndex};
use crate::query::ranges::{ValueTest, of_codes, of_labels};
use crate::source::Interrupt;
use crate::store::statistics::GRAIN;
use crate::store::{ARRAY_BYTES, Cache, Error, Rows, SharedRows, Store};
use crate::table::{IndexForm, nan_in};

/// Finds the rows of one table that satisfy one predicate, block by block, and counts the work.
#[derive(Debug)]
pub(in crate::query) struct Evaluation {
    pub path: String,
    pub rows: u64,
    bound: BoundPredicate,
    /// Matches of blocks in which some rows match and some do not, kept while there is room.
    matches: Cache<u64, Matches>,
    store: Arc<Store>,
    pub done: WorkDone,
}

/// Work done by an evaluation so far.
#[derive(Debug, Default)]
pub(in crate::query) struct WorkDone {
    /// Blocks without matching rows, decided without decoding.
    pub without: AtomicU64,
    /// Blocks of matching rows only, decided without decoding.
    pub within: AtomicU64,
    /// Blocks for which search indexes found the matching rows.
    pub answered: AtomicU64,
    /// Blocks whose values were decoded.
    pub decoded: AtomicU64,
    /// Bytes of the values decoded.
    pub bytes: AtomicU64,
}

impl Measure<u32> for Evaluation {
    fn measure(&self, blocks: Range<usize>, interrupt: &Interrupt) -> Result<Vec<u32>, Error> {
        let pruner = Pruner::new(&self.bound, interrupt);
        let tree = &self.bound.tree;
        let verdicts: Vec<_> = blocks.clone().map(|block| pruner.verdict(tree, &self.rows_of(block as u64))).collect();
        let mut counts = Vec::with_capacity(verdicts.len());
        while let Some(left @ [verdict, ..]) = verdicts.get(counts.len()..) {
            let block = (blocks.start + counts.len()) as u64;
            let rows = self.rows_of(block);
            // A block has at most 65,536 rows.
            let length = (rows.end - rows.start) as u32;
            match verdict {
                RowsVerdict::Nothing => {
                    self.done.without.fetch_add(1, Ordering::Relaxed);
                    counts.push(0);
                }
                RowsVerdict::Everything => {
                    self.done.within.fetch_add(1, Ordering::Relaxed);
                    counts.push(length);
                }
                RowsVerdict::Unknown => {
                    interrupt.check()?;
                    let unknown = left.iter().take_while(|next| **next == RowsVerdict::Unknown);
                    let last = self.rows_of(block + unknown.count() as u64 - 1);
                    let told = pruner.counts(tree, &(rows.start..last.end));
                    self.done.answered.fetch_add(told.len() as u64, Ordering::Relaxed);
                    if told.is_empty() {
                        counts.push(self.count(block, &rows, &pruner, interrupt)?);
                    }
                    counts.extend(told);
                }
            }
        }
        Ok(counts)
    }

    fn doing(&self) -> &'static str {
        "searching"
    }
}

impl Evaluation {
    /// Returns the number of columns that the conditions read.
    pub fn columns(&self) -> usize {
        self.bound.columns.len()
    }

    pub fn new(path: &str, rows: u64, bound: BoundPredicate, store: &Arc<Store>) -> Self {
        let matches = Cache::new(store.budget());
        Self { path: path.to_owned(), rows, bound, matches, store: store.clone(), done: WorkDone::default() }
    }

    /// Returns the store whose memory budget is used.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// See [`BoundPredicate::unverified`].
    pub fn unverified(&self) -> Vec<Arc<IndexForm>> {
        self.bound.unverified()
    }

    /// Returns the search indexes of the predicate's columns that decided a block.
    pub fn used(&self) -> Vec<UsedIndex> {
        let mut used = Vec::new();
        self.bound.tree.leaves(&mut |leaf| used.extend(leaf.answers.iter().filter_map(IndexAnswer::used)));
        used
    }

    /// Returns the rows of a block.
    pub fn rows_of(&self, block: u64) -> Range<u64> {
        let start = block.saturating_mul(GRAIN).min(self.rows);
        start..start.saturating_add(GRAIN).min(self.rows)
    }

    /// Finds the matching rows of a block.
    pub fn matches(&self, block: u64, interrupt: &Interrupt) -> Result<Arc<Matches>, Error> {
        if let Some(known) = self.matches.get(&block) {
            return Ok(known);
        }
        let found = self.look(&self.rows_of(block), &Pruner::new(&self.bound, interrupt), interrupt)?;
        Ok(self.hold(block, found))
    }

    /// Counts the matching rows in a block; keeps them if some rows match and some do not.
    fn count(&self, block: u64, rows: &Range<u64>, pruner: &Pruner, interrupt: &Interrupt) -> Result<u32, Error> {
        let found = self.look(rows, pruner, interrupt)?;
        // A block has at most 65,536 rows.
        let count = found.bits.count_set_bits() as u32;
        if count > 0 && u64::from(count) < rows.end - rows.start {
            self.hold(block, found);
        }
        Ok(count)
    }

    /// Keeps the result for a block if there is room. Results of a search index are not kept, since the index gives
    /// them again at less cost.
    fn hold(&self, block: u64, mut found: Matches) -> Arc<Matches> {
        let bytes = found.bytes() + size_of::<u64>();
        found.held = if found.was_decoded { self.store.budget().try_reserve(bytes as u64) } else { None };
        let found = Arc::new(found);
        if found.held.is_some() {
            self.matches.insert(block, found.clone());
        }
        found
    }

    /// Returns the stored values of matching rows of a block in the column `rows`; `places` counts from the first
    /// match. `None`: not kept.
    pub fn values(&self, matches: &Matches, rows: &dyn Rows, places: Range<usize>) -> Option<Buffer> {
        let mut columns = self.bound.columns.iter();
        let column = columns.position(|column| std::ptr::addr_eq(Arc::as_ptr(&column.rows), rows))?;
        matches.values.iter().find(|values| values.column == column)?.at(places)
    }

    /// Finds the matching rows in a range, by their values or by search indexes.
    fn look(&self, rows: &Range<u64>, pruner: &Pruner, interrupt: &Interrupt) -> Result<Matches, Error> {
        interrupt.check()?;
        let look = Look {
            evaluation: self,
            pruner,
            interrupt,
            arrays: RefCell::default(),
            values: RefCell::default(),
            was_decoded: Cell::new(false),
        };
        match look.tree(&self.bound.tree, rows) {
            // More rows than the store gives at once are examined in halves.
            Err(Error::TooLarge { .. }) if rows.end - rows.start > 1 => {
                let middle = rows.start + (rows.end - rows.start) / 2;
                let first = self.look(&(rows.start..middle), pruner, interrupt)?;
                let second = self.look(&(middle..rows.end), pruner, interrupt)?;
                Ok(Matches {
                    bits: first.bits.iter().chain(second.bits.iter()).collect(),
                    values: Vec::new(),
                    was_decoded: first.was_decoded || second.was_decoded,
                    held: None,
                })
            }
            Ok(bits) => {
                let was_decoded = look.was_decoded.get();
                let counter = if was_decoded { &self.done.decoded } else { &self.done.answered };
                counter.fetch_add(1, Ordering::Relaxed);
                let values = look.values.into_inner().into_iter().filter_map(|values| values.of(&bits)).collect();
                Ok(Matches { bits, values, was_decoded, held: None })
            }
            Err(error) => Err(error),
        }
    }
}

/// State of examining one range of rows.
struct Look<'a> {
    evaluation: &'a Evaluation,
    pruner: &'a Pruner,
    interrupt: &'a Interrupt,
    /// Decoded columns with several conditions, by position.
    arrays: RefCell<HashMap<usize, ArrayRef>>,
    /// Stored values of rows that satisfy a condition.
    values: RefCell<Vec<MatchedBytes>>,
    was_decoded: Cell<bool>,
}

/// Returns which values are stored as NaN. `None`: none is.
fn nan(array: &ArrayRef) -> Option<BooleanBuffer> {
    match array.as_any_dictionary_opt() {
        Some(dictionary) => of_labels(array.as_ref(), &nan_in(dictionary.values().as_ref())?),
        None => nan_in(array.as_ref()),
    }
}

impl Look<'_> {
    fn tree(&self, tree: &ConditionTree, rows: &Range<u64>) -> Result<BooleanBuffer, Error> {
        // A block has at most 65,536 rows.
        let length = (rows.end - rows.start) as usize;
        match self.pruner.verdict(tree, rows) {
            RowsVerdict::Nothing => return Ok(BooleanBuffer::new_unset(length)),
            RowsVerdict::Everything => return Ok(BooleanBuffer::new_set(length)),
            RowsVerdict::Unknown => {}
        }
        match tree {
            ConditionTree::Leaf(leaf) => self.leaf(leaf, rows),
            ConditionTree::All(parts) | ConditionTree::Any(parts) if parts.len() == 1 => {
                parts.first().map_or_else(|| Ok(BooleanBuffer::new_unset(length)), |part| self.tree(part, rows))
            }
            ConditionTree::All(parts) => {
                let mut all = BooleanBuffer::new_set(length);
                for part in parts {
                    all = &all & &self.tree(part, rows)?;
                    if all.count_set_bits() == 0 {
                        break;
                    }
                }
                Ok(all)
            }
            ConditionTree::Any(parts) => {
                let mut any = BooleanBuffer::new_unset(length);
                for part in parts {
                    any = &any | &self.tree(part, rows)?;
                    if any.count_set_bits() == length {
                        break;
                    }
                }
                Ok(any)
            }
        }
    }

    fn leaf(&self, leaf: &BoundCondition, rows: &Range<u64>) -> Result<BooleanBuffer, Error> {
        if let Some(bits) = self.pruner.bits(leaf, rows) {
            return Ok(bits);
        }
        if let Some(bits) = self.stored(leaf, rows)? {
            return Ok(bits);
        }
        if let Some(SharedRows { values, keys }) = self.shared(leaf.column, rows)? {
            let matching = self.test(leaf, &values)?;
            return Ok(BooleanBuffer::collect_bool(keys.len(), |row| matching.value(keys[row] as usize)));
        }
        self.test(leaf, &self.array(leaf.column, rows)?)
    }

    /// Returns which values satisfy a condition.
    fn test(&self, leaf: &BoundCondition, array: &ArrayRef) -> Result<BooleanBuffer, Error> {
        let has_missing_labels = array.as_any_dictionary_opt().is_some_and(|array| array.values().null_count() > 0);
        // An array of type Null has no bitmap.
        let is_logical = has_missing_labels || array.data_type().is_null();
        let nulls = if is_logical { array.logical_nulls() } else { array.nulls().cloned() };
        let valid = nulls.map(|nulls| nulls.inner().clone());
        let (ranges, negated) = match &leaf.test {
            ValueTest::Null => return Ok(valid.map_or_else(|| BooleanBuffer::new_unset(array.len()), |valid| !&valid)),
            ValueTest::Valid => return Ok(valid.unwrap_or_else(|| BooleanBuffer::new_set(array.len()))),
            ValueTest::Nan => return Ok(nan(array).unwrap_or_else(|| BooleanBuffer::new_unset(array.len()))),
            ValueTest::NotNan => {
                let valid = valid.unwrap_or_else(|| BooleanBuffer::new_set(array.len()));
                return Ok(nan(array).map_or(valid.clone(), |nan| &valid & &!&nan));
            }
            ValueTest::Compare { ranges, negated } => (ranges, *negated),
        };
        let matching = match array.as_any_dictionary_opt() {
            Some(dictionary) => {
                leaf.matching(ranges, dictionary.values()).and_then(|matching| of_labels(array.as_ref(), &matching))
            }
            None => ranges.matching(array.as_ref()),
        };
        // Binding the predicate checked the kind of the column.
        let Some(matching) = matching else {
            return Err(Error::unsupported(
                &self.evaluation.path,
                format!("values of type {} came unexpectedly", array.data_type()),
            ));
        };
        let matching = if negated { !&matching } else { matching };
        Ok(match valid {
            Some(valid) => &matching & &valid,
            None => matching,
        })
    }

    /// As [`Look::leaf`], on borrowed decoded bytes: without a copy, and for categories without their labels. `None`:
    /// not possible here.
    fn stored(&self, leaf: &BoundCondition, rows: &Range<u64>) -> Result<Option<BooleanBuffer>, Error> {
        let ValueTest::Compare { ranges, negated } = &leaf.test else { return Ok(None) };
        let Some(source) = self.evaluation.bound.columns.get(leaf.column) else { return Ok(None) };
        let values = &source.rows;
        let is_labelled = matches!(values.data_type(), DataType::Dictionary(..));
        // Only one condition at a time holds the bytes. Waiting for more memory while holding some could deadlock.
        if source.conditions > 1 || !(is_labelled || values.data_type().is_numeric()) {
            return Ok(None);
        }
        let count = rows.end - rows.start;
        let Some(width) = values.stored_width() else { return Ok(None) };
        let (Some(offset), Some(length)) = (rows.start.checked_mul(width), count.checked_mul(width)) else {
            return Ok(None);
        };
        let Ok(length) = usize::try_from(length) else { return Ok(None) };
        let matching_labels = if is_labelled {
            let none = values.array(rows.start..rows.start, self.interrupt)?;
            let all = none.as_any_dictionary_opt().map(|none| none.values()).filter(|all| all.null_count() == 0);
            match all.and_then(|all| leaf.matching(ranges, all)) {
                Some(matching) => Some(matching),
                None => return Ok(None),
            }
        } else {
            None
        };
        // Stored bytes of enumerations are not codes of labels.
        let (Some(stored), Some(coded)) = (values.bytes(), values.coded()) else { return Ok(None) };
        let of_none = coded.values(Buffer::default());
        if of_none.is_none_or(|none| !none.data_type().is_numeric()) {
            return Ok(None);
        }
        let Some(lent) = stored.lend(offset, length, self.interrupt)? else { return Ok(None) };
        let Some(array) = coded.values(lent.clone().into()).filter(|array| array.len() as u64 == count) else {
            return Ok(None);
        };
        let (matching, valid) = match &matching_labels {
            Some(labels) => match of_codes(array.as_ref(), labels) {
                Some(found) => found,
                None => return Ok(None),
            },
            None => match ranges.matching(array.as_ref()) {
                Some(matching) => (matching, array.nulls().map(|nulls| nulls.inner().clone())),
                None => return Ok(None),
            },
        };
        self.evaluation.done.bytes.fetch_add(length as u64, Ordering::Relaxed);
        self.was_decoded.set(true);
        let matching = if *negated { !&matching } else { matching };
        let matching = match valid {
            Some(valid) => &matching & &valid,
            None => matching,
        };
        if matching_labels.is_none() {
            self.values.borrow_mut().extend(MatchedBytes::new(leaf.column, &matching, width, &lent));
        }
        Ok(Some(matching))
    }

    /// Returns the distinct values of rows that take too much memory as an array, if many rows share values.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if few rows share values: the caller must take fewer rows.
    fn shared(&self, column: usize, rows: &Range<u64>) -> Result<Option<SharedRows>, Error> {
        let Some(PredicateColumn { rows: values, .. }) = self.evaluation.bound.columns.get(column) else {
            return Ok(None);
        };
        let count = rows.end - rows.start;
        if count <= 1 || values.fitting(rows.clone(), ARRAY_BYTES, self.interrupt)?.end >= rows.end {
            return Ok(None);
        }
        self.was_decoded.set(true);
        let shared = values.shared(rows.clone(), self.interrupt)?;
        shared.filter(|shared| shared.keys.len() as u64 == count).map(Some).ok_or_else(|| Error::TooLarge {
            path: self.evaluation.path.clone(),
            what: format!("{count} rows"),
            bytes: ARRAY_BYTES.saturating_add(1),
            limit: ARRAY_BYTES,
            option: "bytes at once",
        })
    }

    fn array(&self, column: usize, rows: &Range<u64>) -> Result<ArrayRef, Error> {
        if let Some(known) = self.arrays.borrow().get(&column) {
            return Ok(known.clone());
        }
        let missing = || Error::unsupported(&self.evaluation.path, format!("rows {rows:?} of a column came short"));
        let PredicateColumn { rows: values, .. } = self.evaluation.bound.columns.get(column).ok_or_else(missing)?;
        let array = values.array(rows.clone(), self.interrupt)?;
        if array.len() as u64 != rows.end - rows.start {
            return Err(missing());
        }
        let bytes = match values.stored_width() {
            Some(width) => width.saturating_mul(array.len() as u64),
            None => array.get_buffer_memory_size() as u64,
        };
        self.evaluation.done.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.was_decoded.set(true);
        self.arrays.borrow_mut().insert(column, array.clone());
        Ok(array)
    }
}
