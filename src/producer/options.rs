//! Options of a user that tables and search indexes share.

use clap::ValueEnum;

use crate::h5::steps::References;

/// A draft of HEP001 to write by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Revision {
    /// July 2026
    July,
    /// April 2026
    April,
}

/// How references are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReferenceStorage {
    /// H5T_STD_REF
    Standard,
    /// H5T_STD_REF_OBJ
    Object,
}

impl From<ReferenceStorage> for References {
    fn from(stored: ReferenceStorage) -> Self {
        match stored {
            ReferenceStorage::Standard => Self::Standard,
            ReferenceStorage::Object => Self::Object,
        }
    }
}
