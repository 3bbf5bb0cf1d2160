//! Ways of keeping a table in an HDF5 file, in order, and the only answer to "is this a table, where, of what, and what
//! serves it".
//!
//! A [`Dialect`] is asked three times, each time knowing more:
//!
//! ```text
//! mark    by the parent's listing: attributes, type, shape            no request
//! claims  by a group's own links: columns, servants, what is made up  other groups, which are remembered
//! open    the table or the files, when they are asked for             requests; elements only where they tell types
//! ```
//!
//! The first dialect of the list that marks an object has it, and ends the search: also one that says that the object
//! is a table to be refused. A format that marks its tables stands before one that guesses. Nothing above knows which
//! dialect a table came from.

mod anndata;
pub mod arrays;
mod attributes;
mod biom;
pub mod compound;
mod datasets;
mod h5md;
mod h5seurat;
mod hdfeos;
pub mod hep001;
pub mod index_writer;
mod lh5;
mod loom;
mod made;
mod matlab;
mod netcdf;
mod nexus;
mod nwb;
mod openpmd;
mod pandas;
mod scales;
mod shape;
pub mod stated;
mod tenx;
mod times;
mod triples;
mod vaex;
mod versioned;

pub use attributes::{is_of_pytables, of_pytables, pickled};
pub use hep001::sample;
pub use hep001::write::table as table_writer;
pub use made::{Change, Changed, Elsewhere, Made, Plan};
pub use scales::is_plumbing;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use bstr::BString;
use clap::{Args, ValueEnum};

use self::index_writer::IndexWriter;
use crate::catalogue::{Attribute, Dataset, Group, Object, ObjectId};
use crate::source::Interrupt;
use crate::store::{self, File};
use crate::table::{Finding, Rule, Single, Table, Unreadable};

/// The dialects that are served, in the order in which they are tried; the guess by shape is the last.
macro_rules! dialects {
    ($tables:expr, $grids:expr) => {
        &[
            &hep001::Hep001,
            &h5seurat::H5Seurat,
            &anndata::Anndata,
            &lh5::Lh5,
            &pandas::Pandas,
            &nwb::Nwb,
            &nexus::Nexus,
            &vaex::Vaex,
            &versioned::Versioned,
            &h5md::H5md,
            &openpmd::OpenPmd,
            &hdfeos::HdfEos,
            &matlab::Matlab,
            &loom::Loom,
            &tenx::TenX,
            &biom::Biom,
            &netcdf::Netcdf { grids: $grids },
            &compound::Compound,
            &arrays::Arrays,
            &shape::Shape($tables),
        ]
    };
}

/// The dialects that are served unless [`Tables`] say otherwise.
pub const ALL: &[&dyn Dialect] = dialects!(Tables::Shape, false);

/// Which groups are tables (`--tables`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Tables {
    /// Those that a format says are
    Declared,
    /// Also those that have the shape of one
    #[default]
    Shape,
    /// Also where most datasets are of other lengths, or rows are few
    Loose,
}

/// Facts of a dialect: what is known before a file is opened.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its name, as `metadata.json` tells it.
    pub name: &'static str,
    /// Rules that its tables must keep.
    pub rules: &'static [&'static Rule],
    /// Names of attributes that it looks at. A listing has these of each member, and of others only some.
    pub attributes: &'static [&'static str],
    /// The path below which every virtual dataset must map chunks of one source, and the rule that others break.
    pub mappings: Option<(&'static str, &'static Rule)>,
}

impl About {
    /// A dialect of this name, without rules, that looks at no attribute.
    pub const fn named(name: &'static str) -> Self {
        Self { name, rules: &[], attributes: &[], mappings: None }
    }
}

/// A way of keeping tables.
pub trait Dialect: Debug + Send + Sync {
    /// What is known of it before a file is opened.
    fn about(&self) -> &'static About;

    /// What an object is, by what its parent's listing tells. `path` is its HDF5 path.
    fn mark(&self, path: &str, object: Subject<'_>) -> Mark;

    /// What becomes of the members of a group that this dialect marked [`Mark::Table`] or [`Mark::LookInside`].
    fn claims(&self, here: &Here<'_>) -> Claims {
        let _ = here;
        Claims::default()
    }

    /// Makes the table at a site that this dialect claimed. It learns nothing yet: see [`Dialects::open`]. A column
    /// keeps the reason why it cannot be read, an interrupt too, so a caller that raised one must drop the table.
    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        let _ = interrupt;
        Table::empty(site.path, self.about().name)
    }

