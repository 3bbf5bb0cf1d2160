//! Finds out which draft of HEP001 a table follows. All drafts write the same `VERSION`, so the features of the group
//! decide.

use std::fmt;

use clap::{Args, ValueEnum};

use super::members::{MemberKind, TableMember};
use super::names::{
    APRIL, APRIL_NAMES, CATEGORIES_GROUP, COLUMN_LIST, GENERATION, INDEX_COLUMNS, INDEX_LIST, JULY, RESERVED_IN_APRIL,
    ROWS, SEARCH_INDEX_GROUPS, TABLE_CLASS,
};
use crate::catalogue::{Class, Group, attribute};
use crate::table::Rule;

/// A draft of HEP001.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draft {
    /// The first draft; also assumed for a table without a distinctive feature.
    April,
    /// April's rules, with names in capitals.
    MayJune,
    /// Names in capitals, `NROWS`, `GENERATION` and list columns.
    July,
    /// Features of several drafts.
    Mixed,
}

impl Draft {
    /// The draft whose features a table group with these members has.
    pub fn of(group: &Group, members: &[TableMember<'_>]) -> Self {
        let has = |names: &[&str]| {
            names.iter().any(|name| {
                let columns =
                    members.iter().filter(|member| member.kind.is_shown() || member.kind == MemberKind::Categories);
                group.link(name.as_bytes()).is_some()
                    || attribute(&group.attributes, name).is_some()
                    || columns.into_iter().any(|member| attribute(member.object.attributes(), name).is_some())
            })
        };
        let is_july =
            has(&[ROWS, INDEX_COLUMNS, GENERATION]) || members.iter().any(|member| member.kind == MemberKind::List);
        let is_april = has(&APRIL_NAMES);
        let is_between = has(&[INDEX_LIST[0], COLUMN_LIST[0]]);
        match (is_april, is_between, is_july) {
            (true, _, true) | (_, true, true) | (true, true, _) => Self::Mixed,
            (_, _, true) => Self::July,
            (_, true, _) => Self::MayJune,
            _ => Self::April,
        }
    }
}

/// A user's choice of the draft to judge tables by.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Judging {
    /// Revision of HEP001 to judge tables by; `auto` takes the one that a table follows
    #[arg(long, value_enum, default_value_t)]
    revision: Asked,
}

/// The draft that a user asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Asked {
    /// The one whose features a table has
    #[default]
    Auto,
    /// April 2026
    April,
    /// July 2026
    July,
}

impl Judging {
    /// The draft by which to judge a table group whose features are those of `draft`.
    pub(super) fn judge(self, draft: Draft, group: &Group) -> Draft {
        match (self.revision, draft) {
            (Asked::April, _) => Draft::April,
            (Asked::July, _) | (Asked::Auto, Draft::Mixed) => Draft::July,
            // If there is no other feature, the length of CLASS tells the draft.
            (Asked::Auto, Draft::April) if has_class_of_july(group) && !has_names_of_april(group) => Draft::July,
            // Since May, the names of groups are in capitals.
            (Asked::Auto, Draft::April) if has_groups_of_may(group) => Draft::MayJune,
            (Asked::Auto, draft) => draft,
        }
    }
}

/// Whether `CLASS` has more than the 12 bytes of April, as since July, which demands 13.
fn has_class_of_july(group: &Group) -> bool {
    attribute(&group.attributes, "CLASS").is_some_and(|class| {
        class.datatype.size > TABLE_CLASS.len() as u64 && matches!(class.datatype.class, Class::FixedString { .. })
    })
}

/// Whether the group of label sets, or that of search indexes, has the name that it has had since May.
fn has_groups_of_may(group: &Group) -> bool {
    [CATEGORIES_GROUP, SEARCH_INDEX_GROUPS[0]].iter().any(|name| group.link(name.as_bytes()).is_some())
}

/// Whether the group or a member has a name or attribute that only April has.
fn has_names_of_april(group: &Group) -> bool {
    let mut objects = group.links.iter().filter_map(|link| link.target.object());
    group.link(RESERVED_IN_APRIL.as_bytes()).is_some()
        || objects.any(|object| APRIL_NAMES.iter().any(|name| attribute(object.attributes(), name).is_some()))
}

impl Draft {
    /// Whether a draft has a rule. Drafts between April and July have April's rules. A rule without any section holds
    /// in all drafts.
    pub fn has(self, rule: &Rule) -> bool {
        let [april, july] = [APRIL, JULY].map(|draft| rule.sections.iter().any(|(revision, _)| *revision == draft));
        match self {
            _ if rule.sections.is_empty() => true,
            Self::April | Self::MayJune => april,
            Self::July => july,
            Self::Mixed => april || july,
        }
    }
}

impl fmt::Display for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::April => "April 2026",
            Self::MayJune => "May-June 2026",
            Self::July => "July 2026",
            Self::Mixed => "mixed drafts",
        })
    }
}
