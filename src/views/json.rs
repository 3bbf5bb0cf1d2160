//! JSON strings (RFC 8259), shared by every view that writes JSON.
//!
//! Escaped are `"`, `\` and the control characters U+0000–U+001F, in the short form where there is one and as `\u00xx`
//! otherwise. Everything else is written as it is, in UTF-8; U+2028 and U+2029 are legal in JSON.

/// The character after the backslash in the escape of each byte: 0 for bytes without an escape, `u` for `\u00xx`.
const ESCAPES: [u8; 256] = {
    let mut escapes = [0; 256];
    let mut control = 0;
    while control < 0x20 {
        escapes[control] = b'u';
        control += 1;
    }
    escapes[0x08] = b'b';
    escapes[0x09] = b't';
    escapes[0x0a] = b'n';
    escapes[0x0c] = b'f';
    escapes[0x0d] = b'r';
    escapes[b'"' as usize] = b'"';
    escapes[b'\\' as usize] = b'\\';
    escapes
};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Whether a byte of UTF-8 text must be escaped inside a JSON string.
#[inline]
pub fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Appends `text` (UTF-8) as a JSON string, with its quotes.
pub fn write_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| needs_escape(byte)) {
        let (plain, special) = rest.split_at(at);
        out.extend_from_slice(plain);
        let Some((&byte, after)) = special.split_first() else { break };
        match ESCAPES[usize::from(byte)] {
            b'u' => {
                let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
            letter => out.extend_from_slice(&[b'\\', letter]),
        }
        rest = after;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Returns the number of bytes that [`write_string`] appends for `text`.
pub fn string_length(text: &[u8]) -> usize {
    let escaped: usize = text
        .iter()
        .map(|&byte| match ESCAPES[usize::from(byte)] {
            0 => 1,
            b'u' => 6,
            _ => 2,
        })
        .sum();
    escaped + 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        write_string(text.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Expected texts from Python 3.11 `json.dumps(text, ensure_ascii=False)`.
    #[test]
    fn agrees_with_python() {
        assert_eq!(written(""), r#""""#);
        assert_eq!(written("a\"b\\c/d"), r#""a\"b\\c/d""#);
        assert_eq!(written("\u{0}\u{8}\t\n\u{b}\u{c}\r\u{1f}"), r#""\u0000\b\t\n\u000b\f\r\u001f""#);
        assert_eq!(written("é\u{7f}\u{2028}😀"), "\"é\u{7f}\u{2028}😀\"");
    }

    proptest! {
        #[test]
        fn reads_back_and_length_agrees(text in any::<String>()) {
            let json = written(&text);
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text.clone());
            prop_assert_eq!(string_length(text.as_bytes()), json.len());
        }
    }
}
