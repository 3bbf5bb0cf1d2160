//! Texts in encodings other than UTF-8.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

use crate::catalogue::{Class, Datatype, Padding};
use crate::source::Interrupt;
use crate::store::decode::{Oddities, Oddity};
use crate::store::{Error, Facts, Fitting, Hints, RowRange, Rows, StoredBytes, StoredFacts, Tally, TextLength};

/// A character encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextEncoding {
    encoding: &'static Encoding,
    variant: Variant,
}

/// Differences from the encoding of this name in the WHATWG Encoding Standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// No differences.
    Standard,
    /// Bytes 0x80 to 0x9f are the control characters of ISO 8859; in the standard they are letters of Windows.
    Iso8859,
    /// Six characters are those of JIS X 0208; in the standard they are fullwidth forms of Windows.
    Jis,
    /// A byte order mark at the beginning of a text decides its encoding.
    Marked,
}

/// Characters of Windows, and their replacements in JIS X 0208.
const JIS: [(char, char); 6] = [
    ('\u{ff5e}', '\u{301c}'),
    ('\u{2225}', '\u{2016}'),
    ('\u{ff0d}', '\u{2212}'),
    ('\u{ffe0}', '\u{a2}'),
    ('\u{ffe1}', '\u{a3}'),
    ('\u{ffe2}', '\u{ac}'),
];

impl TextEncoding {
    /// The encoding with this label in the WHATWG Encoding Standard. `None`: an unknown label.
    pub fn new(label: &str, variant: Variant) -> Option<Self> {
        let encoding = Encoding::for_label_no_replacement(label.as_bytes())?;
        Some(Self { encoding, variant })
    }

    /// Decodes a text; malformed bytes become U+FFFD. Also returns whether there were any.
    fn decode<'a>(&self, bytes: &'a [u8]) -> (Cow<'a, str>, bool) {
        if self.encoding == UTF_16LE || self.encoding == UTF_16BE {
            return self.decode_units(bytes);
        }
        let is_control = |byte: &u8| self.variant == Variant::Iso8859 && (0x80..0xa0).contains(byte);
        let (mut text, mut is_odd) = (Cow::Borrowed(""), false);
        // Without control characters, the text is one part.
        for part in bytes.chunk_by(|a, b| is_control(a) == is_control(b)) {
            if part.first().is_some_and(is_control) {
                text.to_mut().extend(part.iter().map(|byte| char::from(*byte)));
            } else {
                let (decoded, odd) = self.encoding.decode_without_bom_handling(part);
                text += decoded;
                is_odd |= odd;
            }
        }
        if self.variant == Variant::Jis && text.contains(JIS.map(|(windows, _)| windows)) {
            text = text
                .chars()
                .map(|one| JIS.iter().find(|(windows, _)| *windows == one).map_or(one, |(_, jis)| *jis))
                .collect();
        }
        (text, is_odd)
    }

    /// Decodes text in units of two bytes, of which the last may lack its NULs, since they look like padding.
    fn decode_units(&self, bytes: &[u8]) -> (Cow<'static, str>, bool) {
        let mut units = bytes.to_vec();
        units.resize(bytes.len().next_multiple_of(2), 0);
        let mark = Encoding::for_bom(&units).filter(|_| self.variant == Variant::Marked);
        let (encoding, length) = mark.unwrap_or((self.encoding, 0));
        let (text, is_odd) = encoding.decode_without_bom_handling(units.get(length..).unwrap_or_default());
        (text.into_owned().into(), is_odd)
    }
}

/// Null-padded strings of fixed length, decoded from an encoding; malformed bytes become U+FFFD. Stored bytes stay
/// those of the file.
#[derive(Debug)]
pub struct DecodedRows {
    bytes: Arc<dyn Rows>,
    encoding: TextEncoding,
    /// The text that means missing.
    missing: Option<String>,
    /// Bytes of a string.
    size: u64,
    path: String,
    tally: Arc<Tally>,
    facts: Facts,
}

impl DecodedRows {
    /// The type to read strings of `size` bytes as, for [`DecodedRows::new`].
    pub fn undecoded(size: u64) -> Datatype {
        Datatype { size, class: Class::Opaque { tag: "".into() } }
    }

    /// Strings from elements of `datatype` that were read as [`DecodedRows::undecoded`].
    pub fn new(
        path: String,
        bytes: Arc<dyn Rows>,
        datatype: Datatype,
        encoding: TextEncoding,
        missing: Option<String>,
        tally: Arc<Tally>,
    ) -> Self {
        let (inner, size) = (bytes.facts(), datatype.size);
        let nullable = missing.is_some() || inner.nullable;
        let facts = Facts {
            data_type: DataType::LargeUtf8,
            nullable,
            hints: Hints { texts: TextLength::Encoded(size), nullable, ..Hints::default() },
            stored: StoredFacts { datatype: Some(Arc::new(datatype)), ..inner.stored.clone() },
            codes: 0,
            outline_tells_nulls: false,
            fields_lie_apart: false,
            ..inner.clone()
        };
        Self { bytes, encoding, missing, size, path, tally, facts }
    }
}

impl Rows for DecodedRows {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn array(&self, range: RowRange, interrupt: &Interrupt) -> Result<ArrayRef, Error> {
        let cells = self.bytes.array(range.clone(), interrupt)?;
        let Some(cells) = cells.as_fixed_size_binary_opt() else {
            let reason = format!("strings of type {}", cells.data_type());
            return Err(Error::unsupported(&self.path, reason));
        };
        let mut odd = Oddities::new();
        let mut texts = LargeStringBuilder::with_capacity(cells.len(), cells.value_data().len());
        for (row, cell) in cells.iter().enumerate() {
            let text = cell.map(|cell| self.encoding.decode(Padding::NullPadded.strip(cell)));
            if matches!(text, Some((_, true))) {
                odd.add(Oddity::InvalidText, row as u64);
            }
            let text = text.map(|(text, _)| text);
            texts.append_option(text.filter(|text| self.missing.as_deref() != Some(text)));
        }
        self.tally.add(range, &odd);
        Ok(Arc::new(texts.finish()))
    }

    fn fitting(&self, range: RowRange, bytes: u64, _: &Interrupt) -> Result<Fitting, Error> {
        // The stored strings, and texts with up to three bytes for each of their bytes.
        let width = self.size.saturating_mul(4).saturating_add(8);
        Ok(Fitting::fixed(&range, width, bytes))
    }

    fn bytes(&self) -> Option<&dyn StoredBytes> {
        self.bytes.bytes()
    }
}
