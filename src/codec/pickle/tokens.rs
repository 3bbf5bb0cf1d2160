//! The tokens of a pickle: an opcode and its argument.

use std::borrow::Cow;

use super::Error;

/// Most digits of an integer to parse: 128 bits have 39.
const DIGITS: usize = 64;

/// The error for a token that extends past the pickle's end.
pub(super) const CUT: &str = "the pickle is cut short";

/// How text is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PickleTextEncoding {
    Utf8,
    /// Latin-1 with `\u000a` and `\U0001f600`.
    Escaped,
    /// A string of Python 2: bytes without an encoding.
    Python2,
    /// A string literal in quotes.
    Literal,
}

/// A type of Python's containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PythonContainer {
    List,
    Tuple,
    Dict,
    Set,
}

/// The values on the stack that an opcode takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StackSpan {
    /// This number of values.
    Values(usize),
    /// All values above the last mark.
    Mark,
}

/// An opcode with its argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PickleOpcode<'a> {
    Mark,
    Stop,
    Pop,
    PopMark,
    Duplicate,
    None,
    Bool(bool),
    /// `None`: more than 128 bits.
    Integer(Option<i128>),
    Float(f64),
    Text(PickleTextEncoding, &'a [u8]),
    /// `bytes` of Python 3.
    Bytes(&'a [u8]),
    /// Module and name of a class or function.
    Global(&'a [u8], &'a [u8]),
    /// Module and name are on the stack.
    StackGlobal,
    Make(PythonContainer, StackSpan),
    Extend(PythonContainer, StackSpan),
    Put(u64),
    Memoize,
    Get(u64),
    /// A call of the function below its arguments (`REDUCE`), or of the class there (`NEWOBJ`).
    Call,
    /// As `Call`, with named arguments on top.
    CallNamed,
    /// A call of this class with all values above the mark, by Python 2.
    Instance(&'a [u8], &'a [u8]),
    /// As `Instance`, with the class as the first value above the mark.
    Object,
    Build,
    /// A protocol number, or the length of a frame, which have no effect.
    Nothing,
}

/// Reads tokens one after the other.
pub(super) struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Offset of the next token.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    #[inline]
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(n)?)?;
        self.at += n;
        Some(taken)
    }

    /// A little-endian number of `width` bytes.
    #[inline]
    fn number(&mut self, width: usize) -> Option<u64> {
        let mut number = [0; 8];
        number.get_mut(..width)?.copy_from_slice(self.take(width)?);
        Some(u64::from_le_bytes(number))
    }

    /// Bytes that follow their length, a number of `width` bytes.
    #[inline]
    fn counted(&mut self, width: usize) -> Option<&'a [u8]> {
        let n = self.number(width)?;
        self.take(usize::try_from(n).ok()?)
    }

    fn line(&mut self) -> Option<&'a [u8]> {
        let n = self.bytes.get(self.at..)?.iter().position(|byte| *byte == b'\n')?;
        let line = self.take(n + 1)?;
        line.get(..n)
    }

    /// Reads a token.
    #[inline]
    pub fn next(&mut self) -> Result<PickleOpcode<'a>, Error> {
        let at = self.at;
        self.read().unwrap_or(Err(CUT)).map_err(|what| Error::Token { at, what })
    }

    /// Reads an opcode and its argument. `None`: the pickle is cut short.
    #[inline]
    fn read(&mut self) -> Option<Result<PickleOpcode<'a>, &'static str>> {
        let opcode = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(Ok(match opcode {
            0x8c => PickleOpcode::Text(PickleTextEncoding::Utf8, self.counted(1)?),
            b'X' => PickleOpcode::Text(PickleTextEncoding::Utf8, self.counted(4)?),
            0x8d => PickleOpcode::Text(PickleTextEncoding::Utf8, self.counted(8)?),
            0x94 => PickleOpcode::Memoize,
            b'q' => PickleOpcode::Put(self.number(1)?),
            b'r' => PickleOpcode::Put(self.number(4)?),
            b'h' => PickleOpcode::Get(self.number(1)?),
            b'j' => PickleOpcode::Get(self.number(4)?),
            b'N' => PickleOpcode::None,
            b'G' => PickleOpcode::Float(f64::from_be_bytes(*self.take(8)?.first_chunk()?)),
            b'K' => PickleOpcode::Integer(Some(self.number(1)?.into())),
            b'M' => PickleOpcode::Integer(Some(self.number(2)?.into())),
            b'J' => PickleOpcode::Integer(Some((self.number(4)? as u32).cast_signed().into())),
            0x8a => PickleOpcode::Integer(little_endian(self.counted(1)?)),
            0x8b => PickleOpcode::Integer(little_endian(self.counted(4)?)),
            0x88 => PickleOpcode::Bool(true),
            0x89 => PickleOpcode::Bool(false),
            b'(' => PickleOpcode::Mark,
            b'V' => PickleOpcode::Text(PickleTextEncoding::Escaped, self.line()?),
            b'S' => PickleOpcode::Text(PickleTextEncoding::Literal, self.line()?),
            b'U' => PickleOpcode::Text(PickleTextEncoding::Python2, self.counted(1)?),
            b'T' => PickleOpcode::Text(PickleTextEncoding::Python2, self.counted(4)?),
            b'C' => PickleOpcode::Bytes(self.counted(1)?),
            b'B' => PickleOpcode::Bytes(self.counted(4)?),
            // Bytes and bytearray.
            0x8e | 0x96 => PickleOpcode::Bytes(self.counted(8)?),
            b'I' => match self.line()? {
                b"00" => PickleOpcode::Bool(false),
                b"01" => PickleOpcode::Bool(true),
                line => return Some(decimal(line).map(PickleOpcode::Integer)),
            },
            b'L' => {
                let line = self.line()?;
                return Some(decimal(line.strip_suffix(b"L").unwrap_or(line)).map(PickleOpcode::Integer));
            }
            b'F' => {
                let number = std::str::from_utf8(self.line()?).ok().and_then(|line| line.trim().parse().ok());
                return Some(number.map(PickleOpcode::Float).ok_or("no number"));
            }
            b'p' => return Some(entry(self.line()?).map(PickleOpcode::Put)),
            b'g' => return Some(entry(self.line()?).map(PickleOpcode::Get)),
            b'c' => PickleOpcode::Global(self.line()?, self.line()?),
            0x93 => PickleOpcode::StackGlobal,
            b'R' | 0x81 => PickleOpcode::Call,
            0x92 => PickleOpcode::CallNamed,
            b'i' => PickleOpcode::Instance(self.line()?, self.line()?),
            b'o' => PickleOpcode::Object,
            b'b' => PickleOpcode::Build,
            b']' => PickleOpcode::Make(PythonContainer::List, StackSpan::Values(0)),
            b')' => PickleOpcode::Make(PythonContainer::Tuple, StackSpan::Values(0)),
            b'}' => PickleOpcode::Make(PythonContainer::Dict, StackSpan::Values(0)),
            0x8f => PickleOpcode::Make(PythonContainer::Set, StackSpan::Values(0)),
            0x85..=0x87 => PickleOpcode::Make(PythonContainer::Tuple, StackSpan::Values(usize::from(opcode - 0x84))),
            b'l' => PickleOpcode::Make(PythonContainer::List, StackSpan::Mark),
            b't' => PickleOpcode::Make(PythonContainer::Tuple, StackSpan::Mark),
            b'd' => PickleOpcode::Make(PythonContainer::Dict, StackSpan::Mark),
            // A frozenset.
            0x91 => PickleOpcode::Make(PythonContainer::Set, StackSpan::Mark),
            b'a' => PickleOpcode::Extend(PythonContainer::List, StackSpan::Values(1)),
            b'e' => PickleOpcode::Extend(PythonContainer::List, StackSpan::Mark),
            b's' => PickleOpcode::Extend(PythonContainer::Dict, StackSpan::Values(2)),
            b'u' => PickleOpcode::Extend(PythonContainer::Dict, StackSpan::Mark),
            0x90 => PickleOpcode::Extend(PythonContainer::Set, StackSpan::Mark),
            b'0' => PickleOpcode::Pop,
            b'1' => PickleOpcode::PopMark,
            b'2' => PickleOpcode::Duplicate,
            0x80 => self.take(1).map(|_| PickleOpcode::Nothing)?,
            // Frames only help a reader of streams.
            0x95 => self.take(8).map(|_| PickleOpcode::Nothing)?,
            b'.' => PickleOpcode::Stop,
            _ => return Some(Err("an unsupported opcode")),
        }))
    }
}

