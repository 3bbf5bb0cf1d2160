//! Virtual Parquet files: every byte is a function of the columns, and everything but the lengths of texts and lists is
//! arithmetic.
//!
//! ```text
//! PAR1
//! row group                    of R rows, a power of two
//!   column chunk               one for each leaf column
//!     dictionary page          header of 33 bytes, body; if there is a dictionary
//!     data page                header, padding in it, body: levels and values
//!     …
//!   gap                        up to 4 KiB, so that cells of 64 KiB and more begin at a page of memory
//!   …
//! page index                   bounds and places of the pages of each column chunk; if chunks have several
//! Bloom filters                of columns of labels that have a BITMAP, a room for each column chunk
//! footer                       schema; an entry of constant length for each chunk; key-value pairs
//! length of the footer, PAR1
//! ```
//!
//! Kinds of data pages:
//!
//! | rows of a leaf | pages | a read |
//! | --- | --- | --- |
//! | have fixed places: `REQUIRED`, fixed width, byte indices | of up to R rows, exact | copies rows, raw if possible |
//! | are bounded: nullable, fixed texts | slots of up to 1 MiB, padded | renders pages, [cached](super::rendered) |
//! | the same of fixed texts, as stored | of version 2; compressed if texts outgrow them | renders pages, cached |
//! | have any length: texts, lists | up to 65,536 rows, 1 MiB; [measured](crate::learnt::pass) | renders, cached |
//!
//! | part | task |
//! | --- | --- |
//! | `thrift` | Thrift's compact protocol in fixed widths; page headers and schema |
//! | `body` | bodies of pages |
//! | `layout` | places of row groups, chunks and pages |
//! | `columns` | maps columns to leaf columns: everything known before a value is read |
//! | `sizes` | sizes that take a pass |
//! | `footer` | footer, page index, Bloom filters, of lengths that do not depend on values |
//! | `wanted`, `view` | the file |
//! | `labelled` | an exported column chunk of categories, with all labels |
//! | `compressed`, `partitioned` | exports the rows as one file; as one for each value of some columns |

mod body;
mod columns;
mod compressed;
mod footer;
mod labelled;
mod layout;
mod partitioned;
mod sizes;
#[cfg(test)]
mod tests;
mod thrift;
mod view;

pub use columns::ParquetColumn;
pub use compressed::{CompressError, compress};
pub use partitioned::{Partitioning, partition};
pub use view::ParquetView;
