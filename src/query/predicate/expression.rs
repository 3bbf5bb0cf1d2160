//! Predicates as text: `energy > 5 and (label in ("electron", "muon") or not valid_hit = true)`.
//!
//! ```text
//! query   = [ any ] [ "order" "by" column [ "asc" | "desc" ] { "," … } ] [ "limit" number ]
//! any     = all { "or" all }
//! all     = one { "and" one }
//! one     = "not" one | "(" any ")" | "isnan" "(" column ")"
//!         | column [ test ]                                   a column alone must be true
//! test    = ( "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=" ) value
//!         | [ "not" ] ( "between" value "and" value | "in" "(" value { "," value } ")" | "like" text )
//!         | "is" [ "not" ] ( "null" | "nan" )
//! column  = name | `name` | "name" | "year" "(" column ")"
//! value   = number | 'text' | "text" | true | false | nan | inf
//! ```
//!
//! Quotation marks inside a quoted text are doubled. A text in double quotes is a column or a value, whichever is
//! expected.

use bstr::BString;

use super::{Condition, Error, Literal, Operator, Predicate, Query, SortKey, Written};

/// Deepest nesting of a predicate: each level takes part of the stack.
const DEEPEST: usize = 100;

/// Parses a predicate.
///
/// # Errors
/// [`Error::Syntax`], with the offset in the text.
pub fn parse(text: &str) -> Result<Predicate, Error> {
    let mut parser = Parser::new(text)?;
    let predicate = parser.any()?;
    match parser.peek() {
        None => Ok(predicate),
        Some(_) => Err(parser.expected("`and`, `or` or the end")),
    }
}

/// Parses a query: a predicate, an order, a limit. Each is optional, but not all of them.
///
/// # Errors
/// As [`parse`].
pub fn query(text: &str) -> Result<Query, Error> {
    let mut parser = Parser::new(text)?;
    let predicate = if parser.is_clause() { Predicate::All(Vec::new()) } else { parser.any()? };
    let mut query = Query { predicate, order: Vec::new(), limit: None };
    if parser.word("order") {
        if !parser.word("by") {
            return Err(parser.expected("`by`"));
        }
        query.order.push(parser.order()?);
        while parser.symbol(",") {
            query.order.push(parser.order()?);
        }
    }
    if parser.word("limit") {
        let Some(Token::Number(number)) = parser.peek() else { return Err(parser.expected("a number of rows")) };
        let limit = number.parse().map_err(|_| parser.expected("a number of rows"))?;
        parser.next += 1;
        query.limit = Some(limit);
    }
    match parser.peek() {
        None => Ok(query),
        Some(_) => Err(parser.expected("`and`, `or`, `order by`, `limit` or the end")),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A name or a keyword.
    Word(String),
    Number(String),
    /// Text in `'`, `"` or `` ` ``, and that quotation mark.
    Quoted(String, char),
    Symbol(&'static str),
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Word(text) | Self::Number(text) => write!(f, "`{text}`"),
            Self::Quoted(text, mark) => write!(f, "{mark}{}{mark}", text.escape_debug()),
            Self::Symbol(text) => write!(f, "`{text}`"),
        }
    }
}

/// Symbols in the order in which they are tried: longer ones come first.
const SYMBOLS: [&str; 13] = ["<=", ">=", "!=", "<>", "==", "=", "<", ">", "(", ")", ",", "+", "-"];

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, Error> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (token, length) = match first {
            _ if first.is_whitespace() => {
                at += first.len_utf8();
                continue;
            }
            '\'' | '"' | '`' => {
                let (content, length) = quoted(rest, first)
                    .ok_or_else(|| Error::Syntax { at, what: format!("{first} is never closed") })?;
                (Token::Quoted(content, first), length)
            }
            '0'..='9' | '.' => {
                let length = number_length(rest);
                (Token::Number(rest[..length].to_owned()), length)
            }
            _ if first.is_alphabetic() || first == '_' => {
                let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').unwrap_or(rest.len());
                (Token::Word(rest[..length].to_owned()), length)
            }
            _ => match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
                Some(symbol) => (Token::Symbol(symbol), symbol.len()),
                None => {
                    let what = format!("{first:?} means nothing here; operators: = != < <= > >= between in like is");
                    return Err(Error::Syntax { at, what });
                }
            },
        };
        tokens.push((at, token));
        at += length;
    }
    Ok(tokens)
}

