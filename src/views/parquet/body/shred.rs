//! Shreds rows into levels: finds the entries of a leaf in a page, and the values that belong there (the record
//! shredding of the Dremel paper, as described in parquet-format's `Encodings.md` and `README.md`).

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::bit_iterator::BitSliceIterator;
use arrow_buffer::{NullBuffer, OffsetBuffer};

use super::levels::Levels;
use super::plain::PageSelection;

use crate::views::Misfit;

/// One step from a column towards a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::views::parquet) struct ShredNode {
    /// Whether the schema declares the node OPTIONAL.
    pub nullable: bool,
    /// The kind of this step.
    pub step: ShredStep,
}

/// Kinds of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::views::parquet) enum ShredStep {
    /// A struct; the path continues in this field.
    Field(usize),
    /// Lists of this length.
    FixedList(usize),
    /// Lists of any length.
    List,
    /// The leaf's own values.
    Value,
}

/// The entries of a leaf in a page.
#[derive(Debug)]
pub(in crate::views::parquet) struct Shredded {
    /// The leaf's array.
    pub values: ArrayRef,
    /// Which values of that array belong to the page.
    pub selection: PageSelection,
    /// Repetition levels of the entries. `None`: nothing repeats.
    pub repetition: Option<Levels>,
    /// Definition levels of the entries. `None`: nothing can be null.
    pub definition: Option<Levels>,
    /// Number of entries: values, nulls and empty lists.
    pub entries: usize,
    /// Number of entries without a value.
    pub nulls: usize,
}

/// Most entries of a page: its header counts them in a signed 32-bit integer.
pub(in crate::views::parquet) const MOST_ENTRIES: usize = i32::MAX as usize;

/// Shreds `column` along `nodes`.
///
/// # Errors
/// A column that `nodes` do not describe, a null where the schema allows none, or too many entries.
pub(in crate::views::parquet) fn shred(nodes: &[ShredNode], column: &ArrayRef) -> Result<Shredded, Misfit> {
    let (layers, values) = layers(nodes, column)?;
    let repeats = nodes.iter().any(|node| matches!(node.step, ShredStep::FixedList(_) | ShredStep::List));
    let nullable = nodes.iter().filter(|node| node.nullable).count();
    if repeats || nullable > 1 {
        return walk(&layers, values, column.len(), repeats);
    }
    flat(&layers, values, nullable > 0)
}

/// Shreds a column without repetition and with at most one nullable layer, whose validity bitmap is the definition
/// levels.
fn flat(layers: &[Layer], values: ArrayRef, nullable: bool) -> Result<Shredded, Misfit> {
    let entries = values.len();
    if entries > MOST_ENTRIES {
        return Err(Misfit::Size(format!("{entries} rows are too many for a page")));
    }
    let nulls = layers.iter().find(|layer| layer.nullable).and_then(|layer| layer.nulls.clone());
    for layer in layers.iter().filter(|layer| !layer.nullable) {
        // Values under a null are arbitrary.
        let wrong = match (&layer.nulls, &nulls) {
            (Some(inner), Some(outer)) => !outer.contains(inner),
            (Some(_), None) => true,
            (None, _) => false,
        };
        if wrong {
            return Err(Misfit::Array(UNEXPECTED_NULL.into()));
        }
    }
    let count = nulls.as_ref().map_or(0, NullBuffer::null_count);
    Ok(Shredded {
        definition: nullable.then(|| Levels::of_nulls(nulls.as_ref(), entries)),
        selection: match nulls {
            Some(nulls) if count > 0 => PageSelection::Bits(nulls.inner().clone()),
            _ => PageSelection::All,
        },
        values,
        repetition: None,
        entries,
        nulls: count,
    })
}

const TOO_MANY: &str = "more entries than a page can have";
const UNEXPECTED_NULL: &str = "a null where the column can have none";

/// A node's nulls, and how its values contain those of the next node.
struct Layer {
    nullable: bool,
    nulls: Option<NullBuffer>,
    kind: Kind,
}

enum Kind {
    Field,
    /// Lists of `length` elements with `entries` entries each. `None`: the entries depend on the data.
    FixedList {
        length: usize,
        entries: Option<usize>,
    },
    /// Lists with `entries` entries per element. `None`: the entries depend on the data.
    List {
        offsets: OffsetBuffer<i64>,
        entries: Option<usize>,
    },
    Value,
}

