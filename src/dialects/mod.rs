//! Dialects: ways of keeping tables in an HDF5 file, in the order in which hepfs asks them. They alone decide what is a
//! table, where it lies, and which objects make it up or serve it.
//!
//! A [`Dialect`] answers three questions, knowing more each time:
//!
//! ```text
//! mark    by the parent's listing: attributes, type, shape         no request
//! claims  by a group's own links: columns, servants, directories   other groups, which are remembered
//! open    the table or the files, at first use                     requests; elements only if types depend on them
//! ```
//!
//! The first dialect in the list that marks an object gets it and ends the search, even if it refuses the table. A
//! dataset that is refused as a table is still shown as an array. Formats that mark their tables stand before those
//! that guess. Layers above do not know which dialect made a table.

mod anndata;
pub mod arrays;
pub(crate) mod attributes;
mod biom;
pub mod compound;
pub(crate) mod datasets;
mod h5md;
mod h5seurat;
mod hdfeos;
pub mod hep001;
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
pub use made::{Changed, DatasetChange, Elsewhere, Made, MadePlan};
pub use scales::is_plumbing;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use bstr::BString;
use clap::{Args, ValueEnum};

use crate::catalogue::{Attribute, Dataset, Group, Object, ObjectId};
use crate::source::Interrupt;
use crate::store::{self, File};
use crate::table::{Finding, Rule, Single, Table, Unreadable};

/// All dialects, in the order in which they are asked: the one that guesses by shape is the last.
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

/// The dialects with default options (see [`Tables`]).
pub const ALL: &[&dyn Dialect] = dialects!(Tables::Shape, false);

/// Which groups are tables (`--tables`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Tables {
    /// Groups that a format declares as tables
    Declared,
    /// Also groups that have the shape of a table
    #[default]
    Shape,
    /// Also if most datasets have other lengths, or rows are few
    Loose,
}

/// Facts about a dialect, known before any file is opened.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Name of the dialect in `metadata.json`.
    pub name: &'static str,
    /// Rules that the dialect's tables must keep.
    pub rules: &'static [&'static Rule],
    /// Names of the attributes that the dialect reads. Listings give these attributes of each member, and not all
    /// others.
    pub attributes: &'static [&'static str],
    /// The path below which every virtual dataset must map chunks of one source, and the rule that any other breaks.
    pub mappings: Option<(&'static str, &'static Rule)>,
}

impl About {
    /// Describes a dialect that has this name and no rules, and reads no attributes.
    pub const fn named(name: &'static str) -> Self {
        Self { name, rules: &[], attributes: &[], mappings: None }
    }
}

/// A way of keeping tables, and the code that knows it.
pub trait Dialect: Debug + Send + Sync {
    /// Facts about the dialect, known before any file is opened.
    fn about(&self) -> &'static About;

