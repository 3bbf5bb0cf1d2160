//! Pages to look at: one HTML file for a table, a group, or a whole source. No script, no request, inline SVG.
//!
//! The same code writes a page twice: without values, to measure it, and with them. Parts made of values have a bound,
//! so the size is known before any value is read.
//!
//! | part | task |
//! | --- | --- |
//! | `look` | facts of a table's values without a pass: statistics of blocks, and a sample |
//! | `html` | escaped texts of bounded length, beginning and end of a page |
//! | `svg` | pictures of columns |
//! | `about` | facts about a table or a group, in words |
//! | `snippets` | lines to read a table in several languages |
//! | `table` | the page of a table |
//! | `members` | the members of a group on a page |
//! | `group` | the page of a group, or of a source |

mod about;
mod group;
mod html;
mod look;
mod members;
mod snippets;
mod svg;
mod table;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bstr::BString;

pub use html::{Html, percent_encoded};

pub use about::{DESCRIPTIONS, Stored, decoded, format_of, kept_as, stated};
pub use group::GroupPage;
pub use look::{
    Bars, BarsOf, Cell, ColumnLook, ColumnPicture, Counted, EdgeRows, Figures, Label, Labels, Look, MOST_PICTURES,
    NoPicture, Number, Order, Scale, Stretch, Trace, Values, Width, edge_rows, instant,
};
pub use members::{
    Found, MOST_MEMBERS, MOST_OPENED, Member, MemberFacts, MemberKind, Members, TableBelow, TableFacts, ValueRoom,
};
pub use table::{TablePage, is_number};

/// Most bytes of a name.
const MOST_NAME: usize = 240;

/// Bytes of a name that is set in smaller letters.
const LONG_HEADING: usize = 48;

/// Most files that a page links to.
const MOST_FILES: usize = 100;

/// The place of a page, and the files beside it.
#[derive(Clone, Debug, Default)]
pub struct PagePlace {
    /// The pages above, outermost first: name and relative link. Without links in a page that is written to a file.
    pub above: Vec<(String, Option<Vec<u8>>)>,
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
    /// Bytes of the source, on its own page.
    pub bytes: Option<u64>,
    /// Relative link to the findings, such as `../.hepfs/findings`. `None`: the page is written to a file.
    pub findings: Option<String>,
    /// Files and directories beside the page: name, as shown, and a note, such as `8 columns`. A directory's ends with
    /// a slash.
    pub files: Vec<(BString, String)>,
    /// Relative paths of the files of a column, `columns/energy.npy`, by its name. Those of the first columns suffice.
    pub columns: HashMap<BString, Vec<BString>>,
}

impl PagePlace {
    /// Writes links to the pages above, and by `jumps` to the sections of the page.
    fn navigation(&self, out: &mut Html, jumps: impl FnOnce(&mut Html)) {
        out.raw("<nav><span>");
        for (name, link) in &self.above {
            match link {
                Some(link) => out.raw("<a class=n href=\"").link(link).raw("\">").text(name, MOST_NAME).raw("</a>"),
                None => out.raw("<span class=n>").text(name, MOST_NAME).raw("</span>"),
            };
            out.raw(" › ");
        }
        out.raw("</span><span class=jump>");
        jumps(out);
        out.raw("</span></nav>\n");
    }

    /// Writes the name of the page.
    fn heading(&self, out: &mut Html) {
        out.raw(if self.name.len() > LONG_HEADING { "<h1 class=\"n l\">" } else { "<h1 class=n>" });
        out.name(&self.name, MOST_NAME).raw("</h1>\n");
    }

    /// Writes the time of the source's last change.
    fn changed(&self, out: &mut Html) {
        out.raw("\u{a0}· <span class=nw>changed ").raw(&look::words::minute(self.modified)).raw(" UTC</span>");
    }

    /// Writes the files beside the page.
    fn list_files(&self, out: &mut Html) {
        if self.files.is_empty() {
            return;
        }
        out.raw("<h2 id=files>Files</h2>\n");
        if self.mounted.is_none() {
            out.raw("<p class=note>A mount has these:</p>\n");
        }
        out.raw("<div class=files>");
        for (name, note) in self.files.iter().take(MOST_FILES) {
            match self.mounted {
                Some(_) => out.raw("<a class=n href=\"").link(name).raw("\">"),
                None => out.raw("<a class=n>"),
            };
            out.text(&name.to_string(), MOST_NAME);
            if !note.is_empty() {
                out.raw("<small>").text(note, MOST_NAME).raw("</small>");
            }
            out.raw("</a>");
        }
        if self.files.len() > MOST_FILES {
            out.raw(&format!("<span class=w>{} more</span>", self.files.len() - MOST_FILES));
        }
        out.raw("</div>\n");
    }
}

/// The name of a source, as pages show it.
pub fn source_name(source: &Path) -> String {
    source.file_name().unwrap_or(source.as_os_str()).to_string_lossy().into_owned()
}