/// Returns the arrays along `nodes`, and the leaf's own.
fn layers(nodes: &[ShredNode], column: &ArrayRef) -> Result<(Vec<Layer>, ArrayRef), Misfit> {
    let mut array = column.clone();
    let mut layers = Vec::with_capacity(nodes.len());
    for (depth, node) in nodes.iter().enumerate() {
        let other =
            || Misfit::Array(format!("an array of {} came where its column has another type", array.data_type()));
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let (kind, next) = match node.step {
            ShredStep::Field(field) => {
                let next = array.as_struct_opt().and_then(|array| array.columns().get(field)).ok_or_else(other)?;
                (Kind::Field, next.clone())
            }
            ShredStep::FixedList(length) => {
                let list = array.as_fixed_size_list_opt().ok_or_else(other)?;
                if usize::try_from(list.value_length()) != Ok(length) {
                    return Err(other());
                }
                let entries = entries_of_element(nodes, depth + 1);
                (Kind::FixedList { length, entries }, list.values().clone())
            }
            ShredStep::List => {
                let list = array.as_list_opt::<i64>().ok_or_else(other)?;
                let entries = entries_of_element(nodes, depth + 1);
                (Kind::List { offsets: list.offsets().clone(), entries }, list.values().clone())
            }
            ShredStep::Value => (Kind::Value, array.clone()),
        };
        layers.push(Layer { nullable: node.nullable, nulls, kind });
        array = next;
    }
    Ok((layers, array))
}

/// Returns the entries of one element of the layer at `depth`: the product of the lengths of arrays from there on.
/// `None`: they depend on the data. An array that is null as a whole has a single entry.
fn entries_of_element(nodes: &[ShredNode], depth: usize) -> Option<usize> {
    let mut entries = 1usize;
    let mut container = false;
    for node in nodes.iter().skip(depth) {
        match node.step {
            ShredStep::FixedList(length) => entries = entries.checked_mul(length)?,
            ShredStep::List => return None,
            ShredStep::Field(_) | ShredStep::Value => {}
        }
        container |= node.nullable && node.step != ShredStep::Value;
    }
    (entries == 1 || !container).then_some(entries)
}

/// Returns the repetition and definition levels of `rows` rows without nulls, with lists of fixed length.
///
/// # Errors
/// Too many entries.
pub(in crate::views::parquet) fn required_levels(
    nodes: &[ShredNode],
    rows: usize,
) -> Result<(Option<Levels>, Option<Levels>), Misfit> {
    if !nodes.iter().any(|node| matches!(node.step, ShredStep::FixedList(_))) {
        return Ok((None, None));
    }
    let layers = nodes.iter().enumerate().map(|(depth, node)| {
        let kind = match node.step {
            ShredStep::Field(_) => Kind::Field,
            ShredStep::FixedList(length) => Kind::FixedList { length, entries: entries_of_element(nodes, depth + 1) },
            ShredStep::List | ShredStep::Value => Kind::Value,
        };
        Layer { nullable: node.nullable, nulls: None, kind }
    });
    let layers: Vec<Layer> = layers.collect();
    let walk = Walk::over(&layers, rows, true)?;
    Ok((Some(Levels::of_each(walk.repetition)), Some(Levels::of_each(walk.definition))))
}

fn walk(layers: &[Layer], values: ArrayRef, rows: usize, repeats: bool) -> Result<Shredded, Misfit> {
    let walk = Walk::over(layers, rows, repeats)?;
    let entries = walk.definition.len();
    let valid: usize = walk.spans.iter().map(|(start, end)| end - start).sum();
    let all = walk.spans.as_slice() == [(0, values.len())];
    Ok(Shredded {
        selection: if all { PageSelection::All } else { PageSelection::Spans(walk.spans) },
        values,
        definition: Some(Levels::of_each(walk.definition)),
        repetition: repeats.then(|| Levels::of_each(walk.repetition)),
        entries,
        nulls: entries.saturating_sub(valid),
    })
}

struct Walk<'a> {
    layers: &'a [Layer],
    repeats: bool,
    definition: Vec<u8>,
    repetition: Vec<u8>,
    spans: Vec<(usize, usize)>,
}

impl<'a> Walk<'a> {
    fn over(layers: &'a [Layer], rows: usize, repeats: bool) -> Result<Self, Misfit> {
        let mut walk = Self { layers, repeats, definition: Vec::new(), repetition: Vec::new(), spans: Vec::new() };
        walk.elements(0, 0..rows, 0, 0)?;
        Ok(walk)
    }

