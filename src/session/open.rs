//! The library's entry: open files and tables.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};

use super::walk::{Astray, follow, walk};
use super::{OpenError, Session, Spot, datasets, root};
use crate::h5;
use crate::query::{self, BoundPredicate, Predicate, Query, Selection, SortError, Steps, expression};
use crate::source::{self, Interrupt};
use crate::store::{self, RowRange, Rows, Store};
use crate::table::{Finding, Table};
use crate::views::field_metadata;

/// Why a table cannot be found or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// No worker program for HDF5 is known.
    #[error("no worker of HDF5: call hepfs::serve_if_worker() first in main, or name a program that does")]
    NoWorker,
    /// The source cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The source has no table at this path.
    #[error("{0}: there is no such table")]
    NotFound(String),
    /// Something on the way to the table, or its rows, cannot be read.
    #[error(transparent)]
    Read(#[from] super::Error),
    /// An expression is malformed, or does not fit this table.
    #[error("expression, character {character}: {reason}")]
    Expression {
        /// Position of the character at fault, counted from 1.
        character: usize,
        /// Why the expression is rejected.
        reason: String,
    },
    /// Arrow rejects the columns of a record batch.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

impl From<store::Error> for TableError {
    fn from(error: store::Error) -> Self {
        super::Error::from(error).into()
    }
}

impl TableError {
    fn of_expression(text: &str, error: &query::Error) -> Self {
        let before = text.get(..error.position()).unwrap_or(text);
        Self::Expression { character: before.chars().count() + 1, reason: error.to_string() }
    }
}

/// How the session of a library user starts.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// The program to start as a worker of HDF5, such as `hepfs` itself. Default: the running program, which has to
    /// call [`serve_if_worker`](crate::serve_if_worker) first.
    pub worker: Option<PathBuf>,
    /// Bytes of memory for decoded values. Default: a quarter of the machine's, at most 1 GiB.
    pub memory: Option<u64>,
}

/// An open file. Tables are found in the file as it is now; those found before it changed fail with
/// [`Error::Stale`](super::Error::Stale).
///
/// ```standalone_crate
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # hepfs::serve_if_worker();
/// use hepfs::Session;
///
/// let file = Session::start()?.open("tests/data/seed_11_1.h5")?;
/// for table in file.tables()? {
///     println!("{}: {} rows, {}", table.path(), table.rows(), table.schema());
/// }
/// assert_eq!(file.table("my_table")?.rows(), 500);
/// # Ok(())
/// # }
/// ```
pub struct OpenFile {
    session: Arc<Session>,
    root: Spot,
}

/// A table of a file, or of many.
///
/// ```standalone_crate
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # hepfs::serve_if_worker();
/// use arrow_array::RecordBatch;
/// use hepfs::Session;
///
/// let table = Session::start()?.open("tests/data/seed_11_1.h5")?.table("my_table")?;
/// let batch: RecordBatch = table.read(10..20)?;
/// assert_eq!((batch.num_rows(), batch.num_columns()), (10, 4));
/// assert_eq!(batch.schema().field(2).metadata().get("h5col.units").map(String::as_str), Some("MeV"));
/// # Ok(())
/// # }
/// ```
pub struct OpenTable {
    session: Arc<Session>,
    path: String,
    table: Arc<Table>,
    /// Rows of the columns that can be read.
    rows: Vec<Arc<dyn Rows>>,
    schema: SchemaRef,
}

impl Session {
    /// Starts a session with default settings.
    ///
    /// # Errors
    /// [`TableError::NoWorker`] if the program has not called [`serve_if_worker`](crate::serve_if_worker).
    pub fn start() -> Result<Arc<Self>, TableError> {
        Self::start_with(Start::default())
    }

    /// Starts a session.
    ///
    /// ```standalone_crate
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # hepfs::serve_if_worker();
    /// use hepfs::{Session, Start};
    ///
    /// let session = Session::start_with(Start { memory: Some(64 << 20), ..Start::default() })?;
    /// let error = session.open("tests/data/no such file.h5").err().unwrap();
    /// assert!(error.to_string().contains("No such file"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`TableError::NoWorker`] if `start` names no worker, and the program has not called
    /// [`serve_if_worker`](crate::serve_if_worker).
    pub fn start_with(start: Start) -> Result<Arc<Self>, TableError> {
        if start.worker.is_none() && !h5::serves() {
            return Err(TableError::NoWorker);
        }
        let (store, workers) = (store::Options::default(), h5::Options::default());
        let store = store::Options { cache_size: start.memory.unwrap_or(store.cache_size), ..store };
        let workers = h5::Options { program: start.worker.unwrap_or(workers.program), ..workers };
        Ok(Self::new(Store::new(store), workers))
    }

