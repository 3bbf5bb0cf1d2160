//! The values of a block.

use super::{MOST_OF_COLUMN, MOST_OF_ROW, Stop, TrevniReader};
use crate::codec::Error;

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrevniType {
    /// No bytes.
    Null,
    /// One bit.
    Boolean,
    /// A varint of 32 bits.
    Int,
    /// A varint of 64 bits.
    Long,
    /// Four bytes.
    Fixed32,
    /// Eight bytes.
    Fixed64,
    /// IEEE 754, four bytes.
    Float,
    /// IEEE 754, eight bytes.
    Double,
    /// UTF-8.
    String,
    /// Any bytes.
    Bytes,
}

impl TrevniType {
    /// All types with their names.
    pub const ALL: [(&str, Self); 10] = [
        ("null", Self::Null),
        ("boolean", Self::Boolean),
        ("int", Self::Int),
        ("long", Self::Long),
        ("fixed32", Self::Fixed32),
        ("fixed64", Self::Fixed64),
        ("float", Self::Float),
        ("double", Self::Double),
        ("string", Self::String),
        ("bytes", Self::Bytes),
    ];

    /// The type with this name, in any case.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, kind)| *kind)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// Bytes of a decoded value, not counting those of a text.
    fn width(self) -> u64 {
        match self {
            Self::Null => 0,
            Self::Boolean => 1,
            Self::Int | Self::Fixed32 | Self::Float => 4,
            Self::Long | Self::Fixed64 | Self::Double | Self::String | Self::Bytes => 8,
        }
    }

    /// Most values that this many bytes can hold; unlimited for `null`.
    fn most_in(self, size: u64) -> u64 {
        match self {
            Self::Null => u64::MAX,
            Self::Boolean => size.saturating_mul(8),
            Self::Int | Self::Long | Self::String | Self::Bytes => size,
            Self::Fixed32 | Self::Float => size / 4,
            Self::Fixed64 | Self::Double => size / 8,
        }
    }
}

/// Decoded values in succession.
#[derive(Clone, Debug, PartialEq)]
pub enum TrevniValues {
    /// This many nulls.
    Null(u64),
    /// Bits, the lowest of each byte first, and their number.
    Boolean(Vec<u8>, usize),
    /// `int`, `fixed32`.
    Int(Vec<i32>),
    /// `long`, `fixed64`.
    Long(Vec<i64>),
    /// `float`.
    Float(Vec<f32>),
    /// `double`.
    Double(Vec<f64>),
    /// `string`, `bytes`: the offset of each value and the final end, and the bytes of all values.
    Bytes(Vec<i64>, Vec<u8>),
}

impl TrevniValues {
    /// Number of values.
    pub fn len(&self) -> u64 {
        match self {
            Self::Null(count) => *count,
            Self::Boolean(_, count) => *count as u64,
            Self::Int(values) => values.len() as u64,
            Self::Long(values) => values.len() as u64,
            Self::Float(values) => values.len() as u64,
            Self::Double(values) => values.len() as u64,
            Self::Bytes(starts, _) => starts.len().saturating_sub(1) as u64,
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn new(kind: TrevniType, count: usize, size: usize) -> Self {
        match kind {
            TrevniType::Null => Self::Null(0),
            TrevniType::Boolean => Self::Boolean(Vec::with_capacity(count.div_ceil(8)), 0),
            TrevniType::Int | TrevniType::Fixed32 => Self::Int(Vec::with_capacity(count)),
            TrevniType::Long | TrevniType::Fixed64 => Self::Long(Vec::with_capacity(count)),
            TrevniType::Float => Self::Float(Vec::with_capacity(count)),
            TrevniType::Double => Self::Double(Vec::with_capacity(count)),
            TrevniType::String | TrevniType::Bytes => {
                let mut starts = Vec::with_capacity(count.saturating_add(1));
                starts.push(0);
                Self::Bytes(starts, Vec::with_capacity(size))
            }
        }
    }

    /// Appends `count` values, at most as many as the remaining bytes can hold.
    fn read(&mut self, kind: TrevniType, count: u64, reader: &mut TrevniReader<'_>) -> Result<(), Stop> {
        if count > kind.most_in(reader.left()) {
            return Err(format!("{count} more values in {} bytes", reader.left()).into());
        }
        if let Self::Null(values) = self {
            *values = values.saturating_add(count);
            return Ok(());
        }
        // There are at most eight for each byte of the block.
        let count = count as usize;
        match self {
            Self::Null(_) => {}
            Self::Boolean(bits, held) => append_bits(bits, held, reader.take(count.div_ceil(8))?, count),
            Self::Int(values) if kind == TrevniType::Int => {
                for _ in 0..count {
                    values.push(reader.int()?);
                }
            }
            Self::Long(values) if kind == TrevniType::Long => {
                for _ in 0..count {
                    values.push(reader.long()?);
                }
            }
            Self::Int(values) => values.extend(cells(reader, count)?.map(i32::from_le_bytes)),
            Self::Long(values) => values.extend(cells(reader, count)?.map(i64::from_le_bytes)),
            Self::Float(values) => values.extend(cells(reader, count)?.map(f32::from_le_bytes)),
            Self::Double(values) => values.extend(cells(reader, count)?.map(f64::from_le_bytes)),
            Self::Bytes(starts, all) => {
                for _ in 0..count {
                    all.extend_from_slice(reader.bytes()?);
                    starts.push(all.len() as i64);
                }
            }
        }
        Ok(())
    }
}

/// The next `count` values of `N` bytes.
fn cells<'a, const N: usize>(
    reader: &mut TrevniReader<'a>,
    count: usize,
) -> Result<impl Iterator<Item = [u8; N]> + use<'a, N>, Stop> {
    let bytes = reader.take(count.saturating_mul(N))?;
    Ok(bytes.as_chunks::<N>().0.iter().copied())
}

