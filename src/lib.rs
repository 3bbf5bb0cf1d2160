//! Reads the column tables inside HDF5 files, as Arrow arrays; the command `hepfs` mounts them as directories of files.
//!
//! A [`Session`] opens files. An [`OpenFile`] has tables, whatever library wrote them: HEP001, pandas, AnnData, NeXus,
//! NWB, netCDF and others. An [`OpenTable`] gives a range of its rows as a record batch, the table of the rows that an
//! expression selects, and findings: where the file breaks a rule of its format.
//!
//! ```standalone_crate
//! use hepfs::{Session, TableError};
//!
//! fn main() -> Result<(), TableError> {
//!     // libhdf5 runs in processes of its own, which are this program, started once more.
//!     hepfs::serve_if_worker();
//!     let session = Session::start()?;
//!     let file = session.open("tests/data/seed_11_1.h5")?;
//!     for table in file.tables()? {
//!         println!("{}: {} rows", table.path(), table.rows());
//!     }
//!     let table = file.table("my_table")?;
//!     println!("{:?}", table.read(0..10)?);
//!     let highest = table.select("energy is not null order by energy desc limit 5")?;
//!     assert_eq!(highest.read(0..5)?.num_rows(), 5);
//!     Ok(())
//! }
//! ```
//!
//! [`Session::table_of_many`] makes one table of the tables that many files have at one path. Nothing that a file says
//! is believed: damaged files and hostile ones make errors, and no more. Tables of a file that
//! changed answer [`Error::Stale`]; an [`OpenFile`] finds tables in the file as it is now.
//!
//! # Layers
//!
//! All other modules are for the command, and change without notice. Lowest first; a module imports from those before
//! it and from nothing after it (checked by `tests/layers.rs`):
//!
//! | module | what it is |
//! | --- | --- |
//! | `calendar` | days and instants, as people write them |
//! | `source` | an opened source: identity, `read_at` |
//! | `catalogue` | plain data: groups, attributes, datatypes, layouts, chunk maps |
//! | `codec` | filters undone, pickles read: pure functions from slices |
//! | `h5` | the client of the HDF5 worker process, and the worker: all of libhdf5 |
//! | `store` | rows of a column: chunk cache, Arrow |
//! | `table` | the model: table, column, missing values, categories |
//! | `formats` | what format a file is of; files that are one table, and no HDF5 |
//! | `dialects` | ways of keeping a table: recognises one in a catalogue and builds a table |
//! | `indexes` | what search indexes say of a column, held against it |
//! | `query` | which rows satisfy a predicate, and the table of those rows |
//! | `views` | the files shown: size and bytes of each |
//! | `session` | opens sources, finds tables, makes one table of many files, gathers findings |
//! | `fs` | tree of names, inodes, the FUSE adapter |
//! | `cli` | one file per command |
#![deny(missing_docs)]

#[doc(hidden)]
pub mod calendar;
#[doc(hidden)]
pub mod catalogue;
#[doc(hidden)]
pub mod cli;
#[doc(hidden)]
pub mod codec;
#[doc(hidden)]
pub mod dialects;
#[doc(hidden)]
pub mod formats;
#[doc(hidden)]
pub mod fs;
#[doc(hidden)]
pub mod h5;
#[doc(hidden)]
pub mod indexes;
#[doc(hidden)]
pub mod query;
#[doc(hidden)]
pub mod session;
#[doc(hidden)]
pub mod source;
#[doc(hidden)]
pub mod store;
#[doc(hidden)]
pub mod table;
#[doc(hidden)]
pub mod views;

pub use h5::serve_if_worker;
pub use session::{Error, OpenError, OpenFile, OpenTable, Session, Start, TableError};
pub use table::{Finding, Rule, Severity};
