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

use half::f16;

use super::machine::{Budget, Machine, Values};
use super::tokens::{self, CUT, Container, Encoding, Token, Tokens};
use super::tree::{self, Arena, Node, Value};
use super::{Error, shapes};

/// The list begins within this many bytes: about 250 are usual.
const BEFORE: usize = 64 << 10;
/// Tokens between two questions whether to go on.
const PATIENCE: usize = 1 << 16;
/// Bytes of a decimal number.
const LONGEST_DECIMAL: usize = 1000;

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
    /// A `datetime.datetime` without a zone, or a `Timestamp` of pandas without one, of microseconds or longer units.
    Time,
    /// A `Timestamp` of pandas without a zone, of nanoseconds.
    Nanoseconds,
    /// A `decimal.Decimal` that is a number.
    Decimal,
    /// Anything else.
    Other,
}

impl Kind {
    /// All kinds, in order.
    pub const ALL: [Kind; 11] = [
        Kind::None,
        Kind::Nan,
        Kind::Bool,
        Kind::Integer,
        Kind::Float,
        Kind::Text,
        Kind::Date,
        Kind::Time,
        Kind::Nanoseconds,
        Kind::Decimal,
        Kind::Other,
    ];
}

/// What a slot can be besides a value of some [`Kind`]. In the array they are of the kind `Other`.
mod tag {
    pub const BYTES: u8 = 11;
    /// A tuple of nothing but bytes.
    pub const BYTES_TUPLE: u8 = 12;
    /// The class `datetime.date`.
    pub const DATE: u8 = 13;
    /// The function that returns `NaT`.
    pub const NAT: u8 = 14;
    /// The list of the array.
    pub const LIST: u8 = 15;
    /// The array's state: the tuple that ends with the list.
    pub const STATE: u8 = 16;
    /// The function that returns a scalar of NumPy, and what it takes: a data type, the bytes.
    pub const SCALAR: u8 = 17;
    pub const SCALAR_ARGUMENTS: u8 = 18;
    /// The class of data types, what it takes (a code first), one of it, and the state of one (the byte order second).
    pub const TYPES: u8 = 19;
    pub const TYPE_ARGUMENTS: u8 = 20;
    pub const TYPE: u8 = 21;
    pub const TYPE_STATE: u8 = 22;
    /// The classes `datetime.datetime` and `decimal.Decimal`.
    pub const TIME: u8 = 23;
    pub const DECIMAL: u8 = 24;
    /// What returns a `Timestamp` of pandas, and what it takes: a number, a frequency, no zone, and since 2.0 a unit.
    pub const TIMESTAMP: u8 = 25;
    pub const TIMESTAMP_ARGUMENTS: u8 = 26;
}

/// How a value is stored: as Python does, as the little-endian bytes of a scalar of NumPy, or as a count of a unit of
/// time since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
enum Form {
    Python,
    Bool,
    Signed,
    Unsigned,
    Float,
    /// UTF-32.
    Text,
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl Form {
    const ALL: [Form; 10] = [
        Form::Python,
        Form::Bool,
        Form::Signed,
        Form::Unsigned,
        Form::Float,
        Form::Text,
        Form::Seconds,
        Form::Milliseconds,
        Form::Microseconds,
        Form::Nanoseconds,
    ];

    /// By NumPy's number of a unit.
    fn of_unit(unit: i128) -> Option<Self> {
        Some(match unit {
            7 => Form::Seconds,
            8 => Form::Milliseconds,
            9 => Form::Microseconds,
            10 => Form::Nanoseconds,
            _ => return None,
        })
    }

    /// Reads a count of this unit.
    fn timestamp(self, count: i128) -> Option<Cell<'static>> {
        let micros = |each: i128| Some(Cell::Time(i64::try_from(count.checked_mul(each)?).ok()?));
        match self {
            Form::Seconds => micros(1_000_000),
            Form::Milliseconds => micros(1000),
            Form::Microseconds => micros(1),
            Form::Nanoseconds => Some(Cell::Nanoseconds(count.try_into().ok()?)),
            _ => None,
        }
    }

    /// By the code of a data type: `f8`.
    fn of(code: &[u8]) -> Option<Self> {
        Some(match code.first()? {
            b'b' => Form::Bool,
            b'i' => Form::Signed,
            b'u' => Form::Unsigned,
            b'f' => Form::Float,
            b'U' => Form::Text,
            _ => return None,
        })
    }

