//! Options of a user for search indexes of HEP001.

use clap::{Args, ValueEnum};

use crate::h5::steps::References;

/// Default rate of false positives.
const FALSE_POSITIVES: f64 = 0.01;

/// How search indexes of HEP001 are written. The field comments are the help of the command.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Revision of HEP001 to follow [default: that of the table]
    #[arg(long, value_enum)]
    pub revision: Option<Revision>,

    /// How references are stored. HEP001 July demands `standard`, which h5py cannot read; h5py and h5col read `object`
    /// [default: as the table does already, else `standard`]
    #[arg(long, value_enum)]
    pub references: Option<ReferenceStorage>,

    /// Rate of false positives of a chunk's filter (kind bloom)
    #[arg(long, value_name = "SHARE", default_value_t = FALSE_POSITIVES, value_parser = share)]
    pub bloom_fpp: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { revision: None, references: None, bloom_fpp: FALSE_POSITIVES }
    }
}

/// A draft of HEP001, as far as search indexes are concerned.
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

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    if share > 0.0 && share < 1.0 { Ok(share) } else { Err(format!("{text} does not lie between 0 and 1")) }
}
