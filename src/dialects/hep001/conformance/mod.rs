//! Checks the rules that only `hepfs check` applies: storage of attributes, advice to producers, and rules on groups
//! that readers need not list.
//!
//! | module | what it does |
//! | --- | --- |
//! | `storage` | tells how attributes are stored |
//! | `categories` | checks label sets and the codes of columns |
//! | `lists` | checks list columns, level by level |
//! | `indexes` | checks how search indexes are stored |

mod categories;
pub(super) mod indexes;
mod lists;
mod storage;

use std::collections::HashMap;

use bstr::ByteSlice;

use self::storage::{is_line, is_padded, is_scalar, is_strict_boolean, is_token, is_uint64, is_utf8, stored};
use super::columns::Candidate;
use super::consistency::is_reserved;
use super::draft::Draft;
use super::members::{MemberKind, TableMember};
use super::names::{
    CATEGORIES, COLUMN_LIST, COLUMN_ORDER, GENERATION, INDEX_COLUMNS, INDEX_LIST, ROWS, SEARCH_INDEX_GROUPS,
    SEARCH_INDEX_LIST, TABLE_CLASS, TEXTS, VALID, VALUES,
};
use super::parts::TableGroup;
use super::{rules, values};
use crate::catalogue::{Attribute, Class, Dataset, Datatype, Fill, ReferenceKind, Target, attribute};
use crate::dialects::attributes::{any, integers, references, strings};
use crate::dialects::datasets;
use crate::source::Interrupt;
use crate::table::{Expected, Table};

/// Checks a table against all rules that were not checked when it was opened, and sets the expectations for its values.
pub(super) fn check(
    parts: &mut TableGroup<'_>,
    follows: Draft,
    members: &[TableMember<'_>],
    candidates: &[Candidate<'_>],
    table: &mut Table,
    interrupt: &Interrupt,
) {
    if follows == Draft::Mixed {
        parts.report(&rules::DRAFTS_MIXED, "names of several drafts");
    }
    of_table(parts, candidates);
    extents(parts, candidates);
    for link in &parts.group.links {
        let found = match &link.target {
            Target::Hard(_) => continue,
            target if target.object().is_none() => "a link that leads to no object",
            _ => "a symbolic link: its target is not part of the table",
        };
        parts.find(parts.path_of(link.name.as_bstr()), &rules::STRANGER, found);
    }
    let columns: HashMap<_, _> = table.columns.iter().enumerate().map(|(at, column)| (column.id.object, at)).collect();
    for candidate in candidates.iter().filter(|candidate| candidate.is_shown()) {
        let path = parts.path_of(candidate.name.as_bstr());
        of_column(parts, &path, candidate);
        if let Some(dataset) = candidate.dataset {
            of_dataset(parts, &path, dataset);
            if let Some(column) = columns.get(&candidate.id).and_then(|at| table.columns.get_mut(*at)) {
                let is_categorical = any(candidate.attributes(), &CATEGORIES).is_some();
                let Expected { range, fill, domain, near } =
                    values::expected(dataset, &parts.missing(dataset), is_categorical);
                let expected = Expected {
                    range: range.filter(|(rule, _)| parts.draft.has(rule)),
                    fill: fill.filter(|(rule, _)| parts.draft.has(rule)),
                    domain: domain.filter(|(rule, _)| parts.draft.has(rule) && !parts.is_in_version),
                    near,
                };
                column.meaning.expected = Some(Box::new(expected));
            }
        }
        if candidate.kind == MemberKind::List {
            lists::check(parts, &path, candidate, interrupt);
        }
    }
    categories::check(parts, members, candidates, (table, &columns), interrupt);
    old_references(parts, candidates, table);
    join_padded(parts);
}

/// Merges the findings on null-padded tokens into one, since a library that pads one token pads all of them.
fn join_padded(parts: &mut TableGroup<'_>) {
    let mut padded = parts.findings.extract_if(.., |finding| finding.rule == &rules::TOKEN_PADDING);
    let Some(first) = padded.next() else { return };
    let found = format!("{} attributes; the first: {} of {}", 1 + padded.count(), first.found, first.path);
    parts.report(&rules::TOKEN_PADDING, found);
}

fn of_table(parts: &mut TableGroup<'_>, candidates: &[Candidate<'_>]) {
    let attributes = parts.group.attributes.clone();
    let of = |name: &str| attribute(&attributes, name);
    if let Some(class) = of("CLASS") {
        let name = TABLE_CLASS.len() as u64;
        let size = class.datatype.size;
        let fits = match parts.draft {
            Draft::April | Draft::MayJune => is_token(class, false) && (name..=name + 1).contains(&size),
            Draft::July | Draft::Mixed => is_token(class, true) && size == name + 1,
        };
        if !fits {
            parts.report(&rules::CLASS_STORAGE, stored(class));
        } else if is_padded(class) {
            parts.report(&rules::TOKEN_PADDING, "CLASS");
        }
    }
    // If `VERSION` is no string, `consistency` has reported it.
    let version = of("VERSION").filter(|version| strings(version).is_some());
    if let Some(version) = version.filter(|version| !is_token(version, false)) {
        parts.report(&rules::VERSION_STORAGE, stored(version));
    }
    match of(ROWS) {
        None => parts.report(&rules::NROWS_MISSING, "none"),
        // If `NROWS` is no number, `row_count` has reported it.
        Some(rows) if !is_uint64(rows) && integers(rows).is_some_and(|rows| rows.len() == 1 && rows[0] >= 0) => {
            parts.report(&rules::NROWS_TYPE, stored(rows));
        }
        Some(_) => {}
    }
    // If there are search indexes, their rules check GENERATION.
    let indexes = SEARCH_INDEX_GROUPS.iter().any(|name| parts.group.link(name.as_bytes()).is_some());
    if let Some(generation) = of(GENERATION).filter(|one| !indexes && !is_uint64(one)) {
        parts.report(&rules::INDEX_GENERATION, stored(generation));
    }
    if let Some(labels) = of(INDEX_COLUMNS).filter(|labels| references(labels).is_some() && !is_line(labels)) {
        parts.report(&rules::LABELS_TYPE, stored(labels));
    }
    let path = parts.path;
    texts(parts, path, &attributes);
    match of(COLUMN_ORDER) {
        None if candidates.iter().filter(|candidate| candidate.is_shown()).count() > 1 => {
            parts.report(&rules::ORDER_MISSING, "none");
        }
        Some(order) if !(is_utf8(order) && is_line(order)) => {
            parts.report(&rules::ATTRIBUTE_STORAGE, format!("{COLUMN_ORDER} is {}", stored(order)));
        }
        _ => {}
    }
}

/// Checks that descriptive attributes are scalar UTF-8 strings of fixed length.
fn texts(parts: &mut TableGroup<'_>, path: &str, attributes: &[Attribute]) {
    for name in TEXTS {
        if let Some(text) = attribute(attributes, name).filter(|text| !(is_scalar(text) && is_utf8(text))) {
            parts.find(path, &rules::ATTRIBUTE_STORAGE, format!("{name} is {}", stored(text)));
        }
    }
}

/// Checks that columns as long as the table or longer all have one length, as July demands. `consistency` has checked
/// April's lengths.
fn extents(parts: &mut TableGroup<'_>, candidates: &[Candidate<'_>]) {
    let declared = attribute(&parts.group.attributes, ROWS);
    let Some(rows) = declared.and_then(integers).and_then(|rows| u64::try_from(*rows.first()?).ok()) else { return };
    let long = candidates.iter().filter(|candidate| candidate.kind == MemberKind::Column);
    let long = long.filter_map(|candidate| Some((candidate, candidate.extent.filter(|extent| *extent >= rows)?)));
    let Some(common) = datasets::commonest(long.clone().map(|(_, extent)| extent)) else { return };
    for (candidate, extent) in long.filter(|(_, extent)| *extent != common) {
        let found = format!("an extent of {extent}, most others have {common}");
        parts.find(parts.path_of(candidate.name.as_bstr()), &rules::EXTENTS_DIFFER, found);
    }
}