/// Reads the quoted text at the beginning of `text`; returns it, and its length in bytes with both marks.
fn quoted(text: &str, mark: char) -> Option<(String, usize)> {
    let mut content = String::new();
    let mut at = 1;
    loop {
        let end = at + text[at..].find(mark)?;
        content.push_str(&text[at..end]);
        at = end + 1;
        if !text[at..].starts_with(mark) {
            return Some((content, at));
        }
        content.push(mark);
        at += 1;
    }
}

/// Returns the length of the number at the beginning of a text, with all characters attached to it.
fn number_length(text: &str) -> usize {
    let mut before = ' ';
    let end = text.find(|c: char| {
        let sign_of_exponent = matches!(c, '+' | '-') && matches!(before, 'e' | 'E');
        before = c;
        !(c.is_alphanumeric() || c == '.' || c == '_' || sign_of_exponent)
    });
    end.unwrap_or(text.len())
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    /// Length of the text in bytes.
    end: usize,
    depth: usize,
}

impl Parser {
    fn new(text: &str) -> Result<Self, Error> {
        Ok(Self { tokens: tokens(text)?, next: 0, end: text.len(), depth: 0 })
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    /// Returns the offset of the next token.
    fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |(at, _)| *at)
    }

    fn expected(&self, what: &str) -> Error {
        let found = self.peek().map_or_else(|| "the end".to_owned(), Token::to_string);
        Error::Syntax { at: self.at(), what: format!("expected {what}, found {found}") }
    }

    /// Takes the keyword `word`, in any case, if it is next; returns whether it was.
    fn word(&mut self, word: &str) -> bool {
        let is_next = matches!(self.peek(), Some(Token::Word(next)) if next.eq_ignore_ascii_case(word));
        self.next += usize::from(is_next);
        is_next
    }

    fn symbol(&mut self, symbol: &str) -> bool {
        let is_next = matches!(self.peek(), Some(Token::Symbol(next)) if *next == symbol);
        self.next += usize::from(is_next);
        is_next
    }

    fn any(&mut self) -> Result<Predicate, Error> {
        let mut parts = vec![self.all()?];
        while self.word("or") {
            parts.push(self.all()?);
        }
        Ok(joined(parts, Predicate::Any))
    }

    fn all(&mut self) -> Result<Predicate, Error> {
        let mut parts = vec![self.one()?];
        while self.word("and") {
            parts.push(self.one()?);
        }
        Ok(joined(parts, Predicate::All))
    }

    fn one(&mut self) -> Result<Predicate, Error> {
        if self.depth == DEEPEST {
            return Err(Error::Syntax { at: self.at(), what: format!("nested deeper than {DEEPEST} levels") });
        }
        self.depth += 1;
        let predicate = if self.word("not") {
            Predicate::Not(Box::new(self.one()?))
        } else if self.symbol("(") {
            let inner = self.any()?;
            if !self.symbol(")") {
                return Err(self.expected("`)`"));
            }
            inner
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(predicate)
    }

    fn test(&mut self) -> Result<Predicate, Error> {
        let at = self.at();
        let next = self.tokens.get(self.next..);
        let is_function = matches!(next, Some([(_, Token::Word(name)), (_, Token::Symbol("(")), ..])
            if name.eq_ignore_ascii_case("isnan"));
        if is_function {
            self.next += 2;
            let column = self.column()?;
            let is_nan = Condition { column, at, operator: Operator::Nan, values: Vec::new() };
            return if self.symbol(")") { Ok(Predicate::Test(is_nan)) } else { Err(self.expected("`)`")) };
        }
        let column = self.column()?;
        let condition = |operator, values| Predicate::Test(Condition { column, at, operator, values });
        let comparisons = [
            ("=", Operator::Eq),
            ("==", Operator::Eq),
            ("!=", Operator::Ne),
            ("<>", Operator::Ne),
            ("<", Operator::Lt),
            ("<=", Operator::Le),
            (">", Operator::Gt),
            (">=", Operator::Ge),
        ];
        if let Some((_, operator)) = comparisons.into_iter().find(|(symbol, _)| self.symbol(symbol)) {
            return Ok(condition(operator, vec![self.value()?]));
        }
        if self.word("is") {
            let negated = self.word("not");
            return if self.word("null") {
                Ok(condition(if negated { Operator::Valid } else { Operator::Null }, Vec::new()))
            } else if self.word("nan") {
                let is_nan = condition(Operator::Nan, Vec::new());
                Ok(if negated { Predicate::Not(Box::new(is_nan)) } else { is_nan })
            } else {
                Err(self.expected("`null` or `nan`"))
            };
        }
        if self.ends_condition() {
            let value = Literal { text: "true".into(), written: Some(Written::Boolean), at };
            return Ok(condition(Operator::Eq, vec![value]));
        }
        let negated = self.word("not");
        let predicate = if self.word("between") {
            let least = self.value()?;
            if !self.word("and") {
                return Err(self.expected("`and`"));
            }
            condition(Operator::Between, vec![least, self.value()?])
        } else if self.word("in") {
            condition(Operator::In, self.list()?)
        } else if self.word("like") {
            let Some(Token::Quoted(..)) = self.peek() else { return Err(self.expected("a text")) };
            condition(Operator::Like, vec![self.value()?])
        } else {
            return Err(self.expected("an operator (= != < <= > >= between in like is)"));
        };
        Ok(if negated { Predicate::Not(Box::new(predicate)) } else { predicate })
    }

    /// Whether the next tokens begin a clause that follows the predicate. A column may have such a name.
    fn is_clause(&self) -> bool {
        let is = |at: usize, wanted: &str| match self.tokens.get(at) {
            Some((_, Token::Word(word))) => word.eq_ignore_ascii_case(wanted),
            _ => false,
        };
        let is_number = matches!(self.tokens.get(1), Some((_, Token::Number(_))));
        is(0, "order") && is(1, "by") || is(0, "limit") && is_number
    }

    fn order(&mut self) -> Result<SortKey, Error> {
        let at = self.at();
        let column = self.column()?;
        let descending = self.word("desc");
        if !descending {
            self.word("asc");
        }
        Ok(SortKey { column, at, descending })
    }

    fn column(&mut self) -> Result<BString, Error> {
        let (name, is_word) = match self.peek() {
            Some(Token::Word(name)) => (name.clone(), true),
            Some(Token::Quoted(name, '"' | '`')) => (name.clone(), false),
            _ => return Err(self.expected("a column")),
        };
        self.next += 1;
        if !(is_word && name.eq_ignore_ascii_case("year") && self.symbol("(")) {
            return Ok(name.into());
        }
        let inner = match self.peek() {
            Some(Token::Word(name) | Token::Quoted(name, '"' | '`')) => name.clone(),
            _ => return Err(self.expected("a column")),
        };
        self.next += 1;
        if self.symbol(")") { Ok(format!("year({inner})").into()) } else { Err(self.expected("`)`")) }
    }

    /// Whether the next token ends a condition.
    fn ends_condition(&self) -> bool {
        match self.peek() {
            None | Some(Token::Symbol(")")) => true,
            Some(Token::Word(word)) => ["and", "or", "order", "limit"].iter().any(|end| word.eq_ignore_ascii_case(end)),
            Some(_) => false,
        }
    }

    fn list(&mut self) -> Result<Vec<Literal>, Error> {
        if !self.symbol("(") {
            return Err(self.expected("`(`"));
        }
        let mut values = vec![self.value()?];
        while self.symbol(",") {
            values.push(self.value()?);
        }
        if self.symbol(")") { Ok(values) } else { Err(self.expected("`,` or `)`")) }
    }

    fn value(&mut self) -> Result<Literal, Error> {
        let at = self.at();
        let sign = if self.symbol("-") { "-" } else { "" };
        if sign.is_empty() {
            // A plus sign has no effect.
            self.symbol("+");
        }
        let (text, written) = match self.peek() {
            Some(Token::Number(text)) if text.parse::<f64>().is_ok() => (format!("{sign}{text}"), Written::Number),
            Some(Token::Word(word)) if ["nan", "inf"].iter().any(|known| word.eq_ignore_ascii_case(known)) => {
                (format!("{sign}{word}"), Written::Number)
            }
            Some(Token::Word(word)) if ["true", "false"].iter().any(|known| word.eq_ignore_ascii_case(known)) => {
                (word.to_ascii_lowercase(), Written::Boolean)
            }
            Some(Token::Quoted(text, '\'' | '"')) if sign.is_empty() => (text.clone(), Written::Text),
            Some(Token::Word(word)) => {
                let what = format!("expected a value, found `{word}`; write a text in quotes: '{word}'");
                return Err(Error::Syntax { at: self.at(), what });
            }
            _ => return Err(self.expected("a value")),
        };
        self.next += 1;
        Ok(Literal { text: text.into(), written: Some(written), at })
    }
}

