//! Shows the column tables inside HDF5 files as directories of ordinary files.
//!
//! The layers, lowest first; a module imports from those before it and from nothing after it (checked by
//! `tests/layers.rs`):
//!
//! | module | what it is |
//! | --- | --- |
//! | [`calendar`] | days and instants, as people write them |
//! | [`source`] | an opened source: identity, `read_at` |
//! | [`catalogue`] | plain data: groups, attributes, datatypes, layouts, chunk maps |
//! | [`codec`] | filters undone, pickles read: pure functions from slices |
//! | [`h5`] | the client of the HDF5 worker process, and the worker: all of libhdf5 |
//! | [`store`] | rows of a column: chunk cache, Arrow |
//! | [`table`] | the model: table, column, missing values, categories |
//! | [`formats`] | what format a file is of; files that are one table, and no HDF5 |
//! | [`dialects`] | ways of keeping a table: recognises one in a catalogue and builds a [`table::Table`] |
//! | [`indexes`] | what search indexes say of a column, held against it |
//! | [`query`] | which rows satisfy a predicate, and the table of those rows |
//! | [`views`] | the files shown: size and bytes of each |
//! | [`session`] | opens sources, finds tables, makes one table of many files, gathers findings |
//! | [`fs`] | tree of names, inodes, the FUSE adapter |
//! | [`cli`] | one file per command |
#![deny(missing_docs)]

pub mod calendar;
pub mod catalogue;
pub mod cli;
pub mod codec;
pub mod dialects;
pub mod formats;
pub mod fs;
pub mod h5;
pub mod indexes;
pub mod query;
pub mod session;
pub mod source;
pub mod store;
pub mod table;
pub mod views;
