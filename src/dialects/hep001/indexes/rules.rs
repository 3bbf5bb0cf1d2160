//! Checks the rules of HEP001 §8 that a search index must keep to be used, as far as the catalogue alone can decide.

use std::sync::Arc;

use super::verified;
use crate::catalogue::{ByteOrder, Class, Dataset, Datatype, Elements, Group, Layout, Object, attribute, join};
use crate::dialects::attributes::{any, boolean, references, said, text, unsigned};
use crate::dialects::datasets;
use crate::dialects::hep001::columns::Candidate;
use crate::dialects::hep001::names::{ENTRY, GENERATION, ROWS, SOURCE_GENERATION, SOURCE_ROWS, VALUES};
use crate::dialects::hep001::parts::TableGroup;
use crate::dialects::hep001::rules as known;
use crate::store::decode::FillTest;
use crate::store::{self, DatasetRows, Rows};
use crate::table::{
    AbsenceReason, AbsentIndex, BloomScheme, CategoryRows, Column, IndexContent, IndexForm, Rule, ShownLabels, Table,
};

/// Ways to read the hashes of a Bloom filter of April, whose text on seeds is ambiguous.
const READINGS_OF_APRIL: [BloomScheme; 3] =
    [BloomScheme::LowHigh, BloomScheme::LowLow, BloomScheme::OneHash { seed: 0 }];

/// A search index under examination.
pub(super) struct CheckedIndex<'a> {
    /// HDF5 path of the index.
    pub path: &'a str,
    /// The dataset of the index.
    pub dataset: &'a Dataset,
    /// The group that holds it.
    pub group: &'a Group,
    /// HDF5 path of that group.
    pub group_path: &'a str,
    /// The column that the index covers, as stored.
    pub candidate: &'a Candidate<'a>,
    /// The column that the index covers, as shown.
    pub column: &'a Column,
    /// The table without its search indexes.
    pub table: &'a Table,
}

type Checked<T> = Result<T, AbsentIndex>;

/// Fails for breaking `rule` unless `holds`.
fn check(holds: bool, rule: &'static Rule, found: impl FnOnce() -> String) -> Checked<()> {
    if holds { Ok(()) } else { Err(AbsentIndex::new(rule, found())) }
}