    /// Makes the files of a dataset that this dialect marked [`Mark::Files`]; `name` is that of its link.
    /// `interrupt` is `None` where only the choice of files is asked for: no request is made then, and names of parts
    /// are left out.
    ///
    /// # Errors
    /// Why the dataset cannot be opened.
    fn files(&self, site: &Site<'_>, name: &BString, interrupt: Option<&Interrupt>) -> Result<Single, Unreadable> {
        let _ = interrupt;
        Err(format!("{} shows no file of {name:?} at {}", self.about().name, site.path).into())
    }

    /// Finds the datasets below a group that differ from those of an earlier state of it ([`Claims::changes`]). No
    /// element is read.
    ///
    /// # Errors
    /// Why they cannot be compared.
    fn changes(&self, here: &Here<'_>, id: ObjectId) -> Result<Vec<Change>, store::Error> {
        let _ = (here, id);
        Ok(Vec::new())
    }

    /// Holds the checksums that a file has beside what it stores against that: all of it is read. An interrupt ends it
    /// early.
    fn verify(&self, file: &Arc<File>, interrupt: &Interrupt) -> Vec<Finding> {
        let _ = (file, interrupt);
        Vec::new()
    }

    /// Why members are no columns of the table that this dialect claimed from inside, by name.
    fn left_out(&self, here: &Here<'_>) -> HashMap<BString, Cow<'static, str>> {
        let _ = here;
        HashMap::new()
    }

    /// What writes the search indexes of this dialect's tables; `None` where they take none.
    fn index_writer(&self, options: &IndexOptions) -> Option<Box<dyn IndexWriter>> {
        let _ = options;
        None
    }
}

/// An object as its parent's listing tells of it.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// A group, by its attributes.
    Group(&'a [Attribute]),
    /// A dataset.
    Dataset(&'a Arc<Dataset>),
}

impl<'a> Subject<'a> {
    /// The group or dataset; `None` for a committed datatype and for what cannot be read.
    pub fn of(object: &'a Object) -> Option<Self> {
        match object {
            Object::Group { attributes, .. } => Some(Self::Group(attributes)),
            Object::Dataset(dataset) => Some(Self::Dataset(dataset)),
            Object::Datatype { .. } | Object::Unreadable { .. } => None,
        }
    }
}

/// What an object is to a dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Nothing: the next dialect is asked.
    No,
    /// A table, shown as a directory.
    Table,
    /// A dataset shown as files beside each other, `NAME.csv`, `NAME.npy`, …
    Files,
    /// A table that must be refused, and is shown as if it were none; the finding says why.
    Refused(Finding),
    /// Nothing, though it nearly is a table: the finding says why not. The next dialect is asked.
    Nearly(Finding),
    /// A group of which the listing does not tell. It is called a group wherever it is named; its [`Claims`] may add a
    /// table.
    LookInside,
}

/// A judgement of the dialects on an object.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// What the object is called where it is named: `table`, `array`, `group`.
    pub kind: &'static str,
    /// The dialect that shows a dataset, as a directory ([`Mark::Table`]) or as files ([`Mark::Files`]).
    pub shown: Option<(&'static dyn Dialect, Mark)>,
    /// Rules by which other dialects refuse the object.
    pub findings: Vec<Finding>,
}

/// A group, seen from inside.
#[derive(Clone, Copy, Debug)]
pub struct Here<'a> {
    /// HDF5 path.
    pub path: &'a str,
    /// The group.
    pub group: &'a Group,
    /// The file, for who must look into other groups to tell what this one is. It remembers what its worker said.
    pub file: &'a Arc<File>,
    /// Ends such a look: a caller that raised it must drop the claims.
    pub interrupt: &'a Interrupt,
}