/// An integer in two's complement. `None`: more than 128 bits.
fn little_endian(bytes: &[u8]) -> Option<i128> {
    let sign = if bytes.last().is_some_and(|last| *last >= 0x80) { 0xff } else { 0 };
    let mut number = [sign; 16];
    number.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i128::from_le_bytes(number))
}

fn decimal(line: &[u8]) -> Result<Option<i128>, &'static str> {
    let line = line.trim_ascii();
    let digits = line.strip_prefix(b"-").or(line.strip_prefix(b"+")).unwrap_or(line);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err("no integer");
    }
    let line = line.get(..DIGITS).unwrap_or(line);
    Ok(std::str::from_utf8(line).ok().and_then(|line| line.parse().ok()))
}

/// The number of a memo entry.
fn entry(line: &[u8]) -> Result<u64, &'static str> {
    let number = std::str::from_utf8(line).ok().and_then(|line| line.trim().parse().ok());
    number.ok_or("no number of a memo entry")
}

/// Decodes text. Invalid Unicode (a lone surrogate, damage) becomes U+FFFD.
pub(super) fn text(encoding: PickleTextEncoding, bytes: &[u8]) -> Option<Cow<'_, str>> {
    match encoding {
        PickleTextEncoding::Utf8 => Some(String::from_utf8_lossy(bytes)),
        PickleTextEncoding::Escaped => unescape_unicode(bytes).map(Cow::Owned),
        PickleTextEncoding::Python2 => Some(python2(Cow::Borrowed(bytes))),
        PickleTextEncoding::Literal => {
            let line = bytes.trim_ascii_end();
            let (quote, inner) = line.split_first()?;
            let inner = inner.strip_suffix(&[*quote]).filter(|_| matches!(quote, b'\'' | b'"'))?;
            Some(python2(if inner.contains(&b'\\') { unescape_bytes(inner)?.into() } else { inner.into() }))
        }
    }
}