impl CheckedIndex<'_> {
    /// Checks the rules in turn, and fails for the first that is broken.
    pub fn form(&self, parts: &TableGroup<'_>, kind: &str) -> Checked<IndexForm> {
        let is_july = self.tokens(parts)?;
        let (Some(dataset), Ok(shown)) = (self.candidate.dataset, &self.column.rows) else {
            return Err(AbsentIndex::new(&known::INDEX_COLUMN, "its column is no dataset, or unreadable"));
        };
        check(self.column.in_table, &known::INDEX_LENGTH, || format!("{} rows of {}", shown.len(), self.table.rows))?;
        check(is_ordered(&dataset.datatype), &known::INDEX_ORDER, || {
            format!("a column of {}", class_name(&dataset.datatype))
        })?;
        let rows = self.table.rows;
        let values = self.coded(parts, &self.column.path, dataset, rows, dataset)?;
        let chunk = self.chunk(dataset, kind, is_july)?;
        let chunks = rows.div_ceil(chunk);
        let kind = match kind {
            "CHUNK_MINMAX" => self.minmax(parts, dataset, chunks, is_july)?,
            "SORTED_ROWS" => self.sorted(parts, rows, is_july)?,
            "BITMAP" => self.bitmap(parts, dataset, rows, is_july)?,
            _ => self.bloom(parts, dataset, chunks, is_july)?,
        };
        Ok(IndexForm {
            path: self.path.to_owned(),
            objects: [self.dataset.id, dataset.id],
            file: parts.file.opening().clone(),
            column: self.column.name.clone(),
            is_part: false,
            shown: shown.clone(),
            learner: None,
            values,
            labels: self.labels(dataset)?,
            nan_is_missing: FillTest::new(&dataset.datatype, &parts.missing(dataset)).is_nan(),
            chunk,
            kind,
        })
    }

    /// Checks the tokens that tie an index of July to a state of the table. Returns whether the index follows July.
    fn tokens(&self, parts: &TableGroup<'_>) -> Checked<bool> {
        let (own, of_table) = (&self.dataset.attributes, &parts.group.attributes);
        let has = |attributes, name: &str| attribute(attributes, name).is_some();
        let is_july =
            has(of_table, ROWS) || has(of_table, GENERATION) || has(own, SOURCE_GENERATION) || has(own, SOURCE_ROWS);
        if !is_july {
            return Ok(false);
        }
        for (token, state) in [(SOURCE_GENERATION, GENERATION), (SOURCE_ROWS, ROWS)] {
            let (token_is, state_is) = (uint64(own, token), uint64(of_table, state));
            let rule = match (token_is, state_is) {
                (None, _) => &known::INDEX_TOKENS,
                (_, None) if state == GENERATION => &known::INDEX_GENERATION,
                _ => &known::INDEX_STALE,
            };
            check(token_is.is_some() && token_is == state_is, rule, || {
                format!("{token} is {}, {state} is {}", said(token_is), said(state_is))
            })
            .map_err(|absent| AbsentIndex { reason: AbsenceReason::Stale, ..absent })?;
        }
        Ok(true)
    }

    /// Opens rows of a dataset, those of an enumeration as codes, null where they equal the fill value of `like`.
    fn coded(
        &self,
        parts: &TableGroup<'_>,
        path: &str,
        dataset: &Dataset,
        rows: u64,
        like: &Dataset,
    ) -> Checked<Arc<dyn Rows>> {
        let coded = dataset.described(|coded| coded.datatype = dataset.datatype.coded());
        let opened = self.open(parts, path, &coded)?;
        let missing = FillTest::new(&coded.datatype, &parts.missing(like));
        Ok(Arc::new(DatasetRows::new(opened, rows, missing, Arc::default())))
    }

    fn open(&self, parts: &TableGroup<'_>, path: &str, dataset: &Dataset) -> Checked<Arc<store::StoredDataset>> {
        let opened = datasets::open(parts.file, path, &Arc::new(dataset.clone()));
        opened.map_err(|reason| AbsentIndex::new(&known::INDEX_OPENED, format!("{path}: {reason}")))
    }

    /// The labels of the column's codes: those of its categories, or the names of its enumeration. `None`: it has no
    /// codes.
    fn labels(&self, column: &Dataset) -> Checked<Option<ShownLabels>> {
        if let Some(set) = self.column.categories.and_then(|at| self.table.categories.get(at)) {
            let labels = set.labels.clone().map_err(|reason| AbsentIndex::new(&known::INDEX_LABELS, reason))?;
            return Ok(Some(ShownLabels::Categories(labels)));
        }
        Ok(match &column.datatype.class {
            Class::Enum { members, .. } if !column.datatype.is_boolean() => Some(ShownLabels::Members(
                members.iter().map(|member| (member.value, member.name.to_string())).collect(),
            )),
            _ => None,
        })
    }

    /// Number of rows in a chunk of the column. Fails if the index states another one, or must state it and does not.
    fn chunk(&self, column: &Dataset, kind: &str, is_july: bool) -> Checked<u64> {
        let by_chunk = matches!(kind, "CHUNK_MINMAX" | "CHUNK_BLOOM");
        let of_column = match &column.layout {
            Layout::Chunked { chunk, .. } => chunk.first().copied(),
            _ => None,
        };
        let whole = self.table.rows.max(1);
        let chunk = match attribute(&self.dataset.attributes, "chunk_shape").filter(|_| by_chunk) {
            None => {
                // The chunks of the column also tell it, so April lets an index of a chunked column leave it out.
                let is_known = is_july || !by_chunk || of_column.is_some();
                check(is_known, &known::INDEX_CHUNK, || "none".into())?;
                of_column.unwrap_or(whole)
            }
            Some(shape) => {
                let declared = one_unsigned(shape);
                let agrees = declared.is_some_and(|declared| of_column.is_none_or(|chunk| chunk == declared));
                check(agrees, &known::INDEX_CHUNK, || {
                    let own = of_column.map_or("no chunks".into(), |n| format!("chunks of {n}"));
                    format!("{}, the column has {own}", said(declared))
                })?;
                declared.unwrap_or(whole)
            }
        };
        check(chunk > 0, &known::INDEX_CHUNK, || "0".into())?;
        Ok(chunk)
    }

    /// Checks that the extent along the growing axis equals `expected`. In July it may be larger, as room to grow.
    fn extent(&self, axis: usize, rank: usize, expected: u64, is_july: bool, rule: &'static Rule) -> Checked<()> {
        let shape = &self.dataset.shape;
        let fits = shape.len() == rank
            && shape.get(axis).is_some_and(|extent| *extent == expected || is_july && *extent > expected);
        check(fits, rule, || format!("a shape of {shape:?}, {expected} expected"))
    }

    fn minmax(&self, parts: &TableGroup<'_>, column: &Dataset, chunks: u64, is_july: bool) -> Checked<IndexContent> {
        self.extent(0, 1, chunks, is_july, &known::MINMAX_SHAPE)?;
        let rule = &known::MINMAX_TYPE;
        let Class::Compound { fields } = &self.dataset.datatype.class else {
            return Err(AbsentIndex::new(rule, class_name(&self.dataset.datatype)));
        };
        let names: Vec<String> = fields.iter().map(|field| field.name.to_string()).collect();
        let fits = names == ENTRY
            && fields.iter().take(2).all(|field| field.datatype.has_values_of(&column.datatype))
            && fields.iter().skip(2).all(|field| is_unsigned(&field.datatype, &[8]));
        check(fits, rule, || {
            let found = fields.iter().map(|field| {
                format!("{}: {} of {} bytes", field.name, class_name(&field.datatype), field.datatype.size)
            });
            found.collect::<Vec<_>>().join(", ")
        })?;
        let coded = self.dataset.described(|coded| coded.datatype = self.dataset.datatype.coded());
        let entries = DatasetRows::plain(self.open(parts, self.path, &coded)?, chunks);
        Ok(IndexContent::MinMax { entries: Arc::new(entries), rules: &verified::MIN_MAX })
    }

    fn sorted(&self, parts: &TableGroup<'_>, rows: u64, is_july: bool) -> Checked<IndexContent> {
        self.extent(0, 1, rows, is_july, &known::SORTED_SHAPE)?;
        check(is_unsigned(&self.dataset.datatype, &[1, 2, 4, 8]), &known::SORTED_TYPE, || {
            class_name(&self.dataset.datatype).into()
        })?;
        let attributes = &self.dataset.attributes;
        let tails = ["fill_tail_length", "nan_tail_length"].map(|name| unsigned(attributes, name));
        let (Some(missing), Some(nans)) = (tails[0], tails[1]) else {
            return Err(AbsentIndex::new(&known::SORTED_TAILS, "not both, or no numbers"));
        };
        check(missing.checked_add(nans).is_some_and(|tails| tails <= rows), &known::SORTED_TAILS_LONG, || {
            format!("{missing} and {nans} of {rows} rows")
        })?;
        let ordered = boolean(attributes, "ordered");
        check(ordered == Some(true), &known::SORTED_ORDERED, || {
            ordered.map_or("no boolean", |_| "it is false").into()
        })?;
        let order = DatasetRows::plain(self.open(parts, self.path, self.dataset)?, rows);
        Ok(IndexContent::SortedRows { order: Arc::new(order), tails: [missing, nans], rules: &verified::SORTED })
    }

    fn bitmap(&self, parts: &TableGroup<'_>, column: &Dataset, rows: u64, is_july: bool) -> Checked<IndexContent> {
        self.extent(1, 2, rows.div_ceil(8), is_july, &known::BITMAP_SHAPE)?;
        check(is_unsigned(&self.dataset.datatype, &[1]), &known::BITMAP_TYPE, || {
            class_name(&self.dataset.datatype).into()
        })?;
        let rule = &known::BITMAP_VALUES;
        let (_, reference) =
            any(&self.dataset.attributes, &VALUES).ok_or_else(|| AbsentIndex::new(rule, "no reference"))?;
        let target = match references(reference) {
            Some([Some(id)]) => *id,
            other => return Err(AbsentIndex::new(rule, format!("{} references", other.map_or(0, <[_]>::len)))),
        };
        let beside = self.group.links.iter().find_map(|link| match link.target.object() {
            Some(Object::Dataset(dataset)) if dataset.id == target => Some((link, dataset)),
            _ => None,
        });
        let (link, values) = beside.ok_or_else(|| AbsentIndex::new(rule, "a reference to something else"))?;
        let (k, path) = (self.dataset.shape.first().copied().unwrap_or(0), join(self.group_path, &link.name));
        check(values.shape == [k], &known::BITMAP_VALUES_SHAPE, || {
            format!("{k} rows, values of shape {:?}", values.shape)
        })?;
        // The byte order must agree, or the column's fill value would not be found among them.
        let is_same = values.datatype.has_values_of(&column.datatype)
            && byte_order(&values.datatype) == byte_order(&column.datatype);
        check(is_same, &known::BITMAP_VALUES_TYPE, || {
            format!("{} of {} bytes", class_name(&values.datatype), values.datatype.size)
        })?;
        if is_july {
            check(text(&values.attributes, "KIND").is_none(), &known::BITMAP_ACCOMPANYING, || "one".into())?;
        }
        let coded = self.coded(parts, &path, values, k, column)?;
        let shown: Arc<dyn Rows> = match self.column.categories.and_then(|at| self.table.categories.get(at)) {
            Some(set) => {
                let labels = set.labels.clone().map_err(|reason| AbsentIndex::new(&known::INDEX_LABELS, reason))?;
                Arc::new(CategoryRows::new(path, coded.clone(), labels, Arc::default()))
            }
            None => {
                let missing = FillTest::new(&values.datatype, &parts.missing(column));
                Arc::new(DatasetRows::new(self.open(parts, &path, values)?, k, missing, Arc::default()))
            }
        };
        Ok(IndexContent::Bitmap {
            bits: self.open(parts, self.path, self.dataset)?,
            row_bytes: self.dataset.shape.get(1).copied().unwrap_or(0),
            values: coded,
            shown,
            exhaustive: boolean(&self.dataset.attributes, "exhaustive") == Some(true),
            rules: &verified::BITMAP,
        })
    }

    fn bloom(&self, parts: &TableGroup<'_>, column: &Dataset, chunks: u64, is_july: bool) -> Checked<IndexContent> {
        self.extent(0, 2, chunks, is_july, &known::BLOOM_SHAPE)?;
        check(is_unsigned(&self.dataset.datatype, &[1]), &known::BLOOM_TYPE, || {
            class_name(&self.dataset.datatype).into()
        })?;
        let attributes = &self.dataset.attributes;
        let filter_bytes = self.dataset.shape.get(1).copied().unwrap_or(0);
        let bits = unsigned(attributes, "m_bits");
        check(filter_bytes > 0 && bits.is_some() && bits == filter_bytes.checked_mul(8), &known::BLOOM_BITS, || {
            format!("m_bits is {}, a filter has {filter_bytes} bytes", said(bits))
        })?;
        let k = unsigned(attributes, "k").and_then(|k| u16::try_from(k).ok()).filter(|k| *k > 0);
        let k = k.ok_or_else(|| AbsentIndex::new(&known::BLOOM_K, "none"))?;
        let family = text(attributes, "hash_family").unwrap_or_default();
        let schemes = match family.as_str() {
            "murmur3_128_double" if !is_july || attribute(attributes, "seed").is_none() => READINGS_OF_APRIL.to_vec(),
            "murmur3_x64_128_double" => {
                let seed = unsigned(attributes, "seed").and_then(|seed| u32::try_from(seed).ok());
                let seed = seed.ok_or_else(|| AbsentIndex::new(&known::BLOOM_SEED, "none"))?;
                vec![BloomScheme::OneHash { seed }]
            }
            _ => {
                let rule = &known::BLOOM_FAMILY;
                return Err(AbsentIndex::new(rule, format!("{family:?}")));
            }
        };
        check(has_canonical_width(&column.datatype), &known::BLOOM_WIDTH, || {
            format!("{} of {} bytes", class_name(&column.datatype), column.datatype.size)
        })?;
        Ok(IndexContent::Bloom {
            filters: self.open(parts, self.path, self.dataset)?,
            filter_bytes,
            k,
            schemes,
            rules: &verified::BLOOM,
        })
    }
}

