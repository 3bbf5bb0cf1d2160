//! Scans a pickled NumPy array of objects: finds the kind and place of each value and never builds it.
//!
//! ```text
//! Build(Call(_reconstruct, (ndarray, (0,), b"b")), (version, shape, dtype, is_fortran, [value, …]))
//! ```
//!
//! The part before the list is small and becomes a tree, as attributes do. In the list, a value is a [`Slot`] of 8
//! bytes: containers and objects have no content there.

use std::num::NonZeroU64;

use super::Error;
use super::cell::{CellForm, CellKind, CellPlace, PickledCell, content, date, decimal, micros};
use super::machine::{Machine, PickleBudget, PickleBuilder};
use super::shapes;
use super::tokens::{self, CUT, PickleOpcode, PickleTextEncoding, PythonContainer, Tokens};
use super::tree::{self, Arena, PickleNode, PickleValue};

/// The list must begin within this many bytes: about 250 are usual.
const BEFORE: usize = 64 << 10;
/// Tokens between two calls of `keep_going`.
const PATIENCE: usize = 1 << 16;

/// Tags of slots whose values have no [`CellKind`]. As values of the array, they have the kind `Other`.
mod tag {
    pub const BYTES: u8 = 15;
    /// A tuple that holds nothing but bytes.
    pub const BYTES_TUPLE: u8 = 16;
    /// The class `datetime.date`.
    pub const DATE: u8 = 17;
    /// The function that returns `NaT`.
    pub const NAT: u8 = 18;
    /// The list of the array.
    pub const LIST: u8 = 19;
    /// The array's state: the tuple that ends with the list.
    pub const STATE: u8 = 20;
    /// The function that returns a NumPy scalar.
    pub const SCALAR: u8 = 21;
    /// The arguments of that function: a data type, the bytes.
    pub const SCALAR_ARGUMENTS: u8 = 22;
    /// The class of data types.
    pub const TYPES: u8 = 23;
    /// The arguments of that class, a code first.
    pub const TYPE_ARGUMENTS: u8 = 24;
    /// An instance of that class: a data type.
    pub const TYPE: u8 = 25;
    /// The state of a data type, with the byte order second.
    pub const TYPE_STATE: u8 = 26;
    /// The class `datetime.datetime`.
    pub const TIME: u8 = 27;
    /// The class `decimal.Decimal`.
    pub const DECIMAL: u8 = 28;
    /// A function that returns a `Timestamp` of pandas.
    pub const TIMESTAMP: u8 = 29;
    /// The arguments of such a function: a number, a frequency, no zone, and since 2.0 a unit.
    pub const TIMESTAMP_ARGUMENTS: u8 = 30;
    /// Such arguments with a zone.
    pub const ZONED_ARGUMENTS: u8 = 31;
}

/// A tag in the upper 8 bits, a [`CellForm`] in the next, and in the rest the offset of the token of the value, or of
/// an object's class. The stored number is one more than that, so that an `Option<Slot>` also takes 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot(NonZeroU64);

impl Slot {
    fn new(tag: u8, at: usize) -> Self {
        Self(NonZeroU64::MIN.saturating_add(u64::from(tag) << 56 | at as u64))
    }

    fn formed(tag: u8, form: CellForm, at: usize) -> Self {
        Self::new(tag, (form as usize) << 48 | at)
    }

    fn kind(kind: CellKind, at: usize) -> Self {
        Self::new(kind as u8, at)
    }

    fn tag(self) -> u8 {
        ((self.0.get() - 1) >> 56) as u8
    }

    fn form(self) -> CellForm {
        CellForm::ALL[((self.0.get() - 1) >> 48 & 0xff) as usize % CellForm::ALL.len()]
    }

    fn at(self) -> usize {
        ((self.0.get() - 1) & (u64::MAX >> 16)) as usize
    }

    /// The slot of the same value in the array, whose values have kinds: `Other` replaces a tag.
    fn value(self) -> Self {
        if self.tag() > CellKind::Other as u8 { Self::kind(CellKind::Other, self.at()) } else { self }
    }
}

