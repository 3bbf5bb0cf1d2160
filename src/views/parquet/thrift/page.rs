//! Page headers, which have a constant length for all values, apart from the padding.

use super::{PADDING_OVERHEAD, structure};

/// Number of bytes of the header of a data page without padding.
pub(in crate::views::parquet) const DATA_HEADER: u64 = 45;

/// Number of bytes of the header of a data page of version 2 without padding.
const DATA_HEADER_2: u64 = 58;

/// Number of bytes of the header of a dictionary page.
pub(in crate::views::parquet) const DICTIONARY_HEADER: u64 = 33;

/// The field of a page header that holds padding: unknown to Parquet (whose last is 8), and within reach of Thrift's
/// short form from field 5, the only form that all readers know.
const PADDING: u8 = 15;

/// `parquet.thrift` PageType.
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;
const DATA_PAGE_2: i32 = 3;

/// `parquet.thrift` Encoding.
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const RLE_DICTIONARY: i32 = 8;

/// `parquet.thrift` CompressionCodec.
const UNCOMPRESSED: i32 = 0;
const GZIP: i32 = 2;

/// Forms of headers of the data pages of a column chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::views::parquet) enum PageHeaderForm {
    /// Version 1, without padding.
    Exact,
    /// Version 1, with padding.
    Padded,
    /// Version 2, with padding. It can declare a page compressed.
    Squeezed,
}

impl PageHeaderForm {
    /// Returns the bytes of the header without the padding.
    pub fn bytes(self) -> u64 {
        match self {
            PageHeaderForm::Exact => DATA_HEADER,
            PageHeaderForm::Padded => DATA_HEADER + PADDING_OVERHEAD,
            PageHeaderForm::Squeezed => DATA_HEADER_2 + PADDING_OVERHEAD,
        }
    }

    /// Whether the header may contain padding.
    pub fn is_padded(self) -> bool {
        self != PageHeaderForm::Exact
    }

    /// Returns the compression codec of the pages.
    pub fn codec(self) -> i32 {
        if self == PageHeaderForm::Squeezed { GZIP } else { UNCOMPRESSED }
    }
}

/// Parts of a body of version 2, as the page's header declares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::views::parquet) struct PageBodyParts {
    /// Bytes of repetition levels.
    pub repetition: u32,
    /// Bytes of definition levels.
    pub definition: u32,
    /// Bytes of the whole body, levels included, uncompressed.
    pub whole: u32,
    /// Whether the values are compressed.
    pub is_compressed: bool,
}

/// Encoding of the values of a data page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::views::parquet) enum PageEncoding {
    /// Values one after the other.
    Plain,
    /// Indices into the chunk's dictionary.
    Dictionary,
}

impl PageEncoding {
    /// Returns the encoding's number in `parquet.thrift`.
    fn number(self) -> i32 {
        match self {
            PageEncoding::Plain => PLAIN,
            PageEncoding::Dictionary => RLE_DICTIONARY,
        }
    }

    /// Returns all encodings in a chunk with such pages, including those of levels and dictionary.
    pub fn encodings(self) -> &'static [i32] {
        match self {
            PageEncoding::Plain => &[PLAIN, RLE],
            PageEncoding::Dictionary => &[PLAIN, RLE, RLE_DICTIONARY],
        }
    }
}

/// Appends the header of a data page (version 1) with `entries` values, nulls included, in a body of `body` bytes.
/// `padding` fills the rest of a slot. Numbers stay below 2^31, since the layout keeps pages shorter.
pub(in crate::views::parquet) fn data_header(
    entries: u32,
    encoding: PageEncoding,
    body: u32,
    padding: Option<usize>,
    out: &mut Vec<u8>,
) {
    structure(out, |header| {
        header.i32(1, DATA_PAGE);
        header.i32(2, body as i32);
        header.i32(3, body as i32);
        header.structure(5, |data| {
            data.i32(1, entries as i32);
            data.i32(2, encoding.number());
            data.i32(3, RLE);
            data.i32(4, RLE);
        });
        if let Some(padding) = padding {
            header.padding(PADDING, padding);
        }
    });
}

/// Appends the header of a data page of version 2 with `entries` values in `rows` rows, `nulls` of them null, whose
/// body has `body` bytes, compressed or not.
pub(in crate::views::parquet) fn data_header_2(
    (entries, nulls, rows): (u32, u32, u32),
    encoding: PageEncoding,
    (parts, body): (PageBodyParts, u32),
    padding: usize,
    out: &mut Vec<u8>,
) {
    structure(out, |header| {
        header.i32(1, DATA_PAGE_2);
        header.i32(2, parts.whole as i32);
        header.i32(3, body as i32);
        header.structure(8, |data| {
            data.i32(1, entries as i32);
            data.i32(2, nulls as i32);
            data.i32(3, rows as i32);
            data.i32(4, encoding.number());
            data.i32(5, parts.definition as i32);
            data.i32(6, parts.repetition as i32);
            data.bool(7, parts.is_compressed);
        });
        header.padding(PADDING, padding);
    });
}

/// Appends the header of a dictionary page with `entries` values in `body` bytes.
pub(in crate::views::parquet) fn dictionary_header(entries: u32, body: u32, out: &mut Vec<u8>) {
    structure(out, |header| {
        header.i32(1, DICTIONARY_PAGE);
        header.i32(2, body as i32);
        header.i32(3, body as i32);
        header.structure(7, |dictionary| {
            dictionary.i32(1, entries as i32);
            dictionary.i32(2, PLAIN);
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_the_lengths_stated() {
        for (entries, body) in [(0, 0), (1, 8), (1 << 24, (1 << 31) - 1)] {
            let mut out = Vec::new();
            data_header(entries, PageEncoding::Plain, body, None, &mut out);
            assert_eq!(out.len() as u64, DATA_HEADER);
            out.clear();
            dictionary_header(entries, body, &mut out);
            assert_eq!(out.len() as u64, DICTIONARY_HEADER);
            for padding in [0, 1, 200, 100_000] {
                out.clear();
                data_header(entries, PageEncoding::Dictionary, body, Some(padding), &mut out);
                assert_eq!(out.len() as u64, PageHeaderForm::Padded.bytes() + padding as u64);
                out.clear();
                let parts = PageBodyParts { repetition: 0, definition: body, whole: body, is_compressed: padding > 1 };
                data_header_2((entries, 0, entries), PageEncoding::Plain, (parts, body), padding, &mut out);
                assert_eq!(out.len() as u64, PageHeaderForm::Squeezed.bytes() + padding as u64);
            }
        }
    }
}