    /// Classifies an object as its parent's listing describes it. `path` is its HDF5 path.
    fn mark(&self, path: &str, object: ListedObject<'_>) -> Mark;

    /// Makes the claims on a group that this dialect marked [`Mark::Table`] or [`Mark::LookInside`].
    fn claims(&self, here: &Here<'_>) -> Claims {
        let _ = here;
        Claims::default()
    }

    /// Makes the table at a site that this dialect claimed. The table does not learn statistics yet: see
    /// [`Dialects::open`]. A column keeps the reason why it cannot be read, even an interrupt, so a caller that raised
    /// one must drop the table.
    fn open(&self, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        let _ = interrupt;
        Table::empty(site.path, self.about().name)
    }

    /// Makes the files of a dataset that this dialect marked [`Mark::Files`]. `name` is the name of its link. If
    /// `interrupt` is `None`, the caller only needs to know which files there are: no request is made, and names of
    /// parts are missing.
    ///
    /// # Errors
    /// Why the dataset cannot be opened.
    fn files(&self, site: &Site<'_>, name: &BString, interrupt: Option<&Interrupt>) -> Result<Single, Unreadable> {
        let _ = interrupt;
        Err(format!("{} shows no file of {name:?} at {}", self.about().name, site.path).into())
    }

    /// Finds the datasets below a group that differ from an earlier state ([`Claims::changes`]), without reading
    /// elements.
    ///
    /// # Errors
    /// Why the states cannot be compared.
    fn changes(&self, here: &Here<'_>, id: ObjectId) -> Result<Vec<DatasetChange>, store::Error> {
        let _ = (here, id);
        Ok(Vec::new())
    }

    /// Compares the checksums in a file with the data that they cover, and so reads all of it. An interrupt ends this
    /// early.
    fn verify(&self, file: &Arc<File>, interrupt: &Interrupt) -> Vec<Finding> {
        let _ = (file, interrupt);
        Vec::new()
    }

    /// Returns the names of members that are not columns of the table that this dialect claimed from inside, each with
    /// the reason.
    fn left_out(&self, here: &Here<'_>) -> HashMap<BString, Cow<'static, str>> {
        let _ = here;
        HashMap::new()
    }
}

/// An object as its parent's listing describes it.
#[derive(Clone, Copy, Debug)]
pub enum ListedObject<'a> {
    /// A group, of which the attributes are known.
    Group(&'a [Attribute]),
    /// A dataset.
    Dataset(&'a Arc<Dataset>),
}

impl<'a> ListedObject<'a> {
    /// The object, if it is a group or dataset. `None`: it is a committed datatype, or unreadable.
    pub fn of(object: &'a Object) -> Option<Self> {
        match object {
            Object::Group { attributes, .. } => Some(Self::Group(attributes)),
            Object::Dataset(dataset) => Some(Self::Dataset(dataset)),
            Object::Datatype { .. } | Object::Unreadable { .. } => None,
        }
    }
}

/// How a dialect classifies an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The object is not this dialect's: the next dialect is asked.
    No,
    /// The object is a table, shown as a directory.
    Table,
    /// The object is a dataset, shown as files side by side: `NAME.csv`, `NAME.npy`, …
    Files,
    /// The object is a table that must be refused, and is then shown as an ordinary group or array. The finding says
    /// why.
    Refused(Finding),
    /// The object is nearly a table; the finding says why it is not. The next dialect is asked.
    Nearly(Finding),
    /// The object is a group that the listing cannot classify. It is always called a group; its [`Claims`] may add a
    /// table.
    LookInside,
}

/// The dialects' opinions of an object, asked for in order.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Kind of the object in listings: `table`, `array`, `group`.
    pub kind: &'static str,
    /// The dialect that shows the object, as a directory ([`Mark::Table`]) or as files ([`Mark::Files`]). `None`: no
    /// dialect shows it by its listing.
    pub shown: Option<(&'static dyn Dialect, Mark)>,
    /// Findings of dialects that refuse the object, or call it nearly a table.
    pub findings: Vec<Finding>,
}

/// A group as seen from inside, when claims are made on it.
#[derive(Clone, Copy, Debug)]
pub struct Here<'a> {
    /// HDF5 path of the group.
    pub path: &'a str,
    /// The group.
    pub group: &'a Group,
    /// The file, for dialects that must list other groups to decide. The file remembers the worker's answers.
    pub file: &'a Arc<File>,
    /// Ends the listing of other groups. A caller that raised it must drop the claims.
    pub interrupt: &'a Interrupt,
}

/// A dialect's opinion of a group and its members.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// The dialect that claims the group; set by [`Dialects::claims`].
    pub dialect: Option<&'static dyn Dialect>,
    /// Whether the group's attributes alone mark it as a table; set by [`Dialects::claims`].
    pub is_marked: bool,
    /// Whether the group itself is a table: [`Of::Group`].
    pub is_table: bool,
    /// Whether the table only adds names, because its columns are members that are also shown by themselves
    /// ([`Table::only_adds`]).
    pub only_adds: bool,
    /// Whether no further dialect is asked, even if this one claims nothing.
    pub is_final: bool,
    /// Why the group is no table, although some of its members have the same length.
    pub nearly: Option<String>,
    /// Roles of members, by the names of their links; any other member is classified by itself.
    pub members: HashMap<BString, Role>,
    /// The groups and datasets that serve member tables, by the name of the table that each serves.
    pub serving: HashMap<BString, ObjectId>,
    /// Made-up entries of the group's directory, to which no link leads, by name.
    pub made: Vec<(BString, Made)>,
    /// Name of the file that lists the datasets that differ from an earlier state: [`Dialect::changes`]. `None`: there
    /// is no such file.
    pub changes: Option<&'static str>,
    /// A group whose members are shown in this one as well, except those that share their name with a link of this
    /// group.
    pub beside: Option<Elsewhere>,
    /// Names of the dimensions of each member, one for each axis; `None` for an axis without a dimension.
    pub axes: HashMap<BString, Arc<[Option<BString>]>>,
    /// The rules that the group breaks, and what was found.
    pub findings: Vec<Finding>,
}

