//! Reads astropy's descriptions of a table's columns: lines of YAML in a dataset `NAME.__table_column_meta__` beside
//! the table, or, in old files, in an attribute of the table.
//!
//! ```text
//! datatype:
//! - {name: a, unit: m, datatype: float64, description: 'with: signs, and
//!     a second line'}
//! - name: b
//!   datatype: int64
//!   meta: !!omap
//!   - k: [1, 2]
//! meta: …
//! ```
//!
//! The reader takes only the texts of `name`, `unit` and `description` from the list `datatype`, in either form. It
//! ignores tags, anchors, aliases and nested values, so one pass suffices for any file. It skips entries of any other
//! shape.

use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;

use arrow_array::cast::AsArray;

use crate::catalogue::{Dataset, Object, attribute};
use crate::dialects::attributes::strings;
use crate::dialects::{Site, datasets};
use crate::source::Interrupt;
use crate::store::{Rows, for_each_array};

/// Suffix of the dataset that describes the table beside it, and also the name of the attribute in old files.
pub(super) const DESCRIPTION: &str = "__table_column_meta__";

/// Longest description to read, in bytes.
const MOST: u64 = 4 << 20;

/// astropy's description of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub unit: Option<String>,
    pub description: Option<String>,
}

/// Reads what astropy says about the columns of a table, by column name.
pub(super) fn of_table(site: &Site<'_>, dataset: &Dataset, interrupt: &Interrupt) -> HashMap<String, Said> {
    beside(site, interrupt)
        .or_else(|| {
            let lines = strings(attribute(&dataset.attributes, DESCRIPTION)?)?;
            Some(lines.iter().map(|line| format!("{line}\n")).collect::<String>())
        })
        .map(|text| parsed(&text))
        .unwrap_or_default()
}

/// Reads the description in the dataset beside a table.
fn beside(site: &Site<'_>, interrupt: &Interrupt) -> Option<String> {
    let id = site.servant?;
    let Object::Dataset(lines) = site.file.object(id, interrupt).ok()? else { return None };
    let path = format!("{}.{DESCRIPTION}", site.path);
    let rows = datasets::line(site.file, &path, &lines, &Default::default()).ok()?;
    text_of(rows.as_ref(), interrupt)
}

/// Joins the rows of a dataset of texts into lines. `None`: it has too many bytes, or cannot be read.
fn text_of(rows: &dyn Rows, interrupt: &Interrupt) -> Option<String> {
    let fitting = rows.fitting(0..rows.len(), MOST, interrupt).ok()?;
    if fitting.end < rows.len() || fitting.bytes > MOST {
        return None;
    }
    let mut text = String::new();
    for_each_array(rows, 0..rows.len(), MOST, interrupt, &mut |_, array| {
        for line in array.as_string_opt::<i64>().into_iter().flatten() {
            text.push_str(line.unwrap_or_default());
            text.push('\n');
        }
        Ok(())
    })
    .ok()?;
    Some(text)
}

/// Parses the list `datatype` into what it says about each column, by column name.
fn parsed(text: &str) -> HashMap<String, Said> {
    let is_other = |line: &&str| line.starts_with(|first: char| !first.is_whitespace() && first != '-');
    let mut lines = text.lines().skip_while(|line| line.trim_end() != "datatype:").skip(1).peekable();
    let mut all = HashMap::new();
    while let Some(first) = lines.next_if(|line| !is_other(line)) {
        let Some(first) = first.strip_prefix("- ") else { continue };
        // Lines that continue an item are indented.
        let mut item = format!("  {first}\n");
        while let Some(more) = lines.next_if(|line| !is_other(line) && !line.starts_with('-')) {
            item.push_str(more);
            item.push('\n');
        }
        let scanner = Scanner { rest: item.chars().peekable() };
        let pairs = if first.starts_with('{') { scanner.flow() } else { scanner.block() };
        let value = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        if let Some(name) = value("name") {
            all.insert(name, Said { unit: value("unit"), description: value("description") });
        }
    }
    all
}

/// Reads an item of the list character by character.
struct Scanner<'a> {
    rest: Peekable<Chars<'a>>,
}

/// The keys of a mapping, with the texts that are their values.
type Pairs = Vec<(String, String)>;