/// The number in a scalar attribute of type uint64. `None`: no such attribute, or another type.
fn uint64(attributes: &[crate::catalogue::Attribute], name: &str) -> Option<u64> {
    attribute(attributes, name).filter(|attribute| is_unsigned(&attribute.datatype, &[8]))?;
    unsigned(attributes, name)
}

/// The unsigned integer in an attribute of one element, whatever its rank.
fn one_unsigned(attribute: &crate::catalogue::Attribute) -> Option<u64> {
    let Elements { bytes, .. } = attribute.value.as_ref().ok()?;
    let Class::Integer { order, .. } = attribute.datatype.class else { return None };
    if attribute.len() != Some(1) || bytes.len() > 8 {
        return None;
    }
    let mut wide = [0; 8];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    if order == ByteOrder::Big {
        wide.get_mut(..bytes.len())?.reverse();
    }
    Some(u64::from_le_bytes(wide))
}

fn is_unsigned(datatype: &Datatype, sizes: &[u64]) -> bool {
    matches!(datatype.class, Class::Integer { signed: false, .. }) && sizes.contains(&datatype.size)
}

/// Whether HEP001 orders values of this type, and hepfs reads them as numbers or text.
fn is_ordered(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::Integer { order, .. } => *order != ByteOrder::Vax && datatype.size <= 8,
        Class::Float { order, format } => *order != ByteOrder::Vax && format.is_native(),
        Class::Enum { base, .. } => is_ordered(base),
        Class::FixedString { .. } | Class::VariableString { .. } | Class::Opaque { .. } => true,
        _ => false,
    }
}

