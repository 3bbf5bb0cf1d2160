//! The scan of a NumPy array of objects: of each value its kind and its place, never the value.
//!
//! ```text
//! Build(Call(_reconstruct, (ndarray, (0,), b"b")), (version, shape, dtype, is_fortran, [value, …]))
//! ```
//!
//! What stands before the list is small, and becomes a tree as attributes do. In the list, a value is what a [`Slot`]
//! of 8 bytes can hold: containers and objects have no content there.

use std::borrow::Cow;
use std::num::NonZeroU64;

use super::machine::{Budget, Machine, Values};
use super::tokens::{self, CUT, Container, Encoding, Token, Tokens};
use super::tree::{self, Arena, Node, Value};
use super::{Error, shapes};

/// The list begins within this many bytes: about 250 are usual.
const BEFORE: usize = 64 << 10;
/// Tokens between two questions whether to go on.
const PATIENCE: usize = 1 << 16;

/// What a value of the array is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

impl Kind {
    /// All kinds, in order.
    pub const ALL: [Kind; 8] =
        [Kind::None, Kind::Nan, Kind::Bool, Kind::Integer, Kind::Float, Kind::Text, Kind::Date, Kind::Other];
}

/// What a slot can be besides a value of some [`Kind`]. In the array they are of the kind `Other`.
mod tag {
    pub const BYTES: u8 = 8;
    /// A tuple of nothing but bytes.
    pub const BYTES_TUPLE: u8 = 9;
    /// The class `datetime.date`.
    pub const DATE: u8 = 10;
    /// The function that returns `NaT`.
    pub const NAT: u8 = 11;
    /// The list of the array.
    pub const LIST: u8 = 12;
    /// The array's state: the tuple that ends with the list.
    pub const STATE: u8 = 13;
}

/// A tag in the upper 8 bits, and in the others where the token of the value, or of an object's class, stands. One more
/// than that, so that an option takes 8 bytes as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot(NonZeroU64);

impl Slot {
    fn new(tag: u8, at: usize) -> Self {
        Self(NonZeroU64::MIN.saturating_add(u64::from(tag) << 56 | at as u64))
    }

    fn kind(kind: Kind, at: usize) -> Self {
        Self::new(kind as u8, at)
    }

    fn tag(self) -> u8 {
        ((self.0.get() - 1) >> 56) as u8
    }

    fn at(self) -> usize {
        ((self.0.get() - 1) & (u64::MAX >> 8)) as usize
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
        self.values.capacity() * size_of::<Slot>()
    }

    /// The kind of a value, and where its token begins in the pickle. An array of one dimension has column 0 alone.
    pub fn place(&self, row: usize, column: usize) -> Option<(Kind, usize)> {
        let columns = self.columns.unwrap_or(1);
        let slot = self.values.get(row.checked_mul(columns)?.checked_add(column)?).filter(|_| column < columns)?;
        Some((Kind::ALL[usize::from(slot.tag())], slot.at()))
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

    /// Counts the values of each kind in a column, in the order of [`Kind::ALL`].
    pub fn counts(&self, column: usize) -> [usize; Kind::ALL.len()] {
        let columns = self.columns.unwrap_or(1);
        let mut counts = [0; Kind::ALL.len()];
        if column < columns {
            let slots = self.values.iter().skip(column).step_by(columns);
            slots.for_each(|slot| counts[usize::from(slot.tag())] += 1);
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
            (Kind::Date, token) => Cell::Date(date(token)?),
            (Kind::Other, token) => Cell::Other(match token {
                Token::Text(encoding, bytes) => tokens::text(encoding, bytes)?,
                Token::Global(_, name) | Token::Instance(_, name) => String::from_utf8_lossy(name),
                Token::Bytes(_) => "bytes".into(),
                Token::Integer(_) => "int".into(),
                Token::Make(Container::List, _) => "list".into(),
                Token::Make(Container::Dict, _) => "dict".into(),
                Token::Make(Container::Set, _) => "set".into(),
                Token::Make(Container::Tuple, _) => "tuple".into(),
                _ => "object".into(),
            }),
            _ => return None,
        })
    }
}

