//! Rows for tests, without a file: those of an array, and an endless column.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;
use arrow_schema::DataType;

use super::{ChunkDecoding, Cuts, Facts, Fitter, Fitting, RowRange, Rows, StoredFacts};
use crate::catalogue::{Class, Datatype};
use crate::source::Interrupt;
use crate::store::decode::outline::outline_of;
use crate::store::fixed_width;
use crate::store::{Alike, Budget, Coded, Containers, Error, Hints, Lent, RowsContainer, StoredBytes};

/// A test's callback for reads of rows.
type Hook = Box<dyn Fn(&RowRange, &Interrupt) -> Result<(), Error> + Send + Sync>;

/// Rows of an Arrow array, with counts of reads.
pub(crate) struct MemoryRows {
    array: ArrayRef,
    facts: Facts,
    terminated: bool,
    outlined: bool,
    stored: Vec<u8>,
    values: Option<fn(Buffer) -> ArrayRef>,
    most: u64,
    broken: Range<u64>,
    hook: Option<Hook>,
    calls: AtomicUsize,
    handed_out: AtomicU64,
}

impl fmt::Debug for MemoryRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows", self.array.len())
    }
}

impl MemoryRows {
    /// Contiguous rows, nullable if the array is.
    pub(crate) fn new(array: ArrayRef) -> Self {
        Self {
            facts: Facts { nullable: array.is_nullable(), ..Facts::new(array.len() as u64, array.data_type().clone()) },
            array,
            terminated: false,
            outlined: false,
            stored: Vec::new(),
            values: None,
            most: u64::MAX,
            broken: 0..0,
            hook: None,
            calls: AtomicUsize::new(0),
            handed_out: AtomicU64::new(0),
        }
    }

    /// Changes the facts.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Facts)) -> Self {
        change(&mut self.facts);
        self
    }

    /// Declares rows nullable or not, whatever the array says.
    pub(crate) fn nullable(self, nullable: bool) -> Self {
        self.with(|facts| facts.nullable = nullable)
    }

    /// Sets the hints.
    pub(crate) fn hinted(self, hints: Hints) -> Self {
        self.with(|facts| facts.hints = hints)
    }

    /// Binary values are also available with a NUL after each.
    pub(crate) fn with_terminated(self) -> Self {
        Self { terminated: true, ..self }
    }

    /// Outlines are available.
    pub(crate) fn outlined(self) -> Self {
        Self { outlined: true, ..self }
    }

    /// Sets the stored bytes, `width` per row.
    pub(crate) fn stored(self, bytes: Vec<u8>, width: u64) -> Self {
        Self { stored: bytes, ..self.with(|facts| facts.stored.width = Some(width)) }
    }

    /// Stored bytes can be borrowed; `values` makes an array of them.
    pub(crate) fn lent(self, values: fn(Buffer) -> ArrayRef) -> Self {
        Self { values: Some(values), ..self }
    }

    /// The stored bytes are the values of the array.
    pub(crate) fn stored_as_values(self) -> Self {
        let bytes = self.array.to_data().buffers()[0].as_slice().to_vec();
        let width = bytes.len() / self.array.len().max(1);
        self.stored(bytes, width as u64)
    }

    /// Sets the rows of a chunk.
    pub(crate) fn natural(self, rows: u64) -> Self {
        self.with(|facts| facts.natural_rows = Some(rows))
    }

    /// Sets the bytes from one row to the next.
    pub(crate) fn strided(self, bytes: u64) -> Self {
        self.with(|facts| facts.stride = Some(bytes))
    }

    /// Sets the ends of runs of rows of one origin.
    pub(crate) fn cut(self, ends: impl IntoIterator<Item = u64>) -> Self {
        self.with(|facts| facts.cuts = Cuts::new(ends))
    }

    /// No row was ever stored.
    pub(crate) fn alike(self) -> Self {
        self.with(|facts| facts.alike = Alike::all())
    }

    /// The rows cannot be located.
    pub(crate) fn lost(self) -> Self {
        self.with(|facts| facts.containers = Containers::one(Arc::new(Lost)))
    }

    /// Arrays of more rows are too large.
    pub(crate) fn most(self, rows: u64) -> Self {
        Self { most: rows, ..self }
    }

    /// These rows, and their stored bytes, cannot be read.
    pub(crate) fn broken(self, broken: Range<u64>) -> Self {
        Self { broken, ..self }
    }

    /// Sets a callback before each array; it then handles interrupts itself.
    pub(crate) fn hook(
        self,
        hook: impl Fn(&RowRange, &Interrupt) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Self {
        Self { hook: Some(Box::new(hook)), ..self }
    }

    /// Number of requests for an array.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Number of rows in the returned arrays.
    pub(crate) fn handed_out(&self) -> u64 {
        self.handed_out.load(Ordering::Relaxed)
    }

    /// Fails if one of the units in `range` is broken; a row has `width` units.
    fn check(&self, range: Range<u64>, width: u64) -> Result<(), Error> {
        if range.start < self.broken.end * width && self.broken.start * width < range.end {
            return Err(Error::Chunk { path: "/t/x".into(), chunk: 0, address: 0, reason: "broken".into() });
        }
        Ok(())
    }
}