/// The index of a pickled NumPy array of objects, of one or two dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectArray {
    rows: usize,
    columns: Option<usize>,
    /// The values, row by row.
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

    /// Bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<Slot>()
    }

    /// The place of a value in the pickle. A one-dimensional array has only column 0.
    pub fn place(&self, row: usize, column: usize) -> Option<CellPlace> {
        let columns = self.columns.unwrap_or(1);
        let slot = self.values.get(row.checked_mul(columns)?.checked_add(column)?).filter(|_| column < columns)?;
        Some(CellPlace { kind: CellKind::ALL[usize::from(slot.tag())], form: slot.form(), at: slot.at() })
    }

    /// Reads a value from the scanned pickle.
    pub fn cell<'a>(&self, row: usize, column: usize, pickle: &'a [u8]) -> Option<PickledCell<'a>> {
        PickledCell::read(self.place(row, column)?, pickle)
    }

    /// Bytes of a text as stored, without reading them; 0 for other values. Decoded it has at most three times as many.
    /// Many rows may share one long text.
    pub fn text_length(&self, row: usize, column: usize, pickle: &[u8]) -> usize {
        let place = self.place(row, column).filter(|place| matches!(place.kind, CellKind::Text | CellKind::Decimal));
        match place.map(|place| Tokens::new(pickle, place.at).next()) {
            Some(Ok(PickleOpcode::Text(_, bytes) | PickleOpcode::Bytes(bytes))) => bytes.len(),
            _ => 0,
        }
    }

    /// Counts the values of each kind in a column, in the order of [`CellKind::ALL`].
    pub fn counts(&self, column: usize) -> [usize; CellKind::ALL.len()] {
        let columns = self.columns.unwrap_or(1);
        let mut counts = [0; CellKind::ALL.len()];
        if column < columns {
            let slots = self.values.iter().skip(column).step_by(columns);
            slots.for_each(|slot| counts[usize::from(slot.tag())] += 1);
        }
        counts
    }
}

/// Scans a pickled NumPy array of objects, of protocol 2 to 5, in one pass.
///
/// It takes at most `limit` bytes of memory: 8 for each value, which remain, and during the scan 8 for each memo entry
/// (a distinct text has one, a date three) and a few kB. It calls `keep_going` every 65,536 tokens. The values are
/// stored row by row, whatever order the array states.
///
/// # Errors
/// A malformed token, and its offset; a pickle of anything but an array of objects; a shape that does not match the
/// values; too much memory; an interruption.
pub fn object_array(bytes: &[u8], limit: usize, keep_going: &dyn Fn() -> bool) -> Result<ObjectArray, Error> {
    let before = machine_before_list(bytes)?;
    let (rows, columns) = shape(&before)?;
    // A value takes at least a byte, and rows without columns are limited to what a walk can take.
    let within = |extent: u64| usize::try_from(extent).ok().filter(|extent| *extent <= bytes.len());
    let count = rows.checked_mul(columns.unwrap_or(1)).and_then(within);
    let (Some(rows), Some(_), Some(count)) = (within(rows), within(columns.unwrap_or(1)), count) else {
        let expected = rows.saturating_mul(columns.unwrap_or(1).max(1));
        return Err(Error::Length { expected, found: bytes.len() as u64 });
    };
    let mut budget = PickleBudget { used: 0, limit };
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
            PickleOpcode::Nothing | PickleOpcode::Memoize | PickleOpcode::Put(_) if !built => {}
            PickleOpcode::Build if !built => built = true,
            PickleOpcode::Stop if built => break,
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
            // The cut is ours: the rest of the pickle was not passed on.
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
    let is_of_objects = machine.values.value(*data_type).0.call().is_some_and(|(module, name, arguments)| {
        let code = arguments.item(0).and_then(PickleValue::text);
        module == "numpy" && name == "dtype" && code.is_some_and(|code| code.trim_start_matches('|').starts_with('O'))
    });
    shapes::is_array(machine.values.value(*array).0) && is_of_objects
}

/// The number of rows of the pickled array, and of columns if it has two dimensions.
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

