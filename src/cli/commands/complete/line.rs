//! Command lines as shells hand them over: cut into words, and completed in the shell's quoting.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::super::completions::Shell;

/// A command line, cut into words, with a cursor in one of them.
#[derive(Debug)]
pub(super) struct Line {
    /// The words before the cursor's, without quotes; the first one is the program.
    pub before: Vec<OsString>,
    /// The part of the cursor's word before it, without quotes.
    pub typed: OsString,
    /// The words behind the cursor's.
    pub after: Vec<OsString>,
    /// The quote that is open at the cursor.
    quote: Option<u8>,
}

impl Line {
    /// Cuts a line, given as the parts before and behind the cursor. Words before the program, such as `sudo`, are left
    /// out.
    pub fn new(before: &OsStr, after: &OsStr) -> Self {
        let (mut words, quote) = words(before.as_bytes());
        let typed = words.pop().unwrap_or_default();
        let program = words.iter().position(|word| Path::new(word).file_name() == Some("hepfs".as_ref()));
        let after = after.as_bytes();
        // Without a space, the rest of the cursor's word comes first.
        let rest = usize::from(after.first().is_some_and(|byte| !byte.is_ascii_whitespace()));
        let after = self::words(after).0.into_iter().skip(rest).filter(|word| !word.is_empty()).collect();
        Self { before: words.split_off(program.unwrap_or(0)), typed, after, quote }
    }

    /// The text that replaces `word`, the part of the cursor's word that the shell takes as its own, so that the whole
    /// word is `candidate`. `None`: it does not begin with what was typed, or a terminal would not show it as it is.
    pub fn answer(&self, candidate: &OsStr, word: &OsStr, shell: Shell) -> Option<OsString> {
        let more = candidate.as_bytes().strip_prefix(self.typed.as_bytes())?;
        if more.iter().any(u8::is_ascii_control) {
            return None;
        }
        if shell == Shell::Fish {
            return Some(candidate.to_owned());
        }
        let mut answer = word.as_bytes().to_vec();
        for byte in more {
            match (self.quote, byte) {
                (Some(b'\''), b'\'') => answer.extend(b"'\\''"),
                (Some(b'\''), _) => answer.push(*byte),
                (Some(_), b'"' | b'\\' | b'$' | b'`') => answer.extend([b'\\', *byte]),
                (None, byte) if byte.is_ascii() && !is_plain(*byte) => answer.extend([b'\\', *byte]),
                _ => answer.push(*byte),
            }
        }
        Some(OsString::from_vec(answer))
    }
}

/// Whether a character means itself in every shell, anywhere but at the beginning of a word.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-./,:=+@%".contains(&byte)
}

/// Cuts text into words as a shell does, without expanding anything. The last word is the one at the end of the text,
/// empty behind a space. Also returns the quote that is open there.
fn words(text: &[u8]) -> (Vec<OsString>, Option<u8>) {
    let (mut words, mut word, mut quote) = (Vec::new(), Vec::new(), None);
    let mut is_between = true;
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (None, b' ' | b'\t' | b'\n') => {
                if !is_between {
                    words.push(OsString::from_vec(std::mem::take(&mut word)));
                }
                is_between = true;
                continue;
            }
            (None, b'\'' | b'"') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            (None, b'\\') => word.extend(bytes.next()),
            (Some(b'"'), b'\\') => {
                let is_escape = bytes.peek().is_some_and(|next| b"\"\\$`".contains(next));
                word.push(if is_escape { bytes.next().unwrap_or(byte) } else { byte });
            }
            _ => word.push(byte),
        }
        is_between = false;
    }
    words.push(OsString::from_vec(word));
    (words, quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words before the cursor, and the one at it.
    fn cut(text: &str) -> Vec<String> {
        let line = Line::new(text.as_ref(), "".as_ref());
        line.before.iter().chain([&line.typed]).map(|word| word.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn lines_are_cut_as_a_shell_does() {
        assert_eq!(cut("hepfs query run.h5:t --columns="), ["hepfs", "query", "run.h5:t", "--columns="]);
        assert_eq!(cut("hepfs  ls "), ["hepfs", "ls", ""]);
        assert_eq!(cut(r"hepfs ls my\ file.h5:a"), ["hepfs", "ls", "my file.h5:a"]);
        assert_eq!(cut("hepfs ls 'my file.h5:a b"), ["hepfs", "ls", "my file.h5:a b"]);
        assert_eq!(cut(r#"hepfs ls "a\"b\c$d"e"#), ["hepfs", "ls", r#"a"b\c$de"#]);
        assert_eq!(cut("sudo -u me /usr/bin/hepfs ''"), ["/usr/bin/hepfs", ""]);
        assert_eq!(cut(""), [""]);
        let line = Line::new("hepfs query --columns en".as_ref(), "ergy 'run 1.h5':t x".as_ref());
        assert_eq!(line.after, ["run 1.h5:t", "x"]);
        assert_eq!(Line::new("hepfs query ".as_ref(), " run.h5".as_ref()).after, ["run.h5"]);
    }

    /// The answer to a line whose last word is replaced from `word` on.
    fn answer(line: &str, word: &str, candidate: &str) -> Option<String> {
        let line = Line::new(line.as_ref(), "".as_ref());
        line.answer(candidate.as_ref(), word.as_ref(), Shell::Bash).map(|answer| answer.into_string().unwrap())
    }

    #[test]
    fn answers_are_quoted_like_their_beginning() {
        assert_eq!(answer("hepfs ls run.h5:ru", "ru", "run.h5:run (1)").as_deref(), Some(r"run\ \(1\)"));
        assert_eq!(answer("hepfs ls 'run.h5:ru", "run.h5:ru", "run.h5:run's").as_deref(), Some(r"run.h5:run'\''s"));
        assert_eq!(answer("hepfs ls \"run.h5:ru", "run.h5:ru", "run.h5:run $1").as_deref(), Some(r"run.h5:run \$1"));
        assert_eq!(answer("hepfs ls run.h5:", "", "run.h5:größe").as_deref(), Some("größe"));
        // Another beginning, and a name that would clear the terminal.
        assert_eq!(answer("hepfs ls a//b", "a//b", "a/bc"), None);
        assert_eq!(answer("hepfs ls run.h5:", "", "run.h5:\u{1b}[2J"), None);
    }
}