/// Decodes as UTF-8 if valid, else as Latin-1.
fn python2(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    let latin1 = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect();
    match bytes {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).map_or_else(|_| Cow::Owned(latin1(bytes)), Cow::Borrowed),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8(bytes).unwrap_or_else(|error| latin1(error.as_bytes()))),
    }
}

/// Undoes Python's `raw-unicode-escape`. `None`: an escape without its digits, or of no character.
fn unescape_unicode(bytes: &[u8]) -> Option<String> {
    let mut text = String::with_capacity(bytes.len());
    let mut high: Option<u32> = None;
    let mut rest = bytes;
    while let Some((byte, after)) = rest.split_first() {
        let width = match (byte, after.first()) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            _ => 0,
        };
        let unit = if width > 0 {
            let digits = after.get(1..=width).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
            rest = after.get(1 + width..)?;
            u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok().filter(|unit| *unit <= 0x10_ffff)?
        } else {
            rest = after;
            u32::from(*byte)
        };
        // Python 2 stored characters beyond 16 bits as two surrogates.
        match (high.take(), unit) {
            (Some(high), 0xdc00..=0xdfff) => {
                text.extend(char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (unit - 0xdc00)));
                continue;
            }
            (Some(_), _) => text.push(char::REPLACEMENT_CHARACTER),
            (None, _) => {}
        }
        match unit {
            0xd800..=0xdbff => high = Some(unit),
            _ => text.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
        // A backslash protects the next character: `\\u0041` is not an escape.
        if width == 0
            && *byte == b'\\'
            && let Some((next, after)) = rest.split_first()
        {
            text.push(char::from(*next));
            rest = after;
        }
    }
    text.extend(high.map(|_| char::REPLACEMENT_CHARACTER));
    Some(text)
}

/// Undoes the escapes of a literal of Python 2. `None`: an escape without its digits.
fn unescape_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match rest.next()? {
            b'a' => out.push(7),
            b'b' => out.push(8),
            b't' => out.push(b'\t'),
            b'n' => out.push(b'\n'),
            b'v' => out.push(11),
            b'f' => out.push(12),
            b'r' => out.push(b'\r'),
            b'x' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                out.push((digit()? * 16 + digit()?) as u8);
            }
            first @ b'0'..=b'7' => {
                let mut octal = u32::from(first - b'0');
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|next| matches!(next, b'0'..=b'7')) else { break };
                    octal = octal * 8 + u32::from(digit - b'0');
                }
                out.push(octal as u8);
            }
            same @ (b'\\' | b'\'' | b'"') => out.push(same),
            other => out.extend([b'\\', other]),
        }
    }
    Some(out)
}