/// The slot of a value before the list. A value in the list may be the same object: texts are interned.
fn known((value, origin): (PickleValue<'_>, usize)) -> Slot {
    match value.node() {
        PickleNode::Text(_) => Slot::kind(CellKind::Text, origin),
        PickleNode::Bytes(_) => Slot::new(tag::BYTES, origin),
        PickleNode::Symbol(module, name) => class(module.as_bytes(), name.as_bytes(), origin),
        _ => Slot::kind(CellKind::Other, origin),
    }
}

/// The slot of a class or function.
fn class(module: &[u8], name: &[u8], at: usize) -> Slot {
    match (module, name) {
        (b"datetime", b"date") => Slot::new(tag::DATE, at),
        (b"datetime", b"datetime") => Slot::new(tag::TIME, at),
        (b"decimal" | b"_decimal" | b"_pydecimal", b"Decimal") => Slot::new(tag::DECIMAL, at),
        (_, b"_unpickle_timestamp" | b"Timestamp") if module.starts_with(b"pandas.") => Slot::new(tag::TIMESTAMP, at),
        (b"pandas" | b"pandas._libs.missing", b"NA") => Slot::kind(CellKind::None, at),
        (b"pandas._libs.tslibs.nattype", b"_nat_unpickle" | b"__nat_unpickle") => Slot::new(tag::NAT, at),
        (b"numpy._core.multiarray" | b"numpy.core.multiarray", b"scalar") => Slot::new(tag::SCALAR, at),
        (b"numpy", b"dtype") => Slot::new(tag::TYPES, at),
        _ => Slot::kind(CellKind::Other, at),
    }
}

/// Whether a slot is an integer that may count time.
fn is_integer(slot: Slot) -> bool {
    slot.tag() == CellKind::Integer as u8 || slot.tag() == CellKind::Long as u8
}

/// The values of the machine that runs the list.
struct Slots<'a> {
    bytes: &'a [u8],
    values: Vec<Slot>,
    /// Number of values according to the shape.
    count: usize,
    /// Whether a data type of the other byte order occurred.
    is_swapped: bool,
}

impl Slots<'_> {
    /// The bytes of a text.
    fn text(&self, slot: Slot) -> Option<&[u8]> {
        match Tokens::new(self.bytes, slot.at()).next() {
            Ok(PickleOpcode::Text(_, bytes)) if slot.tag() == CellKind::Text as u8 => Some(bytes),
            _ => None,
        }
    }

    /// The content of a slot for bytes.
    fn content(&self, slot: Slot) -> Option<&[u8]> {
        Tokens::new(self.bytes, slot.at()).next().ok().and_then(content)
    }

    /// The number of a slot for an integer.
    fn integer(&self, slot: Slot) -> Option<i128> {
        match Tokens::new(self.bytes, slot.at()).next() {
            Ok(PickleOpcode::Integer(value)) if is_integer(slot) && slot.form() == CellForm::Python => value,
            _ => None,
        }
    }

    /// The form of a `Timestamp`; `units` has the unit, if it is stated.
    fn timestamp(&self, units: &[Slot]) -> Option<CellForm> {
        match units {
            [] => Some(CellForm::Nanoseconds),
            [unit] => CellForm::of_unit(self.integer(*unit)?),
            _ => None,
        }
    }

    /// The slot of a NumPy scalar.
    fn scalar(&self, arguments: Slot) -> Option<Slot> {
        let bytes = self.content(arguments).filter(|_| !self.is_swapped)?;
        let kind = match arguments.form() {
            // Many rows may share a long text, so it is decoded only for display.
            CellForm::Text => bytes.len().is_multiple_of(4).then_some(CellKind::Text)?,
            form => match form.scalar(bytes)? {
                PickledCell::Bool(_) => CellKind::Bool,
                PickledCell::Integer(value) => CellKind::of_integer(value),
                PickledCell::Float(value) if value.is_nan() => CellKind::Nan,
                PickledCell::Float(_) => CellKind::Float,
                _ => return None,
            },
        };
        Some(Slot::formed(kind as u8, arguments.form(), arguments.at()))
    }
}

