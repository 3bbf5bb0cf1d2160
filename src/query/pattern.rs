//! Patterns of SQL's `like`: `%` matches any text, `_` any character, and `\` escapes either.

use super::predicate::Operator;

/// A pattern, cut into pieces at each `%`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pattern {
    pieces: Vec<Piece>,
}

/// Strings with one arbitrary character between each two.
type Piece = Vec<String>;

impl Pattern {
    /// Parses a pattern. Any text is a valid pattern.
    pub fn parse(text: &str) -> Self {
        let (mut pieces, mut piece, mut part) = (Vec::new(), Piece::new(), String::new());
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '%' | '_' => {
                    piece.push(std::mem::take(&mut part));
                    if character == '%' {
                        pieces.push(std::mem::take(&mut piece));
                    }
                }
                '\\' => part.push(characters.next_if(|next| "%_\\".contains(*next)).unwrap_or('\\')),
                _ => part.push(character),
            }
        }
        piece.push(part);
        pieces.push(piece);
        Self { pieces }
    }

    /// Returns the equivalent operator and text of a pattern without inner wildcards.
    pub fn plain(&self) -> Option<(Operator, &str)> {
        match self.pieces.as_slice() {
            [only] => <&[String; 1]>::try_from(only.as_slice()).ok().map(|[text]| (Operator::Eq, text.as_str())),
            [first, last] => match (first.as_slice(), last.as_slice()) {
                ([text], [end]) if end.is_empty() => Some((Operator::Prefix, text)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the prefix that all matching texts share.
    pub fn prefix(&self) -> &str {
        self.pieces.first().and_then(|piece| piece.first()).map_or("", String::as_str)
    }

    /// Whether a text matches.
    pub fn matches(&self, text: &str) -> bool {
        match self.pieces.as_slice() {
            [first, middle @ .., last] => {
                let rest = behind(first, text).and_then(|rest| before(last, rest));
                // Taking the first match of each piece leaves the most text for later pieces.
                rest.and_then(|rest| middle.iter().try_fold(rest, |rest, piece| behind_first(piece, rest))).is_some()
            }
            [only] => behind(only, text) == Some(""),
            [] => false,
        }
    }
}

/// Matches a piece at the beginning of a text; returns the rest.
fn behind<'a>(piece: &[String], text: &'a str) -> Option<&'a str> {
    let (first, others) = piece.split_first()?;
    others.iter().try_fold(text.strip_prefix(first.as_str())?, |rest, part| {
        let mut characters = rest.chars();
        characters.next()?;
        characters.as_str().strip_prefix(part.as_str())
    })
}

/// Matches a piece at the end of a text; returns the text before it.
fn before<'a>(piece: &[String], text: &'a str) -> Option<&'a str> {
    let (last, others) = piece.split_last()?;
    others.iter().rev().try_fold(text.strip_suffix(last.as_str())?, |rest, part| {
        let mut characters = rest.chars();
        characters.next_back()?;
        characters.as_str().strip_suffix(part.as_str())
    })
}

/// Finds the first match of a piece in a text; returns the text after it.
fn behind_first<'a>(piece: &[String], text: &'a str) -> Option<&'a str> {
    let first = piece.first()?;
    let mut rest = text;
    loop {
        rest = &rest[rest.find(first.as_str())?..];
        if let Some(behind) = behind(piece, rest) {
            return Some(behind);
        }
        let mut characters = rest.chars();
        characters.next()?;
        rest = characters.as_str();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// By the definition, a character after the other.
    fn expected(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], _) => text.is_empty(),
            (['%', rest @ ..], _) => (0..=text.len()).any(|at| expected(rest, &text[at..])),
            (['_', rest @ ..], [_, behind @ ..]) => expected(rest, behind),
            (['\\', wanted @ ('%' | '_' | '\\'), rest @ ..], [found, behind @ ..])
            | ([wanted, rest @ ..], [found, behind @ ..]) => wanted == found && expected(rest, behind),
            _ => false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn a_pattern_matches_as_its_definition_says(pattern in "[ab%_\\\\é]{0,8}", text in "[ab%_\\\\é]{0,10}") {
            let parsed = Pattern::parse(&pattern);
            let characters = |text: &str| text.chars().collect::<Vec<_>>();
            let matches = expected(&characters(&pattern), &characters(&text));
            prop_assert_eq!(parsed.matches(&text), matches);
            prop_assert!(!matches || text.starts_with(parsed.prefix()));
            match parsed.plain() {
                Some((Operator::Eq, plain)) => prop_assert_eq!(text == plain, matches),
                Some((_, prefix)) => prop_assert_eq!(text.starts_with(prefix), matches),
                None => {}
            }
        }
    }
}
