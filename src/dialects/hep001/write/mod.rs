//! Building search indexes, and taking them away.
//!
//! | part | what it is |
//! | --- | --- |
//! | [`subject`] | the column, and where its table keeps indexes |
//! | [`content`] | what an index holds, computed in parallel |
//! | [`stored`] | values as the column stores them |
//! | [`commits`] | the steps in which it comes into the file |

pub mod commits;
pub mod content;
mod stored;
pub mod subject;

use crate::h5::WriteError;
use crate::store;

pub use subject::{Kind, Revision, Subject};

/// Why an index was not built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The column or table cannot have it.
    #[error("{path}: {reason}")]
    Refused {
        /// HDF5 path of the column, table or index.
        path: String,
        /// The rule, and what was found.
        reason: String,
    },
    /// The column cannot be read.
    #[error(transparent)]
    Read(#[from] store::Error),
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Error {
    fn refused(path: &str, reason: impl Into<String>) -> Self {
        Error::Refused { path: path.to_owned(), reason: reason.into() }
    }
}
