//! Which draft of HEP001 a table follows: told by the features met, since all of them write the same `VERSION`.

use std::fmt;

use super::members::{Kind, Member};
use super::names::{APRIL_NAMES, COLUMN_LIST, GENERATION, INDEX_COLUMNS, INDEX_LIST, ROWS};
use crate::catalogue::{Group, attribute};

/// A draft of HEP001.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Draft {
    /// The first one; also that of a table without any telling feature.
    April,
    /// April in capitals.
    MayJune,
    /// That with `NROWS`, `GENERATION` and list columns.
    July,
    /// Features of several.
    Mixed,
}

impl Draft {
    /// The draft of a table group with these members.
    pub fn of(group: &Group, members: &[Member<'_>]) -> Self {
        let has = |names: &[&str]| {
            names.iter().any(|name| {
                let columns = members.iter().filter(|member| member.kind.is_shown() || member.kind == Kind::Categories);
                group.link(name.as_bytes()).is_some()
                    || attribute(&group.attributes, name).is_some()
                    || columns.into_iter().any(|member| attribute(member.object.attributes(), name).is_some())
            })
        };
        let is_july = has(&[ROWS, INDEX_COLUMNS, GENERATION]) || members.iter().any(|member| member.kind == Kind::List);
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
