//! The page of a group, or of a source.

use super::PagePlace;

/// Most members of a group that its page shows.
pub const MOST_MEMBERS: usize = 1000;

/// A member of a group, as its listing knows it.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name in the file, as text.
    pub name: String,
    /// Relative link to what is shown of it, unescaped: `run_042/index.html`. `None`: there is no link.
    pub link: Option<Vec<u8>>,
    /// What it is.
    pub kind: MemberKind,
}

/// What a member is.
#[derive(Clone, Debug)]
pub enum MemberKind {
    /// A group.
    Group,
    /// A table.
    Table,
    /// A dataset of its own: `float64`, `[64, 16]`, bytes of its picture as PNG (0: it has none), and its files, as
    /// relative links, unescaped.
    Array {
        /// Its type.
        type_name: String,
        /// Its shape.
        shape: Vec<u64>,
        /// Units.
        units: Option<String>,
        /// Description.
        description: Option<String>,
        /// Bytes of its picture as PNG, known beforehand. 0: it has none.
        png: usize,
        /// Its files, as relative links, unescaped.
        files: Vec<Vec<u8>>,
    },
    /// Anything else, described by a word: a link, a file.
    Other(String),
}

/// What is learnt of a member when the page is made.
#[derive(Clone, Debug, Default)]
pub enum Details {
    /// Nothing.
    #[default]
    Nothing,
    /// Facts of a table.
    Table(TableDetails),
    /// Facts of an array.
    Array(ArrayDetails),
}

/// Facts of a table.
#[derive(Clone, Debug, Default)]
pub struct TableDetails {
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub columns: u64,
    /// How it is kept: `pandas, table format`.
    pub format: String,
    /// Bytes in the file, if known.
    pub stored: Option<u64>,
    /// The first and the last instant of its first column of times, in seconds since 1970, if known.
    pub times: Option<[i64; 2]>,
    /// Findings.
    pub findings: u64,
}

/// Facts of an array.
#[derive(Clone, Debug, Default)]
pub struct ArrayDetails {
    /// Bytes in the file, if known.
    pub stored: Option<u64>,
    /// Its picture, as long as [`MemberKind::Array`] said; empty if it could not be made.
    pub png: Vec<u8>,
}

/// The page of a group, or of a source. Its size follows from the listing alone.
#[derive(Debug)]
pub struct GroupPage {
    _place: PagePlace,
    _members: Vec<Member>,
}

impl GroupPage {
    /// The page of a group with these members, of which it shows the first [`MOST_MEMBERS`]; `more`: those that are not
    /// among `members`. `attributes`: names and values of the group's.
    pub fn new(place: PagePlace, members: Vec<Member>, more: u64, attributes: Vec<(String, String)>) -> Self {
        let _ = (more, attributes);
        Self { _place: place, _members: members }
    }

    /// The size in bytes.
    pub fn size(&self) -> u64 {
        0
    }

    /// The page, exactly as long as [`GroupPage::size`] says, with what was learnt of each member.
    pub fn render(&self, details: &[Details]) -> Vec<u8> {
        let _ = details;
        Vec::new()
    }
}