/// Appends `count` bits, from the lowest of the first byte up.
fn append_bits(bits: &mut Vec<u8>, held: &mut usize, from: &[u8], count: usize) {
    if held.is_multiple_of(8) {
        bits.extend_from_slice(from);
    } else {
        let shift = *held % 8;
        for byte in from {
            if let Some(last) = bits.last_mut() {
                *last |= byte << shift;
            }
            bits.push(byte >> (8 - shift));
        }
    }
    *held += count;
    bits.truncate(held.div_ceil(8));
    // Padding in the last byte has no meaning.
    if let (Some(last), used @ 1..) = (bits.last_mut(), *held % 8) {
        *last &= (1 << used) - 1;
    }
}

/// The content of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockContent {
    /// For an array: the offset of each entry's first value, and the final end.
    pub starts: Option<Vec<i64>>,
    /// The values of all entries.
    pub values: TrevniValues,
}

/// Most bytes that [`decode`] takes for a block of `size` bytes with this many entries.
pub fn weight(kind: TrevniType, is_array: bool, entries: u64, size: u64) -> u64 {
    let values = kind.most_in(size);
    let values = if kind == TrevniType::Null {
        0
    } else if is_array {
        values
    } else {
        values.min(entries)
    };
    let starts = if is_array { entries.saturating_add(1).saturating_mul(8) } else { 0 };
    let texts = if matches!(kind, TrevniType::String | TrevniType::Bytes) { size.saturating_add(8) } else { 0 };
    let values = if kind == TrevniType::Boolean { values / 8 + 1 } else { values.saturating_mul(kind.width()) };
    // A growing vector may take twice its content.
    let values = if is_array { values.saturating_mul(2) } else { values };
    starts.saturating_add(texts).saturating_add(values)
}

/// Decodes a block of `entries` entries: rows of the table, or values of the parent. With `runs`, negative lengths are
/// runs. It takes at most [`weight`] bytes of memory, which the caller must have reserved.
///
/// # Errors
/// Truncated values, bytes left over, or too many values.
pub fn decode(bytes: &[u8], kind: TrevniType, is_array: bool, runs: bool, entries: u64) -> Result<BlockContent, Error> {
    let mut reader = TrevniReader::of_all(bytes);
    let decoded = match is_array {
        true => arrays(&mut reader, kind, runs, entries),
        false => {
            let count = usize::try_from(entries.min(kind.most_in(reader.left()))).unwrap_or(0);
            let count = if kind == TrevniType::Null { 0 } else { count };
            let mut values = TrevniValues::new(kind, count, bytes.len());
            values.read(kind, entries, &mut reader).map(|()| BlockContent { starts: None, values })
        }
    };
    let decoded = decoded.map_err(|stop| match stop {
        Stop::More => "the block is cut short".into(),
        Stop::Bad(reason) => reason,
    })?;
    match reader.left() {
        0 => Ok(decoded),
        left => Err(format!("{left} bytes are left over behind its last row").into()),
    }
}

fn arrays(reader: &mut TrevniReader<'_>, kind: TrevniType, runs: bool, entries: u64) -> Result<BlockContent, Stop> {
    let mut starts = Vec::with_capacity(usize::try_from(entries).unwrap_or(0).saturating_add(1));
    let mut values = TrevniValues::new(kind, 0, 0);
    let mut total = 0_u64;
    starts.push(0);
    while (starts.len() as u64) <= entries {
        let (length, times) = match i64::from(reader.int()?) {
            length @ 0.. => (length as u64, 1),
            length if !runs => return Err(format!("the length {length} in version 1").into()),
            // This is a run of zeros or ones.
            length => (u64::from(length % 2 == 0), ((3 - length) >> 1) as u64),
        };
        if times > entries.saturating_add(1).saturating_sub(starts.len() as u64) {
            return Err(format!("a run of {times} lengths goes beyond the block").into());
        }
        if length > MOST_OF_ROW {
            return Err(format!("{length} values in a row").into());
        }
        let more = length.saturating_mul(times);
        if more > MOST_OF_COLUMN.saturating_sub(total) {
            return Err(format!("more than {MOST_OF_COLUMN} values").into());
        }
        // After each length, booleans begin a new byte.
        match kind {
            TrevniType::Boolean => {
                for _ in 0..(if length == 0 { 0 } else { times }) {
                    values.read(kind, length, reader)?;
                }
            }
            _ => values.read(kind, more, reader)?,
        }
        for _ in 0..times {
            total = total.saturating_add(length);
            starts.push(total as i64);
        }
    }
    Ok(BlockContent { starts: Some(starts), values })
}