fn joined(mut parts: Vec<Predicate>, join: fn(Vec<Predicate>) -> Predicate) -> Predicate {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            join(parts)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `column operator values`, in brackets where they are joined.
    fn shown(predicate: &Predicate) -> String {
        let list =
            |parts: &[Predicate], join: &str| format!("[{}]", parts.iter().map(shown).collect::<Vec<_>>().join(join));
        match predicate {
            Predicate::All(parts) => list(parts, " & "),
            Predicate::Any(parts) => list(parts, " | "),
            Predicate::Not(inner) => format!("!{}", shown(inner)),
            Predicate::Test(test) => {
                let values: Vec<_> = test.values.iter().map(|value| value.text.to_string()).collect();
                format!("{} {} {}", test.column, test.operator.name(), values.join(",")).trim_end().to_owned()
            }
        }
    }

    fn read(text: &str) -> String {
        shown(&parse(text).unwrap())
    }

    fn error(text: &str) -> String {
        let error = parse(text).unwrap_err();
        format!("{}: {error}", error.position())
    }

    #[test]
    fn and_binds_closer_than_or() {
        assert_eq!(read("energy > 5 and label = \"electron\""), "[energy gt 5 & label eq electron]");
        assert_eq!(read("a=1 or b=2 AND c=3"), "[a eq 1 | [b eq 2 & c eq 3]]");
        assert_eq!(read("(a=1 or b<>2) and not c==-3e-5"), "[[a eq 1 | b ne 2] & !c eq -3e-5]");
        assert_eq!(read("not a = 1 and b = 2"), "[!a eq 1 & b eq 2]");
    }

    #[test]
    fn every_operator_has_its_form() {
        assert_eq!(read("a between -1 and +2.5 and b is null"), "[a between -1,2.5 & b null]");
        assert_eq!(read("a not between 1 and 2 or b is not null"), "[!a between 1,2 | b valid]");
        assert_eq!(read("a in ('x', \"it\"\"s\", 'it''s')"), "a in x,it\"s,it's");
        assert_eq!(read("a not in (1)"), "!a in 1");
        assert_eq!(read("a like '%abc_' or a not like \"x\""), "[a like %abc_ | !a like x]");
        assert_eq!(read("`odd name` <= true and \"x y\" >= -inf"), "[odd name le true & x y ge -inf]");
        assert_eq!(read("größe != NaN"), "größe ne NaN");
    }

    #[test]
    fn a_column_alone_is_true() {
        assert_eq!(read("flag and energy > 5"), "[flag eq true & energy gt 5]");
        assert_eq!(read("not flag or (`odd name`)"), "[!flag eq true | odd name eq true]");
        assert_eq!(read("position.x > 5"), "position.x gt 5");
        assert_eq!(read("YEAR(ts) = 2026 and year(`a b`) in (1, 2)"), "[year(ts) eq 2026 & year(a b) in 1,2]");
        // A column may have such names.
        assert_eq!(read("year > 5 and limit < 3 or order = 1"), "[[year gt 5 & limit lt 3] | order eq 1]");
    }

    #[test]
    fn an_order_and_a_limit_follow() {
        let read = |text: &str| {
            let query = query(text).unwrap();
            let by = |by: &SortKey| format!("{}{}", by.column, if by.descending { " desc" } else { "" });
            let order = query.order.iter().map(by);
            (shown(&query.predicate), order.collect::<Vec<_>>().join(","), query.limit)
        };
        assert_eq!(read("a > 5"), ("a gt 5".into(), String::new(), None));
        let all = || "[]".to_owned();
        assert_eq!(read("limit 10"), (all(), String::new(), Some(10)));
        assert_eq!(read("ORDER BY a.b, `c d` DESC, e asc"), (all(), "a.b,c d desc,e".into(), None));
        assert_eq!(read("flag order by a limit 0"), ("flag eq true".into(), "a".into(), Some(0)));
        assert_eq!(read("limit > 5 limit 5"), ("limit gt 5".into(), String::new(), Some(5)));
        let error = |text: &str| {
            let error = query(text).unwrap_err();
            format!("{}: {error}", error.position())
        };
        assert_eq!(error(""), "0: expected a column, found the end");
        assert_eq!(error("a > 5 order a"), "12: expected `by`, found `a`");
        assert_eq!(error("a > 5 limit -1"), "12: expected a number of rows, found `-`");
        assert_eq!(error("a > 5 limit 1.5"), "12: expected a number of rows, found `1.5`");
        let expected = "14: expected `and`, `or`, `order by`, `limit` or the end, found `order`";
        assert_eq!(error("a > 5 limit 1 order by a"), expected);
        assert_eq!(error("order by a,"), "11: expected a column, found the end");
    }

    #[test]
    fn nonsense_is_explained() {
        assert_eq!(error(""), "0: expected a column, found the end");
        assert_eq!(error("a > "), "4: expected a value, found the end");
        assert_eq!(error("a = electron"), "4: expected a value, found `electron`; write a text in quotes: 'electron'");
        assert_eq!(error("a 5"), "2: expected an operator (= != < <= > >= between in like is), found `5`");
        assert_eq!(error("a > 5 b"), "6: expected `and`, `or` or the end, found `b`");
        assert_eq!(error("(a > 5"), "6: expected `)`, found the end");
        assert_eq!(error("a = 'x"), "4: ' is never closed");
        assert_eq!(error("a ~ 5").split(';').next(), Some("2: '~' means nothing here"));
        assert_eq!(error("a = 5x"), "4: expected a value, found `5x`");
        assert_eq!(error("a like 5"), "7: expected a text, found `5`");
        assert_eq!(error(&"(".repeat(1000)), "100: nested deeper than 100 levels");
        assert_eq!(error("a between 1 or 2"), "12: expected `and`, found `or`");
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_answered(text in "[ab=<>!'\"`()0-9.e+ -]{0,40}|.{0,20}") {
            if let Err(error) = parse(&text) {
                prop_assert!(error.position() <= text.len());
            }
        }
    }
}