/// What a dialect says of a group and its members.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// The dialect that claims the group; set by [`Dialects::claims`].
    pub dialect: Option<&'static dyn Dialect>,
    /// Its attributes alone mark the group as a table; set by [`Dialects::claims`].
    pub is_marked: bool,
    /// The group is a table of its own: [`Of::Group`].
    pub is_table: bool,
    /// The table only adds names: its columns are members that are shown by themselves ([`Table::only_adds`]).
    pub only_adds: bool,
    /// No further dialect is asked, though nothing is claimed.
    pub is_final: bool,
    /// Why the group is no table, though some of its members are of one length.
    pub nearly: Option<String>,
    /// What becomes of members, by link name; whatever is not named is marked by itself.
    pub members: HashMap<BString, Role>,
    /// The groups and datasets that serve members which are tables, by the names of these.
    pub serving: HashMap<BString, ObjectId>,
    /// Directories that stand for no link of the group, by name.
    pub made: Vec<(BString, Made)>,
    /// The name of a file that tells which datasets differ from those of an earlier state: [`Dialect::changes`].
    pub changes: Option<&'static str>,
    /// A group whose members are shown here as well, but those that have the name of a link of this one.
    pub beside: Option<Elsewhere>,
    /// Names of the dimensions that members lie on, one for each axis; `None` where an axis lies on none.
    pub axes: HashMap<BString, Arc<[Option<BString>]>>,
    /// Rules broken.
    pub findings: Vec<Finding>,
}

/// What becomes of a member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A column of the group's table: shown in `columns/`.
    Column,
    /// It serves a table, that of the group or one beside it (labels, indexes, …): named in `metadata.json`, shown
    /// nowhere.
    Servant,
}

/// What a table is made of.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The file.
    pub file: &'a Arc<File>,
    /// HDF5 path.
    pub path: &'a str,
    /// The object or objects.
    pub of: Of<'a>,
    /// The group or dataset beside a dataset that serves it, as the claims of their group say.
    pub servant: Option<ObjectId>,
    /// Which rules it is held against.
    pub checks: Checks,
}

/// Which rules a table is held against when it is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checks {
    /// Every rule, also where that takes requests of its own; else those that tell what is not shown as it should be.
    pub is_full: bool,
    /// What a user asked of rules.
    pub options: CheckOptions,
}

/// By what tables are judged, as far as a dialect has options of its own.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct CheckOptions {
    #[command(flatten)]
    hep001: hep001::Judging,
}

/// The objects that a table is made of.
#[derive(Clone, Copy, Debug)]
pub enum Of<'a> {
    /// A group marked as a table, or claimed from inside.
    Group(&'a Group),
    /// A dataset marked as a table.
    Dataset(&'a Arc<Dataset>),
    /// A table that the claims of a group made up.
    Made {
        /// The group.
        group: &'a Group,
        /// The key of the [`Made::Directory`].
        key: &'a BString,
        /// The plan shared by all made-up tables of the group.
        plan: &'a Plan,
    },
}

/// A list of dialects, in the order in which they are tried.
#[derive(Clone, Copy, Debug)]
pub struct Dialects(pub &'static [&'static dyn Dialect]);

impl Default for Dialects {
    fn default() -> Self {
        Self(ALL)
    }
}

impl Dialects {
    /// Lists the dialects for `--tables` and `--grids`.
    pub fn new(tables: Tables, grids: bool) -> Self {
        Self(match (tables, grids) {
            (Tables::Declared, false) => dialects!(Tables::Declared, false),
            (Tables::Declared, true) => dialects!(Tables::Declared, true),
            (Tables::Shape, false) => ALL,
            (Tables::Shape, true) => dialects!(Tables::Shape, true),
            (Tables::Loose, false) => dialects!(Tables::Loose, false),
            (Tables::Loose, true) => dialects!(Tables::Loose, true),
        })
    }

    /// Judges an object by its parent's listing.
    pub fn judge(self, path: &str, object: Subject<'_>) -> Judgement {
        let is_dataset = matches!(object, Subject::Dataset(_));
        let mut judgement =
            Judgement { kind: if is_dataset { "array" } else { "group" }, shown: None, findings: Vec::new() };
        let mut is_free = true;
        for dialect in self.0 {
            let mark = dialect.mark(path, object);
            if is_free && mark == Mark::Table {
                judgement.kind = "table";
            }
            is_free &= matches!(mark, Mark::No | Mark::Nearly(_));
            match mark {
                Mark::No | Mark::LookInside => {}
                Mark::Refused(finding) | Mark::Nearly(finding) => judgement.findings.push(finding),
                mark @ (Mark::Table | Mark::Files) => {
                    judgement.shown = Some((*dialect, mark));
                    break;
                }
            }
            if !is_dataset && !is_free {
                break;
            }
        }
        judgement
    }