impl Rows for MemoryRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match &self.hook {
            Some(hook) => hook(&range, interrupt)?,
            None => interrupt.check()?,
        }
        assert!(range.start <= range.end && range.end <= self.facts.len);
        let rows = range.end - range.start;
        if rows > self.most {
            let (path, what) = ("/t/x".to_owned(), "rows".to_owned());
            return Err(Error::TooLarge { path, what, bytes: rows, limit: self.most, option: "none" });
        }
        self.check(range.clone(), 1)?;
        self.handed_out.fetch_add(rows, Ordering::Relaxed);
        Ok(self.array.slice(range.start as usize, rows as usize))
    }

    fn fitting(&self, range: RowRange, bytes: u64, _: &Interrupt) -> Result<Fitting, Error> {
        let Some(texts) = self.array.as_string_opt::<i32>() else {
            return Ok(Fitting::fixed(&range, fixed_width(&self.facts.data_type), bytes));
        };
        let mut fitter = Fitter::new(range.start, bytes);
        let _ = range.take_while(|row| fitter.add(1, 8 + texts.value_length(*row as usize) as u64)).count();
        Ok(fitter.fitting())
    }

    fn outline(&self, range: RowRange, interrupt: &Interrupt) -> Result<Option<ArrayRef>, Error> {
        interrupt.check()?;
        if !self.outlined {
            return Ok(None);
        }
        let rows = (range.end - range.start) as usize;
        Ok(outline_of(&self.array.slice(range.start as usize, rows)))
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        self.facts.stored.width.map(|_| self as _)
    }

    fn coded(&self) -> Option<&dyn Coded> {
        (self.terminated || self.values.is_some()).then_some(self as _)
    }
}

impl StoredBytes for MemoryRows {
    fn append(&self, offset: u64, length: usize, out: &mut Vec<u8>, _: &Interrupt) -> Result<(), Error> {
        let width = self.facts.stored.width.expect("no width, no bytes");
        self.check(offset..offset + length as u64, width)?;
        out.extend_from_slice(&self.stored[offset as usize..][..length]);
        Ok(())
    }

    fn lend(&self, offset: u64, length: usize, interrupt: &Interrupt) -> Result<Option<Lent>, Error> {
        let rows = self.facts.stored.width.map_or(0, |width| length as u64 / width);
        if self.values.is_none() || self.hook.is_some() || rows > self.most {
            return Ok(None);
        }
        self.handed_out.fetch_add(rows, Ordering::Relaxed);
        let mut bytes = Vec::new();
        self.append(offset, length, &mut bytes, interrupt)?;
        Lent::made(&Budget::new(1 << 30), length, |out| {
            out.copy_from_slice(&bytes);
            Ok(())
        })
    }
}