/// Days since 1970 of a `datetime.date`: the year in two bytes, the most significant one first, month and day. Python 2
/// had them in a string.
fn date(token: Token<'_>) -> Option<i32> {
    let (Token::Bytes(bytes) | Token::Text(Encoding::Python2, bytes)) = token else { return None };
    let [high, low, month, day] = *bytes else { return None };
    shapes::days(u16::from_be_bytes([high, low]).into(), month.into(), day.into())?.try_into().ok()
}

/// Scans a pickled NumPy array of objects, of protocol 2 to 5, in one pass.
///
/// It takes at most `limit` bytes of memory: 8 for a value, which stay, and in the meantime 8 for a memo entry (a
/// distinct text has one, a date three) and a few kB. `keep_going` is asked every 65,536 tokens. The values are row
/// after row, whatever the array says of its order.
///
/// # Errors
/// What is malformed, and where; the pickle of something else; a shape that is not that of the values; memory;
/// an interruption.
pub fn object_array(bytes: &[u8], limit: usize, keep_going: &dyn Fn() -> bool) -> Result<ObjectArray, Error> {
    let before = machine_before_list(bytes)?;
    let (rows, columns) = shape(&before)?;
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
    let slots = Slots { bytes, values, count };
    let mut machine = Machine::new(Tokens::new(bytes, before.tokens.at()), slots, bytes.len(), budget);
    for (index, entry) in before.memo.iter().flatten().enumerate() {
        if let Some(at) = entry {
            machine.put(index, known(before.values.value(*at)))?;
        }
    }
    let list = machine.tokens.at();
    machine.tokens.next()?;
    machine.mark()?;
    machine.push(Slot::new(tag::LIST, list))?;
    let more = || Error::Structure { found: "more than an array of objects".into() };
    let mut patience = PATIENCE;
    while !machine.marks.is_empty() {
        patience -= 1;
        if patience == 0 {
            if !keep_going() {
                return Err(Error::Interrupted);
            }
            patience = PATIENCE;
        }
        if !machine.step()? {
            return Err(more());
        }
    }
    if machine.stack.last().is_none_or(|slot| slot.tag() != tag::STATE) {
        return Err(more());
    }
    let mut built = false;
    loop {
        match machine.tokens.next()? {
            Token::Nothing | Token::Memoize | Token::Put(_) if !built => {}
            Token::Build if !built => built = true,
            Token::Stop if built => break,
            _ => return Err(more()),
        }
    }
    let values = machine.values.values;
    if values.len() != count {
        return Err(Error::Length { expected: count as u64, found: values.len() as u64 });
    }
    Ok(ObjectArray { rows, columns: columns.and_then(within), values })
}

/// A machine that has run up to the list of the values.
fn machine_before_list(bytes: &[u8]) -> Result<Machine<'_, Arena>, Error> {
    let mut machine = tree::machine(bytes.get(..BEFORE).unwrap_or(bytes));
    loop {
        if bytes.get(machine.tokens.at()) == Some(&b']') && is_before_list(&machine) {
            return Ok(machine);
        }
        let found = match machine.step() {
            Ok(true) => continue,
            Ok(false) => machine.stack.last(),
            // Cut short by us.
            Err(Error::Token { what: CUT, .. }) if bytes.len() > BEFORE => machine.stack.first(),
            Err(error) => return Err(error),
        };
        let found = found.map_or_else(|| "nothing".into(), |at| machine.values.value(*at).0.describe());
        return Err(Error::Structure { found });
    }
}

/// Whether the stack holds an empty array and, above a mark, its state up to the list.
fn is_before_list(machine: &Machine<'_, Arena>) -> bool {
    let ([array, _, _, data_type, _], [1]) = (&machine.stack[..], &machine.marks[..]) else { return false };
    let called = |at: u32| machine.values.value(at).0.call();
    let is_array = called(*array).is_some_and(|(module, name, arguments)| {
        let class = arguments.item(0).and_then(Value::symbol);
        matches!(module, "numpy._core.multiarray" | "numpy.core.multiarray")
            && name == "_reconstruct"
            && class.is_some_and(|(module, name)| module == "numpy" && name == "ndarray")
    });
    let is_of_objects = called(*data_type).is_some_and(|(module, name, arguments)| {
        let code = arguments.item(0).and_then(Value::text);
        module == "numpy" && name == "dtype" && code.is_some_and(|code| code.trim_start_matches('|').starts_with('O'))
    });
    is_array && is_of_objects
}

