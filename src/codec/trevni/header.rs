//! The header of a file, and the descriptors of blocks.

use crate::codec::Error;
use std::collections::HashMap;

use super::{MAGIC, Stop, TrevniPacking, TrevniReader, TrevniType};

/// Keys defined by the format; all others belong to applications.
const NAME: &str = "trevni.name";
const TYPE: &str = "trevni.type";
const CODEC: &str = "trevni.codec";
const CHECKSUM: &str = "trevni.checksum";
const VALUES: &str = "trevni.values";
const ARRAY: &str = "trevni.array";
const PARENT: &str = "trevni.parent";

/// Keys and values, in the file's order. For a repeated key, the last value counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata(Vec<(String, Vec<u8>)>);

impl Metadata {
    fn read(reader: &mut TrevniReader<'_>) -> Result<Self, Stop> {
        let count = reader.long()?;
        let count = usize::try_from(count).ok().filter(|count| *count as u64 <= reader.left() / 2);
        let count = count.ok_or("more metadata than the file has bytes")?;
        let (mut pairs, mut places) = (Vec::new(), HashMap::new());
        for _ in 0..count {
            let key = String::from_utf8_lossy(reader.bytes()?).into_owned();
            let value = reader.bytes()?.to_vec();
            match places.get(&key) {
                Some(at) => {
                    if let Some((_, known)) = pairs.get_mut(*at) {
                        *known = value;
                    }
                }
                None => {
                    places.insert(key.clone(), pairs.len());
                    pairs.push((key, value));
                }
            }
        }
        Ok(Self(pairs))
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_slice())
    }

    /// All pairs.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_slice()))
    }
}

/// A column according to the header.
#[derive(Clone, Debug)]
pub struct TrevniColumn {
    /// Its name, unique in the file.
    pub name: String,
    /// Type of a value and storage of blocks, or why the column cannot be read.
    pub form: Result<(TrevniType, TrevniPacking), Error>,
    /// Whether each descriptor has the first value of its block.
    pub has_values: bool,
    /// Whether each row, or each value of the parent, has any number of values instead of one.
    pub is_array: bool,
    /// Position of the parent column: each of its values has one entry in this column.
    pub parent: Option<usize>,
    /// Offset of the column in the file.
    pub start: u64,
    /// Metadata of the column.
    pub metadata: Metadata,
}

/// The header of a file.
#[derive(Clone, Debug)]
pub struct TrevniHeader {
    /// 1 or 2; version 1 only lacks runs of lengths.
    pub version: u8,
    /// Rows of the table.
    pub rows: u64,
    /// Metadata of the file.
    pub metadata: Metadata,
    /// The columns; parents stand before their children.
    pub columns: Vec<TrevniColumn>,
    /// Length of the header, in bytes.
    pub length: u64,
}

impl TrevniHeader {
    /// Reads the header of a file of `total` bytes that begins with `bytes`.
    ///
    /// # Errors
    /// [`Stop::More`] if it is longer than `bytes`; rules that it breaks.
    pub fn read(bytes: &[u8], total: u64) -> Result<Self, Stop> {
        let reader = &mut TrevniReader::new(bytes, total);
        if reader.take(MAGIC.len())? != MAGIC {
            return Err("a Trevni file begins with \"Trv\"".into());
        }
        let version = reader.u8()?;
        if !matches!(version, 1 | 2) {
            return Err(format!("version {version} of the format: 1 and 2 are known").into());
        }
        let rows = reader.u64()?;
        if rows > i64::MAX as u64 {
            return Err(format!("{rows} rows: more than 2^63 - 1").into());
        }
        let count = reader.u32()?;
        if u64::from(count) > reader.left() / 9 {
            return Err(format!("{count} columns in {} bytes", reader.left()).into());
        }
        let metadata = Metadata::read(reader)?;
        // Both are looked up once: there may be many pairs and many columns.
        let of_file = [CODEC, CHECKSUM].map(|key| metadata.get(key));
        let mut columns = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for at in 0..count as usize {
            let column = column(Metadata::read(reader)?, of_file, &columns, &places)
                .map_err(|reason| format!("column {at}: {reason}"))?;
            if places.insert(column.name.clone(), at).is_some() {
                return Err(format!("two columns have the name {:?}", column.name).into());
            }
            columns.push(column);
        }
        for column in &mut columns {
            column.start = reader.u64()?;
        }
        Ok(Self { version, rows, metadata, columns, length: reader.at() as u64 })
    }
}

fn column(
    metadata: Metadata,
    [codec, checksum]: [Option<&[u8]>; 2],
    before: &[TrevniColumn],
    places: &HashMap<String, usize>,
) -> Result<TrevniColumn, Error> {
    let text = |key: &str| metadata.get(key).map(|value| String::from_utf8_lossy(value).into_owned());
    let name = text(NAME).ok_or_else(|| format!("it has no {NAME}"))?;
    let kind = text(TYPE).ok_or_else(|| format!("{name:?} has no {TYPE}"))?;
    let packing = TrevniPacking::of(metadata.get(CODEC).or(codec), metadata.get(CHECKSUM).or(checksum));
    let form = TrevniType::of(&kind).ok_or_else(|| format!("the type {kind:?} is not known").into());
    let form = form.and_then(|kind| Ok((kind, packing?)));
    let parent = match text(PARENT) {
        None => None,
        Some(parent) => {
            let at = places.get(&parent).copied();
            let at = at.filter(|at| before.get(*at).is_some_and(|column| column.is_array));
            Some(at.ok_or_else(|| format!("the parent of {name:?}, {parent:?}, is no array before it"))?)
        }
    };
    let (has_values, is_array) = (metadata.get(VALUES).is_some(), metadata.get(ARRAY).is_some());
    if has_values && (is_array || parent.is_some()) {
        return Err(format!("{name:?}: neither an array nor the child of one has first values of blocks").into());
    }
    Ok(TrevniColumn { name, form, has_values, is_array, parent, start: 0, metadata })
}

/// A block, as the beginning of its column describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockDescriptor {
    /// Rows of the table in it.
    pub rows: u32,
    /// Bytes before compression.
    pub size: u32,
    /// Bytes after compression, without the checksum.
    pub stored: u32,
}

impl BlockDescriptor {
    /// Bytes of a descriptor without a first value.
    pub const BYTES: u64 = 12;

    /// Reads the descriptor of a block. If it has a first value, of type `first`, also returns how many bytes of that
    /// value follow: they may be too many to read.
    ///
    /// # Errors
    /// [`Stop`].
    pub fn read(reader: &mut TrevniReader<'_>, first: Option<TrevniType>) -> Result<(Self, u64), Stop> {
        let own = Self { rows: reader.u32()?, size: reader.u32()?, stored: reader.u32()? };
        if own.size > i32::MAX as u32 || own.stored > i32::MAX as u32 {
            return Err(format!("a block of {} bytes, stored in {}: 2^31 or more", own.size, own.stored).into());
        }
        let follow = match first {
            None | Some(TrevniType::Null) => 0,
            Some(TrevniType::Boolean) => 1,
            Some(TrevniType::Int) => reader.int().map(|_| 0)?,
            Some(TrevniType::Long) => reader.long().map(|_| 0)?,
            Some(TrevniType::Fixed32 | TrevniType::Float) => 4,
            Some(TrevniType::Fixed64 | TrevniType::Double) => 8,
            Some(TrevniType::String | TrevniType::Bytes) => reader.length()? as u64,
        };
        Ok((own, follow))
    }
}
