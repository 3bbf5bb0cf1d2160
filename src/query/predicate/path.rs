//! Predicates as names of directories below `where/`: `COL:OP[:V[,V…]]`, alternatives joined by `+`.

use bstr::{BString, ByteSlice};

use super::{Condition, Error, Literal, Operator, Predicate};

/// Parses the alternatives in one segment.
///
/// # Errors
/// [`Error::Syntax`], with the offset in the segment.
pub fn parse(segment: &[u8]) -> Result<Predicate, Error> {
    let mut at = 0;
    let mut alternatives = Vec::new();
    for text in segment.split(|byte| *byte == b'+') {
        alternatives.push(Predicate::Test(condition(text, at)?));
        at += text.len() + 1;
    }
    Ok(match alternatives.pop() {
        Some(only) if alternatives.is_empty() => only,
        last => Predicate::Any(alternatives.into_iter().chain(last).collect()),
    })
}

/// Whether a segment is the beginning of a condition: a column, or a column with an operator that takes values.
pub fn is_begun(segment: &[u8]) -> bool {
    match segment.splitn(3, |byte| *byte == b':').skip(1).collect::<Vec<_>>()[..] {
        [] => true,
        [name] => operator(name).is_some_and(|operator| !operator.takes(0)),
        _ => false,
    }
}

fn operator(name: &[u8]) -> Option<Operator> {
    Operator::ALL.into_iter().find(|operator| operator.name().as_bytes() == name)
}

fn condition(text: &[u8], at: usize) -> Result<Condition, Error> {
    let syntax = |at, what: String| Error::Syntax { at, what };
    let mut parts = text.splitn(3, |byte| *byte == b':');
    let column = parts.next().unwrap_or_default();
    let Some(name) = parts.next() else {
        return Err(syntax(at, format!("{:?} is no COLUMN:OPERATOR[:VALUE]", text.as_bstr())));
    };
    let of_operator = at + column.len() + 1;
    let Some(operator) = operator(name) else {
        let known = Operator::ALL.map(Operator::name).join(" ");
        return Err(syntax(of_operator, format!("{:?} is no operator; operators: {known}", name.as_bstr())));
    };
    let mut value_at = of_operator + name.len() + 1;
    let mut values = Vec::new();
    if let Some(list) = parts.next() {
        for value in list.split(|byte| *byte == b',') {
            if let Some(colon) = value.find_byte(b':') {
                return Err(syntax(value_at + colon, "a `:` in a value is written %3A".into()));
            }
            values.push(Literal { text: decode(value, value_at)?, written: None, at: value_at });
            value_at += value.len() + 1;
        }
    }
    if !operator.takes(values.len()) {
        let takes = match operator {
            Operator::Null | Operator::Valid | Operator::Nan => "no value",
            Operator::Between => "two values: between:LEAST,GREATEST",
            Operator::In => "values: in:VALUE,VALUE",
            _ => "one value; a `,` in it is written %2C",
        };
        return Err(syntax(of_operator, format!("{} takes {takes}", operator.name())));
    }
    Ok(Condition { column: decode(column, at)?, at, operator, values })
}

fn decode(text: &[u8], at: usize) -> Result<BString, Error> {
    let mut decoded = BString::default();
    let mut rest = text;
    while let Some(percent) = rest.find_byte(b'%') {
        let digits = rest.get(percent + 1..percent + 3).and_then(super::literal::hexadecimal);
        let Some(byte) = digits.and_then(|bytes| bytes.first().copied()) else {
            let at = at + (text.len() - rest.len()) + percent;
            return Err(Error::Syntax {
                at,
                what: "a `%` is followed by two hexadecimal digits; itself it is %25".into(),
            });
        };
        decoded.extend_from_slice(&rest[..percent]);
        decoded.push(byte);
        rest = &rest[percent + 3..];
    }
    decoded.extend_from_slice(rest);
    Ok(decoded)
}

/// Returns an equivalent segment in UTF-8, with invalid bytes encoded.
pub fn readable(segment: &[u8]) -> String {
    let mut text = String::new();
    for part in segment.utf8_chunks() {
        text.push_str(part.valid());
        push_escapes(part.invalid(), &mut text);
    }
    text
}

/// Encodes a name or a value for a path.
pub fn encode(text: &[u8]) -> String {
    let mut encoded = String::new();
    for part in text.utf8_chunks() {
        for character in part.valid().chars() {
            if matches!(character, '%' | ':' | ',' | '/' | '+') || character.is_control() {
                let mut bytes = [0; 4];
                push_escapes(character.encode_utf8(&mut bytes).as_bytes(), &mut encoded);
            } else {
                encoded.push(character);
            }
        }
        push_escapes(part.invalid(), &mut encoded);
    }
    encoded
}

fn push_escapes(bytes: &[u8], out: &mut String) {
    bytes.iter().for_each(|byte| out.push_str(&format!("%{byte:02X}")));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(segment: &str) -> (usize, String) {
        let error = parse(segment.as_bytes()).unwrap_err();
        (error.position(), error.to_string())
    }

    fn only(segment: &str) -> Condition {
        match parse(segment.as_bytes()).unwrap() {
            Predicate::Test(condition) => condition,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn segments_are_conditions() {
        let condition = only("a%2Fb:between:-1,%2C");
        assert_eq!((condition.column, condition.operator), ("a/b".into(), Operator::Between));
        let values: Vec<_> = condition.values.into_iter().map(|value| value.text).collect();
        assert_eq!(values, ["-1", ","]);
        assert_eq!(only("x:eq:").values[0].text, "");
        assert!(only("x:null").values.is_empty());
        let Predicate::Any(alternatives) = parse(b"a:eq:1+b:gt:2+c:valid").unwrap() else { panic!() };
        assert_eq!(alternatives.len(), 3);
    }

    #[test]
    fn nonsense_is_explained() {
        assert_eq!(error("energy"), (0, "\"energy\" is no COLUMN:OPERATOR[:VALUE]".into()));
        let (at, what) = error("a:eq:1+energy:above:5");
        assert_eq!(at, 14);
        assert!(what.starts_with("\"above\" is no operator; operators: eq ne lt"), "{what}");
        assert_eq!(error("x:between:1"), (2, "between takes two values: between:LEAST,GREATEST".into()));
        assert_eq!(error("x:null:1").1, "null takes no value");
        assert_eq!(error("x:eq:12:30"), (7, "a `:` in a value is written %3A".into()));
        assert_eq!(error("x:eq:5%zz").0, 6);
        assert_eq!(error("x:eq:%+1").0, 5);
    }

    proptest! {
        #[test]
        fn every_name_and_value_has_a_way_to_be_written(name: Vec<u8>, value: Vec<u8>) {
            let segment = format!("{}:eq:{}", encode(&name), encode(&value));
            let condition = only(&segment);
            prop_assert_eq!(condition.column, name);
            prop_assert_eq!(&condition.values[0].text, &value);
        }

        #[test]
        fn whatever_is_looked_up_is_answered(segment: Vec<u8>) {
            drop(parse(&segment));
        }
    }
}