/// Checks the rules on columns, be they datasets or lists.
fn of_column(parts: &mut TableGroup<'_>, path: &str, candidate: &Candidate<'_>) {
    let name = candidate.name;
    if name.starts_with(b"_") && candidate.kind != MemberKind::Index && !is_reserved(parts.draft, name) {
        parts.find(path, &rules::NAME_UNDERSCORE, name.to_string());
    }
    texts(parts, path, candidate.attributes());
    for (names, rule) in [
        (&INDEX_LIST, &rules::LABEL_LIST),
        (&COLUMN_LIST, &rules::LABEL_LIST),
        (&SEARCH_INDEX_LIST, &rules::REFERENCE_TYPE),
    ] {
        if let Some((name, list)) = any(candidate.attributes(), names).filter(|(_, list)| !is_line(list)) {
            parts.find(path, rule, format!("{name} is {}", stored(list)));
        }
    }
}

/// Checks the rules on columns that are datasets.
fn of_dataset(parts: &mut TableGroup<'_>, path: &str, dataset: &Dataset) {
    let datatype = &dataset.datatype;
    if datatype.is_variable() {
        parts.find(path, &rules::TYPE_VARIABLE, "a type of variable length");
    }
    if let Class::Compound { fields } = &datatype.class
        && let Some(field) = fields.iter().find(|field| !is_atomic(&field.datatype))
    {
        parts.find(path, &rules::TYPE_NESTED, format!("the field {}", field.name));
    }
    if datatype.is_boolean() {
        if !is_strict_boolean(datatype) {
            parts.find(path, &rules::BOOLEAN_TYPE, "an enumeration over an unsigned integer");
        }
        return;
    }
    range(parts, path, dataset);
    match &dataset.fill {
        Fill::Explicit(_) if parts.has_foreign_fill(dataset) => {}
        Fill::Explicit(fill) => {
            if attribute(&dataset.attributes, "description").is_none() {
                parts.find(path, &rules::FILL_UNDOCUMENTED, "no description");
            }
            if let Class::Enum { base, members } = &datatype.class
                && let Some(code) = code(base, fill)
            {
                match members.iter().find(|member| member.value == code) {
                    Some(member) if member.name == "MISSING" => {}
                    Some(member) => parts.find(path, &rules::FILL_MEMBER, format!("the member {}", member.name)),
                    None => parts.find(path, &rules::FILL_UNNAMED, format!("{code}, which is no member")),
                }
            }
        }
        Fill::Default | Fill::Undefined => {
            // An integer column may use every pattern as a value, so the rule on its fill needs the values
            // (`Expected::domain`).
            if !parts.is_in_version && values::ends(&dataset.datatype).is_none() {
                parts.find(path, &rules::FILL_MISSING, "none that was set");
            }
        }
        Fill::Unreadable(_) => {}
    }
}

