//! The target of a request: path and query, decoded.

use bstr::BString;
use hyper::Uri;

/// Longest path and query.
const LONGEST: usize = 32 << 10;

/// A decoded target.
#[derive(Debug)]
pub struct RequestTarget {
    /// The path as sent.
    pub raw_path: String,
    /// Names of the path, decoded. The last one is empty behind a slash.
    pub path: Vec<Vec<u8>>,
    /// Names and values of the query, decoded, in order.
    pub parameters: Vec<(Vec<u8>, Vec<u8>)>,
}

impl RequestTarget {
    /// Decodes a target; `Err`: the reason against it.
    ///
    /// # Errors
    /// Where it is too long, or a name of the path is not that of a file.
    pub fn parse(uri: &Uri) -> Result<Self, &'static str> {
        let (raw_path, query) = (uri.path(), uri.query().unwrap_or_default());
        if raw_path.len() + query.len() > LONGEST {
            return Err("the address is too long");
        }
        let Some(below) = raw_path.strip_prefix('/') else { return Err("a path begins with a slash") };
        let mut path = Vec::new();
        for name in below.split('/') {
            let name = decoded(name).ok_or("a % without two hexadecimal digits")?;
            // A slash within a name would make two of it.
            if name == b"." || name == b".." || name.contains(&0) {
                return Err("a name in the path is not one of a file");
            }
            path.extend(name.split(|byte| *byte == b'/').map(<[u8]>::to_vec));
        }
        if path.iter().any(|name| name == b"..") {
            return Err("a name in the path is not one of a file");
        }
        let mut parameters = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(&value.replace('+', " ")).ok_or("a % without two hexadecimal digits")?;
            parameters.push((decoded(name).ok_or("a % without two hexadecimal digits")?, value));
        }
        Ok(Self { raw_path: raw_path.to_owned(), path, parameters })
    }

    /// The value of a parameter, as text.
    pub fn parameter(&self, name: &str) -> Option<String> {
        Some(String::from_utf8_lossy(self.bytes(name)?).into_owned())
    }

    /// The value of a parameter.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.parameters.iter().find(|(known, _)| known == name.as_bytes()).map(|(_, value)| value.as_slice())
    }

    /// Names joined by slashes.
    pub fn joined(names: &[Vec<u8>]) -> BString {
        bstr::join("/", names).into()
    }
}

/// Decodes `%41`; `None`: a `%` without two digits.
pub fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let (high, low) = (char::from(bytes.next()?), char::from(bytes.next()?));
            out.push((high.to_digit(16)? << 4 | low.to_digit(16)?) as u8);
        } else {
            out.push(byte);
        }
    }
    Some(out)
}

/// A text within HTML or XML. Control characters, which XML does not have, are replaced.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            control if control.is_control() => out.push('\u{FFFD}'),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<String>, &'static str> {
        let target = RequestTarget::parse(&text.parse().unwrap())?;
        Ok(target.path.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    #[test]
    fn paths_are_decoded_once() {
        assert_eq!(parsed("/a%20b/c+d"), Ok(vec!["a b".into(), "c+d".into()]));
        assert_eq!(parsed("/a%252Fb"), Ok(vec!["a%2Fb".into()]));
        assert_eq!(parsed("/a%2Fb/"), Ok(vec!["a".into(), "b".into(), "".into()]));
        assert_eq!(parsed("/"), Ok(vec!["".into()]));
    }

    #[test]
    fn paths_that_lead_out_or_end_early_are_refused() {
        for path in ["/..", "/a/../b", "/%2e%2e/b", "/a%2F..%2Fb", "/.%2e", "/.", "/a%00b", "/%", "/%4", "/%zz"] {
            assert!(parsed(path).is_err(), "{path}");
        }
        assert!(parsed(&format!("/{}", "a".repeat(LONGEST))).is_err());
    }

    #[test]
    fn queries_have_pluses_for_spaces() {
        let target = RequestTarget::parse(&"/?prefix=a+b%2B&list-type=2&location".parse().unwrap()).unwrap();
        assert_eq!(target.parameter("prefix").as_deref(), Some("a b+"));
        assert_eq!(target.parameter("location").as_deref(), Some(""));
        assert_eq!(target.parameter("none"), None);
    }
}
