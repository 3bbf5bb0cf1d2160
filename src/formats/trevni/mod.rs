//! Trevni files: an Apache format of column files, where one file is one table.
//!
//! | module | what it does |
//! | --- | --- |
//! | `file` | opens a file: its header, the faults of its columns |
//! | `blocks` | locates the blocks of a column and decodes them on demand |
//! | `rows` | rows of a column, of records, of lists |
//! | `avro` | the Avro schema from which a file may have been shredded |
//! | `rules` | the rules for these files |
//! | `table` | the table: its columns, and their entries in `metadata.json` |
//!
//! Each column ends its blocks at rows of its own, so blocks of different columns do not line up. Each block can be
//! decoded without the one before, but a child's block needs its parent's lengths in the same rows.

mod avro;
mod blocks;
mod file;
mod rows;
pub(super) mod rules;
mod table;

pub(super) use file::TrevniFile;
