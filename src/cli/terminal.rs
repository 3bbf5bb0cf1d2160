//! Fits text to standard output: columns, colours, characters.

use std::borrow::Cow;
use std::env;
use std::ffi::OsString;
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

use clap::ColorChoice;
use unicode_width::UnicodeWidthChar;

use crate::views::printable;

/// Where text goes, and what can be shown there.
#[derive(Clone, Debug)]
pub(super) struct Terminal {
    /// Columns of a line; `None`: lines may have any length.
    pub columns: Option<usize>,
    /// Whether it is a terminal, not a file or a pipe.
    pub is_terminal: bool,
    has_colours: bool,
    /// Whether its locale has more characters than ASCII.
    pub has_unicode: bool,
}

/// A kind of text, as colours distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    /// Ordinary text.
    Plain,
    /// A name.
    Name,
    /// Frames, types and remarks.
    Faint,
    /// Something that is wrong.
    Alert,
}

impl Ink {
    /// The parameter of the escape sequence that begins it (ECMA-48, SGR).
    fn parameter(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Name => Some("1"),
            Self::Faint => Some("2"),
            Self::Alert => Some("33"),
        }
    }
}

/// Text in several inks.
pub(super) type Inked<'a> = [(Ink, Cow<'a, str>)];

impl Terminal {
    /// Describes standard output; the user chooses colours. Elsewhere than on a terminal, lines are as long as
    /// `COLUMNS` says.
    pub fn of_output(colours: ColorChoice) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let columns = if is_terminal { Some(columns_of(io::stdout())) } else { columns_given() };
        let has_colours = match colours {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => are_colours_wanted(is_terminal),
        };
        Self { columns, is_terminal, has_colours, has_unicode: is_utf8() }
    }

    /// Escapes characters that the terminal does not show.
    pub fn shown(&self, text: &str) -> String {
        if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return text.to_owned();
        }
        let text = printable(text);
        if self.has_unicode { text } else { in_ascii(&text) }
    }

    /// The mark of an omission.
    pub fn ellipsis(&self) -> &'static str {
        if self.has_unicode { "…" } else { "..." }
    }

    /// The beginning of a text in a number of columns.
    pub fn clipped<'a>(&self, text: &'a str, columns: usize) -> Cow<'a, str> {
        if width(text) <= columns {
            return text.into();
        }
        let mark: String = self.ellipsis().chars().take(columns).collect();
        format!("{}{mark}", &text[..end_within(text, columns - width(&mark))]).into()
    }

    /// The beginning of a text in a number of columns, and the blanks that fill them.
    pub fn fitted<'a>(&self, text: &'a str, columns: usize) -> (Cow<'a, str>, String) {
        let text = self.clipped(text, columns);
        let blank = " ".repeat(columns.saturating_sub(width(&text)));
        (text, blank)
    }

    /// A line of text, clipped to a terminal.
    pub fn line(&self, parts: &Inked<'_>) -> String {
        let texts: Vec<Cow<'_, str>> = parts.iter().map(|(_, text)| self.drawn(text)).collect();
        let columns = self.columns.filter(|_| self.is_terminal).unwrap_or(usize::MAX);
        let is_long = texts.iter().map(|text| width(text)).fold(0, usize::saturating_add) > columns;
        let mark: String = if is_long { self.ellipsis().chars().take(columns).collect() } else { String::new() };
        let (mut line, mut room) = (String::new(), columns - width(&mark));
        for ((ink, _), text) in parts.iter().zip(&texts) {
            let kept = &text[..end_within(text, room)];
            self.ink(*ink, kept, &mut line);
            if kept.len() < text.len() {
                break;
            }
            room -= width(kept);
        }
        line + &mark
    }

    /// Appends text in an ink.
    fn ink(&self, ink: Ink, text: &str, line: &mut String) {
        match ink.parameter().filter(|_| self.has_colours && !text.is_empty()) {
            // Writing to a string never fails.
            Some(parameter) => {
                let _ = write!(line, "\x1b[{parameter}m{text}\x1b[0m");
            }
            None => line.push_str(text),
        }
    }

    /// Replaces frames and marks that the terminal does not have.
    fn drawn<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.has_unicode || text.is_ascii() { text.into() } else { in_ascii(text).into() }
    }
}