/// The role of a member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A column of the group's table: shown in `columns/`.
    Column,
    /// A servant of a table, which is the group's or lies beside it (labels, indexes, …): listed in `metadata.json`,
    /// shown nowhere else.
    Servant,
}

/// The object that a table is made from, and its place.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The file that the objects lie in.
    pub file: &'a Arc<File>,
    /// HDF5 path of the object.
    pub path: &'a str,
    /// The objects to make the table from.
    pub of: Of<'a>,
    /// The group or dataset that serves the dataset at this site, according to the claims on the group of both.
    pub servant: Option<ObjectId>,
    /// The rules to check when the table is opened.
    pub checks: Checks,
}

/// The rules that are checked when a table is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checks {
    /// Whether to check every rule, even at the cost of requests. Otherwise only rules are checked whose violation
    /// changes how the table is shown.
    pub is_full: bool,
    /// The user's options for the rules of single dialects.
    pub options: CheckOptions,
}

/// Options of single dialects for judging tables.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct CheckOptions {
    #[command(flatten)]
    hep001: hep001::Judging,
}

/// The objects from which a table is made.
#[derive(Clone, Copy, Debug)]
pub enum Of<'a> {
    /// A group that is marked as a table, or claimed from inside.
    Group(&'a Group),
    /// A dataset that is marked as a table.
    Dataset(&'a Arc<Dataset>),
    /// A table that the claims on a group made up.
    Made {
        /// The group on which the claims were made.
        group: &'a Group,
        /// The key of the table, from its [`Made::Directory`].
        key: &'a BString,
        /// The plan shared by all made-up tables of the group.
        plan: &'a MadePlan,
    },
}

/// A list of dialects, in the order in which they are asked.
#[derive(Clone, Copy, Debug)]
pub struct Dialects(pub &'static [&'static dyn Dialect]);

impl Default for Dialects {
    fn default() -> Self {
        Self(ALL)
    }
}

impl Dialects {
    /// Lists the dialects as `--tables` and `--grids` demand.
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

    /// Classifies an object as its parent's listing describes it.
    pub fn judge(self, path: &str, object: ListedObject<'_>) -> Judgement {
        let is_dataset = matches!(object, ListedObject::Dataset(_));
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

    /// Names of the attributes that the dialects read.
    pub fn attributes(self) -> Vec<String> {
        self.0.iter().flat_map(|dialect| dialect.about().attributes).map(|name| (*name).to_owned()).collect()
    }

    /// Kind of an object in listings: `table`, `array`, `group`, `datatype`, `unreadable`.
    pub fn kind(self, path: &str, object: &Object) -> &'static str {
        match (object, ListedObject::of(object)) {
            (_, Some(subject)) => self.judge(path, subject).kind,
            (Object::Datatype { .. }, None) => "datatype",
            (_, None) => "unreadable",
        }
    }

    /// Opens the table at a site that `dialect` claimed. From then on, its columns learn statistics from every read.
    pub fn open(dialect: &dyn Dialect, site: &Site<'_>, interrupt: &Interrupt) -> Table {
        dialect.open(site, interrupt).observed(site.file.opening())
    }

    /// Makes the files of a dataset that `dialect` marked. They learn statistics like the tables that
    /// [`Dialects::open`] opens.
    ///
    /// # Errors
    /// See [`Dialect::files`].
    pub fn files(
        dialect: &dyn Dialect,
        site: &Site<'_>,
        name: &BString,
        interrupt: &Interrupt,
    ) -> Result<Single, Unreadable> {
        let single = dialect.files(site, name, Some(interrupt))?;
        Ok(Single { whole: single.whole.observed(site.file.opening()), ..single })
    }

    /// Collects what the dialects state about a group and its members.
    pub fn claims(self, here: &Here<'_>) -> Claims {
        // Axes and servants of members stay valid, even if another dialect gets the group.
        let (mut findings, mut nearly) = (Vec::new(), None);
        let (mut axes, mut serving) = (HashMap::new(), HashMap::new());
        let mut claims = Claims::default();
        let (mut is_marked, mut is_free) = (false, true);
        for asked in self.0 {
            let mark = asked.mark(here.path, ListedObject::Group(&here.group.attributes));
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

/// The rules of all dialects, and those on stated missing values.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    ALL.iter().flat_map(|dialect| dialect.about().rules).chain(stated::ALL).copied()
}