    /// Reads a scalar of NumPy; `None` where it has not the bytes of one.
    fn scalar(self, bytes: &[u8]) -> Option<Cell<'static>> {
        let number = || {
            let mut number = [0; 8];
            number.get_mut(..bytes.len())?.copy_from_slice(bytes);
            matches!(bytes.len(), 1 | 2 | 4 | 8).then_some(u64::from_le_bytes(number))
        };
        Some(match self {
            Form::Bool => Cell::Bool(*bytes.first().filter(|_| bytes.len() == 1)? != 0),
            Form::Unsigned => Cell::Integer(number()?.into()),
            Form::Signed => {
                let number = number()?.cast_signed();
                let unused = 64 - 8 * bytes.len() as u32;
                Cell::Integer((number << unused >> unused).into())
            }
            Form::Float => Cell::Float(match *bytes {
                [a, b] => f16::from_le_bytes([a, b]).into(),
                [a, b, c, d] => f32::from_le_bytes([a, b, c, d]).into(),
                _ => f64::from_le_bytes(bytes.try_into().ok()?),
            }),
            Form::Text => {
                let (units, []) = bytes.as_chunks() else { return None };
                let character = |unit: &[u8; 4]| char::from_u32(u32::from_le_bytes(*unit)).unwrap_or('\u{fffd}');
                let mut text: String = units.iter().map(character).collect();
                text.truncate(text.trim_end_matches('\0').len());
                Cell::Text(text.into())
            }
            _ => return None,
        })
    }
}

/// A tag in the upper 8 bits, a [`Form`] in the next, and in the others where the token of the value, or of an object's
/// class, stands. One more than that, so that an option takes 8 bytes as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot(NonZeroU64);

impl Slot {
    fn new(tag: u8, at: usize) -> Self {
        Self(NonZeroU64::MIN.saturating_add(u64::from(tag) << 56 | at as u64))
    }

    fn formed(tag: u8, form: Form, at: usize) -> Self {
        Self::new(tag, (form as usize) << 48 | at)
    }

    fn kind(kind: Kind, at: usize) -> Self {
        Self::new(kind as u8, at)
    }

    fn tag(self) -> u8 {
        ((self.0.get() - 1) >> 56) as u8
    }

    fn form(self) -> Form {
        Form::ALL[((self.0.get() - 1) >> 48 & 0xff) as usize % Form::ALL.len()]
    }