    /// Opens a file.
    ///
    /// # Errors
    /// If the file does not exist, or has no known format.
    pub fn open(self: &Arc<Self>, path: impl AsRef<Path>) -> Result<OpenFile, OpenError> {
        if self.opener.is_folder(path.as_ref()) {
            let (path, error) = (path.as_ref().to_owned(), io::ErrorKind::IsADirectory.into());
            return Err(source::Error::Io { path, error }.into());
        }
        let root = root(self, &[path.as_ref().to_owned()], &Interrupt::new())?;
        Ok(OpenFile { session: self.clone(), root })
    }

    /// Makes one table of the tables that several files, or the files in folders, have at one path. It has the columns
    /// of all files, and `file`, the file of each row. Files that do not fit, or cannot be read, are left out: see
    /// [`OpenTable::left_out`].
    ///
    /// ```standalone_crate
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # hepfs::serve_if_worker();
    /// use hepfs::Session;
    ///
    /// let files = ["tests/data/seed_11_1.h5", "tests/data/seed_11_2.h5"];
    /// let table = Session::start()?.table_of_many(&files, "my_table")?;
    /// assert_eq!((table.rows(), table.left_out().count()), (1000, 0));
    /// assert_eq!(table.select("file = 'seed_11_2.h5'")?.rows(), 500);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If a source does not exist, or no file has a table at that path.
    pub fn table_of_many(self: &Arc<Self>, sources: &[impl AsRef<Path>], path: &str) -> Result<OpenTable, TableError> {
        let sources: Vec<PathBuf> = sources.iter().map(|source| source.as_ref().to_owned()).collect();
        let root = datasets(self, &sources)?;
        let path = path.trim_matches('/');
        // `%2F` stands for the table that each root group is itself.
        let at = find(&root, if path.is_empty() { "%2F" } else { path })?;
        let table = at.whole_dataset(&Interrupt::new()).map_err(|error| not_found(error, path))?;
        Ok(OpenTable::new(self, path.to_owned(), table))
    }
}

impl OpenFile {
    /// All tables in the file.
    ///
    /// # Errors
    /// If the root group cannot be listed. A subgroup that cannot be listed is skipped.
    pub fn tables(&self) -> Result<Vec<OpenTable>, TableError> {
        let interrupt = Interrupt::new();
        self.root.children(&interrupt)?;
        let mut tables: Vec<OpenTable> = Vec::new();
        walk(&self.root, &interrupt, &mut |met| {
            if let Some(table) = met.table() {
                tables.push(OpenTable::new(&self.session, met.path.to_owned(), table));
            }
            Ok::<bool, TableError>(true)
        })?;
        Ok(tables)
    }

    /// The table at a path, as in [`OpenTable::path`]; the path is empty for a file that is one table.
    ///
    /// # Errors
    /// [`TableError::NotFound`]: no table has this path.
    pub fn table(&self, path: &str) -> Result<OpenTable, TableError> {
        let at = find(&self.root, path)?;
        // Listing the directory makes its table known.
        at.children(&Interrupt::new()).map_err(|error| not_found(error, path))?;
        let table = at.table().ok_or_else(|| TableError::NotFound(path.to_owned()))?;
        Ok(OpenTable::new(&self.session, path.to_owned(), table))
    }

    /// Rules that the file breaks, as far as it was looked into: groups listed, values read.
    ///
    /// ```standalone_crate
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # hepfs::serve_if_worker();
    /// use hepfs::Session;
    ///
    /// let file = Session::start()?.open("tests/data/july_lists.h5")?;
    /// file.tables()?;
    /// let findings = file.findings();
    /// assert_eq!(findings[0].path, "/events/later");
    /// assert_eq!(findings[0].found, "KIND \"PACKED\" is not known");
    /// # Ok(())
    /// # }
    /// ```
    pub fn findings(&self) -> Vec<Finding> {
        self.root.opened().map(|opened| opened.findings()).unwrap_or_default()
    }
}

impl OpenTable {
    fn new(session: &Arc<Session>, path: String, table: Arc<Table>) -> Self {
        let (mut rows, mut fields) = (Vec::new(), Vec::new());
        for column in table.columns.iter().filter(|column| column.in_table) {
            let Ok(shown) = column.shown() else { continue };
            let field = Field::new(column.name.to_string(), shown.data_type().clone(), shown.nullable());
            fields.push(field.with_metadata(field_metadata(&column.notes())));
            rows.push(shown);
        }
        let schema = Arc::new(Schema::new(fields));
        Self { session: session.clone(), path, table, rows, schema }
    }