/// Whether numbers are as wide in memory as they are stored.
fn has_canonical_width(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::Integer { .. } => datatype.size.is_power_of_two(),
        Class::Enum { base, .. } => has_canonical_width(base),
        _ => true,
    }
}

fn byte_order(datatype: &Datatype) -> Option<ByteOrder> {
    match &datatype.class {
        Class::Integer { order, .. } | Class::Float { order, .. } if datatype.size > 1 => Some(*order),
        Class::Enum { base, .. } => byte_order(base),
        _ => None,
    }
}

fn class_name(datatype: &Datatype) -> &'static str {
    match &datatype.class {
        Class::Integer { signed: true, .. } => "signed integers",
        Class::Integer { .. } => "unsigned integers",
        Class::Float { .. } => "floating-point numbers",
        Class::Time { .. } | Class::SplitSeconds { .. } => "times",
        Class::FixedString { .. } | Class::VariableString { .. } => "strings",
        Class::Bitfield { .. } | Class::Flag => "bits",
        Class::Opaque { .. } => "opaque bytes",
        Class::Compound { .. } => "compounds",
        Class::Enum { .. } => "an enumeration",
        Class::Sequence { .. } => "sequences",
        Class::Array { .. } => "arrays",
        Class::Reference(_) => "references",
        Class::Complex { .. } => "complex numbers",
        Class::Unknown(_) => "an unknown class",
    }
}
