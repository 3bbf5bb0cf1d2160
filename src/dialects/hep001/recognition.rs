//! Recognises a table group by its attributes (HEP001 §5.1, §5.2).

use bstr::ByteSlice;

use super::names::TABLE_CLASS;
use super::rules::{CLASS_NEARLY, VERSION_MAJOR};
use crate::catalogue::{Attribute, attribute};
use crate::dialects::Mark;
use crate::dialects::attributes::{strings, text};
use crate::table::Finding;

/// Highest major number of `VERSION` that hepfs implements.
const MAJOR: u64 = 1;

/// Most slips in a misspelled class: characters that are wrong, missing, extra or swapped.
const MOST_SLIPS: usize = 2;

/// Classifies a group by its attribute `CLASS`, in any string storage, and by `VERSION` (HEP001 §5.1, §5.2).
pub(super) fn mark(path: &str, group: &[Attribute]) -> Mark {
    let Some(attribute) = attribute(group, "CLASS") else { return Mark::No };
    let class = text(group, "CLASS");
    if class.as_deref() != Some(TABLE_CLASS) {
        let said = strings(attribute).and_then(|all| all.first().map(|first| first.to_str_lossy().into_owned()));
        let said = said.filter(|said| is_nearly(said));
        return said
            .map_or(Mark::No, |said| Mark::Nearly(Finding::new(path, &CLASS_NEARLY, format!("CLASS {said:?}"))));
    }
    // A missing or malformed VERSION is a finding, but the table is shown all the same.
    match text(group, "VERSION").as_deref().and_then(parse_version) {
        Some((major, _)) if major > MAJOR => Mark::Refused(Finding::new(
            path,
            &VERSION_MAJOR,
            format!("VERSION {}, implemented {MAJOR}", text(group, "VERSION").unwrap_or_default()),
        )),
        _ => Mark::Table,
    }
}

/// Whether a class looks like a misspelling of a table's: in another case, between spaces, or with up to [`MOST_SLIPS`]
/// slips.
fn is_nearly(class: &str) -> bool {
    let plain = class.trim().to_ascii_uppercase();
    strsim::osa_distance(&plain, TABLE_CLASS) <= MOST_SLIPS
}

/// Parses `MAJOR.MINOR` into numbers; without `.MINOR`, the second is 0.
pub(super) fn parse_version(version: &str) -> Option<(u64, u64)> {
    let mut parts = version.trim().split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next().map_or(Some(0), |minor| minor.parse().ok())?;
    Some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_nearly_one_by_few_letters() {
        for class in ["column_table", "COLUMN TABLE", "COLUMNTABLE", "COLUMN_TABLES", " COLUMN_TABLE "] {
            assert!(is_nearly(class), "{class}");
        }
        for class in ["TABLE", "GROUP", "LIST_COLUMN", "STRING_VALUES", "COLUMN", ""] {
            assert!(!is_nearly(class), "{class}");
        }
    }

    #[test]
    fn versions_compare_as_numbers() {
        assert_eq!(parse_version("1.0"), Some((1, 0)));
        assert_eq!(parse_version("10.2"), Some((10, 2)));
        assert_eq!(parse_version("1.0.7"), Some((1, 0)));
        assert_eq!(parse_version("one"), None);
    }
}