impl PickleBuilder for Slots<'_> {
    type Value = Slot;

    #[inline]
    fn leaf(&mut self, token: PickleOpcode<'_>, at: usize) -> Result<Slot, Error> {
        let kind = match token {
            PickleOpcode::Text(encoding @ (PickleTextEncoding::Escaped | PickleTextEncoding::Literal), bytes) => {
                tokens::text(encoding, bytes).ok_or(Error::Token { at, what: "a malformed text" })?;
                CellKind::Text
            }
            PickleOpcode::Text(..) => CellKind::Text,
            PickleOpcode::None => CellKind::None,
            PickleOpcode::Bool(_) => CellKind::Bool,
            PickleOpcode::Integer(Some(value)) => CellKind::of_integer(value),
            PickleOpcode::Float(value) if value.is_nan() => CellKind::Nan,
            PickleOpcode::Float(_) => CellKind::Float,
            PickleOpcode::Bytes(_) => return Ok(Slot::new(tag::BYTES, at)),
            PickleOpcode::Global(module, name) => return Ok(class(module, name, at)),
            _ => CellKind::Other,
        };
        Ok(Slot::kind(kind, at))
    }

    fn symbol(&mut self, module: Slot, name: Slot, at: usize) -> Result<Slot, Error> {
        let names = self.text(module).zip(self.text(name));
        let (module, text) = names.ok_or(Error::Token { at, what: "the names on the stack are no texts" })?;
        Ok(class(module, text, name.at()))
    }

    #[inline]
    fn make(&mut self, container: PythonContainer, items: &[Slot], at: usize) -> Result<Slot, Error> {
        let is_text = |slot: &Slot| slot.tag() == CellKind::Text as u8;
        let is_bytes = |slot: &Slot| slot.tag() == tag::BYTES || is_text(slot);
        Ok(match (container, items) {
            (PythonContainer::Tuple, [item]) if item.tag() == tag::LIST => Slot::new(tag::STATE, at),
            (PythonContainer::Tuple, [item]) if is_bytes(item) => Slot::new(tag::BYTES_TUPLE, item.at()),
            (PythonContainer::Tuple, [data_type, bytes]) if data_type.tag() == tag::TYPE && is_bytes(bytes) => {
                let code = Slot::kind(CellKind::Text, data_type.at());
                let form = self.text(code).and_then(CellForm::of);
                form.map_or(Slot::kind(CellKind::Other, at), |form| {
                    Slot::formed(tag::SCALAR_ARGUMENTS, form, bytes.at())
                })
            }
            (PythonContainer::Tuple, [_, order, _, _, _, ..]) if is_text(order) => {
                Slot::new(tag::TYPE_STATE, order.at())
            }
            (PythonContainer::Tuple, [count, _, zone, units @ ..]) if is_integer(*count) => {
                let is_zoned = zone.tag() != CellKind::None as u8;
                let tag = if is_zoned { tag::ZONED_ARGUMENTS } else { tag::TIMESTAMP_ARGUMENTS };
                let form = self.timestamp(units);
                form.map_or(Slot::kind(CellKind::Other, at), |form| Slot::formed(tag, form, count.at()))
            }
            (PythonContainer::Tuple, [code, _, _]) if is_text(code) => Slot::new(tag::TYPE_ARGUMENTS, code.at()),
            _ => Slot::kind(CellKind::Other, at),
        })
    }

    #[inline]
    fn extend(&mut self, into: Slot, _: PythonContainer, items: &[Slot], _: usize) -> Result<(), Error> {
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
        Ok(match (function.tag(), arguments.tag()) {
            (tag::SCALAR, tag::SCALAR_ARGUMENTS) => {
                self.scalar(arguments).unwrap_or(Slot::kind(CellKind::Other, function.at()))
            }
            (tag::TYPES, tag::TYPE_ARGUMENTS) => Slot::new(tag::TYPE, arguments.at()),
            (tag::DATE, tag::BYTES_TUPLE) if argument().and_then(date).is_some() => {
                Slot::kind(CellKind::Date, arguments.at())
            }
            (tag::TIME, tag::BYTES_TUPLE) if argument().and_then(micros).is_some() => {
                Slot::kind(CellKind::Time, arguments.at())
            }
            (tag::TIMESTAMP, of @ (tag::TIMESTAMP_ARGUMENTS | tag::ZONED_ARGUMENTS)) => {
                let count = self.integer(Slot::kind(CellKind::Integer, arguments.at()));
                let is_zoned = of == tag::ZONED_ARGUMENTS;
                match count.and_then(|count| arguments.form().timestamp(count, is_zoned)) {
                    Some(time) => Slot::formed(time.kind() as u8, arguments.form(), arguments.at()),
                    None => Slot::kind(CellKind::Other, function.at()),
                }
            }
            (tag::DECIMAL, tag::BYTES_TUPLE) => {
                let digits = match argument() {
                    Some(PickleOpcode::Text(_, bytes)) => decimal(bytes),
                    _ => None,
                };
                digits.map_or(Slot::kind(CellKind::Other, function.at()), |kind| Slot::kind(kind, arguments.at()))
            }
            (tag::NAT, _) => Slot::kind(CellKind::None, at),
            _ => Slot::kind(CellKind::Other, function.at()),
        })
    }

    fn build(&mut self, object: Slot, state: Slot, _: usize) -> Result<Slot, Error> {
        Ok(match (object.tag(), state.tag()) {
            (tag::TYPE, tag::TYPE_STATE) => {
                let order = self.text(Slot::kind(CellKind::Text, state.at()));
                self.is_swapped |= !matches!(order, Some(b"<" | b"|"));
                object
            }
            _ => Slot::kind(CellKind::Other, object.at()),
        })
    }
}
