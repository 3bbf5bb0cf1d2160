//! Looks up text encodings by Python's names.

use crate::table::{TextEncoding, Variant};

/// The encoding of texts that an attribute `encoding` states.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum StatedEncoding {
    Utf8,
    /// An encoding from which texts must be decoded.
    Other(TextEncoding),
    /// An unknown encoding of this name. Texts are shown as if they were in UTF-8.
    Unknown(String),
}

impl StatedEncoding {
    /// Looks up a name as Python does, regardless of case and punctuation. An encoding that Python decodes differently
    /// from the WHATWG Encoding Standard counts as unknown.
    pub fn of(name: Option<&str>) -> Self {
        let letters: String = name
            .filter(|name| !name.is_empty())
            .unwrap_or("utf-8")
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        let letters = letters.to_ascii_lowercase();
        let part = |number: &str| match number {
            "" | "1" => ("windows-1252".into(), Variant::Iso8859),
            "9" => ("windows-1254".into(), Variant::Iso8859),
            "11" => ("windows-874".into(), Variant::Iso8859),
            other => (format!("iso-8859-{other}"), Variant::Standard),
        };
        let after = |prefix| letters.strip_prefix(prefix);
        let (label, variant) = match letters.as_str() {
            "utf8" | "u8" | "utf" | "cp65001" | "ascii" | "usascii" | "646" => return Self::Utf8,
            "latin" | "latin1" | "l1" | "cp819" => part("1"),
            "latin2" | "l2" => part("2"),
            "latin5" | "l5" => part("9"),
            "latin9" | "l9" => part("15"),
            "tis620" => part("11"),
            "koi8r" => ("koi8-r".into(), Variant::Standard),
            "koi8u" => ("koi8-u".into(), Variant::Standard),
            "macroman" | "macintosh" => ("macintosh".into(), Variant::Standard),
            "maccyrillic" => ("x-mac-cyrillic".into(), Variant::Standard),
            "gbk" | "cp936" | "936" | "ms936" => ("gbk".into(), Variant::Standard),
            "euckr" | "cp949" | "949" | "ms949" | "uhc" => ("euc-kr".into(), Variant::Standard),
            "cp932" | "932" | "ms932" | "mskanji" => ("shift_jis".into(), Variant::Standard),
            "shiftjis" | "sjis" => ("shift_jis".into(), Variant::Jis),
            "eucjp" | "ujis" => ("euc-jp".into(), Variant::Jis),
            "utf16" | "u16" => ("utf-16le".into(), Variant::Marked),
            "utf16le" => ("utf-16le".into(), Variant::Standard),
            "utf16be" => ("utf-16be".into(), Variant::Standard),
            "cp866" | "ibm866" | "866" => ("ibm866".into(), Variant::Standard),
            _ => match (after("iso8859").or_else(|| after("8859")), after("windows").or_else(|| after("cp"))) {
                (Some(number), _) => part(number),
                (None, Some(page)) => (format!("windows-{page}"), Variant::Standard),
                (None, None) => (String::new(), Variant::Standard),
            },
        };
        match TextEncoding::new(&label, variant) {
            Some(encoding) => Self::Other(encoding),
            None => Self::Unknown(name.unwrap_or_default().into()),
        }
    }
}
