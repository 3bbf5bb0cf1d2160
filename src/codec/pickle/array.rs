//! The scan of a NumPy array of objects: of each value its kind and its place, never the value.
//!
//! ```text
//! Build(Call(_reconstruct, (ndarray, (0,), b"b")), (version, shape, dtype, is_fortran, [value, …]))
//! ```
//!
//! What stands before the list is small, and is read by the machine of attributes. In the list a machine works that
//! knows of a value what a slot of 8 bytes can hold: containers and objects have no content there.

use std::borrow::Cow;
use std::ops::Index;

use super::machine::Machine;
use super::tokens::{self, Container, Token, Tokens};
use super::tree::{Value, View};
use super::{Error, calendar};

/// Bytes that an [`ObjectArray`] keeps for a value. The scan takes as many for each memo entry: a distinct text has one,
/// a date three.
pub const BYTES_PER_VALUE: usize = size_of::<Slot>();

/// The list begins within this many bytes: about 250 are usual.
const BEFORE: usize = 64 << 10;
/// Tokens between two questions whether to go on.
const PATIENCE: usize = 1 << 16;
/// Slots in a page of the memo.
const PAGE: usize = 1 << 10;

/// What a value of the array is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// `None`, or `NA` and `NaT` of pandas.
    None,
    /// A float that is no number: missing as well.
    Nan,
    /// `True` or `False`.
    Bool,
    /// An integer of up to 128 bits.
    Integer,
    /// A float.
    Float,
    /// A text.
    Text,
    /// A `datetime.date`.
    Date,
    /// Anything else.
    Other,
}

/// All kinds, in order.
const KINDS: [Kind; 8] = [
    Kind::None,
    Kind::Nan,
    Kind::Bool,
    Kind::Integer,
    Kind::Float,
    Kind::Text,
    Kind::Date,
    Kind::Other,
];

/// What a slot of the stack can be besides a value of some [`Kind`]: a value of the kind `Other`, or a mark.
mod tag {
    pub const BYTES: u8 = 8;
    /// A tuple of nothing but bytes.
    pub const BYTES_TUPLE: u8 = 9;
    /// The class `datetime.date`.
    pub const DATE: u8 = 10;
    /// The function that returns `NaT`.
    pub const NAT: u8 = 11;
    /// The list of the array.
    pub const ARRAY: u8 = 12;
    pub const MARK: u8 = 13;
    /// An entry of the memo that was not written.
    pub const EMPTY: u8 = 14;
}

/// A tag in the upper 8 bits, and in the others where the value's token stands. That of an object is its class's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot(u64);

impl Slot {
    const EMPTY: Slot = Slot((tag::EMPTY as u64) << 56);

    fn new(tag: u8, at: usize) -> Self {
        Self(u64::from(tag) << 56 | at as u64)
    }

    fn kind(kind: Kind, at: usize) -> Self {
        Self::new(kind as u8, at)
    }

    fn tag(self) -> u8 {
        (self.0 >> 56) as u8
    }

    fn at(self) -> usize {
        (self.0 & (u64::MAX >> 8)) as usize
    }

    /// The same, as a value of the array.
    fn value(self) -> Self {
        if self.tag() > Kind::Other as u8 { Self::kind(Kind::Other, self.at()) } else { self }
    }
}

/// The index of a pickled NumPy array of objects, of one or two dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectArray {
    rows: usize,
    columns: Option<usize>,
    /// Row after row.
    values: Vec<Slot>,
}

/// How many values there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([usize; KINDS.len()]);

impl Index<Kind> for Counts {
    type Output = usize;

    fn index(&self, kind: Kind) -> &usize {
        &self.0[kind as usize]
    }
}

impl ObjectArray {
    /// The extent of the first dimension.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The extent of the second dimension, if there is one.
    pub fn columns(&self) -> Option<usize> {
        self.columns
    }

