//! Parses the attribute `datatype`, which states the kind of an object (LEGEND data format specifications, "Data
//! types").

use bstr::BString;

/// The kind of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lh5Datatype {
    /// A table, with the names of its columns in order.
    Table(Vec<BString>),
    /// A struct, with the names of its members, which may have any length.
    Struct(Vec<BString>),
    /// A scalar, or an array of any rank, of elements of this kind.
    Array(Lh5Element),
    /// Lists of different lengths, whose values have a `datatype` of their own.
    Lists,
    /// Encoded waveforms.
    Encoded,
}

/// The kind of an array's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lh5Element {
    /// Elements of their stored type.
    Stored,
    /// Booleans: every nonzero value is true.
    Boolean,
    /// Numbers that have names.
    Enumeration(Vec<(BString, i64)>),
    /// A kind that hepfs does not know, by its name.
    Unknown(String),
}

/// Deepest nesting of kinds.
const MOST_LEVELS: usize = 16;

impl Lh5Datatype {
    /// Parses the attribute. `None`: not a datatype of LEGEND.
    pub fn parse(text: &str) -> Option<Self> {
        Self::at_depth(text, 0)
    }

    fn at_depth(text: &str, depth: usize) -> Option<Self> {
        let text = text.trim();
        if depth > MOST_LEVELS {
            return None;
        }
        let Some((head, inner)) = text.split_once('{') else {
            return is_scalar(text).then(|| Self::Array(scalar(text)));
        };
        let inner = inner.strip_suffix('}')?;
        let (name, dimensions) = match head.split_once('<') {
            Some((name, dimensions)) => (name.trim(), Some(dimensions.trim().strip_suffix('>')?)),
            None => (head.trim(), None),
        };
        Some(match (name.replace('_', "").as_str(), dimensions) {
            ("table", None) => Self::Table(names(inner)),
            ("struct", None) => Self::Struct(names(inner)),
            ("enum" | "ntuple", None) => Self::Array(scalar(text)),
            ("arrayofencodedequalsizedarrays" | "arrayofencodedarrays", Some(_)) => Self::Encoded,
            ("encodedarray", Some(_)) => Self::Encoded,
            ("array", Some(dimensions)) if dimensions.trim() == "1" => match Self::at_depth(inner, depth + 1) {
                // Each element of the outer array is an array of its own length.
                Some(Self::Array(_)) if inner.trim_start().starts_with("array<") => Self::Lists,
                Some(Self::Encoded) => Self::Encoded,
                Some(Self::Lists | Self::Table(_)) => Self::Lists,
                Some(Self::Struct(_)) => return None,
                Some(array) => array,
                None => Self::Array(Lh5Element::Unknown(inner.trim().to_owned())),
            },
            ("array" | "fixedsizearray" | "arrayofequalsizedarrays", Some(_)) => {
                match Self::at_depth(inner, depth + 1) {
                    Some(Self::Array(element)) => Self::Array(element),
                    Some(_) => return None,
                    None => Self::Array(Lh5Element::Unknown(inner.trim().to_owned())),
                }
            }
            _ => return None,
        })
    }
}

fn is_scalar(name: &str) -> bool {
    ["real", "bool", "complex", "string", "symbol", "blob", "detectorid"].contains(&name)
}

fn scalar(text: &str) -> Lh5Element {
    match text.split_once('{') {
        _ if text == "bool" => Lh5Element::Boolean,
        Some((name, inner)) if name.trim() == "enum" => {
            let members = inner.strip_suffix('}').and_then(|inner| {
                let members = inner.split(',').map(|part| {
                    let (name, number) = part.split_once('=')?;
                    Some((name.trim().into(), number.trim().parse().ok()?))
                });
                members.collect::<Option<Vec<_>>>()
            });
            members.map_or_else(|| Lh5Element::Unknown(text.to_owned()), Lh5Element::Enumeration)
        }
        _ => Lh5Element::Stored,
    }
}

/// Splits a list of names in which brackets are balanced.
fn names(inner: &str) -> Vec<BString> {
    let mut depth = 0_i32;
    let parts = inner.split(|c| {
        depth += match c {
            '{' | '<' => 1,
            '}' | '>' => -1,
            _ => 0,
        };
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|name| !name.is_empty()).map(BString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datatypes_are_read() {
        let stored = || Lh5Datatype::Array(Lh5Element::Stored);
        for (text, kind) in [
            ("table{a, b}", Lh5Datatype::Table(vec!["a".into(), "b".into()])),
            ("table{}", Lh5Datatype::Table(vec![])),
            ("struct{binning,weights}", Lh5Datatype::Struct(vec!["binning".into(), "weights".into()])),
            ("real", stored()),
            ("array<1>{real}", stored()),
            (" array<2>{ bool } ", Lh5Datatype::Array(Lh5Element::Boolean)),
            ("array<1,1>{real}", stored()),
            ("array_of_equalsized_arrays<1,1>{real}", stored()),
            ("fixedsize_array<1>{real}", stored()),
            ("array<1>{fixedsize_array<1>{real}}", stored()),
            ("array<1>{ntuple{real}}", stored()),
            ("array<1>{array<1>{real}}", Lh5Datatype::Lists),
            ("array<1>{array<1>{array<1>{bool}}}", Lh5Datatype::Lists),
            ("array<1>{encoded_array<1>{real}}", Lh5Datatype::Encoded),
            ("array_of_encoded_equalsized_arrays<1,1>{real}", Lh5Datatype::Encoded),
            ("array_of_encoded_arrays<1,1>{real}", Lh5Datatype::Encoded),
            ("array<1>{foo}", Lh5Datatype::Array(Lh5Element::Unknown("foo".into()))),
            (
                "array<1>{enum{A=1,B=-2}}",
                Lh5Datatype::Array(Lh5Element::Enumeration(vec![("A".into(), 1), ("B".into(), -2)])),
            ),
        ] {
            assert_eq!(Lh5Datatype::parse(text), Some(kind), "{text}");
        }
        for text in ["", "int", "table{a", "array<1{real}", "group{a}", "array<1>{struct{a}}"] {
            assert_eq!(Lh5Datatype::parse(text), None, "{text}");
        }
        let deep = format!("{}real{}", "array<1>{".repeat(10_000), "}".repeat(10_000));
        assert!(Lh5Datatype::parse(&deep).is_some());
    }
}