/// Text in ASCII: frames and marks become similar ones, other characters are escaped.
fn in_ascii(text: &str) -> String {
    let mut ascii = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '…' => ascii.push_str("..."),
            '→' => ascii.push_str("->"),
            '├' | '┌' | '┬' | '┐' | '┼' | '┤' | '└' | '┴' | '┘' => ascii.push('+'),
            '─' => ascii.push('-'),
            '│' => ascii.push('|'),
            '≈' => ascii.push('~'),
            '×' => ascii.push('x'),
            '–' => ascii.push('-'),
            character if character.is_ascii() => ascii.push(character),
            character => ascii.extend(character.escape_default()),
        }
    }
    ascii
}

/// Columns that a text takes on a terminal (UAX #11, East Asian width; combining marks take none).
pub(super) fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(|character| character.width().unwrap_or(0)).sum() }
}

/// The end of the longest beginning of a text that takes at most this many columns.
fn end_within(text: &str, columns: usize) -> usize {
    let mut taken = 0;
    for (at, character) in text.char_indices() {
        taken += character.width().unwrap_or(0);
        if taken > columns {
            return at;
        }
    }
    text.len()
}

/// Columns of a terminal of unknown size.
const COLUMNS: usize = 80;

/// The columns of a terminal.
pub(super) fn columns_of(terminal: impl AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(terminal).map(|size| usize::from(size.ws_col));
    size.ok().filter(|columns| *columns > 0).or_else(columns_given).unwrap_or(COLUMNS)
}

/// The columns in the environment.
fn columns_given() -> Option<usize> {
    env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0)
}

/// The value of a variable of the environment, unless it is empty.
fn given(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Whether the user wants no colours (no-color.org).
pub(super) fn are_colours_refused() -> bool {
    given("NO_COLOR").is_some()
}

fn are_colours_wanted(is_terminal: bool) -> bool {
    let is_forced = given("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    !are_colours_refused() && (is_forced || is_terminal && !is_dumb())
}

/// Whether the terminal has no escape sequences.
pub(super) fn is_dumb() -> bool {
    given("TERM").is_some_and(|term| term == "dumb")
}

/// Whether the locale has UTF-8. An unset one counts as UTF-8: services and containers have no locale.
fn is_utf8() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| given(name));
    locale.is_none_or(|locale| {
        let locale = locale.to_string_lossy().to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(columns: usize) -> Terminal {
        Terminal { columns: Some(columns), is_terminal: true, has_colours: false, has_unicode: true }
    }

    #[test]
    fn wide_characters_take_two_columns_and_combining_marks_none() {
        assert_eq!(["abc", "日本", "e\u{301}", "ﬁ", "", "👍"].map(width), [3, 4, 1, 1, 0, 2]);
        let clipped = |text, columns| terminal(80).clipped(text, columns).into_owned();
        assert_eq!(clipped("日本語", 6), "日本語");
        assert_eq!([5, 4, 3, 2, 1, 0].map(|columns| clipped("日本語", columns)), ["日本…", "日…", "日…", "…", "…", ""]);
        assert_eq!(clipped("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
    }

    #[test]
    fn a_line_ends_at_the_terminal() {
        let parts = [(Ink::Name, "name".into()), (Ink::Plain, ": ".into()), (Ink::Faint, "日本語".into())];
        let line = |columns| terminal(columns).line(&parts);
        assert_eq!(line(12), "name: 日本語");
        assert_eq!(line(11), "name: 日本…");
        assert_eq!(line(6), "name:…");
        for columns in 0..20 {
            assert!(width(&line(columns)) <= columns, "{columns}: {}", line(columns));
        }
        let coloured = Terminal { has_colours: true, ..terminal(11) };
        assert_eq!(coloured.line(&parts), "\x1b[1mname\x1b[0m: \x1b[2m日本\x1b[0m…");
    }

    #[test]
    fn ascii_has_similar_frames_and_escapes() {
        let ascii = Terminal { has_unicode: false, ..terminal(80) };
        assert_eq!(ascii.shown("é\u{202e}…"), "\\u{e9}\\u{202e}...");
        assert_eq!(ascii.line(&[(Ink::Faint, "├─ ".into()), (Ink::Plain, "a → b".into())]), "+- a -> b");
        assert_eq!(ascii.clipped("abcdefgh", 6), "abc...");
        assert_eq!(ascii.clipped("abcdefgh", 2), "..");
    }
}
