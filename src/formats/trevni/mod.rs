//! Trevni files. Trevni is a column file format of Apache, in which one file is one table.
//!
//! | module | what it does |
//! | --- | --- |
//! | `blocks` | holds the places and values of blocks |
//! | `file` | opens a file: reads its header, and finds the faults of its columns |
//! | `reading` | finds and decodes blocks on demand |
//! | `rows` | makes rows of columns: plain values, lists and records |
//! | `avro` | matches the Avro schema from which a file may have been shredded with its columns |
//! | `rules` | holds the rules for these files |
//! | `table` | makes the table: its columns, and their entries in `metadata.json` |
//!
//! The blocks of each column end at other rows, so blocks of different columns do not line up. A block can be decoded
//! without the one before it, but that of a child needs its parent's lengths in the same rows.

mod avro;
mod blocks;
mod file;
mod reading;
mod rows;
pub(super) mod rules;
mod table;

pub(super) use file::TrevniFile;