    /// Bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.values.capacity() * BYTES_PER_VALUE
    }

    /// The kind of a value, and where its token begins in the pickle. An array of one dimension has column 0 alone.
    pub fn place(&self, row: usize, column: usize) -> Option<(Kind, usize)> {
        let columns = self.columns.unwrap_or(1);
        let slot = self.values.get(row.checked_mul(columns)?.checked_add(column)?).filter(|_| column < columns)?;
        Some((KINDS[usize::from(slot.tag())], slot.at()))
    }

    /// Reads a value from the pickle that was scanned.
    pub fn cell<'a>(&self, row: usize, column: usize, pickle: &'a [u8]) -> Option<Cell<'a>> {
        let (kind, at) = self.place(row, column)?;
        Cell::read(kind, pickle.get(at..)?)
    }

    /// Bytes of a text as stored, without looking at them; 0 for what is no text. Decoded it has at most three times as
    /// many. One long text may be the value of many rows.
    pub fn text_length(&self, row: usize, column: usize, pickle: &[u8]) -> usize {
        let place = self.place(row, column).filter(|(kind, _)| *kind == Kind::Text);
        match place.map(|(_, at)| Tokens::new(pickle, at).next()) {
            Some(Ok(Token::Text(_, bytes))) => bytes.len(),
            _ => 0,
        }
    }

    /// Counts the kinds in a column.
    pub fn counts(&self, column: usize) -> Counts {
        let columns = self.columns.unwrap_or(1);
        let mut counts = Counts::default();
        if column < columns {
            let slots = self.values.iter().skip(column).step_by(columns);
            slots.for_each(|slot| counts.0[usize::from(slot.tag())] += 1);
        }
        counts
    }
}

