//! `where/` in a table's directory: selections by name.
//!
//! Looking a name up only parses it, which costs nothing. No listing contains these names, or a program that walks a
//! tree would never end. The rows are searched when a program opens a file below, or asks for its exact size.
//!
//! ```text
//! where/COLUMN:OPERATOR:VALUE/     one segment
//! where/COLUMN/OPERATOR/VALUE/     the same segment in three names, as shells complete them: `:` ends a word of bash
//! ```

use std::sync::{Arc, OnceLock};

use bstr::{BString, ByteSlice};
use parking_lot::Mutex;

use super::contents::Contents;
use super::file::{ObjectAttributes, ShownFile};
use super::files::FileMaker;
use super::in_use::InUse;
use super::listing::{self, Child, ColumnView};
use super::opened::{OpenedSource, RequestedSelection};
use super::walk::below;
use super::{Error, FileSpot, Spot};
use crate::learnt::pass::PassProgress;
use crate::query::{self, BoundPredicate, Predicate, Selection, path};
use crate::source::{Interrupt, is_address};
use crate::table::Table;
use crate::views::constant::ConstantView;
use crate::views::{Effort, Size};

/// Name of the file that lists possible conditions.
pub(super) const VALUES: &str = "values.txt";

/// Most conditions nested below one another in `where/`.
const MOST_SEGMENTS: usize = 64;

/// Most bytes in the path of such conditions: the length of the longest absolute path.
const MOST_BYTES: usize = libc::PATH_MAX as usize;

/// A table, and the conditions on its rows so far. Very many such directories may be in use at a time, so each holds
/// only its own condition.
#[derive(Clone)]
pub(crate) struct FilteredTable {
    whole: Arc<Whole>,
    conditions: Option<Arc<Segment>>,
}

/// A table with all rows.
struct Whole {
    files: FileMaker,
    table: Arc<Table>,
    /// Its files; a selection has files of the same names.
    contents: OnceLock<Arc<Contents>>,
}

/// A condition as text, since its parsed form takes many times as much.
struct Segment {
    text: String,
    above: Option<Arc<Segment>>,
    /// Number of segments down to this one.
    depth: usize,
    /// Bytes of the path of these segments.
    length: usize,
}

impl FilteredTable {
    /// Makes the table with all its rows, without conditions.
    pub fn new(files: &FileMaker, table: &Arc<Table>) -> Self {
        let whole = Whole { files: files.clone(), table: table.clone(), contents: OnceLock::new() };
        Self { whole: Arc::new(whole), conditions: None }
    }

    /// Adds a segment, whose condition the rows have to satisfy as well.
    fn and(&self, segment: &[u8]) -> Result<Self, query::Error> {
        let text = path::readable(segment);
        let (above, separator) = self.conditions.as_ref().map_or((0, 0), |above| (above.depth, above.length + 1));
        let (depth, length) = (above + 1, separator + text.len());
        if depth > MOST_SEGMENTS || length > MOST_BYTES {
            let what = format!("at most {MOST_SEGMENTS} conditions of {MOST_BYTES} bytes together go below each other");
            return Err(query::Error::Syntax { at: 0, what });
        }
        self.bind(&path::parse(segment)?)?;
        let conditions = Some(Arc::new(Segment { text, above: self.conditions.clone(), depth, length }));
        Ok(Self { whole: self.whole.clone(), conditions })
    }

    fn bind(&self, predicate: &Predicate) -> Result<BoundPredicate, query::Error> {
        BoundPredicate::trusting(&self.whole.table, predicate, self.opened().session().trust)
    }

    /// Binds all conditions to the table.
    fn bound(&self) -> Result<BoundPredicate, query::Error> {
        let parsed = self.segments().into_iter().map(|segment| path::parse(segment.text.as_bytes()));
        self.bind(&Predicate::All(parsed.collect::<Result<_, _>>()?))
    }

    fn segments(&self) -> Vec<&Segment> {
        let above = std::iter::successors(self.conditions.as_deref(), |segment| segment.above.as_deref());
        let mut segments: Vec<&Segment> = above.collect();
        segments.reverse();
        segments
    }

    fn path(&self) -> String {
        self.segments().iter().map(|segment| segment.text.as_str()).collect::<Vec<_>>().join("/")
    }

    /// The maker of files over the selected rows.
    pub(super) fn files(&self) -> FileMaker {
        let files = self.whole.files.clone();
        if self.conditions.is_none() {
            return files;
        }
        let path = self.path();
        let title = below(&files.title, &format!("where/{path}")).into();
        FileMaker { selection: Some(path), title, ..files }
    }

    /// The opening of its source.
    pub fn opened(&self) -> &Arc<OpenedSource> {
        &self.whole.files.opened
    }
}

impl Whole {
    fn contents(&self) -> &Arc<Contents> {
        self.contents.get_or_init(|| {
            let mut contents = Contents::of_table(query::selectable(&self.table, ""));
            contents.show(self.files.opened.session().formats);
            Arc::new(contents)
        })
    }
}