impl Scanner<'_> {
    /// Reads the texts of `{key: value, …}`.
    fn flow(mut self) -> Pairs {
        let mut pairs = Pairs::new();
        self.rest.find(|one| *one == '{');
        while self.rest.peek().is_some() {
            let key = self.scalar(true);
            self.blanks();
            if self.rest.next_if_eq(&':').is_some() {
                let value = self.scalar(true);
                pairs.extend(key.zip(value));
            }
            self.blanks();
            if self.rest.next() != Some(',') {
                break;
            }
        }
        pairs
    }

    /// Reads the texts of lines `key: value`, each indented by two spaces.
    fn block(mut self) -> Pairs {
        let mut pairs = Pairs::new();
        while self.rest.peek().is_some() {
            let mut indent = 0;
            while self.rest.next_if_eq(&' ').is_some() {
                indent += 1;
            }
            // Deeper lines are nested: skip them.
            if indent == 2 && self.rest.peek().is_some_and(|first| *first != '-') {
                let key: String = std::iter::from_fn(|| self.rest.next_if(|one| !matches!(one, ':' | '\n'))).collect();
                if self.rest.next_if_eq(&':').is_some() {
                    let value = self.scalar(false);
                    pairs.extend(value.map(|value| (key, value)));
                }
            }
            self.rest.find(|one| *one == '\n');
        }
        pairs
    }

    fn blanks(&mut self) {
        while self.rest.next_if(|one| one.is_whitespace()).is_some() {}
    }

    /// Reads the next text. `None`: no value follows, or it is not a text.
    fn scalar(&mut self, in_flow: bool) -> Option<String> {
        loop {
            if in_flow {
                self.blanks();
            }
            while self.rest.next_if_eq(&' ').is_some() {}
            match self.rest.peek()? {
                '\'' => return self.quoted('\''),
                '"' => return self.quoted('"'),
                '{' | '[' => {
                    self.nested();
                    return None;
                }
                // Skips a tag or an anchor.
                '!' | '&' => {
                    while self.rest.next_if(|one| !one.is_whitespace() && !matches!(one, ',' | '}')).is_some() {}
                }
                ',' | '}' | ']' if in_flow => return None,
                '\n' => return None,
                _ => return Some(self.plain(in_flow)).filter(|text| !text.is_empty() && !text.starts_with('*')),
            }
        }
    }

    /// Reads a text without quotes. In block form it ends before a line that is not indented further than keys are.
    fn plain(&mut self, in_flow: bool) -> String {
        let (mut text, mut last) = (String::new(), ' ');
        loop {
            let ends =
                |next: Option<char>| next.is_none_or(|next| next.is_whitespace() || in_flow && ",}]".contains(next));
            match self.rest.peek().copied() {
                None => break,
                Some(',' | '}' | ']') if in_flow => break,
                Some(':') if ends(self.rest.clone().nth(1)) => break,
                Some('#') if last.is_whitespace() => break,
                Some('\n') => {
                    // An empty line does not end the text.
                    let blanks = self.rest.clone().take_while(|one| one.is_whitespace());
                    let indent = blanks.fold(0, |indent, one| if one == '\n' { 0 } else { indent + 1 });
                    if !in_flow && indent <= 2 {
                        break;
                    }
                    self.fold(&mut text);
                    last = ' ';
                    continue;
                }
                Some(one) => {
                    text.push(one);
                    last = one;
                }
            }
            self.rest.next();
        }
        text.trim_end().to_owned()
    }

    /// Reads a text between quotes. `None`: there is no closing quote.
    fn quoted(&mut self, quote: char) -> Option<String> {
        self.rest.next();
        let mut text = String::new();
        loop {
            match *self.rest.peek()? {
                '\n' => {
                    self.fold(&mut text);
                    continue;
                }
                '\'' if quote == '\'' => {
                    self.rest.next();
                    // A doubled quote stands for a single one.
                    if self.rest.peek() != Some(&quote) {
                        return Some(text);
                    }
                    text.push(quote);
                }
                '"' if quote == '"' => {
                    self.rest.next();
                    return Some(text);
                }
                '\\' if quote == '"' => {
                    self.rest.next();
                    self.escaped(&mut text)?;
                    continue;
                }
                one => text.push(one),
            }
            self.rest.next();
        }
    }

    /// Folds line ends: the first becomes a space, and each further one a line end. Spaces around them are dropped.
    fn fold(&mut self, text: &mut String) {
        text.truncate(text.trim_end_matches([' ', '\t']).len());
        let mut lines = 0;
        while let Some(one) = self.rest.next_if(|one| one.is_whitespace()) {
            lines += usize::from(one == '\n');
        }
        text.push_str(&if lines > 1 { "\n".repeat(lines - 1) } else { " ".to_owned() });
    }

    /// Reads the character after a backslash, and appends what it stands for. `None`: not a valid escape.
    fn escaped(&mut self, text: &mut String) -> Option<()> {
        let digits = match self.rest.next()? {
            '\n' => {
                while self.rest.next_if(|one| matches!(one, ' ' | '\t')).is_some() {}
                return Some(());
            }
            'x' => 2,
            'u' => 4,
            'U' => 8,
            one => {
                text.push(match one {
                    '0' => '\0',
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    't' => '\t',
                    'n' => '\n',
                    'v' => '\u{b}',
                    'f' => '\u{c}',
                    'r' => '\r',
                    'e' => '\u{1b}',
                    'N' => '\u{85}',
                    '_' => '\u{a0}',
                    'L' => '\u{2028}',
                    'P' => '\u{2029}',
                    other => other,
                });
                return Some(());
            }
        };
        let number = (0..digits).try_fold(0_u32, |number, _| Some(number * 16 + self.rest.next()?.to_digit(16)?))?;
        text.push(char::from_u32(number)?);
        Some(())
    }

    /// Skips a value in brackets.
    fn nested(&mut self) {
        let (mut depth, mut last) = (0_usize, ' ');
        while let Some(one) = self.rest.peek().copied() {
            match one {
                // A quote within a text is an ordinary character.
                '\'' | '"' if last.is_whitespace() || "{[,:".contains(last) => {
                    if self.quoted(one).is_none() {
                        return;
                    }
                    last = one;
                    continue;
                }
                '{' | '[' => depth += 1,
                '}' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            last = one;
            self.rest.next();
            if depth == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by astropy 8.0.2, and what its `Table.read` says of the columns.
    const WRITTEN: &str = include_str!("astropy.yaml");

    fn said(unit: Option<&str>, description: Option<&str>) -> Said {
        Said { unit: unit.map(str::to_owned), description: description.map(str::to_owned) }
    }

    #[test]
    fn what_astropy_says_is_what_it_reads() {
        let long = (0..40).map(|at| format!("word{at}")).collect::<Vec<_>>().join(" ");
        let quoted = "with: signs, {odd} 'text' # and \"more\"\nand a line\n\n  indented";
        let read = [
            ("plain", Some("m"), Some("texts")),
            ("quoted", Some("km / s"), Some(quoted)),
            ("long", None, Some(long.as_str())),
            ("NULL", Some("deg"), Some("null")),
            ("\u{e9} \u{e8}", Some("Angstrom"), Some("\u{c5}ngstr\u{f6}m: \t tab \\ backslash \u{2028}")),
            ("meta", Some("0.001 Jy"), Some("with what is nested")),
            ("none", None, None),
            ("1", None, Some("12")),
            ("yes", Some("%"), Some("- a dash")),
            ("#x", None, Some("'")),
            ("a: b", Some("m"), Some("*star")),
            ("t,u", Some("m"), Some("@at `tick`  two  blanks ")),
        ];
        let expected: HashMap<String, Said> =
            read.into_iter().map(|(name, unit, description)| (name.to_owned(), said(unit, description))).collect();
        assert_eq!(parsed(WRITTEN), expected);
    }

    #[test]
    fn texts_go_on_in_the_next_line_as_in_yaml() {
        let text = "datatype:\n- name: a\n  description: one\n    two\n\n    three\n  unit: 'it''s\n\n    so'\n\
            - {name: b, unit: \"x\\\n    y\", description: *gone}\nmeta: x\n";
        let all = parsed(text);
        assert_eq!(all["a"], said(Some("it's\nso"), Some("one two\nthree")));
        assert_eq!(all["b"], said(Some("xy"), None));
    }

    #[test]
    fn whatever_stands_there_ends() {
        for text in
            ["", "datatype:", "datatype:\n- ", "datatype:\n- {", "datatype:\n- {name: 'a", "datatype:\n- name: \"\\u12"]
        {
            assert_eq!(parsed(text), HashMap::new(), "{text}");
        }
        let deep = format!("datatype:\n- {{x: {}, name: a}}\n", "[{a: &a *a, ".repeat(100_000));
        assert!(parsed(&deep).is_empty());
        let bytes = WRITTEN.as_bytes();
        for at in 0..bytes.len() {
            for byte in *b"'\"\n{}[]:,\\- " {
                let mut changed = bytes.to_vec();
                changed[at] = byte;
                parsed(&String::from_utf8_lossy(&changed));
            }
        }
    }
}