/// Checks `valid_min` and `valid_max`, which the innermost values of list columns may also have.
fn range(parts: &mut TableGroup<'_>, path: &str, dataset: &Dataset) {
    let stated = VALID.map(|name| attribute(&dataset.attributes, name).is_some());
    let [least, greatest] = VALID.map(|name| valid(parts, path, dataset, name));
    if stated == [false; 2] || stated != [least.is_some(), greatest.is_some()] {
        return;
    }
    let fill = match &dataset.fill {
        Fill::Explicit(fill) if !parts.has_foreign_fill(dataset) => values::scalar(&dataset.datatype, fill),
        _ => None,
    };
    if let (Some(least), Some(greatest)) = (&least, &greatest)
        && least.order(greatest).is_gt()
    {
        parts.find(path, &rules::VALID_ORDER, format!("{} is above {}", VALID[0], VALID[1]));
    } else if let Some(fill) = fill
        && least.is_none_or(|least| least.order(&fill).is_le())
        && greatest.is_none_or(|greatest| greatest.order(&fill).is_ge())
    {
        parts.find(path, &rules::FILL_VALID, "a fill value within");
    }
}

/// The bound that a column states in the attribute `name`. `None`: no such attribute, or not a number of the column's
/// type.
fn valid(
    parts: &mut TableGroup<'_>,
    path: &str,
    dataset: &Dataset,
    name: &str,
) -> Option<crate::store::statistics::Scalar> {
    let stated = attribute(&dataset.attributes, name)?;
    if !is_scalar(stated) || !stated.datatype.has_values_of(&dataset.datatype) {
        parts.find(path, &rules::VALID_TYPE, format!("{name} is {}", stored(stated)));
        return None;
    }
    values::scalar(&stated.datatype, stated.value.as_ref().ok()?)
}

/// Whether fields of this type hold a single value: a number, a text, a complex number.
fn is_atomic(datatype: &Datatype) -> bool {
    datatype.complex_part().is_some()
        || !matches!(datatype.class, Class::Compound { .. } | Class::Array { .. } | Class::Sequence { .. })
}

/// The fill value of an enumeration as a code. `None`: it is not an integer.
fn code(base: &Datatype, fill: &crate::catalogue::Elements) -> Option<i128> {
    use crate::store::statistics::Scalar;
    match values::scalar(base, fill)? {
        Scalar::Int(code) => Some(code.into()),
        Scalar::UInt(code) => Some(code.into()),
        _ => None,
    }
}

/// Reports references of a kind that July dropped, in one finding for the whole table.
fn old_references(parts: &mut TableGroup<'_>, candidates: &[Candidate<'_>], table: &Table) {
    let of_columns = candidates.iter().flat_map(|candidate| {
        let path = parts.path_of(candidate.name.as_bstr());
        let names = [&CATEGORIES, &SEARCH_INDEX_LIST];
        let found = names.into_iter().filter_map(|names| any(candidate.attributes(), names));
        found.map(move |(name, attribute)| (path.clone(), name, attribute)).collect::<Vec<_>>()
    });
    let of_indexes = table.indexes.iter().filter_map(|index| {
        let (name, attribute) = any(&index.attributes, &VALUES)?;
        Some((index.path.clone(), name, attribute))
    });
    let own = attribute(&parts.group.attributes, INDEX_COLUMNS).map(|own| (parts.path.to_owned(), INDEX_COLUMNS, own));
    let old = own.into_iter().chain(of_columns).chain(of_indexes).filter(|(.., attribute)| {
        matches!(attribute.datatype.class, Class::Reference(ReferenceKind::Object | ReferenceKind::Region))
    });
    let old: Vec<_> = old.collect();
    if let Some((path, name, _)) = old.first() {
        let found = format!("{} attributes of H5T_STD_REF_OBJ; the first is {name} of {path}", old.len());
        parts.report(&rules::REFERENCE_OLD, found);
    }
}