/// The directory `where/`, and its subdirectories for a column and an operator.
pub(crate) struct Where {
    subject: FilteredTable,
    /// The parts of a segment that led here, joined by `:`.
    begun: String,
}

impl Where {
    pub fn new(subject: FilteredTable) -> Self {
        Self { subject, begun: String::new() }
    }

    /// The directory for a segment whose last part is `name`.
    fn followed(&self, segment: &[u8], name: &[u8]) -> Result<Spot, query::Error> {
        if name.contains(&b':') || !path::is_begun(segment) {
            return Ok(Spot::Selection(Arc::new(ChosenRows::new(self.subject.and(segment)?))));
        }
        if self.begun.is_empty() {
            // `null` applies to any column, so this checks that the column exists.
            self.subject.bind(&path::parse(&[segment, b":null"].concat())?)?;
        }
        Ok(Spot::Where(Arc::new(Self { subject: self.subject.clone(), begun: path::readable(segment) })))
    }

    fn values(&self) -> ShownFile {
        let Whole { files, table, .. } = self.subject.whole.as_ref();
        let table = table.clone();
        let attributes = ObjectAttributes::new(VALUES.into(), [].into());
        let view =
            ConstantView::new(files.blocks(), move |interrupt| Ok(query::values_text(&table, interrupt).into_bytes()));
        let view = Arc::new(view);
        ShownFile::new(&files.opened, view, attributes)
    }

    /// The table, and the conditions so far.
    pub fn subject(&self) -> &FilteredTable {
        &self.subject
    }

    /// Finds a name in the directory.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the name is no valid condition, which is logged.
    pub fn lookup(&self, name: &[u8]) -> Result<Spot, Error> {
        if name == VALUES.as_bytes() {
            return Ok(Spot::File(FileSpot::Shown(Arc::new(self.values()))));
        }
        // Any name may be a value; programs do not probe the directory of an operator.
        if !self.begun.contains(':') && is_asked_everywhere(name) {
            return Err(Error::NotFound);
        }
        let divider = if self.begun.is_empty() { "" } else { ":" };
        let segment = &[self.begun.as_bytes(), divider.as_bytes(), name].concat()[..];
        self.followed(segment, name).map_err(|error| {
            let files = &self.subject.whole.files;
            let place = format!("{}: {}/where/{}", files.opened.path().display(), files.path, segment.as_bstr());
            let before = segment.get(..error.position()).unwrap_or(segment).as_bstr().chars().count();
            files.opened.session().errors.add(&format!("{place}: character {}: {error}", before + 1));
            Error::NotFound
        })
    }
}

/// Whether programs try this name in every directory: a hidden file, or a file of tables, for a pattern like
/// `mnt/**/table.parquet`. It is not a mistyped selection, and logging it would evict errors that matter.
fn is_asked_everywhere(name: &[u8]) -> bool {
    !name.contains(&b':') && (name.starts_with(b".") || listing::is_of_tables(name))
}

/// Selected rows, and the files that show them.
pub(crate) struct ChosenRows {
    subject: FilteredTable,
    /// The selection, made when someone first looks at a file.
    selection: OnceLock<Arc<Selection>>,
    /// The selected rows, once they are known.
    loaded: OnceLock<Arc<Contents>>,
    /// Files in use by position, in the directory and in `columns/`: they own this value.
    files: Mutex<InUse<(bool, usize), SelectionFile>>,
}

impl ChosenRows {
    fn new(subject: FilteredTable) -> Self {
        Self { subject, selection: OnceLock::new(), loaded: OnceLock::new(), files: Mutex::default() }
    }

    /// The table with all rows, which has files of the same names.
    pub fn all(&self) -> &Arc<Contents> {
        self.subject.whole.contents()
    }

    fn selection(&self) -> Result<&Selection, Error> {
        if let Some(selection) = self.selection.get() {
            return Ok(selection);
        }
        let (table, files) = (&self.subject.whole.table, self.subject.files());
        let keeper = files.keeper("rows");
        let selection = files.opened.selection(&keeper.what, || {
            let bound = self.subject.bound().map_err(|error| Error::Io(error.to_string()))?;
            let selection = Selection::new(&table.path, table.rows, bound, files.opened.store(), Some(keeper.clone()))?;
            Ok(RequestedSelection {
                table: table.path.clone(),
                path: self.subject.path(),
                selection: Arc::new(selection),
            })
        })?;
        Ok(self.selection.get_or_init(|| selection))
    }