    /// Names of attributes that the dialects look at.
    pub fn attributes(self) -> Vec<String> {
        self.0.iter().flat_map(|dialect| dialect.about().attributes).map(|name| (*name).to_owned()).collect()
    }

    /// What an object is called where it is named: `table`, `array`, `group`, …
    pub fn kind(self, path: &str, object: &Object) -> &'static str {
        match (object, Subject::of(object)) {
            (_, Some(subject)) => self.judge(path, subject).kind,
            (Object::Datatype { .. }, None) => "datatype",
            (_, None) => "unreadable",
        }
    }

    /// Opens the table at a site that `dialect` claimed. Its columns learn their statistics from all that is read of
    /// them.
    pub fn open(dialect: &dyn Dialect, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        dialect.open(site, interrupt).observed(site.file)
    }

    /// Makes the files of a dataset that `dialect` marked, as [`Dialects::open`] the table of a group.
    ///
    /// # Errors
    /// As [`Dialect::files`].
    pub fn files(
        dialect: &dyn Dialect,
        site: &Site<'_>,
        name: &BString,
        interrupt: &Interrupt,
    ) -> Result<Single, Unreadable> {
        Ok(dialect.files(site, name, Some(interrupt))?.observed(site.file))
    }

    /// What becomes of a group and its members.
    pub fn claims(self, here: &Here<'_>) -> Claims {
        // Claims on members hold, also where another dialect has the group.
        let (mut findings, mut nearly) = (Vec::new(), None);
        let (mut axes, mut serving) = (HashMap::new(), HashMap::new());
        let mut claims = Claims::default();
        let (mut is_marked, mut is_free) = (false, true);
        for asked in self.0 {
            let mark = asked.mark(here.path, Subject::Group(&here.group.attributes));
            is_marked |= is_free && mark == Mark::Table;
            is_free &= matches!(mark, Mark::No | Mark::Nearly(_));
            match mark {
                Mark::No | Mark::Files => continue,
                Mark::Nearly(finding) => findings.push(finding),
                Mark::Refused(finding) => {
                    findings.push(finding);
                    break;
                }
                mark @ (Mark::Table | Mark::LookInside) => {
                    let mut found = asked.claims(here);
                    findings.append(&mut found.findings);
                    nearly = nearly.or(found.nearly.take());
                    axes.extend(std::mem::take(&mut found.axes));
                    serving.extend(std::mem::take(&mut found.serving));
                    let is_empty = !found.is_table && found.members.is_empty() && found.made.is_empty();
                    if mark == Mark::Table || !is_empty || found.is_final {
                        claims = Claims { dialect: Some(*asked), ..found };
                        break;
                    }
                }
            }
        }
        Claims { is_marked, findings, nearly, axes, serving, ..claims }
    }
}

/// The rules of all dialects.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    ALL.iter().flat_map(|dialect| dialect.about().rules).chain(stated::ALL).copied()
}

/// How search indexes are written, as far as a dialect has options of its own.
#[derive(Clone, Debug, Default, Args)]
pub struct IndexOptions {
    #[command(flatten)]
    hep001: hep001::write::Options,
}

impl IndexOptions {
    /// The options of a table that is written, for its indexes.
    pub fn of_table(options: &table_writer::Options) -> Self {
        Self { hep001: hep001::write::Options { references: options.references, ..hep001::write::Options::default() } }
    }
}

/// What writes the search indexes of a table.
///
/// # Errors
/// Where tables of its dialect take none.
pub fn index_writer(table: &Table, options: &IndexOptions) -> Result<Box<dyn IndexWriter>, index_writer::Error> {
    let own = ALL.iter().find(|dialect| dialect.about().name == table.dialect);
    own.and_then(|dialect| dialect.index_writer(options)).ok_or_else(|| {
        let reason = format!("tables of {} take no search indexes", table.dialect);
        index_writer::Error::refused(&table.path, reason)
    })
}
