//! The differences between CSV, `.txt` and JSON in the text of one value.

use std::cell::RefCell;

use crate::views::json;

/// The rules for the text of one value. Implementations are stateless; cells are compiled once per style.
pub(in crate::views::text) trait Style: 'static {
    /// Whether a byte needs quotes or an escape within a string.
    fn special(byte: u8) -> bool;

    /// Appends any string.
    fn string(text: &[u8], out: &mut Vec<u8>);

    /// Returns the number of bytes that [`Style::string`] appends.
    fn string_length(text: &[u8]) -> usize;

    /// The text of the empty string.
    const EMPTY: &'static [u8];

    /// Quotes on either side of any other string without [special](Style::special) bytes.
    const AROUND: &'static [u8];

    /// Appends a string without [special](Style::special) bytes.
    #[inline]
    fn clean_string(text: &[u8], out: &mut Vec<u8>) {
        if text.is_empty() {
            out.extend_from_slice(Self::EMPTY);
        } else {
            out.extend_from_slice(Self::AROUND);
            out.extend_from_slice(text);
            out.extend_from_slice(Self::AROUND);
        }
    }

    /// Returns the number of bytes that [`Style::clean_string`] appends for a string of `length` bytes.
    #[inline]
    fn clean_string_length(length: usize) -> usize {
        if length == 0 { Self::EMPTY.len() } else { length + 2 * Self::AROUND.len() }
    }

    /// The texts of NaN, positive and negative infinity, in the spelling that `float(…)` of Python, `strtod` of C (awk)
    /// and DuckDB accept.
    const NON_FINITE: [&'static str; 3] = ["NaN", "inf", "-inf"];

    /// Returns the bytes of a piece of JSON within a value of this style; `special` records whether the pieces so far
    /// contain a byte that needs quotes or an escape.
    fn piece_length(piece: &[u8], special: &mut bool) -> usize {
        let _ = special;
        piece.len()
    }

    /// Returns the bytes around a JSON value; `special` tells whether a byte in it needs quotes or an escape.
    fn around_length(special: bool) -> usize {
        let _ = special;
        0
    }

    /// Appends the JSON that `write` writes, as one value of this style; `scratch` is a buffer.
    fn nested(scratch: &RefCell<Vec<u8>>, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let mut json = scratch.take();
        json.clear();
        write(&mut json);
        Self::string(&json, out);
        scratch.replace(json);
    }
}

/// A value as a field of RFC 4180.
pub(in crate::views::text) enum Csv {}

/// A value as a line with `\`, LF and CR escaped.
pub(in crate::views::text) enum Txt {}

/// A value as JSON.
pub(in crate::views::text) enum JsonStyle {}

/// A value as it is.
pub(in crate::views::text) enum Plain {}

impl Style for Csv {
    #[inline]
    fn special(byte: u8) -> bool {
        matches!(byte, b'"' | b',' | b'\n' | b'\r')
    }

    fn string(text: &[u8], out: &mut Vec<u8>) {
        if !text.iter().any(|&byte| Self::special(byte)) {
            return Self::clean_string(text, out);
        }
        out.push(b'"');
        let mut rest = text;
        while let Some(at) = memchr::memchr(b'"', rest) {
            let (head, tail) = rest.split_at(at + 1);
            out.extend_from_slice(head);
            out.push(b'"');
            rest = tail;
        }
        out.extend_from_slice(rest);
        out.push(b'"');
    }

    fn string_length(text: &[u8]) -> usize {
        let mut special = false;
        let mut quotes = 0;
        for &byte in text {
            special |= Self::special(byte);
            quotes += usize::from(byte == b'"');
        }
        if special { text.len() + quotes + 2 } else { Self::clean_string_length(text.len()) }
    }

    fn piece_length(piece: &[u8], special: &mut bool) -> usize {
        *special |= piece.iter().any(|&byte| Self::special(byte));
        piece.len() + memchr::memchr_iter(b'"', piece).count()
    }

    fn around_length(special: bool) -> usize {
        if special { 2 } else { 0 }
    }

    /// Quoted, since an empty field means null.
    const EMPTY: &'static [u8] = b"\"\"";

    const AROUND: &'static [u8] = b"";
}

impl Style for Txt {
    #[inline]
    fn special(byte: u8) -> bool {
        matches!(byte, b'\\' | b'\n' | b'\r')
    }

    fn string(text: &[u8], out: &mut Vec<u8>) {
        let mut rest = text;
        while let Some(at) = memchr::memchr3(b'\\', b'\n', b'\r', rest) {
            let (plain, special) = rest.split_at(at);
            out.extend_from_slice(plain);
            let Some((byte, after)) = special.split_first() else { break };
            out.extend_from_slice(match byte {
                b'\n' => b"\\n",
                b'\r' => b"\\r",
                _ => b"\\\\",
            });
            rest = after;
        }
        out.extend_from_slice(rest);
    }

    fn string_length(text: &[u8]) -> usize {
        text.len() + text.iter().filter(|&&byte| Self::special(byte)).count()
    }

    fn piece_length(piece: &[u8], _: &mut bool) -> usize {
        Self::string_length(piece)
    }

    const EMPTY: &'static [u8] = b"";

    const AROUND: &'static [u8] = b"";
}

impl Style for Plain {
    #[inline]
    fn special(_: u8) -> bool {
        false
    }

    fn string(text: &[u8], out: &mut Vec<u8>) {
        Self::clean_string(text, out);
    }

    fn string_length(text: &[u8]) -> usize {
        text.len()
    }

    const EMPTY: &'static [u8] = b"";

    const AROUND: &'static [u8] = b"";
}

impl Style for JsonStyle {
    #[inline]
    fn special(byte: u8) -> bool {
        json::needs_escape(byte)
    }

    fn string(text: &[u8], out: &mut Vec<u8>) {
        json::write_string(text, out);
    }

    fn string_length(text: &[u8]) -> usize {
        json::string_length(text)
    }

    const EMPTY: &'static [u8] = b"\"\"";

    const AROUND: &'static [u8] = b"\"";

    /// JSON has no such numbers (RFC 8259 §6), so these are strings.
    const NON_FINITE: [&'static str; 3] = ["\"NaN\"", "\"Infinity\"", "\"-Infinity\""];

    fn nested(_: &RefCell<Vec<u8>>, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        write(out);
    }
}
