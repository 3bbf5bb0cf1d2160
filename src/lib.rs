//! Reads the column tables inside HDF5 files, as Arrow arrays; the command `hepfs` mounts them as directories of files.
//!
//! A [`Session`] opens files. An [`OpenFile`] has tables, whatever library wrote them: HEP001, pandas, AnnData, NeXus,
//! NWB, netCDF and others. An [`OpenTable`] reads a range of its rows as a record batch, selects rows by an expression,
//! and lists findings: the places where the file breaks a rule of its format.
//!
//! ```standalone_crate
//! use hepfs::{Session, TableError};
//!
//! fn main() -> Result<(), TableError> {
//!     // libhdf5 runs in processes of its own: this program, started once more.
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
//! [`Session::table_of_many`] makes one table of the tables that many files have at one path. hepfs trusts no file: a
//! damaged or hostile one causes errors, and nothing worse. Tables of a file that changed fail with [`Error::Stale`];
//! an [`OpenFile`] finds tables in the file as it is now.
//!
//! # Layers
//!
//! All other modules serve the command, and change without notice. Lowest first; a module imports from those before it
//! and from nothing after it (`tests/layers.rs` checks this):
//!
//! | module | contents |
//! | --- | --- |
//! | `calendar` | days and instants, as people write them |
//! | `activity` | what this process does and costs, and the socket on which it says so |
//! | `source` | an opened source: identity, `read_at` |
//! | `catalogue` | plain data: groups, attributes, datatypes, layouts, chunk maps |
//! | `codec` | undoes filters, reads pickles: pure functions from slices |
//! | `h5` | the client of the HDF5 worker process, and the worker: all of libhdf5 |
//! | `store` | rows of a column: chunk cache, Arrow |
//! | `remote` | objects of stores on a network, as sources |
//! | `learnt` | passes over whole files; statistics of columns, learnt from every value decoded |
//! | `table` | the model: table, column, missing values, categories |
//! | `formats` | tells the format of a file; reads files other than HDF5, each one table |
//! | `dialects` | conventions for tables: each recognises its own in a catalogue and builds a table |
//! | `indexes` | search indexes, verified against their columns |
//! | `producer` | writes tables and search indexes as the dialect HEP001 reads them |
//! | `query` | finds the rows that satisfy a predicate, and makes a table of them |
//! | `views` | the files shown: size and bytes of each |
//! | `session` | opens sources, finds tables, makes one table of many files, gathers findings |
//! | `fs` | tree of names, inodes, the FUSE adapter |
//! | `serve` | the tree over HTTP, S3 and WebHDFS |
//! | `cli` | one file per command |

#[doc(hidden)]
pub mod activity;
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
pub mod learnt;
#[doc(hidden)]
pub mod producer;
#[doc(hidden)]
pub mod query;
#[cfg(feature = "remote")]
#[doc(hidden)]
pub mod remote;
#[cfg(feature = "serve")]
#[doc(hidden)]
pub mod serve;
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