    /// The table's path, as a mount shows it and commands accept it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.table.rows
    }

    /// Name of the table's dialect.
    pub fn dialect(&self) -> &'static str {
        self.table.dialect
    }

    /// The columns that can be read and have one value per row. Units and descriptions are metadata.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Reads a range of rows, cut off at the last row.
    ///
    /// # Errors
    /// If the rows cannot be read, or a column's rows take more memory than one value may: then read fewer at once.
    pub fn read(&self, rows: RowRange) -> Result<RecordBatch, TableError> {
        let (start, end) = (rows.start.min(self.rows()), rows.end.min(self.rows()));
        let range = start..end.max(start);
        let count = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let (interrupt, limit) = (Interrupt::new(), self.session.store.max_value());
        for (rows, field) in self.rows.iter().zip(self.schema.fields()) {
            if rows.fitting(range.clone(), limit, &interrupt)?.end < range.end {
                let path = format!("{}/{}", self.path, field.name());
                let (what, bytes) = (format!("{count} rows"), limit.saturating_add(1));
                return Err(store::Error::TooLarge { path, what, bytes, limit, option: "read fewer at once" }.into());
            }
        }
        let arrays = self.rows.iter().map(|rows| rows.array(range.clone(), &interrupt));
        let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(self.schema(), arrays, &options)?)
    }

    /// The rows that satisfy an expression, in the language of `hepfs query`.
    ///
    /// ```standalone_crate
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # hepfs::serve_if_worker();
    /// use hepfs::Session;
    ///
    /// let table = Session::start()?.open("tests/data/seed_11_1.h5")?.table("my_table")?;
    /// let found = table.select("energy > 5 and label = 'electron' order by ts")?;
    /// assert_eq!(found.rows(), 143);
    /// let error = table.select("enrgy > 5").err().unwrap();
    /// assert!(error.to_string().contains("did you mean"), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`TableError::Expression`] if the expression is malformed or does not fit; any other error if values cannot be
    /// read.
    pub fn select(&self, text: &str) -> Result<OpenTable, TableError> {
        let (interrupt, store) = (Interrupt::new(), &self.session.store);
        let wrong = |error: query::Error| TableError::of_expression(text, &error);
        let Query { predicate, order, limit } = expression::query(text).map_err(wrong)?;
        let mut table = if predicate == Predicate::All(Vec::new()) {
            query::selectable(&self.table, text)
        } else {
            let bound = BoundPredicate::trusting(&self.table, &predicate, self.session.trust).map_err(wrong)?;
            let selection = Selection::new(&self.table.path, self.table.rows, bound, store, None)?;
            query::filtered(&self.table, &selection.selected(&interrupt)?, text)
        };
        if order.is_empty() {
            limit.into_iter().for_each(|most| query::first(&mut table, most));
        } else {
            let counted = (&Steps::default(), &interrupt);
            let places = query::places(&table, &order, limit, store, counted).map_err(|error| match error {
                SortError::Rows(error) => error.into(),
                SortError::Query(error) => wrong(error),
            })?;
            table = query::held(table, &places, store, counted)?;
        }
        Ok(Self::new(&self.session, self.path.clone(), Arc::new(table)))
    }

    /// Files that a table of many leaves out, by their shown paths, each with the reason.
    pub fn left_out(&self) -> impl Iterator<Item = (String, &str)> {
        self.table.left_out.iter().map(|(file, reason)| (file.to_string(), reason.as_ref()))
    }

    /// Rules that the table breaks, by its structure or by values read so far.
    pub fn findings(&self) -> Vec<Finding> {
        self.table.findings.iter().cloned().chain(self.table.met()).collect()
    }

    /// The table in the model of the lower layers.
    #[doc(hidden)]
    pub fn model(&self) -> &Arc<Table> {
        &self.table
    }
}

fn find(root: &Spot, path: &str) -> Result<Spot, TableError> {
    match follow(root.clone(), path.as_bytes(), &Interrupt::new()) {
        Ok(found) => Ok(found.spot),
        Err(Astray::Failed(error)) => Err(not_found(error, path)),
        Err(Astray::NotFound(..) | Astray::Nowhere(_)) => Err(TableError::NotFound(path.to_owned())),
    }
}

fn not_found(error: super::Error, path: &str) -> TableError {
    match error {
        super::Error::NotFound | super::Error::NotADirectory => TableError::NotFound(path.to_owned()),
        error => error.into(),
    }
}