impl Coded for MemoryRows {
    fn for_each_terminated(
        &self,
        range: RowRange,
        interrupt: &Interrupt,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<bool, Error> {
        if !self.terminated {
            return Ok(false);
        }
        let array = self.array(range, interrupt)?;
        array.as_binary::<i64>().iter().flatten().all(|text| take(&[text, b"\0"].concat()));
        Ok(true)
    }

    fn values(&self, bytes: Buffer) -> Option<ArrayRef> {
        self.values.map(|values| values(bytes))
    }
}

/// A container that cannot be located.
#[derive(Debug)]
struct Lost;

impl RowsContainer for Lost {
    fn is_decoded(&self) -> bool {
        false
    }

    fn examine(&self, _: &Interrupt) -> Result<(), Error> {
        Err(Error::unsupported("/t/x", "lost"))
    }
}

/// Any number of rows, none of which can be read.
#[derive(Debug)]
pub(crate) struct Endless {
    facts: Facts,
}

impl Endless {
    /// Rows with these facts, whose stored bytes are their values.
    pub(crate) fn new(len: u64, data_type: DataType, nullable: bool) -> Self {
        let width = data_type.primitive_width().map(|width| width as u64);
        let stored = StoredFacts { width, ..StoredFacts::default() };
        Self { facts: Facts { nullable, stored, ..Facts::new(len, data_type) } }
    }
}

impl Rows for Endless {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, _: RowRange, _: &Interrupt) -> Result<ArrayRef, Error> {
        panic!("nobody needs to read")
    }
}

/// Names of the facts in which a wrapper differs from the rows that it wraps.
pub(crate) fn changed(inner: &Facts, outer: &Facts) -> Vec<&'static str> {
    let pairs = shown(inner).into_iter().zip(shown(outer));
    pairs.filter(|(one, other)| one != other).map(|((name, _), _)| name).collect()
}

fn shown(facts: &Facts) -> [(&'static str, String); 15] {
    let Facts { len, data_type, nullable, hints, natural_rows, stride, cuts, stored, .. } = facts;
    let Facts { codes, outline_tells_nulls, fields_lie_apart, alike, containers, .. } = facts;
    [
        ("len", format!("{len}")),
        ("type", format!("{data_type}")),
        ("nullable", format!("{nullable}")),
        ("hints", format!("{hints:?}")),
        ("natural rows", format!("{natural_rows:?}")),
        ("stride", format!("{stride:?}")),
        ("cuts", format!("{cuts:?}")),
        ("stored type", format!("{:?}", stored.datatype)),
        ("stored width", format!("{:?}", stored.width)),
        ("decoded", format!("{:?}", stored.decoded)),
        ("codes", format!("{codes}")),
        ("outline", format!("{outline_tells_nulls}")),
        ("apart", format!("{fields_lie_apart}")),
        ("alike", format!("{alike:?}")),
        ("containers", format!("{containers:?}")),
    ]
}

/// Gives rows every fact whose bit of `which` is set.
pub(crate) fn with_facts(rows: MemoryRows, which: u16) -> MemoryRows {
    let has = |bit: u16| which >> bit & 1 == 1;
    rows.with(|facts| {
        facts.nullable |= has(0);
        facts.hints.stored = has(1);
        facts.natural_rows = has(2).then_some(2);
        facts.stride = has(3).then_some(24);
        facts.cuts = if has(4) { Cuts::new([1, facts.len]) } else { None };
        let datatype = Datatype { size: 5, class: Class::Opaque { tag: "".into() } };
        facts.stored.datatype = has(5).then(|| Arc::new(datatype));
        facts.stored.width = has(6).then_some(5);
        facts.stored.decoded = if has(7) { ChunkDecoding::Always } else { ChunkDecoding::Never };
        facts.codes = if has(8) { 256 } else { 0 };
        facts.outline_tells_nulls = has(9);
        facts.fields_lie_apart = has(10);
        facts.alike = if has(12) { Alike::all() } else { Alike::default() };
        facts.containers = if has(11) { Containers::one(Arc::new(Lost)) } else { Containers::default() };
    })
}

/// Bits of [`with_facts`].
pub(crate) const FACTS: u16 = (1 << 13) - 1;