/// Rows and columns.
fn shape(machine: &Machine<'_, Arena>) -> Result<(u64, Option<u64>), Error> {
    let shape = machine.stack.get(2).and_then(|at| machine.values.value(*at).0.items());
    let extents = shape.into_iter().flatten().take(3);
    let extents: Option<Vec<_>> = extents.map(|extent| extent.integer().and_then(|n| u64::try_from(n).ok())).collect();
    match extents.as_deref() {
        Some([rows]) => Ok((*rows, None)),
        Some([rows, columns]) => Ok((*rows, Some(*columns))),
        _ => Err(Error::Structure { found: "an array of another shape".into() }),
    }
}

/// What is to be known of a value before the list, for a value in the list may be the same object: texts are interned.
fn known((value, origin): (Value<'_>, usize)) -> Slot {
    match value.node() {
        Node::Text(_) => Slot::kind(Kind::Text, origin),
        Node::Bytes(_) => Slot::new(tag::BYTES, origin),
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

/// The values of a machine that runs the list.
struct Slots<'a> {
    bytes: &'a [u8],
    values: Vec<Slot>,
    /// Values by the shape.
    count: usize,
}

impl Slots<'_> {
    /// The bytes of a text.
    fn text(&self, slot: Slot) -> Option<&[u8]> {
        match Tokens::new(self.bytes, slot.at()).next() {
            Ok(Token::Text(_, bytes)) if slot.tag() == Kind::Text as u8 => Some(bytes),
            _ => None,
        }
    }
}

impl Values for Slots<'_> {
    type Value = Slot;

    #[inline]
    fn leaf(&mut self, token: Token<'_>, at: usize) -> Result<Slot, Error> {
        let kind = match token {
            Token::Text(encoding @ (Encoding::Escaped | Encoding::Literal), bytes) => {
                tokens::text(encoding, bytes).ok_or(Error::Token { at, what: "a malformed text" })?;
                Kind::Text
            }
            Token::Text(..) => Kind::Text,
            Token::None => Kind::None,
            Token::Bool(_) => Kind::Bool,
            Token::Integer(Some(_)) => Kind::Integer,
            Token::Float(value) if value.is_nan() => Kind::Nan,
            Token::Float(_) => Kind::Float,
            Token::Bytes(_) => return Ok(Slot::new(tag::BYTES, at)),
            Token::Global(module, name) => return Ok(class(module, name, at)),
            _ => Kind::Other,
        };
        Ok(Slot::kind(kind, at))
    }

    fn symbol(&mut self, module: Slot, name: Slot, at: usize) -> Result<Slot, Error> {
        let names = self.text(module).zip(self.text(name));
        let (module, text) = names.ok_or(Error::Token { at, what: "the names on the stack are no texts" })?;
        Ok(class(module, text, name.at()))
    }

    #[inline]
    fn make(&mut self, container: Container, items: &[Slot], at: usize) -> Result<Slot, Error> {
        Ok(match (container, items) {
            (Container::Tuple, [item]) if item.tag() == tag::LIST => Slot::new(tag::STATE, at),
            (Container::Tuple, [item]) if [tag::BYTES, Kind::Text as u8].contains(&item.tag()) => {
                Slot::new(tag::BYTES_TUPLE, item.at())
            }
            _ => Slot::kind(Kind::Other, at),
        })
    }

    #[inline]
    fn extend(&mut self, into: Slot, _: Container, items: &[Slot], _: usize) -> Result<(), Error> {
        if into.tag() == tag::LIST {
            let found = self.values.len() + items.len();
            if found > self.count {
                return Err(Error::Length { expected: self.count as u64, found: found as u64 });
            }
            self.values.extend(items.iter().map(|slot| slot.value()));
        }
        Ok(())
    }

    #[inline]
    fn call(&mut self, function: Slot, arguments: Slot, at: usize) -> Result<Slot, Error> {
        let days = || Tokens::new(self.bytes, arguments.at()).next().ok().and_then(date);
        Ok(match (function.tag(), arguments.tag()) {
            (tag::DATE, tag::BYTES_TUPLE) if days().is_some() => Slot::kind(Kind::Date, arguments.at()),
            (tag::NAT, _) => Slot::kind(Kind::None, at),
            _ => Slot::kind(Kind::Other, function.at()),
        })
    }

    fn build(&mut self, object: Slot, _: Slot, _: usize) -> Result<Slot, Error> {
        Ok(Slot::kind(Kind::Other, object.at()))
    }
}
