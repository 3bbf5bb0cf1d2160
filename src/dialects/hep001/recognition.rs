//! Tells a table group by its attributes (HEP001 §5.1, §5.2).

use super::names::TABLE_CLASS;
use crate::catalogue::Attribute;
use crate::dialects::Mark;
use crate::dialects::attributes::text;
use crate::table::Finding;

/// Highest `MAJOR` of `VERSION` that this program implements.
const MAJOR: u64 = 1;

/// What a group is to HEP001: by its `CLASS` attribute alone (HEP001 §5.1), in any string storage.
pub(super) fn mark(path: &str, group: &[Attribute]) -> Mark {
    if text(group, "CLASS").as_deref() != Some(TABLE_CLASS) {
        return Mark::No;
    }
    // A missing or odd VERSION is a finding of a table that is served all the same.
    match text(group, "VERSION").as_deref().and_then(parse_version) {
        Some((major, _)) if major > MAJOR => Mark::Refused(Finding::new(
            path,
            "HEP001 July, \"The VERSION attribute\": a reader refuses a MAJOR above the one it implements",
            format!("VERSION {}, implemented {MAJOR}", text(group, "VERSION").unwrap_or_default()),
        )),
        _ => Mark::Table,
    }
}

/// `MAJOR.MINOR`, compared as numbers.
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
    fn versions_compare_as_numbers() {
        assert_eq!(parse_version("1.0"), Some((1, 0)));
        assert_eq!(parse_version("10.2"), Some((10, 2)));
        assert_eq!(parse_version("1.0.7"), Some((1, 0)));
        assert_eq!(parse_version("one"), None);
    }
}