/// A value of the array.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Missing, NaN excepted.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer.
    Integer(i128),
    /// A float, NaN included.
    Float(f64),
    /// A text; what was no valid Unicode is U+FFFD.
    Text(Cow<'a, str>),
    /// Days since 1970.
    Date(i32),
    /// Anything else: the name of its class, as far as it is known.
    Other(Cow<'a, str>),
}

impl<'a> Cell<'a> {
    /// Reads a value of the given kind, given the pickle from its token on. `None`: these are other bytes, or too few.
    pub fn read(kind: Kind, pickle: &'a [u8]) -> Option<Self> {
        // A missing value may be that of a class.
        if kind == Kind::None {
            return Some(Cell::None);
        }
        Some(match (kind, Tokens::new(pickle, 0).next().ok()?) {
            (Kind::Bool, Token::Bool(value)) => Cell::Bool(value),
            (Kind::Integer, Token::Integer(value)) => Cell::Integer(value?),
            (Kind::Float | Kind::Nan, Token::Float(value)) => Cell::Float(value),
            (Kind::Text, Token::Text(encoding, bytes)) => Cell::Text(tokens::text(encoding, bytes)?),
            (Kind::Date, Token::Bytes(bytes) | Token::Text(_, bytes)) => Cell::Date(date(bytes)?),
            (Kind::Other, token) => Cell::Other(match token {
                Token::Text(encoding, bytes) => tokens::text(encoding, bytes)?,
                Token::Global(_, name) | Token::Instance(_, name) => String::from_utf8_lossy(name),
                Token::Bytes(_) => "bytes".into(),
                Token::Integer(_) => "int".into(),
                Token::Empty(Container::List) | Token::Collect(Container::List) => "list".into(),
                Token::Empty(Container::Dict) | Token::Collect(Container::Dict) => "dict".into(),
                Token::Empty(Container::Set) | Token::Collect(Container::Set) => "set".into(),
                Token::Empty(Container::Tuple) | Token::Collect(Container::Tuple) | Token::Tuple(_) => "tuple".into(),
                _ => "object".into(),
            }),
            _ => return None,
        })
    }
}

/// Days since 1970 of a `datetime.date`: the year in two bytes, the most significant one first, month and day.
fn date(bytes: &[u8]) -> Option<i32> {
    let [high, low, month, day] = *bytes else { return None };
    calendar::days(u16::from_be_bytes([high, low]).into(), month.into(), day.into())?.try_into().ok()
}

/// Scans a pickled NumPy array of objects, of protocol 2 to 5, in one pass.
///
/// It takes at most `limit` bytes of memory, of which [`ObjectArray::bytes`] stay. `keep_going` is asked every 65,536
/// tokens. The values are row after row, whatever the array says of its order.
///
/// # Errors
/// What is malformed, and where; the pickle of something else; a shape that is not that of the values; memory;
/// an interruption.
pub fn object_array(bytes: &[u8], limit: usize, keep_going: &dyn Fn() -> bool) -> Result<ObjectArray, Error> {
    let machine = machine_before_values(bytes)?;
    let (rows, columns) = shape(&machine)?;
    // A value takes a byte at least, and rows without a column are as many as a walk through them can take.
    let within = |extent: u64| usize::try_from(extent).ok().filter(|extent| *extent <= bytes.len());
    let count = rows.checked_mul(columns.unwrap_or(1)).and_then(within);
    let (Some(rows), Some(_), Some(count)) = (within(rows), within(columns.unwrap_or(1)), count) else {
        let expected = rows.saturating_mul(columns.unwrap_or(1).max(1));
        return Err(Error::Length { expected, found: bytes.len() as u64 });
    };
    let mut budget = Budget { used: 0, limit };
    let mut values = Vec::new();
    budget.grow(&mut values, count)?;
    let mut scan = Scan {
        bytes,
        tokens: Tokens::new(bytes, machine.tokens.at()),
        at: 0,
        stack: Vec::new(),
        memo: Memo::default(),
        values,
        count,
        budget,
    };
    for (index, entry) in machine.memo().enumerate() {
        if let Some((value, origin)) = entry {
            scan.memo.put(index as u64, known(value, origin), &mut scan.budget)?;
        }
    }
    scan.run(keep_going)?;
    Ok(ObjectArray { rows, columns: columns.and_then(within), values: scan.values })
}

/// A machine that has run up to the list of the values.
fn machine_before_values(bytes: &[u8]) -> Result<Machine<'_>, Error> {
    let structure = |found: String| Error::Structure { found };
    let mut machine = Machine::new(bytes.get(..BEFORE).unwrap_or(bytes));
    loop {
        if machine.tokens.peek() == Some(b']') && is_before_values(&machine) {
            return Ok(machine);
        }
        match machine.step() {
            Ok(true) => {}
            Ok(false) => {
                let last = machine.stack().last().flatten();
                return Err(structure(last.map_or_else(|| "nothing".into(), Value::describe)));
            }
            // Cut short by us.
            Err(Error::Cut { .. }) if bytes.len() > BEFORE => {
                let first = machine.stack().next().flatten();
                return Err(structure(first.map_or_else(|| "a large value".into(), Value::describe)));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether the stack holds an empty array and its state up to the list: version, shape, data type, order.
fn is_before_values(machine: &Machine<'_>) -> bool {
    let stack: Vec<_> = machine.stack().take(7).collect();
    let [Some(array), None, Some(_), Some(_), Some(data_type), Some(_)] = stack[..] else { return false };
    let is_array = array.call().is_some_and(|(module, name, arguments)| {
        let class = arguments.item(0).and_then(Value::symbol);
        matches!(module, "numpy._core.multiarray" | "numpy.core.multiarray")
            && name == "_reconstruct"
            && class.is_some_and(|(module, name)| module == "numpy" && name == "ndarray")
    });
    let is_of_objects = data_type.call().is_some_and(|(module, name, arguments)| {
        let code = arguments.item(0).and_then(Value::text);
        module == "numpy" && name == "dtype" && code.is_some_and(|code| code.trim_start_matches('|').starts_with('O'))
    });
    is_array && is_of_objects
}

/// Rows and columns.
fn shape(machine: &Machine<'_>) -> Result<(u64, Option<u64>), Error> {
    let shape = machine.stack().nth(3).flatten();
    let extents = shape.and_then(Value::items).into_iter().flatten().take(3);
    let extents: Option<Vec<_>> = extents.map(|extent| extent.integer().and_then(|n| u64::try_from(n).ok())).collect();
    match extents.as_deref() {
        Some([rows]) => Ok((*rows, None)),
        Some([rows, columns]) => Ok((*rows, Some(*columns))),
        _ => Err(Error::Structure { found: "an array that has not one or two dimensions".into() }),
    }
}

/// What is to be known of a value before the list, for a value in the list may be the same object: texts are interned.
fn known(value: Value<'_>, origin: usize) -> Slot {
    match value.view() {
        View::Text(_) => Slot::kind(Kind::Text, origin),
        View::Bytes(_) => Slot::new(tag::BYTES, origin),
        _ => Slot::kind(Kind::Other, origin),
    }
}

/// What is to be known of a class or function.
fn class(module: &[u8], name: &[u8], at: usize) -> Slot {
    match (module, name) {
        (b"datetime", b"date") => Slot::new(tag::DATE, at),
        (b"pandas" | b"pandas._libs.missing", b"NA") => Slot::kind(Kind::None, at),
        (b"pandas._libs.tslibs.nattype", b"_nat_unpickle" | b"__nat_unpickle") => Slot::new(tag::NAT, at),
        _ => Slot::kind(Kind::Other, at),
    }
}

/// Memory taken and allowed, in bytes.
struct Budget {
    used: usize,
    limit: usize,
}

impl Budget {
    fn take(&mut self, bytes: usize) -> Result<(), Error> {
        let needed = self.used.saturating_add(bytes);
        if needed > self.limit {
            return Err(Error::Memory { needed, limit: self.limit });
        }
        self.used = needed;
        Ok(())
    }

    /// Makes room for `more` elements. While they move, both places are taken.
    fn grow<T>(&mut self, elements: &mut Vec<T>, more: usize) -> Result<(), Error> {
        let before = elements.capacity() * size_of::<T>();
        let bytes = elements.len().saturating_add(more).saturating_mul(size_of::<T>());
        self.take(bytes)?;
        elements.try_reserve_exact(more).map_err(|_| Error::Memory { needed: bytes, limit: self.limit })?;
        self.used -= before;
        Ok(())
    }
}

/// The memo, in pages: it grows without moving.
#[derive(Default)]
struct Memo {
    pages: Vec<Box<[Slot; PAGE]>>,
    /// Entries that are written.
    written: u64,
}

impl Memo {
    #[inline]
    fn put(&mut self, index: u64, slot: Slot, budget: &mut Budget) -> Result<(), Error> {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let missing = (index / PAGE + 1).saturating_sub(self.pages.len());
        if missing > 0 {
            budget.take(missing.saturating_mul(size_of::<[Slot; PAGE]>()))?;
            if self.pages.capacity() - self.pages.len() < missing {
                let more = missing.max(self.pages.len());
                budget.grow(&mut self.pages, more)?;
            }
            self.pages.extend((0..missing).map(|_| Box::new([Slot::EMPTY; PAGE])));
        }
        let entry = &mut self.pages[index / PAGE][index % PAGE];
        self.written += u64::from(*entry == Slot::EMPTY);
        *entry = slot;
        Ok(())
    }

    #[inline]
    fn get(&self, index: u64) -> Option<Slot> {
        let index = usize::try_from(index).ok()?;
        self.pages.get(index / PAGE).map(|page| page[index % PAGE]).filter(|slot| *slot != Slot::EMPTY)
    }
}

/// The machine that runs the list of the values.
struct Scan<'a> {
    bytes: &'a [u8],
    tokens: Tokens<'a>,
    /// Where the token at hand begins.
    at: usize,
    stack: Vec<Slot>,
    memo: Memo,
    values: Vec<Slot>,
    /// Values by the shape.
    count: usize,
    budget: Budget,
}

impl Scan<'_> {
    fn run(&mut self, keep_going: &dyn Fn() -> bool) -> Result<(), Error> {
        // The list.
        self.tokens.next()?;
        self.push(Slot::new(tag::ARRAY, 0))?;
        let mut patience = PATIENCE;
        while self.step()? {
            patience -= 1;
            if patience == 0 {
                if !keep_going() {
                    return Err(Error::Interrupted);
                }
                patience = PATIENCE;
            }
        }
        if self.values.len() != self.count {
            return Err(Error::Length { expected: self.count as u64, found: self.values.len() as u64 });
        }
        let mut built = false;
        loop {
            match self.tokens.next()? {
                Token::Nothing | Token::Memoize | Token::Put(_) if !built => {}
                Token::Build if !built => built = true,
                Token::Stop if built => return Ok(()),
                _ => return Err(Error::Structure { found: "more than an array of objects".into() }),
            }
        }
    }

    fn missing(&self, what: &'static str) -> Error {
        Error::Stack { at: self.at, what }
    }

    #[inline]
    fn push(&mut self, slot: Slot) -> Result<(), Error> {
        if self.stack.len() == self.stack.capacity() {
            let more = self.stack.len().max(64);
            self.budget.grow(&mut self.stack, more)?;
        }
        self.stack.push(slot);
        Ok(())
    }

    #[inline]
    fn pop(&mut self) -> Result<Slot, Error> {
        self.stack.pop().filter(|slot| slot.tag() != tag::MARK).ok_or(self.missing("value"))
    }

    #[inline]
    fn top(&self) -> Result<Slot, Error> {
        self.stack.last().copied().filter(|slot| slot.tag() != tag::MARK).ok_or(self.missing("value"))
    }

    /// Where the last mark is on the stack.
    fn mark(&self) -> Option<usize> {
        self.stack.iter().rposition(|slot| slot.tag() == tag::MARK)
    }

    /// Gives what is on the stack from `from` on to the container below `below`.
    fn append(&mut self, below: usize, from: usize) -> Result<(), Error> {
        let container = below.checked_sub(1).and_then(|below| self.stack.get(below)).copied();
        let container = container.filter(|slot| slot.tag() != tag::MARK).ok_or(self.missing("container"))?;
        if container.tag() == tag::ARRAY {
            let found = self.values.len() + (self.stack.len() - from);
            if found > self.count {
                return Err(Error::Length { expected: self.count as u64, found: found as u64 });
            }
            self.values.extend(self.stack.iter().skip(from).map(|slot| slot.value()));
        }
        self.stack.truncate(below);
        Ok(())
    }

    /// Replaces `n` values by one that is made of them.
    fn replace(&mut self, n: usize, slot: Slot) -> Result<(), Error> {
        for _ in 0..n {
            self.pop()?;
        }
        self.push(slot)
    }

    /// The bytes of a text.
    fn text(&self, slot: Slot) -> Option<&[u8]> {
        match Tokens::new(self.bytes, slot.at()).next() {
            Ok(Token::Text(_, bytes)) if slot.tag() == Kind::Text as u8 => Some(bytes),
            _ => None,
        }
    }

    /// Runs one opcode; `false` after the one that completes the array's state.
    #[inline]
    fn step(&mut self) -> Result<bool, Error> {
        let at = self.tokens.at();
        self.at = at;
        let other = Slot::kind(Kind::Other, at);
        match self.tokens.next()? {
            Token::Text(encoding, bytes) => {
                if matches!(encoding, tokens::Encoding::Escaped | tokens::Encoding::Literal) {
                    tokens::text(encoding, bytes).ok_or(Error::Argument { at, what: "text" })?;
                }
                self.push(Slot::kind(Kind::Text, at))?;
            }
            Token::Memoize => self.memo.put(self.memo.written, self.top()?, &mut self.budget)?,
            // Entries are numbered in turn: there cannot be more than tokens.
            Token::Put(index) if index > self.bytes.len() as u64 => return Err(Error::Memo { at, index }),
            Token::Put(index) => self.memo.put(index, self.top()?, &mut self.budget)?,
            Token::Get(index) => self.push(self.memo.get(index).ok_or(Error::Memo { at, index })?)?,
            Token::None => self.push(Slot::kind(Kind::None, at))?,
            Token::Bool(_) => self.push(Slot::kind(Kind::Bool, at))?,
            Token::Integer(value) => self.push(if value.is_some() { Slot::kind(Kind::Integer, at) } else { other })?,
            Token::Float(value) => self.push(Slot::kind(if value.is_nan() { Kind::Nan } else { Kind::Float }, at))?,
            Token::Bytes(_) => self.push(Slot::new(tag::BYTES, at))?,
            Token::Mark => self.push(Slot::new(tag::MARK, at))?,
            Token::Append => {
                self.top()?;
                let last = self.stack.len() - 1;
                self.append(last, last)?;
            }
            Token::Appends | Token::AddItems | Token::SetItems => {
                let mark = self.mark().ok_or(self.missing("mark"))?;
                self.append(mark, mark + 1)?;
            }
            Token::SetItem => {
                self.pop()?;
                self.pop()?;
                self.top()?;
            }
            Token::Empty(_) => self.push(other)?,
            Token::Collect(container) => match self.mark() {
                Some(mark) => {
                    self.stack.truncate(mark);
                    self.push(other)?;
                }
                // The mark of the array's state is not on this stack.
                None => {
                    let is_state = container == Container::Tuple && self.stack.len() == 1;
                    let is_state = is_state && self.top()?.tag() == tag::ARRAY;
                    return if is_state { Ok(false) } else { Err(self.missing("mark")) };
                }
            },
            Token::Tuple(1) => {
                let item = self.pop()?;
                // Dates of Python 2 have their bytes as a string.
                let is_bytes = item.tag() == tag::BYTES || item.tag() == Kind::Text as u8;
                self.push(if is_bytes { Slot::new(tag::BYTES_TUPLE, item.at()) } else { other })?;
            }
            Token::Tuple(n) => self.replace(n, other)?,
            Token::Global(module, name) => self.push(class(module, name, at))?,
            Token::StackGlobal => {
                let name = self.pop()?;
                let module = self.pop()?;
                let texts = self.text(module).zip(self.text(name));
                let (module, text) = texts.ok_or(self.missing("pair of names"))?;
                self.push(class(module, text, name.at()))?;
            }
            Token::Call => {
                let arguments = self.pop()?;
                let function = self.pop()?;
                let bytes = match Tokens::new(self.bytes, arguments.at()).next() {
                    Ok(Token::Bytes(bytes) | Token::Text(tokens::Encoding::Python2, bytes)) => bytes,
                    _ => &[],
                };
                self.push(match (function.tag(), arguments.tag()) {
                    (tag::DATE, tag::BYTES_TUPLE) if date(bytes).is_some() => Slot::kind(Kind::Date, arguments.at()),
                    (tag::NAT, _) => Slot::kind(Kind::None, at),
                    _ => Slot::kind(Kind::Other, function.at()),
                })?;
            }
            Token::CallNamed => {
                self.pop()?;
                self.pop()?;
                let class = self.pop()?;
                self.push(Slot::kind(Kind::Other, class.at()))?;
            }
            Token::Instance(..) => {
                self.stack.truncate(self.mark().ok_or(self.missing("mark"))?);
                self.push(other)?;
            }
            Token::Object => {
                let mark = self.mark().ok_or(self.missing("mark"))?;
                let class = self.stack.get(mark + 1).copied().ok_or(self.missing("class"))?;
                self.stack.truncate(mark);
                self.push(Slot::kind(Kind::Other, class.at()))?;
            }
            Token::Build => {
                self.pop()?;
                let object = self.pop()?;
                self.push(Slot::kind(Kind::Other, object.at()))?;
            }
            Token::Pop => self.stack.pop().map(drop).ok_or(self.missing("value"))?,
            Token::PopMark => self.stack.truncate(self.mark().ok_or(self.missing("mark"))?),
            Token::Duplicate => self.push(self.top()?)?,
            Token::Nothing => {}
            Token::Stop => return Err(Error::Structure { found: "an array without its state".into() }),
        }
        Ok(true)
    }
}