    fn at(self) -> usize {
        ((self.0.get() - 1) & (u64::MAX >> 16)) as usize
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

    /// Where a value stands in the pickle. An array of one dimension has column 0 alone.
    pub fn place(&self, row: usize, column: usize) -> Option<Place> {
        let columns = self.columns.unwrap_or(1);
        let slot = self.values.get(row.checked_mul(columns)?.checked_add(column)?).filter(|_| column < columns)?;
        Some(Place { kind: Kind::ALL[usize::from(slot.tag())], form: slot.form(), at: slot.at() })
    }

    /// Reads a value from the pickle that was scanned.
    pub fn cell<'a>(&self, row: usize, column: usize, pickle: &'a [u8]) -> Option<Cell<'a>> {
        Cell::read(self.place(row, column)?, pickle)
    }

    /// Bytes of a text as stored, without looking at them; 0 for what is no text. Decoded it has at most three times as
    /// many. One long text may be the value of many rows.
    pub fn text_length(&self, row: usize, column: usize, pickle: &[u8]) -> usize {
        let place = self.place(row, column).filter(|place| matches!(place.kind, Kind::Text | Kind::Decimal));
        match place.map(|place| Tokens::new(pickle, place.at).next()) {
            Some(Ok(Token::Text(_, bytes) | Token::Bytes(bytes))) => bytes.len(),
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

/// A place in the pickle: what is the same place is the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    kind: Kind,
    form: Form,
    /// Where the value's token begins.
    at: usize,
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
    /// Microseconds since 1970.
    Time(i64),
    /// Nanoseconds since 1970.
    Nanoseconds(i64),
    /// The digits of a decimal number, as Python wrote them.
    Decimal(Cow<'a, str>),
    /// Anything else: the name of its class, as far as it is known.
    Other(Cow<'a, str>),
}

impl<'a> Cell<'a> {
    /// Reads a value. `None`: these are other bytes, or too few.
    fn read(Place { kind, form, at }: Place, pickle: &'a [u8]) -> Option<Self> {
        // A missing value may be that of a class.
        if kind == Kind::None {
            return Some(Cell::None);
        }
        let token = Tokens::new(pickle, at).next().ok()?;
        if form != Form::Python {
            return match token {
                Token::Integer(count) => form.timestamp(count?),
                _ => form.scalar(content(token)?),
            };
        }
        Some(match (kind, token) {
            (Kind::Bool, Token::Bool(value)) => Cell::Bool(value),
            (Kind::Integer, Token::Integer(value)) => Cell::Integer(value?),
            (Kind::Float | Kind::Nan, Token::Float(value)) => Cell::Float(value),
            (Kind::Text, Token::Text(encoding, bytes)) => Cell::Text(tokens::text(encoding, bytes)?),
            (Kind::Date, token) => Cell::Date(date(token)?),
            (Kind::Time, token) => Cell::Time(time(token)?),
            (Kind::Decimal, Token::Text(encoding, bytes)) => Cell::Decimal(tokens::text(encoding, bytes)?),
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

/// Bytes, which Python 2 had in a string.
fn content(token: Token<'_>) -> Option<&[u8]> {
    match token {
        Token::Bytes(bytes) | Token::Text(Encoding::Python2, bytes) => Some(bytes),
        _ => None,
    }
}

/// Days since 1970 of a `datetime.date`: the year in two bytes, the most significant one first, month and day.
fn date(token: Token<'_>) -> Option<i32> {
    let [high, low, month, day] = *content(token)? else { return None };
    shapes::days(u16::from_be_bytes([high, low]).into(), month.into(), day.into())?.try_into().ok()
}

/// Microseconds since 1970 of a `datetime.datetime`: the bytes of a date, whose month has a bit for the second of two
/// equal hours of the clock; hour, minute, second, and three bytes of microseconds, the most significant one first.
fn time(token: Token<'_>) -> Option<i64> {
    let [high, low, month, day, hour, minute, second, rest @ ..] = content(token)? else { return None };
    let [first, middle, last] = *rest else { return None };
    let days = shapes::days(u16::from_be_bytes([*high, *low]).into(), (*month & 0x7f).into(), (*day).into())?;
    let micros = u32::from_be_bytes([0, first, middle, last]);
    let seconds = (i64::from(*hour) * 60 + i64::from(*minute)) * 60 + i64::from(*second);
    let is_time = *hour < 24 && *minute < 60 && *second < 60 && micros < 1_000_000;
    is_time.then_some((days * 86_400 + seconds) * 1_000_000 + i64::from(micros))
}

/// What a `decimal.Decimal` of this text is; `None` where it is none, or one of more digits than anybody means.
fn decimal(bytes: &[u8]) -> Option<Kind> {
    let number = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'E' | b'+' | b'-');
    // A long one may be called for again and again.
    match number {
        _ if number.len() > LONGEST_DECIMAL => None,
        b"Infinity" => Some(Kind::Decimal),
        [b'N', b'a', b'N', ..] | [b's', b'N', b'a', b'N', ..] => Some(Kind::None),
        [b'0'..=b'9', ..] if number.iter().all(is_digit) => Some(Kind::Decimal),
        _ => None,
    }
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
    let slots = Slots { bytes, values, count, is_swapped: false };
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
        Node::Symbol(module, name) => class(module.as_bytes(), name.as_bytes(), origin),
        _ => Slot::kind(Kind::Other, origin),
    }
}

/// What is to be known of a class or function.
fn class(module: &[u8], name: &[u8], at: usize) -> Slot {
    match (module, name) {
        (b"datetime", b"date") => Slot::new(tag::DATE, at),
        (b"datetime", b"datetime") => Slot::new(tag::TIME, at),
        (b"decimal" | b"_decimal" | b"_pydecimal", b"Decimal") => Slot::new(tag::DECIMAL, at),
        (_, b"_unpickle_timestamp" | b"Timestamp") if module.starts_with(b"pandas.") => Slot::new(tag::TIMESTAMP, at),
        (b"pandas" | b"pandas._libs.missing", b"NA") => Slot::kind(Kind::None, at),
        (b"pandas._libs.tslibs.nattype", b"_nat_unpickle" | b"__nat_unpickle") => Slot::new(tag::NAT, at),
        (b"numpy._core.multiarray" | b"numpy.core.multiarray", b"scalar") => Slot::new(tag::SCALAR, at),
        (b"numpy", b"dtype") => Slot::new(tag::TYPES, at),
        _ => Slot::kind(Kind::Other, at),
    }
}

/// The values of a machine that runs the list.
struct Slots<'a> {
    bytes: &'a [u8],
    values: Vec<Slot>,
    /// Values by the shape.
    count: usize,
    /// Whether there was a data type of another byte order than the one that is read.
    is_swapped: bool,
}

impl Slots<'_> {
    /// The bytes of a text.
    fn text(&self, slot: Slot) -> Option<&[u8]> {
        match Tokens::new(self.bytes, slot.at()).next() {
            Ok(Token::Text(_, bytes)) if slot.tag() == Kind::Text as u8 => Some(bytes),
            _ => None,
        }
    }

    /// The bytes of such a slot.
    fn content(&self, slot: Slot) -> Option<&[u8]> {
        Tokens::new(self.bytes, slot.at()).next().ok().and_then(content)
    }

    /// The number of such a slot.
    fn integer(&self, slot: Slot) -> Option<i128> {
        match Tokens::new(self.bytes, slot.at()).next() {
            Ok(Token::Integer(value)) if slot == Slot::kind(Kind::Integer, slot.at()) => value,
            _ => None,
        }
    }

    /// In which form a `Timestamp` is whose unit may be told.
    fn timestamp(&self, units: &[Slot]) -> Option<Form> {
        match units {
            [] => Some(Form::Nanoseconds),
            [unit] => Form::of_unit(self.integer(*unit)?),
            _ => None,
        }
    }

    /// What the function for scalars of NumPy returns.
    fn scalar(&self, arguments: Slot) -> Option<Slot> {
        let bytes = self.content(arguments).filter(|_| !self.is_swapped)?;
        let kind = match arguments.form() {
            // A long one may be called for again and again: it is decoded where it is shown.
            Form::Text => bytes.len().is_multiple_of(4).then_some(Kind::Text)?,
            form => match form.scalar(bytes)? {
                Cell::Bool(_) => Kind::Bool,
                Cell::Integer(_) => Kind::Integer,
                Cell::Float(value) if value.is_nan() => Kind::Nan,
                Cell::Float(_) => Kind::Float,
                _ => return None,
            },
        };
        Some(Slot::formed(kind as u8, arguments.form(), arguments.at()))
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
        let is_text = |slot: &Slot| slot.tag() == Kind::Text as u8;
        let is_bytes = |slot: &Slot| slot.tag() == tag::BYTES || is_text(slot);
        Ok(match (container, items) {
            (Container::Tuple, [item]) if item.tag() == tag::LIST => Slot::new(tag::STATE, at),
            (Container::Tuple, [item]) if is_bytes(item) => Slot::new(tag::BYTES_TUPLE, item.at()),
            (Container::Tuple, [data_type, bytes]) if data_type.tag() == tag::TYPE && is_bytes(bytes) => {
                let code = Slot::kind(Kind::Text, data_type.at());
                let form = self.text(code).and_then(Form::of);
                form.map_or(Slot::kind(Kind::Other, at), |form| Slot::formed(tag::SCALAR_ARGUMENTS, form, bytes.at()))
            }
            (Container::Tuple, [_, order, _, _, _, ..]) if is_text(order) => Slot::new(tag::TYPE_STATE, order.at()),
            (Container::Tuple, [count, _, zone, units @ ..])
                if count.tag() == Kind::Integer as u8 && zone.tag() == Kind::None as u8 =>
            {
                let form = self.timestamp(units);
                form.map_or(Slot::kind(Kind::Other, at), |form| {
                    Slot::formed(tag::TIMESTAMP_ARGUMENTS, form, count.at())
                })
            }
            (Container::Tuple, [code, _, _]) if is_text(code) => Slot::new(tag::TYPE_ARGUMENTS, code.at()),
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
        let argument = || Tokens::new(self.bytes, arguments.at()).next().ok();
        let digits = || match argument()? {
            Token::Text(_, bytes) => decimal(bytes),
            _ => None,
        };
        Ok(match (function.tag(), arguments.tag()) {
            (tag::SCALAR, tag::SCALAR_ARGUMENTS) => {
                self.scalar(arguments).unwrap_or(Slot::kind(Kind::Other, function.at()))
            }
            (tag::TYPES, tag::TYPE_ARGUMENTS) => Slot::new(tag::TYPE, arguments.at()),
            (tag::DATE, tag::BYTES_TUPLE) if argument().and_then(date).is_some() => {
                Slot::kind(Kind::Date, arguments.at())
            }
            (tag::TIME, tag::BYTES_TUPLE) if argument().and_then(time).is_some() => {
                Slot::kind(Kind::Time, arguments.at())
            }
            (tag::TIMESTAMP, tag::TIMESTAMP_ARGUMENTS) => {
                let count = self.integer(Slot::kind(Kind::Integer, arguments.at()));
                let kind = match count.and_then(|count| arguments.form().timestamp(count)) {
                    Some(Cell::Time(_)) => Kind::Time,
                    Some(_) => Kind::Nanoseconds,
                    None => return Ok(Slot::kind(Kind::Other, function.at())),
                };
                Slot::formed(kind as u8, arguments.form(), arguments.at())
            }
            (tag::DECIMAL, tag::BYTES_TUPLE) => {
                digits().map_or(Slot::kind(Kind::Other, function.at()), |kind| Slot::kind(kind, arguments.at()))
            }
            (tag::NAT, _) => Slot::kind(Kind::None, at),
            _ => Slot::kind(Kind::Other, function.at()),
        })
    }

    fn build(&mut self, object: Slot, state: Slot, _: usize) -> Result<Slot, Error> {
        Ok(match (object.tag(), state.tag()) {
            (tag::TYPE, tag::TYPE_STATE) => {
                let order = self.text(Slot::kind(Kind::Text, state.at()));
                self.is_swapped |= !matches!(order, Some(b"<" | b"|"));
                object
            }
            _ => Slot::kind(Kind::Other, object.at()),
        })
    }
}
