//! Ties the rules to the values of columns: which rule each oddity breaks, and which values the rules expect.

use arrow_buffer::Buffer;

use super::draft::Draft;
use super::names::{APRIL, VALID};
use super::rules;
use crate::catalogue::{Class, Dataset, Datatype, Elements, Fill, attribute};
use crate::store::decode::{HeapBytes, Oddities, Oddity, decode};
use crate::store::statistics::{Scalar, summary};
use crate::table::{self, Expected, Rule};

/// The fill value that HEP001 recommends for floating-point numbers, exact as float32 and as float64.
const RECOMMENDED: f64 = 9.969_209_968_386_869e36;

/// Returns the function that maps an oddity to the rule that it breaks under a draft.
pub(super) fn rule_of(draft: Draft) -> fn(Oddity) -> &'static Rule {
    match draft {
        Draft::July | Draft::Mixed => own,
        Draft::April | Draft::MayJune => |oddity| {
            let rule = own(oddity);
            let is_of_april = rule.sections.iter().any(|(revision, _)| *revision == APRIL);
            if is_of_april { rule } else { table::rule_of(oddity) }
        },
    }
}

fn own(oddity: Oddity) -> &'static Rule {
    match oddity {
        Oddity::InvalidBoolean => &rules::BOOLEAN_VALUE,
        Oddity::UnnamedCode => &rules::CODE_NAME,
        Oddity::CategoryOutOfRange => &rules::CATEGORY_RANGE,
        Oddity::InvalidOffsets => &rules::LIST_OFFSETS,
        Oddity::NullNotEmpty => &rules::LIST_NULL,
        Oddity::InvalidText => &rules::TEXT_UTF8,
        Oddity::TimeOutOfRange | Oddity::Undecodable | Oddity::Rounded | Oddity::Nearest => table::rule_of(oddity),
    }
}

/// The number that a single element stands for, in an attribute or a fill value. `None`: NaN, or not a number.
pub(super) fn scalar(datatype: &Datatype, elements: &Elements) -> Option<Scalar> {
    if !matches!(datatype.class, Class::Integer { .. } | Class::Float { .. }) {
        return None;
    }
    let bytes = Buffer::from(elements.bytes.as_slice());
    let array = decode(datatype, bytes, 1, &HeapBytes(&elements.heap), &mut Oddities::new()).ok()?;
    summary(array.as_ref())?.min
}

/// Whether a fill value is the recommended one (July §8.5). Even among values it breaks no rule, since a producer
/// cannot know a better one beforehand.
fn is_recommended(datatype: &Datatype, fill: &Scalar) -> bool {
    let unused = 64_u64.saturating_sub(datatype.size.saturating_mul(8));
    match fill {
        Scalar::Int(fill) => *fill == (i64::MIN >> unused) + 1,
        Scalar::UInt(fill) => *fill == u64::MAX >> unused,
        Scalar::Float(fill) => *fill == RECOMMENDED,
        Scalar::Bool(_) | Scalar::Text(_) => false,
    }
}

/// The least and the greatest value of an integer type. `None`: not such a type.
pub(super) fn ends(datatype: &Datatype) -> Option<[Scalar; 2]> {
    let Class::Integer { signed, .. } = datatype.class else { return None };
    let unused = 64_u64.checked_sub(datatype.size.checked_mul(8)?).filter(|unused| *unused < 64)?;
    Some(match signed {
        true => [Scalar::Int(i64::MIN >> unused), Scalar::Int(i64::MAX >> unused)],
        false => [Scalar::UInt(0), Scalar::UInt(u64::MAX >> unused)],
    })
}

/// The values that the rules expect in a column of numbers: between `valid_min` and `valid_max`, and different from the
/// fill value.
pub(super) fn expected(dataset: &Dataset, fill: &Fill, is_categorical: bool) -> Expected {
    let range = VALID.map(|name| {
        let stated = attribute(&dataset.attributes, name)?;
        let is_of_column = stated.len() == Some(1) && stated.datatype.has_values_of(&dataset.datatype);
        scalar(&stated.datatype, stated.value.as_ref().ok().filter(|_| is_of_column)?)
    });
    let fill = match fill {
        Fill::Explicit(fill) if !is_categorical => {
            scalar(&dataset.datatype, fill).filter(|fill| !is_recommended(&dataset.datatype, fill))
        }
        _ => None,
    };
    Expected {
        range: range.iter().any(Option::is_some).then_some((&rules::VALID_EXCEEDED, range)),
        fill: fill.map(|fill| (&rules::FILL_AMONG_VALUES, fill)),
        domain: match dataset.fill {
            Fill::Default | Fill::Undefined => ends(&dataset.datatype).map(|ends| (&rules::FILL_MISSING, ends)),
            Fill::Explicit(_) | Fill::Unreadable(_) => None,
        },
        near: None,
    }
}
