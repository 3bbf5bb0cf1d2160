//! HTML as it is written: escaped texts of bounded length, and parts with a bound.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bstr::ByteSlice;
use sha2::{Digest, Sha256};

use crate::views::printable;

/// The style of all pages.
const STYLE: &str = include_str!("style.css");

/// Bytes of the shortest comment that pads.
const SHORTEST_PADDING: usize = "<!---->".len();

/// Bytes of a name that may need two lines.
const LONG_NAME: usize = 16;

/// Bytes of the longest path that the system takes.
const LONGEST_PATH: usize = 4096;

/// A page being written: in full, or only measured while the parts made of values are not known.
#[derive(Debug, Default)]
pub struct Html {
    text: String,
    /// Bytes reserved for parts.
    reserved: usize,
    /// Bytes written into them.
    used: usize,
}

impl Html {
    /// Writes markup.
    pub fn raw(&mut self, markup: &str) -> &mut Self {
        self.text.push_str(markup);
        self
    }

    /// Writes a text, escaped, cut where it would take more than `most` bytes.
    pub fn text(&mut self, text: &str, most: usize) -> &mut Self {
        self.text.push_str(&escaped(text, most));
        self
    }

    /// Writes a name as [`Html::text`] does. A long one may be broken behind `_`, `-`, `.` and `/`.
    pub fn name(&mut self, name: &str, most: usize) -> &mut Self {
        let escaped = escaped(name, most);
        if name.len() < LONG_NAME {
            return self.raw(&escaped);
        }
        for part in escaped.split_inclusive(['_', '-', '.', '/']) {
            self.raw(part).raw(if part.ends_with(['_', '-', '.', '/']) { "<wbr>" } else { "" });
        }
        self
    }

    /// The markup that `write` writes.
    pub fn written(write: impl FnOnce(&mut Self)) -> String {
        let mut out = Self::default();
        write(&mut out);
        out.text
    }

    /// Writes a relative link to a file of this name or path; `#` for one longer than any path of the system.
    pub fn link(&mut self, path: &[u8]) -> &mut Self {
        let link = if path.len() > LONGEST_PATH { "#".to_owned() } else { percent_encoded(path, b"/") };
        self.text.push_str(&link);
        self
    }

    /// Writes a part made of values by `write`, or `instead` if that part is longer than `most` bytes. Without `data`,
    /// only measures the part.
    pub fn part<T>(&mut self, most: usize, data: Option<T>, instead: &str, write: impl FnOnce(&mut Self, T)) {
        self.reserved += most;
        let Some(data) = data else { return };
        let start = self.text.len();
        write(self, data);
        if self.text.len() - start > most {
            self.text.truncate(start);
            self.text.push_str(instead);
        }
        self.used += self.text.len() - start;
    }

    /// Bytes of the whole page, however long its parts are.
    pub fn size(&self) -> usize {
        self.text.len() - self.used + self.reserved + SHORTEST_PADDING
    }

    /// The page, padded to its [size](Html::size).
    pub fn padded(mut self) -> Vec<u8> {
        let spaces = self.reserved - self.used;
        self.text.push_str("<!--");
        self.text.extend(std::iter::repeat_n(' ', spaces));
        self.text.push_str("-->");
        self.text.into_bytes()
    }

    /// Removes the padding from a page that is no file of a mount.
    pub fn trim(page: &mut Vec<u8>) {
        if let Some(end) = page.rfind(b"<!--").filter(|_| page.ends_with(b"-->")) {
            page.truncate(end);
        }
    }

    /// Writes the beginning of a page. `images`: whether it has pictures as PNG.
    pub fn begin(&mut self, title: &str, images: bool) {
        // The policy names the style by its hash, so no style in a name applies.
        let hash = STANDARD.encode(Sha256::digest(STYLE));
        let images = if images { "; img-src data:" } else { "" };
        self.raw(
            "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n<meta http-equiv=Content-Security-Policy ",
        );
        self.raw(&format!("content=\"default-src 'none'; style-src 'sha256-{hash}'{images}\">\n"));
        self.raw("<meta name=viewport content=\"width=device-width,initial-scale=1\">");
        self.raw("<meta name=color-scheme content=\"light dark\">\n<title>").text(title, 400);
        self.raw("</title>\n<style>").raw(STYLE).raw("</style></head><body><main>\n");
    }

    /// Writes the end of a page about a source.
    pub fn end(&mut self, source: &str) {
        self.raw("<footer>Made by hepfs ").raw(env!("CARGO_PKG_VERSION")).raw(" from <span class=n>");
        self.text(source, 400).raw("</span>, which it does not change. ");
        self.raw("Nothing on this page comes from elsewhere, and nothing runs.</footer>\n</main></body></html>\n");
    }
}

/// A text as HTML, also within quotes: printable, at most `most` bytes long.
pub fn escaped(text: &str, most: usize) -> String {
    // No character takes less than a byte.
    let end = text.char_indices().nth(most + 1).map_or(text.len(), |(end, _)| end);
    let (mut out, mut fits) = (String::new(), 0);
    for character in printable(&text[..end]).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
        if out.len() + '…'.len_utf8() <= most {
            fits = out.len();
        }
        if out.len() > most {
            out.truncate(fits);
            out.push('…');
            break;
        }
    }
    out
}

/// Encodes all bytes but letters, digits, `-._~` and those `kept` (RFC 3986 §2.3). In a link, nothing is then taken for a
/// scheme, a query, or the end of an attribute.
pub fn percent_encoded(bytes: &[u8], kept: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(byte) || kept.contains(byte) {
            true => out.push(char::from(*byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_link_mean_nothing_else() {
        assert_eq!(percent_encoded("a b/é~".as_bytes(), b"/"), "a%20b/%C3%A9~");
        assert_eq!(percent_encoded(b"a/b:c", b""), "a%2Fb%3Ac");
    }

    #[test]
    fn texts_are_escaped_and_cut() {
        assert_eq!(escaped("</script>\"'&\u{202e}\n\0", 100), "&lt;/script&gt;&quot;&#39;&amp;\\u{202e}\\n\\u{0}");
        assert_eq!(escaped("abcdef", 6), "abcdef");
        assert_eq!(escaped("abcdefg", 6), "abc…");
        assert_eq!(escaped("ab<<<", 9), "ab&lt;…");
        assert_eq!(escaped(&"\u{10ffff}".repeat(1 << 20), 20).len(), 19);
        for most in 3..40 {
            assert!(escaped(&"<é\u{202e}\"".repeat(20), most).len() <= most);
        }
    }

    #[test]
    fn links_stay_relative() {
        let link = |path: &[u8]| Html::default().link(path).text.clone();
        assert_eq!(link(b"javascript:alert(1)/\"\xff?#"), "javascript%3Aalert%281%29/%22%FF%3F%23");
    }

    #[test]
    fn the_size_is_known_before_the_parts() {
        let page = |data: Option<&str>| {
            let mut out = Html::default();
            out.raw("<p>").part(4, data, "…", |out, data| _ = out.raw(data));
            out
        };
        let size = page(None).size();
        for (data, begins) in [("", "<p><!--    -->"), ("ab", "<p>ab<!--  -->"), ("abcde", "<p>…<!-- -->")] {
            assert_eq!(page(Some(data)).size(), size);
            assert_eq!(String::from_utf8(page(Some(data)).padded()).unwrap(), begins);
            assert_eq!(page(Some(data)).padded().len(), size);
            let mut trimmed = page(Some(data)).padded();
            Html::trim(&mut trimmed);
            assert_eq!(trimmed, page(Some(data)).text.into_bytes());
        }
    }
}