    /// Adds the entries of elements at `depth`. `definition` is the definition level reached above, `repetition` the
    /// level at which they follow each other; the caller corrects the level of the first element of something larger.
    fn elements(&mut self, depth: usize, range: Range<usize>, definition: u8, repetition: u8) -> Result<(), Misfit> {
        let layer = self.layers.get(depth).ok_or_else(|| Misfit::Array("nothing below a list".into()))?;
        let present = definition + u8::from(layer.nullable);
        let Some(nulls) = &layer.nulls else {
            return self.present(depth, range, present, repetition);
        };
        if range.start > range.end || range.end > nulls.len() {
            return Err(Misfit::Array(format!("elements {range:?} of {}", nulls.len())));
        }
        let bits = nulls.inner();
        let mut at = range.start;
        let runs = BitSliceIterator::new(bits.values(), bits.offset() + range.start, range.len());
        let ends = std::iter::once((range.len(), range.len()));
        for (start, end) in runs.chain(ends) {
            let (start, end) = (range.start + start, range.start + end);
            if start > at {
                if !layer.nullable {
                    return Err(Misfit::Array(UNEXPECTED_NULL.into()));
                }
                self.push(start - at, definition, repetition)?;
            }
            if end > start {
                self.present(depth, start..end, present, repetition)?;
            }
            at = end;
        }
        Ok(())
    }

    /// Adds the entries of elements without nulls.
    fn present(&mut self, depth: usize, range: Range<usize>, definition: u8, repetition: u8) -> Result<(), Misfit> {
        let layer = self.layers.get(depth).ok_or_else(|| Misfit::Array("nothing below a list".into()))?;
        match &layer.kind {
            Kind::Value => {
                self.push(range.len(), definition, repetition)?;
                match self.spans.last_mut() {
                    Some((_, end)) if *end == range.start => *end = range.end,
                    _ if range.is_empty() => {}
                    _ => self.spans.push((range.start, range.end)),
                }
                Ok(())
            }
            Kind::Field => self.elements(depth + 1, range, definition, repetition),
            Kind::FixedList { length, entries } => {
                let lists = range.len();
                // If every list has equally many entries, add all at once.
                let step = if entries.is_some() { lists.max(1) } else { 1 };
                for start in range.step_by(step) {
                    let first = self.definition.len();
                    let elements = start.checked_mul(*length).zip((start + step.min(lists)).checked_mul(*length));
                    let (from, to) = elements.ok_or_else(|| Misfit::Size(TOO_MANY.into()))?;
                    self.elements(depth + 1, from..to, definition + 1, repetition + 1)?;
                    let stride = entries.unwrap_or(usize::MAX).saturating_mul(*length).max(1);
                    self.repetition.iter_mut().skip(first).step_by(stride).for_each(|level| *level = repetition);
                }
                Ok(())
            }
            Kind::List { offsets, entries } => {
                let offsets = offsets
                    .get(range.start..=range.end)
                    .ok_or_else(|| Misfit::Array("a list outside its array".into()))?;
                let mut at = 0;
                while let [start, end, ..] = offsets[at..] {
                    if start == end {
                        self.push(1, definition, repetition)?;
                        at += 1;
                        continue;
                    }
                    // Takes as many non-empty lists as possible at once, if the start of each is known.
                    let lists = match entries {
                        Some(_) => offsets[at..].windows(2).take_while(|pair| pair[0] < pair[1]).count(),
                        None => 1,
                    };
                    let (last, first) = (offsets[at + lists], self.definition.len());
                    self.elements(depth + 1, start as usize..last as usize, definition + 1, repetition + 1)?;
                    let entries = entries.unwrap_or(0);
                    for begin in &offsets[at..at + lists] {
                        // All these lists begin within the elements just added.
                        if let Some(level) = self.repetition.get_mut(first + (begin - start) as usize * entries) {
                            *level = repetition;
                        }
                    }
                    at += lists;
                }
                Ok(())
            }
        }
    }

    fn push(&mut self, count: usize, definition: u8, repetition: u8) -> Result<(), Misfit> {
        let entries = self.definition.len().checked_add(count).filter(|entries| *entries <= MOST_ENTRIES);
        let entries = entries.ok_or_else(|| Misfit::Size(TOO_MANY.into()))?;
        self.definition.resize(entries, definition);
        if self.repeats {
            self.repetition.resize(entries, repetition);
        }
        Ok(())
    }
}