    /// The selected rows; waits until they are known.
    pub(super) fn load(&self, interrupt: &Interrupt) -> Result<Arc<Contents>, Error> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded.clone());
        }
        let opened = self.subject.opened();
        let selection = self.selection()?;
        let selected = selection.selected(interrupt).map_err(Error::from).inspect_err(|error| opened.log(error))?;
        // An index that could not help this selection may help the next one, once verified. That reads its whole column.
        let session = opened.session();
        if session.verifies_objects || !is_address(opened.path()) {
            session.verifier.queue(selection.unverified());
        }
        let filtered = query::filtered(&self.subject.whole.table, &selected, &self.subject.path());
        Ok(self.loaded.get_or_init(|| Arc::new(Contents::of_table(filtered))).clone())
    }

    fn file(self: &Arc<Self>, in_columns: bool, position: usize, child: &Child, name: &[u8]) -> Spot {
        let mut files = self.files.lock();
        if let Some(file) = files.get(&(in_columns, position)) {
            return Spot::File(FileSpot::Chosen(file));
        }
        let file = Arc::new(SelectionFile {
            chosen: self.clone(),
            child: child.clone(),
            name: name.into(),
            file: OnceLock::new(),
            of_all: OnceLock::new(),
        });
        files.insert((in_columns, position), &file);
        Spot::File(FileSpot::Chosen(file))
    }

    /// The table, and the conditions on its rows.
    pub fn subject(&self) -> &FilteredTable {
        &self.subject
    }

    /// Finds a name in the directory of the selection.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the name does not exist.
    pub fn lookup(self: &Arc<Self>, name: &[u8]) -> Result<Spot, Error> {
        Ok(match self.all().listing.get(name) {
            Some((_, Child::Columns)) => Spot::SelectionColumns(self.clone()),
            Some((_, Child::Where)) => Spot::Where(Arc::new(Where::new(self.subject.clone()))),
            Some((position, child)) => self.file(false, position, &child, name),
            // No file of a table has a colon in its name.
            None if name.contains(&b':') => Where::new(self.subject.clone()).lookup(name)?,
            None => return Err(Error::NotFound),
        })
    }

    /// Finds a name in its directory `columns/`.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the name does not exist.
    pub fn lookup_column(self: &Arc<Self>, name: &[u8]) -> Result<Spot, Error> {
        let (position, child) = self.all().columns().get(name).ok_or(Error::NotFound)?;
        Ok(self.file(true, position, &child, name))
    }

    /// The attributes of the table.
    pub fn attributes(&self) -> ObjectAttributes {
        let Whole { files, table, .. } = self.subject.whole.as_ref();
        ObjectAttributes::new(files.name.clone(), table.attributes.clone())
    }
}

/// A file over selected rows; once they are known, an ordinary file stands behind it.
pub(crate) struct SelectionFile {
    chosen: Arc<ChosenRows>,
    child: Child,
    name: BString,
    file: OnceLock<ShownFile>,
    of_all: OnceLock<ShownFile>,
}

impl SelectionFile {
    pub fn file(&self, interrupt: &Interrupt) -> Result<&ShownFile, Error> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = self.chosen.subject.files().file(&self.chosen.load(interrupt)?, &self.child, &self.name)?;
        Ok(self.file.get_or_init(|| file))
    }

    /// The same file over all rows.
    pub fn of_all(&self) -> Result<&ShownFile, Error> {
        if let Some(file) = self.of_all.get() {
            return Ok(file);
        }
        // Facts learnt about the selected rows do not hold for all rows.
        let file = self.chosen.subject.whole.files.file(self.chosen.all(), &self.child, &self.name)?;
        Ok(self.of_all.get_or_init(|| file))
    }

    /// Whether an upper bound serves as its size until it is opened.
    fn is_text(&self) -> bool {
        matches!(self.child, Child::Table(..) | Child::Column(_, ColumnView::Text(_)))
    }

    /// The opening of its source.
    pub fn opened(&self) -> &Arc<OpenedSource> {
        self.chosen.subject.opened()
    }

    /// Whether the file still shows the current state of the source.
    pub fn is_current(&self) -> bool {
        self.file.get().map_or_else(|| self.opened().is_current(), ShownFile::is_current)
    }

    /// The file, if its rows are known.
    pub fn known(&self) -> Option<&ShownFile> {
        self.file.get()
    }

    /// The progress of the passes that its exact size takes.
    pub fn progress(&self) -> Option<PassProgress> {
        match self.file.get() {
            Some(file) => file.view.progress(),
            None => self.chosen.selection.get().map(|selection| selection.progress()),
        }
    }

    /// The file's size; before the rows are known, the size over all rows is an upper bound.
    ///
    /// # Errors
    /// If rows cannot be read.
    pub fn size(&self, effort: Effort, interrupt: &Interrupt) -> Result<Size, Error> {
        let is_known = self.file.get().is_some()
            || match effort {
                Effort::Known | Effort::Free => self.chosen.selection()?.known().is_some(),
                Effort::Quick => !self.is_text() || self.chosen.selection()?.found().is_some(),
                Effort::Exact | Effort::Prepared => true,
            };
        if is_known {
            return self.file(interrupt)?.size(effort, interrupt);
        }
        // Fewer rows take fewer bytes.
        let effort = if effort == Effort::Known { effort } else { Effort::Free };
        let all = self.of_all()?.view.size(effort, interrupt)?.bytes();
        // Only `metadata.json` contains the path of the selection; JSON takes at most six bytes per byte of it.
        let path = self.chosen.subject.conditions.as_ref().map_or(0, |conditions| conditions.length as u64);
        let longer = if matches!(self.child, Child::Metadata) { path.saturating_mul(6) } else { 0 };
        Ok(Size::AtMost(all.saturating_add(longer)))
    }
}
