//! Pages to look at: one HTML file for a table, a group, or a whole source. No script, no request, inline SVG.
//!
//! | part | task |
//! | --- | --- |
//! | `look` | what is known of a table's values without a pass: statistics of blocks, and a sample |
//! | `table` | the page of a table |
//! | `group` | the page of a group, or of a source |

mod group;
mod look;
mod table;

use std::path::PathBuf;

use bstr::BString;

pub use group::{ArrayDetails, Details, GroupPage, Member, MemberKind, TableDetails};
pub use look::{
    Bars, BarsOf, Cell, ColumnLook, Counted, EdgeRows, Label, Labels, Look, Number, Numbers, Order, Picture, Plain,
    Scale, Stretch, Trace, Values, Width,
};
pub use table::TablePage;

/// Where a page lies, and what lies beside it.
#[derive(Clone, Debug, Default)]
pub struct PagePlace {
    /// The pages above, outermost first: name and relative link. Without links in a page that is written to a file.
    pub above: Vec<(String, Option<String>)>,
    /// Name of the page: of the table, the group, or the source.
    pub name: String,
    /// The source.
    pub source: PathBuf,
    /// Path of the table or group, as commands take it behind `SOURCE:`. Empty: the whole source.
    pub path: BString,
    /// Absolute path of the page's directory in a mount. `None`: the page is written to a file.
    pub mounted: Option<PathBuf>,
    /// When the source was changed, in seconds since 1970.
    pub modified: i64,
    /// Relative link to the findings, such as `../.hepfs/findings`. `None`: the page is written to a file.
    pub findings: Option<String>,
    /// Files and directories beside the page: name, as shown, and a note, such as `8 columns`.
    pub files: Vec<(BString, String)>,
}
